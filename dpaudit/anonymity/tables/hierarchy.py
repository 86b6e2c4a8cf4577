"""Generalisation hierarchies: from a value, step by step, to the suppression mark ``*``.

Each hierarchy has a ``height``, generalises a value to a ``level`` (0 is the value itself, ``height`` the top), and
lists the ``ancestors`` of any of its labels, from the label itself to the top. :class:`Taxonomy` is also the ground
distance of the hierarchical earth mover's distance.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from dpaudit._util.validation import check_count, did_you_mean, shorten
from dpaudit.anonymity.tables.cells import SUPPRESSED, as_number, as_text
from dpaudit.errors import InvalidArgument


@runtime_checkable
class Hierarchy(Protocol):
    """Labels of increasing coarseness for the values of one attribute."""

    @property
    def height(self) -> int:
        """The number of steps from a value to the top."""

    def generalise(self, value: Any, level: int) -> Any:
        """Return the label of ``value`` at ``level``."""

    def ancestors(self, label: Any) -> tuple[Any, ...]:
        """Return the label itself and every coarser one that contains it, up to the top."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """Keep the value, or replace it by ``*``.

    >>> Suppression().generalise("3270", 1)
    '*'
    """

    height: int = field(default=1, init=False)

    def generalise(self, value: Any, level: int) -> Any:
        """Return the value at level 0 and ``*`` at level 1."""
        return SUPPRESSED if _level(level, 1) else value

    def ancestors(self, label: Any) -> tuple[Any, ...]:
        """Return the label and ``*``."""
        return (label,) if label == SUPPRESSED else (label, SUPPRESSED)


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Mask the last characters of a text of ``length`` characters, one more at each level; at the top all is ``*``.

    >>> postcode = Prefixes(length=4)
    >>> [postcode.generalise(3270, level) for level in range(5)]
    ['3270', '327*', '32**', '3***', '*']
    """

    length: int

    def __post_init__(self) -> None:
        check_count(length=self.length)

    @property
    def height(self) -> int:
        """One level for each character."""
        return self.length

    def generalise(self, value: Any, level: int) -> str:
        """Return the text with its last ``level`` characters masked."""
        _level(level, self.height)
        text = as_text(value)
        if len(text) != self.length:
            raise InvalidArgument(
                f"value={value!r} has {len(text)} characters; Prefixes(length={self.length}) masks texts of exactly "
                f"{self.length}. Pad it (str.zfill) or change length."
            )
        return SUPPRESSED if level == self.length else text[: self.length - level] + "*" * level

    def ancestors(self, label: Any) -> tuple[str, ...]:
        """Return the label with more and more characters masked."""
        text = as_text(label)
        if text == SUPPRESSED:
            return (text,)
        kept = len(text.rstrip("*"))
        if len(text) != self.length:
            raise InvalidArgument(f"label={label!r} must have {self.length} characters, or be {SUPPRESSED!r}.")
        return (text, *(text[:stay] + "*" * (self.length - stay) for stay in range(kept - 1, 0, -1)), SUPPRESSED)


class Intervals:
    """Numbers generalised to half-open intervals, coarser at each level, and at the top to ``*``.

    Parameters
    ----------
    levels
        For each level the edges of its intervals, increasing. The edges of a coarser level are among those of the finer
        one, so that the intervals nest.
    whole
        The values are whole numbers, so ``[3200, 3300)`` is written ``3200-3299``.

    >>> plz = Intervals([[2600, 3200, 3300, 3700, 3900], [2600, 3300, 3900]])
    >>> [plz.generalise(3270, level) for level in range(4)]
    [3270, '3200-3299', '2600-3299', '*']
    >>> Intervals.of_width([10, 50], low=0, high=100).generalise(42, 1)
    '40-49'
    """

    __slots__ = ("_labels", "levels", "whole")

    def __init__(self, levels: Sequence[Sequence[Any]], *, whole: bool = True) -> None:
        self.levels = tuple(_edges(f"levels[{index}]", edges, whole) for index, edges in enumerate(levels))
        self.whole = whole
        if not self.levels:
            raise InvalidArgument("levels=[] is empty; give the edges of at least one level.")
        for index, (finer, coarser) in enumerate(itertools.pairwise(self.levels), start=1):
            stray = sorted(set(coarser) - set(finer))
            if stray or coarser[0] != finer[0] or coarser[-1] != finer[-1]:
                shown = ", ".join(map(_plain, stray)) or "its first and last edge"
                raise InvalidArgument(
                    f"levels[{index}] does not nest: {shown} must be edges of levels[{index - 1}] too, so that no interval "
                    "is split by a coarser level."
                )
        self._labels = {
            self._label(low, high): (level, low)
            for level, edges in reversed(list(enumerate(self.levels, start=1)))
            for low, high in itertools.pairwise(edges)
        }

    @classmethod
    def of_width(cls, widths: Sequence[Any], *, low: Any, high: Any, whole: bool = True) -> Intervals:
        """Return intervals of equal width.

        Parameters
        ----------
        widths : sequence of numbers
            The width of each level; each must divide the next.
        low, high : number
            The first edge, and the number that the last edge must reach.
        whole : bool
            As for :class:`Intervals`.
        """
        steps = [_exact("width", width) for width in widths]
        start, end = _exact("low", low), _exact("high", high)
        if not steps or min(steps) <= 0 or any(after % before for before, after in itertools.pairwise(steps)):
            raise InvalidArgument(f"widths={widths!r} must be positive, and each a multiple of the one before.")
        if not start < end:
            raise InvalidArgument(f"low={low!r} must be below high={high!r}.")
        top = start + -(-(end - start) // steps[-1]) * steps[-1]
        return cls([[start + step * i for i in range(int((top - start) / step) + 1)] for step in steps], whole=whole)

    @property
    def height(self) -> int:
        """The interval levels, and one more for ``*``."""
        return len(self.levels) + 1

    def generalise(self, value: Any, level: int) -> Any:
        """Return the interval of that level in which the value lies."""
        if _level(level, self.height) == 0:
            return value
        if level == self.height:
            return SUPPRESSED
        number = as_number(value)
        edges = self.levels[level - 1]
        if number is None or not edges[0] <= number < edges[-1]:
            raise InvalidArgument(
                f"value={value!r} must be a number in [{_plain(edges[0])}, {_plain(edges[-1])}); widen the edges."
            )
        return self._around(number, level)

    def ancestors(self, label: Any) -> tuple[Any, ...]:
        """Return the label and the coarser intervals around it."""
        if label == SUPPRESSED:
            return (label,)
        level, low = self._labels.get(label) or (0, as_number(label))
        if low is None or not self.levels[0][0] <= low < self.levels[0][-1]:
            raise InvalidArgument(
                f"label={label!r} is neither an interval of this hierarchy nor a number inside it; its finest "
                f"intervals are {shorten(list(self._labels)[-len(self.levels[0]) + 1 :])}."
            )
        return (label, *(self._around(low, above) for above in range(level + 1, self.height)), SUPPRESSED)

    def _around(self, number: Fraction, level: int) -> str:
        edges = self.levels[level - 1]
        index = bisect.bisect_right(edges, number) - 1
        return self._label(edges[index], edges[index + 1])

    def _label(self, low: Fraction, high: Fraction) -> str:
        if self.whole:
            return interval_label(low, high - 1)
        return f"[{_plain(low)}, {_plain(high)})"

    def __repr__(self) -> str:
        return f"Intervals({[list(map(_plain, edges)) for edges in self.levels]}, whole={self.whole})"


class Taxonomy:
    """A tree of labels; its leaves are the values, and a value generalises to its ancestors.

    The height of a node is the longest path down to a leaf, and the distance of two values the height of their lowest
    common ancestor over that of the root (Li, Li and Venkatasubramanian 2007): an ultrametric in [0, 1], also where the
    leaves lie at unequal depth.

    Parameters
    ----------
    tree
        Nested: a mapping from a label to what is below it, a sequence of leaves, or None for a leaf.
    root
        The label of the top.

    >>> disease = Taxonomy({"respiratory": ["flu", "pneumonia"], "digestive": {"stomach": ["ulcer", "cancer"]}})
    >>> disease.ancestors("ulcer"), disease.height
    (('ulcer', 'stomach', 'digestive', '*'), 3)
    >>> disease.distance("ulcer", "cancer"), disease.distance("flu", "cancer")
    (Fraction(1, 3), Fraction(1, 1))
    """

    __slots__ = ("_heights", "_leaves", "_parents", "root")

    def __init__(self, tree: Mapping[Hashable, Any] | Sequence[Hashable], *, root: Hashable = SUPPRESSED) -> None:
        parents: dict[Hashable, Hashable | None] = {root: None}
        _collect(tree, root, parents)
        self._build(parents, root)

    @classmethod
    def from_parents(cls, parents: Mapping[Hashable, Hashable]) -> Taxonomy:
        """Build from a mapping of each label to its parent; the one label that has none is the root.

        >>> Taxonomy.from_parents({"flu": "respiratory", "cold": "respiratory"}).root
        'respiratory'
        """
        roots = sorted({parent for parent in parents.values() if parent not in parents}, key=str)
        if len(roots) != 1:
            found = f"the roots are {roots!r}" if roots else "it goes round in a circle"
            raise InvalidArgument(
                f"parents={shorten(dict(parents))} is not a tree: {found}; exactly one root is needed."
            )
        for label in parents:
            seen: set[Hashable] = set()
            at: Hashable = label
            while at in parents:
                if at in seen:
                    raise InvalidArgument(f"parents: {label!r} is among its own ancestors; a taxonomy has no circles.")
                seen.add(at)
                at = parents[at]
        taxonomy = cls.__new__(cls)
        taxonomy._build({roots[0]: None, **parents}, roots[0])
        return taxonomy

    def _build(self, parents: dict[Hashable, Hashable | None], root: Hashable) -> None:
        self.root = root
        self._parents = parents
        self._heights: dict[Hashable, int] = dict.fromkeys(parents, 0)
        inner = {parent for parent in parents.values() if parent is not None}
        self._leaves = tuple(label for label in parents if label not in inner)
        for leaf in self._leaves:
            for steps, label in enumerate(self._up(leaf)):
                self._heights[label] = max(self._heights[label], steps)

    @property
    def height(self) -> int:
        """The longest path from the root to a leaf."""
        return self._heights[self.root]

    @property
    def leaves(self) -> tuple[Hashable, ...]:
        """The values, in the order in which they were given."""
        return self._leaves

    @property
    def edges(self) -> tuple[tuple[Hashable, Fraction], ...]:
        """Each label below the root with the length of the edge above it.

        Half the difference of heights makes the path between two leaves as long as their distance.
        """
        return tuple(
            (label, Fraction(self._heights[parent] - self._heights[label], 2 * self.height))
            for label, parent in self._parents.items()
            if parent is not None
        )

    def generalise(self, value: Any, level: int) -> Hashable:
        """Return the ancestor ``level`` steps above the value, or the root where there are fewer steps."""
        _level(level, self.height)
        chain = self.ancestors(value)
        return chain[min(level, len(chain) - 1)]

    def ancestors(self, label: Any) -> tuple[Hashable, ...]:
        """Return the label and everything above it, ending with the root."""
        if label == SUPPRESSED and label not in self._parents:
            return (label, self.root)
        if label not in self._parents:
            raise InvalidArgument(
                f"value={label!r} is not in the taxonomy.{did_you_mean(label, self._parents)} Its values are "
                f"{shorten(list(self._leaves))}."
            )
        return tuple(self._up(label))

    def common(self, labels: Iterable[Any]) -> Hashable:
        """Return the lowest label above (or equal to) all of them."""
        chains = [self.ancestors(label) for label in labels]
        shared = set(chains[0]).intersection(*chains[1:])
        return next(label for label in chains[0] if label in shared)

    def distance(self, left: Any, right: Any) -> Fraction:
        """Return the height of the lowest common ancestor over the height of the root."""
        return Fraction(self._heights[self.common((left, right))], self.height)

    def _up(self, label: Hashable) -> Iterable[Hashable]:
        at: Hashable | None = label
        while at is not None:
            yield at
            at = self._parents[at]

    def __repr__(self) -> str:
        return f"Taxonomy({len(self._leaves)} values, height {self.height}, root {self.root!r})"


def generalise(
    frame: pd.DataFrame, hierarchies: Mapping[Hashable, Hierarchy], levels: Mapping[Hashable, int]
) -> pd.DataFrame:
    """Return the table with each named column generalised to its level; other columns, order and index stay the same.

    Parameters
    ----------
    frame : pandas.DataFrame
        The original table.
    hierarchies : mapping
        The hierarchy of each column.
    levels : mapping
        The level of each column to generalise.

    Examples
    --------
    >>> raw = pd.DataFrame({"plz": [3270, 3294], "system": ["iOS", "Android"]})
    >>> generalise(raw, {"plz": Prefixes(4)}, {"plz": 2})["plz"].tolist()
    ['32**', '32**']
    """
    from dpaudit.anonymity.tables.table import encode, locate

    for argument, given in (("hierarchies", hierarchies), ("levels", levels)):
        if not isinstance(given, Mapping):
            raise InvalidArgument(f"{argument}={shorten(given)} must be a mapping from column names.")
    if any(isinstance(level, Hierarchy) for level in levels.values()):
        raise InvalidArgument(
            f"levels={shorten(dict(levels))} holds hierarchies. The arguments are swapped: call "
            "generalise(frame, hierarchies, levels), with levels such as {'plz': 2}."
        )
    result = frame.copy()
    for name, level in levels.items():
        if name not in hierarchies:
            raise InvalidArgument(f"levels names the column {name!r}, for which hierarchies has none.")
        if not isinstance(hierarchies[name], Hierarchy):
            raise InvalidArgument(
                f"hierarchies[{name!r}]={shorten(hierarchies[name])} must be a hierarchy, such as Prefixes(4), Intervals or "
                "Taxonomy."
            )
        position = locate(frame, name)
        column = encode(frame.iloc[:, position], name=name, missing="suppressed")
        hierarchy = hierarchies[name]
        labels = [
            value if isinstance(value, str) and value == SUPPRESSED else hierarchy.generalise(value, level)
            for value in column.values
        ]
        result.isetitem(position, np.array([*labels, None], dtype=object)[column.codes])
    return result


def interval_label(low: Any, high: Any) -> str:
    """Write a closed interval: ``3200-3299`` if that is unambiguous, otherwise ``[-5, 12.5]``.

    >>> interval_label(3200, 3299), interval_label(-5, 12.5), interval_label(7, 7)
    ('3200-3299', '[-5, 12.5]', '7')
    """
    first, last = (_plain(end) if isinstance(end, Fraction) else as_text(end) for end in (low, high))
    if first == last:
        return first
    return f"{first}-{last}" if first.isdecimal() and last.isdecimal() else f"[{first}, {last}]"


def _collect(tree: Any, above: Hashable, parents: dict[Hashable, Hashable | None]) -> None:
    if tree is None:
        return
    if isinstance(tree, Mapping):
        below = list(tree.items())
    elif isinstance(tree, Iterable) and not isinstance(tree, str | bytes):
        below = [(label, None) for label in tree]
    else:
        raise InvalidArgument(f"tree: {tree!r} below {above!r} must be a mapping, a list of values, or None (null).")
    if not below and len(parents) == 1:
        raise InvalidArgument("tree is empty; a taxonomy needs at least one value below its root.")
    for label, subtree in below:
        if not isinstance(label, Hashable):
            raise InvalidArgument(f"tree: {label!r} below {above!r} cannot be a label; use text or a number.")
        if label in parents:
            raise InvalidArgument(f"tree: {label!r} stands in two places; in a tree every label has one parent.")
        parents[label] = above
        _collect(subtree, label, parents)


def _level(level: int, height: int) -> int:
    check_count(minimum=0, level=level)
    if level > height:
        raise InvalidArgument(f"level={level!r} is above the top of the hierarchy, which has height {height}.")
    return level


def _edges(name: str, edges: Sequence[Any], whole: bool) -> tuple[Fraction, ...]:
    exact = tuple(_exact(name, edge) for edge in edges)
    if len(exact) < 2 or any(low >= high for low, high in itertools.pairwise(exact)):
        raise InvalidArgument(f"{name}={shorten(list(edges))} must be at least two increasing numbers.")
    if whole and any(edge.denominator != 1 for edge in exact):
        raise InvalidArgument(f"{name}={shorten(list(edges))} must be whole numbers; pass whole=False for real values.")
    return exact


def _exact(name: str, value: Any) -> Fraction:
    number = as_number(value)
    if number is None or isinstance(value, str):
        raise InvalidArgument(f"{name}={value!r} must be a finite number.")
    return number


def _plain(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else as_text(float(number))
