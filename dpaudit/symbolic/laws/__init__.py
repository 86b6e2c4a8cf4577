"""From a finished path to the law of its output."""
