"""Distributions of records, of order statistics and of errors."""
