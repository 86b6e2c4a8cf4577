"""The statements of the sources, one module for each, as entries of the registry."""
