"""The reference mechanisms at epsilon 1, with what mutations of them need to know.

Neighbours are those of the registry, so that an audit has to search its pair as it does elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from benchmarks.mutation.rewriting import Target
from dpaudit import neighbours
from dpaudit.claims import Relation
from dpaudit.exact.mechanism_laws.above_threshold import NONE_ABOVE
from dpaudit.exact.mechanism_laws.histogram import HistogramDesign, as_quantile, rank
from dpaudit.exact.mechanism_laws.inverse_sensitivity import Segments, mean_segments, quantile_segments
from dpaudit.neighbours import Neighbours
from mechanisms._common import chunks
from mechanisms.above_threshold import AboveThreshold, first_above
from mechanisms.bounded_noise import BoundedNoise
from mechanisms.composition import Composition
from mechanisms.exponential import ExponentialMechanism, FilmRecommendation, answer_at, nearest_film
from mechanisms.gaussian import GaussianMechanism
from mechanisms.geometric import DiscreteLaplaceMechanism, TruncatedGeometric
from mechanisms.histogram_method import HistogramMethod
from mechanisms.inverse_sensitivity import InverseSensitivityMean, InverseSensitivityQuantile
from mechanisms.laplace import LaplaceMechanism
from mechanisms.median import LaplaceMedian
from mechanisms.noisy_histogram import NoisyHistogram
from mechanisms.noisy_max import NOISES, ReportNoisyMax
from mechanisms.randomised_response import RandomisedResponse, RangeResponse
from mechanisms.rappor import Rappor
from mechanisms.registry import reference
from mechanisms.registry.catalogue import any_two_values, one_count, one_number
from mechanisms.snapping import SnappingMechanism
from mechanisms.sparse_vector import SparseVector, svt1, svt2

Data = Any
COLOURS = reference.COLOURS


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A reference mechanism, and what is known about it.

    Attributes
    ----------
    name : str
        As in the registry, where it is there.
    scaled : callable
        The mechanism with its noise times a factor; with factor 1 the reference itself.
    neighbours : callable
        Where it is audited.
    raw : callable or None
        The output without noise; None where it is random too.
    unit : float or None
        Scale of the noise, where it is added to numbers.
    symmetric : bool
        Whether that noise is symmetric and has a density.
    public : (float, float) or None
        A public range to which outputs may be clamped at no cost.
    rows : bool
        Whether the data are a list of rows.
    levels : tuple
        Of a vector of answers, levels of the largest one at which the corners of the neighbours are judged too.
    pool, climbs : int
        Pairs on which mutants are judged, and rounds of hill climbing from the best of them.
    targets : tuple
        Code to rewrite, with a function that makes the mechanism from what came of it.
    others : tuple
        Named mutants of its own: parameters of the mechanism that no general mutation knows.
    shown : callable or None
        A function of the outputs that is published in their place and keeps all information; mutations come before it.
    """

    name: str
    scaled: Callable[[float], Any]
    neighbours: Callable[[], Neighbours]
    raw: Callable[[Data], Any] | None = None
    unit: float | None = None
    symmetric: bool = False
    public: tuple[float, float] | None = None
    rows: bool = False
    levels: tuple[float, ...] = ()
    pool: int = 32
    climbs: int = 8
    targets: tuple[tuple[Target, Callable[[Any], Any]], ...] = ()
    others: tuple[tuple[str, Callable[[], Any]], ...] = ()
    shown: Callable[[Any], Any] | None = None


def clamped_sum(data: Any) -> float:
    """Sum of the rows, each clamped to [0, 1]: sensitivity 1 under addition and removal."""
    total = 0.0
    for row in data:
        total += min(max(row, 0.0), 1.0)
    return total


def wide_rows() -> Neighbours:
    """Up to four numbers, some of them outside the range to which they are clamped."""
    return neighbours.add_remove(st.floats(-1.0, 3.0), max_size=4)


def _first_above(answers: Any, threshold: float) -> int:
    above = np.flatnonzero(np.asarray(answers) > threshold)
    return int(above[0]) if above.size else NONE_ABOVE


def _first_hits(answers: Any, threshold: float, hits: int) -> list[int]:
    above = (np.asarray(answers) > threshold).astype(int)
    ended = np.cumsum(above) - above >= hits
    return np.where(ended, -1, above).tolist()  # type: ignore[no-any-return]


class SharedCounts(HistogramMethod):
    """The method, quick in the small blocks in which audits draw.

    Its searches are kept for the data they were made on, and as long as all of them look at the same counts, one call of
    ``first_above`` answers them.
    """

    @functools.cached_property
    def _known(self) -> dict[tuple[float, ...], tuple[Any, tuple[float, float], bool]]:
        return {}

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        key = tuple(data)
        if key not in self._known:
            searches = self.design.searches(self._rows(data))
            alike = all(np.array_equal(searches[0].answers, search.answers) for search in searches)
            self._known[key] = searches, self.design.noise_scales, alike
        searches, scales, alike = self._known[key]
        if not alike:
            return super().sample(data, size, rng)
        counts, thresholds = searches[0].answers, [search.threshold for search in searches]
        outputs = np.empty((size, len(searches)))
        for rows in chunks(size, len(searches) * counts.size):  # so many are one piece for ``first_above`` too
            piece = outputs[rows]
            asked: Any = np.tile(thresholds, len(piece))
            index = first_above(counts, asked, *scales, piece.size, rng).reshape(piece.shape)
            for column, search in enumerate(searches):
                piece[:, column] = search.released(index[:, column])
        return outputs

    def true(self, data: Any) -> list[float]:
        """Return the output without noise."""
        searches = self.design.searches(np.asarray(data, dtype=float))
        return [float(search.released(_first_above(search.answers, search.threshold))) for search in searches]


def _remembered(function: Callable[[tuple[Any, ...]], Any]) -> Callable[[Data], Any]:
    """The function of a list of rows, computed once for each."""
    known = functools.cache(function)
    return lambda data: known(tuple(data))


def _order_statistic(data: Any, quantile: float) -> float:
    rows = sorted(data)
    return float(rows[rank(as_quantile(quantile), len(rows)) - 1])


def _composed(factor: float) -> Composition:
    parts = reference.composed().mechanisms
    return Composition(tuple(type(part)(part.epsilon / factor, query=len, relation=part.relation) for part in parts))  # type: ignore[attr-defined, call-arg]


def _one_time_rappor(factor: float) -> Rappor:
    """One-time RAPPOR of eight differing bits, each of an eighth of epsilon: ``log((2 - f)/f) = 1/8``."""
    return Rappor(f=2.0 / (1.0 + math.exp(1.0 / (8.0 * factor))), instantaneous=False)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """Bounded noise whose radius is not checked against its claim."""

    radius: float
    honest: BoundedNoise

    @property
    def claim(self) -> Any:
        return self.honest.claim

    def _copy(self) -> BoundedNoise:
        other = object.__new__(BoundedNoise)
        for name in ("epsilon", "delta", "queries", "sensitivity", "family"):
            object.__setattr__(other, name, getattr(self.honest, name))
        object.__setattr__(other, "radius", self.radius)
        return other

    def sample(self, data: Data, size: int, rng: np.random.Generator) -> Any:
        return self._copy().sample(data, size, rng)[:, 0]

    def law(self, data: Data) -> Any:
        return self._copy().law(data).laws[0]  # type: ignore[attr-defined]


def _bounded(factor: float) -> _Bounded:
    honest = BoundedNoise(1.0, 1e-3)
    return _Bounded(honest.radius * factor, honest)


CUT = "probability of another answer cut to tenths"


def _tenths(probability: float) -> float:
    """A probability that was stored as an integer number of tenths."""
    return int(10.0 * probability) / 10.0


def _epsilon_cut(categories: int) -> float:
    """The epsilon that k-ary response keeps where the probability of each other answer is cut to tenths."""
    other = _tenths(1.0 / (math.e + categories - 1.0))
    return math.log((1.0 - (categories - 1.0) * other) / other)


def _additive() -> list[Subject]:
    of = functools.partial
    count = of(LaplaceMechanism, query=len, relation=Relation.ADD_REMOVE)
    gaussian_scale = GaussianMechanism(1.0, 1e-2).scale
    return [
        Subject(
            name="laplace", scaled=lambda f: LaplaceMechanism(1.0, f), neighbours=one_number, raw=float, unit=1.0,
            symmetric=True, public=(-1.0, 3.0),
            targets=((Target((LaplaceMechanism,), ("scale",)), lambda made: made(1.0)),),
        ),
        Subject(
            name="laplace-count", scaled=lambda f: count(1.0, f), neighbours=reference.few_rows_that_come_and_go,
            raw=lambda data: float(len(data)), unit=1.0, symmetric=True, public=(0.0, 4.0), rows=True,
        ),
        Subject(
            name="laplace-sum", scaled=lambda f: LaplaceMechanism(1.0, f, clamped_sum, Relation.ADD_REMOVE),
            neighbours=wide_rows, raw=clamped_sum, unit=1.0, symmetric=True, public=(0.0, 4.0), rows=True,
            targets=(
                (Target((clamped_sum,)), lambda made: LaplaceMechanism(1.0, 1.0, made, Relation.ADD_REMOVE)),
            ),
        ),
        Subject(
            name="discrete-laplace", scaled=lambda f: DiscreteLaplaceMechanism(1.0 / f), neighbours=one_count, raw=int,
            unit=1.0, public=(0, 5),
            targets=((Target((DiscreteLaplaceMechanism,), ("scale",)), lambda made: made(1.0)),),
            others=(("decay cut to tenths", lambda: DiscreteLaplaceMechanism(-math.log(_tenths(math.exp(-1.0))))),),
        ),
        Subject(
            name="truncated-geometric", scaled=lambda f: TruncatedGeometric(1.0 / f, 5), neighbours=one_count, raw=int,
            unit=1.0, targets=((Target((TruncatedGeometric,), ("bits",)), lambda made: made(1.0, 5)),),
            others=(("decay cut to tenths", lambda: TruncatedGeometric(-math.log(_tenths(math.exp(-1.0))), 5)),),
        ),
        Subject(
            name="gaussian", scaled=lambda f: GaussianMechanism(1.0, 1e-2, f), neighbours=one_number, raw=float,
            unit=gaussian_scale, symmetric=True, public=(-1.0, 3.0),
            others=(
                ("scale cut to an integer", lambda: GaussianMechanism(1.0, 1e-2, int(gaussian_scale) / gaussian_scale)),
            ),
        ),
        Subject(
            name="bounded-noise", scaled=_bounded, neighbours=of(neighbours.answers, 1, 0, 2),
            raw=lambda data: float(data[0]), unit=_bounded(1.0).radius / 4.0, symmetric=True, public=(-5.0, 5.0),
            pool=8, climbs=0,
            others=(("radius cut to an integer", lambda: _bounded(int(_bounded(1.0).radius) / _bounded(1.0).radius)),),
        ),
        Subject(
            name="snapping", scaled=lambda f: SnappingMechanism(1.0, sensitivity=f), neighbours=one_number, raw=float,
            unit=1.0, public=(-8.0, 8.0),
            targets=((Target((SnappingMechanism,), ("scale", "step")), lambda made: made(1.0)),),
        ),
        Subject(
            name="noisy-histogram", scaled=lambda f: NoisyHistogram(1.0 / f, COLOURS),
            neighbours=of(reference.colours, Relation.ADD_REMOVE), rows=True, unit=1.0, symmetric=True, public=(0.0, 4.0),
            raw=lambda data: [float(list(data).count(c)) for c in COLOURS],
            targets=((Target((NoisyHistogram,), ("scale", "sensitivity", "counts")), lambda made: made(1.0, COLOURS)),),
        ),
        Subject(
            name="noisy-histogram-substitute", scaled=lambda f: NoisyHistogram(1.0 / f, COLOURS, Relation.SUBSTITUTE),
            neighbours=of(reference.colours, Relation.SUBSTITUTE), rows=True, unit=2.0, symmetric=True, public=(0.0, 4.0),
            raw=lambda data: [float(list(data).count(c)) for c in COLOURS],
            targets=(
                (
                    Target((NoisyHistogram,), ("scale", "sensitivity")),
                    lambda made: made(1.0, COLOURS, Relation.SUBSTITUTE),
                ),
            ),
        ),
        Subject(
            name="laplace-median", scaled=lambda f: LaplaceMedian(1.0 / f, 0.0, 1.0), neighbours=reference.unit_rows,
            raw=lambda data: float(np.median(data)), unit=1.0, symmetric=True, public=(0.0, 1.0), rows=True,
            targets=((Target((LaplaceMedian,), ("sensitivity", "_median")), lambda made: made(1.0, 0.0, 1.0)),),
        ),
        Subject(
            name="composition", scaled=_composed, neighbours=reference.few_rows_that_come_and_go, rows=True, unit=2.0,
            raw=lambda data: [len(data)] * 3, public=(0, 4),
        ),
    ]  # fmt: skip


def _choosing() -> list[Subject]:
    films = (1.5, 3.0, 5.0, 9.0)
    subjects = [
        Subject(
            name="exponential",
            scaled=lambda f: ExponentialMechanism(1.0 / f, (0, 1, 2), answer_at, 1.0, Relation.ANSWERS),
            neighbours=reference.three_answers, raw=lambda data: int(np.argmax(data)),
            targets=(
                (
                    Target((ExponentialMechanism,), ("log_weights",)),
                    lambda made: made(1.0, (0, 1, 2), answer_at, 1.0, Relation.ANSWERS),
                ),
            ),
            others=(
                ("monotone noise", lambda: ExponentialMechanism(1.0, (0, 1, 2), answer_at, monotone=True)),
            ),
        ),
        Subject(
            name="film-recommendation", scaled=lambda f: FilmRecommendation(1.0 / f, films, 0.0, 10.0),
            neighbours=reference.liked_films, rows=True,
            raw=lambda data: max(films, key=lambda film: nearest_film(data, film)),
            targets=(
                (Target((nearest_film,)), lambda made: FilmRecommendation(1.0, films, 0.0, 10.0, made)),
                (
                    Target((ExponentialMechanism, FilmRecommendation), ("log_weights",)),
                    lambda made: made(1.0, films, 0.0, 10.0),
                ),
                (Target((FilmRecommendation,), ("_mechanism",)), lambda made: made(1.0, films, 0.0, 10.0)),
            ),
        ),
    ]  # fmt: skip
    return [*subjects, *map(_noisy_max, NOISES)]


def _noisy_max(noise: str) -> Subject:
    return Subject(
        name=f"noisy-max-{noise}", scaled=lambda f: ReportNoisyMax(1.0 / f, noise), neighbours=reference.three_answers,
        raw=lambda data: int(np.argmax(data)),
        targets=((Target((ReportNoisyMax,), ("scale",)), lambda made: made(1.0, noise)),),
        others=(("monotone noise", lambda: ReportNoisyMax(1.0, noise, monotone=True)),),
    )  # fmt: skip


def _responding() -> list[Subject]:
    of = functools.partial
    edges = (0.0, 0.25, 0.5, 0.75, 1.0)

    def response(*categories: Any) -> Subject:
        return Subject(
            name="randomised-response" if len(categories) == 2 else "k-ary-response",
            scaled=lambda f: RandomisedResponse.k_ary(1.0 / f, categories), rows=True,
            neighbours=of(reference.answers_of_people, *categories), raw=list,
            targets=((Target((RandomisedResponse,), ("k_ary",)), lambda made: made.k_ary(1.0, categories)),),
            others=(
                ("keep 1 - 1/e, else uniform", lambda: RandomisedResponse.keep_or_uniform(-math.expm1(-1.0), categories)),
                ("keep e/(e+1), else uniform",
                 lambda: RandomisedResponse.keep_or_uniform(1.0 / (1.0 + math.exp(-1.0)), categories)),
                (CUT, lambda: RandomisedResponse.k_ary(_epsilon_cut(len(categories)), categories)),
            ),
        )  # fmt: skip

    return [
        response(0, 1),
        response(*COLOURS),
        Subject(
            name="range-response", scaled=lambda f: RangeResponse.of(1.0 / f, edges),
            neighbours=of(reference.unit_rows, 1, 3), rows=True,
            raw=lambda data: RangeResponse.of(1.0, edges).ranges(data).tolist(),
            targets=((Target((RangeResponse,), ("ranges",)), lambda made: made.of(1.0, edges)),),
            others=((CUT, lambda: RangeResponse.of(_epsilon_cut(len(edges) - 1), edges)),),
        ),
        Subject(
            name="one-time-rappor", scaled=_one_time_rappor, neighbours=any_two_values,
            raw=lambda data: _one_time_rappor(1.0).bloom(data).tolist(),
            targets=((Target((Rappor,), ("bloom",)), lambda made: made(f=_one_time_rappor(1.0).f, instantaneous=False)),),
            others=tuple(
                (f"f = {f}", of(Rappor, f=f, instantaneous=False)) for f in (0.5, 0.75, 0.9)
            ),
        ),
    ]  # fmt: skip


def _thresholds() -> list[Subject]:
    scales = ("threshold_scale", "query_scale")
    return [
        Subject(
            name="above-threshold", scaled=lambda f: AboveThreshold(1.0 / f, 0.0), neighbours=reference.six_answers,
            raw=lambda data: _first_above(data, 0.0), levels=(0.0, 0.5, 2.0, 5.0, 9.0, 14.0),
            targets=((Target((AboveThreshold,), scales), lambda made: made(1.0, 0.0)),),
            others=(("monotone noise", lambda: AboveThreshold(1.0, 0.0, monotone=True)),),
        ),
        Subject(
            name="above-threshold-counts", scaled=lambda f: AboveThreshold(1.0 / f, 10.0, monotone=True),
            neighbours=reference.six_counts, raw=lambda data: _first_above(data, 10.0),
            levels=(10.0, 10.5, 12.0, 15.0, 19.0, 24.0),
            targets=((Target((AboveThreshold,), scales), lambda made: made(1.0, 10.0, monotone=True)),),
        ),
        _sparse_vector(svt1),
        _sparse_vector(svt2),
    ]  # fmt: skip


def _sparse_vector(make: Any) -> Subject:
    def of(factor: float, hits: int | None = 2) -> SparseVector:
        """The technique with the noise for two hits, whatever it stops at."""
        noise: SparseVector = make(epsilon=1.0 / factor, threshold=0.0, hits=2)
        return replace(noise, hits=hits)

    return Subject(
        name=f"{make.__name__}-two-hits", scaled=of, neighbours=reference.six_answers, levels=(0.0, 0.5, 4.0),
        climbs=4, raw=lambda data: _first_hits(data, 0.0, 2),
        targets=((Target((make,)), lambda made: made(epsilon=1.0, threshold=0.0, hits=2)),),
        others=tuple((f"stops after {hits} hits", functools.partial(of, 1.0, hits)) for hits in (1, 3, None)),
    )  # fmt: skip


def _quantiles() -> list[Subject]:
    method = functools.partial(SharedCounts, low=0.0, high=1.0, steps=8)
    quartiles = functools.partial(method, quantiles=(0.25, 0.5, 0.75), monotone_noise=True)

    def histogram(name: str, make: Any, where: Callable[[], Neighbours]) -> Subject:
        design = ("epsilon_per_quantile", "noise_scales", "searches")
        keywords = make.keywords
        return Subject(
            name=name, scaled=lambda f: make(1.0 / f), neighbours=where, rows=True, pool=24, climbs=3,
            raw=_remembered(make(1.0).true),
            targets=((Target((HistogramDesign, HistogramMethod, SharedCounts), design), lambda made: made(1.0, **keywords)),),
        )  # fmt: skip

    def inverse(name: str, made: type, segments: Any, **keywords: Any) -> Subject:
        quantile = keywords.get("quantile", 0.5)
        mean = made is InverseSensitivityMean
        return Subject(
            name=name, scaled=lambda f: made(1.0 / f, 0.0, 1.0, **keywords), neighbours=reference.unit_rows, rows=True,
            raw=lambda data: float(np.mean(data)) if mean else _order_statistic(data, quantile), unit=0.1,
            public=(0.25, 0.75),
            targets=(
                (Target((Segments, segments, made), ("law",)), lambda new: new(1.0, 0.0, 1.0, **keywords)),
                (Target((segments, made)), lambda new: new(1.0, 0.0, 1.0, **keywords)),
            ),
        )  # fmt: skip

    return [
        histogram("histogram-method", method, reference.unit_rows),
        histogram("histogram-method-quartiles", quartiles, reference.unit_rows),
        histogram(
            "histogram-method-add-remove",
            functools.partial(method, relation=Relation.ADD_REMOVE),
            reference.unit_rows_that_come_and_go,
        ),
        inverse("inverse-sensitivity-median", InverseSensitivityQuantile, quantile_segments),
        inverse(
            "inverse-sensitivity-smooth", InverseSensitivityQuantile, quantile_segments, quantile=0.25, smoothing=0.03
        ),
        inverse("inverse-sensitivity-mean", InverseSensitivityMean, mean_segments, smoothing=1 / 64),
    ]


@functools.cache
def subjects() -> tuple[Subject, ...]:
    """All of them, simplest first."""
    from benchmarks.mutation.derived import derived  # which needs this module

    return (*_additive(), *_choosing(), *_responding(), *_thresholds(), *_quantiles(), *derived())
