"""Runs a function in another Python interpreter, for ``dpaudit.isolated``. This file alone is sent there.

It needs Python 3.7 and nothing else; numpy and pandas are used where the data or the function bring them along. Requests come
on standard input and answers go to standard output, one line of JSON each. Values that JSON does not have are objects with a
member ``~`` that names their kind, so that tuples, sets, bytes, arrays and data frames arrive as what they are. While
the function runs, standard output is redirected to standard error and standard input is empty, so that it may print.
"""

from __future__ import annotations

import base64
import datetime
import importlib
import importlib.util
import inspect
import json
import math
import os
import random
import sys
import traceback
from collections.abc import Callable
from typing import Any

KIND = "~"
MOST_NESTED = 100  # levels of nested containers; a deeper one probably contains itself


class Fatal(Exception):
    """An error in the way a function is audited; it does not depend on the data."""


class Raised(Exception):
    """An exception of the function, passed on to the point where it becomes an output."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message


def pack(value: Any, depth: int = 0) -> Any:
    """Return a value in a form that JSON can hold; raise Fatal if it has none.

    >>> pack([1, (2, None)])
    [1, {'~': 'tuple', 'value': [2, None]}]
    """
    if depth > MOST_NESTED:
        raise Fatal("Containers that are nested so deeply cannot be sent from one interpreter to another.")
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {KIND: "float", "value": str(value)}
    if type(value) is list:
        return [pack(item, depth + 1) for item in value]
    if type(value) is dict:
        if all(type(key) is str for key in value) and KIND not in value:
            return {key: pack(item, depth + 1) for key, item in value.items()}
        return {KIND: "dict", "value": [[pack(key), pack(item, depth + 1)] for key, item in value.items()]}
    if isinstance(value, Raised):
        return {KIND: "raised", "value": [value.kind, value.message]}
    if isinstance(value, complex) and type(value) is complex:
        return {KIND: "complex", "value": [pack(value.real), pack(value.imag)]}
    if type(value) in (bytes, bytearray):
        return {KIND: "bytes", "value": base64.b64encode(bytes(value)).decode()}
    if type(value) in (tuple, set, frozenset):
        return {KIND: type(value).__name__, "value": [pack(item, depth + 1) for item in value]}
    if type(value) in (datetime.date, datetime.datetime):
        return {KIND: type(value).__name__, "value": value.isoformat()}
    return _pack_of_libraries(value, depth)


def _pack_of_libraries(value: Any, depth: int) -> Any:
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(value)
        if array.dtype.hasobject:
            return {KIND: "objects", "shape": list(array.shape), "value": pack(list(array.ravel()), depth + 1)}
        if array.dtype.names is None:
            raw = base64.b64encode(numpy.ascontiguousarray(array).tobytes()).decode()
            kind = "array" if isinstance(value, numpy.ndarray) else "scalar"
            return {KIND: kind, "dtype": array.dtype.str, "shape": list(array.shape), "value": raw}
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        columns = [pack(value.iloc[:, place], depth + 1) for place in range(value.shape[1])]
        names, index = pack(list(value.columns)), pack(list(value.index), depth + 1)
        return {KIND: "frame", "names": names, "index": index, "value": columns}
    if pandas is not None and isinstance(value, pandas.Series):
        return {
            KIND: "series",
            "dtype": str(value.dtype),
            "name": pack(value.name),
            "value": pack(value.tolist(), depth),
        }
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    raise Fatal(
        f"An object of type {name} cannot be sent from one interpreter to another. Pass and return what it contains."
    )


def unpack(packed: Any) -> Any:
    """Return the value that :func:`pack` was given.

    >>> unpack(pack({1: (float("inf"), b"x")}))
    {1: (inf, b'x')}
    """
    if isinstance(packed, list):
        return [unpack(item) for item in packed]
    if not isinstance(packed, dict):
        return packed
    if KIND not in packed:
        return {key: unpack(item) for key, item in packed.items()}
    return _UNPACKERS[packed[KIND]](packed)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Fatal(f"{name} is needed, and cannot be imported by {sys.executable}: {error}.") from error


def _array(packed: Any) -> Any:
    numpy = _library("numpy")
    raw = base64.b64decode(packed["value"])
    return numpy.frombuffer(raw, dtype=packed["dtype"]).reshape(packed["shape"]).copy()


def _objects(packed: Any) -> Any:
    numpy = _library("numpy")
    items = unpack(packed["value"])
    array = numpy.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(packed["shape"])


def _frame(packed: Any) -> Any:
    pandas = _library("pandas")
    names, index, columns = (unpack(packed[part]) for part in ("names", "index", "value"))
    made = pandas.DataFrame({place: column.tolist() for place, column in enumerate(columns)}, index=index)
    made = made.astype({place: column.dtype for place, column in enumerate(columns)})
    made.columns = names
    return made


def _series(packed: Any) -> Any:
    pandas = _library("pandas")
    return pandas.Series(unpack(packed["value"]), dtype=packed["dtype"], name=unpack(packed["name"]))


_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    "float": lambda packed: float(packed["value"]),
    "complex": lambda packed: complex(*unpack(packed["value"])),
    "bytes": lambda packed: base64.b64decode(packed["value"]),
    "dict": lambda packed: {unpack(key): unpack(item) for key, item in packed["value"]},
    "tuple": lambda packed: tuple(unpack(packed["value"])),
    "set": lambda packed: set(unpack(packed["value"])),
    "frozenset": lambda packed: frozenset(unpack(packed["value"])),
    "date": lambda packed: datetime.date.fromisoformat(packed["value"]),
    "datetime": lambda packed: datetime.datetime.fromisoformat(packed["value"]),
    "raised": lambda packed: Raised(*packed["value"]),
    "array": _array,
    "scalar": lambda packed: _array(packed)[()],
    "objects": _objects,
    "frame": _frame,
    "series": _series,
}


def load(name: str) -> Any:
    """Return the function that ``pkg.mod:function`` or ``file.py:function`` names."""
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location("_isolated_" + os.path.basename(place)[:-3], place)
        if spec is None or spec.loader is None:
            raise ImportError(f"{place} cannot be imported")
        found: Any = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(place)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def loaded(name: str, calls: str) -> tuple[Any, str]:
    """Return the function and how it is called; raise Fatal if it cannot be loaded."""
    try:
        function = load(name)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        raise Fatal(
            f"function={name!r} cannot be loaded by {sys.executable}: {type(error).__name__}: {error}. Modules are looked for in "
            "that interpreter, in folder= and in path=."
        ) from error
    return function, calls or calls_of(function)


def calls_of(function: Any) -> str:
    """Return how a function is called, by the names of its parameters."""
    try:
        names = list(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        return "data"
    if names[:2] == ["size", "rng"]:
        return "batched"
    return "data-rng" if names[:1] == ["rng"] else "data"


def described(error: BaseException) -> Raised:
    """Return an exception as its type and message."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        return Raised(name, str(error))
    except Exception:
        return Raised(name, "(a message that cannot be read)")


def outputs(function: Any, calls: str, request: dict[str, Any]) -> Any:
    """Return the outputs of one request, packed."""
    size, seed = request["size"], request["seed"]
    data = unpack(request["data"])
    random.seed(seed)
    numpy: Any = sys.modules.get("numpy") or (_library("numpy") if calls in ("data-rng", "batched") else None)
    rng = None
    if numpy is not None:
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32])
        rng = numpy.random.default_rng(seed)
    if calls == "batched":
        made = function(data, size, rng)
        whole = numpy is not None and isinstance(made, numpy.ndarray) and not made.dtype.hasobject
        packed = [{KIND: "batch", "value": pack(made)}] if whole else [pack(item) for item in made]
    else:
        arguments = (data, rng) if calls == "data-rng" else (data,)
        packed = []
        for _ in range(size):
            try:
                made = (function() if calls == "fresh" else function)(*arguments)
            except Exception as error:
                made = described(error)
            packed.append(pack(made))  # at once: the function may write its next output into the same list
    if pack(data) != request["data"]:
        raise Fatal("The mechanism changed its input. Copy the data inside the mechanism before changing them.")
    return packed


def main() -> None:
    """Answer requests until the input ends. Arguments: the name of the function, how it is called, folders to import from."""
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    name, calls, *folders = sys.argv[1:]
    sys.path[:0] = folders
    function: Any = None
    for line in requests:
        request = json.loads(line)
        try:
            if function is None:
                function, calls = loaded(name, calls)
            answer: Any = {"outputs": outputs(function, calls, request)}
        except Fatal as error:
            answer = {"fatal": str(error)}
        except Exception as error:
            raised = described(error)
            answer = {"error": {"type": raised.kind, "message": raised.message}}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
