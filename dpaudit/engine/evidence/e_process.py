r"""The e-process: wealth that grows only where a claim is false.

Setting. P and Q are the output laws on two neighbouring data sets D and D'. A claim is a set of points (epsilon, delta),
each saying that for every event S

    P(S) <= c Q(S) + delta    and    Q(S) <= c P(S) + delta,        c = exp(epsilon).                              (H0)

A round draws b outputs from P and, independently, b from Q. Everything below is a function of *earlier* rounds only,
so given the past it is a constant.

Bets. Let R and L be disjoint events, wR, wL >= 0, and m1 + m0 = delta (wR + wL). Put

    f1 = 1 + u (wR 1_R - c wL 1_L - m1)   on outputs of D,
    f0 = 1 + u (wL 1_L - c wR 1_R - m0)   on outputs of D',

with u small enough that both are positive. Then

    E_P f1 + E_Q f0 - 2 = u [ wR (P(R) - c Q(R) - delta) + wL (Q(L) - c P(L) - delta) ] <= 0   under H0,

so E_P f1 * E_Q f0 <= 1 by the inequality of arithmetic and geometric means, and since the draws are independent the
product over b draws *of each side* has conditional mean (E_P f1 * E_Q f0)^b <= 1. Equal numbers on both sides are needed:
that is why rounds are made of equal blocks and :class:`Record` refuses anything else.

More generally R and L may have weights r(x), l(x) >= 0 that depend on the output: with m1 = delta max r, m0 = delta max l,

    f1 = 1 + u (r - c l - m1),    f0 = 1 + u (l - c r - m0),

and E_P r - c E_Q r <= delta max r under H0, because r is an average of indicators of events {r > t} over t in [0, max r]. The
isotonic expert takes r = (1 + 1/c) pi - 1 and l = (1 + 1/c) (1 - pi) - 1 where these are positive, at most a cap, with pi the
predicted probability that an output in this cell came from D. If the predictions are true and delta = 0, this is the bet of
largest expected log-gain; with delta > 0 it is so for the right cap.

Mixtures. Each bettor (expert, bet size) therefore has a nonnegative supermartingale that starts from 1, and so does the
average with weights fixed before the first bet: experts that appear later own a share of a reserve from the start. By
Ville's inequality P(the wealth ever reaches 1 / alpha) <= alpha under H0. A claim with several points averages their
wealth, and so do several pairs of data sets (see ``search``), because the average of supermartingales is one.

Bound. The wealth against (g, delta) is a supermartingale for every mechanism whose true epsilon is at most g. Reading the
grid upwards and stopping at the first point that is not rejected needs no correction: to report more than the truth, the
first grid point above the truth must be rejected, which has probability at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_count
from dpaudit.errors import DPAuditError

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

SHRINKAGE = 0.35  # standard errors by which log-ratios are drawn towards zero before cells are ordered by them
SELECTION = 0.5  # the best of k events looks better than it is by about this many standard errors times sqrt(log k)
LEAST_WEIGHT = 0.02  # a side whose weight is below this fraction of the other's does not bet
MANY_CELLS = 64  # with more cells, one part of the past orders them and the rest decides the bets
LARGEST_ARRAY = 1 << 17  # numbers in one array of gains; bounds the memory
LARGEST_EXPONENT = 300.0  # no bet is made against a larger epsilon, whose exp might overflow
TARGET = 4.5  # advantage, in standard errors of the whole budget, for which the target bet is best
ISOTONIC_BETS = np.array([0.25, 0.5, 1.0])
ISOTONIC_BETS_WITH_DELTA = np.array([0.9, 0.9, 0.5])
ISOTONIC_CAPS = np.array([0.15, 0.4, 1.0])  # of the weights, as shares of 1 / c, where delta > 0
TAIL_LEVELS = 0.5 ** (1.0 + 0.6 * np.arange(7))  # shares of all outputs in R, and as many in L, of the tails expert
TAIL_BETS = np.geomspace(0.01, 0.7, 7)  # its bets, as fractions of the largest admissible one
EVENTS = np.arange(2)[:, None, None]  # R and L
OTHER_SIDE = np.array([[0, 1], [1, 0]])  # the side on which R and L are likely, then the side on which they are rare


def bet_sizes(samples: int) -> Floats:
    """Fractions of the largest admissible bet, geometric, fixed by the budget before anything is sampled.

    The smallest must fall with the budget: fixed small bets cap the bound (a bet that is right by a margin of z standard
    errors wants a size of about z / sqrt(samples)).

    >>> bet_sizes(1000)[[0, -1]].round(4)
    array([0.003, 0.97 ])
    """
    check_count(samples=samples)
    smallest = min(0.003, 0.1 / math.sqrt(samples))
    count = 14 + max(0, math.ceil(math.log2(0.003 / smallest)))
    return np.geomspace(max(smallest, 1e-6), 0.97, count)


@dataclass(frozen=True, slots=True)
class Bets:
    """The bet sizes of an expert: fixed ones, then the growth bet, which follows the past, and then the target bet.

    The target bet is the one that wins most where the evidence, all outputs taken together, is just enough: an advantage of
    ``TARGET`` standard errors of the whole budget. A bound ends at such an advantage, so this bet need not be learned.
    """

    fixed: Floats  # fractions of the largest admissible bet
    target: float  # in standard deviations of one step
    to_target: float  # share of the follower's capital in the target bet

    @classmethod
    def of(cls, samples: int, *, for_bound: bool = False) -> Bets:
        """Bets for a budget of so many outputs of both sides."""
        return cls(bet_sizes(samples), TARGET / math.sqrt(max(samples / 2.0, 1.0)), 0.6 if for_bound else 0.05)

    @property
    def count(self) -> int:
        """Number of bettors of an expert."""
        return int(self.fixed.size) + 2


@dataclass(frozen=True, slots=True)
class Points:
    """The (epsilon, delta) points that are bet against, each with its own wealth."""

    epsilon: Floats
    delta: Floats

    def __len__(self) -> int:
        return int(self.epsilon.size)

    @property
    def ratio(self) -> Floats:
        """exp(epsilon), as far as floats go; no bet is made against more."""
        return np.exp(np.minimum(self.epsilon, LARGEST_EXPONENT))

    def stretched(self, factor: float) -> Points:
        """Return the points with their epsilons multiplied, as metric privacy does with the distance of a pair."""
        return self if factor == 1.0 else Points(self.epsilon * factor, self.delta)

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> Points:
        """Collect ``(epsilon, delta)`` pairs."""
        array = np.array(list(pairs), dtype=np.float64).reshape(-1, 2)
        return cls(array[:, 0].copy(), array[:, 1].copy())


@dataclass(frozen=True)
class Record:
    """One settled round of one view: cell counts of the past, on which bets rest, and of the new outputs.

    ``ordered`` says whether neighbouring cells are neighbours in value.
    """

    view: str
    past: Counts  # (2, cells): side D, side D'
    new: Counts  # (2, cells)
    ordered: bool
    older: Counts  # the part of the past that was settled first, about a third of it

    def __post_init__(self) -> None:
        sizes = self.new.sum(axis=1).tolist()
        if sizes[0] != sizes[1]:
            raise DPAuditError(f"A round must draw as many outputs from D as from D', not {sizes[0]} and {sizes[1]}.")
        if min(counts.min(initial=0) for counts in (self.new, self.past, self.past - self.older)) < 0:
            raise DPAuditError(
                "A cell count is negative, or older than its past; the partition and its counts do not fit."
            )

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """Orders of the cells, chosen by the past alone.

        Cells in natural order; and cells by their likelihood ratio. With many cells the largest ratio of all is mostly noise,
        so there the order comes from the older part of the past and what to bet on from the rest.
        """
        plans = [Plan("natural", natural_order(self.past), self.past)] if self.ordered else []
        if self.past.shape[1] > MANY_CELLS:
            recent = self.past - self.older
            if self.older.sum(axis=1).min() > 0 and recent.sum(axis=1).min() > 0:
                return (*plans, Plan("sorted", sorted_order(self.older), recent))
        return (*plans, Plan("sorted", sorted_order(self.past), self.past))

    @cached_property
    def pools(self) -> dict[str, tuple[Counts, Counts]]:
        """Pooled counts of the plans on which the isotonic expert bets.

        Ordering by the very counts that decide leaves nothing to pool: the bets would be plain overfitting.
        """
        return {
            plan.name: plan.pooled(self.new)
            for plan in self.plans
            if plan.name == "natural" or plan.counts is not self.past
        }

    @property
    def idle(self) -> bool:
        """True if there is nothing to bet on yet."""
        return self.past.shape[1] < 2 or int(self.past.sum(axis=1).min()) == 0


@dataclass(frozen=True)
class Plan:
    """An order of the cells in which D grows heavier, and the counts that decide what to bet on."""

    name: str
    order: NDArray[np.intp]
    counts: Counts  # (2, cells)

    @cached_property
    def ordered(self) -> Counts:
        """The deciding counts in this order."""
        return self.counts[:, self.order]

    def pooled(self, new: Counts) -> tuple[Counts, Counts]:
        """Deciding and new counts in this order, adjacent cells joined until the share of D increases."""
        starts = self._starts
        return np.add.reduceat(self.ordered, starts, axis=1), np.add.reduceat(new[:, self.order], starts, axis=1)

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return _pooled_blocks(self.ordered)


def expert_gains(records: Sequence[Record], points: Points, bets: Bets) -> list[dict[str, Floats]]:
    """Log-gain of every expert in every record, shape (points, bet sizes). Bets use ``record.past`` alone.

    Records are independent of each other here, so those with about as many cells are computed together: cells that hold
    nothing, and that no event may be cut at, are put before the others.
    """
    gains: list[dict[str, Floats]] = [{} for _ in records]
    alike: dict[int, list[tuple[int, Plan]]] = {}
    for place, record in enumerate(records):
        if not record.idle:
            about = (record.past.shape[1] - 1).bit_length() // 2  # up to a factor of four
            alike.setdefault(about, []).extend((place, plan) for plan in record.plans)
    for rows in alike.values():
        cells = max(plan.order.size for _, plan in rows)
        together = max(1, LARGEST_ARRAY // (cells * len(points)))
        for start in range(0, len(rows), together):
            chosen = rows[start : start + together]
            empty = cells - np.array([plan.order.size for _, plan in chosen])
            past, new = np.zeros((2, 2, len(chosen), cells), np.int64)
            for row, (place, plan) in enumerate(chosen):
                past[:, row, empty[row] :] = plan.ordered
                new[:, row, empty[row] :] = records[place].new[:, plan.order]
            for (place, plan), gain in zip(chosen, two_sided_gains(past, new, points, bets, empty), strict=True):
                gains[place][plan.name] = gain
            natural = [row for row, (_, plan) in enumerate(chosen) if plan.name == "natural"]
            if natural:
                won = tail_gains(past[:, natural], new[:, natural], points)
                for row, gain in zip(natural, won, strict=True):
                    gains[chosen[row][0]]["tails"] = gain
    pools = [
        (place, name, pooled)
        for place, record in enumerate(records)
        if not record.idle
        for name, pooled in record.pools.items()
    ]
    for (place, name, _), gain in zip(pools, isotonic_gains([pooled for _, _, pooled in pools], points), strict=True):
        gains[place][f"isotonic {name}"] = gain
    return gains


def natural_order(past: Counts) -> NDArray[np.intp]:
    """Cells in value order, turned so that D is the heavier at the end."""
    cells = past.shape[1]
    share = past / past.sum(axis=1, keepdims=True)
    middle = np.cumsum(share, axis=1) - share / 2.0
    # P(output of D exceeds output of D'), ties counted half.
    forward = float((share[0] * middle[1]).sum()) >= 0.5
    return np.arange(cells) if forward else np.arange(cells)[::-1]


def sorted_order(past: Counts) -> NDArray[np.intp]:
    """Cells by their log-likelihood ratio, drawn towards zero by ``SHRINKAGE`` standard errors."""
    return np.argsort(shrunk_log_ratio(past), kind="stable")


def shrunk_log_ratio(past: Counts) -> Floats:
    """Log of P_j / Q_j per cell, shrunk towards zero; zero where the data say nothing."""
    smooth = past + 0.5
    log_ratio = np.log(smooth[0] / smooth[1]) - math.log((past[0].sum() + 1.0) / (past[1].sum() + 1.0))
    error = np.sqrt(1.0 / smooth[0] + 1.0 / smooth[1])
    return np.asarray(np.sign(log_ratio) * np.maximum(np.abs(log_ratio) - SHRINKAGE * error, 0.0))


@dataclass(frozen=True, slots=True)
class Choice:
    """The events that orders of the cells offer: R first, then L, a row per order and a column per point.

    R is the last cells of the order, L the first, as many as ``size`` says.
    """

    size: NDArray[np.intp]
    score: Floats
    weight: Floats
    centre: Floats
    deviation: Floats  # standard deviation of one step, of both together
    growth_bet: Floats  # the bet that would grow fastest if the past were the truth


def choose_events(past: Counts, points: Points, empty: NDArray[np.intp] | None = None) -> Choice:
    """Pick R and L from the past: the sets with the largest estimated advantage in standard errors.

    ``past`` has shape (2, orders, cells), each row in an order of its own in which D grows heavier, after as many cells that
    are none as ``empty`` says.
    """
    totals = past.sum(axis=2)
    shares = _tails(past) + 0.5
    shares /= (totals[OTHER_SIDE] + 1.0)[..., None]
    variances = shares * (1.0 - shares)
    c = points.ratio
    p, q = shares[:, :, :, None, :]
    p_variance, q_variance = variances[:, :, :, None, :]
    spread = np.sqrt(p_variance + (c * c)[:, None] * q_variance)
    score = (p - c[:, None] * q - points.delta[:, None]) / spread
    if empty is not None and empty.any():
        none = np.arange(past.shape[2]) < empty[:, None]  # L grows from the first cell on, R from the last
        np.copyto(score[0], -np.inf, where=none[:, None, ::-1])
        np.copyto(score[1], -np.inf, where=none[:, None])
    best = score.argmax(axis=3)
    order = np.arange(past.shape[1])[:, None]
    p, q = shares[:, EVENTS, order, best]
    place = np.arange(0, score.size, past.shape[2]).reshape(best.shape) + best
    scale = spread.take(place)
    root = np.sqrt(totals.min(axis=0))[:, None]
    cells = past.shape[2] - (0 if empty is None else empty)
    score = score.take(place) * root - (SELECTION * np.sqrt(np.log(np.maximum(cells, 2.0))))[..., None]
    centre = 0.5 * (q + np.maximum(p - points.delta, 0.0) / c)
    advantage = np.maximum(score, 0.0)
    weight = advantage / scale
    better = score[0] >= score[1]
    better = np.array([better, ~better])
    overlap = best[0] + best[1] + 2 > past.shape[2]
    weight = np.where(weight.max(axis=0) <= 0.0, better, np.where(overlap & ~better, 0.0, weight))
    weight /= weight.max(axis=0)
    weight[weight < LEAST_WEIGHT] = 0.0
    # Mean over variance of one step, the mean being what is left of the advantage after the shrinkage.
    mean = (weight * advantage * scale).sum(axis=0) / root
    variance = ((weight * scale) ** 2).sum(axis=0)
    return Choice(best + 1, score, weight, centre, np.sqrt(variance), mean / variance)


def _tails(rows: Counts) -> Counts:
    """Counts of the last cells (R) and of the first (L): on the side where they are many, and then on the other."""
    tails = np.empty((2, *rows.shape), rows.dtype)
    tails[:, 0] = rows[:, :, ::-1]
    tails[:, 1] = rows[::-1]
    return tails.cumsum(axis=3)


def plug_in_epsilon(past: Counts, delta: float) -> float:
    """Return a low estimate of the epsilon of the best event, which guides the search and proves nothing.

    Both probabilities are moved by two standard errors. ``past`` is as in :func:`choose_events`.
    """
    totals = past.sum(axis=2)
    heavy, light = _tails(past) / totals[OTHER_SIDE][..., None]
    n = float(totals.min())
    p_error = np.sqrt((heavy * (1.0 - heavy) + 1.0 / n) / n)
    q_error = np.sqrt((light * (1.0 - light) + 1.0 / n) / n)
    low = np.maximum(heavy - 2.0 * p_error - delta, 1e-12) / (light + 2.0 * q_error)
    return math.log(float(low.max()))


def two_sided_gains(
    past: Counts, new: Counts, points: Points, bets: Bets, empty: NDArray[np.intp] | None = None
) -> Floats:
    """Log-gains of bets on the best events of the past, shape (orders, points, bet sizes)."""
    choice = choose_events(past, points, empty)
    rows = np.arange(new.shape[1])[:, None]
    many, few = _tails(new)[:, EVENTS, rows, choice.size - 1]
    steps = _Steps.of(choice.weight, choice.centre, many, few, new.sum(axis=2)[:, :, None], points)
    stakes = np.empty((*steps.largest_bet.shape, bets.count))
    np.multiply(steps.largest_bet[..., None], bets.fixed, out=stakes[..., :-2])
    np.minimum(choice.growth_bet, bets.fixed[-1] * steps.largest_bet, out=stakes[..., -2])
    np.minimum(bets.target / choice.deviation, bets.fixed[-1] * steps.largest_bet, out=stakes[..., -1])
    return steps.gains(stakes)


def tail_gains(past: Counts, new: Counts, points: Points) -> Floats:
    """Log-gains of bets on tails of fixed levels, shape (orders, points, levels and bet sizes).

    Nothing about these bets is learned but the cuts and the side that is heavier, so nothing is lost while events are still
    chosen by chance: for a weak leak the average over levels and bet sizes needs about a quarter fewer outputs.
    """
    pooled = past.sum(axis=0)
    share = np.stack([pooled[:, ::-1], pooled]).cumsum(axis=2) / pooled.sum(axis=1)[:, None]  # of R, of L
    last = np.abs(share[:, :, None] - TAIL_LEVELS[:, None]).argmin(axis=3)  # (2, orders, levels)
    rows = np.arange(past.shape[1])[:, None]
    apart = last.sum(axis=0) + 2 <= past.shape[2]
    totals = past.sum(axis=2)
    p, q = ((_tails(past)[:, EVENTS, rows, last] + 0.5) / (totals[OTHER_SIDE] + 1.0)[..., None])[..., None]
    centre = 0.5 * (q + np.maximum(p - points.delta, 0.0) / points.ratio)
    weight = np.broadcast_to(apart[..., None].astype(float), centre.shape)
    many, few = _tails(new)[:, EVENTS, rows, last][..., None]
    steps = _Steps.of(weight, centre, many, few, new.sum(axis=2)[:, :, None, None], points)
    won = steps.gains(steps.largest_bet[..., None] * TAIL_BETS)
    return np.moveaxis(won, 1, 2).reshape(past.shape[1], len(points), -1)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The values that f - 1 takes per unit of u, and how many of the new outputs take each, on the first axis."""

    counts: Floats
    step: Floats
    largest_bet: Floats  # the u at which a factor becomes zero

    @classmethod
    def of(cls, weight: Floats, centre: Floats, many: Counts, few: Counts, size: Counts, points: Points) -> _Steps:
        """Steps of bets on R and L, on the first axis of most arguments.

        ``many`` and ``few`` count the new outputs of the side on which an event is likelier, and of the other one, in the event;
        ``size`` counts all of each side.
        """
        active = weight > 0.0
        # In the event that is likelier on this side, in the other one, elsewhere; D and then D'. Without weight it never happens.
        counts, step = np.empty((2, 2, 3, *weight.shape[1:]))
        counts[:, 0], counts[:, 1] = many * active, (few * active)[::-1]
        counts[:, 2] = size - counts[:, 0] - counts[:, 1]
        c, delta = points.ratio, points.delta
        centred = weight * (c * centre)
        m = centred + weight * delta - centred[::-1]
        step[:, 0] = (weight - m) * active
        step[:, 1] = (-c * weight[::-1] - m) * active[::-1]
        step[:, 2] = -m
        counts, step = (each.reshape(6, *weight.shape[1:]) for each in (counts, step))
        worst = -step.min(axis=0)
        largest_bet = np.divide(1.0, worst, out=np.zeros_like(worst), where=worst > 1e-300)
        largest_bet[..., points.epsilon > LARGEST_EXPONENT] = 0.0
        return cls(counts, step, largest_bet)

    def gains(self, stakes: Floats) -> Floats:
        """Log-gains of these stakes, whose last axis are bet sizes."""
        gains = np.log1p(self.step[..., None] * stakes)
        gains *= self.counts[..., None]
        return np.asarray(gains.sum(axis=0))


def isotonic_gains(pools: Sequence[tuple[Counts, Counts]], points: Points) -> list[Floats]:
    """Gains of the isotonic expert on pooled counts of the past and of new outputs, shape (points, bet sizes) each."""
    gains = [np.zeros((len(points), ISOTONIC_BETS.size)) for _ in pools]
    c, delta = points.ratio[:, None], points.delta[:, None]
    sizes = np.where(delta > 0.0, ISOTONIC_BETS_WITH_DELTA, ISOTONIC_BETS).T[..., None]  # (bet sizes, points, 1)
    caps = np.where(delta > 0.0, ISOTONIC_CAPS, 1.0).T[..., None] / c
    for chosen in _within(
        LARGEST_ARRAY // max(ISOTONIC_BETS.size * len(points), 1), [past.shape[1] for past, _ in pools]
    ):
        past, new = (np.concatenate([pool[part] for pool in pools[chosen]], axis=1) for part in (0, 1))
        starts = np.cumsum([0, *(pool[0].shape[1] for pool in pools[chosen])])[:-1]
        lengths = np.diff([*starts, past.shape[1]])
        predicted = (past[0] + 0.5) / (past[0] + past[1] + 1.0)
        # What a bet that knew the prediction to be true would win, less 1: (1 + 1 / c) x - 1 where it is positive.
        right, left = (np.clip((1.0 + 1.0 / c) * x - 1.0, 0.0, caps) for x in (predicted, 1.0 - predicted))
        paid_right, paid_left = (
            delta * np.repeat(np.maximum.reduceat(side, starts, axis=2), lengths, axis=2) for side in (right, left)
        )
        of_d = np.log1p(sizes * (right - c * left - paid_right))
        of_neighbour = np.log1p(sizes * (left - c * right - paid_left))
        each = of_d * new[0] + of_neighbour * new[1]
        each[:, points.epsilon > LARGEST_EXPONENT] = 0.0
        for gain, won in zip(gains[chosen], np.add.reduceat(each, starts, axis=2).T, strict=True):
            gain[:] = won
    return gains


def _within(most: int, sizes: Sequence[int]) -> Iterator[slice]:
    """Stretches of consecutive pieces of these sizes, together ``most`` at most unless a single one is larger."""
    start = total = 0
    for place, size in enumerate(sizes):
        if total and total + size > most:
            yield slice(start, place)
            start, total = place, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))


def _pooled_blocks(past: Counts) -> NDArray[np.intp]:
    """Start of each block when adjacent cells are pooled until the share of D increases (pool adjacent violators)."""
    starts: list[int] = []
    ones: list[int] = []
    zeros: list[int] = []
    for cell, (one, zero) in enumerate(zip(*past.tolist(), strict=True)):
        start = cell
        while starts and ones[-1] * zero >= one * zeros[-1]:
            start = starts.pop()
            one += ones.pop()
            zero += zeros.pop()
        starts.append(start)
        ones.append(one)
        zeros.append(zero)
    return np.array(starts, dtype=np.intp)


def log_mean_exp(values: Floats) -> Floats:
    """Log of the mean of exp(values) along the last axis."""
    top = values.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(values - top).mean(axis=-1)))
