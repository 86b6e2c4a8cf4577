"""Distances between distributions of a sensitive attribute."""
