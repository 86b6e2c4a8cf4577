"""The black-box audit, in the order in which data flow."""
