"""Search among pairs of data sets: choose the next one, bound epsilon, and compute what would have been detected."""
