"""SVG pictures of rows of the ledger: the report's figure 1, and two trade-offs that the documents describe in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.accuracy.bounds import randomised_response
from dpaudit.accuracy.plots import new_figure, save_figure


def figure_1(path: str | Path, *, a: float, b: float, steps: int) -> None:
    """Draw the cut of [a, b] into bins (report, figure 1), for any a, b and steps.

    Parameters
    ----------
    path : str or Path
        The SVG file to write.
    a, b : float
        Ends of the range.
    steps : int
        Number of bins.
    """
    figure = new_figure(1, 1)
    figure.set_size_inches(6.0, 1.1)
    axes = figure.add_subplot()
    points = a + (b - a) * np.arange(steps + 1) / steps
    axes.plot([a, b], [0.0, 0.0], color="black", linewidth=1.2)
    axes.plot(points, np.zeros_like(points), "|", color="black", markersize=14)
    shown = points[:: max(1, math.ceil(steps / 10))]
    axes.set(ylim=(-1.0, 1.0), yticks=[], xticks=shown, xticklabels=[f"{x:.4g}" for x in shown])
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="x", length=0)
    save_figure(figure, path)


def response_curve(path: str | Path, *, n: int, p: float) -> None:
    """Draw error against epsilon for randomised response, as the rate of true answers goes from 0 to 1.

    Parameters
    ----------
    path : str or Path
        The SVG file to write.
    n : int
        Number of people.
    p : float
        The share to estimate.
    """
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    rates = np.geomspace(0.02, 0.999, 120)
    axes.plot(randomised_response.epsilon(rates), np.sqrt(randomised_response.variance(n, rates, p)), color="#0072b2")
    for rate in (0.05, 0.1, 0.25, 0.5, 0.9):
        point = float(randomised_response.epsilon(rate)), math.sqrt(float(randomised_response.variance(n, rate, p)))
        axes.plot(*point, "o", color="#d55e00", markersize=4)
        axes.annotate(f"a = {rate:g}", point, textcoords="offset points", xytext=(6, 4), fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=f"standard deviation of the estimate, n = {n}")
    axes.set_title("Randomised response: privacy against utility", fontsize=10)
    save_figure(figure, path)


def bounded_noise_curve(path: str | Path, *, epsilon: float, delta: float, beta: float, locate: int) -> None:
    """Draw the largest error over k queries: bounded noise, and the Gaussian's with its probability of more.

    Parameters
    ----------
    path : str or Path
        The SVG file to write.
    epsilon, delta, beta : float
        Privacy of all queries together, probability that a Gaussian error is larger than drawn.
    locate : int
        As for the row; not used.
    """
    from dpaudit.statements.rows.survey import bounded_against_gaussian

    del locate
    rows = bounded_against_gaussian(epsilon, delta, beta, (1, 10, 100, 300, 1000, 3000))
    queries = [row[0] for row in rows]
    figure = new_figure(1, 1)
    axes = figure.add_subplot()
    axes.plot(queries, [row[1] for row in rows], "o-", color="#0072b2", markersize=3, label="bounded noise: never more")
    axes.plot(
        queries,
        [row[2] for row in rows],
        "s-",
        color="#d55e00",
        markersize=3,
        label=f"Gaussian: more with probability {beta:g}",
    )
    axes.set(xscale="log", yscale="log", xlabel="queries k", ylabel="largest error over k queries")
    axes.set_title(f"Noise for k queries, epsilon = {epsilon:g}, delta = {delta:g}", fontsize=10)
    axes.legend(fontsize=8)
    save_figure(figure, path)


OF_ROW: dict[str, Callable[..., Any]] = {
    "figure-1": figure_1,
    "role-of-alpha": response_curve,
    "bounded-beats-gaussian": bounded_noise_curve,
}
"""The function that draws the picture of a row, called with the path and the row's parameters."""
