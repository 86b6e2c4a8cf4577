"""Short audits of counts with noise that the tests of robustness share, and when two results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpaudit
from dpaudit import PureDP, Result

PAIR = [([], [1])]
CLAIM = PureDP(1.0)


def audit(mechanism: Any, where: Any = PAIR, **options: Any) -> Result:
    return dpaudit.audit(mechanism, CLAIM, where, **{"samples": 6000, "seed": 1, "detect_factor": 3.0, **options})


def laplace(data: list[int]) -> float:
    """A correct plain function, with the noise of the global generator."""
    return len(data) + float(np.random.laplace())  # noqa: NPY002 - that is what users write


def noisy_count(scale: float) -> Any:
    return dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=scale, size=size))


def same(first: Result, second: Result) -> bool:
    one, other = first.to_dict(), second.to_dict()
    for plain in (one, other):
        plain.pop("seconds")
    return one == other
