"""Running the user's code: symbolic generators, replaced functions, the exploration of all paths."""
