"""Registry entries of the broken mechanisms: bugs that an audit must find, beside those of the catalogue."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from dpaudit import exact, neighbours
from dpaudit.claims import GaussianDP, PureDP, Relation, Verdict
from dpaudit.neighbours import Neighbours

from ..broken.exponential import missing_factor_two, printed_film_recommendation
from ..broken.gaussian import HalvedVariance, NotesGaussian
from ..broken.histogram_method import printed_histogram_method, slides_histogram_method
from ..broken.inverse_sensitivity import BrokenInverseSensitivity
from ..broken.laplace import MisscaledLaplace, OccasionallyRaw, SensitivityFromData
from ..broken.noisy_max import NoisyMaxValue
from ..broken.randomised_response import RangesFromData, RepeatedResponse
from ..broken.sparse_vector import half_noise_above_threshold, svt5
from ..noisy_histogram import NoisyHistogram
from ..randomised_response import RandomisedResponse
from . import Entry, entry
from .catalogue import one_number
from .reference import COLOURS, colours, liked_films, unit_rows

KEPT = Verdict.NO_VIOLATION_FOUND

five_answers = functools.partial(neighbours.answers, 5, 0, 2)
ten_answers = functools.partial(neighbours.answers, 10, 0, 2)


def apart_by_one() -> Neighbours:
    """The answers 0 and 1."""
    return neighbours.fixed([(0.0, 1.0)], relation=Relation.ANSWERS)


def one_person() -> Neighbours:
    """A person who answers 0 or 1."""
    return neighbours.fixed([(0, 1)], relation=Relation.SUBSTITUTE)


def rows_that_come_and_go() -> Neighbours:
    """Five to eight numbers in [0, 1], one of them added or removed."""
    return neighbours.add_remove(st.floats(0.0, 1.0), min_size=5, max_size=8)


def equal_rows() -> Neighbours:
    """Seven rows at the middle, of which one moves to the end."""
    return neighbours.fixed([([0.5] * 7, [0.5] * 6 + [1.0])], relation=Relation.SUBSTITUTE)


def close_rows() -> Neighbours:
    """Rows close together, of which the first moves to the other end: inverse sensitivity at its worst (docs/theory.md R18)."""
    close = [0.001, 0.003, 0.005, 0.007, 0.009]
    return neighbours.fixed([(close, [1.0, *close[1:]])], relation=Relation.SUBSTITUTE)


def crossing_answers() -> Neighbours:
    """Four answers below the threshold move up, one above it down: the likeliest violation, found on the exact law."""
    answers = np.array([-0.75, -0.75, -0.75, -0.75, 0.9])
    return neighbours.fixed([(answers, answers + np.array([1.0, 1.0, 1.0, 1.0, -1.0]))], relation=Relation.ANSWERS)


def _inverse(
    variant: str,
    where: Callable[[], Neighbours],
    rows: int,
    bug: str,
    expect: Verdict | None = None,
    samples: int = 1_000_000,
) -> Entry:
    make = functools.partial(BrokenInverseSensitivity, 1.0, 0.0, 1.0, variant)
    low, high = make().epsilon_bracket(rows)
    name = f"inverse-sensitivity-{variant.replace(' ', '-')}"
    truth = low if low == high else (low, high)
    return entry(name, make, where, truth, "Asi and Duchi 2020", bug, samples=samples, expect=expect)


def entries() -> list[Entry]:
    """Return the broken mechanisms that are not in the catalogue, and those whose bug is not in the privacy."""
    of = functools.partial
    notes = NotesGaussian(0.5, 1e-5)
    film = printed_film_recommendation()
    return [
        entry(
            "laplace-half-scale",
            of(MisscaledLaplace, 1.0, 0.5),
            one_number,
            2.0,
            "common",
            "Half the noise: a sensitivity of 2 taken for 1.",
        ),
        entry(
            "laplace-nine-tenths",
            of(MisscaledLaplace, 1.0, 0.9),
            one_number,
            1.0 / 0.9,
            "common",
            "Nine tenths of the noise.",
        ),
        entry(
            "laplace-raw-once-in-1000",
            of(OccasionallyRaw, 1.0, 1e-3),
            apart_by_one,
            math.inf,
            "Wang et al. 2024: black-box auditors are blind to small probabilities",
            "Once in a thousand releases the answer goes out as it is.",
        ),
        entry(
            "laplace-sensitivity-from-data",
            of(SensitivityFromData, 1.0, 0.0, 1.0),
            unit_rows,
            math.inf,
            "notes, definition of the sensitivity read on the data at hand; theory R19",
            "The noise is scaled to the range that the data happen to have.",
        ),
        entry(
            "noisy-histogram-charged-once",
            of(NoisyHistogram, 1.0, COLOURS),
            of(colours, Relation.SUBSTITUTE),
            2.0,
            "theory R1",
            "Noise for addition and removal, claimed for substitution, which moves two counts.",
            claim=PureDP(1.0, Relation.SUBSTITUTE),
        ),
        entry(
            "gaussian-variance-halved",
            of(HalvedVariance, 1.0, 1e-2),
            one_number,
            HalvedVariance(1.0, 1e-2).epsilon_exact,
            "common",
            "The variance is half of what the calibration says.",
        ),
        entry(
            "gaussian-of-the-notes",
            of(NotesGaussian, 0.5, 1e-5),
            one_number,
            notes.epsilon_exact,
            "notes; theory R19",
            "erfinv without its root of 2 halves the variance; the true delta is 1.465e-5, which takes exact "
            "verification to see: no black box distinguishes it from 1e-5 within millions of samples.",
            expect=KEPT,
        ),
        entry(
            "gaussian-of-the-notes-by-profile",
            of(NotesGaussian, 0.5, 1e-5),
            apart_by_one,
            notes.sensitivity / notes.scale,
            "notes; theory R19",
            "The same sampler held to the noise it announces: mu-Gaussian DP with mu = sensitivity / rho.",
            claim=GaussianDP(notes.sensitivity / notes.rho, Relation.ANSWERS),
            samples=8_000_000,
        ),
        entry(
            "exponential-factor-two-missing",
            of(missing_factor_two, 1.0),
            five_answers,
            2.0,
            "common",
            "The exponent lacks its 1/2, though the utilities move both ways.",
        ),
        entry(
            "film-recommendation-printed",
            printed_film_recommendation,
            liked_films,
            (exact.epsilon(film.law([0.0]), film.law([10.0])), 1.0),
            "notes; theory R20",
            "The utility has the wrong sign and recommends the farthest film; the privacy is untouched.",
            expect=KEPT,
        ),
        entry(
            "noisy-max-value",
            of(NoisyMaxValue, 1.0),
            five_answers,
            NoisyMaxValue(1.0).epsilon_exact(5),
            "Ding et al. 2018",
            "The noisy maximum itself is released, with noise that pays for its index.",
        ),
        entry(
            "svt-without-query-noise",
            of(svt5, epsilon=1.0, threshold=1.0),
            ten_answers,
            math.inf,
            "Lyu, Su and Li 2017, algorithm 5",
            "The queries get no noise.",
        ),
        entry(
            "above-threshold-half-query-noise",
            of(half_noise_above_threshold, epsilon=1.0, threshold=0.0),
            crossing_answers,
            half_noise_above_threshold(epsilon=1.0, threshold=0.0).epsilon_exact(5),
            "theory R5",
            "Noise that is enough for monotone answers, on answers that are not.",
            samples=4_000_000,
        ),
        entry(
            "histogram-method-printed",
            of(printed_histogram_method, 1.0, 0.0, 1.0, 8),
            unit_rows,
            printed_histogram_method(1.0, 0.0, 1.0, 8).epsilon_bound,
            "report; theory R6",
            "Four bugs in what comes out: no offset, uncleared queries, left edges, -1 read as a value; privacy untouched.",
            expect=KEPT,
            samples=100_000,
        ),
        entry(
            "histogram-method-slides",
            of(slides_histogram_method, 1.0, 0.0, 1.0),
            rows_that_come_and_go,
            math.inf,
            "slides; theory R5",
            "The number of steps follows the number of rows, so the grid of the outputs reveals it.",
            samples=100_000,
        ),
        _inverse("doubled exponent", close_rows, 5, "Weights exp(-epsilon len): the half of the exponent is missing."),
        _inverse("range of the data", unit_rows, 5, "The outputs lie between the smallest and the largest row."),
        _inverse("smoothing by the spread", equal_rows, 7, "The smoothing radius is a share of the data's spread."),
        _inverse(
            "shifted offset",
            unit_rows,
            5,
            "Lengths |c - r| in place of r - c and c - r + 1: a slip that keeps the sensitivity, and the privacy.",
            KEPT,
        ),
        entry(
            "randomised-response-ranges-from-data",
            of(RangesFromData, 1.0, 4, 0.0, 1.0),
            unit_rows,
            math.inf,
            "remark in the notes, carried out carelessly",
            "The ranges end at the extreme values of the data.",
        ),
        entry(
            "randomised-response-repeated",
            of(RepeatedResponse, RandomisedResponse.k_ary(0.5, (0, 1)), 10),
            one_person,
            5.0,
            "the reason why RAPPOR memoises",
            "The same question is asked ten times, answered afresh, and charged once.",
        ),
    ]
