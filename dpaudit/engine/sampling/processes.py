"""An executor of local processes in which the death of one process leaves the others running.

The pool of the standard library breaks as a whole when one of its processes dies, and a process fails silently on a task
that it cannot unpickle. Here each process has a thread that sends it calls over a pipe of its own. When a process dies,
only its current call is lost, and its thread starts a new process for the next call.
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

from dpaudit._util.parent_process import HELD_INTERPRETER, end_with_parent
from dpaudit._util.validation import check_count
from dpaudit.errors import MechanismError

ABANDONED_CALL_SECONDS = 0.25  # time that an abandoned call may still take before its process is killed
EXIT_SECONDS = 5.0  # time that an idle process may take to exit
START_SECONDS = 5.0  # time that the operating system may take to start all processes
DIED_AT_START = (
    " while it started, which imports the main module: that must be a file in which executors are made under "
    "`if __name__ == '__main__':`"
)


class Unpicklable(Exception):
    """A call or its result cannot be pickled or unpickled."""


class HeldInterpreter(BrokenExecutor):
    """A call held the interpreter for much longer than its time limit, so its process was ended."""


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


class _WorkerProcess:
    """One process, started when needed, and started again after it died."""

    def __init__(self, start: Callable[[Connection], BaseProcess]) -> None:
        self._start = start
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._call: _Call | None = None  # the running call
        self._killed = False
        self._ready = False  # the current process has reported that it is ready
        self._lock = threading.Lock()

    def open(self) -> Connection:
        if self._pipe is None or self._process is None or self._killed or not self._process.is_alive():
            self.close()
            self._ready = False
            self._pipe, theirs = multiprocessing.Pipe()
            self._process = self._start(theirs)
            theirs.close()  # so that the pipe closes when the process dies
        return self._pipe

    def run(self, call: _Call) -> None:
        """Run one call and set its result or exception."""
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
        except Exception as error:  # out of memory, or this process is still importing the main module
            return False, BrokenExecutor(f"a process could not be started: {' '.join(str(error).split())}")
        try:
            if not self._ready:
                pipe.recv_bytes()
                self._ready = True
            pipe.send_bytes(message)
            packed = pipe.recv_bytes()
        except (EOFError, OSError):
            return False, self._exit_error()
        try:
            fine, answer = pickle.loads(packed)
        except Exception as error:  # the result cannot be unpickled here
            return False, Unpicklable(f"{type(error).__name__}: {error}")
        return fine, answer

    def _exit_error(self) -> BrokenExecutor:
        assert self._process is not None
        self._process.join(EXIT_SECONDS)
        code, ready = self._process.exitcode, self._ready
        self.close()
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                name = signal.Signals(-code).name
                if name == HELD_INTERPRETER:
                    return HeldInterpreter(
                        "a call took much longer than timeout= allows and did not return to Python, so its process was ended"
                    )
                return BrokenExecutor(f"a process was ended by {name}")
        return BrokenExecutor(f"a process ended with exit code {code}{'' if ready else DIED_AT_START}")

    def end_abandoned(self, until: float) -> None:
        """Wait for an abandoned call until that time, then kill its process."""
        while (call := self._call) is not None and call.abandoned:
            if time.monotonic() >= until:
                self.end(call)
                return
            time.sleep(0.005)

    def end(self, call: Future[Any]) -> None:
        """Kill the process if it runs this call."""
        with self._lock:
            if self._call is call and self._process is not None:
                self._killed = True
                self._process.kill()

    def interrupt(self) -> None:
        """Send SIGINT to the process of the running call."""
        with self._lock:
            if self._call is not None and self._process is not None and self._process.pid is not None:
                os.kill(self._process.pid, signal.SIGINT)

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            self._process.join(EXIT_SECONDS)
            if self._process.is_alive():
                self._process.kill()
            self._process = None
        self._killed = False


class Workers(Executor):
    """An executor of ``count`` spawned processes (forked ones would copy random state and locks).

    A future whose process died raises ``BrokenExecutor`` with the exit code; the executor stays usable. ``cancel`` on a running
    future abandons it: if it still runs at the next submit or at shutdown, its process is killed, so that a mechanism that
    hangs blocks nothing else.

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
        self._processes = [_WorkerProcess(self._start) for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(process,), daemon=True) for process in self._processes
        ]
        self._started = threading.Semaphore(0)  # released once for each process
        self._closed = False
        atexit.register(self.shutdown)
        if os.name == "posix":
            # Otherwise the first thread starts it, which unblocks SIGINT there, and so in the next process it starts.
            resource_tracker.ensure_running()
        for thread in self._threads:
            thread.start()
        # A mechanism that ends this process while another one starts would leave that one with a traceback.
        for _ in self._threads:
            self._started.acquire(timeout=START_SECONDS)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call in one of the processes."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self._end_abandoned()
        call = _Call(fn, args, kwargs)
        self._calls.put(call)
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after the waiting calls, which are cancelled if ``cancel_futures``."""
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
        for _ in self._processes:
            self._calls.put(None)
        while wait and any(thread.is_alive() for thread in self._threads):
            self._end_abandoned()
            for thread in self._threads:
                thread.join(ABANDONED_CALL_SECONDS)

    def end(self, future: Future[Any]) -> None:
        """Kill the process that runs this call; its future then raises ``BrokenExecutor``."""
        for process in self._processes:
            process.end(future)

    def interrupt(self) -> None:
        """Send SIGINT to processes that run a call, on systems that allow it."""
        for process in self._processes if os.name == "posix" else ():
            with contextlib.suppress(OSError):
                process.interrupt()

    def _end_abandoned(self) -> None:
        until = time.monotonic() + ABANDONED_CALL_SECONDS
        for process in self._processes:
            process.end_abandoned(until)

    def _serve(self, process: _WorkerProcess) -> None:
        """Send calls to one process; runs in a thread."""
        with _without_interrupts():
            with contextlib.suppress(Exception):  # the next call reports it
                process.open()  # start early, because importing takes a while
            self._started.release()
            while (call := self._calls.get()) is not None:
                if call.set_running_or_notify_cancel():
                    process.run(call)
                del call  # so that a result is freed once it was read
            process.close()

    def _start(self, pipe: Connection) -> BaseProcess:
        process = multiprocessing.get_context("spawn").Process(target=_work, args=(pipe, *self._initial))
        process.start()
        return process


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in this thread; a process that it starts inherits that, so no interrupt kills it while it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(pipe: Connection, initializer: Callable[..., object] | None, initargs: tuple[Any, ...]) -> None:
    """Run calls one after the other until the pipe closes. The parent handles Ctrl-C. Runs in the worker process."""
    if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
        end_with_parent(parent.pid)
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
    """Return the exception to send for a result that cannot be pickled; a MechanismError keeps its message."""
    if isinstance(answer, MechanismError):
        return MechanismError(f"{type(answer).__name__}: {answer}")
    return Unpicklable(f"the result cannot be pickled: {type(error).__name__}: {error}")


def _answer(message: bytes) -> tuple[bool, Any]:
    try:
        function, arguments, named = pickle.loads(message)
    except (Exception, SystemExit) as error:  # also from a module that unpickling imports
        return False, Unpicklable(f"{type(error).__name__}: {error}")
    try:
        return True, function(*arguments, **named)
    except BaseException as error:  # the parent handles it
        error.add_note(f"In the worker process:\n{traceback.format_exc()}")
        return False, error
