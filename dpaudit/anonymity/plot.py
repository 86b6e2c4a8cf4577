"""SVG plot of the worst classes: the distribution of the sensitive attribute in each, beside that of the table."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from dpaudit._util.files import replace_file
from dpaudit.anonymity.measure import Measure, format_value
from dpaudit.anonymity.tables.cells import as_number, as_text, sort_key
from dpaudit.anonymity.tables.table import describe
from dpaudit.errors import InvalidArgument, MissingDependency

_VALUES = 24
"""Number of sensitive values with a bar of their own; all other values share one bar."""


def save_plot(measure: Measure, path: str, *, classes: int = 12) -> None:
    """Write an SVG of the worst classes of a measure of a sensitive attribute.

    The file is written as a whole or not at all, and the same table gives the same bytes.

    Parameters
    ----------
    measure : Measure
        A measure with a sensitive attribute.
    path : str
        The file to write.
    classes : int
        Number of classes to show, the worst first.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependency("Plots need matplotlib: pip install 'dpaudit[report]'.") from None
    if measure.attribute is None:
        raise InvalidArgument("A plot shows the distribution of a sensitive attribute; name one.")
    table = measure.table
    whole = table.distribution(measure.attribute)
    # The most frequent values of the table, in their own order; the others share one bar.
    frequent = set(sorted(whole, key=lambda value: -whole[value])[: _VALUES if len(whole) > _VALUES + 1 else None])
    values = sorted(frequent, key=_by_number)
    names = [_short(as_text(value)) for value in values] + (["other values"] if len(values) < len(whole) else [])
    worst = measure.worst(classes)
    columns = min(3, len(worst))
    rows = -(-len(worst) // columns)
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": "dpaudit", "svg.fonttype": "none"}):
        warnings.simplefilter("ignore")  # a glyph that matplotlib's font lacks is still text in the SVG
        figure = Figure(figsize=(1.5 + 4.0 * columns, 1.2 + 2.6 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axis in axes.flat:
            axis.set_visible(False)
        for axis, index in zip(axes.flat, worst, strict=False):
            axis.set_visible(True)
            shares = table.class_distribution(index, measure.attribute)
            places = range(len(names))
            axis.bar(places, _heights(whole, values, names), width=0.8, color="#c8ccd4", label="table")
            axis.bar(places, _heights(shares, values, names), width=0.4, color="#b0413e", label="class")
            axis.set_xticks(list(places), names, rotation=45, ha="right", fontsize=7, parse_math=False)
            title = f"class {index + 1}: {format_value(measure.per_class[index])}, {table.classes.sizes[index]} records"
            axis.set_title(f"{title}\n{_short(describe(table.key(index)), 48)}", fontsize=8, parse_math=False)
        axes[0][0].legend(fontsize=7)
        figure.supylabel("share of the records", fontsize=8)
        figure.suptitle(f"{measure.name} of {measure.attribute}", fontsize=10, parse_math=False)
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    try:
        replace_file(Path(path), picture.getvalue())
    except OSError as error:
        raise InvalidArgument(f"--plot={path!r} cannot be written: {error.strerror or error}.") from error


def _heights(shares: dict[Any, Any], values: list[Any], names: list[str]) -> list[float]:
    heights = [float(shares.get(value, 0)) for value in values]
    return heights + [max(0.0, float(1 - sum(shares.get(value, 0) for value in values)))] * (len(names) - len(values))


def _by_number(value: Any) -> tuple[Any, ...]:
    number = as_number(value)  # files hold numbers as text
    return (0, number) if number is not None else (1, sort_key(value))


def _short(text: str, limit: int = 24) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
