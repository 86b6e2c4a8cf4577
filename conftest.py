"""Settings of this repository's own tests."""

import gc
import os
import signal

from hypothesis import settings

pytest_plugins = ["pytester"]

# There is a worker for every core already: threads of the linear algebra would only wait for each other, at full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Derandomised: a test whose examples change from run to run cannot be bisected. Longer searches are in the benchmarks.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# A job in the background of a shell is started with SIGINT ignored, and so would be all processes of the tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Five thousand tests and all that they imported stay to the end: the garbage collector need not look again and again."""
    gc.collect()
    gc.freeze()
