"""Python functions that run in another interpreter, with libraries of other versions than ours."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpaudit._util.validation import check_choice, check_count, check_generator
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import interpreter
from dpaudit.mechanism.outputs import Outputs, Raised, ReleaseFailed, checked_outputs
from dpaudit.mechanism.programs import SEEDS, Stream, checked_environment, checked_words

CALL_FORMS = ("data", "data-rng", "batched", "fresh")


def isolated(
    python: str | os.PathLike[str] | Sequence[str],
    function: str,
    *,
    calls: Literal["data", "data-rng", "batched", "fresh"] | None = None,
    path: Sequence[str | os.PathLike[str]] = (),
    folder: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Isolated:
    """Return a Python function in another interpreter as a mechanism.

    Nothing has to be installed there: one file without dependencies is sent along, which needs Python 3.7. Data and outputs may
    be what JSON holds, tuples, sets, bytes, dates, complex numbers, numpy arrays and pandas data frames. An exception of the
    function is an output, as always.

    Parameters
    ----------
    python : path or sequence of str
        The interpreter, the folder of a virtual environment, or words that start one, such as
        ``["docker", "run", "-i", "image", "python"]``.
    function : str
        ``"pkg.mod:function"`` or ``"file.py:function"``, as that interpreter finds it.
    calls : {"data", "data-rng", "batched", "fresh"}, optional
        ``f(data)``, ``f(data, rng)``, ``f(data, size, rng)``, or ``f()(data)``; None: by the names of its parameters. ``random``
        and ``numpy.random`` are seeded in any case.
    path : sequence of path
        Folders from which that interpreter imports as well. ``PYTHONPATH`` is ignored, because it is meant for this
        interpreter.
    folder : path, optional
        The folder in which it runs; None: the current one.
    environment : mapping, optional
        Variables that are added to the environment.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> isolated(sys.executable, "statistics:median").sample([3, 1, 7], 2, np.random.default_rng(0))
    [3, 3]
    """
    if calls is not None:
        check_choice(CALL_FORMS, calls=calls)
    if not isinstance(function, str) or not all(function.rpartition(":")[::2]):
        raise InvalidArgument(f"function={function!r} must look like 'package.module:function' or 'file.py:function'.")
    if isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"path={path!r} must be a list of folders.")
    if isinstance(python, str | os.PathLike):
        place = Path(python)
        python = [str(place / "bin" / "python" if place.is_dir() else place)]
    return Isolated(
        python=checked_words(python, "python"),
        function=function,
        calls=calls,
        path=tuple(os.fspath(place) for place in path),
        folder=None if folder is None else os.fspath(folder),
        environment=checked_environment(environment),
    )


@dataclass(frozen=True, slots=True)
class Isolated:
    """A function in another interpreter; see :func:`isolated`."""

    python: tuple[str, ...]
    function: str
    calls: str | None = None
    path: tuple[str, ...] = ()
    folder: str | None = None
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def __name__(self) -> str:
        return self.function

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Ask the other interpreter for ``size`` outputs; raise ReleaseFailed if it fails."""
        check_count(minimum=0, size=size)
        check_generator(rng=rng)
        # -E: variables such as PYTHONPATH are meant for this interpreter. -c, not a file: its folder would be imported from.
        start = (*self.python, "-E", "-c", _source(), self.function, self.calls or "", *self.path)
        stream = Stream(start, _packed, self.folder, self.environment)
        packed = stream.ask(_packed(data), size, int(rng.integers(SEEDS)))
        if len(packed) == 1 and isinstance(packed[0], dict) and packed[0].get(interpreter.KIND) == "batch":
            return checked_outputs(interpreter.unpack(packed[0]["value"]), size)
        return checked_outputs([_output(answer) for answer in packed], size)


@functools.cache
def _source() -> str:
    return inspect.getsource(interpreter)


def _packed(data: Any) -> Any:
    try:
        return interpreter.pack(data)
    except interpreter.Fatal as error:
        raise MechanismError(str(error)) from None


def _output(packed: Any) -> Any:
    output = interpreter.unpack(packed)
    if isinstance(output, interpreter.Raised):
        return Raised.from_exception(ReleaseFailed(output.kind, output.message))
    return output
