"""Audits that a test runs by itself, through ``dpaudit.audit`` or ``assert_private``, as part of the run around it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from dpaudit.pytest_plugin.session import Session

try:
    _seam: Any = importlib.import_module("dpaudit.engine.surroundings")
except ImportError:
    _seam = None


@contextlib.contextmanager
def audits_of(item: pytest.Item, session: Callable[[], Session]) -> Iterator[None]:
    """Inside, every audit has the options of the run, is charged to its alpha, and its result is kept for the item."""
    if _seam is None:
        yield
        return

    def options(name: str | None, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return session().prepare(item, name, given)

    around = _seam.Surroundings(
        options=options,
        finished=lambda result: session().record(item, result),
        allows_inconclusive=lambda: session().allows_inconclusive(item),
    )
    with _seam.using(around):
        yield


@contextlib.contextmanager
def no_surroundings() -> Iterator[None]:
    """Inside, audits are on their own: whoever runs them has seen to their options."""
    if _seam is None:
        yield
        return
    with _seam.using(None):
        yield
