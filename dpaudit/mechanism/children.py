"""Child processes: start them, talk to them over pipes, and leave none behind.

Every child leads a process group of its own, which is killed as a whole: when the child has ended, when it is given up, and
when this process ends. If this process is killed itself, a small guard process notices it and kills the groups that are
left. Only a descendant that leaves the group on purpose (``setsid``, a daemon) escapes.

A group of its own also means that Ctrl-C reaches only this process; a child that the terminal interrupts would be taken
for one that fails.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, cast

from dpaudit._util.validation import shorten
from dpaudit.errors import MechanismError
from dpaudit.mechanism.outputs import ReleaseFailed
from dpaudit.mechanism.waiting import deadline_passed, seconds_left

LARGEST_ANSWER = 1 << 26
"""Bytes of one answer after which a process is killed; the largest block of an audit has about 2^19 numbers."""
STDERR_KEPT = 1 << 13
"""Bytes of standard error that are kept, the last ones."""
CHUNK = 1 << 16
"""Bytes that are read or written at once: what a pipe holds."""
CLOSING_SECONDS = 1.0
"""Time between the end of standard output and the end of a process, after which it is given up."""
POLL_SECONDS = 0.005
"""Time between two checks of a process, on systems that cannot wait for it and for its pipes at once."""

GUARD = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process: its exit code, negative for a signal, and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes

    def failure(self) -> ReleaseFailed:
        """Return the failure of a release whose process ended; the last line of standard error is its message."""
        if self.code < 0:
            try:
                kind = f"signal {signal.Signals(-self.code).name}"
            except ValueError:
                kind = f"signal {-self.code}"
        else:
            kind = f"exit code {self.code}"
        return ReleaseFailed(kind, self.last_line())

    def last_line(self) -> str:
        """Return the last line of standard error that is not empty."""
        lines = self.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        return lines[-1].strip() if lines else ""


class Child:
    """A running process with pipes to its standard input, output and error."""

    def __init__(self, command: Sequence[str], folder: str | None = None, environment: Mapping[str, str] | None = None):
        if os.name != "posix":
            raise MechanismError(f"command={shorten(list(command))}: programs can be audited on Linux and macOS only.")
        self.command = tuple(command)
        self._owner = os.getpid()
        self._buried = False
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**os.environ, **environment} if environment else None,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            where = f" in folder={folder!r}" if folder else ""
            raise MechanismError(
                f"command={shorten(list(command))} cannot be started{where}: {error}. The first word must be a program on "
                "the PATH or the path of an executable file; a script needs a first line such as #!/usr/bin/env python3."
            ) from error
        _LIVE.add(self)
        _guard(f"+{self._process.pid}\n")
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes())
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        try:
            self._exit: int | None = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not Linux, or forbidden
            self._exit = None
        self._read = bytearray()
        self._stderr = bytearray()

    @property
    def running(self) -> bool:
        """True if the process has neither ended nor been killed."""
        return self in _LIVE and not self._has_ended()

    @property
    def unread(self) -> bytes:
        """Bytes that it has written since the last line that was read."""
        with contextlib.suppress(OSError):
            self._receive(self._out)
        return bytes(self._read)

    def run(self, text: bytes, *, stderr_kept: int = STDERR_KEPT) -> Ended:
        """Write the whole input, close it, and wait until the process has ended. Its own children that still run are killed."""
        try:
            self._talk(text, one_line=False, stderr_kept=stderr_kept)
            return self._ended()
        finally:
            self.kill()

    def ask(self, text: bytes) -> bytes:
        """Write a line and return the next one that comes back; raise ReleaseFailed if the process ends or stops writing."""
        try:
            end = self._talk(text, one_line=True)
            if end < 0:
                ended = self._ended()
                failure = ended.failure()
                if ended.stdout:
                    failure = ReleaseFailed(f"{failure.kind} in the middle of an answer", failure.message)
                raise failure
        except BaseException:  # a late answer must never be taken for the answer to the next request
            self.kill()
            raise
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    def kill(self) -> None:
        """Kill the process and everything in its group, and remove it from the list of running ones."""
        if self not in _LIVE:
            return
        if os.getpid() == self._owner:  # otherwise this process is a fork of the one that started the child
            self._bury()
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()
        if self._exit is not None:
            os.close(self._exit)
            self._exit = None
        _LIVE.discard(self)

    def _talk(self, text: bytes, *, one_line: bool, stderr_kept: int = STDERR_KEPT) -> int:
        """Write and read until a line is complete, and return its length; -1 if the process ended before."""
        since, start = time.monotonic(), 0
        outgoing = memoryview(text)
        poll = select.poll()
        for pipe in (self._out, self._err, *(() if self._exit is None else (self._exit,))):
            poll.register(pipe, select.POLLIN)
        writing = True
        poll.register(self._in, select.POLLOUT)
        given_up: float | None = None  # the process is then ended too, because it can no longer answer
        while True:
            if one_line and (end := self._read.find(b"\n", start)) >= 0:
                return end
            start = len(self._read)
            ready = dict(poll.poll(self._wait_milliseconds(since, given_up)))
            if writing and self._in in ready:
                outgoing = outgoing[self._send(outgoing) :]
                if not outgoing:
                    writing = False
                    poll.unregister(self._in)
                    if not one_line:
                        self._pipes()[0].close()
            for pipe in (self._out, self._err):
                if pipe in ready and not self._receive(pipe, stderr_kept):
                    poll.unregister(pipe)
                    if one_line and pipe == self._out:
                        given_up = time.monotonic() + CLOSING_SECONDS
            if self._has_ended():
                self._drain()
                return self._read.find(b"\n") if one_line else -1
            if given_up is not None and time.monotonic() >= given_up:
                raise ReleaseFailed("closed its standard output", "it can answer no more")

    def _pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        return cast(tuple[IO[bytes], IO[bytes], IO[bytes]], pipes)  # they were asked for when it was started

    def _wait_milliseconds(self, since: float, given_up: float | None) -> float | None:
        left = seconds_left()
        if left == 0.0:
            raise deadline_passed(f"The program {shorten(' '.join(self.command))}", since)
        limits = [left, None if self._exit is not None else POLL_SECONDS]
        limits.append(None if given_up is None else given_up - time.monotonic())
        known = [limit for limit in limits if limit is not None]
        return max(1.0, 1e3 * min(known)) if known else None

    def _send(self, outgoing: memoryview) -> int:
        """Return how many bytes could be written.

        All of them if the pipe has no reader, because a program need not read its input.
        """
        try:
            return os.write(self._in, outgoing[:CHUNK]) if outgoing else 0
        except BlockingIOError:
            return 0
        except OSError:
            return len(outgoing)

    def _receive(self, pipe: int, stderr_kept: int = STDERR_KEPT) -> bool:
        """Read the available bytes; return False at the end of the pipe."""
        into = self._read if pipe == self._out else self._stderr
        while True:
            try:
                chunk = os.read(pipe, CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            into += chunk
            if pipe == self._err:
                del self._stderr[:-stderr_kept]
            elif len(self._read) > LARGEST_ANSWER:
                raise ReleaseFailed("endless answer", f"more than {LARGEST_ANSWER >> 20} MiB on standard output")
            if len(chunk) < CHUNK:
                return True

    def _has_ended(self) -> bool:
        """Return whether the process has ended, without reaping it if possible, so that its number stays its own."""
        if self._process.returncode is not None:
            return True
        if self._exit is None:
            return self._process.poll() is not None
        return _readable(self._exit)

    def _ended(self) -> Ended:
        """Kill the group, reap the process, and return how it ended."""
        self._bury()
        self._drain()
        return Ended(self._process.returncode, bytes(self._read), bytes(self._stderr))

    def _bury(self) -> None:
        """Kill the group, then reap the process: the number of a reaped process may be given to another one."""
        if self._buried:
            return
        self._buried = True
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _guard(f"-{self._process.pid}\n")
        self._process.wait()

    def _drain(self) -> None:
        """Read what is left in the pipes."""
        for pipe in (self._out, self._err):
            with contextlib.suppress(OSError):
                while _readable(pipe) and self._receive(pipe):
                    pass


def _readable(descriptor: int) -> bool:
    poll = select.poll()  # select.select refuses large numbers
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


_LIVE: set[Child] = set()


class _Guarding:
    """The guard process of this process; a fork of it starts a guard of its own."""

    def __init__(self) -> None:
        self.pid = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()


_guarding = _Guarding()


def _guard(message: str) -> None:
    """Send a line to the guard: a group that has started (+) or ended (-)."""
    with _guarding.lock:
        if _guarding.pid != os.getpid():
            _guarding.pid = os.getpid()
            _guarding.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
        assert _guarding.process is not None
        assert _guarding.process.stdin is not None
        with contextlib.suppress(OSError):  # the guard was killed: then there is none
            _guarding.process.stdin.write(message.encode())


@atexit.register
def _at_exit() -> None:
    for child in list(_LIVE):
        child.kill()
    if _guarding.process is not None and _guarding.pid == os.getpid():
        assert _guarding.process.stdin is not None
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            _guarding.process.stdin.close()
            _guarding.process.wait(1.0)
