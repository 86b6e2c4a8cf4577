"""Source lines of mechanisms: wrappers, partials, methods and instances lead to our own lines, others to none."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from dpaudit.report.source import NOWHERE, source_of

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).relative_to(ROOT).as_posix()
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def noisy(data: Any, size: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(size=size)


def plain(data: Any) -> float:
    return float(len(data))


class Count:
    """A mechanism with a method."""

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return noisy(data, size, rng)


def line_of(start: str) -> int:
    return next(number for number, text in enumerate(LINES, 1) if text.startswith(start))


def test_the_source_of_a_wrapper_is_that_of_its_function() -> None:
    for mechanism in (
        noisy,
        dpaudit.batched(noisy),
        functools.partial(noisy, size=3),
        dpaudit.batched(functools.partial(noisy)),
    ):
        assert source_of(mechanism, ROOT) == (HERE, line_of("def noisy"))
    assert source_of(plain, ROOT) == (HERE, line_of("def plain"))
    assert source_of(Count(), ROOT) == (HERE, line_of("class Count"))
    assert source_of(dpaudit.fresh(Count), ROOT) == (HERE, line_of("class Count"))
    assert source_of(Count().sample, ROOT) == (HERE, line_of("    def sample"))


def test_code_outside_the_repository_has_no_place(tmp_path: Path) -> None:
    for mechanism in (len, 3, "package.module:make", np.random.default_rng, None):
        assert source_of(mechanism, ROOT) == NOWHERE
    assert source_of(json.loads, ROOT) == NOWHERE
    assert source_of(noisy, tmp_path) == NOWHERE


def test_a_wrapper_of_itself_ends() -> None:
    def loop() -> None: ...

    loop.__wrapped__ = loop  # type: ignore[attr-defined]
    assert source_of(loop, ROOT)[0] == HERE
