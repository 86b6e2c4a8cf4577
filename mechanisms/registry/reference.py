"""Registry entries of the sound reference mechanisms."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import Relation
from dpaudit.neighbours import Neighbours

from .._common import gaussian_epsilon
from ..above_threshold import AboveThreshold
from ..composition import Composition
from ..exponential import ExponentialMechanism, FilmRecommendation, answer_at
from ..exponential_quantiles import ExponentialQuantile, JointExponentialQuantiles
from ..gaussian import GaussianMechanism
from ..geometric import DiscreteLaplaceMechanism, TruncatedGeometric
from ..histogram_method import HistogramMethod
from ..inverse_sensitivity import InverseSensitivityMean, InverseSensitivityQuantile
from ..laplace import LaplaceMechanism
from ..median import LaplaceMedian
from ..noisy_histogram import NoisyHistogram
from ..noisy_max import ReportNoisyMax
from ..randomised_response import RandomisedResponse, RangeResponse
from ..sparse_vector import numerical_svt, svt1, svt2
from . import Entry, entry
from .catalogue import one_count, one_number

COLOURS = ("red", "green", "blue")

three_answers = functools.partial(neighbours.answers, 3, -10, 10)
six_answers = functools.partial(neighbours.answers, 6, -30, 30)
six_counts = functools.partial(neighbours.answers, 6, 0, 60, monotone=True)


def unit_rows(min_size: int = 3, max_size: int = 5) -> Neighbours:
    """Few numbers in [0, 1], one of them replaced."""
    return neighbours.substitute(st.floats(0.0, 1.0), min_size=min_size, max_size=max_size)


def unit_rows_that_come_and_go() -> Neighbours:
    """Up to five numbers in [0, 1], one of them added or removed."""
    return neighbours.add_remove(st.floats(0.0, 1.0), max_size=5)


def few_rows_that_come_and_go() -> Neighbours:
    """Up to four small integers, one of them added or removed."""
    return neighbours.add_remove(st.integers(0, 3), max_size=4)


def colours(relation: Relation) -> Neighbours:
    """Up to four colours."""
    make = neighbours.add_remove if relation is Relation.ADD_REMOVE else neighbours.substitute
    return make(st.sampled_from(COLOURS), max_size=4)


def answers_of_people(*categories: Any) -> Neighbours:
    """One to three people, one of whom changes the answer."""
    return neighbours.substitute(st.sampled_from(categories), max_size=3)


def liked_films() -> Neighbours:
    """One or two films liked, one of them replaced."""
    return neighbours.substitute(st.floats(0.0, 10.0), max_size=2)


def composed() -> Composition:
    """Two Laplace releases and a discrete one of the same count."""
    return Composition(
        (
            LaplaceMechanism(0.5, query=len, relation=Relation.ADD_REMOVE),
            LaplaceMechanism(0.25, query=len, relation=Relation.ADD_REMOVE),
            DiscreteLaplaceMechanism(0.25, query=len, relation=Relation.ADD_REMOVE),
        )
    )


def _film_epsilon(film: FilmRecommendation) -> float:
    """Exact epsilon on one film at one end against the other: distances move by the most they can."""
    return exact.epsilon(film.law([film.low]), film.law([film.high]))


def _mean_epsilon(mean: InverseSensitivityMean) -> float:
    """Exact epsilon of the worst pair found by search: all rows at the low end, one of them moved to the high one."""
    return exact.epsilon(mean.law(np.zeros(16)), mean.law(np.append(np.zeros(15), 1.0)))


def entries() -> list[Entry]:
    """Return the sound mechanisms, simplest first."""
    of = functools.partial
    classical = GaussianMechanism(0.5, 1e-5, calibration="classical")
    film = of(FilmRecommendation, 1.0, (1.5, 3.0, 5.0, 9.0), 0.0, 10.0)
    mean = of(InverseSensitivityMean, 1.0, 0.0, 1.0, 1 / 64)
    quartiles = (0.25, 0.5, 0.75)
    histogram = of(HistogramMethod, 1.0, 0.0, 1.0)
    return [
        entry("laplace", of(LaplaceMechanism, 1.0), one_number, 1.0, "course notes, theorem 1"),
        entry("laplace-inverse-cdf", of(LaplaceMechanism, 1.0, method="inverse-cdf"), one_number, 1.0, "notes"),
        entry(
            "laplace-count",
            of(LaplaceMechanism, 1.0, query=len, relation=Relation.ADD_REMOVE),
            few_rows_that_come_and_go,
            1.0,
            "slides",
        ),
        entry("discrete-laplace", of(DiscreteLaplaceMechanism, 1.0), one_count, 1.0, "Ghosh et al. 2009"),
        entry(
            "truncated-geometric",
            of(TruncatedGeometric, 1.0, 5),
            one_count,
            TruncatedGeometric(1.0, 5).epsilon_exact,
            "Balcer and Vadhan 2018",
        ),
        entry("gaussian", of(GaussianMechanism, 1.0, 1e-2), one_number, 1.0, "Balle and Wang 2018"),
        entry("gaussian-small-delta", of(GaussianMechanism, 1.0, 1e-5), one_number, 1.0, "Balle and Wang 2018"),
        entry(
            "gaussian-classical",
            of(GaussianMechanism, 0.5, 1e-5, calibration="classical"),
            one_number,
            gaussian_epsilon(1.0 / classical.scale, 1e-5),
            "notes; Dwork and Roth 2014, theorem A.1",
        ),
        entry(
            "noisy-histogram",
            of(NoisyHistogram, 1.0, COLOURS),
            of(colours, Relation.ADD_REMOVE),
            1.0,
            "Dwork et al. 2006",
        ),
        entry(
            "noisy-histogram-substitute",
            of(NoisyHistogram, 1.0, COLOURS, Relation.SUBSTITUTE),
            of(colours, Relation.SUBSTITUTE),
            1.0,
            "Dwork et al. 2006; theory R1",
        ),
        entry("laplace-median", of(LaplaceMedian, 1.0, 0.0, 1.0), unit_rows, 1.0, "slides; theory R24"),
        entry(
            "laplace-median-clipped", of(LaplaceMedian, 1.0, 0.0, 1.0, clip=True), unit_rows, 1.0, "slides; theory R24"
        ),
        entry("composition", composed, few_rows_that_come_and_go, 1.0, "slides; theory R25"),
        entry(
            "exponential",
            of(ExponentialMechanism, 1.0, (0, 1, 2), answer_at, 1.0, Relation.ANSWERS),
            three_answers,
            1.0,
            "notes; McSherry and Talwar 2007",
        ),
        entry(
            "film-recommendation",
            film,
            liked_films,
            (_film_epsilon(film()), 1.0),
            "notes, example with its sign put right; theory R20",
        ),
        entry("noisy-max-laplace", of(ReportNoisyMax, 1.0), three_answers, 1.0, "Dwork and Roth 2014"),
        entry(
            "noisy-max-exponential",
            of(ReportNoisyMax, 1.0, noise="exponential"),
            three_answers,
            1.0,
            "Ding et al. 2021, permute-and-flip",
        ),
        entry(
            "noisy-max-gumbel", of(ReportNoisyMax, 1.0, noise="gumbel"), three_answers, 1.0, "McSherry and Talwar 2007"
        ),
        entry(
            "randomised-response-warner",
            of(RandomisedResponse.warner, 0.75),
            of(answers_of_people, 0, 1),
            RandomisedResponse.warner(0.75).epsilon,
            "Warner 1965; the 1979 article in the notes",
        ),
        entry(
            "randomised-response-keep-or-uniform",
            of(RandomisedResponse.keep_or_uniform, 0.5),
            of(answers_of_people, 0, 1),
            RandomisedResponse.keep_or_uniform(0.5).epsilon,
            "lecture notes, section 6.1; theory R21",
        ),
        entry(
            "randomised-response-k-ary",
            of(RandomisedResponse.k_ary, 1.0, COLOURS),
            of(answers_of_people, *COLOURS),
            1.0,
            "Kairouz, Oh and Viswanath 2014",
        ),
        entry(
            "randomised-response-ranges",
            of(RangeResponse.of, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0)),
            of(unit_rows, 1, 3),
            1.0,
            "remark in the notes",
        ),
        entry(
            "above-threshold",
            of(AboveThreshold, 1.0, 0.0),
            six_answers,
            AboveThreshold(1.0, 0.0).epsilon_exact(6),
            "report, theorem 2.1.0.1; theory R3",
        ),
        entry(
            "above-threshold-counts",
            of(AboveThreshold, 1.0, 10.0),
            six_counts,
            AboveThreshold(1.0, 10.0).epsilon_exact(6, monotone=True),
            "theory R3: monotone answers cost three quarters",
        ),
        entry(
            "above-threshold-monotone-noise",
            of(AboveThreshold, 1.0, 10.0, monotone=True),
            six_counts,
            AboveThreshold(1.0, 10.0, monotone=True).epsilon_exact(6),
            "theory R5",
        ),
        entry(
            "svt-1-two-hits",
            of(svt1, epsilon=1.0, threshold=0.0, hits=2),
            six_answers,
            svt1(epsilon=1.0, threshold=0.0, hits=2).epsilon_exact(6),
            "Lyu, Su and Li 2017, algorithm 1",
        ),
        entry(
            "svt-2-two-hits",
            of(svt2, epsilon=1.0, threshold=0.0, hits=2),
            six_answers,
            svt2(epsilon=1.0, threshold=0.0, hits=2).epsilon_exact(6),
            "Lyu, Su and Li 2017, algorithm 2",
        ),
        entry(
            "numerical-svt",
            of(numerical_svt, epsilon=1.0, threshold=0.0),
            six_answers,
            numerical_svt(epsilon=1.0, threshold=0.0).epsilon_exact(6),
            "Wang et al. 2019",
        ),
        entry(
            "histogram-method",
            of(histogram, steps=8),
            unit_rows,
            histogram(steps=8).epsilon_bound,
            "report, theorem 2.2.1.1, corrected; theory R5",
            samples=200_000,
        ),
        entry(
            "histogram-method-add-remove",
            of(histogram, steps=8, relation=Relation.ADD_REMOVE),
            unit_rows_that_come_and_go,
            histogram(steps=8, relation=Relation.ADD_REMOVE).epsilon_bound,
            "report, corrected; theory R5",
            samples=200_000,
        ),
        entry(
            "histogram-method-quartiles",
            of(histogram, steps=8, quantiles=quartiles, monotone_noise=True),
            unit_rows,
            histogram(steps=8, quantiles=quartiles, monotone_noise=True).epsilon_bound,
            "report, all quantiles; theory R5",
            samples=200_000,
        ),
        # Both reach epsilon in the limit of records closer and closer together: see `test_epsilon_of_the_quantiles_is_reached`.
        entry(
            "exponential-quantile-median",
            of(ExponentialQuantile, 1.0, 0.0, 1.0),
            unit_rows,
            1.0,
            "Smith 2011; the scores are those of the exponential mechanism",
        ),
        entry(
            "exponential-quantiles-joint",
            of(JointExponentialQuantiles, 1.0, 0.0, 1.0, (0.25, 0.5, 0.75)),
            unit_rows,
            1.0,
            "Gillenwater, Joseph and Kulesza 2021",
            samples=60_000,
        ),
        entry(
            "inverse-sensitivity-median",
            of(InverseSensitivityQuantile, 1.0, 0.0, 1.0),
            unit_rows,
            1.0,
            "report, theorem 3.1.0.1; theory R18",
        ),
        entry(
            "inverse-sensitivity-smooth",
            of(InverseSensitivityQuantile, 1.0, 0.0, 1.0, 0.25, 0.03),
            unit_rows,
            1.0,
            "report, definition 3.1.0.4; theory R17",
        ),
        entry(
            "inverse-sensitivity-smallest",
            of(InverseSensitivityQuantile, 1.0, 0.0, 1.0, 0.01),
            unit_rows,
            0.5,
            "theory R18: end ranks without smoothing cost half",
        ),
        entry(
            "inverse-sensitivity-mean",
            mean,
            unit_rows,
            (_mean_epsilon(mean()), 1.0),
            "Asi and Duchi 2020",
        ),
    ]
