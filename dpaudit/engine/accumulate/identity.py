"""The identity of evidence: the mechanism with its code, the packages, the claim, and the options that shape the evidence."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import shutil
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit._util.values import fingerprint, is_frame, is_series
from dpaudit.engine.encoding.suspects import as_suspects
from dpaudit.engine.request import Request
from dpaudit.neighbours import Neighbours
from dpaudit.result.model import claim_to_dict, versions

DEEPEST = 8
SHAPING = (
    "alpha",
    "channel",
    "until",
    "timeout",
    "timeout_is_output",
    "boosted",
)  # options that the evidence depends on


def identity(request: Request) -> dict[str, Any]:
    """Return what the evidence is about, by parts; where two differ in a part, they are evidence about different things.

    The code of a mechanism is that of its module, of every module of the project that this one uses by name, and the versions of
    the packages that they use; for a program, its files. What a service does, what a program loads while it runs, and which
    packages another interpreter has cannot be seen from here.
    """
    options = request.options
    modules = dict(_modules_of(request.mechanism))
    parts: dict[str, Any] = {"mechanism": _digest(repr(describe(request.mechanism)).encode())}
    parts |= {f"module {name}": content for name, content in modules.items() if content}
    used = {name.partition(".")[0] for name, content in modules.items() if not content}
    parts |= {f"package {name}": version for name in sorted(used) if (version := _version(name)) is not None}
    parts |= {f"package {name}": version for name, version in versions().items()}
    parts["engine of dpaudit"] = _digest(b"".join(path.read_bytes() for path in sorted(_ENGINE.rglob("*.py"))))
    parts["claim"] = claim_to_dict(request.claim)
    parts["neighbours"] = str(request.neighbours.relation)
    parts |= {f"option {name}": str(getattr(options, name)) for name in SHAPING}
    parts["option suspect"] = [_digest(repr(describe(each.function)).encode()) for each in as_suspects(options.suspect)]
    return parts


_ENGINE = Path(__file__).resolve().parents[1]


def _modules_of(mechanism: Any) -> Iterator[tuple[str, str]]:
    """Yield the modules and files that a mechanism uses: a digest of those of the project, and nothing of installed ones."""
    for word in _words(mechanism):
        path = Path(shutil.which(word) or word)
        if path.is_file():
            yield f"file {word}", _digest(path.read_bytes())
    waiting, seen = _named_in(describe(mechanism)), set[str]()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in seen or module is None or name.partition(".")[0] == "dpaudit":
            continue
        seen.add(name)
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py") or _is_installed(Path(file).resolve()):
            yield name, ""
            continue
        yield name, _digest(Path(file).read_bytes())
        for value in list(vars(module).values()):
            owner = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            if isinstance(owner, str):
                waiting.add(owner)


def _words(mechanism: Any) -> list[str]:
    """Return what may name files of a program, or of a function in another interpreter."""
    inner = getattr(mechanism, "function", None)
    if isinstance(inner, str):  # "file.py:function"
        return [inner.rpartition(":")[0], *getattr(mechanism, "python", ())]
    return list(getattr(inner, "command", getattr(mechanism, "command", ())))


def _named_in(description: Any) -> set[str]:
    """Return every text in a description that is the name of a module that is loaded, or begins with one."""
    if isinstance(description, str):
        parts = description.strip("'\"").partition(":")[0].split(".")
        return {name for end in range(len(parts), 0, -1) if (name := ".".join(parts[:end])) in sys.modules}
    if isinstance(description, list | tuple):
        return set().union(*map(_named_in, description)) if description else set()
    return set()


def _is_installed(path: Path) -> bool:
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    return path.is_relative_to(standard) or any(part in ("site-packages", "dist-packages") for part in path.parts)


@functools.cache
def _owners() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _version(package: str) -> str | None:
    """Return the version of the distribution that an installed top-level package comes from; None for the standard library."""
    if package in sys.stdlib_module_names or package not in _owners():
        return None
    return ", ".join(sorted(f"{name} {metadata.version(name)}" for name in set(_owners()[package])))


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()


_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def describe(value: Any, depth: int = 0) -> Any:
    """A mechanism, neighbours or option as plain data that is the same in another process, and differs where they do.

    >>> def scaled(scale):
    ...     return lambda data: scale * len(data)
    >>> describe(scaled(1.0)) == describe(scaled(1.0)), describe(scaled(1.0)) == describe(scaled(2.0))
    (True, False)
    """
    if value is None or isinstance(value, bool | int | float | str | bytes | complex):
        return repr(value)
    if depth > DEEPEST:
        return f"deeper {type(value).__qualname__}"
    inner = functools.partial(describe, depth=depth + 1)
    if isinstance(value, types.FunctionType):
        cells = [inner(cell.cell_contents) for cell in value.__closure__ or () if _filled(cell)]
        defaults = [inner(value.__defaults__), inner(value.__kwdefaults__)]
        return ["function", value.__module__, value.__qualname__, _code(value.__code__), defaults, cells]
    if isinstance(value, types.MethodType):
        return ["method", inner(value.__func__), inner(value.__self__)]
    if isinstance(value, functools.partial):
        return ["partial", inner(value.func), inner(value.args), inner(value.keywords)]
    if isinstance(value, type | types.BuiltinFunctionType | types.ModuleType):
        return [type(value).__name__, getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__)]
    if isinstance(value, Mapping):
        return sorted(([inner(key), inner(entry)] for key, entry in value.items()), key=repr)
    if isinstance(value, list | tuple):
        return [type(value).__name__, [inner(entry) for entry in value]]
    if isinstance(value, np.ndarray) or is_frame(value) or is_series(value):
        return _digest(repr(fingerprint(value)).encode())
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Neighbours):
        return [name, value.description, repr(value.relation), _ADDRESS.sub("", repr(value.strategy))]
    if dataclasses.is_dataclass(value):
        return [name, [[item.name, inner(getattr(value, item.name, None))] for item in dataclasses.fields(value)]]
    return [name, _ADDRESS.sub("", repr(value)), inner(dict(getattr(value, "__dict__", {})))]


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _code(code: types.CodeType) -> str:
    constants = [_code(item) if isinstance(item, types.CodeType) else repr(item) for item in code.co_consts]
    return _digest(repr((code.co_code, code.co_names, code.co_varnames, constants)).encode())
