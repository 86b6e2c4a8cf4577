"""Exact output laws and the divergences between them: no sampling, no error probability.

Laws of one output: ``Discrete`` (any outcomes), ``DiscreteLaplace`` (a grid), the densities ``Laplace``, ``Gaussian``,
``Exponential``, ``LaplaceGaussian``, ``PiecewiseConstant``, ``PiecewiseExponential`` and ``Density`` (any other). From
them ``Mixture``, ``WithAtoms``, ``Truncated``, ``Clipped``, ``Rounded`` and ``Product`` make others. Distances between
two laws: ``epsilon``, ``delta``, ``profile``, ``renyi``, ``total_variation``, ``log_ratio_range``.

>>> from dpaudit import exact
>>> exact.epsilon(exact.Laplace(0.0, 1.0), exact.Laplace(1.0, 1.0))
1.0
"""

from dpaudit._util.lazy import imported_on_first_use

# The laws are imported with the package, not on first use: a pytest inside pytest drops the modules that were imported
# inside it, and a second import would make a second class of each law.
from dpaudit.exact.laws import continuous, density, discrete, lattice, mixture, piecewise, product, pushforward  # noqa: F401

__getattr__, __dir__ = imported_on_first_use(__name__)
