"""Source file and line of a mechanism, so that a report can point at the line."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

NOWHERE = ("", 1)


def source_of(mechanism: Any, root: Path) -> tuple[str, int]:
    """File (relative to ``root``, with forward slashes) and first line of what is audited; ``("", 1)`` if it is not in
    the repository.

    Wrappers, partial functions and methods lead to the function inside, an instance to its class. Code outside ``root``
    or in an installed package belongs to another repository, so no report points at it.

    >>> source_of(len, Path("."))
    ('', 1)
    """
    target = _innermost(mechanism)
    try:
        file = inspect.getsourcefile(target)
        line = _first_line(target)
    except (TypeError, OSError):  # built in, or its file is gone
        return NOWHERE
    if file is None:
        return NOWHERE
    path = Path(file).resolve()
    if not path.is_relative_to(root.resolve()) or "site-packages" in path.parts:
        return NOWHERE
    return path.relative_to(root.resolve()).as_posix(), line


def _innermost(mechanism: Any) -> Any:
    for _ in range(20):  # a wrapper may wrap itself
        if isinstance(mechanism, functools.partial):
            mechanism = mechanism.func
        elif inspect.ismethod(mechanism):
            mechanism = mechanism.__func__
        elif callable(getattr(mechanism, "__wrapped__", None)):
            mechanism = mechanism.__wrapped__
        else:
            break
    return mechanism if inspect.isroutine(mechanism) or inspect.isclass(mechanism) else type(mechanism)


def _first_line(target: Any) -> int:
    code = getattr(target, "__code__", None)
    return int(code.co_firstlineno) if code is not None else inspect.getsourcelines(target)[1]
