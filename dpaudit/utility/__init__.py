"""Accuracy claims of the user's own: check them on the worst data that a search finds, and draw error against epsilon."""
