"""Calculators of the accuracy bounds, one module for each mechanism or kind of error."""
