r"""The e-process where draws are not independent: a bet on the label of every single call.

Setting. Calls are made one after the other. Before call t a fair coin, independent of everything so far, decides its label:
1 (the call runs on D) or 0 (it runs on D'). Something X_t of the call is seen, for example how long it took. Let P_t and
Q_t be the laws of X_t given everything before the call, for either label. Nothing is assumed about how they change from
call to call: the machine may grow slower, throttle, or remember earlier calls. The claim, at a point (epsilon, delta), is

    P_t(S) <= c Q_t(S) + delta   and   Q_t(S) <= c P_t(S) + delta   for every event S and every past,  c = exp(epsilon).   (H0)

For delta = 0 that is P(label = 1 | X_t in S, past) <= c / (1 + c), and the same for label 0.

Bets. With disjoint events R and L, weights wR, wL >= 0, m1 + m0 = delta (wR + wL) and a stake u, all functions of the past,
wealth is multiplied by

    f1(X) = 1 + u (wR 1_R(X) - c wL 1_L(X) - m1)   if the label is 1,
    f0(X) = 1 + u (wL 1_L(X) - c wR 1_R(X) - m0)   if it is 0,         u so small that both are positive.

Validity. The coin is fair given the past, so the conditional mean of the factor is

    (E_P f1 + E_Q f0) / 2 = 1 + (u / 2) [ wR (P_t(R) - c Q_t(R) - delta) + wL (Q_t(L) - c P_t(L) - delta) ] <= 1   under H0.

Hence the wealth is a nonnegative supermartingale from 1, whatever the P_t and Q_t are and however they depend on the past: the
randomisation of the labels alone carries the proof. An average of such processes with fixed weights (over experts, stakes,
points of a privacy profile, pairs of data sets) is one too, and by Ville's inequality it ever reaches 1 / alpha with
probability at most alpha. ``evidence.e_process``, where draws are independent and both sides have equally many, uses the same
factors; there f1 and f0 are multiplied, here one of them is drawn.

For a clock, H0 is more than the mechanism can promise: a machine that treats two equal data sets differently breaks it too.
Therefore the channel has a control (see ``run``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpaudit.engine.evidence.claim_points import parameter_grid
from dpaudit.engine.evidence.e_process import (
    Bets,
    Counts,
    Floats,
    Points,
    natural_order,
    sorted_order,
    two_sided_gains,
)

VIEWS = 2  # a call is looked at by its duration, and by its duration relative to recent calls (see ``pairs``)
EXPERTS = 2  # cells in natural order (half-lines), and cells by their likelihood ratio
GRID_AT_ONCE = 64
Timeline: TypeAlias = Sequence["SettledBlock"]


@dataclass(frozen=True, slots=True)
class SettledBlock:
    """One block of one pair, in every view: cell counts of its past and of the block (row 0: calls on D, row 1: on D')."""

    pair: int
    views: tuple[tuple[Counts, Counts], ...]


class LabelWealth:
    """Log-wealth of one pair against each point, over views, experts and stakes."""

    def __init__(self, points: Points, bets: Floats) -> None:
        self.points = points
        self.bets = bets
        self._gain = np.zeros((VIEWS * EXPERTS, len(points), bets.size + 1))

    def settle(self, views: Sequence[tuple[Counts, Counts]]) -> Floats:
        """Book a block, given per view as counts of its past, on which bets rest, and of itself; return the log-wealth."""
        self._gain += np.concatenate([label_gains(past, new, self.points, self.bets) for past, new in views])
        # Half of an expert's capital is spread over the fixed stakes, half follows the growth bet.
        spread = np.logaddexp.reduce(self._gain[:, :, :-1], axis=2) - math.log(self.bets.size)
        mixed = np.logaddexp(spread, self._gain[:, :, -1]) - math.log(2.0)
        return np.asarray(np.logaddexp.reduce(mixed, axis=0) - math.log(VIEWS * EXPERTS))


def label_gains(past: Counts, new: Counts, points: Points, bets: Floats) -> Floats:
    """Log-gains of a block, shape (experts, points, stakes and then the growth bet); zero where the past is one-sided.

    Rows of the counts may have different sums: labels are coins.

    >>> past = np.array([[10, 90], [90, 10]])
    >>> gains = label_gains(past, np.array([[1, 9], [9, 1]]), Points.of([(1.0, 0.0)]), np.array([0.1]))
    >>> gains.shape, bool((gains > 0.0).all())
    ((2, 1, 2), True)
    """
    if past.sum(axis=1).min() == 0 or past.shape[1] < 2:
        return np.zeros((EXPERTS, len(points), bets.size + 1))
    orders = np.stack([natural_order(past), sorted_order(past)])
    return two_sided_gains(past[:, orders], new[:, orders], points, Bets(bets, 0.0, 0.0))[..., :-1]


def lower_bound(
    timeline: Timeline,
    points_at: Callable[[float], Points],
    claimed: float,
    *,
    log_threshold: float,
    shares: int,
    bets: Floats,
    largest: float,
    tied: bool = True,
) -> float:
    """Largest value of the grid such that it and all below are refuted; 0 where the first is not.

    Reading upwards needs no correction (``evidence.e_process``: Bound). If ``tied``, values below the claim share their stake in
    equal parts with the claim itself, so that verdict and bound agree; a mechanism that keeps the stronger claim keeps both.
    """
    at_claim = _log_wealth(timeline, [points_at(claimed)], shares, bets) if tied else None
    reached = 0.0
    for values in _chunks([value for interval in parameter_grid(claimed, largest) for value in interval.values]):
        wealth = _log_wealth(timeline, [points_at(value) for value in values], shares, bets)
        if at_claim is not None:
            below = np.array(values) < claimed
            wealth = np.where(below, np.logaddexp(wealth, at_claim) - math.log(2.0), wealth)
        refuted = wealth.max(axis=0, initial=-math.inf) >= log_threshold
        if not refuted.all():
            first = int(np.argmin(refuted))
            return values[first - 1] if first else reached
        reached = values[-1]
    return reached


def _chunks(values: list[float]) -> Iterator[list[float]]:
    for start in range(0, len(values), GRID_AT_ONCE):
        yield values[start : start + GRID_AT_ONCE]


def _log_wealth(timeline: Timeline, grids: Sequence[Points], shares: int, bets: Floats) -> Floats:
    """Log of the capital of all pairs, in ``shares`` equal parts, against each grid, after each block: (blocks, grids)."""
    points = Points(np.concatenate([g.epsilon for g in grids]), np.concatenate([g.delta for g in grids]))
    ends = np.cumsum([len(grid) for grid in grids])[:-1]
    wealth: dict[int, LabelWealth] = {}
    current = np.zeros((shares, len(grids)))
    lines = np.empty((len(timeline), len(grids)))
    for row, block in enumerate(timeline):
        pair = wealth.setdefault(block.pair, LabelWealth(points, bets))
        parts = np.split(pair.settle(block.views), ends)
        current[block.pair] = [np.logaddexp.reduce(part) - math.log(part.size) for part in parts]
        lines[row] = np.logaddexp.reduce(current, axis=0) - math.log(shares)
    return lines
