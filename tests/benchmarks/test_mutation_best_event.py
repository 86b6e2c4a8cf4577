"""The best event and its samples, against closed forms, enumeration and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.mutation.best_event import best_event, cells, nearest_null, samples_needed, trade_off
from dpaudit import exact


def test_cells_give_the_hockey_stick_divergence() -> None:
    """Total excess over cells is delta(epsilon): here the closed form 1 - exp((epsilon - 1/b)/2) of two Laplace laws."""
    for scale, epsilon in itertools.product((0.5, 0.8, 1.0), (0.0, 0.4, 0.9)):
        p, q = cells(exact.Laplace(0.0, scale), exact.Laplace(1.0, scale))
        assert [p.sum(), q.sum()] == pytest.approx([1.0, 1.0], abs=1e-9)
        excess = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
        assert excess == pytest.approx(max(0.0, -math.expm1((epsilon - 1.0 / scale) / 2.0)), abs=5e-5)


def test_cells_of_products_and_of_mixed_laws() -> None:
    first = exact.Product([exact.Discrete({0: 0.7, 1: 0.3}), exact.Gaussian(0.0, 1.0), exact.Laplace(0.0, 1.0)])
    second = exact.Product([exact.Discrete({0: 0.4, 1: 0.6}), exact.Gaussian(1.0, 1.0), exact.Laplace(0.0, 1.0)])
    p, q = cells(first, second)
    assert np.maximum(p - math.e * q, 0.0).sum() == pytest.approx(exact.delta(first, second, 1.0, "forward"), rel=2e-3)
    leaky = [exact.WithAtoms({x: 0.25}, 0.75, exact.DiscreteLaplace(0, 1.0)) for x in (0.5, 3)]
    p, q = cells(*leaky)
    assert np.maximum(p - math.e * q, 0.0).sum() == pytest.approx(exact.delta(*leaky, 1.0, "forward"), abs=1e-9)
    p, q = cells(exact.Product([exact.Laplace(0, 1)]), exact.Product([exact.Laplace(0, 1)] * 2))
    assert (p * q).sum() == 0.0


def test_trade_off_is_the_neyman_pearson_curve() -> None:
    """No union of outcomes lies above it: all 2^5 are tried."""
    rng = np.random.default_rng(5)
    p_mass, q_mass = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    p, q = (np.concatenate([[0.0], side]) for side in trade_off(p_mass, q_mass))
    for chosen in itertools.product((False, True), repeat=5):
        event = np.array(chosen)
        assert p_mass[event].sum() <= np.interp(q_mass[event].sum(), q, p) + 1e-12


@pytest.mark.parametrize(
    ("p", "q", "epsilon", "delta"),
    [(0.7, 0.1, 1.0, 0.0), (0.05, 0.001, 1.0, 0.01), (0.01, 0.0, 1.0, 0.0), (1.0, 0.0, 1.0, 0.0), (0.9, 0.3, 0.5, 0.1)],
)
def test_nearest_null_is_nearest(p: float, q: float, epsilon: float, delta: float) -> None:
    def distance(null_p: np.ndarray, null_q: np.ndarray) -> np.ndarray:
        return stats.entropy([[p] * null_p.size, [1 - p] * null_p.size], [null_p, 1 - null_p]) + stats.entropy(
            [[q] * null_q.size, [1 - q] * null_q.size], [null_q, 1 - null_q]
        )

    grid = np.linspace(q + 1e-9, (p - delta) / math.exp(epsilon), 200_001)[:-1]
    null_p, null_q = nearest_null(p, q, epsilon, delta)
    assert float(null_p) == pytest.approx(min(1.0, math.exp(epsilon) * float(null_q) + delta))
    best = distance(np.atleast_1d(min(null_p, 1.0)), np.atleast_1d(null_q))[0]
    assert best <= distance(math.exp(epsilon) * grid + delta, grid).min() + 1e-9


@pytest.mark.parametrize(("p", "q"), [(0.8, 0.1), (0.3, 0.02), (0.5, 0.0)])
def test_samples_needed_by_enumeration(p: float, q: float) -> None:
    """All outcomes (x, y) sorted by their likelihood ratio: the most powerful test, spelled out."""
    alpha, power = 1e-3, 0.9
    null_p, null_q = (float(x) for x in nearest_null(p, q, 1.0, 0.0))

    def enough(n: int) -> bool:
        counts = np.arange(n + 1)
        with np.errstate(divide="ignore"):
            log_true = np.add.outer(stats.binom.logpmf(counts, n, p), stats.binom.logpmf(counts, n, q)).ravel()
            log_null = np.add.outer(
                stats.binom.logpmf(counts, n, null_p), stats.binom.logpmf(counts, n, null_q)
            ).ravel()
        order = np.argsort(log_null - log_true)
        level = np.cumsum(np.exp(log_null[order]))
        return bool(np.exp(log_true[order])[level <= alpha].sum() >= power)

    needed = samples_needed(p, q, 1.0, alpha=alpha, power=power)
    assert needed % 2 == 0
    # Which n is the first depends on ties and on how the discrete level falls; within two outputs of each side.
    first = next(n for n in range(1, 400) if enough(n))
    assert abs(needed // 2 - first) <= 2


def test_one_sided_certainty() -> None:
    """An output that is certain here and impossible there: (1 - 1/e)^n <= alpha, since q* = 1/e is as large as can be."""
    assert samples_needed(1.0, 0.0, 1.0) == 2 * math.ceil(math.log(1e-6) / math.log1p(-math.exp(-1.0)))


def test_the_best_test_has_its_power() -> None:
    """Simulated: reject where the likelihood ratio of (p, q) to the nearest null is large; false alarm below 1e-6."""
    p, q, alpha, power = 0.4, 0.06, 1e-3, 0.9
    n = samples_needed(p, q, 1.0, alpha=alpha, power=power) // 2
    null_p, null_q = (float(x) for x in nearest_null(p, q, 1.0, 0.0))
    rng = np.random.default_rng(11)
    trials = 200_000

    def ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        true = stats.binom.logpmf(x, n, p) + stats.binom.logpmf(y, n, q)
        return true - stats.binom.logpmf(x, n, null_p) - stats.binom.logpmf(y, n, null_q)

    cut = np.quantile(ratio(rng.binomial(n, null_p, trials), rng.binomial(n, null_q, trials)), 1.0 - alpha)
    reached = (ratio(rng.binomial(n, p, trials), rng.binomial(n, q, trials)) >= cut).mean()
    # 200 of 200,000 are beyond the cut: its error moves the power by a few percent.
    assert abs(reached - power) < 0.03


def test_best_event_of_randomised_response_and_of_a_leak() -> None:
    truth, lie = exact.Discrete({0: 0.8, 1: 0.2}), exact.Discrete({0: 0.2, 1: 0.8})
    event = best_event(truth, lie, 1.0, 0.0)
    assert event is not None
    assert (event.p, event.q) == pytest.approx((0.8, 0.2))
    assert event.samples == samples_needed(event.p, event.q, 1.0)
    leak = [exact.WithAtoms({x: 0.01}, 0.99, exact.Laplace(x, 1.0)) for x in (0.0, 1.0)]
    event = best_event(*leak, 1.0, 0.0)
    assert event is not None
    assert (event.p, event.q) == pytest.approx((0.01, 0.0), abs=1e-12)
    assert best_event(exact.Laplace(0.0, 1.0), exact.Laplace(1.0, 1.0), 1.0, 0.0) is None
