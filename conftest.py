"""Settings of this repository's own tests."""

from hypothesis import settings

pytest_plugins = ["pytester"]

# Tests that find something new on a Tuesday help nobody to bisect; searching longer is for the benchmarks.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
