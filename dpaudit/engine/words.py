"""Arrays of words: every distinct one is looked at once, and not again in the batches that follow.

Words are told apart by 64-bit keys, which are made without a walk in Python. What was found of a word is remembered under its
key; it depends on that word alone, so remembering changes nothing but the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.partition import Ascending
from dpaudit.errors import DPAuditError

Codes: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.intp]
Look: TypeAlias = Callable[[Any], tuple[int, str] | None]  # code and label of a row of words; None if they hold numbers

WORTH_A_TABLE = 1024  # words; fewer are sorted
SLOTS = 4096
SHIFTS = (52, 40, 28)  # to the bits of a key that are a slot
MOST_STRANGE = 0.1  # share of the words that the table may leave to a sort
AT_ONCE = 32_768  # words whose keys stay in the cache
MOST_REMEMBERED = 16  # kinds of arrays
_ODD = 0x9E3779B97F4A7C15
MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Told:
    """The words of a batch: which of a few kinds each one is."""

    kinds: Codes
    kind_of: Places
    labels: Mapping[int, str]
    counted: Ascending


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Words that have been looked at. A slot that is not used holds a key that belongs into another."""

    narrow: bool  # whether keys are of letters of one byte
    shift: int
    keys: Codes
    kinds: Codes
    used: Places  # slots, in the order of their kinds
    labels: Mapping[int, str]

    def find(self, words: NDArray[Any]) -> Places | None:
        """The slot of each word; None where one has not been looked at."""
        slots = np.empty(len(words), np.intp)
        for start in reversed(range(0, len(words), AT_ONCE)):  # what was drawn last is still in the cache
            keys, narrow = row_keys(words[start : start + AT_ONCE])
            slot = _slots(keys, self.shift, out=slots[start : start + AT_ONCE])
            # Slots are within the table by their bits, so "clip" only spares a check of each.
            if narrow != self.narrow or (self.keys.take(slot, mode="clip") != keys).any():
                return None
        return slots

    def tell(self, slots: Places) -> Told:
        """What is known of words in these slots."""
        counts = np.bincount(slots, minlength=SLOTS)[self.used]
        kinds, labels = self.kinds[self.used], self.labels
        if not counts.all():
            kinds, counts = kinds[counts > 0], counts[counts > 0]
            labels = {code: labels[code] for code in kinds.tolist()}
        return Told(self.kinds, slots, labels, Ascending(kinds, counts.cumsum()))


_REMEMBERED: dict[tuple[Any, ...], Lexicon] = {}  # by what an array holds


def tell(words: NDArray[Any], look: Look) -> Told | None:
    """Look at each distinct row of words once; None where ``look`` does not take one for words alone."""
    kind = (words.dtype, words.shape[1:])
    rows = words.reshape(len(words), -1)
    known = _REMEMBERED.get(kind) if len(words) >= WORTH_A_TABLE else None
    slots = None if known is None else known.find(rows)
    if known is not None and slots is not None:
        return known.tell(slots)
    number, row, found = _alike(rows)
    used = np.flatnonzero(row >= 0)
    looked = [look(words[index]) for index in row[used]]
    if None in looked:
        return None
    kinds = np.zeros(row.size, dtype=np.uint64)
    kinds[used] = [each[0] for each in looked if each is not None]
    labels = dict(each for each in looked if each is not None)
    if found is not None:
        if len(_REMEMBERED) >= MOST_REMEMBERED:
            _REMEMBERED.clear()
        _REMEMBERED[kind] = Lexicon(*found, kinds, used[np.argsort(kinds[used])], labels)
    counted = Ascending.counted(kinds[used], np.bincount(number, minlength=row.size)[used])
    if counted.size != len(words):
        raise DPAuditError("Words got lost while they were counted; this is a defect of dpaudit, please report it.")
    return Told(kinds, number, labels, counted)


def _alike(rows: NDArray[Any]) -> tuple[Places, Places, tuple[bool, int, Codes] | None]:
    """Number the distinct rows of words: the number of each row, and one row for each number (-1 for those not used).

    Where the numbers are slots of a table that holds all of them, that table: for narrow letters or not, its shift, its keys.
    """
    keys, narrow = row_keys(rows)
    # Few words differ in some bits of their keys, and most occur soon, so that a table finds them without sorting.
    for shift in SHIFTS if len(rows) >= WORTH_A_TABLE else ():
        slot = _slots(keys, shift)
        row = np.full(SLOTS, -1)
        early = slot[:SLOTS]
        row[early] = np.arange(early.size)
        table = np.where(row < 0, ~np.arange(SLOTS, dtype=np.uint64) << np.uint64(shift), keys[row])
        strange = table.take(slot) != keys
        if not strange.any():
            return slot, row, (narrow, shift, table)
        rest = np.flatnonzero(strange)
        if rest.size <= MOST_STRANGE * keys.size:
            place, first = _numbered(keys[rest])
            slot[rest] = SLOTS + place
            return slot, np.concatenate([row, rest[first]]), None
    return *_numbered(keys), None


def _slots(keys: Codes, shift: int, out: Places | None = None) -> Places:
    slot = np.empty(keys.size, np.intp) if out is None else out
    np.right_shift(keys, np.uint64(shift), out=slot.view(np.uint64))
    if shift < SHIFTS[0]:
        slot &= SLOTS - 1
    return slot


def _numbered(keys: Codes) -> tuple[Places, Places]:
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return place.reshape(-1), first


def row_keys(rows: NDArray[Any]) -> tuple[Codes, bool]:
    """A 64-bit key of each row of words, a polynomial in eight bytes at a time, and whether letters were taken as bytes."""
    count = len(rows)
    letters = np.ascontiguousarray(rows).reshape(-1).view(np.uint32 if rows.dtype.kind == "U" else np.uint8)
    narrow = letters.itemsize == 1 or int(letters.max()) < 256
    text = _bytes(letters, narrow)
    width = (text.size - 8) // count

    def eight(start: int, factor: int) -> Codes:
        word = np.ndarray((count,), "<u8", text, start, (width,))
        # What the last word holds of the next row is shifted out.
        beyond = 8 * max(start + 8 - width, 0)
        return word * np.uint64(factor << beyond & MASK)

    keys = eight(0, _ODD)
    for start in range(8, width, 8):
        keys += eight(start, 1)
        keys *= np.uint64(_ODD)  # the upper bits now depend on all others
    return keys, narrow


def _bytes(letters: NDArray[Any], narrow: bool) -> NDArray[np.uint8]:
    """Letters as bytes, and eight more. Those of one byte, though numpy gives them four, are taken as such."""
    text = np.empty(letters.size * (1 if narrow else letters.itemsize) + 8, np.uint8)
    np.copyto(text[:-8] if narrow else text[:-8].view(letters.dtype), letters, casting="unsafe")
    text[-8:] = 0
    return text
