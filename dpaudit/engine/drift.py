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
        self._early: dict[int, tuple[float, int]] = {}  # per pair: share of exceptions in its first round

    def see(self, pair: int, sides: tuple[Encoded, Encoded]) -> None:
        """Look at the outputs that a round handed back."""
        if not len(sides[0]):
            return
        share = float(np.mean([raised_share(batch) for batch in sides]))
        self.always_raised = share == 1.0 and (self.always_raised or not self._seen)
        self._seen = True
        early, count = self._early.setdefault(pair, (share, 2 * len(sides[0])))
        # Of ``count`` early releases not all raised, and now all do: under one law the chance is at most
        # early^(later) plus the chance of so few early ones, negligible for shares like these.
        self.exhausted |= early < 0.9 and share > 0.999 and count >= 50 and len(sides[0]) >= 50
        for side, batch in enumerate(sides):
            first = self._first[side] if self._first[side] is not None and pair in self._early else None
            if first is None:
                first = self._first[side] = batch.rows(slice(1))
            self.constant = self.constant and bool((record_keys(batch) == record_keys(first)[0]).all())


def raised_share(batch: Encoded) -> float:
    """Share of outputs that are exceptions."""
    codes = [code for code, label in batch.labels.items() if label.startswith("raises ")]
    return float(np.isin(batch.codes, np.array(codes, np.uint64)).mean()) if codes else 0.0
