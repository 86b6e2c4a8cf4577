"""The mathematics of the test: e-processes, the wealth of many bets together, and a claim as points to bet against."""
