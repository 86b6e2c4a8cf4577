"""SVG plots: bounds against truth, bounds over one parameter, and error against the number of records."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaudit._util.files import replace_file
from dpaudit.accuracy.bound import Status
from dpaudit.accuracy.comparison import ComparisonRow
from dpaudit.accuracy.theorem import Theorem
from dpaudit.accuracy.verification import TheoremVerification
from dpaudit.errors import InvalidArgument, MissingDependency

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_STATUS_COLOURS = {Status.HOLDS: "#0072b2", Status.VIOLATED: "#d55e00", Status.UNDECIDED: "#999999"}


def new_figure(rows: int, columns: int) -> Any:
    """Return an empty figure that needs no display, with text as text and no date, so that equal input gives equal files."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("Plots need matplotlib; install it with: pip install 'dpaudit[report]'") from error
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["svg.hashsalt"] = "dpaudit"
    return Figure(figsize=(5.5 * columns, 4.2 * rows), layout="constrained")


def save_figure(figure: Any, path: str | Path) -> None:
    """Write the figure as SVG, as a whole or not at all."""
    target = Path(path)
    if target.suffix.lower() != ".svg":
        raise InvalidArgument(f"plot={str(path)!r} must end in .svg.")
    picture = io.BytesIO()
    figure.savefig(picture, format="svg", metadata={"Date": None})
    replace_file(target, picture.getvalue())


def plot_comparison(rows: Sequence[ComparisonRow], path: str | Path) -> None:
    """Plot error against n on log axes, one panel for each law, quantile and epsilon: exact, bound, and sampling error."""
    keys = list(dict.fromkeys((row.law, row.quantile, row.epsilon) for row in rows))
    columns = min(3, max(1, len(keys)))
    figure = new_figure(math.ceil(len(keys) / columns), columns)
    contenders = list(dict.fromkeys(row.contender for row in rows))
    for number, key in enumerate(keys):
        axes = figure.add_subplot(math.ceil(len(keys) / columns), columns, number + 1)
        here = [row for row in rows if (row.law, row.quantile, row.epsilon) == key]
        for contender, colour in zip(contenders, _COLOURS, strict=False):
            mine = sorted((row for row in here if row.contender == contender), key=lambda row: row.n)
            sizes, middle = [row.n for row in mine], [row.error.middle for row in mine]
            axes.plot(sizes, middle, "o-", color=colour, label=str(contender), markersize=3)
            axes.fill_between(
                sizes, [r.error.low for r in mine], [r.error.high for r in mine], color=colour, alpha=0.2, lw=0
            )
            bounded = [(row.n, row.bound) for row in mine if row.bound is not None]
            if bounded:
                axes.plot(*zip(*bounded, strict=True), "--", color=colour, linewidth=0.9)
        sampling = sorted({(row.n, row.sampling_error) for row in here})
        axes.plot(*zip(*sampling, strict=True), ":", color="#555555", label="sampling error, no privacy")
        axes.set(xscale="log", yscale="log", xlabel="records n", ylabel="mean error")
        axes.set_title(f"{key[0]} law, quantile {key[1]:g}, epsilon {key[2]:g}", fontsize=10)
        if number == 0:
            axes.legend(fontsize=7, title="solid: mean error; dashed: bound", title_fontsize=7)
    save_figure(figure, path)


def plot_verifications(results: Sequence[TheoremVerification], path: str | Path) -> None:
    """Plot truth against bound, a panel for each form and a point for each decided row; the diagonal is equality."""
    shown = [result for result in results if any(row.truth is not None for row in result.rows)]
    if not shown:
        raise InvalidArgument("plot: there is nothing to draw; every bound was vacuous or did not apply.")
    columns = min(3, len(shown))
    figure = new_figure(math.ceil(len(shown) / columns), columns)
    for number, result in enumerate(shown):
        axes = figure.add_subplot(math.ceil(len(shown) / columns), columns, number + 1)
        for status, colour in _STATUS_COLOURS.items():
            pairs = [(r.bound.value, r.truth.middle) for r in result.rows if r.status is status and r.truth is not None]
            if pairs:
                axes.plot(*zip(*pairs, strict=True), "o", color=colour, markersize=3, label=str(status))
        axes.axline((0.0, 0.0), slope=1.0, color="#999999", linewidth=0.8)
        quantity = next(row.bound for row in result.rows if row.truth is not None)
        axes.set(xlabel=f"bound ({quantity.sense})", ylabel="truth")
        axes.set_title(f"{result.theorem.name}, {result.form.variant}", fontsize=10)
        axes.legend(fontsize=7)
    save_figure(figure, path)


def plot_forms(
    theorem: Theorem, point: Mapping[str, Any], over: str, values: Sequence[float], path: str | Path
) -> None:
    """Plot all forms of a theorem as functions of one parameter.

    Parameters
    ----------
    theorem : Theorem
        The theorem.
    point : mapping
        Values of the other parameters.
    over : str
        The parameter to vary.
    values : sequence of float
        Its values.
    path : str or Path
        The SVG file to write.
    """
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    for form, colour in zip(theorem.forms, _COLOURS, strict=False):
        bounds = [_bound_or_none(form.bound, theorem.complete({**point, over: value})) for value in values]
        pairs = [(v, b.value) for v, b in zip(values, bounds, strict=True) if b is not None and b.applies]
        if pairs:
            axes.plot(*zip(*pairs, strict=True), color=colour, label=str(form.variant))
    axes.set(xscale="log", xlabel=over, ylabel=theorem.forms[0].bound(**theorem.complete(point)).quantity)
    axes.set_title(theorem.title, fontsize=10)
    axes.legend(fontsize=7)
    save_figure(figure, path)


def _bound_or_none(bound: Callable[..., Any], point: Mapping[str, Any]) -> Any:
    try:
        return bound(**point)
    except InvalidArgument:  # outside the range of the form: no point there
        return None
