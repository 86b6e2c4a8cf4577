"""Decide the exit code outside of the process that runs user code.

A mechanism may end its process in ways that no Python code can catch: ``os._exit(0)``, a crash in a native library, a handler
that runs at exit. On Linux a command that runs such code therefore does it in a forked child, which reports its exit code
through a pipe as its last act. The parent ends with that code and no other: without a report, the run did not reach its end,
and the code is 2. Elsewhere, as on macOS and Windows, the command runs in the first process. There ``os._exit`` is replaced, so
that it ends with 2 before the end of the run; a crash ends with a code of the system, which is not 0.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import NoReturn

from dpaudit._util.parent_process import HELD_INTERPRETER, end_with_parent
from dpaudit._util.terminal.console import Console, silence
from dpaudit._util.terminal.exit_codes import ExitCode

EXIT_GRACE = 10.0  # seconds for remaining threads and exit handlers, once the exit code is known
THREAD_SECONDS = 1.0  # seconds of these for remaining threads, if there is no supervising parent
HEARING_SECONDS = 0.05  # seconds in which a signal to the whole group reaches the child
ENDED_EARLY = (
    "the process ended {how} before the run did, so there is no result: code under audit ended it, or the system did. "
    "`dpaudit run -j 2` runs each audit in a process of its own, so that the others go on."
)
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT) if os.name == "posix" else ()

_report: int | None = None  # in the child: where the exit code is written
_reporting: int | None = None  # the process that writes it; code under audit may fork
_final: int | None = None  # the exit code, once the run has reached its end


def possible() -> bool:
    """Return True if a command can go on in a child process; a fork would lose other threads, and signals need Linux."""
    return sys.platform == "linux" and threading.active_count() == 1


def start(err: Console) -> None:
    """Go on in a child process, where that is possible; the parent never returns from here."""
    global _report, _reporting
    if not possible():
        _replace_exit(err)
        return
    reader, writer = os.pipe()
    heard, hears = os.pipe()
    waited = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.close(heard)
        _report, _reporting = writer, os.getpid()
        os.set_blocking(hears, False)
        signal.set_wakeup_fd(hears, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        end_with_parent(parent)
        return
    os.close(writer)
    os.close(hears)
    _supervise(child, reader, _Interrupts(child, heard), waited, err)


def leave(code: int) -> NoReturn:
    """End this process with the exit code, even if threads are still running."""
    global _final
    _final = code
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
            continue
        silence(stream)
    if _report is not None and os.getpid() == _reporting:
        with contextlib.suppress(OSError):
            os.write(_report, bytes([code]))
    until = time.monotonic() + THREAD_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive():  # the interpreter would wait for it without end
                os._exit(code)
    sys.exit(code)


def _replace_exit(err: Console) -> None:
    """Let ``os._exit`` end this process with 2 before the end of the run, and with the code of the run after it."""
    process, ends = os.getpid(), os._exit

    def _exit(status: int) -> NoReturn:
        if os.getpid() != process:  # a child that code under audit has forked
            ends(status)
        if _final is None:
            err.line(f"dpaudit: {ENDED_EARLY.format(how=f'with exit code {status}')}")
        ends(ExitCode.ERROR if _final is None else _final)

    os._exit = _exit


class _Interrupts:
    """Pass on SIGINT if it reached this process alone: a second one means more than the first.

    A signal from the terminal, or to the process group, reaches the child too. The child's interpreter writes the
    number of every signal that it catches into a pipe, so this process knows.
    """

    def __init__(self, child: int, heard: int) -> None:
        self._child = child
        self._heard = heard
        self._unmatched = 0  # interrupts that the child has caught beyond those of this process
        os.set_blocking(heard, False)

    def received(self, *, from_program: bool) -> None:
        """Handle an interrupt of this process."""
        until = time.monotonic() + HEARING_SECONDS
        self._listen()
        while from_program and self._unmatched <= 0 and time.monotonic() < until:
            time.sleep(0.005)
            self._listen()
        if from_program and self._unmatched <= 0:
            with contextlib.suppress(OSError):
                os.kill(self._child, signal.SIGINT)
        self._unmatched -= 1

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            self._unmatched += os.read(self._heard, 1 << 16).count(signal.SIGINT)


def _supervise(child: int, reader: int, interrupts: _Interrupts, waited: set[signal.Signals], err: Console) -> NoReturn:
    """Wait for the child, pass on signals that reached this process alone, and end with the code that it reported."""
    os.set_blocking(reader, False)
    code: int | None = None
    sent: int | None = None  # the last signal that was passed on
    until: float | None = None
    while True:
        info = signal.sigtimedwait(waited, 1.0)
        # Signals of the terminal go to the whole group, and so to the child too; those of a program have a code below 1.
        if info is not None and info.si_signo == signal.SIGINT:
            sent = info.si_signo
            interrupts.received(from_program=info.si_code <= 0)
        elif info is not None and info.si_signo != signal.SIGCHLD and info.si_code <= 0:
            sent = info.si_signo
            with contextlib.suppress(OSError):
                os.kill(child, sent)
        if code is None and (code := _reported(reader)) is not None:
            until = time.monotonic() + EXIT_GRACE
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = _reported(reader) if code is None else code
            break
        if until is not None and time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
    if code is None:
        _end_as(sent, status, err)
    os._exit(code if code is not None else ExitCode.ERROR)


def _reported(reader: int) -> int | None:
    try:
        content = os.read(reader, 1)
    except OSError:  # nothing yet
        return None
    return content[0] if content else None


def _end_as(sent: int | None, status: int, err: Console) -> None:
    """Say why there is no report; after a signal that was sent to end the run, end by the same signal."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    if number is not None and number == sent:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    how = f"with exit code {os.waitstatus_to_exitcode(status)}"
    if number is not None:
        how = f"by {signal.Signals(number).name}"
        if signal.Signals(number).name == HELD_INTERPRETER:
            how += " (a call took much longer than timeout= allows and did not return to Python)"
    err.line(f"dpaudit: {ENDED_EARLY.format(how=how)}")
