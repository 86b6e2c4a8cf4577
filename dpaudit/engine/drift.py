"""Noticing a mechanism that keeps state: outputs of one side that change as the audit goes on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.outputs import Encoded, record_keys

GROUPS = 8
FEWEST = 200  # outputs on either side of the comparison
FALSE_ALARM = 1e-12


class Drift:
    """Compares each round with the past of the same side."""

    def __init__(self) -> None:
        self.found = False

    def compare(self, past: NDArray[np.int64], new: NDArray[np.int64]) -> None:
        """Test, per side, whether past and new counts of ordered cells can come from one law.

        Cells are joined into a few contiguous groups of similar mass first: single cells were chosen on the past, so their
        past counts are too high, but the errors cancel within a group.
        """
        from scipy.special import chdtrc

        if self.found or past.sum(axis=1).min() < FEWEST or new.sum(axis=1).min() < FEWEST:
            return
        pooled = (past + new).sum(axis=0)
        level = np.cumsum(pooled) / pooled.sum()
        starts = np.unique(np.searchsorted(level, np.arange(GROUPS) / GROUPS))
        for side in (0, 1):
            early, late = (np.add.reduceat(counts[side], starts) for counts in (past, new))
            both = early + late
            keep = both >= 10
            scale = np.sqrt(early.sum() / late.sum())
            statistic = float((((late * scale - early / scale) ** 2)[keep] / both[keep]).sum())
            if chdtrc(max(int(keep.sum()) - 1, 1), statistic) < FALSE_ALARM:
                self.found = True


class Watch:
    """Notices outputs that are always exceptions, that begin to be exceptions, or that are always one and the same."""

    def __init__(self) -> None:
        self.always_raised = False
        self.exhausted = False
        self.constant = True
        self._seen = False
        self._first: list[Encoded | None] = [None, None]
        self._early: dict[int, tuple[int, int]] = {}  # per pair: answers and releases in its first round,
        self._late: dict[int, tuple[int, int]] = {}  # and since

    def see(self, pair: int, sides: tuple[Encoded, Encoded]) -> None:
        """Look at the outputs that a round handed back."""
        releases = len(sides[0]) + len(sides[1])
        if not releases:
            return
        answers = releases - sum(round(raised_share(batch) * len(batch)) for batch in sides)
        self.always_raised = answers == 0 and (self.always_raised or not self._seen)
        self._seen = True
        if pair not in self._early:
            self._early[pair] = (answers, releases)
        else:
            before = self._late.get(pair, (0, 0))
            self._late[pair] = (before[0] + answers, before[1] + releases)
            self._exhaustion(pair)
        self._constancy(sides)

    def _exhaustion(self, pair: int) -> None:
        """Answers at first, none since: were the order chance, all of them came early with probability (n / (n + N))^k."""
        early, first = self._early[pair]
        late, since = self._late[pair]
        if early and not late and early * np.log(first / (first + since)) < np.log(FALSE_ALARM):
            self.exhausted = True

    def _constancy(self, sides: tuple[Encoded, Encoded]) -> None:
        for side, batch in enumerate(sides):
            first = self._first[side]
            if first is None:
                first = self._first[side] = batch.rows(slice(1))
            self.constant = self.constant and bool((record_keys(batch) == record_keys(first)[0]).all())


def raised_share(batch: Encoded) -> float:
    """Share of outputs that are exceptions."""
    codes = [code for code, label in batch.labels.items() if label.startswith("raises ")]
    return float(np.isin(batch.codes, np.array(codes, np.uint64)).mean()) if codes else 0.0
