"""Extraction from fifteen functions as people write them, with the laws worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP, Verdict, exact
from dpaudit.errors import CannotFollow
from dpaudit.symbolic import law_of, verify
from tests.symbolic import ordinary_functions as functions

SURVEY = {(0, 1): 0.5625, (1, 1): 0.1875, (0, 0): 0.1875, (1, 0): 0.0625}


def test_noise_added_in_a_loop_over_a_dictionary():
    law = law_of(functions.noisy_counts_loop, ["a", "b", "a"])
    ((_, (term,)),) = law.blocks.items()
    assert [coordinate.law for coordinate in term.laws] == [exact.Laplace(c, 1.0) for c in (2.0, 1.0, 0.0)]


def test_rounded_and_clamped_counts_in_a_comprehension():
    ((_, (term,)),) = law_of(functions.noisy_counts_comprehension, ["a", "b", "a"]).blocks.items()
    for coordinate, count in zip(term.laws, (2.0, 1.0, 0.0), strict=True):
        expected = exact.Clipped(exact.Rounded(exact.Laplace(count, 1.0), 1.0), 0.0, math.inf)
        points = np.arange(0.0, 12.0)
        assert coordinate.law.log_prob(points) == pytest.approx(expected.log_prob(points), rel=1e-12)


@pytest.mark.parametrize(("data", "location", "scale"), [([1.0, 5.0], 3.0, 5.0), ([50.0, -3.0, 2.0, 0.0], 3.0, 2.5)])
def test_a_clipped_mean(data, location, scale):
    assert law_of(functions.clipped_mean, data).to_exact() == exact.Laplace(location, scale)


def test_a_clipped_mean_is_exact_on_no_data():
    assert law_of(functions.clipped_mean, []).outcomes() == {0.0: 1.0}


def test_an_array_of_noise():
    law = law_of(functions.histogram_array, [0.5, 1.5, 3.2]).to_exact()
    assert law == exact.Product([exact.Laplace(c, 1.0) for c in (1.0, 1.0, 0.0, 1.0)])


def test_pandas_before_the_noise():
    ((_, (term,)),) = law_of(functions.pandas_group_by, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).blocks.items()
    assert [coordinate.law for coordinate in term.laws] == [exact.Gaussian(9.0, 2.0), exact.Gaussian(12.0, 2.0)]


def test_random_gauss():
    assert law_of(functions.gauss_count, [1, 2]).to_exact() == exact.Gaussian(2.0, 1.5)


def test_secrets():
    assert law_of(functions.coin_flip_survey, [0, 1]).outcomes() == pytest.approx(SURVEY, rel=1e-14)


def test_a_sum_of_flipped_rows():
    by_hand = dict.fromkeys(range(4), 0.0)
    for flips in np.ndindex(2, 2, 2):
        total = sum(1 - row if flip else row for row, flip in zip([0, 1, 1], flips, strict=True))
        by_hand[total] += math.prod(0.25 if flip else 0.75 for flip in flips)
    assert law_of(functions.randomised_sum, [0, 1, 1]).outcomes() == pytest.approx(by_hand, rel=1e-13)


def test_the_exponential_mechanism_by_choice():
    weights = {"red": math.exp(1.0), "green": 1.0, "blue": math.exp(0.5)}
    expected = {color: weight / sum(weights.values()) for color, weight in weights.items()}
    found = law_of(functions.best_candidate, ["red", "blue", "red"]).outcomes()
    assert {str(key): value for key, value in found.items()} == pytest.approx(expected, rel=1e-13)


def test_noisy_argmax():
    from mechanisms.noisy_max import ReportNoisyMax

    declared = ReportNoisyMax(1.0).law([1.0, 2.0, 1.0])
    found = law_of(functions.noisy_argmax, [0, 1, 1, 2]).outcomes()
    assert [found[k] for k in range(3)] == pytest.approx(np.exp(declared.log_prob([0, 1, 2])), rel=1e-11)


def test_above_threshold():
    found = law_of(functions.first_above, [1, 2, 3]).outcomes()
    declared = exact.above_threshold_law([1.0, 2.0, 3.0], 2.0, 1.0)
    assert [found[k] for k in (0, 1, 2, None)] == pytest.approx(np.exp(declared.log_prob([0, 1, 2, -1])), rel=1e-11)


def test_a_thresholded_release():
    law = law_of(functions.thresholded_release, ["a", "a", "b"])
    above = {"a": 0.5 * math.exp(-1.0), "b": 0.5 * math.exp(-2.0)}
    weights = sorted(term.weight for terms in law.blocks.values() for term in terms)
    by_hand = [
        above["a"] * above["b"],
        above["a"] * (1 - above["b"]),
        (1 - above["a"]) * above["b"],
        (1 - above["a"]) * (1 - above["b"]),
    ]
    assert weights == pytest.approx(sorted(by_hand), rel=1e-12)


def test_text_with_a_number_in_it_is_not_followed():
    with pytest.raises(CannotFollow, match="needed as a plain value") as caught:
        law_of(functions.report_text, [1, 2])
    assert caught.value.function == "report_text"


def test_two_sided_geometric_noise():
    law = law_of(functions.geometric_count, [1, 2]).to_exact()
    points = np.arange(-5, 10)
    assert law.log_prob(points) == pytest.approx(exact.DiscreteLaplace(2, 1.0).log_prob(points), rel=1e-12)


def test_poisson_subsampling():
    law = law_of(functions.subsampled_sum, [1, 0, 1]).to_exact()
    mixture = exact.Mixture([0.25, 0.5, 0.25], [exact.Gaussian(k, 1.0) for k in (0.0, 1.0, 2.0)])
    points = np.linspace(-4.0, 6.0, 41)
    assert law.log_prob(points) == pytest.approx(mixture.log_prob(points), rel=1e-12)


@pytest.mark.parametrize(
    ("function", "claim", "pair", "verdict"),
    [
        (functions.noisy_counts_loop, PureDP(1.0), (["a"], ["a", "b"]), Verdict.NO_VIOLATION_FOUND),
        (functions.noisy_counts_loop, PureDP(1.0), (["a"], ["b"]), Verdict.VIOLATION),
        (functions.noisy_counts_comprehension, PureDP(1.0), (["a"], ["a", "b"]), Verdict.NO_VIOLATION_FOUND),
        (functions.clipped_mean, PureDP(1.0), ([], [1.0]), Verdict.VIOLATION),
        (functions.gauss_count, ApproxDP(1.0, 0.1), ([1], [1, 2]), Verdict.NO_VIOLATION_FOUND),
        (functions.coin_flip_survey, PureDP(math.log(3.0)), ([0, 1], [0, 0]), Verdict.NO_VIOLATION_FOUND),
        (functions.coin_flip_survey, PureDP(1.0), ([0, 1], [0, 0]), Verdict.VIOLATION),
        (functions.thresholded_release, PureDP(1.0), (["a"], ["a", "b"]), Verdict.VIOLATION),
        (functions.thresholded_release, PureDP(1.0), (["a", "b"], ["a", "b", "b"]), Verdict.NO_VIOLATION_FOUND),
        (functions.geometric_count, PureDP(1.0), ([1], [1, 2]), Verdict.NO_VIOLATION_FOUND),
        (functions.subsampled_sum, ApproxDP(1.0, 0.05), ([1], [1, 1]), Verdict.NO_VIOLATION_FOUND),
    ],
)
def test_verdicts(function, claim, pair, verdict):
    assert verify(function, claim, [pair]).verdict is verdict
