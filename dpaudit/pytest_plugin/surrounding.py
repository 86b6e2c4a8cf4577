"""``assert_private`` inside a test, as part of the run around it."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from dpaudit.engine import session as surroundings
from dpaudit.errors import PrivacyViolation

if TYPE_CHECKING:
    from dpaudit.pytest_plugin.session import Session

Node: TypeAlias = pytest.Item | pytest.Collector


@contextlib.contextmanager
def assertions_of(item: Node, session: Callable[[], Session]) -> Iterator[None]:
    """In the block, ``assert_private`` uses the options and a share of alpha of the run, and its results are kept."""
    around = surroundings.Surroundings(
        options=lambda name, given: session().prepare(item, name, given),
        finished=lambda result: session().record(item, result),
        allows_inconclusive=lambda: session().allows_inconclusive(item),
    )
    with surroundings.using(around), _noticing(lambda error: session().accept(item, error)):
        yield


@contextlib.contextmanager
def _noticing(accept: Callable[[BaseException], None]) -> Iterator[None]:
    """In the block, call ``accept`` with every violation that ``pytest.raises`` or ``assertRaises`` of unittest
    expected.

    Nothing else distinguishes a test that expects the exception from one that swallows it.
    """
    kinds: list[Any] = [type(pytest.raises(PrivacyViolation))]
    if (unittest := sys.modules.get("unittest")) is not None and hasattr(unittest, "TestCase"):
        kinds.append(type(unittest.TestCase().assertRaises(PrivacyViolation)))  # noqa: PT027 - its class is meant
    before = [(kind, kind.__exit__) for kind in kinds]
    for kind, leave in before:
        kind.__exit__ = _accepting(leave, accept)
    try:
        yield
    finally:
        for kind, leave in before:
            kind.__exit__ = leave


def _accepting(leave: Any, accept: Callable[[BaseException], None]) -> Any:
    @functools.wraps(leave)
    def wrapped(context: Any, kind: Any, error: Any, traceback: Any) -> Any:
        caught = leave(context, kind, error, traceback)
        if caught and isinstance(error, PrivacyViolation):
            accept(error)
        return caught

    return wrapped
