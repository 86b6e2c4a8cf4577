"""AboveThreshold, the sparse vector technique and HistogramMethod: laws, tight epsilons, bugs and refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import Relation, Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.exact.verification import verify
from mechanisms.above_threshold import AboveThreshold, first_above
from mechanisms.broken.histogram_method import printed_histogram_method, slides_histogram_method
from mechanisms.broken.sparse_vector import half_noise_above_threshold, svt3, svt4, svt5, svt6
from mechanisms.histogram_method import AS_PRINTED, HistogramMethod, PrintedBugs
from mechanisms.sparse_vector import SparseVector, numerical_svt, svt1, svt2


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def pmf(law) -> dict:
    return dict(zip(law.outcomes, np.exp(law.log_probabilities), strict=True))


# ------------------------------------------------------------------------------------------------------ AboveThreshold


def test_above_threshold_law_reference():
    # reference value at_pmf_5q (mpmath, closed form): y=(0,1,3,5,8), T=4, eps=1.3
    want = [0.1693089323202860887, 0.1689797451936872655, 0.2244141352803172152]
    want += [0.2229143844765654142, 0.1541919307917756207, 0.06019087193736839565]
    assert list(pmf(AboveThreshold(1.3, 4.0).law([0, 1, 3, 5, 8])).values()) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("queries", range(1, 7))
def test_above_threshold_reaches_min_m_4_over_4(queries):  # docs/theory.md R3
    mechanism = AboveThreshold(1.0, 0.0)
    far = 1600.0
    answers = np.array([far] * (queries - 1) + [-1e5])
    moved = answers + np.array([1.0] * (queries - 1) + [-1.0])
    reached = exact.epsilon(mechanism.law(answers), mechanism.law(moved))
    assert reached == pytest.approx(mechanism.epsilon_exact(queries), abs=1e-3)
    assert mechanism.epsilon_exact(queries) == min(queries, 4) / 4
    assert reached <= mechanism.epsilon_exact(queries) * (1 + 1e-9)


def monotone_pair(queries: int, far: float) -> tuple[np.ndarray, np.ndarray]:
    """All but the last answer move up: what an outcome at the last one costs under monotone moves."""
    answers = np.array([far] * (queries - 1) + [-10 * far])
    return answers, answers + np.array([1.0] * (queries - 1) + [0.0])


@pytest.mark.parametrize(("queries", "share"), [(2, 0.25), (3, 0.5), (4, 0.75), (6, 0.75)])
def test_above_threshold_monotone_worst_case(queries, share):
    # docs/theory.md R3, index outcomes: eps max(1, min(m-1, 3)) / 4
    mechanism = AboveThreshold(1.0, 0.0)
    a, b = monotone_pair(queries, 1600.0)
    reached = exact.epsilon(mechanism.law(a), mechanism.law(b), order="forward")
    assert reached == pytest.approx(share, abs=2e-3)
    assert reached <= mechanism.epsilon_exact(queries, monotone=True) * (1 + 1e-9)


def test_monotone_values_of_theory_r3():
    mechanism = AboveThreshold(1.0, 0.0)
    got = [mechanism.epsilon_exact(m, monotone=True) for m in range(1, 7)]
    assert got == [0.25, 0.5, 0.5, 0.75, 0.75, 0.75]
    both_up = np.array([300.0, 300.0])
    reached = exact.epsilon(mechanism.law(both_up), mechanism.law(both_up + 1.0))
    assert reached == pytest.approx(0.5, abs=1e-2)  # the outcome -1 of two queries


def test_monotone_noise_is_tight_for_monotone_answers_and_too_little_for_others():  # docs/theory.md R5
    mechanism = AboveThreshold(1.0, 0.0, monotone=True)
    a, b = monotone_pair(4, 200.0)
    assert exact.epsilon(mechanism.law(a), mechanism.law(b)) == pytest.approx(1.0, abs=1e-5)
    found = verify(mechanism, mechanism.claim, neighbours.answers(3, -50, 50, monotone=True), examples=40)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    b[-1] -= 1.0
    assert exact.epsilon(mechanism.law(a), mechanism.law(b)) == pytest.approx(1.5, abs=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.data(), st.floats(0.1, 5.0), st.floats(-3.0, 3.0))
def test_above_threshold_never_exceeds_its_claim(data, epsilon, threshold):
    length = data.draw(st.integers(1, 5))
    a, b = data.draw(neighbours.answers(length, -20, 20).strategy)
    mechanism = AboveThreshold(epsilon, threshold)
    reached = exact.epsilon(mechanism.law(a), mechanism.law(b))
    assert reached <= mechanism.epsilon_exact(length) * (1 + 1e-9)
    assert mechanism.epsilon_exact(length) <= epsilon * (1 + 1e-12)


def test_above_threshold_with_queries():
    mechanism = AboveThreshold(1e3, 1.5, queries=(len, sum), relation=Relation.ADD_REMOVE)
    assert (mechanism.sample([0, 9], 10, rng()) == 0).all()
    assert (mechanism.sample([5], 10, rng()) == 1).all()
    assert (mechanism.sample([], 10, rng()) == -1).all()


def test_sensitivity_scales_the_noise():
    plain, scaled = AboveThreshold(1.0, 2.0), AboveThreshold(1.0, 20.0, sensitivity=10.0)
    answers = np.array([0.0, 3.0, 1.0])
    assert exact.epsilon(plain.law(answers), scaled.law(10 * answers)) == pytest.approx(0.0, abs=1e-9)
    assert scaled.epsilon_exact(9) == 1.0


def test_runs_of_equal_answers_are_the_same_in_law_as_the_loop():
    # 3 sigma-style agreement is checked in test_samplers.py; here: certain outcomes, and the index inside a run.
    answers = np.array([-1e9] * 5 + [1e9] * 3 + [-1e9])
    assert (first_above(answers, 0.0, 1.0, 1.0, 50, rng()) == 5).all()
    assert (first_above(np.full(7, -1e9), 0.0, 1.0, 1.0, 50, rng()) == -1).all()
    inside = first_above(np.full(10, 0.0), 20.0, 1.0, 4.0, 20_000, rng())
    assert set(np.unique(inside)) == set(range(-1, 10))


# -------------------------------------------------------------------------------------------------------- sparse vector


def catalogue_worst(mechanism, queries: int) -> float:
    """Largest exact epsilon over the published patterns: all ones against eight neighbours."""
    pairs = neighbours.answers(queries, 0, 2).corners()[:8]
    return max(exact.epsilon(mechanism.law(a), mechanism.law(b)) for a, b in pairs)


def test_svt_on_the_published_patterns():
    # catalogue rows 9, 12, 14 at nominal 0.1 with ten queries
    assert catalogue_worst(svt1(epsilon=0.1, threshold=0.5), 10) == pytest.approx(0.0885, abs=5e-5)
    assert catalogue_worst(svt6(epsilon=0.1, threshold=1.0), 10) == pytest.approx(0.4200, abs=5e-5)
    assert 0.1719 < catalogue_worst(svt4(epsilon=0.1, threshold=1.0), 10) < 0.175
    assert catalogue_worst(svt5(epsilon=0.1, threshold=1.0), 10) == math.inf


def test_svt1_is_above_threshold():
    answers = [0.0, 1.0, 3.0, 5.0]
    first = pmf(AboveThreshold(1.3, 2.0).law(answers))
    for outcome, probability in pmf(svt1(epsilon=1.3, threshold=2.0).law(answers)).items():
        index = outcome.index(1) if 1 in outcome else -1
        assert probability == pytest.approx(first[index], rel=1e-12)
        assert outcome[index + 1 :] == (-1,) * (3 - index) or index == -1


@pytest.mark.parametrize("hits", [1, 2, None])
def test_svt_law_against_direct_integration(hits):
    from scipy.integrate import quad
    from scipy.stats import laplace

    answers, mechanism = (
        [0.0, 2.5, 1.0],
        SparseVector(epsilon=1.0, threshold=1.0, threshold_scale=1.5, query_scale=0.8, hits=hits),
    )
    got = pmf(mechanism.law(answers))
    assert sum(got.values()) == pytest.approx(1.0, rel=1e-12)
    for outcome, probability in got.items():

        def integrand(z, outcome=outcome):
            below = laplace.cdf(1.0 + z - np.array(answers), scale=0.8)
            factors = [1 - p if o == 1 else p if o == 0 else 1.0 for p, o in zip(below, outcome, strict=True)]
            return laplace.pdf(z, scale=1.5) * math.prod(factors)

        points = [-60.0, -1.0, 0.0, 1.5, 60.0]
        want = sum(quad(integrand, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(points))
        assert probability == pytest.approx(want, rel=1e-7, abs=1e-12)


def test_redrawn_threshold_multiplies_independent_parts():
    mechanism = svt2(epsilon=2.0, threshold=1.0, hits=2)
    answers = [0.5, 2.0, 1.0, 3.0]
    got = pmf(mechanism.law(answers))
    assert sum(got.values()) == pytest.approx(1.0, rel=1e-12)
    single = replace(mechanism, hits=1)
    first, rest = pmf(single.law(answers)), pmf(single.law(answers[2:]))
    assert got[0, 1, 0, 1] == pytest.approx(first[0, 1, -1, -1] * rest[0, 1], rel=1e-12)
    assert got[0, 1, 1, -1] == pytest.approx(first[0, 1, -1, -1] * rest[1, -1], rel=1e-12)
    assert got[0, 0, 0, 0] == pytest.approx(first[0, 0, 0, 0], rel=1e-12)


def test_noiseless_svt_law():
    # the answer order shows: (1, 0) needs answers[0] > T + z >= answers[1]
    got = pmf(svt5(epsilon=1.0, threshold=0.0).law([2.0, -1.0]))
    scale = 2.0
    assert got[1, 1] == pytest.approx(0.5 * math.exp(-1 / scale), rel=1e-13)
    assert got[0, 0] == pytest.approx(0.5 * math.exp(-2 / scale), rel=1e-13)
    assert got[1, 0] == pytest.approx(1 - 0.5 * math.exp(-1 / scale) - 0.5 * math.exp(-2 / scale), rel=1e-13)
    assert got[0, 1] == 0.0


EXACT = [
    (svt1(epsilon=0.1, threshold=0.5), 10, 0.1),
    (svt2(epsilon=0.1, threshold=1.0), 10, 0.1),
    (svt1(epsilon=1.0, threshold=0.0, hits=3), 20, 1.0),
    (svt2(epsilon=1.0, threshold=0.0, hits=3), 20, 1.0),
    (numerical_svt(epsilon=0.1, threshold=1.0, hits=2), 10, 0.1),
    (svt3(epsilon=0.1, threshold=1.0), 10, 0.5),
    (svt4(epsilon=0.1, threshold=1.0), 10, 0.175),
    (svt4(epsilon=0.1, threshold=1.0, hits=2), 10, 0.325),
    (svt5(epsilon=0.1, threshold=1.0), 10, math.inf),
    (svt6(epsilon=0.1, threshold=1.0), 10, 0.5),
    (half_noise_above_threshold(epsilon=1.0, threshold=0.0), 10, 1.5),
]


@pytest.mark.parametrize(("mechanism", "queries", "want"), EXACT, ids=range(len(EXACT)))
def test_svt_epsilon_exact(mechanism, queries, want):
    assert mechanism.epsilon_exact(queries) == pytest.approx(want, rel=1e-12)


LIMITS = [
    svt1(epsilon=0.5, threshold=0.0),
    svt1(epsilon=0.5, threshold=0.0, hits=2),
    svt2(epsilon=0.5, threshold=0.0, hits=2),
    svt4(epsilon=0.5, threshold=0.0),
    svt6(epsilon=0.5, threshold=0.0),
    SparseVector(epsilon=1.0, threshold=0.0, threshold_scale=10.0, query_scale=1.0, hits=None),
    SparseVector(epsilon=1.0, threshold=0.0, threshold_scale=0.5, query_scale=4.0, hits=2),
]


@pytest.mark.parametrize("mechanism", LIMITS, ids=range(len(LIMITS)))
@pytest.mark.parametrize("queries", [1, 2, 4])
def test_svt_epsilon_exact_is_the_supremum(mechanism, queries):
    """Reached, up to what a finite distance leaves, by misses far above and hits far below that move apart."""
    reached = 0.0
    far = 400.0 * max(mechanism.threshold_scale, mechanism.query_scale)
    for hits in itertools.product((0, 1), repeat=queries):
        direction = 1.0 - 2.0 * np.array(hits)
        if mechanism.hits is not None and sum(hits) > mechanism.hits:
            continue
        for down, up in ((1.0, 7.0), (7.0, 1.0)):
            answers = far * np.where(direction > 0, up, -down)
            reached = max(reached, exact.epsilon(mechanism.law(answers), mechanism.law(answers + direction)))
    want = mechanism.epsilon_exact(queries)
    assert reached <= want * (1 + 1e-9)
    assert reached == pytest.approx(want, rel=6e-3)


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from(LIMITS))
def test_no_pair_exceeds_epsilon_exact(data, mechanism):
    length = data.draw(st.integers(1, 4))
    a, b = data.draw(neighbours.answers(length, -30, 30).strategy)
    assert exact.epsilon(mechanism.law(a), mechanism.law(b)) <= mechanism.epsilon_exact(length) * (1 + 1e-9)


def test_svt_outputs():
    indicators = svt1(epsilon=1.0, threshold=0.0, hits=2).sample([0.0] * 6, 500, rng())
    assert indicators.dtype == np.int8
    assert indicators.shape == (500, 6)
    assert ((indicators == 1).sum(axis=1) <= 2).all()
    for row in indicators:
        if (row == 1).sum() == 2:
            last = np.flatnonzero(row == 1)[-1]
            assert (row[last + 1 :] == -1).all()
        else:
            assert (row >= 0).all()
    values = numerical_svt(epsilon=1.0, threshold=0.0, hits=2).sample([0.0] * 6, 500, rng())
    assert values.dtype == np.float64
    assert ((~np.isnan(values)).sum(axis=1) <= 2).all()
    assert (~np.isnan(values)).any()
    raw = svt3(epsilon=1e4, threshold=0.0).sample([-5.0, 7.0, 9.0], 20, rng())
    assert np.isnan(raw[:, [0, 2]]).all()
    assert raw[:, 1] == pytest.approx(7.0, abs=1e-2)


@pytest.mark.parametrize("hits", [127, 128, 300])
@pytest.mark.parametrize("size", [1, 3000])
def test_svt_with_more_hits_than_a_byte_counts(hits, size):
    """Every answer is far above, so the first so many are hits and nothing comes after them."""
    states = svt1(epsilon=1e6, threshold=0.0, hits=hits).sample([1e3] * 400, size, rng())
    assert (states[:, :hits] == 1).all()
    assert (states[:, hits:] == -1).all()


# ----------------------------------------------------------------------------------------------------- HistogramMethod


def rows_at(position: float, count: int, other: float) -> tuple[np.ndarray, np.ndarray]:
    data = np.full(count, 0.001)
    moved = data.copy()
    moved[-1] = other
    return data, moved


def test_histogram_law_reference():
    # reference value hist_decile5_fixed10: rows .05, ..., .95, five steps, eps=9; indices 0..4 and -1
    want = [0.277722675135938166603, 0.268541233133752054506, 0.221152424562034668064]
    want += [0.134261689876529113644, 0.0615134204411209665266, 0.0368085568506250306568]
    law = HistogramMethod(9.0, 0.0, 1.0, steps=5, edge="left").law(np.arange(0.05, 1.0, 0.1))
    assert np.exp(law.laws[4].log_probabilities) == pytest.approx(want, rel=1e-12)
    assert np.array(law.laws[4].outcomes) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_histogram_reaches_three_quarters_under_substitution():  # docs/theory.md R5
    mechanism = HistogramMethod(9.0, 0.0, 1.0, steps=41)
    data, moved = rows_at(0.001, 400, 0.96)
    reached = exact.epsilon(mechanism.law(data), mechanism.law(moved))
    assert reached == pytest.approx(0.75 * 9.0, rel=1e-6)
    assert mechanism.epsilon_bound == pytest.approx(0.75 * 9.0)
    tight = replace(mechanism, monotone_noise=True)
    assert exact.epsilon(tight.law(data), tight.law(moved)) == pytest.approx(9.0, rel=1e-6)
    assert tight.epsilon_bound == pytest.approx(9.0)


def test_histogram_reaches_one_half_under_addition():  # docs/theory.md R5
    mechanism = HistogramMethod(9.0, 0.0, 1.0, steps=41, relation=Relation.ADD_REMOVE)
    data = np.full(4000, 0.001)
    assert exact.epsilon(mechanism.law(data), mechanism.law(np.append(data, 0.5))) == pytest.approx(4.5, rel=1e-3)
    assert mechanism.epsilon_bound == pytest.approx(4.5)


HISTOGRAMS = [
    HistogramMethod(3.0, 0.0, 1.0, steps=4),
    HistogramMethod(3.0, 0.0, 1.0, steps=7, quantiles=(0.25, 0.5, 0.75), edge="middle"),
    HistogramMethod(3.0, 0.0, 1.0, steps=6, monotone_noise=True),
    printed_histogram_method(3.0, 0.0, 1.0, 3),
    HistogramMethod(3.0, 0.0, 1.0, steps=4, relation=Relation.ADD_REMOVE),
    HistogramMethod(3.0, 0.0, 1.0, steps=3, relation=Relation.ADD_REMOVE, bugs=AS_PRINTED),
    HistogramMethod(3.0, 0.0, 1.0, steps=3, relation=Relation.ADD_REMOVE, quantiles=(0.1, 0.05)),
]


@pytest.mark.parametrize("mechanism", HISTOGRAMS, ids=range(len(HISTOGRAMS)))
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_histogram_never_exceeds_its_bound(mechanism, data):
    rows = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
    relation = neighbours.substitute if mechanism.relation is Relation.SUBSTITUTE else neighbours.add_remove
    a, b = data.draw(relation(rows, max_size=6).strategy)
    reached = exact.epsilon(mechanism.law(a), mechanism.law(b))
    assert reached <= mechanism.epsilon_bound * (1 + 1e-9) <= mechanism.epsilon * (1 + 2e-9)


def test_printed_bugs_one_by_one():  # docs/theory.md R6
    data = np.linspace(-4.5, 4.5, 200)
    fixed = HistogramMethod(2000.0, -5.0, 5.0, steps=10)
    deciles = fixed.sample(data, 20, rng()).mean(axis=0)
    assert np.abs(deciles - np.quantile(data, np.arange(0.1, 1.0, 0.1))).max() < 1.0 + 1e-9
    offset = replace(fixed, bugs=PrintedBugs(missing_offset=True)).sample(data, 20, rng())
    assert (offset >= 0.0).all()  # the grid starts at 0: deciles below it are unreachable
    left = replace(fixed, bugs=PrintedBugs(left_edge=True)).sample(data, 20, rng()).mean(axis=0)
    assert deciles - left == pytest.approx(np.ones(9), abs=1e-9)
    few = replace(fixed, epsilon=0.05)
    assert few.sample(data, 400, rng()).max() <= 5.0
    assert replace(few, bugs=PrintedBugs(queries_never_cleared=True)).sample(data, 400, rng()).max() > 5.0
    assert replace(few, bugs=PrintedBugs(none_below_range=True)).sample(data, 400, rng()).min() < -5.0


def test_slides_steps_leak_the_number_of_rows():  # docs/theory.md R5
    mechanism = slides_histogram_method(1.0, 0.0, 1.0)
    data = np.linspace(0.1, 0.9, 10)
    assert exact.epsilon(mechanism.law(data), mechanism.law(data[1:])) == math.inf
    assert mechanism.epsilon_bound == math.inf
    public = slides_histogram_method(1.0, 0.0, 1.0, relation=Relation.SUBSTITUTE)
    moved = np.append(data[1:], 1.0)
    assert exact.epsilon(public.law(data), public.law(moved)) <= 0.75 * (1 + 1e-9)


REFUSED = [
    (lambda: AboveThreshold(0.0, 1.0), "epsilon=0.0"),
    (lambda: AboveThreshold(1.0, math.nan), "threshold=nan"),
    (lambda: AboveThreshold(1.0, 1.0, queries=()), "empty"),
    (lambda: AboveThreshold(1.0, 1.0).sample([], 1, rng()), "empty"),
    (lambda: AboveThreshold(1.0, 1.0).sample([math.nan], 1, rng()), "nan"),
    (lambda: AboveThreshold(1.0, 1.0).sample([[1.0]], 1, rng()), "dimension"),
    (lambda: svt1(epsilon=-1.0, threshold=0.0), "epsilon=-1.0"),
    (lambda: svt1(epsilon=1.0, threshold=0.0, hits=0), "hits=0|query_scale"),
    (lambda: SparseVector(epsilon=1.0, threshold=0.0, threshold_scale=0.0, query_scale=1.0), "threshold_scale=0.0"),
    (lambda: replace(svt1(epsilon=1.0, threshold=0.0), release="value"), "release='value'"),
    (lambda: replace(svt1(epsilon=1.0, threshold=0.0), value_scale=1.0), "fresh values"),
    (lambda: svt3(epsilon=1.0, threshold=0.0).law([1.0]), "no law object"),
    (lambda: svt6(epsilon=1.0, threshold=0.0).law(np.zeros(20)), "outcomes"),
    (lambda: svt1(epsilon=1.0, threshold=0.0).epsilon_exact(0), "queries=0"),
    (lambda: HistogramMethod(1.0, 1.0, 0.0, steps=3), "low=1.0"),
    (lambda: HistogramMethod(0.0, 0.0, 1.0, steps=3), "epsilon=0.0"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=0), "steps=0"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=2.5), "steps=2.5"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=3, quantiles=()), "quantiles"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=3, quantiles=(1.0,)), "quantile=1.0"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=3, edge="rite"), "edge='rite'"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, relation=Relation.ADD_REMOVE), "different grids"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, relation=Relation.ANSWERS), "relation"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=3).sample([], 1, rng()), "empty"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=3).sample([2.0], 1, rng()), "outside"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0, steps=3).sample([math.nan], 1, rng()), "nan"),
    (lambda: HistogramMethod(1.0, 0.0, 1.0).sample([0.5], 1, rng()), "at least 2"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_refused_with_its_name(make, message):
    with pytest.raises(InvalidArgument, match=message):
        make()
