"""The laws of single random draws, and bounds of the errors with which they are computed."""
