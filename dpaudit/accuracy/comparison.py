"""Compare mechanisms for private quantiles: the bound and the exact error of each.

All mechanisms release one of ``releases`` quantiles (nine deciles) and share epsilon evenly; data and outputs are clipped
to the range of the law. The sampling error E|X_(r) - d| is that of the empirical quantile without any privacy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from dpaudit._util.validation import check_choice, check_open_unit, did_you_mean
from dpaudit.accuracy.bound import Truth, Variant, finite_or_none
from dpaudit.accuracy.bounds import inverse_sensitivity, mean_error
from dpaudit.accuracy.bounds.above_threshold import panels
from dpaudit.accuracy.bounds.deciles import DECILES
from dpaudit.accuracy.conditions import Real, check
from dpaudit.accuracy.distributions.data_law import LAWS, UNIFORM, DataLaw
from dpaudit.accuracy.distributions.order_statistics import as_fraction, rank
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import (
    affordable,
    histogram_law,
    inverse_sensitivity_errors,
    inverse_sensitivity_mean_error,
    sampling_error,
    simulated_histogram_errors,
    simulated_histogram_mean_error,
)
from dpaudit.errors import InvalidArgument

SQUARED_DRAWS = 500
"""Number of data sets from which a root mean squared error is estimated where it is not exact."""


class Contender(StrEnum):
    """A way to release a quantile."""

    HISTOGRAM = "histogram"
    HISTOGRAM_MONOTONE = "histogram-monotone"
    INVERSE_SENSITIVITY = "inverse-sensitivity"
    INVERSE_SENSITIVITY_SMOOTH = "inverse-sensitivity-smooth"
    NAIVE_LAPLACE = "naive-laplace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One mechanism at one point: its mean error, the bound of its theorem, and the error without privacy.

    ``root_mean_squared_error`` is exact where the mean error is, and otherwise an estimate from ``SQUARED_DRAWS`` data sets.
    """

    contender: Contender
    law: str
    quantile: float
    epsilon: float
    n: int
    error: Truth
    root_mean_squared_error: float
    bound: float | None
    sampling_error: float

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            "contender": str(self.contender),
            "law": self.law,
            "quantile": self.quantile,
            "epsilon": self.epsilon,
            "n": self.n,
            "error": self.error.as_json(),
            "root_mean_squared_error": finite_or_none(self.root_mean_squared_error),
            "bound": None if self.bound is None else finite_or_none(self.bound),
            "sampling_error": self.sampling_error,
        }


@dataclass(frozen=True, slots=True)
class _Task:
    n: int
    epsilon: float
    quantile: Fraction
    law: DataLaw
    releases: int
    alpha: float
    rng: np.random.Generator

    @property
    def share(self) -> float:
        return self.epsilon / self.releases


def compare(
    *,
    n: Sequence[int] = (100, 300, 1000, 3000),
    epsilon: Sequence[float] = (1.0, 10.0),
    quantiles: Sequence[float | Fraction] = (0.5,),
    laws: Sequence[str | DataLaw] = ("uniform",),
    contenders: Sequence[Contender | str] = tuple(Contender),
    releases: int = DECILES,
    error_probability: float = 1e-6,
    seed: int = 0,
    progress: Callable[[int], Any] | None = None,
) -> tuple[ComparisonRow, ...]:
    """Return the bounds and mean errors of every mechanism for all combinations of n, epsilon, quantile and law.

    Errors of HistogramMethod and of the naive Laplace mechanism are exact up to moderate sizes. Other errors are anytime-valid
    Monte Carlo intervals; those of inverse sensitivity are exact given the data, and averaged over random data.

    Parameters
    ----------
    n, epsilon, quantiles, laws, contenders : sequence
        The values to combine. ``laws`` are names or :class:`DataLaw` objects.
    releases : int
        Number of quantiles that share each epsilon.
    error_probability : float
        Probability that any of the Monte Carlo intervals is wrong.
    seed : int
        Seed of the Monte Carlo draws.
    progress : callable, optional
        Called with 1 after each row.

    Examples
    --------
    >>> rows = compare(n=[100], epsilon=[10.0], contenders=["histogram", "naive-laplace"])
    >>> [(str(row.contender), round(row.error.middle, 4)) for row in rows]
    [('histogram', 0.0627), ('naive-laplace', 0.3842)]
    """
    check_open_unit(error_probability=error_probability)
    check(n_slides=np.asarray(list(n)), epsilon=np.asarray(list(epsilon)))
    chosen = [_contender(name) for name in contenders]
    tasks = list(itertools.product(map(_law, laws), map(as_fraction, quantiles), epsilon, n))
    rows = []
    for number, (law, quantile, budget, size) in enumerate(tasks):
        sampling = sampling_error(size, quantile, law)
        for place, contender in enumerate(chosen):
            rng = np.random.default_rng([seed, number, place])
            alpha = error_probability / (len(tasks) * len(chosen))
            task = _Task(int(size), float(budget), quantile, law, releases, alpha, rng)
            error, squared, bound = _EVALUATE[contender](task)
            rows.append(
                ComparisonRow(
                    contender=contender,
                    law=law.name,
                    quantile=float(quantile),
                    epsilon=float(budget),
                    n=int(size),
                    error=error,
                    root_mean_squared_error=squared,
                    bound=bound,
                    sampling_error=sampling,
                )
            )
            if progress is not None:
                progress(1)
    return tuple(rows)


def _contender(name: Contender | str) -> Contender:
    check_choice([str(contender) for contender in Contender], contender=str(name))
    return Contender(name)


def _law(law: str | DataLaw) -> DataLaw:
    if isinstance(law, DataLaw):
        return law
    if law not in LAWS:
        raise InvalidArgument(f"law={law!r} must be one of {', '.join(LAWS)}.{did_you_mean(law, LAWS)}")
    return LAWS[law]


def _histogram(task: _Task, *, monotone: bool) -> tuple[Truth, float, float]:
    law, steps = task.law, int(mean_error.slides_steps(task.n))
    setting = HistogramSetting(
        n=task.n,
        steps=steps,
        quantile=task.quantile,
        epsilon=task.epsilon,
        law=law,
        low=law.low,
        high=law.high,
        releases=task.releases,
        monotone_noise=monotone,
    )
    if affordable(setting):
        exact = histogram_law(setting)
        error, squared = Truth.exact(exact.mean_error(), 1e-8), exact.root_mean_squared_error()
    else:
        error = simulated_histogram_mean_error(setting, rng=task.rng, alpha=task.alpha)
        squared = _root_mean_square(simulated_histogram_errors(setting, SQUARED_DRAWS, task.rng))
    variant = Variant.MONOTONE_NOISE if monotone else Variant.CORRECTED_36
    options: dict[str, Any] = {
        "n": task.n,
        "steps": steps,
        "quantile": task.quantile,
        "epsilon": task.epsilon,
        "variant": variant,
        "releases": task.releases,
    }

    def bound(betas: Real) -> Any:
        if law is UNIFORM:
            return mean_error.corrected_mean_error(**options, beta=betas)
        return [mean_error.corrected_mean_error_for_law(**options, beta=float(beta), law=law) for beta in betas]

    points, rounds = (121, 4) if law is UNIFORM else (13, 3)
    return error, squared, mean_error.best_beta(bound, points=points, rounds=rounds)[1]


def _root_mean_square(errors: Real) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _inverse_sensitivity(task: _Task, *, smooth: bool) -> tuple[Truth, float, float | None]:
    bound, _, rho = inverse_sensitivity.mean_error(n=task.n, quantile=task.quantile, epsilon=task.share, law=task.law)
    error = inverse_sensitivity_mean_error(
        task.n,
        task.quantile,
        task.share,
        rho if smooth else 0.0,
        rng=task.rng,
        alpha=task.alpha,
        law=task.law,
        most=3000,
    )
    law, d = task.law, task.law.quantile(task.quantile)
    data = np.clip(law.sample((SQUARED_DRAWS, task.n), task.rng), law.low, law.high)
    r, width = int(rank(task.n, task.quantile)), rho if smooth else 0.0
    squares = inverse_sensitivity_errors(data, r, task.share, width, d, law.low, law.high, power=2)
    if not smooth:
        plain = inverse_sensitivity.plain_mean_error
        bound = plain(n=task.n, quantile=task.quantile, epsilon=task.share)[0] if law is UNIFORM else math.nan
    return error, float(np.sqrt(squares.mean())), None if math.isnan(bound) else bound


def _naive_laplace(task: _Task) -> tuple[Truth, float, float]:
    """Clipped order statistic plus Lap((b - a)/share), clipped: exact given X_(r), integrated over its Beta law."""
    law = task.law
    scale, d = (law.high - law.low) / task.share, law.quantile(task.quantile)
    levels, weights = panels(
        np.array([0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.5, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9, 1.0]), 0.05
    )
    r = int(rank(task.n, task.quantile))
    uniform = special.betaincinv(float(r), task.n - r + 1.0, levels)
    if law.inverse is None:
        raise InvalidArgument(f"law {law.name!r} has no inverse distribution function; naive-laplace needs it.")
    x = np.clip(np.asarray(law.inverse(uniform), float), law.low, law.high)
    error = float(weights @ _clipped_laplace_error(x, d, scale, law.low, law.high))
    # E(Y - d)^2 = int_low^d 2 (d - t) P(Y <= t) dt + int_d^high 2 (t - d) P(Y > t) dt, Y the clipped output.
    t, t_weights = panels(np.array([law.low, d, law.high]), (law.high - law.low) / 40)
    below = 0.5 + 0.5 * np.sign(t - x[:, None]) * -np.expm1(-np.abs(t - x[:, None]) / scale)
    squares = np.where(t < d, below, 1.0 - below) @ (t_weights * 2.0 * np.abs(t - d))
    return (
        Truth.exact(error, 1e-8),
        float(np.sqrt(weights @ squares)),
        sampling_error(task.n, task.quantile, law) + scale,
    )


def _clipped_laplace_error(x: Real, d: float, scale: float, low: float, high: float) -> Real:
    """E|clip(x + Lap(scale)) - d| = int_low^d P(x + L <= t) dt + int_d^high P(x + L > t) dt."""

    def integral(u: Real) -> Real:
        """Integral of the Laplace distribution function up to u."""
        return np.where(u < 0.0, 0.0, u) + 0.5 * scale * np.exp(-np.abs(u) / scale)

    return np.asarray(integral(d - x) - integral(low - x) + integral(x - d) - integral(x - high))


_EVALUATE: dict[Contender, Callable[[_Task], tuple[Truth, float, float | None]]] = {
    Contender.HISTOGRAM: lambda task: _histogram(task, monotone=False),
    Contender.HISTOGRAM_MONOTONE: lambda task: _histogram(task, monotone=True),
    Contender.INVERSE_SENSITIVITY: lambda task: _inverse_sensitivity(task, smooth=False),
    Contender.INVERSE_SENSITIVITY_SMOOTH: lambda task: _inverse_sensitivity(task, smooth=True),
    Contender.NAIVE_LAPLACE: _naive_laplace,
}
