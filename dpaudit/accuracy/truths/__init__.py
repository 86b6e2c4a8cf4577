"""Exact, certified or simulated errors, which the bounds are compared with."""
