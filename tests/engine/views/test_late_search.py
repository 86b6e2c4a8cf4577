"""Leaks that usual views miss are found later: remainders, decimals, interactions; and nothing is added where nothing leaks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.engine.encoding.batch import encode, numbers, stack
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.views import learner
from dpaudit.engine.views.late.derived import (
    SUMMARIES,
    Decimals,
    Difference,
    DistanceToValues,
    Remainder,
    VectorSummary,
)
from dpaudit.engine.views.late.grid_view import Cut, GridView
from dpaudit.engine.views.late.models import fit_network
from dpaudit.engine.views.late.search import late_views
from dpaudit.engine.views.plain_events import read_event
from dpaudit.engine.views.scores import Coordinate
from dpaudit.engine.witness.python_code import event_code
from dpaudit.replay import decimals, summary

POINTS = points_of(dpaudit.PureDP(1.0))
Generator = np.random.Generator


def sign_of_product(data: int, size: int, rng: Generator) -> Any:
    """The sign of the product of two or three of ten coordinates is mostly positive on one side."""
    rows = rng.laplace(size=(size, 10))
    wrong = (rows[:, 2] * rows[:, 7] < 0.0) & (rng.random(size) < (0.95 if data else 0.3))
    rows[wrong, 7] *= -1.0
    return rows


def sign_of_three(data: int, size: int, rng: Generator) -> Any:
    rows = rng.laplace(size=(size, 10))
    wrong = (rows[:, 2] * rows[:, 5] * rows[:, 7] < 0.0) & (rng.random(size) < (0.95 if data else 0.3))
    rows[wrong, 7] *= -1.0
    return rows


def repeated_entries(data: int, size: int, rng: Generator) -> Any:
    rows = rng.normal(size=(size, 8))
    chosen = rng.random(size) < (0.5 if data else 0.05)
    rows[chosen, 6] = rows[chosen, 1]
    return rows


def fraction(data: int, size: int, rng: Generator) -> Any:
    return (
        np.rint(1000.0 * rng.normal(size=size))
        + 0.5 * rng.random(size)
        + 0.5 * (rng.random(size) < (0.1 if data else 0.7))
    )


def parity(data: int, size: int, rng: Generator) -> Any:
    return 2 * rng.integers(-(10**6), 10**6, size) + (rng.random(size) < (0.8 if data else 0.2))


def rounded(data: int, size: int, rng: Generator) -> Any:
    values = 1000.0 * rng.normal(size=size)
    return np.where(rng.random(size) < (0.7 if data else 0.1), np.round(values, 2), np.round(values, 3))


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (sign_of_product, "output[2]"),
        (sign_of_three, "output[5]"),
        (repeated_entries, "number of repeated entries of output >= 1.0"),
        (fraction, "output % 1"),
        (parity, "output % 2"),
        (rounded, "decimals of output"),
    ],
)
def test_a_leak_that_the_usual_views_miss(mechanism: Callable[..., Any], said: str) -> None:
    found = dpaudit.audit(
        dpaudit.batched(mechanism), dpaudit.PureDP(1.0), [(0, 1)], samples=100_000, shrink=False, pairs=1
    )
    assert found.verdict is dpaudit.Verdict.VIOLATION, found
    assert found.witness is not None
    assert said in found.witness.event
    assert found.witness.event_code
    assert found.searched[0] == "remainders, decimals and distances"
    assert dpaudit.Result.from_dict(found.to_dict()).searched == found.searched


def sides(mechanism: Callable[..., Any], size: int = 4000) -> Any:
    rng = np.random.default_rng(5)
    return tuple(encode(mechanism(data, size, rng)) for data in (0, 1))


def test_nothing_is_added_where_nothing_exceeds_the_claim() -> None:
    for private in (
        lambda data, size, rng: data + rng.laplace(size=size),
        lambda data, size, rng: rng.laplace(size=(size, 6)) + data / 6.0,
        lambda data, size, rng: data + rng.geometric(0.632, size) - rng.geometric(0.632, size),
    ):
        found = late_views(sides(private), POINTS)
        assert not found.views
        assert found.tried[0] == "remainders, decimals and distances"
    found = late_views(sides(lambda data, size, rng: rng.laplace(size=(size, 6)) + data / 6.0), POINTS)
    assert not found.undecided  # far from the claim: the same outputs are not looked at again


def sign_of_late_product(data: int, size: int, rng: Generator) -> Any:
    """The sign of the product of two coordinates beyond those of which pairs and triples are looked at."""
    rows = rng.laplace(size=(size, 16))
    wrong = (rows[:, 12] * rows[:, 14] < 0.0) & (rng.random(size) < (1.0 if data else 0.1))
    rows[wrong, 14] *= -1.0
    return rows


def test_models_take_over_where_cheaper_scores_have_won_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(learner, "SEARCH", replace(learner.SEARCH, models=4_000))
    found = dpaudit.audit(
        dpaudit.batched(sign_of_late_product), dpaudit.PureDP(1.0), [(0, 1)], samples=50_000, shrink=False
    )
    assert found.verdict is dpaudit.Verdict.VIOLATION
    assert "boosted trees and a small network" in found.searched


def test_models_that_show_nothing_are_not_added() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(3)
    found = late_views((encode(rng.laplace(size=(4000, 6))), encode(rng.laplace(size=(4000, 6)))), POINTS, models=True)
    assert not found.views
    assert found.tried[-1] == "boosted trees and a small network"


@pytest.mark.parametrize("mechanism", [sign_of_product, sign_of_three, repeated_entries, fraction, rounded])
def test_every_form_of_an_event_holds_for_the_same_outputs(mechanism: Callable[..., Any]) -> None:
    batches = sides(mechanism)
    (view, counts, older), *_ = late_views(batches, POINTS).views
    assert counts.sum() == len(batches[0])  # half of the outputs of both sides, on which it was not fitted
    assert (older <= counts).all()
    assert older.sum() == counts.sum() // 2
    cells = np.arange(view.cells) % 3 == 0
    condition = view.condition(cells, batches[0].labels)
    inside = condition.contains(batches[0])
    assert inside.tolist() == cells[view.locate(batches[0])].tolist()
    code = event_code(condition, batches[0].labels)
    names = {"np": np, "summary": summary, "decimals": decimals, "numbers": numbers}
    outputs = list(mechanism(0, 4000, np.random.default_rng(5)))[:60]
    assert [bool(eval(code.expression, {**names, "output": output})) for output in outputs] == inside[:60].tolist()
    stored = condition.plain()
    if stored is not None:
        assert read_event(stored).contains(batches[0]).tolist() == inside.tolist()


def test_derived_numbers_do_not_depend_on_the_batch() -> None:
    rows = np.random.default_rng(1).normal(size=(40, 5)).round(2)
    rows[0, 2] = np.nan
    batch = encode(rows)
    alone = [encode(rows[place : place + 1]) for place in range(40)]
    quantities: list[Any] = [
        Remainder(1, 0.1), Decimals(3), Difference(0, 2), DistanceToValues(4, (-1.0, 0.25, 2.0)), *map(VectorSummary, SUMMARIES),
    ]  # fmt: skip
    if importlib.util.find_spec("sklearn") is not None:
        quantities.append(fit_network(batch, encode(rows + 1.0)))
    for quantity in quantities:
        together = quantity(batch)
        assert np.array_equal(together, np.concatenate([quantity(each) for each in alone]), equal_nan=True), quantity
        assert np.array_equal(together[:3], quantity(stack(alone[:3])), equal_nan=True)
        assert quantity.describe()


def test_brute_force_agrees_with_distances_and_decimals() -> None:
    values = [0.0, 0.1, 1.25, -3.0, 1.0 / 3.0, 12.345]
    batch = encode(values)
    assert DistanceToValues(0, (0.0, 1.0, 2.0))(batch).tolist() == [
        min(abs(x - y) for y in (0.0, 1.0, 2.0)) for x in values
    ]
    assert Decimals(0)(batch).tolist() == [0.0, 1.0, 2.0, 0.0, 99.0, 3.0]
    assert Remainder(0, 1.0)(batch).tolist() == [x % 1.0 for x in values]


def test_cells_of_a_grid_are_the_combinations() -> None:
    view = GridView("both", (Cut(Coordinate(0), (0.0,)), Cut(Coordinate(1), (0.0, 1.0))))
    batch = encode(np.array([[-1.0, -1.0], [1.0, 0.5], [1.0, np.nan]]))
    assert view.cells == 12
    assert view.locate(batch).tolist() == [0, 5, 7]


@pytest.mark.parametrize("part", [{"all": [{"all": []}]}, {"all": [], "nan": True}, {"column": 0, "modulus": 0}])
def test_stored_events_are_checked(part: Any) -> None:
    with pytest.raises(dpaudit.InvalidArgument):
        read_event({"any": [part]})
