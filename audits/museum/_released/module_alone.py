"""Modules of a released package without the rest of it.

Importing ``package.part.module`` runs ``package/__init__.py`` first, and with it all that the package needs. Old releases
need what no longer installs, or much that has nothing to do with the bug. Here the parents are bare: they have the
folders of the installed distribution and none of its code, and the module itself is run as it was released.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import distribution
from types import ModuleType


def module_alone(name: str, released_in: str) -> ModuleType:
    """Return the module of that dotted name from an installed distribution; its parents are not run."""
    home = distribution(released_in)
    *parents, _ = name.split(".")
    for depth in range(1, len(parents) + 1):
        parent = ".".join(parents[:depth])
        if parent not in sys.modules:
            bare = ModuleType(parent)
            bare.__path__ = [str(home.locate_file("/".join(parents[:depth])))]
            sys.modules[parent] = bare
    return importlib.import_module(name)
