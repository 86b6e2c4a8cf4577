"""The channel ``timing``: whether the duration of a call depends on the data."""
