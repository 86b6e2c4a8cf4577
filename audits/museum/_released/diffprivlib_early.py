"""Mechanisms of diffprivlib 0.2.1; the models of that time need a scikit-learn that no longer installs."""

from __future__ import annotations

import numpy as np
from module_alone import module_alone

mechanisms = module_alone("diffprivlib.mechanisms", "diffprivlib")
laplace = mechanisms.Laplace().set_epsilon(1.0).set_sensitivity(1.0).randomise
perturb = mechanisms.Wishart().set_epsilon(1.0).set_sensitivity(1.0)  # the largest norm of a row


def wishart(rows):
    """Release the second moment of a column."""
    table = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    return perturb.randomise(table.T @ table)
