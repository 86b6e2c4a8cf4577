"""Exact output laws and the divergences between them: no sampling, no error probability.

Laws of one output: ``Discrete`` (any outcomes), ``DiscreteLaplace`` (a grid), the densities ``Laplace``, ``Gaussian``,
``Exponential``, ``LaplaceGaussian``, ``PiecewiseConstant``, ``PiecewiseExponential`` and ``Density`` (any other). From
them ``Mixture``, ``WithAtoms``, ``Truncated``, ``Clipped``, ``Rounded`` and ``Product`` make others. Distances between
two laws: ``epsilon``, ``delta``, ``profile``, ``renyi``, ``total_variation``, ``log_ratio_range``.

>>> from dpaudit import exact
>>> exact.epsilon(exact.Laplace(0.0, 1.0), exact.Laplace(1.0, 1.0))
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpaudit.exact.divergences.divergence import delta, epsilon, log_ratio_range, profile, renyi, total_variation
from dpaudit.exact.form import Continuous, Form, Lattice, Tail
from dpaudit.exact.law import HasLaw, Law
from dpaudit.exact.laws.continuous import Exponential, Gaussian, Laplace, LaplaceGaussian
from dpaudit.exact.laws.density import Density
from dpaudit.exact.laws.discrete import Discrete
from dpaudit.exact.laws.lattice import DiscreteLaplace
from dpaudit.exact.laws.mixture import Mixture, WithAtoms
from dpaudit.exact.laws.piecewise import PiecewiseConstant, PiecewiseExponential
from dpaudit.exact.laws.product import Product
from dpaudit.exact.laws.pushforward import Clipped, Rounded, Truncated

if TYPE_CHECKING:
    from dpaudit.exact.mechanism_laws.above_threshold import NONE_ABOVE, above_threshold_law, above_threshold_log_pmf
    from dpaudit.exact.mechanism_laws.histogram import HistogramDesign, QuantileSearch
    from dpaudit.exact.mechanism_laws.histogram_iid import histogram_index_law_iid
    from dpaudit.exact.mechanism_laws.inverse_sensitivity import finite_quantile_law, mean_law, quantile_law
    from dpaudit.exact.verification import Verification, verify

__all__ = [
    "NONE_ABOVE",
    "Clipped",
    "Continuous",
    "Density",
    "Discrete",
    "DiscreteLaplace",
    "Exponential",
    "Form",
    "Gaussian",
    "HasLaw",
    "HistogramDesign",
    "Laplace",
    "LaplaceGaussian",
    "Lattice",
    "Law",
    "Mixture",
    "PiecewiseConstant",
    "PiecewiseExponential",
    "Product",
    "QuantileSearch",
    "Rounded",
    "Tail",
    "Truncated",
    "Verification",
    "WithAtoms",
    "above_threshold_law",
    "above_threshold_log_pmf",
    "delta",
    "epsilon",
    "finite_quantile_law",
    "histogram_index_law_iid",
    "log_ratio_range",
    "mean_law",
    "profile",
    "quantile_law",
    "renyi",
    "total_variation",
    "verify",
]

# The laws of particular mechanisms are heavier, and loaded when first asked for (PEP 562).
_HOME = {
    "mechanism_laws.above_threshold": ("NONE_ABOVE", "above_threshold_law", "above_threshold_log_pmf"),
    "mechanism_laws.histogram": ("HistogramDesign", "QuantileSearch"),
    "mechanism_laws.histogram_iid": ("histogram_index_law_iid",),
    "mechanism_laws.inverse_sensitivity": ("finite_quantile_law", "mean_law", "quantile_law"),
    "verification": ("Verification", "verify"),
}
_WHERE = {name: home for home, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
