"""Wealth of all bettors together, and of a follower that copies the best of them.

``e_process`` proves that the wealth of a mixture bounds the probability of a false alarm; ``search.campaign`` says which
pair the follower bets on, and why that is valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.engine.evidence.e_process import (
    ISOTONIC_BETS,
    TAIL_BETS,
    TAIL_LEVELS,
    Bets,
    Floats,
    Points,
    Record,
    expert_gains,
)
from dpaudit.errors import DPAuditError

RESERVE = 0.2  # share of the capital kept for experts that appear after the first bet
LARGEST_PREFERENCE = 3.0  # log of the largest ratio between the follower's shares of two experts
GROWTH_SHARE, TARGET_SHARE = 0.48, 0.04  # shares of an expert's capital in its growth bet and its target bet
PREFERENCE = {
    "tails": 4.0,
    "natural": 2.0,
    "isotonic natural": 2.0,
}  # relative shares of the first experts; others have 1
FOLLOWED_GROWTH_SHARE = 0.75  # share of the follower's capital outside the target bet that is in growth bets


class Wealth:
    """Log-wealth against each point, over all bettors, as rounds are settled.

    A bettor is an expert with a bet size (see :class:`Bets`; the isotonic expert has ``ISOTONIC_BETS``).
    """

    def __init__(self, points: Points, bets: Bets) -> None:
        self.points = points
        self.bets = bets
        self._columns: dict[tuple[str, str], slice] = {}  # the bettors of each expert
        self._log_weight = np.empty(0)
        self._gain = np.empty((len(points), 0))
        self._cash = 1.0
        self._late = 0
        self._segment = 0
        self._portfolio = np.empty((len(points), 0))  # log of the follower's capital with each bettor

    def settle(self, records: Sequence[Record], segment: int = 0) -> tuple[Floats, Floats]:
        """Update with one round (a record per view); as :meth:`settle_all`, for each point."""
        total, followed = self.settle_all([records], [segment])
        return total[0], followed[0]

    def settle_all(self, rounds: Sequence[Sequence[Record]], segments: Sequence[int] = ()) -> tuple[Floats, Floats]:
        """Update with consecutive rounds at once; returns two arrays of shape (rounds, points).

        The first is the log-wealth after each round. An expert that appears in a later round has gained nothing before, so
        its share counts as the cash it was.

        The second is what each round adds to the log-wealth of the follower. It bets in rounds with a segment number other
        than 0, and at the start of each segment divides its capital anew: most to the experts whose growth bet did best so
        far, and nothing to cash. So it does not pay for what the experts lost while they learned.
        """
        segments = segments or [0] * len(rounds)
        gains = iter(expert_gains([record for records in rounds for record in records], self.points, self.bets))
        won = [
            [((record.view, expert), gain) for record in records for expert, gain in next(gains).items()]
            for records in rounds
        ]
        widths = []  # bettors known in each round
        for round_gains in won:
            self._admit([key for key, _ in round_gains if key not in self._columns])
            widths.append(self._log_weight.size)
        steps = np.zeros((len(rounds), *self._gain.shape))
        for place, round_gains in enumerate(won):
            for key, gain in round_gains:
                steps[place, :, self._columns[key]] = gain
        before, line = self._gain, self._gain + np.cumsum(steps, axis=0)
        self._gain = line[-1].copy()
        followed = np.zeros((len(rounds), len(self.points)))
        for segment in sorted({number for number in segments if number}):
            rows = [row for row, number in enumerate(segments) if number == segment]
            known = (before if rows[0] == 0 else line[rows[0] - 1])[:, : widths[rows[0]]]
            self._restart(segment, [key for key, _ in won[rows[0]]], known)
            followed[rows] = self._follow(steps[rows])
        line += self._log_weight
        log_cash = math.log(self._cash)
        top = line.max(axis=2, initial=log_cash)
        total = top + np.log(np.exp(line - top[:, :, None]).sum(axis=2) + np.exp(log_cash - top))
        if not (np.isfinite(total).all() and np.isfinite(followed).all()):
            # A NaN would compare false with every threshold and hide a violation.
            raise DPAuditError("The wealth of the audit is not finite; this is a defect of dpaudit, please report it.")
        return total, followed

    def _restart(self, segment: int, active: Sequence[tuple[str, str]], gain: Floats) -> None:
        """Divide the follower's capital among the experts that bet now, by what they gained before the segment."""
        if segment == self._segment or not active:
            return
        self._segment = segment
        columns = [self._columns[key] for key in active]
        growth = np.stack([gain[:, c.stop - 2] if has_growth_bet(key) else gain[:, c].max(axis=1)
                           for key, c in zip(active, columns, strict=True)], axis=1)  # fmt: skip
        preference = np.maximum(growth - growth.max(axis=1, keepdims=True), -LARGEST_PREFERENCE)
        preference -= np.logaddexp.reduce(preference, axis=1, keepdims=True)
        split = {
            key: np.log(self._split(key, FOLLOWED_GROWTH_SHARE * (1.0 - self.bets.to_target), self.bets.to_target))
            for key in active
        }
        self._portfolio = np.full_like(gain, -np.inf)
        for row, key in enumerate(active):
            self._portfolio[:, columns[row]] = preference[:, row : row + 1] + split[key]

    def _follow(self, steps: Floats) -> Floats:
        """Return what consecutive rounds of one segment add to the follower's log-wealth."""
        if self._portfolio.size == 0:
            return np.zeros(steps.shape[:2])
        known = self._portfolio.shape[1]
        line = np.concatenate([self._portfolio[None], self._portfolio + np.cumsum(steps[:, :, :known], axis=0)])
        self._portfolio = line[-1].copy()
        top = line.max(axis=2, keepdims=True)
        return np.diff(top[..., 0] + np.log(np.exp(line - top).sum(axis=2)), axis=0)

    def _admit(self, newcomers: list[tuple[str, str]]) -> None:
        """Give new experts their shares: the first ones all but the reserve, later ones a part of the reserve."""
        weights = [self._log_weight]
        first = not self._columns
        claims = [PREFERENCE.get(kind, 1.0) for _, kind in newcomers]
        for key, claim in zip(newcomers, claims, strict=True):
            if first:
                share = (1.0 - RESERVE) * claim / sum(claims)
            else:
                self._late += 1
                share = RESERVE / (self._late * (self._late + 1))
            split = self._split(key, GROWTH_SHARE, TARGET_SHARE)
            start = sum(part.size for part in weights)
            self._columns[key] = slice(start, start + split.size)
            weights.append(np.log(share * split))
        if newcomers:
            self._cash = RESERVE / (self._late + 1)
            self._log_weight = np.concatenate(weights)
            wider = np.zeros((len(self.points), self._log_weight.size))
            wider[:, : self._gain.shape[1]] = self._gain
            self._gain = wider

    def _split(self, key: tuple[str, str], growth: float, target: float) -> Floats:
        """Return the shares of the bettors of one expert."""
        if not has_growth_bet(key):
            size = TAIL_LEVELS.size * TAIL_BETS.size if key[1] == "tails" else ISOTONIC_BETS.size
            return np.full(size, 1.0 / size)
        size = self.bets.fixed.size
        return np.concatenate([np.full(size, (1.0 - growth - target) / size), [growth, target]])


def has_growth_bet(key: tuple[str, str]) -> bool:
    """Return whether an expert, named by (view, kind), has the bets of :class:`Bets`; others have bet sizes of their own."""
    return key[1] in ("natural", "sorted")
