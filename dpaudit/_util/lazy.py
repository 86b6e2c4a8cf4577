"""Names of a package that are imported on first use (PEP 562), listed once: in its ``__init__.pyi``."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any


def imported_on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    The names are those of the lines ``from module import name as name`` in the package's ``__init__.pyi``, which type checkers
    and editors read too. A name is an attribute of its module or a submodule of it.
    """

    @functools.cache
    def homes() -> dict[str, str]:
        module = sys.modules[package]
        path = os.path.join(os.path.dirname(str(module.__file__)), "__init__.pyi")
        lines = module.__loader__.get_data(path).decode().splitlines()  # type: ignore[union-attr]  # a zip file has one too
        imports = [line.split() for line in lines if line.startswith("from ")]
        return {name: home for _, home, _, name, *_ in imports}

    def get(name: str) -> Any:
        known = homes()
        if name == "__all__":
            return sorted(known)
        if name not in known:
            from dpaudit._util.validation import did_you_mean

            raise AttributeError(f"module {package!r} has no attribute {name!r}.{did_you_mean(name, sorted(known))}")
        home = importlib.import_module(known[name])
        if known[name] == package or not hasattr(home, name):
            value = importlib.import_module(f"{known[name]}.{name}")
        else:
            value = getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*homes(), *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return get, names
