"""Risk of re-identification: how likely an observer finds the record of a person, and what they learn from it."""
