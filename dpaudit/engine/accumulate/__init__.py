"""Evidence that grows from run to run: a file of settled rounds, and the runs that add to it."""
