"""Let a process end when the process that started it is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def end_with_parent(parent: int) -> None:
    """End this process when its parent, whose process id is given, has ended for any reason.

    On Linux the kernel does it, so that a call that holds the interpreter ends too. Elsewhere a thread waits for the end of the
    parent, in processes that multiprocessing started.
    """
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
