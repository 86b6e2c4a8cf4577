"""Detect draws that are not independent: outputs that drift during the audit, or that repeat from round to round."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import shorten
from dpaudit.engine.encoding.batch import Encoded, record_keys
from dpaudit.engine.encoding.structure import opaque_types, plain
from dpaudit.errors import MechanismError

CELL_GROUPS = 8  # groups of cells that the drift test compares
BLANK = re.compile(r"#|'\.\.\.'")  # what ``mechanism.Raised`` puts in place of numbers and quoted text
NUMBER_IN_TEXT = re.compile(r"number \d+ in |json\.loads\(")  # beginnings of the names of such features
STRUCTURE_GROUPS = 64  # groups of structures that it compares
FEWEST_COMPARED = 200  # outputs that a comparison needs
FEWEST_IN_A_GROUP = 10  # outputs, early and late, without which a group is left out of a comparison
FALSE_ALARM_PER_TEST = 1e-12  # probability of a false alarm of one test of drift or exhaustion
MOST_TOKEN_COLUMNS = 16  # numbers of an output that are looked at for random seeds
FEWEST_TOKENS = 2.0**24  # the width of the range of a random seed
FROM_UNIFORM = 1.95  # Kolmogorov's distance times sqrt(outputs), which uniform numbers exceed once in 1,000 times
FEWEST_ANSWERS = 5  # with fewer among ``MANY_RELEASES``, all others exceptions, next to nothing was seen
MANY_RELEASES = 500
REPEAT_BY_CHANCE = 1e-9  # rounds that are equal with a smaller probability are not independent


class DriftTest:
    """Compare each round with earlier rounds of the same side."""

    def __init__(self) -> None:
        self.found = False
        self._structures: dict[int, NDArray[np.int64]] = {}  # by pair: counts of both sides so far

    def compare(self, past: NDArray[np.int64], new: NDArray[np.int64]) -> None:
        """Test, per side, whether past and new counts of ordered cells can come from one law.

        Cells are first joined into a few contiguous groups of similar mass: single cells were chosen on the past, so their
        past counts are too high, but these errors cancel within a group.
        """
        if self.found or not _enough(past, new):
            return
        pooled = (past + new).sum(axis=0)
        level = np.cumsum(pooled) / pooled.sum()
        starts = np.unique(np.searchsorted(level, np.arange(CELL_GROUPS) / CELL_GROUPS))
        self.found = _differ(*(np.add.reduceat(counts, starts, axis=1) for counts in (past, new)))

    def compare_structures(self, pair: int, sides: tuple[Encoded, Encoded]) -> None:
        """Compare the words, types and keys of the outputs of a round with those before, in groups that their hashes fix."""
        if self.found:
            return
        new = np.stack([_structures_in_groups(batch) for batch in sides])
        past = self._structures.get(pair, np.zeros_like(new))
        self.found = _enough(past, new) and _differ(past, new)
        self._structures[pair] = past + new


def _structures_in_groups(batch: Encoded) -> NDArray[np.int64]:
    if not len(batch):
        return np.zeros(STRUCTURE_GROUPS, np.int64)
    codes, each = (batch.codes[:1], len(batch)) if batch.uniform else (batch.codes, 1)
    return each * np.bincount((codes % np.uint64(STRUCTURE_GROUPS)).astype(np.intp), minlength=STRUCTURE_GROUPS)


def _enough(past: NDArray[np.int64], new: NDArray[np.int64]) -> bool:
    return bool(min(past.sum(axis=1).min(), new.sum(axis=1).min()) >= FEWEST_COMPARED)


def _differ(early: NDArray[np.int64], late: NDArray[np.int64]) -> bool:
    """Return whether early and late counts of one of the sides cannot come from one law (chi-squared)."""
    from scipy.special import chdtrc

    both = early + late
    keep = both >= FEWEST_IN_A_GROUP
    scale = np.sqrt(early.sum(axis=1) / late.sum(axis=1))[:, None]
    statistic = ((late * scale - early / scale) ** 2 / np.maximum(both, 1)).sum(axis=1, where=keep)
    chance = chdtrc(np.maximum(keep.sum(axis=1) - 1, 1), statistic)
    return bool((chance < FALSE_ALARM_PER_TEST).any())


class RepeatTest:
    """Detect draws that repeat, such as those of a mechanism that seeds its own generator in every call.

    The first outputs of one side in each round, whose seeds differ, are compared with those of the round before, until they
    differ once. Independent draws agree in n outputs with probability c^n if two outputs agree with probability c.
    """

    def __init__(self) -> None:
        self._first: dict[int, NDArray[np.uint64]] = {}  # of the last round of each pair
        self._log_chance = 0.0
        self.differed = False

    def compare(self, pair: int, first: Encoded) -> None:
        """Raise MechanismError if successive rounds repeat with probability below 1e-9 under independence."""
        if self.differed:
            return
        keys = record_keys(first)
        before = self._first.get(pair, keys[:0])
        self._first[pair] = keys
        size = min(before.size, keys.size)
        self.differed = bool((before[:size] != keys[:size]).any())
        if not self.differed and size:
            self._log_chance += size * log_collision(keys[:size])
        if not self.differed and self._log_chance < np.log(REPEAT_BY_CHANCE):
            raise MechanismError(
                "The mechanism gave the same outputs in rounds with different seeds: it draws from a generator of its own that "
                "starts afresh in every call (a fixed seed?), so its releases are not independent. Draw from the `rng` handed "
                "in, or make the generator once."
            )


def log_collision(keys: NDArray[np.uint64]) -> float:
    """Return the log of the probability that two outputs agree, estimated from the collisions among these."""
    size = keys.size
    _, frequency = np.unique(keys, return_counts=True)
    return float(np.log(max(float((frequency * (frequency - 1)).sum()) / (size * max(size - 1, 1)), 1.0 / size**2)))


class OutputMonitor:
    """Detect outputs that are always exceptions, become exceptions, are constant, or can be seen only in part."""

    def __init__(self) -> None:
        self.always_raised = False
        self.exhausted = False
        self.constant = True  # every release on the same side gave the same output
        self.never_varied = True  # so did both sides of all pairs
        self._seen = False
        self.answers = self.releases = 0  # outputs that are no exceptions, and all
        self._first: list[Encoded | None] = [None, None]
        self._answered: dict[int, tuple[int, int]] = {}  # per pair: answers, and releases up to the last round with one
        self._since: dict[int, int] = {}  # releases since then
        self._opaque: set[str] = set()  # names of types whose contents cannot be seen
        self._singular = ""  # an example, if most structures in the largest batch occurred once
        self._largest = 0
        self._blanked = ""  # an exception whose message was shortened
        self.token = ""  # an example of a number that looks like a random seed

    def see(self, pair: int, sides: tuple[Encoded, Encoded]) -> None:
        """Examine the outputs that a round returned for learning."""
        releases = len(sides[0]) + len(sides[1])
        if not releases:
            return
        answers = releases - sum(round(raised_share(batch) * len(batch)) for batch in sides)
        self.always_raised = answers == 0 and (self.always_raised or not self._seen)
        self._seen = True
        self.answers, self.releases = self.answers + answers, self.releases + releases
        self._exhaustion(pair, answers, releases)
        self._constancy(sides)
        for batch in sides:
            self._visibility(batch)

    @property
    def hardly_answered(self) -> bool:
        """True if all releases but a few were exceptions."""
        return self.answers < FEWEST_ANSWERS and self.releases >= MANY_RELEASES

    def blind_spots(self) -> list[str]:
        """Return messages about parts of the outputs that the audit could not see."""
        found = [
            f"Outputs of type {name} (or parts of outputs) are seen only by their type. Return what they contain."
            for name in sorted(self._opaque)
        ]
        if self._singular:
            found.append(
                f"Most outputs are strings, or have keys, that occurred only once, such as {self._singular}. They are compared "
                "by their features (sizes, elements, words, numbers, beginnings and ends), not as a whole. Return numbers as "
                "numbers, and fewer distinct strings, or say what you suspect (suspect=)."
            )
        if self._blanked:
            found.append(
                f"Numbers and quoted text in messages of exceptions are not audited, such as in {self._blanked}. A reader of "
                "the message sees them: leave them out of it, or return them."
            )
        return found

    def _visibility(self, batch: Encoded) -> None:
        raised = (label for label in batch.labels.values() if label.startswith("raises "))
        self._blanked = self._blanked or next((shorten(label) for label in raised if BLANK.search(label)), "")
        self._opaque.update(name for label in batch.labels.values() for name in opaque_types(label))
        if len(batch) < max(FEWEST_COMPARED, self._largest):
            return
        self._largest = len(batch)
        self._singular = ""
        self.token = token_in(batch) or token_in_text(batch)
        if batch.uniform:
            return
        codes, frequency = np.unique(batch.codes, return_counts=True)
        alone = codes[frequency == 1]
        if 2 * alone.size > len(batch):
            self._singular = shorten(plain(batch.labels.get(int(alone[0]), "?")))

    def _exhaustion(self, pair: int, answers: int, releases: int) -> None:
        """Detect that k answers came in the first n releases and none in the N since: probability (n / (n + N))^k by chance."""
        before, upto = self._answered.get(pair, (0, 0))
        since = self._since.get(pair, 0) + releases
        if answers:
            self._answered[pair] = (before + answers, upto + since)
        elif before and before * np.log(upto / (upto + since)) < np.log(FALSE_ALARM_PER_TEST):
            self.exhausted = True
        self._since[pair] = 0 if answers else since

    def _constancy(self, sides: tuple[Encoded, Encoded]) -> None:
        for side, batch in enumerate(sides):
            first = self._first[side]
            if first is None:
                first = self._first[side] = batch.rows(slice(1))
            if self.constant:
                self.constant = bool((record_keys(batch) == record_keys(first)[0]).all())
        if self.never_varied:
            both = [record_keys(first)[0] for first in self._first if first is not None]
            self.never_varied = self.constant and len(set(map(int, both))) == 1


def token_in(batch: Encoded) -> str:
    """Return an example of a whole number that never repeats, uniform on a wide range and beside other numbers; or nothing.

    Noise of a large scale is not uniform between the smallest and the largest output.
    """
    size = len(batch)
    if batch.width < 2 or size < 2:
        return ""
    whole = (np.isfinite(batch.values) & (batch.values == np.round(batch.values))).all(axis=0)
    for column in batch.values[:, whole].T[:MOST_TOKEN_COLUMNS]:
        ordered = np.sort(column)
        span = ordered[-1] - ordered[0]
        if span < FEWEST_TOKENS or (ordered[1:] == ordered[:-1]).any():
            continue
        distance = np.abs((ordered - ordered[0]) / span - np.arange(size) / (size - 1)).max()
        if distance * np.sqrt(size) < FROM_UNIFORM:
            return f"{column[0]:.0f}"
    return ""


def token_in_text(batch: Encoded) -> str:
    """Return an example of a number that looks like a random seed (see :func:`token_in`) in texts that hold several."""
    table = batch.features
    if table is None:
        return ""
    names = [name for name, count in table.frequency.items() if count == len(batch) and NUMBER_IN_TEXT.match(name)]
    return token_in(Encoded(batch.codes, table.columns(names, [np.nan] * len(names)), {}))


def raised_share(batch: Encoded) -> float:
    """Return the share of outputs that are exceptions."""
    codes = [code for code, label in batch.labels.items() if label.startswith("raises ")]
    return float(np.isin(batch.codes, np.array(codes, np.uint64)).mean()) if codes else 0.0
