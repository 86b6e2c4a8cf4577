"""Finding ``Audit`` objects: in folders, in files, or by name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit.engine.audit import Audit
from dpaudit.errors import InvalidArgument
from dpaudit.validation import did_you_mean, shorten


@dataclass(frozen=True, slots=True)
class Collected:
    """An audit and where it was defined."""

    audit: Audit
    path: str
    line: int = 1


def collect(targets: Sequence[str], *, root: Path) -> list[Collected]:
    """All audits that the targets name, in a stable order; two of one name are an error.

    A target is a folder, ``file.py``, ``file.py:attribute``, ``package.module`` or ``package.module:attribute``.
    """
    found: list[Collected] = []
    for target in targets:
        found.extend(_collect_one(target, root))
    seen: dict[str, Collected] = {}
    for item in found:
        other = seen.get(item.audit.name)
        if other is not None and other.audit is not item.audit:
            raise InvalidArgument(
                f"Two audits are called {item.audit.name!r}: in {other.path} and in {item.path}. Names must differ, "
                "because baselines and reports go by them."
            )
        seen[item.audit.name] = item
    return list(seen.values())


def _collect_one(target: str, root: Path) -> Iterator[Collected]:
    place, colon, attribute = target.rpartition(":")
    if not colon or (len(place) == 1 and sys.platform == "win32"):
        place, attribute = target, ""
    path = root / place
    if path.is_dir():
        if attribute:
            raise InvalidArgument(f"{target!r}: {place} is a folder; name a file to pick {attribute!r} from.")
        for file in sorted(path.rglob("*.py")):
            if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts):
                yield from _in_module(load_file(file, root), file, root)
    elif path.is_file():
        if path.suffix != ".py":
            raise InvalidArgument(f"{target!r} is not a Python file.")
        yield from _in_module(load_file(path, root), path, root, attribute)
    elif place.endswith(".py") or "/" in place or "\\" in place:
        raise InvalidArgument(f"{place!r} does not exist.{_near(path)}")
    else:
        module = _load_module(place, root)
        yield from _in_module(module, Path(inspect.getsourcefile(module) or place), root, attribute)


def load_target(target: str, root: Path) -> Any:
    """The object that ``file.py:name`` or ``package.module:name`` names."""
    place, colon, attribute = target.rpartition(":")
    if not colon or not place or not attribute:
        raise InvalidArgument(f"target={target!r} must look like file.py:name or package.module:name.")
    path = root / place
    if path.is_file():
        module = load_file(path, root)
    elif place.endswith(".py"):
        raise InvalidArgument(f"{place!r} does not exist.{_near(path)}")
    else:
        module = _load_module(place, root)
    if not hasattr(module, attribute):
        known = [name for name in vars(module) if not name.startswith("_")]
        raise InvalidArgument(f"{place} has no {attribute!r}.{did_you_mean(attribute, known)}")
    return getattr(module, attribute)


def _near(path: Path) -> str:
    folder = path.parent
    return did_you_mean(path.name, [item.name for item in folder.iterdir()]) if folder.is_dir() else ""


def _load_module(name: str, root: Path) -> ModuleType:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InvalidArgument(f"{name!r} is neither a path nor an importable module ({error}).") from error


def load_file(path: Path, root: Path) -> ModuleType:
    """Import a file by its path; its repository is importable from inside it."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        parts = path.resolve().relative_to(root.resolve()).with_suffix("").parts
    except ValueError:
        parts = ()
    name = ".".join(parts)
    if parts and all(part.isidentifier() for part in parts) and _is_package(path.parent, root):
        return importlib.import_module(name)
    unique = f"_dpaudit_{hashlib.blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()}_{path.stem}"
    if unique in sys.modules:
        return sys.modules[unique]
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise InvalidArgument(f"{str(path)!r} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[unique]
        raise
    return module


def _is_package(folder: Path, root: Path) -> bool:
    return folder.resolve() != root.resolve() and (folder / "__init__.py").is_file()


def _in_module(module: ModuleType, path: Path, root: Path, attribute: str = "") -> Iterator[Collected]:
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    if attribute:
        if not hasattr(module, attribute):
            known = [name for name, value in vars(module).items() if any(_audits(value))]
            raise InvalidArgument(f"{shown} has no {attribute!r}.{did_you_mean(attribute, known)}")
        found = list(_audits(getattr(module, attribute)))
        if not found:
            raise InvalidArgument(f"{attribute}={shorten(getattr(module, attribute))} of {shown} is not an Audit.")
    else:
        found = [audit for name, value in vars(module).items() if not name.startswith("_") for audit in _audits(value)]
    source = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    for audit in found:
        line = next((number for number, text in enumerate(source, 1) if audit.name in text), 1)
        yield Collected(audit, shown, line)


def _audits(value: Any) -> Iterator[Audit]:
    if isinstance(value, Audit):
        yield value
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, Audit))
