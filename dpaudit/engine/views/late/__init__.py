"""Search for what the usual views miss, when these have won nothing after a share of the budget."""
