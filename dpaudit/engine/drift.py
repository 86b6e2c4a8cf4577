"""Noticing draws that are not independent: outputs that change as the audit goes on, or that come again."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.outputs import Encoded, record_keys
from dpaudit.engine.structures import opaque_types, plain
from dpaudit.errors import MechanismError
from dpaudit.validation import shorten

GROUPS = 8
BLANK = re.compile(r"#|'\.\.\.'")  # what ``mechanism.Raised`` puts in place of numbers and quoted text
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
        early, late = (np.add.reduceat(counts, starts, axis=1) for counts in (past, new))
        both = early + late
        keep = both >= 10
        scale = np.sqrt(early.sum(axis=1) / late.sum(axis=1))[:, None]
        statistic = ((late * scale - early / scale) ** 2 / np.maximum(both, 1)).sum(axis=1, where=keep)
        chance = chdtrc(np.maximum(keep.sum(axis=1) - 1, 1), statistic)
        self.found = bool((chance < FALSE_ALARM).any())


class Replays:
    """Notices draws that come again, such as those of a mechanism that seeds its own generator in every call.

    The first outputs of one side in each round, which come from seeds of their own, are compared with those of the round
    before, until they differ once. Draws that are independent agree in n outputs with probability c^n, if two outputs agree
    with probability c.
    """

    def __init__(self) -> None:
        self._first: dict[int, NDArray[np.uint64]] = {}  # of the last round of each pair
        self._log_chance = 0.0
        self.differed = False

    def compare(self, pair: int, first: Encoded) -> None:
        """Refuse rounds that were alike so far though chance would have made them so less than once in a thousand million."""
        if self.differed:
            return
        keys = record_keys(first)
        before = self._first.get(pair, keys[:0])
        self._first[pair] = keys
        size = min(before.size, keys.size)
        self.differed = bool((before[:size] != keys[:size]).any())
        if not self.differed and size:
            self._log_chance += size * log_collision(keys[:size])
        if not self.differed and self._log_chance < np.log(1e-9):
            raise MechanismError(
                "The mechanism gave the same outputs in rounds with different seeds: it draws from a generator of its own that "
                "starts afresh in every call (a fixed seed?), so its releases are not independent. Draw from the `rng` handed "
                "in, or make the generator once."
            )


def log_collision(keys: NDArray[np.uint64]) -> float:
    """Log of the probability that two outputs agree, as far as the collisions among these tell."""
    size = keys.size
    _, frequency = np.unique(keys, return_counts=True)
    return float(np.log(max(float((frequency * (frequency - 1)).sum()) / (size * max(size - 1, 1)), 1.0 / size**2)))


class Watch:
    """Notices outputs that are always exceptions, that begin to be exceptions, that are always one and the same, or of which
    little can be seen.
    """

    def __init__(self) -> None:
        self.always_raised = False
        self.exhausted = False
        self.constant = True
        self._seen = False
        self._first: list[Encoded | None] = [None, None]
        self._answered: dict[
            int, tuple[int, int]
        ] = {}  # per pair: answers, and releases up to the last round with one,
        self._since: dict[int, int] = {}  # and releases since
        self._opaque: set[str] = set()  # types of which nothing else is seen
        self._singular = ""  # a structure, where most of those in the largest batch came once
        self._largest = 0
        self._blanked = ""  # an exception whose message holds more than is seen of it

    def see(self, pair: int, sides: tuple[Encoded, Encoded]) -> None:
        """Look at the outputs that a round handed back."""
        releases = len(sides[0]) + len(sides[1])
        if not releases:
            return
        answers = releases - sum(round(raised_share(batch) * len(batch)) for batch in sides)
        self.always_raised = answers == 0 and (self.always_raised or not self._seen)
        self._seen = True
        self._exhaustion(pair, answers, releases)
        self._constancy(sides)
        for batch in sides:
            self._visibility(batch)

    def blind_spots(self) -> list[str]:
        """What an audit that found nothing could not have found, because it did not see enough of the outputs."""
        found = [
            f"Outputs of type {name} (or parts of outputs) are seen by their type alone. Return what they hold."
            for name in sorted(self._opaque)
        ]
        if self._singular:
            found.append(
                f"Most outputs are words, or have keys, that did not come twice, such as {self._singular}. Whether such words "
                "come more often on one data set cannot be seen. Return numbers as numbers, and fewer different words."
            )
        if self._blanked:
            found.append(
                f"Numbers and quoted text in messages of exceptions are not looked at, such as in {self._blanked}. Whoever "
                "gets the message sees them: leave them out of it, or return them."
            )
        return found

    def _visibility(self, batch: Encoded) -> None:
        raised = (label for label in batch.labels.values() if label.startswith("raises "))
        self._blanked = self._blanked or next((shorten(label) for label in raised if BLANK.search(label)), "")
        self._opaque.update(name for label in batch.labels.values() for name in opaque_types(label))
        if len(batch) < max(FEWEST, self._largest):
            return
        self._largest = len(batch)
        self._singular = ""
        if batch.uniform:
            return
        codes, frequency = np.unique(batch.codes, return_counts=True)
        alone = codes[frequency == 1]
        if 2 * alone.size > len(batch):
            self._singular = shorten(plain(batch.labels.get(int(alone[0]), "?")))

    def _exhaustion(self, pair: int, answers: int, releases: int) -> None:
        """Answers at first, none since: were the order chance, all of them came early with probability (n / (n + N))^k."""
        before, upto = self._answered.get(pair, (0, 0))
        since = self._since.get(pair, 0) + releases
        if answers:
            self._answered[pair] = (before + answers, upto + since)
        elif before and before * np.log(upto / (upto + since)) < np.log(FALSE_ALARM):
            self.exhausted = True
        self._since[pair] = 0 if answers else since

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
