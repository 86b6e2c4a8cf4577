"""Encode any output of a mechanism as a structure (type, length, keys, text) and an array of numbers."""
