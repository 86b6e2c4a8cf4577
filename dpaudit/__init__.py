"""Find out whether code that claims to be differentially private really is."""
