"""Keep what a mechanism does to its process away from the engine, and put it back.

A mechanism is user code: it may set numpy's error handling, the recursion limit, the locale, the working directory,
signal handlers or the clocks of the module ``time``, or fork. :func:`engine_state` surrounds a whole audit: inside it
numpy warns as it does by default, and at its end all of these settings are restored. :func:`mechanism_state` surrounds
each batch of calls: inside it numpy has the settings of the user's program, and at its end the settings that the engine
needs are restored.
"""

from __future__ import annotations

import contextlib
import locale
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

_DEFAULT: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_CLOCKS = tuple((name, getattr(time, name)) for name in ("monotonic", "perf_counter", "time", "sleep"))
_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE") if hasattr(signal, name))
_SIGNALS = (*_ENDING, *(getattr(signal, name) for name in ("SIGALRM", "SIGCHLD") if hasattr(signal, name)))

# numpy's error handling outside of the engine, which mechanisms run with
_users: ContextVar[dict[str, Any] | None] = ContextVar("_users", default=None)


@contextlib.contextmanager
def engine_state() -> Iterator[None]:
    """Compute with numpy's default error handling, and put back at the end what mechanisms changed."""
    before = np.geterr()
    token = _users.set(dict(before))
    streams = sys.stdin, sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        stack.callback(_users.reset, token)
        stack.callback(_put_back_streams, *streams)
        stack.enter_context(_working_directory())
        stack.enter_context(_locale())
        stack.enter_context(_signal_handlers(_SIGNALS))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate(**_DEFAULT))
        yield


@contextlib.contextmanager
def import_state() -> Iterator[None]:
    """Import a user's file: undo its changes to signal handlers, and end any process that it forks."""
    with _signal_handlers(_ENDING), _one_process():
        yield


@contextlib.contextmanager
def _one_process() -> Iterator[None]:
    """End a process that was forked inside the block; otherwise it would continue the run too, and report a second result."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(1)


@contextlib.contextmanager
def mechanism_state() -> Iterator[None]:
    """Run calls of a mechanism with the user's error handling, and undo what would disturb the engine."""
    users = _users.get()
    limit = sys.getrecursionlimit()
    clocks = [getattr(time, name) for name, _ in _CLOCKS]
    with _one_process(), np.errstate(**({} if users is None else users)):
        try:
            yield
        finally:
            if users is not None:
                users.update(np.geterr())  # a setting that the mechanism made is kept for its next calls
            if sys.getrecursionlimit() != limit:
                sys.setrecursionlimit(limit)
            for (name, _), clock in zip(_CLOCKS, clocks, strict=True):
                if getattr(time, name) is not clock:
                    setattr(time, name, clock)


def _put_back_streams(stdin: Any, stdout: Any, stderr: Any) -> None:
    sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr


@contextlib.contextmanager
def _working_directory() -> Iterator[None]:
    before = None
    with contextlib.suppress(OSError):  # it was removed
        before = os.getcwd()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if before is not None and os.getcwd() != before:
                os.chdir(before)


@contextlib.contextmanager
def _locale() -> Iterator[None]:
    before = locale.setlocale(locale.LC_ALL)
    try:
        yield
    finally:
        with contextlib.suppress(locale.Error):
            if locale.setlocale(locale.LC_ALL) != before:
                locale.setlocale(locale.LC_ALL, before)


@contextlib.contextmanager
def _signal_handlers(numbers: Iterable[signal.Signals]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set them
        yield
        return
    before = [(number, signal.getsignal(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
