"""Exact output laws of particular mechanisms."""
