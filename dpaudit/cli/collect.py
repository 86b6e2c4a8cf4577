"""Find ``Audit`` objects in folders, in files, or by name."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit._util.messages import described
from dpaudit._util.surroundings import import_state
from dpaudit._util.validation import did_you_mean, shorten
from dpaudit.engine.audit import Audit
from dpaudit.errors import InvalidArgument
from dpaudit.utility.definition import AccuracyAudit


@dataclass(frozen=True, slots=True)
class Collected:
    """An audit, of privacy or of accuracy, and where it was defined."""

    audit: Any  # an Audit or an AccuracyAudit
    path: str
    line: int = 1


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that cannot be imported."""

    path: str
    error: InvalidArgument


class CannotBeImported(InvalidArgument):
    """An exception in a user's file while it was imported."""


@dataclass(frozen=True, slots=True)
class BrokenFiles:
    """The files that cannot be imported, so far.

    A KeyboardInterrupt in a file ends the run if ``interrupted()``; otherwise no interrupt was sent, and the file is broken.
    """

    interrupted: Callable[[], bool]
    files: list[Broken] = field(default_factory=list)

    def add(self, path: str, error: CannotBeImported | KeyboardInterrupt) -> None:
        """Add a file, or raise again what ends the run."""
        if isinstance(error, KeyboardInterrupt):
            if self.interrupted():
                raise error
            error = CannotBeImported(f"{path} cannot be imported: KeyboardInterrupt: no interrupt was sent to the run.")
        self.files.append(Broken(path, error))


def collect(
    targets: Sequence[str], *, root: Path, here: Path | None = None, broken: BrokenFiles | None = None
) -> list[Collected]:
    """Return all audits that the targets name, in a stable order; two audits with one name are an error.

    A target is a folder, ``file.py``, ``file.py:attribute``, ``package.module`` or ``package.module:attribute``. Paths are
    relative to ``here`` or, where there is no such file, to ``root``, which is what audit files import from. A file that cannot
    be imported raises, or is added to ``broken`` if that is given.
    """
    seen: dict[str, Collected] = {}
    for target in targets:
        for item in _collect_one(target, root, here or root, broken):
            other = seen.setdefault(item.audit.name, item)
            if other.audit is not item.audit:
                raise InvalidArgument(
                    f"Two audits are called {item.audit.name!r}: at {other.path}:{other.line} and at {item.path}:{item.line}. "
                    "Names must differ, because baselines and reports go by them."
                )
    return list(seen.values())


def _collect_one(target: str, root: Path, here: Path, broken: BrokenFiles | None) -> Iterator[Collected]:
    place, attribute = _split(target)
    path = _path(place, root, here)
    if path.is_dir():
        if attribute:
            raise InvalidArgument(f"{target!r}: {place} is a folder; name a file to pick {attribute!r} from.")
        for file in sorted(path.rglob("*.py")):
            if not hidden(file, path):
                yield from _in_file(file, root, "", broken)
    elif path.is_file():
        if path.suffix != ".py":
            raise InvalidArgument(f"{target!r} is not a Python file.")
        yield from _in_file(path, root, attribute, broken)
    else:
        try:
            module = _load_named(place, path, root)
        except (CannotBeImported, KeyboardInterrupt) as error:
            if broken is None:
                raise
            broken.add(place, error)
            return
        yield from _in_module(module, Path(_source_file(module) or place), root, attribute)


def _in_file(file: Path, root: Path, attribute: str, broken: BrokenFiles | None) -> Iterator[Collected]:
    try:
        module = load_file(file, root)
    except (CannotBeImported, KeyboardInterrupt) as error:
        if broken is None:
            raise
        broken.add(_shown(file, root), error)
        return
    yield from _in_module(module, file, root, attribute)


def _source_file(module: ModuleType) -> str | None:
    try:
        return inspect.getsourcefile(module)
    except TypeError:  # built in, or a package without a file
        return None


def hidden(path: Path, folder: Path) -> bool:
    """Return True if a file below ``folder`` is not for audits: it, or a folder on its way, starts with a dot or underscore."""
    return path.name == "conftest.py" or any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def load_target(target: str, *, root: Path, here: Path | None = None) -> Any:
    """The object that ``file.py:name`` or ``package.module:name`` names (``name`` may have dots)."""
    place, attribute = _split(target)
    if not attribute:
        raise InvalidArgument(f"target={target!r} must look like file.py:name or package.module:name.")
    path = _path(place, root, here or root)
    found: Any = load_file(path, root) if path.is_file() else _load_named(place, path, root)
    for part in attribute.split("."):
        known = [name for name in dir(found) if not name.startswith("_")]
        try:
            found = getattr(found, part)
        except Exception:
            raise InvalidArgument(f"{target!r}: there is no {part!r}.{did_you_mean(part, known)}") from None
    return found


def _split(target: str) -> tuple[str, str]:
    """``file.py:name`` as its two parts; a drive letter is not a part."""
    place, colon, attribute = target.rpartition(":")
    if not colon or (len(place) == 1 and sys.platform == "win32"):
        place, attribute = target, ""
    if not place or "\0" in place:
        raise InvalidArgument(
            f"{target!r} names nothing: write a folder, file.py, file.py:name or package.module:name."
        )
    return place, attribute


def _path(place: str, root: Path, here: Path) -> Path:
    path = here / place
    return path if path.exists() or not (root / place).exists() else root / place


def _load_named(name: str, path: Path, root: Path) -> ModuleType:
    """A module by its dotted name, where no path of that name exists."""
    if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
        raise InvalidArgument(f"{name!r} does not exist.{_near(path)}")
    _importable_from(root)
    try:
        with import_state():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise InvalidArgument(
                f"{name!r} is neither a path nor a module that can be imported from here.{_near(path)}"
            ) from None
        raise _broken(name, error) from error
    except BaseException as error:  # user code may raise anything, SystemExit included
        raise _broken(name, error) from error


def _near(path: Path) -> str:
    try:
        return did_you_mean(path.name, [item.name for item in path.parent.iterdir()])
    except OSError:
        return ""


def _importable_from(folder: Path, *, first: bool = True) -> None:
    text = str(folder.resolve())
    if text not in sys.path:
        sys.path.insert(0 if first else len(sys.path), text)


def load_file(path: Path, root: Path) -> ModuleType:
    """Import a file by its path; its repository is importable from inside it.

    Where it has one, it is imported under the name by which a worker process or a script finds it too: its dotted name below
    ``root``, or its own name from its folder.
    """
    path = path.resolve()
    _importable_from(root)
    for name in _names(path, root.resolve()):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        except BaseException as error:  # the package around it
            raise _broken(_shown(path, root), error) from error
        if spec is not None and spec.origin is not None and Path(spec.origin) == path:
            return _imported(path, root, lambda name=name: importlib.import_module(name))  # type: ignore[misc]
    return _imported(path, root, lambda: _load_alone(path))


def _names(path: Path, root: Path) -> Iterator[str]:
    if path.is_relative_to(root):
        parts = path.relative_to(root).with_suffix("").parts
        if all(part.isidentifier() for part in parts):
            yield ".".join(parts)
    if path.stem.isidentifier():
        _importable_from(path.parent, first=False)
        yield path.stem


def _imported(path: Path, root: Path, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        with import_state():
            return load()
    except BaseException as error:
        raise _broken(_shown(path, root), error) from error


def _load_alone(path: Path) -> ModuleType:
    """Import a file under a generated name, because its own name is taken or is not an identifier."""
    unique = f"_dpaudit_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}_{path.stem}"
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


def _broken(shown: str, error: BaseException) -> BaseException:
    """Return the error for a user's file that raised: the exception, and the last line of user code that was reached."""
    if isinstance(error, KeyboardInterrupt):
        return error
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
        where = f"{own[-1].filename}:{own[-1].lineno}" if own else "before its first line"
    return CannotBeImported(f"{shown} cannot be imported: {described(error)} ({where}).")


def _shown(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _in_module(module: ModuleType, path: Path, root: Path, attribute: str = "") -> Iterator[Collected]:
    shown = _shown(path, root)
    if attribute:
        if not hasattr(module, attribute):
            known = [name for name, value in vars(module).items() if any(_audits(value))]
            raise InvalidArgument(f"{shown} has no {attribute!r}.{did_you_mean(attribute, known)}")
        values = {attribute: getattr(module, attribute)}
        if not any(_audits(values[attribute])):
            hint = " To audit a function without an Audit, use `dpaudit check`." if callable(values[attribute]) else ""
            raise InvalidArgument(f"{attribute}={shorten(values[attribute])} of {shown} is not an Audit.{hint}")
    else:
        values = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    lines = _Lines.of(path)
    for name, value in values.items():
        for audit in _audits(value):
            line = lines.assigned.get(name, 1)
            yield Collected(audit, shown, line if audit is value else lines.said.get(audit.name, line))


def _audits(value: Any) -> Iterator[Audit | AccuracyAudit]:
    # By their types: a module may hold objects whose __class__ raises, which isinstance would read.
    if issubclass(type(value), Audit | AccuracyAudit):
        yield value
    elif issubclass(type(value), list | tuple):
        yield from (item for item in value if issubclass(type(item), Audit | AccuracyAudit))


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines on which a file assigns its names, and on which strings stand."""

    assigned: dict[str, int]
    said: dict[str, int]

    @classmethod
    def of(cls, path: Path) -> _Lines:
        assigned: dict[str, int] = {}
        said: dict[str, int] = {}
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return cls({}, {})
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                assigned.setdefault(node.id, node.lineno)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.setdefault(node.value, node.lineno)
        return cls(assigned, said)
