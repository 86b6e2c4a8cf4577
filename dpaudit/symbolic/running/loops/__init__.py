"""Loops that try again: when a run is back in an earlier state, and what that means for the law."""
