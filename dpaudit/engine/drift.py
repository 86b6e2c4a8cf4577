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
    """Notices outputs that are always exceptions, or always one and the same on each side."""

    def __init__(self) -> None:
        self.always_raised = True
        self.constant = True
        self._first: list[Encoded | None] = [None, None]

    def see(self, sides: tuple[Encoded, Encoded]) -> None:
        """Look at the outputs that a round handed back."""
        for side, batch in enumerate(sides):
            if not len(batch):
                continue
            raised = [code for code, label in batch.labels.items() if label.startswith("raises ")]
            self.always_raised &= bool(np.isin(batch.codes, np.array(raised, np.uint64)).all())
            if self.constant:
                first = self._first[side] or batch.rows(slice(1))
                self._first[side] = first
                same = record_keys(batch) == record_keys(first)[0]
                self.constant = bool(same.all())
