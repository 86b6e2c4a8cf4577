"""diffprivlib's LinearRegression on one feature without an intercept."""

from __future__ import annotations

import functools

import diffprivlib
import numpy as np


def fitted(lower, rows):
    """Release the coefficient, with the feature bounded by (lower, 1)."""
    table = np.asarray(rows, dtype=np.float64).reshape(-1, 2)
    model = diffprivlib.models.LinearRegression(
        epsilon=1.0,
        bounds_X=(lower, 1.0),
        bounds_y=(0.0, 1.0),
        fit_intercept=False,
        accountant=diffprivlib.BudgetAccountant(),
    )
    return model.fit(table[:, :1], table[:, 1]).coef_


one_sided = functools.partial(fitted, 0.0)
symmetric = functools.partial(fitted, -1.0)
