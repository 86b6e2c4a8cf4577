"""Local worker processes that die alone.

The pool of the standard library breaks as a whole when one of its processes dies, and its processes fail without a word on
what they cannot unpickle. Here each process has a thread that feeds it over a pipe of its own: when the process dies, only
the call it was running is lost, the others go on, and the next call finds a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.validation import check_count

PATIENCE = 0.25  # seconds that an abandoned call may still take before its process is ended
LEAVE = 5.0  # seconds that an idle process may take to leave
UNBORN = (
    " while it started, which imports the main module: that must be a file in which executors are made under "
    "`if __name__ == '__main__':`"
)


class Unpicklable(Exception):
    """A call, or its answer, that cannot go from one process to another."""


class _Call(Future[Any]):
    """The future of one call; ``cancel`` on one that is running abandons it."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        super().__init__()
        self.what = (function, arguments, named)
        self.abandoned = False

    def cancel(self) -> bool:
        cancelled = super().cancel()
        self.abandoned |= not cancelled and not self.done()
        return cancelled


class _Lane:
    """One process, made when it is needed, and made again after it died."""

    def __init__(self, start: Callable[[Connection], BaseProcess]) -> None:
        self._start = start
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._call: _Call | None = None  # the one that runs
        self._doomed = False
        self._ready = False  # the process that there is now has said so
        self._lock = threading.Lock()

    def open(self) -> Connection:
        if self._pipe is None or self._process is None or self._doomed or not self._process.is_alive():
            self.close()
            self._ready = False
            self._pipe, theirs = multiprocessing.Pipe()
            self._process = self._start(theirs)
            theirs.close()  # so that the pipe ends when the process does
        return self._pipe

    def run(self, call: _Call) -> None:
        """Run one call to its end, whatever that is."""
        with self._lock:
            self._call = call
        fine, answer = self._ask(call)
        with self._lock:
            self._call = None
        if fine:
            call.set_result(answer)
        else:
            call.set_exception(answer)

    def _ask(self, call: _Call) -> tuple[bool, Any]:
        try:
            message = pickle.dumps(call.what)
        except Exception as error:
            return False, Unpicklable(f"{type(error).__name__}: {error}")
        try:
            pipe = self.open()
        except Exception as error:  # no memory, or this process is itself still importing the main module
            return False, BrokenExecutor(f"a process could not be started: {' '.join(str(error).split())}")
        try:
            if not self._ready:
                pipe.recv_bytes()
                self._ready = True
            pipe.send_bytes(message)
            packed = pipe.recv_bytes()
        except (EOFError, OSError):
            return False, BrokenExecutor(self._epitaph())
        try:
            fine, answer = pickle.loads(packed)
        except Exception as error:  # an answer that cannot be rebuilt here
            return False, Unpicklable(f"{type(error).__name__}: {error}")
        return fine, answer

    def _epitaph(self) -> str:
        assert self._process is not None
        self._process.join(LEAVE)
        code, ready = self._process.exitcode, self._ready
        self.close()
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"a process was ended by {signal.Signals(-code).name}"
        return f"a process ended with exit code {code}{'' if ready else UNBORN}"

    def end_abandoned(self, until: float) -> None:
        """Give an abandoned call until that time, and then end its process."""
        while (call := self._call) is not None and call.abandoned:
            if time.monotonic() >= until:
                with self._lock:
                    if self._call is call and self._process is not None:
                        self._doomed = True
                        self._process.kill()
                return
            time.sleep(0.005)

    def interrupt(self) -> None:
        """Hand Ctrl-C on to the call that runs."""
        with self._lock:
            if self._call is not None and self._process is not None and self._process.pid is not None:
                os.kill(self._process.pid, signal.SIGINT)

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            self._process.join(LEAVE)
            if self._process.is_alive():
                self._process.kill()
            self._process = None
        self._doomed = False


class Workers(Executor):
    """An executor of ``count`` spawned processes (forked ones would copy random state and locks).

    A future whose process died raises ``BrokenExecutor`` with how it died; the executor stays usable. ``cancel`` on a running
    future abandons it: if it is still running when the processes are wanted again or are to leave, its process is ended, so
    a mechanism that hangs holds up nobody.

    >>> with Workers(1) as workers:
    ...     workers.submit(divmod, 7, 2).result()
    (3, 1)
    """

    def __init__(
        self, count: int, *, initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        check_count(count=count)
        self.count = count
        self._initial = (initializer, initargs)
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lanes = [_Lane(self._start) for _ in range(count)]
        self._threads = [threading.Thread(target=self._serve, args=(lane,), daemon=True) for lane in self._lanes]
        self._closed = False
        atexit.register(self.shutdown)
        if os.name == "posix":
            # Else the first thread starts it, which lets Ctrl-C through again there, and so in the process born next.
            resource_tracker.ensure_running()
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call in one of the processes."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self._end_abandoned()
        call = _Call(fn, args, kwargs)
        self._calls.put(call)
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes leave; calls that wait are still run unless ``cancel_futures``."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.shutdown)
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while True:
                    call = self._calls.get_nowait()
                    if call is not None:
                        call.cancel()
        for _ in self._lanes:
            self._calls.put(None)
        while wait and any(thread.is_alive() for thread in self._threads):
            self._end_abandoned()
            for thread in self._threads:
                thread.join(PATIENCE)

    def interrupt(self) -> None:
        """Hand Ctrl-C on to calls that run, where processes can be interrupted rather than ended."""
        for lane in self._lanes if os.name == "posix" else ():
            with contextlib.suppress(OSError):
                lane.interrupt()

    def _end_abandoned(self) -> None:
        until = time.monotonic() + PATIENCE
        for lane in self._lanes:
            lane.end_abandoned(until)

    def _serve(self, lane: _Lane) -> None:
        """Feed one process, in a thread."""
        with _without_interrupts():
            with contextlib.suppress(Exception):  # who calls is told
                lane.open()  # at once: importing takes a while
            while (call := self._calls.get()) is not None:
                if call.set_running_or_notify_cancel():
                    lane.run(call)
                del call  # nothing keeps an answer that was handed over
            lane.close()

    def _start(self, pipe: Connection) -> BaseProcess:
        process = multiprocessing.get_context("spawn").Process(target=_work, args=(pipe, *self._initial))
        process.start()
        return process


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C in this thread; a process started by it is born that way, so nothing is lost while it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection, initializer: Callable[..., object] | None, initargs: tuple[Any, ...]) -> None:
    """What a process does: calls, one after the other, until the pipe ends. Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if initializer is not None:
        initializer(*initargs)
    with contextlib.suppress(OSError):
        pipe.send_bytes(b"")  # ready
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        answer = _answer(message)
        try:
            packed = pickle.dumps(answer)
        except Exception as error:
            packed = pickle.dumps((False, _instead_of(answer[1], error)))
        try:
            pipe.send_bytes(packed)
        except OSError:
            return


def _instead_of(answer: Any, error: Exception) -> Exception:
    """What is sent for an answer that cannot be: of an error that is meant for the user, what it says."""
    if isinstance(answer, MechanismError):
        return MechanismError(f"{type(answer).__name__}: {answer}")
    return Unpicklable(f"the answer cannot be sent back: {type(error).__name__}: {error}")


def _answer(message: bytes) -> tuple[bool, Any]:
    try:
        function, arguments, named = pickle.loads(message)
    except (Exception, SystemExit) as error:  # of a module that is imported for it, too
        return False, Unpicklable(f"{type(error).__name__}: {error}")
    try:
        return True, function(*arguments, **named)
    except BaseException as error:  # the parent's to handle, whatever it is
        error.add_note(f"In the worker process:\n{traceback.format_exc()}")
        return False, error
