"""Features of a batch of outputs, as rows of (feature, value) that are turned into columns when they are needed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.encoding.features import features, has_features

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """The features of each output; ``places`` says which of the ``names`` each value belongs to."""

    names: tuple[str, ...]
    starts: NDArray[np.intp]  # where the features of each output begin, and the end of all
    places: NDArray[np.intp]
    values: Floats

    def __len__(self) -> int:
        return int(self.starts.size) - 1

    def rows(self, index: Any) -> FeatureTable:
        """Return a selection of the outputs."""
        chosen = np.arange(len(self))[index]
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        inside = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], lengths)
        used, places = np.unique(self.places[inside], return_inverse=True)
        names = tuple(self.names[place] for place in used)
        return FeatureTable(names, starts.astype(np.intp), places.astype(np.intp), self.values[inside])

    def columns(self, names: Sequence[str], defaults: Sequence[float]) -> Floats:
        """Return some features as columns, with the given values where an output lacks them."""
        wanted = np.full(len(self.names), -1)
        known = {name: place for place, name in enumerate(self.names)}
        for place, name in enumerate(names):
            if name in known:
                wanted[known[name]] = place
        filled = np.empty((len(self), len(names)), order="F")
        filled[:] = defaults
        column = wanted[self.places] if self.names else self.places
        row = np.repeat(np.arange(len(self)), np.diff(self.starts))
        chosen = column >= 0
        filled[row[chosen], column[chosen]] = self.values[chosen]
        return filled

    def having(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Return for every output whether it has one of these features."""
        wanted = np.array([name in names for name in self.names], np.bool_)
        upto = np.concatenate(([0], np.cumsum(wanted[self.places]))) if self.names else np.zeros(1, np.intp)
        return np.asarray(np.diff(upto[self.starts]) > 0)

    @property
    def frequency(self) -> Mapping[str, int]:
        """The number of outputs that have each feature."""
        return dict(zip(self.names, np.bincount(self.places, minlength=len(self.names)).tolist(), strict=True))

    @property
    def width(self) -> int:
        """The number of features of an output, on average and rounded up."""
        return -(-int(self.places.size) // max(len(self), 1))


def feature_table(outputs: Iterable[Any]) -> FeatureTable | None:
    """Return the features of some outputs; None if these are of kinds that have none."""
    known: dict[str, int] = {}
    lengths: list[int] = []
    places: list[int] = []
    values: list[float] = []
    for output in outputs:
        found = features(output)
        lengths.append(len(found))
        values.extend(found.values())
        places.extend([known.setdefault(name, len(known)) for name in found])
    if not known:
        return None
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)
    return FeatureTable(tuple(known), starts, np.array(places, np.intp), np.array(values, np.float64))


def may_have_features(outputs: Any) -> bool:
    """Return whether some outputs of a block may have features; quick for numbers."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind != "O":
        return outputs.dtype.kind in "US"
    kinds: dict[type, Any] = {}
    for output in outputs:
        kinds.setdefault(type(output), output)
    return any(map(has_features, kinds.values()))


def joined(tables: Sequence[tuple[FeatureTable | None, int]]) -> FeatureTable | None:
    """Join the tables of consecutive batches, given with the number of outputs of each; None is a batch without features."""
    if all(table is None for table, _ in tables):
        return None
    known: dict[str, int] = {}
    places, values, lengths = [], [], []
    for table, size in tables:
        if table is None:
            lengths.append(np.zeros(size, np.intp))
            continue
        renamed = np.array([known.setdefault(name, len(known)) for name in table.names], np.intp)
        places.append(renamed[table.places] if table.names else table.places)
        values.append(table.values)
        lengths.append(np.diff(table.starts))
    starts = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    return FeatureTable(tuple(known), starts.astype(np.intp), np.concatenate(places), np.concatenate(values))


def table_of_blocks(blocks: Iterable[Any]) -> FeatureTable | None:
    """Return the features of the outputs of some blocks together."""
    blocks = list(blocks)
    return feature_table(itertools.chain.from_iterable(blocks)) if any(map(may_have_features, blocks)) else None
