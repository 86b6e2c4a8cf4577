"""Views of features: single features of collections, text and bytes, and a learned score of many of them together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dpaudit.engine.encoding.batch import Encoded, digest, record_keys
from dpaudit.engine.encoding.feature_table import FeatureTable
from dpaudit.engine.encoding.features import default, is_test
from dpaudit.engine.views.condition import Floats, Names, Plain, hexadecimal
from dpaudit.engine.views.scores import NaiveBayes, fit_naive_bayes, separation

Sides: TypeAlias = tuple[Encoded, Encoded]

HARD_TO_READ = re.compile(r"ord\(|byte \d|number \d+ of .* packed as .[^d]$")
COUNT_OF_A_NUMBER = re.compile(r"count of -?\d")
ROW = np.uint64(digest("a row of features"))  # structure of the rows that a score of features is fitted on


@dataclass(frozen=True, slots=True)
class FeatureChoice:
    """Limits of the choice of features."""

    most: int = 128
    """Features that a score is fitted on: one half for their frequency, one half for the difference between the sides."""
    fewest_outputs: int = 5
    """Outputs of both sides together that must have a feature."""
    alone: int = 3
    """Features that have a view of their own."""
    hard_to_read: float = 0.7
    """Features that are hard to read (``Feature.hard_to_read``) count with this factor in the choice of features."""
    rare: int = 2
    """Structures that occur at most so often in the first round are rare."""
    rare_share: float = 0.25
    """With a larger share of outputs of rare structures than this, structures say little, and features are computed."""
    outputs: int = 32
    """With fewer distinct outputs than this in the first round, a table of outputs shows all that there is."""


FEATURE_CHOICE = FeatureChoice()


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of an output, by its name."""

    name: str

    def __call__(self, batch: Encoded) -> Floats:
        """Return the feature of every output."""
        return np.ascontiguousarray(_columns(batch, (self.name,))[:, 0])

    @property
    def indicator(self) -> bool:
        """True if the feature is 1 where something is so, and otherwise 0."""
        return is_test(self.name)

    @property
    def hard_to_read(self) -> bool:
        """True for a character or byte by its place, and for bytes that are read as integers or short floats."""
        return HARD_TO_READ.match(self.name) is not None

    @property
    def may_be_absent(self) -> bool:
        """True if an output may lack the number, which is then NaN."""
        return default(self.name) != default(self.name)

    def describe(self) -> str:
        """Return its name."""
        return self.name

    def plain(self) -> Plain | None:
        """Return its name."""
        return {"feature": self.name}

    def python(self, names: Names) -> str:
        """Return a call of ``dpaudit.replay.feature``."""
        del names
        return f"feature(output, {self.name!r})"


@dataclass(frozen=True)
class FeatureScore:
    """A score of several features, which are the coordinates of a naive Bayes score."""

    features: tuple[str, ...]
    score: NaiveBayes

    def __call__(self, batch: Encoded) -> Floats:
        """Score every output."""
        return self.score(feature_rows(batch, self.features))

    def describe(self) -> str:
        """Say what is summed, and name the features that differ most between the sides."""
        shown = ", ".join(self._leading)
        return f"sum of log-likelihood ratios of {len(self.features)} features of the output (most: {shown})"

    @cached_property
    def _leading(self) -> list[str]:
        spread = [float(np.ptp(lookup.heights)) for lookup in self.score.columns]
        return [self.features[self.score.index[place]] for place in np.argsort(spread)[:-3:-1]]

    def plain(self) -> Plain | None:
        """Tables are too large for a plain form."""
        return None

    def python(self, names: Names) -> str:
        """Define a function that looks up the same heights."""
        names.define(f"FEATURES = {list(self.features)!r}\n")
        names.define(self.score.source("[feature(output, name) for name in FEATURES]", repr(hexadecimal(int(ROW)))))
        return "score(output)"


def feature_rows(batch: Encoded, features: Sequence[str]) -> Encoded:
    """Return features as outputs that are rows of numbers."""
    return Encoded(np.broadcast_to(ROW, len(batch)), _columns(batch, features), {int(ROW): ""})


def _columns(batch: Encoded, features: Sequence[str]) -> Floats:
    defaults = [default(name) for name in features]
    if batch.features is None:
        return np.asfortranarray(np.tile(defaults, (len(batch), 1)))
    return batch.features.columns(features, defaults)


def are_needed(sides: Sides) -> bool:
    """Return whether features of these outputs, those of the first round, may show more than structures and numbers.

    They may if structures hardly repeat, or if a number is in some sets and not in others, because a structure shows all
    words of a set, but not its numbers.
    """
    tables = [batch.features for batch in sides if batch.features is not None]
    if not tables or np.unique(np.concatenate([record_keys(batch) for batch in sides])).size <= FEATURE_CHOICE.outputs:
        return False
    _, counts = np.unique(np.concatenate([batch.codes for batch in sides]), return_counts=True)
    if counts[counts <= FEATURE_CHOICE.rare].sum() > FEATURE_CHOICE.rare_share * counts.sum():
        return True
    return any(
        COUNT_OF_A_NUMBER.match(name) and count < len(table)
        for table in tables
        for name, count in table.frequency.items()
    )


def fit_feature_scores(sides: Sides) -> tuple[FeatureScore | None, list[Feature]]:
    """Fit a score on the features of these outputs, and choose features to look at alone."""
    names = _chosen(sides)
    if not names:
        return None, []
    score, counts = fit_naive_bayes(*(feature_rows(batch, names) for batch in sides))
    # Several features may show the same leak; a readable one is preferred.
    readable = np.array([FEATURE_CHOICE.hard_to_read if Feature(name).hard_to_read else 1.0 for name in names])
    best = np.argsort(-separation(score, counts) * readable, kind="stable")[: FEATURE_CHOICE.alone]
    return FeatureScore(names, score), [Feature(names[place]) for place in best]


def _chosen(sides: Sides) -> tuple[str, ...]:
    """Return the most frequent features, and those whose frequency differs most between the sides."""
    frequency = [dict(_table(batch).frequency) for batch in sides]
    counts = {name: tuple(side.get(name, 0) for side in frequency) for side in frequency for name in side}
    counts = {name: both for name, both in counts.items() if sum(both) >= FEATURE_CHOICE.fewest_outputs}
    often = sorted(counts, key=lambda name: (-sum(counts[name]), name))[: FEATURE_CHOICE.most // 2]
    differing = sorted(
        counts, key=lambda name: (-abs(counts[name][0] - counts[name][1]) / sum(counts[name]) ** 0.5, name)
    )
    more = [name for name in differing if name not in set(often)]
    return tuple([*often, *more][: FEATURE_CHOICE.most])


def _table(batch: Encoded) -> FeatureTable:
    if batch.features is None:
        return FeatureTable((), np.zeros(len(batch) + 1, np.intp), np.empty(0, np.intp), np.empty(0))
    return batch.features
