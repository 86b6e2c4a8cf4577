"""Programs in any language as mechanisms: one process for every release, or one that answers requests line by line.

How a program fails is part of what it releases, so it is an output, as an exception of a function is: its exit code or signal,
with the last line of standard error; an answer that cannot be read; an answer without end. A program that cannot be started,
or data that cannot be written down, are errors of the audit instead, because they say nothing about the data.

No request is sent twice. A process that failed is replaced by a new one for the next release, and the failure stays the
output of the release in which it came. In a call for several releases it is unknown which of them failed: the audit
then starts again one release at a time, and reports that.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpaudit._util.validation import check_choice, check_count, check_generator, shorten
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import clock_seed
from dpaudit.mechanism.children import LARGEST_ANSWER, STDERR_KEPT, Child
from dpaudit.mechanism.formats import (
    DATA_FORMS,
    OUTPUT_FORMS,
    DataForm,
    OutputForm,
    check_form,
    data_text,
    json_text,
    read_json,
    read_output,
    unreadable,
)
from dpaudit.mechanism.functions import PerRelease
from dpaudit.mechanism.outputs import Outputs, ReleaseFailed, checked_outputs
from dpaudit.mechanism.waiting import at_end_of_audit

SEEDS = 2**53
"""Seeds are below this number, so that languages whose numbers are floats read them exactly."""
MOST_IDLE = 8
"""Streams that are kept open at once in one process; the one that was used longest ago is closed first."""
FILE, SEED = "{file}", "{seed}"


def program(
    command: str | Sequence[str],
    mode: Literal["once", "stream"] = "once",
    *,
    data_as: DataForm = "json",
    output_as: OutputForm = "json",
    folder: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    stderr: Literal["ignored", "output"] = "ignored",
) -> PerRelease | Stream:
    """Return a program in any language as a mechanism.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments. A text is split as a shell would split it, but no shell is started. With mode
        ``"once"``, a word ``{seed}`` (or ``--seed={seed}``) becomes a number that is new in every release, and a word ``{file}``
        (or ``--input={file}``) the path of a file with the data, which are then not on standard input.
    mode : {"once", "stream"}
        ``"once"``: every release is a process of its own, which reads the data and writes the output. ``"stream"``: the process
        stays, reads one line ``{"size": 3, "seed": 17, "data": [...]}`` for each request, and answers with one line
        ``{"outputs": [...]}`` of that many outputs, or ``{"error": "text"}``. Much faster.
    data_as : {"json", "csv", "lines"} or callable
        How data are written. A function gets the data set and returns the text, or what JSON can hold. In a stream the data
        are JSON in any case.
    output_as : {"json", "text", "lines", "numbers"} or callable
        How standard output is read, with mode ``"once"``. A function gets the text and returns the output.
    folder : path, optional
        The folder in which the program runs; None: the current one.
    environment : mapping, optional
        Variables that are added to the environment.
    stderr : {"ignored", "output"}
        Ignore standard error unless the program fails, or make every output ``{"output": ..., "stderr": text}``, with mode
        ``"once"``.

    Notes
    -----
    A program that takes no seed draws its own random numbers: the audit is valid, but cannot be replayed. The time at which it
    starts is a bad seed: processes that start in the same second then draw the same noise.

    Examples
    --------
    >>> import numpy as np
    >>> twice = program(["python3", "-c", "import json; print(2 * len(json.load(open(0))))"])
    >>> twice.sample([5, 6, 7], 2, np.random.default_rng(0))
    [6, 6]
    """
    check_choice(("once", "stream"), mode=mode)
    check_choice(("ignored", "output"), stderr=stderr)
    check_form(DATA_FORMS, data_as=data_as)
    check_form(OUTPUT_FORMS, output_as=output_as)
    words = checked_words(command, "command")
    where = None if folder is None else os.fspath(folder)
    variables = checked_environment(environment)
    if mode == "once":
        return PerRelease(OneProcess(words, data_as, output_as, where, variables, stderr))
    if not callable(data_as) and data_as != "json":
        raise InvalidArgument(
            f"data_as={data_as!r} is for mode='once'; in a stream data are JSON, or what a function makes."
        )
    if output_as != "json" or stderr != "ignored":
        raise InvalidArgument(
            f"output_as={shorten(output_as)}, stderr={stderr!r} are for mode='once'; a stream answers in lines of JSON."
        )
    return Stream(words, data_as, where, variables)


@dataclass(frozen=True, slots=True)
class OneProcess:
    """A program of which every call is a process of its own; see :func:`program`."""

    command: tuple[str, ...]
    data_as: DataForm = "json"
    output_as: OutputForm = "json"
    folder: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    stderr: str = "ignored"

    @property
    def __name__(self) -> str:
        return shlex.join(self.command)

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Run the program once and return its output; raise ReleaseFailed if it fails."""
        start = time.time()
        output = self.run(data, rng)
        clock_seed.observe(self, data, output, start, time.time(), shlex.join(self.command))
        if clock_seed.suspected(self, data, output):
            other = np.random.default_rng(0)  # what is drawn from rng must not depend on whether the check is made
            clock_seed.check(lambda: self.run(data, other), shlex.join(self.command))
        return output

    def run(self, data: Any, rng: np.random.Generator) -> Any:
        """Run the program once, as ``__call__`` does, without the check of its seed."""
        text = data_text(data, self.data_as)
        seed = str(rng.integers(SEEDS))
        with _file_of(text) if _mentions(self.command, FILE) else contextlib.nullcontext("") as file:
            words = [_filled(_filled(word, SEED, seed), FILE, file) for word in self.command]
            kept = LARGEST_ANSWER if self.stderr == "output" else STDERR_KEPT
            child = Child(words, self.folder, dict(self.environment))
            ended = child.run(b"" if file else text.encode(), stderr_kept=kept)
        if ended.code:
            raise ended.failure()
        output = read_output(ended.stdout, self.output_as)
        if self.stderr == "output":
            return {"output": output, "stderr": ended.stderr.decode("utf-8", "backslashreplace")}
        return output


@dataclass(frozen=True, slots=True)
class Stream:
    """A program that stays and answers requests line by line; see :func:`program`.

    Every process (and thread) that draws has one of its own, which is started when it is needed.
    """

    command: tuple[str, ...]
    data_as: DataForm = "json"
    folder: str | None = None
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def __name__(self) -> str:
        return shlex.join(self.command)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Ask for ``size`` outputs; raise ReleaseFailed if the program fails."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        answer = self.ask(self.data_as(data) if callable(self.data_as) else data, size, int(rng.integers(SEEDS)))
        return checked_outputs(answer, size)

    def ask(self, data: Any, size: int, seed: int) -> list[Any]:
        """Send one request and return the outputs of the answer."""
        request = f'{{"size": {size}, "seed": {seed}, "data": {json_text(data)}}}\n'
        child = _open(self)
        if left := child.unread:
            child.kill()
            raise unreadable(left.decode("utf-8", "backslashreplace"), "asked for: an answer is one line")
        line = child.ask(request.encode()).decode("utf-8", "backslashreplace")
        try:
            return _outputs(line, seed)
        except ReleaseFailed as failure:
            if failure.kind == "unreadable answer":  # from here on an answer may belong to an earlier request
                child.kill()
            raise


def _outputs(line: str, seed: int) -> list[Any]:
    """Return the outputs in a line; raise ReleaseFailed for an error, MechanismError for one that is not about the data."""
    answer = read_json(line)
    match answer:
        case {"seed": int() | float() as repeated} if repeated != seed:
            raise unreadable(line, f"the answer to the request with seed {seed}")
        case {"outputs": list() as outputs}:
            return outputs
        case {"error": {"type": str() as kind, "message": str() as message}}:
            raise ReleaseFailed(kind, message)
        case {"error": str() as message}:
            raise ReleaseFailed("error", message)
        case {"fatal": str() as message}:
            raise MechanismError(message)
    raise unreadable(line, 'of the form {"outputs": [...]} or {"error": "text"}')


_streams: OrderedDict[tuple[int, int, Stream], Child] = OrderedDict()  # by process, thread and program
_opening = threading.Lock()


def _open(stream: Stream) -> Child:
    """Return the running process of a stream, in this thread of this process; start it where there is none."""
    key = (os.getpid(), threading.get_ident(), stream)
    with _opening:
        child = _streams.pop(key, None)
        if child is not None and not child.running:
            child.kill()
            child = None
        if child is None:
            child = Child(stream.command, stream.folder, dict(stream.environment))
        _streams[key] = child
        idle = [other for other in _streams if other[1:2] == key[1:2] and other != key]
        for other in idle[: max(0, len(idle) + 1 - MOST_IDLE)]:
            _streams.pop(other).kill()
    return child


@at_end_of_audit
def close_streams() -> None:
    """End the streams that this thread has started."""
    here = (os.getpid(), threading.get_ident())
    with _opening:
        for key in [key for key in _streams if key[:2] == here]:
            _streams.pop(key).kill()


def checked_words(command: Any, name: str) -> tuple[str, ...]:
    """Return a command as its words, after checking that it names a program."""
    try:
        words = tuple(shlex.split(command)) if isinstance(command, str) else tuple(map(os.fspath, command))
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"{name}={command!r} must be text, or a list of words ({error}).") from None
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0]:
        raise InvalidArgument(f"{name}={command!r} must name a program, such as './count --epsilon 1'.")
    return words


def checked_environment(environment: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return variables as sorted pairs, after checking that they are text."""
    variables = tuple((environment or {}).items())
    if not all(isinstance(text, str) for variable in variables for text in variable):
        raise InvalidArgument(f"environment={environment!r} must have text as names and as values.")
    return tuple(sorted(variables))


def _mentions(words: Sequence[str], mark: str) -> bool:
    return any(_filled(word, mark, "") != word for word in words)


def _filled(word: str, mark: str, value: str) -> str:
    """Replace a mark that is a word, or the value of an option; a longer word may be source code that contains the
    mark.

    >>> [_filled(word, "{seed}", "7") for word in ("{seed}", "--seed={seed}", "print({seed})")]
    ['7', '--seed=7', 'print({seed})']
    """
    return word.removesuffix(mark) + value if word == mark or word.endswith(f"={mark}") else word


@contextlib.contextmanager
def _file_of(text: str) -> Iterator[str]:
    descriptor, name = tempfile.mkstemp(prefix="dpaudit-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        yield name
    finally:
        Path(name).unlink(missing_ok=True)
