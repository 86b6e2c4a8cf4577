"""Pictures of outputs: readable cells, with the event where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit import replay
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.float_bits import build_bit_views
from dpaudit.engine.witness.event import Event, simplest
from dpaudit.engine.witness.picture import picture
from dpaudit.result.plots import Summary

SIZE = 2000


def event_of(name: str, first: Any, second: Any, build: Any = build_views) -> tuple[Event, tuple[Any, Any]]:
    """The event that distinguishes the sides best in the view of this name, and both sides encoded."""
    sides = (encode(first), encode(second))
    view = next(view for view, _ in build(sides) if view.name == name)
    labels = {**sides[0].labels, **sides[1].labels}
    event = simplest(sides, [view], Points.of([(0.1, 0.0)]), labels)
    assert event is not None
    return event, (sides[1], sides[0]) if event.swapped else sides


def drawn(name: str, first: Any, second: Any, build: Any = build_views) -> dict[str, Any]:
    event, sides = event_of(name, first, second, build)
    made = picture(event, sides)
    assert Summary.read(made) is not None, "reports cannot read it"
    inside = [int(event.contains(side).sum()) for side in sides]
    if "categories" in made:
        for side, total in zip(("data", "neighbour"), inside, strict=True):
            assert sum(made[side][place] for place in made["event"]) == total
    return made


def test_whole_numbers_have_a_cell_each() -> None:
    rng = np.random.default_rng(0)
    made = drawn("value", rng.integers(0, 6, SIZE), rng.integers(2, 9, SIZE))
    assert made["edges"] == [k - 0.5 for k in range(10)]
    # The event is shaded to the borders of its cells, so whole cells are in it or not.
    inside = {k for k in range(9) for low, high in made["event"] if low <= k < high}
    assert inside
    assert all(abs(end % 1.0 - 0.5) < 1e-9 for interval in made["event"] for end in interval if np.isfinite(end))
    assert sum(made["data"]) == SIZE


def test_real_numbers_have_even_cells_and_the_event_as_it_is() -> None:
    rng = np.random.default_rng(1)
    made = drawn("value", rng.normal(size=SIZE), 1.0 + rng.normal(size=SIZE))
    assert len(made["edges"]) == 41
    assert np.allclose(np.diff(made["edges"]), made["edges"][1] - made["edges"][0])
    assert made["event"]


def test_numbers_beside_none_are_grouped_by_what_the_event_says() -> None:
    rng = np.random.default_rng(2)
    first, second = (
        [None if rare < 0.1 else x for x, rare in zip(rng.laplace(centre, 0.4, SIZE), rng.random(SIZE), strict=True)]
        for centre in (0.0, 1.0)
    )
    made = drawn("value", first, second)
    assert len(made["categories"]) <= 4  # not a bar for every float
    assert all("NaN" not in name for name in made["categories"])
    assert "None" in made["categories"]
    assert any(name.startswith("number output") for name in made["categories"])
    assert sum(made["data"]) == sum(made["neighbour"]) == SIZE


def test_words_are_categories() -> None:
    rng = np.random.default_rng(3)
    names = np.array(["red", "green", "blue"])
    first = names[rng.choice(3, SIZE, p=[0.7, 0.2, 0.1])].tolist()
    second = names[rng.choice(3, SIZE, p=[0.1, 0.2, 0.7])].tolist()
    made = drawn("value", first, second)
    assert {name.strip("'\"") for name in made["categories"]} == {"red", "green", "blue"}
    assert len(made["event"]) in (1, 2)


def test_records_name_the_others() -> None:
    rng = np.random.default_rng(4)
    first = [(1, 2) if rng.random() < 0.6 else tuple(rng.random(2).tolist()) for _ in range(SIZE)]
    second = [(1, 2) if rng.random() < 0.1 else tuple(rng.random(2).tolist()) for _ in range(SIZE)]
    event, sides = record_event(first, second)
    made = picture(event, sides)
    assert made["trials"] == [SIZE, SIZE]
    assert made["categories"] == ["any other output", "(1, 2)"]
    assert made["event"] == [1]
    assert made["data"][1] > 4 * made["neighbour"][1]


def record_event(first: Any, second: Any) -> tuple[Event, tuple[Any, Any]]:
    """The first of the repeated outputs occurs."""
    sides = (encode(first), encode(second))
    view = next(view for view, _ in build_views(sides) if view.name == "record")
    cells = np.zeros(view.cells, dtype=bool)
    cells[0] = True
    return Event(view, cells, {**sides[0].labels, **sides[1].labels}), sides


def test_bits_are_grouped_by_the_value() -> None:
    rng = np.random.default_rng(5)
    made = drawn("bits", rng.laplace(size=SIZE), 1.0 + rng.laplace(size=SIZE), build_bit_views)
    assert 2 <= len(made["categories"]) <= 16
    assert made["categories"][0].startswith("-inf to -")
    assert all(name.endswith(": other bits") == (k not in made["event"]) for k, name in enumerate(made["categories"]))


def test_the_script_of_an_event_on_bits_is_the_event() -> None:
    rng = np.random.default_rng(7)
    event, _ = event_of("bits", rng.laplace(size=SIZE), 1.0 + rng.laplace(size=SIZE), build_bit_views)
    outputs = np.concatenate([rng.laplace(size=SIZE), [0.0, np.inf, -np.inf, np.nan, 1.0, 5e-324, 0.1]])
    code = event.code()
    assert code.helpers == ["lowest_bit"]
    names: dict[str, Any] = {"np": np, "lowest_bit": replay.lowest_bit}
    found = [bool(eval(code.expression, {**names, "output": output})) for output in outputs.tolist()]
    assert found == event.contains(encode(outputs)).tolist()
    assert 0 < sum(found) < len(found)


@pytest.mark.parametrize("shift", [1e308, np.inf])
def test_numbers_that_no_axis_holds(shift: float) -> None:
    rng = np.random.default_rng(6)
    made = drawn("value", rng.choice([0.0, shift], SIZE), rng.choice([0.0, -shift], SIZE))
    assert made["trials"] == [SIZE, SIZE]
