"""Exact output laws and the divergences between them: no sampling, no error probability.

Laws of one output: ``Discrete`` (any outcomes), ``DiscreteLaplace`` (a grid), the densities ``Laplace``, ``Gaussian``,
``Exponential``, ``LaplaceGaussian``, ``PiecewiseConstant``, ``PiecewiseExponential`` and ``Density`` (any other). From
them ``Mixture``, ``WithAtoms``, ``Truncated``, ``Clipped``, ``Rounded`` and ``Product`` make others. Distances between
two laws: ``epsilon``, ``delta``, ``profile``, ``renyi``, ``total_variation``.

>>> from dpaudit import exact
>>> exact.epsilon(exact.Laplace(0.0, 1.0), exact.Laplace(1.0, 1.0))
1.0
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from dpaudit.exact.continuous import Exponential, Gaussian, Laplace, LaplaceGaussian
from dpaudit.exact.density import Density
from dpaudit.exact.discrete import Discrete
from dpaudit.exact.divergence import delta, epsilon, profile, renyi, total_variation
from dpaudit.exact.form import Continuous, Form, Lattice, Tail
from dpaudit.exact.lattice import DiscreteLaplace
from dpaudit.exact.law import HasLaw, Law
from dpaudit.exact.mixture import Mixture, WithAtoms
from dpaudit.exact.piecewise import PiecewiseConstant, PiecewiseExponential
from dpaudit.exact.product import Product
from dpaudit.exact.pushforward import Clipped, Rounded, Truncated

__all__ = [
    "Clipped",
    "Continuous",
    "Density",
    "Discrete",
    "DiscreteLaplace",
    "Exponential",
    "Form",
    "Gaussian",
    "HasLaw",
    "Laplace",
    "LaplaceGaussian",
    "Lattice",
    "Law",
    "Mixture",
    "PiecewiseConstant",
    "PiecewiseExponential",
    "Product",
    "Rounded",
    "Tail",
    "Truncated",
    "WithAtoms",
    "delta",
    "epsilon",
    "profile",
    "renyi",
    "total_variation",
]

# The laws of particular mechanisms are heavier, and loaded when one of their names is first asked for (PEP 562).
_ON_DEMAND = ("above_threshold", "histogram", "inverse_sensitivity", "verify")


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name not in _ON_DEMAND:
        for home in _ON_DEMAND:
            if importlib.util.find_spec(f"{__name__}.{home}") is None:
                continue
            found = vars(importlib.import_module(f"{__name__}.{home}")).get(name)
            if getattr(found, "__module__", None) == f"{__name__}.{home}":
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
