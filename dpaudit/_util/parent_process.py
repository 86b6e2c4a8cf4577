"""Let a process end when the process that started it is killed, and when a call in it cannot be interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
# What ends a process whose call holds the interpreter, where handlers of signals in Python do not run: a timer of the kernel.
HELD_INTERPRETER = "SIGPROF"
GRACE_SECONDS = 2.0  # of processor time, beyond what a call could use on all processors within its time

_is_worker = False


@contextlib.contextmanager
def limited_processor_time(seconds: float) -> Iterator[None]:
    """In the block, end this process if the block uses far more processor time than fits into ``seconds``.

    Only on Unix, and only a worker, because its parent knows what to do then.
    """
    if not (_is_worker and hasattr(signal, "ITIMER_PROF")):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, (os.cpu_count() or 1) * seconds + GRACE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def end_with_parent(parent: int) -> None:
    """End this process, a worker, when its parent, whose process id is given, has ended for any reason.

    On Linux the kernel does it, so that a call that holds the interpreter ends too. Elsewhere a thread waits for the end of the
    parent, in processes that multiprocessing started.
    """
    global _is_worker
    _is_worker = True
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError, ImportError):
            import ctypes

            ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it ended before the call above took effect
                os.kill(os.getpid(), signal.SIGKILL)
            return
    from multiprocessing import connection, parent_process

    started_by = parent_process()
    if started_by is not None:
        sentinel = started_by.sentinel
        threading.Thread(target=lambda: (connection.wait([sentinel]), os._exit(1)), daemon=True).start()
