"""Functions of a released version, in the environment that audits/museum/run makes for an exhibit."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from dpaudit import isolated
from dpaudit.errors import MissingDependency

RELEASED = Path(__file__).resolve().parents[1] / "_released"
VARIABLE = "MUSEUM_PYTHON"


def released(function: str, **options: Any) -> functools.partial[Any]:
    """Return a factory of the function ``"file.py:function"`` of ``_released`` as a mechanism."""
    return functools.partial(_make, function, **options)


def _make(function: str, **options: Any) -> Any:
    python = os.environ.get(VARIABLE)
    if python is None:
        raise MissingDependency(
            f"{VARIABLE} must name the interpreter with the released version; audits/museum/run makes it and runs the exhibit."
        )
    return isolated(python, f"{RELEASED}/{function}", path=[RELEASED], **options)
