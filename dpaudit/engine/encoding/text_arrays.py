"""Group the equal rows of an array of strings, so that each distinct row is encoded once.

Every row gets a 64-bit key that numpy computes without a Python loop over the rows. The keys are grouped by a small hash
table, because sorting a block of keys takes several times as long as drawing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.sorted_counts import SortedSample
from dpaudit.errors import DPAuditError

Codes: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.intp]
EncodeRow: TypeAlias = Callable[
    [Any], tuple[int, str] | None
]  # code and label of a row; None if its strings hold numbers

FIBONACCI_MULTIPLIER = 0x9E3779B97F4A7C15  # odd, about 2^64 over the golden ratio: spreads low bits over the high ones
UINT64_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class HashTableSizes:
    """Limits of the hash table that groups equal rows."""

    fewest_rows: int = 1024
    """Arrays with fewer rows are sorted, which is faster there."""
    slots: int = 4096
    """The number of slots, a power of two; the table is filled from as many rows at the start of the array."""
    shifts: tuple[int, ...] = (52, 40, 28)
    """Right shifts of a key that are tried in turn, until the bits that remain give few collisions."""
    most_unmatched: float = 0.1
    """The largest share of rows that may miss the table; they are sorted."""
    rows_in_cache: int = 32_768
    """The number of rows that are looked up at a time, so that their keys stay in the processor's cache."""


TABLE = HashTableSizes()


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """The rows of an array of strings, each given by its place in a list of structure codes."""

    kinds: Codes  # the structure codes
    kind_of: Places  # for each row, its place in ``kinds``
    labels: Mapping[int, str]
    counted: SortedSample  # the codes, with their frequencies


def group_rows(strings: NDArray[Any], encode_row: EncodeRow) -> GroupedRows | None:
    """Encode each distinct row once. None if ``encode_row`` returns None for a row, whose strings then hold numbers."""
    group, example = _groups(strings.reshape(len(strings), -1))
    used = np.flatnonzero(example >= 0)
    encoded = [encode_row(strings[row]) for row in example[used]]
    if None in encoded:
        return None
    kinds = np.zeros(example.size, dtype=np.uint64)
    kinds[used] = [each[0] for each in encoded if each is not None]
    labels = dict(each for each in encoded if each is not None)
    counted = SortedSample.counted(kinds[used], np.bincount(group, minlength=example.size)[used])
    if counted.size != len(strings):
        raise DPAuditError(
            "Grouping an array of strings lost some of them; this is a defect of dpaudit, please report it."
        )
    return GroupedRows(kinds, group, labels, counted)


def _groups(rows: NDArray[Any]) -> tuple[Places, Places]:
    """Return the group number of each row, and for each group the place of one row (-1 if the group is empty)."""
    one_byte = has_one_byte_characters(rows)
    if len(rows) >= TABLE.fewest_rows:
        first = row_keys(rows[: TABLE.slots], one_byte=one_byte)
        for shift in TABLE.shifts:
            found = _look_up(rows, first, shift, one_byte=one_byte)
            if found is not None:
                return found
    return _groups_by_sorting(row_keys(rows, one_byte=one_byte))


def _look_up(rows: NDArray[Any], first: Codes, shift: int, *, one_byte: bool) -> tuple[Places, Places] | None:
    """Group rows by a table of their ``first`` keys; None if too many rows miss it."""
    example = np.full(TABLE.slots, -1)
    example[_slots(first, shift)] = np.arange(first.size)
    # An empty slot holds a key that hashes to another slot, so that no key matches it.
    no_match = ~np.arange(TABLE.slots, dtype=np.uint64) << np.uint64(shift)
    table = np.where(example < 0, no_match, first[example])
    group = np.empty(len(rows), np.intp)
    missed: list[tuple[Places, Codes]] = []
    left = int(TABLE.most_unmatched * len(rows))
    for start in reversed(range(0, len(rows), TABLE.rows_in_cache)):  # the rows drawn last are still in the cache
        keys = row_keys(rows[start : start + TABLE.rows_in_cache], one_byte=one_byte)
        slot = _slots(keys, shift)
        group[start : start + TABLE.rows_in_cache] = slot
        unmatched = np.flatnonzero(table.take(slot) != keys)
        left -= unmatched.size
        if left < 0:
            return None
        if unmatched.size:
            missed.append((start + unmatched, keys[unmatched]))
    if not missed:
        return group, example
    places = np.concatenate([place for place, _ in missed])
    other, first_of = _groups_by_sorting(np.concatenate([keys for _, keys in missed]))
    group[places] = TABLE.slots + other
    return group, np.concatenate([example, places[first_of]])


def _slots(keys: Codes, shift: int) -> Places:
    return (keys >> np.uint64(shift)).view(np.intp) & (TABLE.slots - 1)


def _groups_by_sorting(keys: Codes) -> tuple[Places, Places]:
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return group.reshape(-1), first


def has_one_byte_characters(strings: NDArray[Any]) -> bool:
    """Return whether every character is below 256. Numpy stores each in four bytes, of which one is then enough."""
    return strings.dtype.kind == "S" or int(_characters(strings).max()) < 256


def row_keys(rows: NDArray[Any], *, one_byte: bool) -> Codes:
    """Return a 64-bit key of each row: a polynomial whose coefficients are eight bytes of text each.

    Keys may be compared only if they were made with the same ``one_byte`` (see :func:`has_one_byte_characters`).
    """
    count = len(rows)
    characters = _characters(rows)
    text = np.empty(characters.size * (1 if one_byte else characters.itemsize) + 8, np.uint8)
    np.copyto(text[:-8] if one_byte else text[:-8].view(characters.dtype), characters, casting="unsafe")
    text[-8:] = 0  # the last row is read beyond its end, too
    width = (text.size - 8) // count

    def eight_bytes(start: int, factor: int) -> Codes:
        word = np.ndarray((count,), "<u8", text, start, (width,))
        # The last eight bytes of a row may reach into the next row; the factor shifts those bytes out.
        beyond = 8 * max(start + 8 - width, 0)
        return word * np.uint64(factor << beyond & UINT64_MAX)

    keys = eight_bytes(0, FIBONACCI_MULTIPLIER)
    for start in range(8, width, 8):
        keys += eight_bytes(start, 1)
        keys *= np.uint64(FIBONACCI_MULTIPLIER)  # makes the upper bits, which choose the slot, depend on all others
    return keys


def _characters(strings: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(strings).reshape(-1).view(np.uint32 if strings.dtype.kind == "U" else np.uint8)
