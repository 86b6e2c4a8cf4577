"""Canaries: examples that leave a visible trace in a model that was trained on them.

An example is a row of numbers, its features and then its target. The choice of the canaries decides how much an audit
finds, not whether it is valid: they are chosen before training, independently of the coins that decide which of them
are in the data.

- :func:`blank`: no features at all (Nasr et al. 2023). Few examples are like it, so its gradient stands out
- :func:`mislabelled`: a real example with another target (Jagielski, Ullman and Oprea 2020)
- :func:`gradient`: made for the model, with gradients as long as clipping allows and at right angles to each other and to the
  mean gradient of the data: the worst case that white-box analyses assume (Nasr et al. 2021)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.validation import check_count, check_generator, check_positive, finite_array
from dpaudit.errors import InvalidArgument

Floats: TypeAlias = NDArray[np.float64]

MOST_LABELS = 20
"""Largest number of different targets that are taken for labels; more of them are taken for numbers."""
FEATURE_SCALES = (1.0, 10.0, 100.0)
"""Candidates for gradient canaries have features of these lengths, in multiples of the longest example."""


def blank(examples: ArrayLike, count: int = 1, *, rng: np.random.Generator) -> Floats:
    """Return ``count`` rows without features (all zero), with targets drawn from those of the examples.

    Blank rows with the same target are equal, so they say little in one run: use them over many runs.

    Parameters
    ----------
    examples : array_like
        Rows of features, with the target last.
    count : int
        Number of canaries.
    rng : numpy.random.Generator
        Draws the targets.

    Examples
    --------
    >>> blank([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]], rng=np.random.default_rng(0))
    array([[0., 0., 0.]])
    """
    rows = _rows(examples)
    check_count(count=count)
    check_generator(rng=rng)
    made = np.zeros((count, rows.shape[1]))
    made[:, -1] = rng.choice(_ends(rows), size=count)
    return made


def mislabelled(examples: ArrayLike, count: int = 1, *, rng: np.random.Generator) -> Floats:
    """Return ``count`` of the examples (all different while there are enough) with a wrong target.

    Labels become another label, drawn at random; numbers move to that end of their range which is farther away.

    Parameters
    ----------
    examples, count, rng
        As for :func:`blank`.

    Examples
    --------
    >>> mislabelled([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]], 2, rng=np.random.default_rng(0))[:, :2]
    array([[1., 2.],
           [1., 2.]])
    """
    rows = _rows(examples)
    check_count(count=count)
    check_generator(rng=rng)
    made = rows[rng.choice(len(rows), size=count, replace=count > len(rows))].copy()
    labels = np.unique(rows[:, -1])
    if len(labels) == 1:
        raise InvalidArgument(f"examples have one target only, {labels[0]!r}; there is no wrong one to give a canary.")
    if len(labels) <= MOST_LABELS:
        place = np.searchsorted(labels, made[:, -1])
        made[:, -1] = labels[(place + rng.integers(1, len(labels), size=count)) % len(labels)]
    else:
        low, high = labels[0], labels[-1]
        made[:, -1] = np.where(made[:, -1] < (low + high) / 2.0, high, low)
    return made


def gradient(
    examples: ArrayLike,
    gradients: Callable[[Floats], Floats],
    count: int = 1,
    *,
    clipping_norm: float,
    rng: np.random.Generator,
    candidates: ArrayLike | int = 500,
) -> Floats:
    """Return ``count`` rows whose clipped gradients are long and nearly orthogonal to each other and to those of the data.

    Rows are picked one after the other from the candidates, each time the one whose clipped gradient has the longest part
    outside the span of the mean gradient of the examples and of those already picked (a pivoted QR decomposition).

    Parameters
    ----------
    examples
        Rows of the training data; they decide scale and targets of the candidates.
    gradients
        ``gradients(rows)`` returns one gradient a row, at parameters that are public (the initial ones, say).
    count
        How many; at most the candidates, and more than the model has parameters cannot be orthogonal.
    clipping_norm
        Gradients are scaled to norm at most this.
    candidates
        Rows to pick from, or how many to make: features along one axis, or in random directions, several lengths, and the
        smallest or largest target.

    Examples
    --------
    >>> def of_linear_regression(rows):                   # at zero parameters
    ...     return -rows[:, -1:] * np.hstack([rows[:, :-1], np.ones((len(rows), 1))])
    >>> data = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, -1.0]])
    >>> found = gradient(data, of_linear_regression, 1, clipping_norm=1.0, rng=np.random.default_rng(0))
    >>> bool(np.linalg.norm(of_linear_regression(found)) >= 1.0)
    True
    """
    from scipy.linalg import qr

    rows = _rows(examples)
    check_count(count=count)
    check_generator(rng=rng)
    check_positive(clipping_norm=clipping_norm)
    pool = _candidates(rows, candidates, rng) if isinstance(candidates, int) else _rows(candidates)
    if count > len(pool):
        raise InvalidArgument(f"count={count!r} must not exceed the {len(pool)} candidates; give more candidates.")
    clipped = _clipped(gradients, pool, clipping_norm)
    mean = _clipped(gradients, rows, clipping_norm).mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length > 0.0:
        clipped = clipped - np.outer(clipped @ mean, mean) / length**2
    order = qr(clipped.T, mode="r", pivoting=True)[1]
    return np.asarray(pool[order[:count]])


def _candidates(rows: Floats, number: int, rng: np.random.Generator) -> Floats:
    check_count(candidates=number)
    width = rows.shape[1] - 1
    directions = np.vstack([np.eye(width), -np.eye(width), rng.standard_normal((number, width))])[:number]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    longest = max(float(np.linalg.norm(rows[:, :-1], axis=1).max()), 1.0)
    lengths = longest * rng.choice(FEATURE_SCALES, size=(len(directions), 1))
    return np.hstack([lengths * directions, rng.choice(_ends(rows), size=(len(directions), 1))])


def _clipped(gradients: Callable[[Floats], Floats], rows: Floats, clipping_norm: float) -> Floats:
    found = finite_array("gradients(rows)", gradients(rows), ndim=2)
    if len(found) != len(rows):
        raise InvalidArgument(
            f"gradients(rows) returned {len(found)} gradients for {len(rows)} rows; one each is needed."
        )
    norms = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found * (clipping_norm / np.maximum(norms, clipping_norm)))


def _ends(rows: Floats) -> Floats:
    """The smallest and the largest target."""
    return np.unique([rows[:, -1].min(), rows[:, -1].max()])


def _rows(examples: ArrayLike) -> Floats:
    rows = finite_array("examples", examples, ndim=2, empty=False)
    if rows.shape[1] < 2:
        raise InvalidArgument(f"examples have {rows.shape[1]} column; features and a target are needed.")
    return rows
