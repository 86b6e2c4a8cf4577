"""Progress on stderr: samples, evidence and time left, then the search for a small example.

On a terminal or in a notebook it is a bar. Elsewhere it is silent, except in commands (:func:`logged`): they write a line every
ten seconds, so that a log of continuous integration shows that they are alive.

An audit that runs in a worker process has no line of its own: it sends messages through a pipe, and the parent shows one line
per running audit.
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
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from dpaudit._util.terminal.console import Console
from dpaudit.engine.events import (
    Confirming,
    Event,
    Finished,
    OutputsDrawn,
    RoundSettled,
    Shrinking,
    Started,
    ViolationFound,
)

SEND_EVERY = 0.2  # seconds between two messages of a process to the one that shows its progress
LONGEST_NAME = 500
LONGEST_SHOWN = 60  # characters of a name beside a bar
LONGEST_BEFORE_WORDS = 30  # characters of a name beside words, so that both fit into 80 columns
LOG_EVERY = 10.0  # seconds between two lines without a terminal


class _Bar(Protocol):
    def update(self, n: float) -> object: ...

    def set_postfix_str(self, s: str, refresh: bool) -> None: ...

    def close(self) -> None: ...


def watched() -> bool:
    """Return whether stderr is a terminal or a notebook, outside of continuous integration."""
    if os.environ.get("CI"):
        return False
    try:
        return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    except ValueError:  # closed, by a mechanism
        return False


_logging = False  # inside of ``logged``


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Inside, audits write a line every ten seconds where there is neither a terminal nor a notebook."""
    global _logging
    before, _logging = _logging, True
    try:
        yield
    finally:
        _logging = before


class _LogLine:
    """A bar without a terminal: a line of text, at most every ten seconds."""

    def __init__(self, name: str, samples: int = 0, deadline: float | None = None) -> None:
        self._name = _shortened(name, LONGEST_SHOWN)
        self._samples = samples
        self._words = ""
        self._began = self._last = time.monotonic()
        self.n = 0.0
        self.deadline = deadline

    def update(self, n: float) -> None:
        self.n += n
        if not self._due():
            return
        evidence = f", {self._words}" if self._words else ""
        seconds = math.inf if self.deadline is None else max(self.deadline - self._last, 0.0)
        total = in_time(self.n, self._samples, self.n / max(self._last - self._began, 1e-9), seconds)
        about = "" if total == self._samples else "about "
        self._write(f"{self._name}: {self.n:,.0f} of {about}{total:,.0f} samples{evidence}")

    def set_postfix_str(self, s: str, refresh: bool) -> None:
        del refresh
        self._words = s

    def set_description_str(self, text: str, refresh: bool) -> None:
        del refresh
        if self._due():
            self._write(text)

    def _write(self, text: str) -> None:
        Console(sys.stderr).line(f"dpaudit: {text}, {self._last - self._began:.0f} s")

    def _due(self) -> bool:
        now = time.monotonic()
        if now - self._last < LOG_EVERY:
            return False
        self._last = now
        return True

    def close(self) -> None:
        """Nothing is left to be removed."""

    clear = refresh = close


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _tqdm() -> Any:
    """Return tqdm's bar for this place: a widget in a notebook that has ipywidgets, otherwise characters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no widgets
        from tqdm.auto import tqdm
    return tqdm


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
        if (pipe := _pipe(self._wanted)) is not None:
            self._bar = _Sender(pipe, self._name, self._samples, self._deadline)
        elif _here(self._wanted):
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


class Seeking:
    """A line after a violation, while a small example is searched for; shown wherever :class:`Progress` is.

    Unless entered, it does nothing.
    """

    def __init__(self, name: str, *, wanted: bool | None) -> None:
        self._name = name
        self._wanted = wanted
        self._pipe: Connection | None = None
        self._shown = False
        self._line: Any = None
        self._doing = ""
        self._began = self._next = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._pipe = _pipe(self._wanted)
        self._shown = self._pipe is not None or _here(self._wanted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shown = False
        if self._line is not None:
            self._line.close()

    def shrinking(self, pairs: int) -> None:
        """Show how many smaller pairs were tried."""
        self._doing = f"shrinking: {pairs} pair{'s' * (pairs != 1)} tried"
        self.refresh()

    def confirming(self) -> None:
        """Show that the pair is confirmed on fresh outputs."""
        self._doing = "confirming"
        self._next = 0.0
        self.refresh()

    def refresh(self, drawn: int = 0) -> None:
        """Show the seconds so far; called after every block that is drawn."""
        del drawn
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + SEND_EVERY
        message = _Doing(self._name[:LONGEST_NAME], f"violation found, {self._doing}, {now - self._began:.0f} s")
        if self._pipe is not None:
            _send(self._pipe, message)
        elif self._line is None:
            self._line = message.line()
        else:
            message.show(self._line)


class ProgressHandler:
    """Shows the events of one audit: a bar while it samples, then a line while a small example is searched for."""

    def __init__(self, *, wanted: bool | None) -> None:
        self._wanted = wanted
        self._name = ""
        self._bar: Progress | None = None
        self._seeking: Seeking | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Started():
                self._close()
                self._name = event.name
                self._bar = Progress(
                    event.name, event.samples, event.log_threshold, wanted=self._wanted, deadline=event.deadline
                ).__enter__()
            case OutputsDrawn(outputs):
                if self._bar is not None:
                    self._bar.advance(outputs)
                elif self._seeking is not None:
                    self._seeking.refresh()
            case RoundSettled():
                if self._bar is not None:
                    self._bar.show(event.log_wealth)
            case ViolationFound():
                self._close()
                self._seeking = Seeking(self._name, wanted=self._wanted).__enter__()
            case Shrinking(pairs_tried) if self._seeking is not None:
                self._seeking.shrinking(pairs_tried)
            case Confirming() if self._seeking is not None:
                self._seeking.confirming()
            case Finished():
                self._close()

    def _close(self) -> None:
        shown, self._bar, self._seeking = self._bar or self._seeking, None, None
        if shown is not None:
            shown.__exit__(None, None, None)


@functools.cache
def _kind() -> Any:
    """The bar; where time ends an audit before its samples do, it is as long as the time."""

    class ProgressLine(_tqdm()):  # type: ignore[misc]  # it has no types
        deadline: float | None = None

        @property
        def format_dict(self) -> Any:
            values = super().format_dict
            rate = values["rate"] or (values["n"] / values["elapsed"] if values["elapsed"] else 0.0)
            seconds = math.inf if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)
            total = in_time(values["n"], values["total"], rate, seconds)
            left = min((total - values["n"]) / rate if rate else math.inf, seconds)
            return {**values, "total": total, "left": self.format_interval(left) if math.isfinite(left) else "?"}

    return ProgressLine


def in_time(drawn: float, samples: float, rate: float, seconds: float) -> float:
    """Return how many of the samples will be drawn in the seconds that are left, at this rate a second.

    >>> in_time(50, 1_000_000, 10.0, 25.0)
    300.0
    """
    return min(samples, drawn + rate * seconds) if rate else samples


def _line(name: str, samples: int, deadline: float | None) -> Any:
    if not watched() and _logging:
        return _LogLine(name, samples, deadline)
    line = _kind()(
        total=samples,
        desc=_shortened(name, LONGEST_SHOWN),
        unit="",
        unit_scale=True,
        file=sys.stderr,
        leave=False,
        bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{left}, {rate_fmt}{postfix}]",
    )
    line.deadline = deadline
    return line


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."


_relay: Connection | None = None  # in a worker: where its progress goes


def _pipe(wanted: bool | None) -> Connection | None:
    return None if wanted is False else _relay


def _here(wanted: bool | None) -> bool:
    return watched() or _logging if wanted is None else wanted


def relay_to(pipe: Connection | None) -> None:
    """In a worker process: send progress there from now on."""
    global _relay
    _relay = pipe


def relayed() -> bool:
    """Return whether progress is sent to another process."""
    return _relay is not None


class _Drawn(NamedTuple):
    """A message: how far the sampling of an audit is."""

    name: str
    samples: int
    drawn: float
    evidence: str
    left: float | None  # seconds: clocks of processes need not agree

    def line(self) -> Any:
        return _line(self.name, self.samples, self._deadline())

    def show(self, line: Any) -> None:
        line.deadline = self._deadline()
        line.set_postfix_str(self.evidence, refresh=False)
        line.update(self.drawn - line.n)

    def _deadline(self) -> float | None:
        return None if self.left is None else time.monotonic() + self.left


class _Doing(NamedTuple):
    """A message: what is being done for an audit, in words."""

    name: str
    text: str

    def line(self) -> Any:
        if not watched() and _logging:
            return _LogLine(self.name)
        # The bar of a line without a total is blank; with it tqdm cuts the line where the terminal ends.
        return _tqdm()(desc=self._words(), file=sys.stderr, leave=False, bar_format="{desc}{bar}")

    def show(self, line: Any) -> None:
        line.set_description_str(self._words(), refresh=True)

    def _words(self) -> str:
        return f"{_shortened(self.name, LONGEST_BEFORE_WORDS)}: {self.text}"


def _send(pipe: Connection, message: _Drawn | _Doing) -> None:
    """Smaller than what a pipe takes in one piece, so workers need no lock, which one of them could die with."""
    with contextlib.suppress(OSError):
        pipe.send(message)


class _Sender:
    """A bar that is shown by another process. A message that does not fit into the pipe is dropped, never waited for."""

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
        left = None if self._deadline is None else self._deadline - now
        _send(self._pipe, _Drawn(self._name, self._samples, self._drawn, self._evidence, left))


class Board:
    """In the parent: one line per audit that runs in a worker process, on a terminal."""

    def __init__(self, *, wanted: bool | None = None) -> None:
        # Writing small pieces at once is what pipes of Unix do.
        self._shown = os.name == "posix" and _here(wanted)
        self._lines: dict[str, Any] = {}
        self._kinds: dict[str, type[_Drawn] | type[_Doing]] = {}  # of the messages that the lines show
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
        """Remove the line of an audit; later messages of it are ignored."""
        name = name[:LONGEST_NAME]
        with self._lock:
            self._ended.add(name)
            line = self._lines.pop(name, None)
            if line is not None:
                line.close()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Clear the lines while other code prints to the terminal."""
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
                message: _Drawn | _Doing = reader.recv()
                with self._lock:
                    if self._shown and message.name not in self._ended:
                        self._show(message)
        reader.close()

    def _show(self, message: _Drawn | _Doing) -> None:
        name = message.name
        if name not in self._lines or self._kinds[name] is not type(message):
            if name in self._lines:
                self._lines.pop(name).close()  # the next one takes its place on the terminal
            self._lines[name], self._kinds[name] = message.line(), type(message)
        message.show(self._lines[name])
