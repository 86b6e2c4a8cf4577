"""Write to the terminal: everything that a command prints goes through a Console, which escapes it.

A console never raises and never stops a run: if its reader is gone (a closed pipe, a closed stream) it drops what is
written. It also changes lines that a CI service would take for a command.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

from dpaudit._util.terminal.escape import inert, one_line, visible
from dpaudit.errors import InvalidArgument


class Console:
    r"""A stream for text that may come from user code. ``print(..., file=console)`` works.

    >>> import io
    >>> stream = io.StringIO()
    >>> Console(stream).line("count\n::error::forged")
    >>> stream.getvalue()
    'count\\n::error::forged\n'
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self.stream = stream
        self._begun = False  # the current line has text in it

    def line(self, text: str, *, highlight: str = "", colour: str = "") -> None:
        """Write one line. The first ``highlight`` in it is shown in a colour, a number of the terminal."""
        self._put(_painted(inert(one_line(text)), highlight, colour) + "\n")

    def block(self, text: str, *, highlight: str = "", colour: str = "") -> None:
        """Write several lines, whose line breaks are those of ``text``."""
        self._put(_painted(inert(visible(text)), highlight, colour) + "\n")

    def json(self, text: str) -> None:
        """Write JSON in ASCII, in which escapes are those of JSON.

        A program reads it, so a full disk is an error. If the reader is gone, it is dropped, as text is.
        """
        assert text.isascii()
        try:
            if self.stream is not None:
                self.stream.write(text.replace("##", "\\u0023#"))
                self.stream.flush()
        except (BrokenPipeError, ValueError):
            pass
        except OSError as error:
            raise InvalidArgument(f"The JSON cannot be written: {error.strerror or error}.") from None

    def write(self, text: str) -> int:
        """Write a piece of text, as files do."""
        shown = inert(visible(text))
        if self._begun:  # text in the middle of a line is never a command
            first, newline, rest = visible(text).partition("\n")
            shown = first + newline + inert(rest)
        tail = text.rpartition("\n")[2]
        self._begun = bool(tail.strip()) or (self._begun and "\n" not in text)
        self._put(shown)
        return len(text)

    def flush(self) -> None:
        """Flush the stream; do nothing if the reader is gone."""
        with _dropping(self.stream):
            if self.stream is not None:
                self.stream.flush()

    def isatty(self) -> bool:
        """Return True if the stream is a terminal."""
        try:
            return self.stream is not None and self.stream.isatty()
        except ValueError:  # closed
            return False

    def _put(self, text: str) -> None:
        with _dropping(self.stream):
            if self.stream is not None:
                self.stream.write(_encodable(text, self.stream))
                self.stream.flush()


class Unbroken:
    """A stream for what code under audit prints: unchanged, but it neither fails nor closes.

    A mechanism that prints into a closed pipe would otherwise raise, which is an output like any other.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, or drop it."""
        with _dropping(self._stream):
            if self._stream is not None:
                self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for text in lines:
            self.write(text)

    def flush(self) -> None:
        """Flush the stream, if it can be flushed."""
        with _dropping(self._stream):
            if self._stream is not None:
                self._stream.flush()

    def close(self) -> None:
        """Stay open: the run prints here too."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _dropping(stream: IO[str] | None) -> Iterator[None]:
    """Ignore that the reader is gone (OSError), or that the stream was closed (ValueError)."""
    try:
        yield
    except BrokenPipeError:
        silence(stream)
    except (OSError, ValueError):
        pass


def silence(stream: IO[str] | None) -> None:
    """Send what is left in the buffer of a stream to the null device; otherwise it fails again when the stream closes."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]
        finally:
            os.close(null)


def _painted(text: str, highlight: str, colour: str) -> str:
    if not (highlight and colour):
        return text
    return text.replace(highlight, f"\x1b[{colour}m{highlight}\x1b[0m", 1)


def _encodable(text: str, stream: IO[str]) -> str:
    """Return the text without characters that the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None)
    if not isinstance(encoding, str) or text.isascii():
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def open_streams() -> tuple[Console, Console]:
    """Return consoles for standard output and standard error of a process of our own.

    They write to duplicates of the file descriptors, so that code under audit cannot close them. Descriptors that were closed
    when the process started are opened on the null device: a file that is opened later would get their numbers, and what
    libraries print would end up in it. Without a terminal, text is plain ASCII: logs are read with any encoding.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - open as long as the process
    made = []
    for stream in (sys.stdout, sys.stderr):
        encoding = {} if stream.isatty() else {"encoding": "ascii"}
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace", **encoding)
        own = open(os.dup(stream.fileno()), "w", errors="backslashreplace", encoding=stream.encoding)  # noqa: SIM115
        made.append(Console(own))
    return made[0], made[1]
