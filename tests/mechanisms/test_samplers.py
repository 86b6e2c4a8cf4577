"""Do the samplers draw from the laws that the mechanisms declare?

Every test has a false-alarm probability of at most 1e-6, by finite-sample bounds: Dvoretzky-Kiefer-Wolfowitz (with
Massart's constant) for distribution functions, exact binomial tails with a union bound for probabilities, Hoeffding for
products of coordinates. And every test has power: the same test on the same draws rejects a law whose noise is off by
10 %.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom, laplace

from dpaudit import exact
from dpaudit.claims import Relation
from mechanisms.above_threshold import AboveThreshold
from mechanisms.broken.gaussian import HalvedVariance, NotesGaussian
from mechanisms.broken.geometric import NaturalLogGeometric
from mechanisms.broken.laplace import MisscaledLaplace, OccasionallyRaw, PrefixSum
from mechanisms.broken.noisy_max import NoisyMaxValue
from mechanisms.broken.sparse_vector import svt3, svt5, svt6
from mechanisms.composition import Composition
from mechanisms.exponential import ExponentialMechanism, FilmRecommendation
from mechanisms.gaussian import GaussianMechanism
from mechanisms.geometric import DiscreteLaplaceMechanism, TruncatedGeometric
from mechanisms.histogram_method import AS_PRINTED, HistogramMethod
from mechanisms.inverse_sensitivity import InverseSensitivityMean, InverseSensitivityQuantile
from mechanisms.laplace import LaplaceMechanism
from mechanisms.median import LaplaceMedian
from mechanisms.noisy_histogram import NoisyHistogram
from mechanisms.noisy_max import ReportNoisyMax
from mechanisms.randomised_response import RandomisedResponse, RangeResponse
from mechanisms.rappor import Rappor
from mechanisms.sparse_vector import numerical_svt, svt1, svt2

FALSE_ALARM = 1e-6
SIZE = 100_000


def fits(law: Any, outputs: Any, alpha: float = FALSE_ALARM) -> bool:
    """Return True if the outputs may come from the law; a right one is refused with probability at most alpha."""
    if isinstance(law, exact.Product):
        share = alpha / (len(law.laws) + 1)
        columns = list(np.asarray(outputs).T)
        return all(fits(one, column, share) for one, column in zip(law.laws, columns, strict=True)) and uncorrelated(
            law, columns, share
        )
    form = law.form()
    outputs = np.asarray(outputs)
    if form.continuous is None:
        return counts_fit(form, counted(outputs), outputs.shape[0], alpha)
    at_atom = np.isin(outputs, sorted(form.atoms))
    if form.atoms and not counts_fit(form, counted(outputs[at_atom]), outputs.size, alpha / 2):
        return False
    rest = np.sort(outputs[~at_atom])
    low, high = form.continuous.support
    cdf = np.exp(form.continuous.log_mass(np.full(rest.size, low), np.clip(rest, low, high)))
    cdf /= float(np.exp(form.continuous.log_mass(np.array([low]), np.array([high])))[0])
    steps = np.arange(rest.size + 1) / rest.size
    distance = max(np.max(cdf - steps[:-1]), np.max(steps[1:] - cdf))
    inside = (rest >= low).all() and (rest <= high).all()
    return bool(inside and distance <= math.sqrt(math.log(4 / alpha) / (2 * rest.size)))


def counted(outputs: np.ndarray) -> dict[Any, int]:
    """Count every outcome; rows are outcomes as tuples."""
    if outputs.ndim == 1:
        values, counts = np.unique(outputs, return_counts=True)
        return dict(zip(values.tolist(), counts.tolist(), strict=True))
    return Counter(map(tuple, outputs.tolist()))


def counts_fit(form: Any, seen: dict[Any, int], total: int, alpha: float) -> bool:
    """Binomial tails of every outcome's count, and nothing that the law calls impossible."""
    masses = {outcome: math.exp(value) for outcome, value in form.atoms.items()}
    if form.lattice is not None:
        # Cells fixed by the law, not by the outputs: the union bound counts them. The rest of the grid is one of them.
        middle = form.lattice.kinks[0]
        masses |= {k: math.exp(form.log_point_mass(k)) for k in range(middle - 30, middle + 31)}
        masses["beyond"] = 1.0 - sum(masses.values())
        seen = {**seen, "beyond": sum(count for k, count in seen.items() if abs(k - middle) > 30)}
        seen = {k: count for k, count in seen.items() if k in masses}
    if any(outcome not in masses for outcome in seen):
        return False
    count = np.array([seen.get(outcome, 0) for outcome in masses])
    mass = np.minimum(list(masses.values()), 1.0)
    tails = np.minimum(binom.cdf(count, total, mass), binom.sf(count - 1, total, mass))
    return bool((tails >= alpha / (2 * len(masses))).all())


def uncorrelated(law: Any, columns: list[Any], alpha: float) -> bool:
    """Neighbouring coordinates, thresholded at a point fixed by the law, agree as often as independence says (Hoeffding)."""
    signs = []
    for one, column in zip(law.laws, columns, strict=True):
        form = one.form()
        if form.continuous is not None and not form.atoms:
            middle = form.continuous.landmarks[len(form.continuous.landmarks) // 2]
            chance = float(
                np.exp(form.continuous.log_mass(np.array([form.continuous.support[0]]), np.array([middle])))[0]
            )
            signs.append((column <= middle) - chance)
        elif form.atoms:
            likeliest = max(form.atoms, key=form.atoms.__getitem__)
            signs.append((column == likeliest) - math.exp(form.atoms[likeliest]))
    pairs = list(itertools.pairwise(signs))
    limit = math.sqrt(2 * math.log(2 * max(1, len(pairs)) / alpha) / SIZE)  # products lie in [-1, 1]
    return all(abs(float(np.mean(a * b))) <= limit for a, b in pairs)


class Case(NamedTuple):
    name: str
    mechanism: Any
    data: Any
    off: Any  # the same mechanism with its noise, or its odds, off by 10 %
    size: int = SIZE


def less_noise(mechanism: Any) -> Any:
    """The mechanism for an epsilon larger by 10 %: everything it scales by 1/epsilon shrinks."""
    return replace(mechanism, epsilon=1.1 * mechanism.epsilon)


def svt_less_noise(mechanism: Any) -> Any:
    return replace(mechanism, threshold_scale=mechanism.threshold_scale / 1.1, query_scale=mechanism.query_scale / 1.1)


def twice_less_noise(mechanism: Any) -> Any:
    return Composition((less_noise(mechanism.mechanisms[0]),) * 2)


def case(name: str, mechanism: Any, data: Any, change: Callable[[Any], Any] = less_noise, size: int = SIZE) -> Case:
    return Case(name, mechanism, data, change(mechanism), size)


ANSWERS = [0.0, 1.0, 2.5, 1.0, 4.0]
ROWS = [0.05, 0.2, 0.2, 0.35, 0.6, 0.95]
CASES = [
    case("laplace", LaplaceMechanism(0.7, 2.0), 3.0),
    case("laplace-inverse-cdf", LaplaceMechanism(0.7, 2.0, method="inverse-cdf"), 3.0),
    case("laplace-signed-exponential", LaplaceMechanism(0.7, 2.0, method="signed-exponential"), 3.0),
    case("laplace-signed-vector", LaplaceMechanism(1.0, method="signed-exponential"), [0.0, 5.0, -2.0]),
    case("composition-of-one-twice", Composition((LaplaceMechanism(1.0),) * 2), [0.0, 5.0], twice_less_noise),
    case("laplace-vector", LaplaceMechanism(1.0), [0.0, 5.0, -2.0]),
    case("discrete-laplace", DiscreteLaplaceMechanism(0.7), 4),
    case("truncated-geometric", TruncatedGeometric(0.9, 5), 2, lambda m: replace(m, epsilon=2.0)),
    case("gaussian", GaussianMechanism(1.0, 1e-3), -1.0, lambda m: replace(m, sensitivity=0.9)),
    case("gaussian-classical", GaussianMechanism(0.5, 1e-3, calibration="classical"), 2.0),
    case("median", LaplaceMedian(2.0, 0.0, 1.0), ROWS),
    case("median-clipped", LaplaceMedian(2.0, 0.0, 1.0, clip=True), ROWS),
    case("noisy-histogram", NoisyHistogram(1.0, ("a", "b")), ["a", "b", "b"]),
    case("exponential", ExponentialMechanism(2.0, (0, 1, 2), lambda data, r: data[r]), [0.0, 1.0, 3.0]),
    case("film", FilmRecommendation(20.0, (1.5, 3.0, 5.0, 9.0), 0.0, 10.0), [1.0, 2.0]),
    case("noisy-max-laplace", ReportNoisyMax(1.0), ANSWERS),
    case("noisy-max-exponential", ReportNoisyMax(1.0, noise="exponential"), ANSWERS),
    case("noisy-max-gumbel", ReportNoisyMax(1.0, noise="gumbel"), ANSWERS),
    case("warner", RandomisedResponse.warner(0.75), 1, lambda m: replace(m, truthful=0.775)),
    case(
        "k-ary",
        RandomisedResponse.k_ary(1.0, ("x", "y", "z")),
        "y",
        lambda m: RandomisedResponse.k_ary(1.1, m.categories),
    ),
    case("response-of-several", RandomisedResponse.warner(0.3), [0, 1, 1], lambda m: replace(m, truthful=0.33)),
    case("ranges", RangeResponse.of(1.0, (0.0, 1.0, 2.0, 5.0)), 1.5, lambda m: RangeResponse.of(1.1, m.edges)),
    case("rappor", Rappor(bits=6, hashes=2, f=0.5, p=0.2, q=0.8), 7, lambda m: replace(m, f=0.55)),
    case("rappor-as-published", Rappor(bits=8), 7, lambda m: replace(m, p=0.405, q=0.605)),
    case("rappor-one-time", Rappor(bits=6, hashes=2, f=0.8, instantaneous=False), 7, lambda m: replace(m, f=0.72)),
    case("above-threshold", AboveThreshold(1.0, 2.0), ANSWERS),
    case("above-threshold-runs", AboveThreshold(0.7, 3.0), [0.0, 0.0, 0.0, 2.0, 2.0, 7.0]),
    case("above-threshold-monotone", AboveThreshold(1.0, 2.0, monotone=True), ANSWERS),
    case("svt1", svt1(epsilon=1.0, threshold=1.0), ANSWERS, svt_less_noise, 2 * SIZE),
    case("svt1-two-hits", svt1(epsilon=2.0, threshold=1.0, hits=2), ANSWERS, svt_less_noise, 2 * SIZE),
    case("svt2-redrawn", svt2(epsilon=2.0, threshold=1.0, hits=2), ANSWERS, svt_less_noise, 2 * SIZE),
    case("svt5-no-query-noise", svt5(epsilon=1.0, threshold=1.0), ANSWERS, svt_less_noise),
    case("svt6-no-end", svt6(epsilon=2.0, threshold=1.0), ANSWERS, svt_less_noise),
    case("histogram-method", HistogramMethod(9.0, 0.0, 1.0, steps=6), ROWS),
    case("histogram-method-printed", HistogramMethod(9.0, 0.0, 1.0, steps=4, bugs=AS_PRINTED), ROWS),
    case(
        "histogram-method-quartiles",
        HistogramMethod(4.0, 0.0, 1.0, 12, (0.25, 0.5, 0.75), "middle", Relation.ADD_REMOVE),
        ROWS,
    ),
    case("inverse-sensitivity", InverseSensitivityQuantile(2.0, 0.0, 1.0), ROWS),
    case("inverse-sensitivity-smooth", InverseSensitivityQuantile(2.0, 0.0, 1.0, 0.25, smoothing=0.03), ROWS),
    case("inverse-sensitivity-mean", InverseSensitivityMean(2.0, 0.0, 1.0, smoothing=0.01), ROWS),
    case("misscaled", MisscaledLaplace(1.0, 0.5), 0.0),
    case("occasionally-raw", OccasionallyRaw(1.0, probability=0.1), 3.0),
    case("halved-variance", HalvedVariance(1.0, 1e-2), 0.0, lambda m: replace(m, sensitivity=0.9)),
    case("notes-gaussian", NotesGaussian(0.5, 1e-5), 0.0),
    case("natural-log-geometric", NaturalLogGeometric(0.2, 5), 3, lambda m: replace(m, epsilon=0.9)),
    case("noisy-max-value", NoisyMaxValue(1.0), ANSWERS),
    case("noisy-max-value-exponential", NoisyMaxValue(1.0, noise="exponential"), ANSWERS),
]


@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
def test_sampler_agrees_with_its_law_and_with_no_law_ten_percent_off(one):
    outputs = one.mechanism.sample(one.data, one.size, np.random.default_rng(20260101))
    assert len(outputs) == one.size
    assert fits(one.mechanism.law(one.data), outputs)
    assert not fits(one.off.law(one.data), outputs)


@pytest.mark.parametrize("name", ["svt1-two-hits", "svt2-redrawn", "svt6-no-end", "rappor", "noisy-max-laplace"])
def test_small_blocks_have_the_same_law(name):
    one = next(one for one in CASES if one.name == name)
    rng = np.random.default_rng(20260102)
    outputs = np.concatenate([one.mechanism.sample(one.data, size, rng) for size in (3, 100, 897) * (one.size // 1000)])
    assert fits(one.mechanism.law(one.data), outputs)
    assert not fits(one.off.law(one.data), outputs)


def test_prefix_sums_are_sums_of_the_noisy_answers():
    mechanism = PrefixSum(1.0, length=3)
    data = np.array([1.0, 2.0, 3.0])
    sums = mechanism.sample(data, SIZE, np.random.default_rng(5))
    answers = np.diff(sums, axis=1, prepend=0.0)
    assert fits(mechanism.law_of_answers(data), answers)
    assert not fits(replace(mechanism, epsilon=1.1).law_of_answers(data), answers)


def test_fresh_values_of_the_numerical_svt_are_fresh():
    """The released value has its own noise, independent of the comparison it won: Laplace of the value scale."""
    mechanism = numerical_svt(epsilon=1.0, threshold=1.0)
    values = mechanism.sample([0.5, 3.0], 2 * SIZE, np.random.default_rng(9))
    for column, answer in ((0, 0.5), (1, 3.0)):
        released = values[:, column][~np.isnan(values[:, column])]
        assert released.size > 50_000
        assert fits(exact.Laplace(answer, mechanism.value_scale), released)
        assert not fits(exact.Laplace(answer, mechanism.value_scale / 1.1), released)
    hit = ~np.isnan(values)
    indicators = replace(mechanism, release="indicator", value_scale=0.0)
    observed = np.where(hit, 1, np.where(np.cumsum(hit, axis=1) > 0, -1, 0))
    assert fits(indicators.law([0.5, 3.0]), observed)
    assert not fits(svt_less_noise(indicators).law([0.5, 3.0]), observed)


def test_compared_values_of_svt3_are_those_that_won():
    """A hit at the first query has the density f(v - answer) G(v), with G the distribution of the noisy threshold."""
    mechanism = svt3(epsilon=1.0, threshold=1.0)
    rng = np.random.default_rng(10)
    values = np.concatenate([mechanism.sample([0.5, 3.0], size, rng) for size in (SIZE, *[1000] * (SIZE // 1000))])
    first = np.sort(values[:, 0][~np.isnan(values[:, 0])])
    grid = np.linspace(-60.0, 60.0, 240_001)

    def fitting(law: Any) -> bool:
        density = laplace.pdf(grid, 0.5, law.query_scale) * laplace.cdf(grid, 1.0, law.threshold_scale)
        cdf = np.interp(first, grid, np.cumsum(density) / density.sum())
        steps = np.arange(first.size + 1) / first.size
        distance = max(np.max(cdf - steps[:-1]), np.max(steps[1:] - cdf))
        return distance <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * first.size)) + 1e-4  # and the grid's own error

    assert first.size > 50_000
    assert fitting(mechanism)
    assert not fitting(svt_less_noise(mechanism))
    hit = ~np.isnan(values)
    observed = np.where(hit, 1, np.where(np.cumsum(hit, axis=1) > 0, -1, 0))
    assert fits(replace(mechanism, release="indicator").law([0.5, 3.0]), observed)
