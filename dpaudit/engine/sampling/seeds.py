"""Seeds of everything that is drawn, all children of the one seed of an audit."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence, ISpawnableSeedSequence
from numpy.typing import NDArray

SEEDS_PER_CHILD = 16
"""Blocks of one round whose seeds are generated together."""


class SeedKey(enum.IntEnum):
    """The first number of a seed's key. Pairs of an audit have the keys 0, 1, 2, ...; these come after all of them."""

    ONE_BY_ONE = 1_000_000
    """Added to the number of a pair that is audited again one release at a time."""
    SHRINK = 2_000_000
    """Short audits of smaller pairs; the number of the audit is added."""
    CONFIRM = 3_000_000
    """Audits that confirm a pair; the number of the audit is added."""
    MEASURE = 4_000_000
    """Outputs on which the event of a witness is counted."""
    BASELINE = 5_000_000
    """Outputs on which the event of a baseline is counted."""
    TYPES = 6_000_000
    """Outputs whose types are looked at."""
    TIMED_NOISE = 6_000_000
    """The generator that timed calls receive. Nothing else is drawn in an audit of times."""
    TIMED_COINS = 6_000_001
    """The labels of timed calls."""
    DIAGNOSIS = 7_000_000
    """Residuals of a diagnosis."""
    SINGLE = 8_000_000
    """Added to the number of a pair on which a violation is confirmed on single releases."""
    ORDERS = 9_000_000
    """Random orders of releases, in a test of dependence."""
    SWEEP = 11_000_000
    """Outputs of a sweep over many pairs."""
    EVIDENCE = 12_000_000
    """Rounds of evidence that is kept from run to run; the number of the round is added to the key."""
    EXPLORATION = 12_000_001
    """The roots of the explorations of such runs; the number of the run is added."""
    LATER = 10_000_000
    """Releases that are drawn to see whether a constant output changes."""


def seed_child(entropy: int, *key: int) -> np.random.SeedSequence:
    """Return the child of the root seed with that key."""
    return np.random.SeedSequence(entropy, spawn_key=key)


class _GeneratedSeed(ISpawnableSeedSequence):
    """The state words of one generator, which a seed child has generated already."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words
        self._parent: np.random.SeedSequence | None = None  # of what a mechanism spawns

    def spawn(self, n_children: int) -> list[Any]:
        """Return seeds of further generators, for mechanisms that call ``rng.spawn``."""
        self._parent = self._parent or np.random.SeedSequence(self.words.tolist())
        return self._parent.spawn(n_children)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Return the words; PCG64 asks once, for exactly as many as there are."""
        if n_words != self.words.size or np.dtype(dtype) != self.words.dtype:
            raise AssertionError(f"n_words={n_words}, dtype={dtype}: PCG64 asks for {self.words.size} words of uint64")
        return self.words


class BlockSeeds:
    """Seeds of the blocks of one round, several per seed child, because a child costs as much as drawing 500 numbers."""

    def __init__(self, entropy: int, key: tuple[int, ...]) -> None:
        self._entropy = entropy
        self._key = key
        self._group = -1
        self._words = np.empty((0, 2, 4), np.uint64)
        self._coins = 0  # one bit for each block of the group

    def of(self, block: int, side: int) -> ISeedSequence:
        """Return the seed of one block of one side."""
        place = self._place(block)  # before the words are read, because it may generate them
        return _GeneratedSeed(self._words[place, side])

    def first_side(self, block: int) -> int:
        """Return which side of a block is drawn first, by a coin.

        If it were always the same one, a mechanism that alternates from call to call would seem to know its data.
        """
        place = self._place(block)
        return self._coins >> place & 1

    def _place(self, block: int) -> int:
        """Generate the words of the group of a block, and return its place there."""
        group, place = divmod(block, SEEDS_PER_CHILD)
        if group != self._group:
            child = seed_child(self._entropy, *self._key, group)
            words = child.generate_state(SEEDS_PER_CHILD * 2 * 4 + 1, np.uint64)
            self._words = words[:-1].astype(np.uint64, copy=False).reshape(SEEDS_PER_CHILD, 2, 4)
            self._coins = int(words[-1])
            self._group = group
        return place
