"""Draw one extracted law, or two on neighbouring data sets in one picture, with matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.errors import LawError
from dpaudit.exact.form import Array, Form, is_real
from dpaudit.result.svg import check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpaudit.symbolic.law import ExtractedLaw

_POINTS = 801
_MOST_BARS = 60
_SHOWN = 1e-4
"""The picture ends where densities fall below this part of the largest."""


def draw(laws: dict[str, ExtractedLaw], axes: Axes | None) -> Axes:
    """Draw laws over each other: lines for densities, stems for probabilities of single numbers, bars for other outcomes."""
    check_matplotlib()
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(6.0, 4.0), layout="constrained")[1]
    tables = {label: law.outcomes() for label, law in laws.items()}
    words = any(table is not None and not all(map(is_real, table)) for table in tables.values())
    if words:
        _bars(axes, {label: table for label, table in tables.items() if table is not None})
    else:
        _numbers(axes, {label: _form(law) for label, law in laws.items()})
    if len(laws) > 1:
        axes.legend()
    return axes


def _form(law: ExtractedLaw) -> Form:
    try:
        form: Form = law.form()
    except LawError as error:
        raise LawError(
            f"Only laws of one number or of finitely many outcomes are drawn; print the law. ({error})"
        ) from None
    return form


def _bars(axes: Axes, tables: dict[str, dict[Any, float]]) -> None:
    total: dict[Any, float] = {}
    for table in tables.values():
        for outcome, mass in table.items():
            total[outcome] = total.get(outcome, 0.0) + mass
    shown = sorted(total, key=lambda outcome: -total[outcome])[:_MOST_BARS]
    width = 0.8 / len(tables)
    for place, (label, table) in enumerate(tables.items()):
        heights = [table.get(outcome, 0.0) for outcome in shown]
        axes.bar(np.arange(len(shown)) + place * width, heights, width, label=label)
    axes.set_xticks(np.arange(len(shown)) + 0.5 * width * (len(tables) - 1), [str(outcome) for outcome in shown])
    axes.set_ylabel("probability")


def _numbers(axes: Axes, forms: dict[str, Form]) -> None:
    low, high = zip(*map(_window, forms.values()), strict=True)
    x = np.linspace(min(low), max(high), _POINTS)
    names = []
    for number, (label, form) in enumerate(forms.items()):
        colour = f"C{number}"
        if form.continuous is not None:
            axes.plot(x, np.exp(form.continuous.log_density(x, 1)), color=colour, label=label)
            label = "_"  # matplotlib leaves such labels out of the legend
            names.append("density")
        places, masses = _points(form, x[0], x[-1])
        if places.size:
            axes.vlines(places, 0.0, masses, color=colour, label=label)
            axes.plot(places, masses, "o", color=colour, markersize=3)
            names.append("probability")
    axes.set_xlabel("output")
    axes.set_ylabel(" and ".join(dict.fromkeys(names)))


def _points(form: Form, low: float, high: float) -> tuple[Array, Array]:
    """Single numbers with a probability of their own, between two ends."""
    found = {float(x): mass for x, mass in form.atoms.items() if low <= float(x) <= high}  # type: ignore[arg-type]  # real
    if form.lattice is not None:
        step = form.lattice.step
        k = np.arange(math.ceil(low / step), math.floor(high / step) + 1)[: 100 * _POINTS]
        found.update(zip((k * step).tolist(), form.lattice.log_mass(k).tolist(), strict=True))
    kept = {x: mass for x, mass in found.items() if mass > -math.inf}
    return np.array(list(kept), dtype=np.float64), np.exp(np.array(list(kept.values()), dtype=np.float64))


def _window(form: Form) -> tuple[float, float]:
    """The numbers between which a law is drawn."""
    marks = [float(x) for x in form.atoms]  # type: ignore[arg-type]  # numbers, as checked
    for part in (form.continuous, form.lattice):
        if part is None:
            continue
        step = form.lattice.step if form.lattice is not None and part is form.lattice else 1.0
        centre = [float(x) * step for x in (*part.kinks, *part.landmarks)]
        marks += centre
        for end, sign in ((min(centre), -1.0), (max(centre), 1.0)):
            if part.unbounded(0 if sign < 0.0 else 1):
                marks.append(_tail_end(form, end, sign, max(step, 0.05 * (max(centre) - min(centre)))))
    low, high = min(marks), max(marks)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _tail_end(form: Form, start: float, sign: float, width: float) -> float:
    """Go outwards until hardly anything of the law is left."""
    for _ in range(60):
        if form.continuous is not None:
            beyond = float(form.continuous.log_mass(*np.sort([[start], [sign * math.inf]], axis=0))[0])
        else:
            assert form.lattice is not None
            k = start / form.lattice.step
            beyond = form.lattice.log_range(k, math.inf) if sign > 0.0 else form.lattice.log_range(-math.inf, k)
        if beyond < math.log(_SHOWN):
            break
        start, width = start + sign * width, 1.3 * width
    return start
