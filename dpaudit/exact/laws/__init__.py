"""Exact output laws, as values with log-probabilities and samples."""
