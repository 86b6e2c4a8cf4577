"""``python -m benchmarks.atlas [FOLDER]``: draw the pictures of docs/atlas.md (about two minutes).

Errors of HistogramMethod and of naive noise are exact. Those of the others are exact given the data where they can be, and
averaged over random data with the sampling error |X_(r) - d|, whose mean is known, as control variate.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.bounds import inverse_sensitivity, mean_error
from dpaudit.accuracy.comparison import compare
from dpaudit.accuracy.distributions.data_law import LAWS, UNIFORM, DataLaw
from dpaudit.accuracy.distributions.error_law import ErrorLaw
from dpaudit.accuracy.distributions.order_statistics import rank
from dpaudit.accuracy.plots import new_figure, save_figure
from dpaudit.accuracy.truths.certified import HistogramSetting
from dpaudit.accuracy.truths.quantile_errors import (
    control_factor,
    histogram_law,
    histogram_law_for_data,
    inverse_sensitivity_errors,
    sampling_error,
)
from dpaudit.statements.rows.inverse import optimality_ratio
from mechanisms.exponential_quantiles import JointExponentialQuantiles

HALF = Fraction(1, 2)
SIZES = (100, 300, 1000, 3000, 10_000)
BUDGETS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
SEED = 20_220_802
STYLE: dict[str, tuple[str, str]] = {
    "naive Laplace": ("#999999", "v"),
    "HistogramMethod": ("#d55e00", "s"),
    "HistogramMethod, less noise": ("#e69f00", "D"),
    "joint exponential": ("#cc79a7", "P"),
    "exponential mechanism": ("#56b4e9", "^"),
    "inverse sensitivity": ("#0072b2", "o"),
}


@dataclass(frozen=True)
class Point:
    """A quantile to be released: level, records, law, budget of all releases and their number."""

    n: int
    epsilon: float
    level: Fraction = HALF
    law: DataLaw = UNIFORM
    releases: int = 9

    @property
    def share(self) -> float:
        return self.epsilon / self.releases

    @property
    def target(self) -> float:
        return self.law.quantile(self.level)

    @property
    def setting(self) -> HistogramSetting:
        steps = int(mean_error.slides_steps(self.n))
        return HistogramSetting(
            n=self.n,
            steps=steps,
            quantile=self.level,
            epsilon=self.epsilon,
            law=self.law,
            low=self.law.low,
            high=self.law.high,
            releases=self.releases,
        )


@dataclass(frozen=True)
class Measured:
    mean: float
    error: float  # standard error; 0 if exact
    squared: float  # root mean squared error


def averaged(point: Point, errors: Callable[[Any, np.random.Generator], tuple[Any, Any]], draws: int = 400) -> Measured:
    """Average errors (and squares) given the data over random data, with the sampling error as control variate."""
    rng = np.random.default_rng([SEED, point.n, int(point.epsilon * 1000)])
    r = int(rank(point.n, point.level))

    def block(size: int) -> tuple[Any, Any, Any]:
        data = np.clip(point.law.sample((size, point.n), rng), point.law.low, point.law.high)
        first, second = errors(data, rng)
        return first, second, np.abs(np.partition(data, r - 1, axis=1)[:, r - 1] - point.target)

    pilot = block(64)
    factor = control_factor(pilot[0], pilot[2])
    size = max(1, min(draws, int(2e6 / point.n)))
    blocks = [block(size) for _ in range(math.ceil(draws / size))]
    mean, squares, control = (np.concatenate(part) for part in zip(*blocks, strict=True))
    corrected = mean - factor * (control - sampling_error(point.n, point.level, point.law))
    return Measured(
        float(corrected.mean()), float(corrected.std(ddof=1) / math.sqrt(mean.size)), float(np.sqrt(squares.mean()))
    )


def staircase(point: Point, *, exponential: bool) -> Measured:
    """Inverse sensitivity, or the exponential mechanism, exactly given the data."""
    r, law = int(rank(point.n, point.level)), point.law
    lengths = np.abs(np.arange(point.n + 1) - float(point.level * point.n)) if exponential else None

    def errors(data: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        del rng
        options = (r, point.share, 0.0, point.target, law.low, law.high)
        return (
            inverse_sensitivity_errors(data, *options, lengths=lengths),
            inverse_sensitivity_errors(data, *options, power=2, lengths=lengths),
        )

    return averaged(point, errors)


def joint(point: Point) -> Measured:
    """All deciles at once by the exponential mechanism: four releases of each data set."""
    mechanism = JointExponentialQuantiles(point.epsilon, point.law.low, point.law.high)
    place = int(point.level * 10) - 1

    def errors(data: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        off = np.array([np.abs(mechanism.sample(row, 4, rng)[:, place] - point.target) for row in data])
        return off.mean(axis=1), (off**2).mean(axis=1)

    return averaged(point, errors, draws=150)


def histogram(point: Point, *, monotone: bool = False, edge: float = 0.0) -> Measured:
    law = histogram_law(replace(point.setting, monotone_noise=monotone))
    values = law.values.copy()
    values[:-1] += edge * point.setting.width
    law = ErrorLaw(values, law.probabilities, law.target)
    return Measured(law.mean_error(), 0.0, law.root_mean_squared_error())


def naive(point: Point) -> Measured:
    (row,) = compare(
        n=[point.n],
        epsilon=[point.epsilon],
        quantiles=[point.level],
        laws=[point.law],
        contenders=["naive-laplace"],
        releases=point.releases,
    )
    return Measured(row.error.middle, 0.0, row.root_mean_squared_error)


MEASURE: dict[str, Callable[[Point], Measured]] = {
    "naive Laplace": naive,
    "HistogramMethod": histogram,
    "HistogramMethod, less noise": functools.partial(histogram, monotone=True),
    "joint exponential": joint,
    "exponential mechanism": functools.partial(staircase, exponential=True),
    "inverse sensitivity": functools.partial(staircase, exponential=False),
}


@functools.cache
def measured(name: str, point: Point) -> Measured:
    print(f"  {name}, n = {point.n}, epsilon = {point.epsilon:g}", file=sys.stderr, flush=True)
    return MEASURE[name](point)


def curves(
    axes: Any, x: Any, points: list[Point], pick: Callable[[Measured], float], names: Any = tuple(MEASURE)
) -> None:
    for name in names:
        colour, marker = STYLE[name]
        found = [measured(name, point) for point in points]
        # The exponential mechanism is nearly the same as inverse sensitivity: rings, so that both are seen.
        ring = {"markersize": 9, "markerfacecolor": "none"} if name == "exponential mechanism" else {"markersize": 4}
        axes.plot(x, [pick(m) for m in found], marker=marker, color=colour, linewidth=1.2, label=name, **ring)
        low, high = ([pick(m) + side * 2 * m.error for m in found] for side in (-1, 1))
        axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)


def finish(axes: Any, title: str, x: str, y: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    decorate(axes, title)


def plain_ticks(axes: Any) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, 20, ... instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def decorate(axes: Any, title: str) -> None:
    plain_ticks(axes)
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.figure.set_size_inches(7.6, 4.2)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def error_by_records(path: Path, *, squared: bool) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    points = [Point(n, 1.0) for n in SIZES]
    curves(axes, SIZES, points, (lambda m: m.squared) if squared else (lambda m: m.mean))
    if not squared:
        axes.plot(
            SIZES, [sampling_error(n, HALF) for n in SIZES], ":", color="black", label="sampling error, no privacy"
        )
    what = "root mean squared error" if squared else "mean error"
    finish(axes, "Median of uniform records, epsilon = 1 for nine deciles", "records n", what)
    save_figure(figure, path)


def error_by_epsilon(path: Path) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    curves(axes, BUDGETS, [Point(1000, epsilon) for epsilon in BUDGETS], lambda m: m.mean)
    axes.axhline(sampling_error(1000, HALF), linestyle=":", color="black", label="sampling error, no privacy")
    finish(axes, "Median of 1000 uniform records, nine deciles released", "epsilon of all nine", "mean error")
    save_figure(figure, path)


def bounds(path: Path) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    points = [Point(n, 10.0) for n in SIZES]
    curves(axes, SIZES, points, lambda m: m.mean, ("HistogramMethod", "inverse sensitivity"))
    rng = np.random.default_rng(SEED)
    simulated = [simulate(point, rng) for point in points[:4]]
    axes.plot(SIZES[:4], simulated, "x", color="#d55e00", markersize=8, label="HistogramMethod, 300 simulated runs")

    def histogram_bound(n: int, variant: Variant) -> float:
        return float(mean_error.corrected_mean_error_bound(n=n, quantile=HALF, epsilon=10.0, variant=variant).value)

    axes.plot(
        SIZES,
        [histogram_bound(n, Variant.CORRECTED_72) for n in SIZES],
        "--",
        color="#d55e00",
        lw=1,
        label="its bound, 72",
    )
    axes.plot(
        SIZES,
        [histogram_bound(n, Variant.CORRECTED_36) for n in SIZES],
        "-.",
        color="#d55e00",
        lw=1,
        label="its bound, 36",
    )
    plain = [inverse_sensitivity.plain_mean_error(n=n, quantile=HALF, epsilon=10.0 / 9)[0] for n in SIZES]
    axes.plot(SIZES, plain, "--", color="#0072b2", lw=1, label="bound of inverse sensitivity")
    finish(
        axes,
        "Bound, exact, simulated: median, epsilon = 10 for nine",
        "records n",
        "mean error",
    )
    save_figure(figure, path)


def simulate(point: Point, rng: np.random.Generator) -> float:
    from mechanisms.histogram_method import HistogramMethod

    method = HistogramMethod(point.epsilon, 0.0, 1.0, steps=point.setting.steps, edge="left")
    runs = [abs(method.sample(rng.random(point.n), 1, rng)[0, 4] - point.target) for _ in range(300)]
    return float(np.mean(runs))


def edges(path: Path) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    sizes = (30, 100, 300, 1000, 3000)
    without = [sampling_error(n, HALF) for n in sizes]
    for name, edge, colour in (
        ("left (as printed)", 0.0, "#d55e00"),
        ("middle", 0.5, "#009e73"),
        ("right", 1.0, "#0072b2"),
    ):
        values = [histogram(Point(n, 30.0), edge=edge).mean / floor for n, floor in zip(sizes, without, strict=True)]
        axes.plot(sizes, values, "o-", color=colour, markersize=4, label=name)
    axes.axhline(1.0, linestyle=":", color="black", label="no privacy")
    axes.set(xscale="log", xlabel="records n", ylabel="mean error over sampling error")
    axes.set_title("Edge of the bin that is released: median, epsilon = 30 for nine", fontsize=10)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.legend(fontsize=8)
    save_figure(figure, path)


def releases(path: Path) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    for name in ("HistogramMethod", "inverse sensitivity"):
        colour, marker = STYLE[name]
        for count, line in ((9, "-"), (1, "--")):
            values = [measured(name, Point(1000, epsilon, releases=count)).mean for epsilon in BUDGETS]
            axes.plot(
                BUDGETS, values, line, marker=marker, color=colour, markersize=4, label=f"{name}, {count} released"
            )
    colour, marker = STYLE["joint exponential"]
    values = [measured("joint exponential", Point(1000, epsilon)).mean for epsilon in BUDGETS]
    axes.plot(BUDGETS, values, "-", marker=marker, color=colour, markersize=4, label="joint exponential, 9 released")
    axes.axhline(sampling_error(1000, HALF), linestyle=":", color="black", label="sampling error, no privacy")
    finish(
        axes,
        "One decile or nine: median of 1000 uniform records",
        "epsilon of all releases",
        "mean error",
    )
    save_figure(figure, path)


def targets(path: Path) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    sizes = (100, 300, 1000, 3000)
    rng = np.random.default_rng(SEED)
    for name, colour in (("HistogramMethod", "#d55e00"), ("inverse sensitivity", "#0072b2")):
        points = [Point(n, 30.0) for n in sizes]
        axes.plot(
            sizes,
            [measured(name, p).mean for p in points],
            "o-",
            color=colour,
            markersize=4,
            label=f"{name}, target: law",
        )
        axes.plot(
            sizes,
            [against_sample(name, p, rng) for p in points],
            "o--",
            color=colour,
            markersize=4,
            label=f"{name}, target: sample",
        )
    axes.plot(sizes, [sampling_error(n, HALF) for n in sizes], ":", color="black", label="sampling error, no privacy")
    finish(
        axes,
        "Median of the law or of the sample as target, epsilon = 30 for nine",
        "records n",
        "mean error",
    )
    save_figure(figure, path)


def against_sample(name: str, point: Point, rng: np.random.Generator, draws: int = 60) -> float:
    data = rng.random((draws, point.n))
    r = int(rank(point.n, point.level))
    if name == "HistogramMethod":
        return float(np.mean([histogram_law_for_data(row, point.setting).mean_error() for row in data]))
    right = np.partition(data, r - 1, axis=1)[:, r - 1]
    return float(inverse_sensitivity_errors(data, r, point.share, 0.0, right, 0.0, 1.0).mean())


def laws(path: Path) -> None:
    figure = new_figure(2, 1)
    figure.set_size_inches(7.6, 6.5)
    names = ("HistogramMethod", "HistogramMethod, less noise", "inverse sensitivity")
    for number, n in enumerate((100, 1000)):
        axes = figure.add_subplot(2, 1, number + 1)
        places = [(law, level) for law in LAWS.values() for level in (Fraction(1, 10), HALF)]
        for shift, name in zip((-0.15, 0.0, 0.15), names, strict=True):
            colour, marker = STYLE[name]
            ratios = [
                measured(name, Point(n, 1.0, level, law)).mean / sampling_error(n, level, law) for law, level in places
            ]
            axes.plot(np.arange(len(places)) + shift, ratios, marker, color=colour, markersize=5, label=name)
        axes.axhline(1.0, linestyle=":", color="black", label="no privacy")
        labels = [f"{law.name}\n{float(level):g}" for law, level in places]
        axes.set(yscale="log", xticks=range(len(places)), ylabel="mean error over sampling error")
        axes.set_xticklabels(labels, fontsize=8)
        plain_ticks(axes)
        axes.set_title(f"n = {n}, epsilon = 1 for nine deciles", fontsize=10)
        axes.grid(axis="y", alpha=0.25, linewidth=0.5)
        if number == 0:
            axes.legend(fontsize=7)
    save_figure(figure, path)


def optimality(path: Path) -> None:
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    rng = np.random.default_rng(SEED)
    for place, law in enumerate(LAWS.values()):
        width = law.high - law.low
        for shift, n, colour in ((-0.15, 51, "#56b4e9"), (0.15, 501, "#0072b2")):
            data = [(np.clip(law.sample(n, rng), law.low, law.high) - law.low) / width for _ in range(40)]
            ratios = [optimality_ratio(rows, 1.0)[0] for rows in data]
            jitter = place + shift + rng.uniform(-0.08, 0.08, len(ratios))
            axes.plot(jitter, ratios, ".", color=colour, markersize=4, label=f"n = {n}" if place == 0 else None)
    axes.axhline(1.0, linestyle=":", color="black", label="no private mechanism is below")
    axes.set(yscale="log", xticks=range(len(LAWS)), ylabel="error over the two-point lower bound")
    axes.set_xticklabels(list(LAWS), fontsize=8)
    plain_ticks(axes)
    axes.grid(axis="y", alpha=0.25, linewidth=0.5)
    axes.set_title("Inverse sensitivity, median, epsilon = 1: one point is one data set", fontsize=10)
    axes.legend(fontsize=7)
    save_figure(figure, path)


FIGURES: dict[str, Callable[[Path], None]] = {
    "error_by_records": functools.partial(error_by_records, squared=False),
    "squared_error_by_records": functools.partial(error_by_records, squared=True),
    "error_by_epsilon": error_by_epsilon,
    "bounds": bounds,
    "edges": edges,
    "releases": releases,
    "targets": targets,
    "laws": laws,
    "optimality": optimality,
}


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("docs") / "atlas"
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or FIGURES:
        print(name, file=sys.stderr, flush=True)
        FIGURES[name](folder / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
