"""Optional libraries, imported at the last moment and without their logs; and data in the types that they accept."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.errors import MissingDependency


def load(module: str, *, extra: str) -> Any:
    """Import a module of an optional library, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise MissingDependency(
            f"{library} cannot be imported ({error}); install it with: pip install 'dpaudit[{extra}]'"
        ) from error


@contextlib.contextmanager
def quiet(library: str) -> Iterator[None]:
    """Leave out what a library logs below the level of an error: an audit calls it thousands of times."""
    logger = logging.getLogger(library)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def native(data: Any) -> Any:
    """Numpy scalars and arrays as Python numbers and lists, which native libraries insist on.

    >>> native(np.array([1.0, 2.0])), native((np.int64(3), "x"))
    ([1.0, 2.0], (3, 'x'))
    """
    if isinstance(data, np.ndarray | np.generic):
        return data.tolist()
    if isinstance(data, list | tuple):
        return type(data)(map(native, data))
    return data
