"""Symbolic numbers and arrays: draws, what is known about them on a path, and arithmetic with them."""
