"""Progress lines on stderr: samples, evidence against the threshold, time left. Silent where nobody watches.

An audit that runs in a worker process has no line of its own: it sends what there is to show through a pipe, and the parent
shows one line per running audit.
"""

from __future__ import annotations

import contextlib
import functools
import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Protocol, Self

SEND_EVERY = 0.2  # seconds
LONGEST_NAME = 500


class _Bar(Protocol):
    def update(self, n: float) -> object: ...

    def set_postfix_str(self, s: str, refresh: bool) -> None: ...

    def close(self) -> None: ...


def watched() -> bool:
    """Whether somebody sits before stderr."""
    return sys.stderr.isatty() and not os.environ.get("CI")


class Progress:
    """A tqdm bar that appears only on a terminal (``wanted`` forces it on or off)."""

    def __init__(
        self, name: str, samples: int, log_threshold: float, *, wanted: bool | None, deadline: float | None = None
    ) -> None:
        self._name = name
        self._samples = samples
        self._deadline = deadline
        self._threshold = log_threshold
        self._bar: _Bar | None = None
        self._wanted = wanted

    def __enter__(self) -> Self:
        if _relay is not None and self._wanted is not False:
            self._bar = _Sender(_relay, self._name, self._samples, self._deadline)
        elif watched() if self._wanted is None else self._wanted:
            self._bar = _line(self._name, self._samples, self._deadline)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, drawn: int) -> None:
        """Count outputs drawn."""
        if self._bar is not None:
            self._bar.update(drawn)

    def show(self, log_wealth: float) -> None:
        """Show the evidence."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"evidence {log_wealth:.1f} of {self._threshold:.1f}", refresh=False)


@functools.cache
def _kind() -> Any:
    """The bar; where time is a budget too, what is left of it bounds what the samples would still take."""
    from tqdm import tqdm

    class Line(tqdm):  # type: ignore[misc]  # it has no types
        deadline: float | None = None

        @property
        def format_dict(self) -> Any:
            values = super().format_dict
            rate = values["rate"] or (values["n"] / values["elapsed"] if values["elapsed"] else 0.0)
            left = (values["total"] - values["n"]) / rate if rate else math.inf
            if self.deadline is not None:
                left = min(left, max(self.deadline - time.monotonic(), 0.0))
            return {**values, "left": self.format_interval(left) if math.isfinite(left) else "?"}

    return Line


def _line(name: str, samples: int, deadline: float | None) -> Any:
    line = _kind()(
        total=samples,
        desc=name if len(name) <= 60 else f"{name[:57]}...",
        unit="",
        unit_scale=True,
        file=sys.stderr,
        leave=False,
        bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{left}, {rate_fmt}{postfix}]",
    )
    line.deadline = deadline
    return line


_relay: Connection | None = None  # in a worker: where its progress goes


def relay_to(pipe: Connection | None) -> None:
    """In a worker process: send progress there from now on."""
    global _relay
    _relay = pipe


def relayed() -> bool:
    """Whether progress is sent away."""
    return _relay is not None


class _Sender:
    """A bar whose picture is elsewhere. Messages are dropped, never waited for: nobody's audit depends on them."""

    def __init__(self, pipe: Connection, name: str, samples: int, deadline: float | None) -> None:
        self._pipe = pipe
        self._deadline = deadline
        self._name = name[:LONGEST_NAME]
        self._samples = samples
        self._drawn = 0.0
        self._evidence = ""
        self._next = 0.0
        self._send()

    def update(self, n: float) -> None:
        self._drawn += n
        if time.monotonic() >= self._next:
            self._send()

    def set_postfix_str(self, s: str, refresh: bool) -> None:
        del refresh  # there is nothing to draw here
        self._evidence = s

    def close(self) -> None:
        """The parent takes the line away when it has the result."""

    def _send(self) -> None:
        now = time.monotonic()
        self._next = now + SEND_EVERY
        left = None if self._deadline is None else self._deadline - now  # clocks of processes need not agree
        # Smaller than what a pipe takes in one piece, so workers need no lock, which one of them could die with.
        with contextlib.suppress(OSError):
            self._pipe.send((self._name, self._samples, self._drawn, self._evidence, left))


class Board:
    """In the parent: one line per audit that runs in a worker process, as long as somebody watches."""

    def __init__(self, *, wanted: bool | None = None) -> None:
        # Writing small pieces at once is what pipes of Unix do.
        self._shown = os.name == "posix" and (watched() if wanted is None else wanted)
        self._lines: dict[str, Any] = {}
        self._ended: set[str] = set()
        self._lock = threading.RLock()
        self.pipe: Connection | None = None  # for the workers' ``relay_to``

    def __enter__(self) -> Self:
        if self._shown:
            reader, self.pipe = multiprocessing.Pipe(duplex=False)
            os.set_blocking(self.pipe.fileno(), False)
            threading.Thread(target=self._read, args=(reader,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            for name in list(self._lines):
                self.ended(name)
            self._shown = False
        if self.pipe is not None:
            self.pipe.close()  # the reader ends when the workers' ends are closed too

    def ended(self, name: str) -> None:
        """Take a line away; what its audit still had to say comes too late."""
        name = name[:LONGEST_NAME]
        with self._lock:
            self._ended.add(name)
            line = self._lines.pop(name, None)
            if line is not None:
                line.close()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the terminal to somebody else, who prints whole lines."""
        with self._lock:
            for line in self._lines.values():
                line.clear()
            try:
                yield
            finally:
                for line in self._lines.values():
                    line.refresh()

    def _read(self, reader: Connection) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                name, samples, drawn, evidence, left = reader.recv()
                deadline = None if left is None else time.monotonic() + left
                with self._lock:
                    if self._shown and name not in self._ended:
                        if name not in self._lines:
                            self._lines[name] = _line(name, samples, deadline)
                        line = self._lines[name]
                        line.deadline = deadline
                        line.set_postfix_str(evidence, refresh=False)
                        line.update(drawn - line.n)
        reader.close()
