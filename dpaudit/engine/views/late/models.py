"""Models of scikit-learn as scores: boosted trees, and a small neural network on all coordinates.

They are fitted and evaluated by one thread. The work is small, and threads wait for each other at thousands of places in one
fit: two of them take four times the processor time of one, and on a machine that is busy with other work minutes.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpaudit.engine.encoding.batch import Encoded
from dpaudit.engine.views.condition import Floats, Names, Plain
from dpaudit.engine.views.scores import MOST_COORDINATES


@dataclass(frozen=True, slots=True)
class Boosted:
    """Gradient-boosted trees (scikit-learn), for leaks that only show in interactions."""

    model: Any

    def __call__(self, batch: Encoded) -> Floats:
        """Log-odds of D."""
        width = self.model.n_features_in_
        values = batch.values[:, :width]
        if values.shape[1] < width:
            values = np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=np.nan)
        with _one_thread():
            return np.asarray(self.model.decision_function(_without_infinities(values)), dtype=np.float64)

    def describe(self) -> str:
        """Name the model."""
        return "score of gradient-boosted trees"

    def plain(self) -> Plain | None:
        """A model has no plain form."""
        return None

    def python(self, names: Names) -> str:
        """A model has no short form."""
        del names
        return ""


def fit_boosted(of_d: Encoded, of_neighbour: Encoded, *, rows: int = 20_000) -> Boosted:
    """Fit at most ``rows`` outputs of each side, with a fixed seed."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    a, b = of_d.values[:rows], of_neighbour.values[:rows]
    model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, random_state=0, early_stopping=False)
    with _one_thread():
        model.fit(_without_infinities(np.concatenate([a, b])), np.concatenate([np.ones(len(a)), np.zeros(len(b))]))
    return Boosted(model)


@dataclass(frozen=True, slots=True)
class Network:
    """A small neural network (scikit-learn) on coordinates that are centred, scaled and clipped."""

    model: Any
    centre: Floats
    spread: Floats

    def __call__(self, batch: Encoded) -> Floats:
        """Log-odds of D, computed in pieces of fixed size: a score must not depend on the batch."""
        width = self.centre.size
        values = batch.values[:, :width]
        if values.shape[1] < width:
            values = np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=np.nan)
        hidden = np.clip(np.nan_to_num((values - self.centre) / self.spread), -5.0, 5.0)
        layers = list(zip(self.model.coefs_, self.model.intercepts_, strict=True))
        for number, (weights, offsets) in enumerate(layers):
            # Not a matrix product, which may round otherwise in a batch of another size.
            total = np.tile(offsets, (len(batch), 1))
            for place in range(weights.shape[0]):
                total += hidden[:, place : place + 1] * weights[place]
            hidden = total if number == len(layers) - 1 else np.maximum(total, 0.0)
        return np.asarray(hidden[:, 0], dtype=np.float64)

    def describe(self) -> str:
        """Name the model."""
        return "score of a small neural network"

    def plain(self) -> Plain | None:
        """A model has no plain form."""
        return None

    def python(self, names: Names) -> str:
        """A model has no short form."""
        del names
        return ""


def fit_network(of_d: Encoded, of_neighbour: Encoded, *, rows: int = 8_000) -> Network:
    """Fit at most ``rows`` outputs of each side, with a fixed seed."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    a, b = of_d.values[:rows, :MOST_COORDINATES], of_neighbour.values[:rows, :MOST_COORDINATES]
    values = _without_infinities(np.concatenate([a, b]))
    known = np.isfinite(values).any(axis=0)
    centre = np.nanmedian(np.where(known, values, 0.0), axis=0)
    spread = np.nanmean(np.abs(np.where(known, values, 0.0) - centre), axis=0)
    spread = np.where(spread > 1e-150, spread, 1.0)
    scaled = np.clip(np.nan_to_num((values - centre) / spread), -5.0, 5.0)
    model = MLPClassifier(
        (32, 16), learning_rate_init=0.01, batch_size=min(256, len(scaled)), max_iter=30, random_state=0
    )
    with warnings.catch_warnings(), _one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scaled, np.concatenate([np.ones(len(a)), np.zeros(len(b))]))
    return Network(model, centre, spread)


def _one_thread() -> AbstractContextManager[Any]:
    """Let the libraries that scikit-learn has loaded use one thread."""
    return _controller().limit(limits=1)  # type: ignore[no-any-return]


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # scikit-learn requires it

    return ThreadpoolController()


def _without_infinities(values: Floats) -> Floats:
    """Infinities as the largest floats, which scikit-learn accepts."""
    return np.clip(values, -np.finfo(np.float32).max, np.finfo(np.float32).max)
