"""Which pair of data sets is sampled next, what its outputs show, and which leaks would have been detected."""
