"""Error against shown epsilon for one mechanism, as a parameter of it varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit._util.validation import check_count, check_open_unit, shorten
from dpaudit.accuracy.bound import finite_or_none
from dpaudit.accuracy.plots import new_figure, save_figure
from dpaudit.claims import PureDP
from dpaudit.engine.audit import audit, check_name
from dpaudit.errors import InvalidArgument
from dpaudit.exact.verification import verify
from dpaudit.mechanism import as_mechanism
from dpaudit.neighbours import as_neighbours
from dpaudit.utility.check import Subject, largest_difference
from dpaudit.utility.error_claim import MeanError


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeoffPoint:
    """One value of the parameter: the mean error with its standard error, and the epsilon that was shown.

    ``exact`` is true if epsilon is the largest exact one over the pairs that were searched, for mechanisms that declare their
    law; otherwise it is the lower bound of a black-box audit.
    """

    value: float
    mean_error: float
    standard_error: float
    epsilon: float
    exact: bool

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            "value": self.value,
            "mean_error": finite_or_none(self.mean_error),
            "standard_error": finite_or_none(self.standard_error),
            "epsilon": finite_or_none(self.epsilon),
            "exact": self.exact,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """A definition of a trade-off curve, which ``dpaudit tradeoff`` draws.

    Parameters
    ----------
    name : str
        Title of the picture.
    make : callable
        ``make(value)`` returns the mechanism for a value of the parameter.
    values : sequence of float
        The values of the parameter.
    truth : callable or value
        The right answer, as for :func:`dpaudit.check_accuracy`.
    data : data set or DrawnData
        The data on which the error is measured.
    neighbours : Neighbours or list of pairs
        The pairs on which epsilon is measured.
    parameter : str
        Name of the parameter, for the axis.
    error : callable, optional
        Distance of an output from the truth.

    Examples
    --------
    >>> import dpaudit
    >>> laplace = lambda scale: dpaudit.batched(lambda data, size, rng: sum(data) + rng.laplace(scale=scale, size=size))
    >>> curve = Tradeoff(name="noisy sum", make=laplace, values=[1.0, 2.0], truth=sum, data=[1, 1], neighbours=[([1], [0])])
    >>> points = curve.run(samples=20_000)
    >>> [round(point.mean_error) for point in points], points[0].epsilon > points[1].epsilon
    ([1, 2], True)
    """

    name: str
    make: Callable[[float], Any]
    values: Sequence[float]
    truth: Any
    data: Any
    neighbours: Any
    parameter: str = "parameter"
    error: Callable[[Any, Any], float] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name)
        if not len(self.values):
            raise InvalidArgument(f"values={shorten(self.values)} must hold at least one value of the parameter.")

    def run(self, *, samples: int = 100_000, alpha: float = 1e-6, seed: int = 0) -> tuple[TradeoffPoint, ...]:
        """Measure error and epsilon for every value.

        Parameters
        ----------
        samples : int
            Releases for each audit; a tenth as many, at least 1000, for each error.
        alpha : float
            Probability that any of the lower bounds on epsilon is too large.
        seed : int
            Root of all random numbers.
        """
        check_count(samples=samples)
        check_open_unit(alpha=alpha)
        where = self.neighbours() if callable(self.neighbours) else self.neighbours
        points = []
        for number, value in enumerate(self.values):
            mechanism = self.make(value)
            scores = self._errors(mechanism, max(1000, samples // 10), np.random.default_rng([seed, number]))
            epsilon, exact = self._epsilon(mechanism, where, samples, alpha / len(self.values), seed + number)
            points.append(
                TradeoffPoint(
                    value=float(value),
                    mean_error=float(scores.mean()),
                    standard_error=float(scores.std(ddof=1) / np.sqrt(scores.size)),
                    epsilon=epsilon,
                    exact=exact,
                )
            )
        return tuple(points)

    def _errors(self, mechanism: Any, size: int, rng: np.random.Generator) -> Any:
        # MeanError scores are the errors themselves; the claimed value is not used here.
        subject = Subject(as_mechanism(mechanism), self.truth, MeanError(1.0), self.error or largest_difference)
        return subject.scores(self.data, size, rng)

    def _epsilon(self, mechanism: Any, where: Any, samples: int, alpha: float, seed: int) -> tuple[float, bool]:
        if hasattr(mechanism, "law"):
            found = verify(mechanism, PureDP(1e-9), as_neighbours(where), examples=60, seed=seed)
            return float(found.largest), True
        result = audit(
            mechanism,
            PureDP(1e-9),
            where,
            samples=samples,
            alpha=alpha,
            seed=seed,
            until="budget",
            shrink=False,
            progress=False,
        )
        return float(result.epsilon_lower), False


def plot_tradeoff(curve: Tradeoff, points: Sequence[TradeoffPoint], path: str | Path) -> None:
    """Draw mean error against epsilon, each point with the value of the parameter.

    Parameters
    ----------
    curve : Tradeoff
        The definition.
    points : sequence of TradeoffPoint
        What was measured.
    path : str or Path
        The SVG file to write.
    """
    shown = [point for point in points if point.epsilon > 0.0 and np.isfinite(point.epsilon) and point.mean_error > 0.0]
    if not shown:
        raise InvalidArgument("plot: no point has a positive finite epsilon and error; raise samples.")
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    axes.errorbar(
        [p.epsilon for p in shown],
        [p.mean_error for p in shown],
        yerr=[2.0 * p.standard_error for p in shown],
        fmt="o-",
        color="#0072b2",
        markersize=4,
        linewidth=1,
    )
    for point in shown:
        axes.annotate(
            f"{point.value:g}", (point.epsilon, point.mean_error), textcoords="offset points", xytext=(5, 5), fontsize=8
        )
    kind = "exact epsilon" if all(p.exact for p in shown) else "epsilon shown (lower bound)"
    axes.set(xscale="log", yscale="log", xlabel=kind, ylabel="mean error")
    axes.set_title(f"{curve.name}: points are values of {curve.parameter}", fontsize=10)
    save_figure(figure, path)
