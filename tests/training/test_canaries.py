"""Canaries: rows of the right shape, with the targets and the gradients that they are made for."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.errors import InvalidArgument
from dpaudit.training import blank, gradient, mislabelled
from mechanisms.dp_sgd.models import LogisticModel

ROWS = np.array([[1.0, 2.0, 0.0], [3.0, -1.0, 1.0], [0.5, 0.5, 1.0]])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_blank_rows_have_targets_only():
    made = blank(ROWS, 50, rng=rng())
    assert made.shape == (50, 3)
    assert not made[:, :-1].any()
    assert set(made[:, -1]) == {0.0, 1.0}


def test_mislabelled_rows_are_examples_with_another_label():
    made = mislabelled(ROWS, 3, rng=rng())
    originals = {tuple(row[:-1]): row[-1] for row in ROWS}
    assert sorted(tuple(row[:-1]) for row in made) == sorted(originals)  # each example once
    assert all(row[-1] != originals[tuple(row[:-1])] for row in made)
    assert set(made[:, -1]) <= {0.0, 1.0}


def test_numbers_as_targets_move_to_the_farther_end():
    rows = np.column_stack([np.arange(50.0), np.arange(50.0)])
    made = mislabelled(rows, 50, rng=rng())
    assert (made[:, 1] == np.where(made[:, 0] < 24.5, 49.0, 0.0)).all()


def test_gradient_canaries_are_long_and_orthogonal():
    model = LogisticModel(8)
    data = np.hstack([rng(1).normal(size=(40, 8)), rng(2).integers(0, 2, size=(40, 1))])

    def clipped(rows):
        found = model.gradients(np.zeros((1, 9)), rows[:, :-1], rows[:, -1])[0]
        return found * np.minimum(1.0, 0.5 / np.linalg.norm(found, axis=1, keepdims=True))

    made = gradient(data, clipped, 8, clipping_norm=0.5, rng=rng())
    found = clipped(made) / 0.5
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(8))  # as long as clipping allows
    # The volume that they span is larger than that of any of a thousand random choices.
    pool = rng(4).normal(size=(100, 8))
    pool = np.hstack([10.0 * pool, rng(5).integers(0, 2, size=(100, 1))])
    picked = gradient(data, clipped, 8, clipping_norm=0.5, rng=rng(), candidates=pool)
    volumes = [
        np.linalg.det(clipped(rows) @ clipped(rows).T)
        for rows in (picked, *(pool[rng(seed).choice(100, size=8, replace=False)] for seed in range(1000)))
    ]
    assert volumes[0] > max(volumes[1:])
    # Rows that the auditor wrote itself are picked from as they are.
    assert gradient(data, clipped, 1, clipping_norm=0.5, rng=rng(), candidates=made[3:4]).tolist() == made[3:4].tolist()


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument, match="one target only"):
        mislabelled([[1.0, 0.0], [2.0, 0.0]], rng=rng())
    with pytest.raises(InvalidArgument, match="features and a target"):
        blank([[1.0]], rng=rng())
    with pytest.raises(InvalidArgument, match="must not exceed the 5 candidates"):
        gradient(ROWS, lambda rows: rows, 6, clipping_norm=1.0, rng=rng(), candidates=5)
    with pytest.raises(InvalidArgument, match="returned 1 gradients for"):
        gradient(ROWS, lambda rows: rows[:1], 1, clipping_norm=1.0, rng=rng())
    with pytest.raises(InvalidArgument, match="rng=3"):
        blank(ROWS, rng=3)
