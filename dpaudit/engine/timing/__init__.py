"""The channel ``timing``: test whether the duration of a call depends on the data."""
