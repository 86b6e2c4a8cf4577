"""Divergences between two exact laws."""
