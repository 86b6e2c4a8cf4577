"""Helpers that every part of the package uses: validation, values as text, intervals, files, Hypothesis."""
