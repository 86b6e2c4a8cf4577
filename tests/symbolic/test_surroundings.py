"""Extraction in places where namespaces hold unusual objects, as those of notebooks do."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.symbolic import law_of


class Gone:
    pass


def test_a_dead_weak_proxy_in_the_namespace_does_not_stop_extraction() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "proxy": weakref.proxy(Gone()), "held": [weakref.proxy(Gone())]}
    exec("def noisy(data, rng):\n    return data + rng.laplace(scale=1.0)\n", names)
    assert dpaudit.verify(dpaudit.per_release(names["noisy"]), dpaudit.PureDP(1.0), [(0, 1)]).verified


def test_compiled_code_that_makes_an_array_gets_a_plain_one() -> None:
    """A generator with a seed calls numpy.empty without a frame of its own; an array of symbols there crashed Python."""

    def function(data: Any, rng: np.random.Generator) -> list[bool]:
        constants = np.random.default_rng(7).laplace(size=len(data))
        return [bool(x + rng.laplace() > 0.0) for x in constants[:1]]

    outcomes = law_of(function, [1, 2]).outcomes()
    first = np.random.default_rng(7).laplace(size=2)[0]
    above = 0.5 * np.exp(first) if first < 0.0 else 1.0 - 0.5 * np.exp(-first)
    assert outcomes is not None
    assert outcomes[True,] == pytest.approx(above)
