"""Test whether releases depend on those before them, as those of a mechanism with a cache or with correlated noise do.

The evidence against a claim is a product over releases, which is valid only if they are independent. Before an accusation,
the releases that it rests on are tested in the order in which they were made:

- repeats: how often a release equals the one before it on the same data set;
- indicator, value: the largest autocorrelation, over all lags, of the event that shows the leak, and of the rank of the first
  number, over the releases of both data sets in one sequence (a pool of noise values that is used again and again shows at
  the lag of its length);
- counts: how much the number of releases in the event varies between stretches of the sequence.

If releases are independent, every order of the releases of one data set is equally likely. So each statistic is compared
with its values under ``PERMUTATIONS`` random orders, and the probability that one of the four exceeds all of these is at
most 4 / (``PERMUTATIONS`` + 1), which is ``ERROR_PROBABILITY``, for any mechanism and any number of releases fixed
beforehand. The event may be chosen on the same releases if the choice does not depend on their order: the caller builds
views from releases in a random order, because those of the audit favour what was frequent at its beginning. An audit that
stops at a violation does not fix the number of releases, so there the probability holds approximately.

Releases that depend on each other but are exchangeable (noise picked at random from a fixed table, a random number drawn when
the mechanism was made) pass these tests: given the table they are independent, and no sequence of calls shows the dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.batch import Encoded, record_keys, stack

Floats: TypeAlias = NDArray[np.float64]

PERMUTATIONS = 1999
MOST_RELEASES = 4096  # of each data set that are tested, the first ones
FEWEST_RELEASES = 16  # of each data set; fewer are not tested
STRETCHES = 16  # parts of the sequence whose counts are compared
AT_ONCE = 16  # orders whose statistics are computed together
PERMUTED_AT_ONCE = 1 << 20  # numbers in one array of permuted sequences; bounds the memory
MEANINGS = {
    "repeats": "a release often equals the one before it",
    "indicator": "whether a release is in the event depends on earlier releases",
    "value": "the value of a release depends on earlier releases",
    "counts": "the event is frequent in some stretches of the audit and rare in others",
}
ERROR_PROBABILITY = len(MEANINGS) / (PERMUTATIONS + 1)


@dataclass
class Timeline:
    """Releases of a pair in the order in which they were made: a block of each side, and then the next ones."""

    _rounds: list[tuple[Sequence[int], Sequence[int], tuple[Encoded, Encoded]]] = field(default_factory=list)
    size: int = 0  # releases of each side

    @property
    def full(self) -> bool:
        """True if there are enough releases."""
        return self.size >= MOST_RELEASES

    def add(
        self, sizes: Sequence[int], drawn: int, sides: tuple[Encoded, Encoded], first_sides: Sequence[int] = ()
    ) -> None:
        """Append the first ``drawn`` releases of each side of a round that was cut into blocks of these sizes.

        ``first_sides`` says for each block which side was drawn first; by default D.
        Ignored if there are enough releases, or if some of the round were not kept.
        """
        if self.full or not drawn or len(sides[0]) != drawn:
            return
        ends = np.minimum(np.cumsum(sizes), drawn)
        self._rounds.append((np.diff(ends, prepend=0).tolist(), first_sides or [0] * len(sizes), sides))
        self.size += drawn

    def sides(self) -> tuple[Encoded, Encoded]:
        """Return the releases of each data set in order, both with as many columns."""
        width = max((batch.width for *_, sides in self._rounds for batch in sides), default=0)
        sizes = [size for sizes, *_ in self._rounds for size in sizes]
        first_sides = [side for _, sides, _ in self._rounds for side in sides]
        first, second = (stack([sides[side] for *_, sides in self._rounds], width=width) for side in (0, 1))
        self._rounds = [(sizes, first_sides, (first, second))]  # kept once, because releases can be large
        return first, second

    def side_of(self) -> NDArray[np.intp]:
        """Return, for each release of the whole sequence, the data set that it was made on (0 or 1)."""
        lengths = [size for sizes, *_ in self._rounds for size in sizes for _ in range(2)]
        sides = [each for _, first_sides, _ in self._rounds for side in first_sides for each in (side, 1 - side)]
        return np.repeat(np.array(sides, np.intp), lengths)

    def is_constant(self) -> bool:
        """Return whether all releases of each data set are equal."""
        return bool(self._rounds) and all(np.unique(record_keys(side)).size == 1 for side in self.sides())


def dependence(
    timeline: Timeline, contains: Callable[[Encoded], NDArray[np.bool_]], rng: np.random.Generator
) -> str | None:
    """Return in words how releases depend on each other; None if they were not seen to.

    Parameters
    ----------
    timeline : Timeline
        The releases that an accusation rests on.
    contains : callable
        Says which releases are in the event that shows the leak.
    rng : numpy.random.Generator
        Draws the random orders.
    """
    if timeline.size < FEWEST_RELEASES:
        return None
    sides = timeline.sides()
    side_of = timeline.side_of()
    places = [np.flatnonzero(side_of == side) for side in (0, 1)]
    keys = [np.unique(record_keys(side), return_inverse=True)[1].reshape(-1) for side in sides]
    features = [[_standardised(contains(side).astype(float)), _standardised(_ranks(side))] for side in sides]
    size = side_of.size
    observed = _statistics(keys, features, places, size, [np.arange(k.size)[None] for k in keys])
    largest = dict.fromkeys(MEANINGS, -np.inf)
    at_once = min(AT_ONCE, max(1, PERMUTED_AT_ONCE // size))
    for start in range(0, PERMUTATIONS, at_once):
        if all(observed[name][0] <= largest[name] for name in MEANINGS):
            return None  # no further order can change that; independent releases get here after a few
        count = min(at_once, PERMUTATIONS - start)
        orders = [rng.permuted(np.tile(np.arange(k.size), (count, 1)), axis=1) for k in keys]
        for name, values in _statistics(keys, features, places, size, orders).items():
            largest[name] = max(largest[name], float(values.max()))
    found = [meaning for name, meaning in MEANINGS.items() if observed[name][0] > largest[name] + 1e-9]
    return found[0] if found else None


def _statistics(
    keys: Sequence[NDArray[np.intp]],
    features: Sequence[Sequence[Floats]],
    places: Sequence[NDArray[np.intp]],
    size: int,
    orders: Sequence[NDArray[np.intp]],
) -> dict[str, Floats]:
    """Return the four statistics for each of several orders of the releases of both data sets."""
    repeats = np.zeros(len(orders[0]))
    for numbers, order in zip(keys, orders, strict=True):
        arranged = numbers[order]
        repeats += (arranged[:, 1:] == arranged[:, :-1]).sum(axis=1)
    sequences = np.zeros((2, len(orders[0]), size))
    for place, order, own in zip(places, orders, features, strict=True):
        for row, feature in enumerate(own):
            sequences[row][:, place] = feature[order]
    indicator, value = (_largest_autocorrelation(sequence) for sequence in sequences)
    edges = np.linspace(0, size, min(STRETCHES, size) + 1).astype(np.intp)[:-1]
    counts = np.zeros(len(orders[0]))
    for place in places:  # each data set by itself, because their effects could cancel
        own_sequence = np.zeros_like(sequences[0])
        own_sequence[:, place] = sequences[0][:, place]
        counts += (np.add.reduceat(own_sequence, edges, axis=1) ** 2).sum(axis=1)
    return {"repeats": repeats, "indicator": indicator, "value": value, "counts": counts}


def _largest_autocorrelation(sequences: Floats) -> Floats:
    """Return the largest absolute autocorrelation of each row over all lags up to half its length, in standard errors."""
    size = sequences.shape[1]
    padded = 1 << (2 * size - 1).bit_length()
    spectrum = np.fft.rfft(sequences, padded, axis=1)
    lags = np.arange(1, max(size // 2, 2))
    products = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, padded, axis=1)[:, lags]
    return np.asarray(np.abs(products / np.sqrt(size - lags)).max(axis=1))


def _standardised(values: Floats) -> Floats:
    """Return the values with mean 0 and variance 1; zeros if they are all equal."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0.0 else np.zeros_like(values)


def _ranks(side: Encoded) -> Floats:
    """Return the rank of the first number of each release; zeros if releases hold no numbers."""
    if not side.width:
        return np.zeros(len(side))
    column = np.nan_to_num(side.values[:, 0], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.asarray(np.unique(column, return_inverse=True)[1], dtype=np.float64).reshape(-1)
