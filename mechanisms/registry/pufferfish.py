"""Registry entries of the Pufferfish mechanisms: five calibrations with their exact epsilon, and four broken ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dpaudit import exact, neighbours
from dpaudit.claims import ApproxDP, PureDP, Relation

from ..broken.pufferfish import ReusedDraw, ignored_spread, mean_distance, one_prior_only
from ..pufferfish import GaussianMasking, Pairs, Secret, UnequalSpreadLaplace, WassersteinMechanism
from ..pufferfish.wasserstein import Conditional, GaussianMixture
from . import Entry, Truth, entry

# Exact values, which a test computes again: the smallest epsilon at the delta of the claim.
SPREAD_EPSILON = 0.458900768
IGNORED_SPREAD_EPSILON = 4.328625078
COUNTS_EPSILON = 0.3970573062
MIXTURE_EPSILON = 0.956372795


def entries() -> list[Entry]:
    """Return the sound ones, then the broken ones."""
    normal, mixture, made = GaussianMixture.single, GaussianMixture, functools.partial
    shifted = (_pair(normal(0.0, 1.0), normal(1.0, 1.0)),)
    far = _pair(normal(0.0, 1.0), normal(3.0, 1.0), "far")
    spread = (_pair(normal(0.0, 1.0), normal(1.0, 1.5)),)
    wide = (_pair(normal(0.0, 1.0), normal(1.0, 3.0)),)
    mixed = (_pair(mixture((0.3, 0.7), (0.0, 4.0), (1.0, 1.5)), mixture((0.3, 0.7), (1.0, 4.5), (1.0, 1.5))),)
    counts = (_pair(_counts(0.2, 0.3, 0.3, 0.2), _counts(0.1, 0.2, 0.4, 0.3)),)
    rare = (_pair(exact.Discrete({0: 0.9, 10: 0.1}), exact.Discrete({0: 0.999, 10: 0.001})),)
    reused = ReusedDraw(WassersteinMechanism(shifted, 1.0), (("a", -0.5), ("b", 2.0)))
    pure, approximate = PureDP(1.0, Relation.SECRETS), ApproxDP(1.0, 1e-3, Relation.SECRETS)
    return [
        _entry("wasserstein", made(WassersteinMechanism, shifted, 1.0), shifted, 1.0),
        _entry("wasserstein-counts", made(WassersteinMechanism, counts, 1.0), counts, COUNTS_EPSILON),
        _entry("wasserstein-mixture", made(WassersteinMechanism, mixed, 1.0), mixed, MIXTURE_EPSILON),
        _entry("unequal-spread", made(UnequalSpreadLaplace, spread, 1.0, 1e-3), spread, SPREAD_EPSILON),
        _entry("masking", made(GaussianMasking, mixed, 0.5, 1e-2), mixed, 0.5),
        _entry(
            "mean-distance",
            made(mean_distance, rare, 1.0),
            rare,
            mean_distance(rare, 1.0).epsilon_exact,
            "The noise is scaled by W_1, the mean distance, and a rare large difference shows.",
            claim=pure,
        ),
        _entry(
            "one-prior",
            made(one_prior_only, (*shifted, far), 1.0),
            (far,),
            3.0,
            "The noise is calibrated for the first of two priors.",
            claim=pure,
        ),
        _entry(
            "ignored-spread",
            made(ignored_spread, wide, 1.0, 1e-3),
            wide,
            IGNORED_SPREAD_EPSILON,
            "The noise covers the difference of the means, not that of the standard deviations.",
            claim=approximate,
        ),
        _entry(
            "reused-draw",
            lambda: reused,
            shifted,
            reused.epsilon_exact,
            "The trial loop draws the data once and keeps them, which audits another statement.",
            claim=pure,
        ),
    ]


def _entry(
    name: str,
    make: Callable[[], Any],
    pairs: Pairs,
    truth: Truth,
    bug: str | None = None,
    claim: PureDP | ApproxDP | None = None,
) -> Entry:
    where = functools.partial(neighbours.fixed, pairs, relation=Relation.SECRETS)
    source = "Song, Wang and Chaudhuri 2017" if "wasserstein" in name else "reconstructed from the definition"
    return entry(f"pufferfish-{name}", make, where, truth, source, bug, samples=400_000, claim=claim)


def _pair(first: Conditional, second: Conditional, prior: str = "theta") -> tuple[Secret, Secret]:
    return Secret("a", first, prior), Secret("b", second, prior)


def _counts(*probabilities: float) -> exact.Discrete:
    return exact.Discrete(dict(enumerate(probabilities)))
