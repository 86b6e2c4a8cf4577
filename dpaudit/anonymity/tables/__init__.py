"""Tables, their cells, files and generalisation hierarchies."""
