"""Find out whether code that claims to be differentially private really is.

The entry points: :func:`audit`, :func:`assert_private`, :class:`Audit` (black box, with a stated error probability),
:func:`verify` (exact laws, declared or extracted from the code), :func:`check_sensitivity` (deterministic), :func:`diagnose`
(where the bug is), the claims, and what makes a mechanism of a function, a program or a service. Everything is imported on
first use, so that ``import dpaudit`` costs next to nothing (PEP 562). ``__init__.pyi`` lists the public names and their
modules, for type checkers, for editors, and for the functions below.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

__version__ = "0.2.0"


@functools.cache
def _public_names() -> dict[str, str]:
    """Return the module of every public name, from the lines ``from module import name as name`` of ``__init__.pyi``."""
    path = os.path.join(os.path.dirname(__file__), "__init__.pyi")
    lines = __loader__.get_data(path).decode().splitlines()
    imports = [line.split() for line in lines if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in imports}


def __getattr__(name: str) -> Any:
    names = _public_names()
    if name == "__all__":
        return sorted(names)
    if name not in names:
        from dpaudit._util.validation import did_you_mean

        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}.{did_you_mean(name, sorted(names))}")
    home = names[name]
    value = (
        importlib.import_module(f"dpaudit.{name}")
        if home == "dpaudit"
        else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*sorted(_public_names()), "__version__"]
