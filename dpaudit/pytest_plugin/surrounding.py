"""``assert_private`` inside a test, as part of the run around it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dpaudit.engine import session as surroundings

if TYPE_CHECKING:
    import pytest

    from dpaudit.pytest_plugin.session import Session


@contextlib.contextmanager
def assertions_of(item: pytest.Item, session: Callable[[], Session]) -> Iterator[None]:
    """Inside, ``assert_private`` has the options of the run, is charged to its alpha, and its results are kept."""
    around = surroundings.Surroundings(
        options=lambda name, given: session().prepare(item, name, given),
        finished=lambda result: session().record(item, result),
        allows_inconclusive=lambda: session().allows_inconclusive(item),
    )
    with surroundings.using(around):
        yield
