"""Randomised response and noise: statements of the lecture notes, the notes and the slides, and corrections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import integrate, special

from dpaudit.accuracy.bound import Bound, Sense, Status, Truth, Variant
from dpaudit.accuracy.bounds import noise, randomised_response
from dpaudit.accuracy.bounds.above_threshold import panels
from dpaudit.accuracy.conditions import Real
from dpaudit.accuracy.regions import Axis, Range
from dpaudit.accuracy.theorem import Effort, Theorem, TheoremForm
from dpaudit.accuracy.truths.sequential import estimate_mean

_DECILES = list(range(1, 10))


def _response_bound(variant: Variant, sense: Sense) -> Callable[..., Bound]:
    formula = Variant.PRINTED if variant is Variant.PROOF else variant

    def bound(*, n: int, truth_rate: float, p: float) -> Bound:
        return Bound(
            value=float(randomised_response.variance(n, truth_rate, p, formula)),
            variant=variant,
            theorem="lecture notes, section 6.1",
            sense=sense,
            quantity="Var(estimate of p)",
            trivial=math.inf,
            terms={"epsilon": float(randomised_response.epsilon(truth_rate))},
        )

    return bound


def _response_truth(bound: Bound, effort: Effort, *, n: int, truth_rate: float, p: float) -> Truth:
    """Variance summed over the binomial law of the number of ones."""
    del bound, effort
    value = randomised_response.estimate_law(n, truth_rate, p).variance()
    return Truth.exact(value, tolerance=1e-9 * max(value, 1e-300))


def _median_bound(variant: Variant) -> Callable[..., Bound]:
    def bound(*, epsilon: float, median: float) -> Bound:
        value = noise.naive_median_error(
            epsilon, median=median, averaged=variant is Variant.CORRECTED, clipped=variant is Variant.SHARP
        )
        return Bound(
            value=float(value),
            variant=variant,
            theorem="slides, the naive method",
            sense=Sense.EQUAL,
            quantity="E|M - median|",
        )

    return bound


def _median_truth(variant: Variant) -> Callable[..., Truth]:
    def truth(bound: Bound, effort: Effort, *, epsilon: float, median: float) -> Truth:
        """E|clip(m + Lap) - m| by quadrature of the Laplace density."""
        del bound, effort
        scale = (0.5 if variant is Variant.CORRECTED else 1.0) / epsilon
        reach = 45.0 * scale
        ends = np.unique(np.clip([-reach, -median, 0.0, 1.0 - median, reach], -reach, reach))
        x, w = panels(ends, scale)
        errors = np.abs(np.clip(median + x, 0.0, 1.0) - median) if variant is Variant.SHARP else np.abs(x)
        return Truth.exact(float(np.sum(w * errors * np.exp(-np.abs(x) / scale)) / (2.0 * scale)))

    return truth


def _laplace_bound(*, scale: float, x: float) -> Bound:
    return Bound(
        value=float(noise.laplace_tail(x, scale)),
        variant=Variant.PRINTED,
        theorem="notes, Laplace mechanism; slides",
        sense=Sense.EQUAL,
        quantity="P(|Lap(b)| > x)",
    )


def _laplace_truth(bound: Bound, effort: Effort, *, scale: float, x: float) -> Truth:
    del bound, effort
    part, _ = integrate.quad(lambda u: math.exp(-u), x / scale, math.inf)
    return Truth.exact(float(part))


def _gaussian_bound(variant: Variant) -> Callable[..., Bound]:
    def bound(*, scale: float) -> Bound:
        return Bound(
            value=scale**2,
            variant=variant,
            theorem="notes, Gaussian mechanism",
            sense=Sense.EQUAL,
            quantity="Var(mu + rho erfinv(2U - 1))"
            if variant is Variant.PRINTED
            else "Var(mu + rho sqrt(2) erfinv(2U - 1))",
        )

    return bound


def _gaussian_truth(bound: Bound, effort: Effort, *, scale: float) -> Truth:
    """Variance of the sampler, integrated over the uniform variable: u = Phi(s) turns it into a Gaussian moment."""
    del effort
    stretch = 1.0 if bound.variant is Variant.PRINTED else math.sqrt(2.0)
    s, w = panels(np.array([-12.0, 0.0, 12.0]), 0.5)
    values = scale * stretch * special.erfinv(np.clip(2.0 * special.ndtr(s) - 1.0, -1.0 + 1e-16, 1.0 - 1e-16))
    value = float(np.sum(w * values**2 * np.exp(-0.5 * s**2)) / math.sqrt(2.0 * math.pi))
    return Truth.exact(value, tolerance=1e-7)


def _bounded_bound(*, epsilon: float, delta: float, sensitivity: float) -> Bound:
    radius = sensitivity * math.sqrt(math.log(1.0 / delta)) / epsilon
    return Bound(
        value=delta,
        variant=Variant.SEMI_REPAIRED,
        theorem="notes, bounded noise",
        sense=Sense.AT_MOST,
        quantity="delta of one query with noise of radius R = M sqrt(log(1/delta))/epsilon",
        terms={"R": radius},
    )


def _bounded_truth(bound: Bound, effort: Effort, *, epsilon: float, delta: float, sensitivity: float) -> Truth:
    del effort, delta
    bounded = noise.BoundedNoise("DE", bound.terms["R"])
    return Truth.exact(bounded.single_query_delta(epsilon, sensitivity))


def _weights_bound(*, records: int, dimension: int, regularisation: float, epsilon: float) -> Bound:
    scale = float(noise.importance_sensitivity(records, dimension, regularisation)) / epsilon
    return Bound(
        value=float(noise.importance_mean_error(dimension, scale)),
        variant=Variant.DERIVED,
        theorem="importance weighting, mean value theorem",
        sense=Sense.AT_MOST,
        quantity="E|noise in a weighted mean of b in [0, 1]|",
        terms={"scale": scale},
    )


def _weights_truth(bound: Bound, effort: Effort, **point: Any) -> Truth:
    """Corners of the cube as public records, b the first feature, coefficients zero: Monte Carlo over the noise."""
    d, scale = int(point["dimension"]), bound.terms["scale"]
    public = np.vstack([np.zeros(d), np.eye(d), np.ones(d)])
    b = public[:, 0]

    def draw(size: int) -> Real:
        direction = effort.rng.standard_normal((size, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        z = direction * effort.rng.gamma(d, scale, size=(size, 1))
        weights = special.softmax(z @ public.T, axis=1)
        return np.asarray(np.abs(weights @ b - b.mean()))

    return estimate_mean(draw, alpha=effort.alpha, against=bound.value, most=effort.draws)


def _form(
    variant: Variant,
    bound: Callable[..., Bound],
    truth: Callable[..., Truth],
    expected: Status,
    region: Mapping[str, Axis],
    note: str,
    *,
    monte_carlo: bool = False,
) -> TheoremForm:
    return TheoremForm(
        variant=variant,
        bound=bound,
        truth=truth,
        expected=expected,
        region=region,
        note=note,
        monte_carlo=monte_carlo,
    )


_RESPONSE: dict[str, Axis] = {"n": Range(1, 200), "truth_rate": Range(0.05, 1.0), "p": Range(0.01, 1.0)}
_MEDIAN: dict[str, Axis] = {"epsilon": Range(0.05, 20.0), "median": Range(0.01, 1.0)}

THEOREMS = (
    Theorem(
        name="randomised-response",
        title="Variance of randomised response",
        source="lecture notes, section 6.1",
        statement="Var(estimate of p) = 1/(a^2 n), a the rate of true answers.",
        parameters={"n": ("n", 18), "truth_rate": ("truth_rate", 0.5), "p": ("p", 0.3)},
        forms=(
            _form(
                Variant.PRINTED,
                _response_bound(Variant.PRINTED, Sense.EQUAL),
                _response_truth,
                Status.VIOLATED,
                _RESPONSE,
                "false as the equality that is printed",
            ),
            _form(
                Variant.PROOF,
                _response_bound(Variant.PROOF, Sense.AT_MOST),
                _response_truth,
                Status.HOLDS,
                _RESPONSE,
                "as an upper bound (Var Y_i <= 1): true, 4 times too large",
            ),
            _form(
                Variant.CORRECTED,
                _response_bound(Variant.CORRECTED, Sense.AT_MOST),
                _response_truth,
                Status.HOLDS,
                _RESPONSE,
                "1/(4 a^2 n)",
            ),
            _form(
                Variant.EXACT,
                _response_bound(Variant.EXACT, Sense.EQUAL),
                _response_truth,
                Status.HOLDS,
                _RESPONSE,
                "q (1 - q)/(a^2 n), q = a p + (1 - a)/2",
            ),
        ),
    ),
    Theorem(
        name="naive-median",
        title="Median plus Laplace noise",
        source="slides, the naive method",
        statement="E|M - median| = 1/epsilon for data in [0, 1] (sensitivity 1).",
        parameters={"epsilon": ("epsilon", 1.0), "median": ("median", 0.5)},
        forms=tuple(
            _form(variant, _median_bound(variant), _median_truth(variant), Status.HOLDS, _MEDIAN, note)
            for variant, note in (
                (Variant.PRINTED, "true for odd n; the integral must run over t >= 0"),
                (Variant.CORRECTED, "1/(2 epsilon) for even n with the middle records averaged (sensitivity 1/2)"),
                (
                    Variant.SHARP,
                    "clipped to [0, 1], which is free: (2 - exp(-epsilon m) - exp(-epsilon (1 - m)))/(2 epsilon)",
                ),
            )
        ),
    ),
    Theorem(
        name="laplace-tail",
        title="Tail of Laplace noise",
        source="notes, Laplace mechanism; slides",
        statement="P(|Lap(b)| > x) = exp(-x/b).",
        parameters={"scale": ("scale", 1.0), "x": ("x", 3.0)},
        forms=(
            _form(
                Variant.PRINTED,
                _laplace_bound,
                _laplace_truth,
                Status.HOLDS,
                {"scale": Range(0.01, 100.0), "x": Range(0.01, 100.0)},
                "right",
            ),
        ),
    ),
    Theorem(
        name="gaussian-variance",
        title="Variance of the Gaussian sampler",
        source="notes, Gaussian mechanism",
        statement="x = mu + rho erfinv(2u - 1) has variance rho^2.",
        parameters={"scale": ("scale", 1.0)},
        forms=(
            _form(
                Variant.PRINTED,
                _gaussian_bound(Variant.PRINTED),
                _gaussian_truth,
                Status.VIOLATED,
                {"scale": Range(0.1, 10.0)},
                "false: the variance is rho^2/2, half of the noise that privacy was computed for",
            ),
            _form(
                Variant.CORRECTED,
                _gaussian_bound(Variant.CORRECTED),
                _gaussian_truth,
                Status.HOLDS,
                {"scale": Range(0.1, 10.0)},
                "x = mu + rho sqrt(2) erfinv(2u - 1)",
            ),
        ),
    ),
    Theorem(
        name="bounded-noise",
        title="Radius of bounded noise",
        source="notes, bounded noise (Dagan and Kur 2022)",
        statement="Error at most O(M sqrt(k log(1/delta))/epsilon) over k queries. Here one query, and the constant read as 1.",
        parameters={
            "epsilon": ("epsilon", 1.0),
            "delta": ("delta", 1e-5),
            "sensitivity": ("sensitivity", 1.0),
        },
        forms=(
            _form(
                Variant.SEMI_REPAIRED,
                _bounded_bound,
                _bounded_truth,
                Status.VIOLATED,
                {"epsilon": Range(0.1, 2.0), "delta": Range(1e-7, 0.01), "sensitivity": [1.0]},
                "with the constant 1 such noise is not private: the constant is 19 at epsilon = 1, delta = 1e-5",
            ),
        ),
    ),
    Theorem(
        name="importance-weighting",
        title="Noise in an importance-weighted mean",
        source="notes (Ji and Elkan 2013), reconstructed",
        statement=(
            "The noise changes the weighted mean of b in [0, 1] by at most min(1, (d^(3/2)/4) S/epsilon) on average, "
            "S = sqrt(d)/(N lambda)."
        ),
        parameters={
            "records": ("records", 1000),
            "dimension": ("dimension", 3),
            "regularisation": ("regularisation", 0.1),
            "epsilon": ("epsilon", 1.0),
        },
        forms=(
            _form(
                Variant.DERIVED,
                _weights_bound,
                _weights_truth,
                Status.HOLDS,
                {
                    "records": Range(10, 1000),
                    "dimension": Range(1, 10),
                    "regularisation": Range(0.01, 1.0),
                    "epsilon": Range(0.1, 5.0),
                },
                "truth by Monte Carlo",
                monte_carlo=True,
            ),
        ),
    ),
)
