"""Counting without a sort, and scores learned from counts."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpaudit
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.learner import Learner, Settled
from dpaudit.engine.views.partition import RASTER, KeyTable, Line, Raster, line_from
from dpaudit.engine.views.scores import BINS as HEIGHTS
from dpaudit.engine.views.scores import (
    GROUPS,
    WIDTH,
    LinearScore,
    Lookup,
    NaiveBayes,
    _in_pieces,
    fit_heights,
    fit_linear,
    fit_naive_bayes,
    sum_tables,
)
from dpaudit.engine.views.view import Block, ScoreView

LAWS = {
    "laplace": lambda rng, size: rng.laplace(size=size),
    "far from zero": lambda rng, size: 1e4 + rng.normal(size=size),
    "tiny": lambda rng, size: 1e-200 * rng.normal(size=size),
    "across zero, coarse": lambda rng, size: np.round(rng.normal(size=size), 6) + 1e-9 * rng.random(size),
    "one-sided": lambda rng, size: rng.exponential(size=size),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_histogram_counts_what_a_sorted_search_counts(law: str) -> None:
    rng = np.random.default_rng(1)
    line = line_from(LAWS[law](rng, 60_000), resolution=64)
    assert line.raster is not None
    fresh = LAWS[law](rng, 50_000)
    # The cuts themselves, and the floats next to them, are where an edge could be off by one.
    inner = line.cuts[1:-1]
    values = np.concatenate(
        [fresh, inner, np.nextafter(inner, -np.inf), np.nextafter(inner, np.inf), [-1e308, 1e308, 0.0]]
    )
    np.testing.assert_array_equal(line.tally(values), line.count(SortedSample(np.sort(values))))
    assert (np.diff(line.cuts) > 0.0).all()
    assert line.cells - 4 >= 0.9 * 64


@given(keys=st.sets(st.integers(0, 12)), values=st.lists(st.integers(0, 12)))
def test_a_table_counts_what_a_counter_counts(keys: set[int], values: list[int]) -> None:
    often = Counter(values)
    expected = [*(often[key] for key in sorted(keys)), sum(n for value, n in often.items() if value not in keys)]
    distinct = np.array(list(often), dtype=np.uint64)
    table = KeyTable(np.array(sorted(keys), dtype=np.uint64))
    assert table.count(SortedSample(np.sort(np.array(values, dtype=np.uint64)))).tolist() == expected
    assert (
        table.count(SortedSample.counted(distinct, np.array(list(often.values()), dtype=np.int64))).tolist() == expected
    )


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_special_values_are_counted_in_their_own_cells(special: float) -> None:
    rng = np.random.default_rng(2)
    line = line_from(rng.normal(size=60_000), resolution=32)
    values = np.append(rng.normal(size=1000), special)
    counts = line.tally(values)
    np.testing.assert_array_equal(counts, line.count(SortedSample(np.sort(values))))
    assert counts[[0, -2, -1]].sum() == 1


def test_no_raster_where_it_would_blur_the_cells() -> None:
    rng = np.random.default_rng(3)
    assert line_from(rng.standard_cauchy(size=60_000) ** 3, resolution=64).raster is None
    assert line_from(rng.integers(0, 9, size=60_000).astype(float), resolution=64).raster is None  # exact values


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20, unique=True), st.floats(-1e7, 0.0), st.floats(1.0, 1e7))
def test_the_cut_of_a_bin_is_the_smallest_float_in_it(edges: list[float], low: float, high: float) -> None:
    made = Raster.under(np.sort(np.clip(edges, low, high)), low, high)
    if made is None:
        return
    raster, cuts = made
    assert (raster.place(cuts) >= raster.starts[1:]).all()
    assert (raster.place(np.nextafter(cuts, -np.inf)) < raster.starts[1:]).all()
    assert ((raster.starts[1:] > 0) & (raster.starts < RASTER.bins)[1:]).all()


def test_heights_are_the_log_ratios_of_the_groups_the_counts_support() -> None:
    # One coordinate split in two at its median with ratio 3, one without any difference, and NaN more often on one side.
    counts = np.zeros((2, 2, WIDTH), dtype=np.int64)
    counts[0, 0, :512], counts[0, 0, 512:HEIGHTS] = 1000, 3000
    counts[0, 1, :512], counts[0, 1, 512:HEIGHTS] = 3000, 1000
    counts[1, :, :HEIGHTS] = 2000
    counts[1, 0, HEIGHTS], counts[1, 1, HEIGHTS] = 40_000, 20_000
    counts[0, 0, HEIGHTS + 1] = 500  # an exact value that occurs on one side only
    heights = fit_heights(counts)
    assert np.unique(heights[0, :512].round(12)).size == np.unique(heights[0, 512:HEIGHTS].round(12)).size == 1
    assert heights[0, HEIGHTS - 1] == pytest.approx(math.log(3.0), abs=0.01)
    assert heights[0, 0] == pytest.approx(-math.log(3.0), abs=0.01)
    assert heights[1, HEIGHTS] == pytest.approx(math.log(2.0), abs=0.03)
    assert heights[0, HEIGHTS + 1] > 3.0


def test_a_faint_signal_is_not_drowned_by_fine_tables() -> None:
    """Per bin the noise exceeds the signal; joined into few groups it does not, and that is what is chosen."""
    rng = np.random.default_rng(4)
    law = np.full(HEIGHTS, 1.0 / HEIGHTS)
    tilted = law * np.where(np.arange(HEIGHTS) < HEIGHTS // 2, 0.98, 1.02)
    counts = np.zeros((20, 2, WIDTH), dtype=np.int64)
    for coordinate in range(20):
        counts[coordinate, 0, :HEIGHTS] = rng.multinomial(200_000, tilted)
        counts[coordinate, 1, :HEIGHTS] = rng.multinomial(200_000, law)
    heights = fit_heights(counts)[:, :HEIGHTS]
    truth = np.log(tilted / law)
    agreement = [np.corrcoef(row, truth)[0, 1] for row in heights]
    assert np.mean(agreement) > 0.9
    assert all(np.unique(row).size <= 8 for row in heights)
    assert max(GROUPS) == HEIGHTS


@pytest.mark.parametrize("differences", [False, True])
def test_scores_and_statistics_do_not_depend_on_the_batch(differences: bool) -> None:
    rng = np.random.default_rng(5)
    outputs = rng.normal(size=(20_000, 3))
    outputs[::50, 1] = np.nan
    outputs[::70, 2] = np.inf
    whole = encode(outputs)
    score, statistics = fit_naive_bayes(whole, encode(outputs + 0.5), differences=differences)
    pieces = [encode(outputs[start : start + 137]) for start in range(0, len(outputs), 137)]
    np.testing.assert_array_equal(score(whole), np.concatenate([score(piece) for piece in pieces]))
    np.testing.assert_array_equal(statistics[0], sum(score.study(piece)[1] for piece in pieces))
    np.testing.assert_array_equal(score.study(whole)[0], score(whole))
    again = score.refitted(statistics)
    np.testing.assert_array_equal(again(whole), score(whole))


def test_places_by_hand() -> None:
    lookup = Lookup(-0.5, 1.0, (0.49, 1e9), np.zeros(WIDTH))
    values = np.array([0.0, 0.49, 0.51, 3.0, -7.0, 1e10, math.inf, -math.inf, math.nan, 1e9])
    last = HEIGHTS - 1
    places = np.minimum(lookup.places(values), WIDTH - 1)  # where there is no number, any from the last on
    assert places.tolist() == [0, HEIGHTS, 1, 3, 0, last, last, 0, WIDTH - 1, HEIGHTS + 1]


def test_an_absent_number_has_its_own_cell() -> None:
    """Quiet and signalling, of either sign and with anything in its lowest bits."""
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF00000000003FF], np.uint64)
    with np.errstate(invalid="ignore"):
        places = Lookup(0.0, 1.0, (), np.zeros(WIDTH)).places(bits.view(np.float64))
    assert (places >= WIDTH - 1).all()


def rounds_of(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.laplace(size=(size, 6)), 0.05 + rng.laplace(size=(size, 6))


def test_scores_are_fitted_again_on_what_was_counted() -> None:
    """After the refit the score is a function of counts of earlier rounds alone, and its past starts from kept outputs."""
    rng = np.random.default_rng(6)
    learner = Learner(partial(build_views, boosted=False), horizon=8 * 140_000)
    for _ in range(24):
        sides = tuple(encode(side) for side in rounds_of(rng, 8_000))
        counts = tuple(
            np.stack([v.study(Block(b)) if isinstance(v, ScoreView) else v.count(Block(b)) for b in sides])
            for v in learner.views
        )
        before, version = learner.views, learner.version
        learner.settle(
            Settled(counts, sides if learner.rows_to_keep() else (sides[0].first(0), sides[1].first(0))), 8_000
        )
        if learner.version > version:
            break
    assert learner.version > 0
    assert learner.seen >= 140_000
    scores = {view.name: view.score for view in learner.views if isinstance(view, ScoreView)}
    older = {view.name: view.score for view in before if isinstance(view, ScoreView)}
    assert isinstance(scores["naive Bayes"], NaiveBayes)
    fresh = [encode(side) for side in rounds_of(np.random.default_rng(7), 200_000)]

    def told_apart(score: NaiveBayes) -> float:
        a, b = score(fresh[0]), score(fresh[1])
        return abs(float(a.mean() - b.mean())) / math.sqrt(float(a.var() + b.var()))

    assert told_apart(scores["naive Bayes"]) > told_apart(older["naive Bayes"])
    counted = learner.counted()
    assert 10_000 < counted < learner.seen  # the new score has not been counted on all that it was fitted on,
    assert learner.halves() == (slice(32_000), slice(32_000, 64_000))  # and what an event is counted on is none of that


def test_lines_without_a_raster_tally_too() -> None:
    line = Line(np.array([-1.7e308, 0.0, 1.0, np.inf]))
    for values in itertools.permutations([-1.0, 0.0, 0.5, 1.0]):
        assert line.tally(np.array(values)).tolist() == line.count(SortedSample(np.sort(values))).tolist()


@pytest.mark.parametrize("probability", [0.02, 0.005])
def test_an_exact_value_in_one_coordinate_is_found(probability: float) -> None:
    """A coordinate that is released raw now and then repeats exactly, which no interval sees."""

    def sometimes_raw(data: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        outputs = data + rng.laplace(size=(size, 3))
        outputs[:, 1] = np.where(rng.random(size) < probability, data[1], outputs[:, 1])
        return outputs

    pair = (np.zeros(3), np.array([0.0, 0.5, 0.0]))
    result = dpaudit.audit(
        dpaudit.batched(sometimes_raw), dpaudit.PureDP(1.0), [pair], samples=60_000, seed=0, shrink=False
    )
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.witness is not None


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (409, 20), (410, 20), (5, 2000), (1000, 64)])
def test_pieces_hold_all_rows_and_nothing_else(rows: int, width: int) -> None:
    values = np.random.default_rng(1).normal(size=(rows, width))
    pieces = _in_pieces(values)
    np.testing.assert_array_equal(pieces.reshape(-1, width)[:rows], values)
    assert not pieces.reshape(-1, width)[rows:].any()
    np.testing.assert_allclose((pieces.transpose(0, 2, 1) @ pieces).sum(axis=0), values.T @ values, atol=1e-9)


def test_linear_weights_are_those_of_ridge_regression() -> None:
    """Against a general minimiser, in the units of the fit: medians taken off, divided by the mean distance from them."""
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(900, 3)), rng.normal(size=(900, 3)) @ np.diag([1.0, 1.5, 1.0]) + [0.5, 0.0, -0.2]
    values = np.concatenate([one, other])
    centre = np.median(values, axis=0)
    spread = np.abs(values - centre).mean(axis=0)
    scaled = np.clip((values - centre) / spread, -5.0, 5.0)
    sign = np.repeat([1.0, -1.0], 900)

    def loss(weights: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -sign * (scaled @ weights)).sum() + 0.5 * weights @ weights)

    found = fit_linear(encode(one), encode(other))
    assert found is not None
    best = minimize(loss, np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(found.weights * spread, best.x, atol=1e-5)
    batch = encode(values[:5])
    np.testing.assert_allclose(found(batch), (values[:5] - centre) @ found.weights, atol=1e-12)


@pytest.mark.parametrize(("width", "top"), [(2, 1), (5, 9), (12, 1), (20, 1), (25, 3), (9, 100)])
def test_rows_of_small_integers_are_counted_as_the_same_rows_of_floats_and_as_each_alone(width: int, top: int) -> None:
    """Tables of patterns depend on which integers a batch holds; no count may show that."""
    rng = np.random.default_rng(width)
    sides = [rng.integers(0, top + 1, (9000, width)).astype(np.int8) for _ in range(2)]
    sides[1][:, 1] = np.where(rng.random(9000) < 0.3, 0, sides[1][:, 1])
    built = build_views((encode(sides[0]), encode(sides[1])))
    learner = Learner(build_views, horizon=10**8)
    learner.settle(Settled((), (encode(sides[0]), encode(sides[1]))), 9000)
    assert any(view.studies for view in learner.views if isinstance(view, ScoreView)) or width == 2
    batch = rng.integers(0, top + 1, (9000, width)).astype(np.int8)
    odd = batch.copy()
    odd[4711] = 101  # other digits, other tables
    odd[4712, 0] = -3
    for rows in (batch, odd):
        for view in [*(view for view, _ in built), *learner.views]:
            study = view.study if isinstance(view, ScoreView) else view.count
            together = study(Block(encode(rows)))
            np.testing.assert_array_equal(together, study(Block(encode(rows.astype(np.float64)))))
            pieces = [encode(rows[start : start + 300]) for start in range(0, len(rows), 300)]
            np.testing.assert_array_equal(together, sum(study(Block(piece)) for piece in pieces))
            groups = Block(encode(rows)).groups
            if isinstance(view, ScoreView) and isinstance(view.score, NaiveBayes | LinearScore) and groups is not None:
                assert view.score.exact
                summed = sum_tables(view.score, encode(rows), groups)
                np.testing.assert_array_equal(summed, view.score(encode(rows.astype(np.float64))))
            located = np.bincount(view.locate(encode(rows)), minlength=view.cells)
            np.testing.assert_array_equal(together[: view.cells], located)
    repeats = [view.unknown(Block(encode(odd))) for view in learner.views if view.name == "record"]
    assert repeats == [
        view.unknown(Block(encode(odd.astype(float)))) for view in learner.views if view.name == "record"
    ]
