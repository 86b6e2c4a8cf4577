"""Views: counts equal the located cells, blocks add up, and every event holds for exactly the outputs of its cells."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit import replay
from dpaudit.engine.encoding.batch import FEWEST_COUNTED, encode
from dpaudit.engine.encoding.float_grid import (
    COARSE,
    DECIMAL,
    MOST_DECIMALS,
    MOST_DIGITS,
    NEGATIVE_ZERO,
    NO_BIT,
    is_grid,
    lowest_bits,
)
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.views import scores
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.condition import LOWEST, Number
from dpaudit.engine.views.float_bits import MOST_COLUMNS, BitsView, build_bit_views
from dpaudit.engine.views.learner import Learner, Settled
from dpaudit.engine.views.partition import KeyTable, Line, line_from
from dpaudit.engine.views.scores import Coordinate
from dpaudit.engine.views.view import Block
from dpaudit.engine.witness.event import simplest
from dpaudit.engine.witness.python_code import OutputNames
from dpaudit.mechanism import Raised

NO_NAMES = OutputNames({})
Maker = Callable[[int, float, np.random.Generator], Any]


def scalars(size: int, shift: float, rng: np.random.Generator) -> Any:
    values = shift + rng.laplace(size=size)
    values[rng.random(size) < 0.05] = np.nan
    values[rng.random(size) < 0.05] = np.inf
    values[rng.random(size) < 0.05] = -np.inf
    values[rng.random(size) < 0.2] = 2.0
    return values


def integers(size: int, shift: float, rng: np.random.Generator) -> Any:
    return rng.geometric(0.3, size=size) + int(2 * shift)


def extremes(size: int, shift: float, rng: np.random.Generator) -> Any:
    values = np.array([LOWEST, -LOWEST, 5e-324, -0.0, 0.0, 1.0, np.inf, -np.inf, np.nan])
    return values[rng.binomial(8, 0.5 + 0.1 * shift, size=size)]


def mixed(size: int, shift: float, rng: np.random.Generator) -> Any:
    kinds = [None, "a", "b", 3, True, math.nan, Raised("ValueError", "bad int #"), math.inf]
    return [float(shift + rng.normal()) if rng.random() < 0.5 else kinds[rng.integers(len(kinds))] for _ in range(size)]


def strings(size: int, shift: float, rng: np.random.Generator) -> Any:
    return [f"category {int(rng.geometric(0.2 + 0.1 * shift))}" for _ in range(size)]


def vectors(size: int, shift: float, rng: np.random.Generator) -> Any:
    values = shift + rng.normal(size=(size, 3))
    values[rng.random((size, 3)) < 0.02] = np.nan
    values[rng.random((size, 3)) < 0.02] = np.inf
    values[rng.random((size, 3)) < 0.02] = -np.inf
    return values


def grids(size: int, shift: float, rng: np.random.Generator) -> Any:
    return rng.integers(0, 3 + int(shift), size=(size, 4))


def ragged(size: int, shift: float, rng: np.random.Generator) -> Any:
    return [rng.integers(0, 3 + int(shift), size=rng.integers(0, 5)).tolist() for _ in range(size)]


def ragged_floats(size: int, shift: float, rng: np.random.Generator) -> Any:
    return [(shift + rng.normal(size=rng.integers(0, 4))).tolist() for _ in range(size)]


def records(size: int, shift: float, rng: np.random.Generator) -> Any:
    def one() -> dict[str, Any]:
        # A key named like a type must not be taken for one.
        record = {"count": int(rng.integers(4)), "int": math.nan if rng.random() < 0.1 else shift}
        return record | {"x": None} if rng.random() < 0.3 else record

    return [one() for _ in range(size)]


def huge(size: int, shift: float, rng: np.random.Generator) -> Any:
    return [
        (1.7e18, float(rng.choice([-1.7e308, 1.7e308])), 5e-324 * rng.integers(3), shift + rng.normal())
        for _ in range(size)
    ]


MAKERS: list[Maker] = [
    scalars, integers, extremes, mixed, strings, vectors, grids, ragged, ragged_floats, records, huge,
]  # fmt: skip
by_maker = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def built(make: Maker, size: int = 400, seed: int = 0) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(seed)
    sides = encode(make(size, 0.0, rng)), encode(make(size, 1.0, rng))
    learner = Learner(build_views)
    learner.settle(Settled((), sides), size)  # brings both sides to one width
    return learner.kept(), build_views(learner.kept())


@by_maker
def test_counts_are_those_of_the_cells_located(make: Maker) -> None:
    _, views = built(make)
    assert views
    rng = np.random.default_rng(1)
    for size in (1, 2, 300):
        batch = encode(make(size, 0.5, rng))
        for view, past in views:
            counts = view.count(Block(batch))
            assert counts.shape == (view.cells,) == past.shape[1:]
            assert counts.sum() == size
            located = view.locate(batch)
            assert located.min() >= 0
            assert np.array_equal(counts, np.bincount(located, minlength=view.cells))


@by_maker
def test_the_cell_of_an_output_does_not_depend_on_its_batch(make: Maker) -> None:
    """Blocks are cut and joined; the proof needs the cell to be a function of the output alone, to the last bit."""
    _, views = built(make)
    outputs = make(120, 0.5, np.random.default_rng(2))
    whole = encode(outputs)
    for view, _ in views:
        together = view.locate(whole)
        alone = [int(view.locate(encode(outputs[row : row + 1]))[0]) for row in range(len(outputs))]
        assert together.tolist() == alone, view.name
        halves = view.count(Block(encode(outputs[:37]))) + view.count(Block(encode(outputs[37:])))
        assert np.array_equal(view.count(Block(whole)), halves)
        reversed_rows = view.locate(encode(outputs[::-1]))[::-1]
        assert together.tolist() == reversed_rows.tolist()


@by_maker
def test_views_know_the_outputs_of_other_mechanisms(make: Maker) -> None:
    """Anything may turn up after learning: other types, wider rows, strings where numbers were."""
    _, views = built(make)
    rng = np.random.default_rng(3)
    for other in MAKERS:
        batch = encode(other(50, 0.0, rng))
        for view, _ in views:
            counts = view.count(Block(batch))
            assert counts.sum() == 50
            assert np.array_equal(counts, np.bincount(view.locate(batch), minlength=view.cells))


@by_maker
def test_views_pickle(make: Maker) -> None:
    _, views = built(make)
    batch = encode(make(100, 0.5, np.random.default_rng(4)))
    for view, _ in views:
        again = pickle.loads(pickle.dumps(view))
        assert again.name == view.name
        assert np.array_equal(again.count(Block(batch)), view.count(Block(batch)))


@by_maker
def test_events_read_as_they_count(make: Maker) -> None:
    """The sentence is not empty, and the Python expression picks the same outputs as the cells."""
    sides, views = built(make, size=1500)
    labels = {**sides[0].labels, **sides[1].labels}
    event = simplest(sides, [view for view, _ in views], Points.of([(0.1, 0.0)]), labels)
    assert event is not None
    assert len(str(event)) > 0
    outputs = make(200, 0.5, np.random.default_rng(5))
    inside = event.contains(encode(outputs)).tolist()
    code = event.code()
    if code.expression:
        names: dict[str, Any] = {"np": np, **{name: getattr(replay, name) for name in code.helpers}}
        exec(code.definitions, names)
        compiled = compile(code.expression, "event", "eval")
        said = [bool(eval(compiled, names, {"output": output})) for output in outputs]
        assert said == inside, (str(event), code.expression)


@by_maker
def test_every_cell_has_a_text(make: Maker) -> None:
    sides, views = built(make)
    labels = {**sides[0].labels, **sides[1].labels}
    for view, _ in views:
        for cell in range(view.cells):
            chosen = np.zeros(view.cells, dtype=bool)
            chosen[cell] = True
            for cells in (chosen, ~chosen):
                assert view.condition(cells, labels).text(OutputNames(labels))


@given(
    values=st.lists(st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, math.inf, LOWEST, -LOWEST])), max_size=60),
    learned=st.lists(st.one_of(st.floats(), st.sampled_from([0.0, 1.0, math.inf, LOWEST, -LOWEST])), max_size=60),
    resolution=st.integers(1, 64),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_lines_partition_the_floats(values: list[float], learned: list[float], resolution: int) -> None:
    line = line_from(np.array(learned, dtype=np.float64), resolution=resolution)
    counts = line.count(SortedSample(np.sort(np.array(values, dtype=np.float64))))
    expected = [0] * line.cells
    cuts = line.cuts.tolist()
    assert cuts == sorted(set(cuts))
    for value in values:
        expected[line.cells - 1 if math.isnan(value) else sum(cut <= value for cut in cuts)] += 1
    assert counts.tolist() == expected


def said_of(line: Line, cells: Any) -> str:
    return Number(Coordinate(0), line.intervals(cells), bool(cells[-1])).text(NO_NAMES)


def test_special_values_have_cells_of_their_own() -> None:
    line = line_from(np.array([1.0, 1.0, 2.0, 3.0]), resolution=16)
    batch = np.sort(np.array([-math.inf, LOWEST, 1.0, np.nextafter(1.0, 2.0), -LOWEST, math.inf, math.nan]))
    counts = line.count(SortedSample(batch))
    assert counts[0] == counts[-1] == counts[-2] == 1  # minus infinity, NaN, infinity
    atom = int(np.searchsorted(line.cuts, 1.0, side="right"))
    assert counts[atom] == 1
    chosen = np.zeros(line.cells, dtype=bool)
    chosen[atom] = True
    assert said_of(line, chosen) == "output == 1.0"


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ([1, 0, 0, 0, 0, 0], ["output == -inf"]),
        ([1, 1, 0, 0, 0, 0], ["output < 0.0"]),
        ([0, 0, 1, 0, 0, 0], ["0.0 <= output < 1.0"]),
        ([0, 0, 0, 1, 1, 0], ["output >= 1.0"]),
        ([0, 0, 0, 0, 1, 0], ["output == inf"]),
        ([0, 0, 0, 0, 0, 1], ["output is NaN"]),
        ([1, 1, 1, 1, 1, 0], ["output is a number"]),
        ([1, 1, 0, 1, 1, 1], ["output < 0.0", "output >= 1.0", "output is NaN"]),
    ],
)
def test_cells_of_a_line_are_described_as_intervals(cells: list[int], text: list[str]) -> None:
    line = Line(np.array([LOWEST, 0.0, 1.0, math.inf]))
    assert said_of(line, np.array(cells, dtype=bool)) == " or ".join(text)


def test_repeated_values_and_tables() -> None:
    ascending = SortedSample(np.sort(np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0, math.nan, math.nan])))
    values, lengths = ascending.repeated(10)
    assert values.tolist() == [1.0, 3.0]
    assert lengths.tolist() == [2, 3]
    assert ascending.repeated(1)[0].tolist() == [3.0]
    table = KeyTable(np.array([1.0, 5.0]))
    assert table.count(ascending).tolist() == [2, 0, 6]
    assert table.unknown(ascending, 10)[0].tolist() == [3.0]


def test_learning_uses_settled_rounds_only() -> None:
    """A record's bets are fixed by what was settled before: the new batch changes neither views nor past of its own round."""
    rng = np.random.default_rng(6)
    learner = Learner(build_views)
    assert learner.views == ()
    first = encode(rng.normal(size=200)), encode(rng.normal(size=200))
    assert learner.settle(Settled((), first), 200) == ()
    views = learner.views
    before = [past.copy() for past, _ in learner.past_counts()]
    batch = encode(rng.normal(size=100)), encode(rng.normal(size=100))
    counts = tuple(np.stack([view.count(Block(side)) for side in batch]) for view in views)
    made = learner.settle(Settled(counts, batch), 100)
    assert [record.view for record in made] == [view.name for view in views]
    for record, past, new in zip(made, before, counts, strict=True):
        assert np.array_equal(record.past, past)
        assert np.array_equal(record.new, new)
    assert learner.seen == 300


@pytest.mark.parametrize("kind", ["words", "integers"])
def test_nothing_is_built_anew_where_every_output_has_a_cell(kind: str) -> None:
    rng = np.random.default_rng(8)
    built: list[int] = []

    def build(sides: Any) -> Any:
        built.append(len(sides[0]))
        return build_views(sides)

    def draw(size: int, words: list[Any]) -> Any:
        return encode([words[k] for k in rng.integers(len(words), size=size)])

    known, unseen = (["a", "b", "c"], "d") if kind == "words" else ([0, 1, 7], 3)
    learner = Learner(build)
    for words in ([known] * 4) + [[*known, unseen]] * 2:
        sides = draw(max(learner.seen, 400), words), draw(max(learner.seen, 400), words)
        counts = tuple(np.stack([view.count(Block(side)) for side in sides]) for view in learner.views)
        learner.settle(Settled(counts, sides), len(sides[0]))
        # Whether built anew or not, the past is what a new view would count, and the views are those that it would have.
        for view, (past, _), (fresh, anew) in zip(
            learner.views, learner.past_counts(), build_views(learner.kept()), strict=True
        ):
            np.testing.assert_array_equal(past, anew)
            assert view.cells == fresh.cells
    assert built == [400, 6400]  # at first, and when something new had come


def test_new_repeats_get_cells_and_no_output_is_lost() -> None:
    rng = np.random.default_rng(7)
    learner = Learner(build_views)
    learner.settle(Settled((), (encode(rng.normal(size=500)), encode(rng.normal(size=500)))), 500)
    empty = encode(np.empty(0)), encode(np.empty(0))
    outputs = [rng.normal(size=3000), rng.normal(size=3000)]
    outputs[0][:7] = 42.0
    blocks = [Block(encode(side)) for side in outputs]
    counts = tuple(np.stack([view.count(block) for block in blocks]) for view in learner.views)
    record = next(view for view in learner.views if view.name == "record")
    repeats = tuple((side, *found) for side, block in enumerate(blocks) for found in record.unknown(block))
    assert repeats == ((0, 42.0, 7, "output == 42.0"),)
    totals = [past.sum() for past, _ in learner.past_counts()]
    learner.settle(Settled(counts, empty, repeats), 3000)
    assert [past.sum() for past, _ in learner.past_counts()] == [total + 6000 for total in totals]
    grown = next(view for view in learner.views if view.name == "record")
    assert 42.0 in grown.table.keys
    assert all((past >= 0).all() for past, _ in learner.past_counts())


def test_lowest_bits_against_fractions() -> None:
    rng = np.random.default_rng(8)
    values = np.concatenate([rng.normal(size=200), rng.normal(size=50) * 1e-310, [1.0, 0.75, 5e-324, -6.0, 2.0**1000]])
    for value, bit in zip(values.tolist(), lowest_bits(values).tolist(), strict=True):
        numerator, denominator = value.as_integer_ratio()
        if len(Decimal(repr(value)).as_tuple().digits) > MOST_DIGITS or numerator == 1 or denominator <= 4:
            assert bit == (numerator & -numerator).bit_length() - denominator.bit_length()


def test_decimals_against_their_text() -> None:
    rng = np.random.default_rng(8)
    spread = 10.0 ** rng.uniform(-3, 3, size=200)  # at most four digits before the point
    values = np.stack([np.round(rng.normal(scale=spread), k) for k in range(1, 8)]).ravel()
    for value, grid in zip(values.tolist(), lowest_bits(values).tolist(), strict=True):
        numerator, _ = abs(value).as_integer_ratio()
        if (numerator // max(numerator & -numerator, 1)).bit_length() <= COARSE:  # on a coarse dyadic grid, named first
            assert grid < DECIMAL
        else:
            assert grid - DECIMAL == -Decimal(repr(value)).normalize().as_tuple().exponent


def test_every_grid_has_a_number_and_no_other_number_is_one() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.integers(0, 2**63, size=10_000).view(np.float64), [0.0, -0.0, 5e-324, 2.0**1023]])
    assert all(map(is_grid, lowest_bits(values).tolist()))
    exact = [*range(-1074, 1024), *(DECIMAL + k for k in range(1, MOST_DECIMALS + 1))]
    assert [grid for grid in range(-1200, 2100) if is_grid(grid)] == [NEGATIVE_ZERO, NO_BIT, *exact]


def test_the_text_says_which_grids_an_event_has() -> None:
    grids = np.array([NEGATIVE_ZERO, NO_BIT, -54, -53, 0, DECIMAL + 1, DECIMAL + 3])
    view = BitsView(0, KeyTable(grids), np.array([]), "bits")

    def said(*chosen: int, others: bool = False) -> str:
        cells = np.append(np.isin(grids, chosen), others)
        return view.condition(cells, {}).text(NO_NAMES).removeprefix("(-inf <= output < inf and ").removesuffix(")")

    assert said(-54, -53) == "(lowest set bit <= 2^-53)"
    assert said(-54, 0) == "(lowest set bit in {2^-54, 2^0})"
    assert said(DECIMAL + 1, DECIMAL + 3) == "(last decimal in {10^-1, 10^-3})"
    assert said(NO_BIT) == "(output is 0.0, infinite or NaN)"
    assert said(-54, NEGATIVE_ZERO) == "(lowest set bit in {2^-54} or output is -0.0)"
    everything_else = said(*grids[:-1], others=True)  # also what was not seen while learning
    assert everything_else == "not (last decimal in {10^-3})"
    assert BitsView(2, KeyTable(grids), np.array([]), "bits[2]").condition(np.arange(8) == 0, {}).text(NO_NAMES) == (
        "(-inf <= output[2] < inf and (output[2] is -0.0))"
    )


def test_coordinates_whose_bits_differ_most_are_audited() -> None:
    rng = np.random.default_rng(10)
    first, second = rng.laplace(size=(2, 200, 40))
    second[:, 33] += 1.0
    views = [view for view, _ in build_bit_views((encode(first), encode(second)))]
    assert len(views) == MOST_COLUMNS
    assert 33 in [view.column for view in views if isinstance(view, BitsView)]


@pytest.mark.parametrize("make", [scalars, integers, vectors, ragged, mixed, strings], ids=lambda make: make.__name__)
def test_bit_views_count_as_they_locate(make: Maker) -> None:
    sides, _ = built(make)
    rng = np.random.default_rng(9)
    for view, past in build_bit_views(sides):
        batch = encode(make(100, 0.5, rng))
        counts = view.count(Block(batch))
        assert counts.sum() == 100
        assert past.shape == (2, view.cells)
        assert np.array_equal(counts, np.bincount(view.locate(batch), minlength=view.cells))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("build", [build_views, build_bit_views])
def test_many_integers_are_counted_as_each_of_them_alone(dtype: Any, build: Any) -> None:
    """Whatever a view has learned from (floats of a continuum, or integers), large batches have no cells of their own."""
    rng = np.random.default_rng(5)
    many = rng.integers(0, 40, FEWEST_COUNTED).astype(dtype)
    assert encode(many).counted is not None
    for learned in (rng.normal(20.0, 9.0, 40_000), rng.integers(0, 30, 5_000).astype(float)):
        for view, _ in build((encode(learned), encode(learned + 1.0))):
            in_parts = sum(view.count(Block(encode(many[start : start + 1024]))) for start in range(0, many.size, 1024))
            np.testing.assert_array_equal(view.count(Block(encode(many))), in_parts)
            np.testing.assert_array_equal(view.count(Block(encode(many.astype(float)))), in_parts)
            np.testing.assert_array_equal(
                view.locate(encode(many)), np.concatenate([view.locate(encode(part)) for part in np.split(many, 8)])
            )


def test_a_mechanism_whose_large_batches_are_integers() -> None:
    def mechanism(data: int, size: int, rng: np.random.Generator) -> Any:
        noisy = data + rng.laplace(size=size)
        return np.rint(noisy).astype(int) if size >= FEWEST_COUNTED else noisy

    result = dpaudit.audit(dpaudit.batched(mechanism), dpaudit.PureDP(1.0), [(0, 1)], samples=500_000, seed=0)
    assert result.verdict is not dpaudit.Verdict.VIOLATION


@pytest.mark.parametrize(("width", "most"), [(10, 65_536), (4_000, 1000), (100_000, 160), (10_000_000, 8)])
def test_outputs_that_are_kept_fit_into_memory(width: int, most: int) -> None:
    """At most 128 MB of each side, or eight outputs. The outputs here are one number in memory, whatever their width."""
    learner = Learner(build_views)
    batch = encode(np.broadcast_to(np.float32(0.5), (1, 2)))
    wide = replace(batch, numbers=np.broadcast_to(np.float32(0.5), (1, width)))
    learner.features = False
    learner._kept = [(wide, wide)]
    assert learner.rows_to_keep() == most


def test_coordinates_are_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 50, 1000))
    sides[1, :, ::5] *= 9.0
    at_once = scores.informative(*sides)
    monkeypatch.setattr(scores, "COMPARED_AT_ONCE", 700)
    assert scores.informative(*sides) == at_once
    assert set(range(0, 1000, 5)) < set(at_once)
