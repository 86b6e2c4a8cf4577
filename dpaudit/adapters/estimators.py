"""Estimators in the style of scikit-learn: what ``fit`` leaves behind is the output.

The data are rows of numbers, or a pair of features and targets. A new estimator is made for every release, because a
fitted one remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Plain
from dpaudit.validation import shorten

Attributes: TypeAlias = Sequence[str] | Callable[[Any], Any] | None
COEFFICIENTS = ("coef_", "intercept_")


@dataclass(frozen=True, slots=True)
class Fit:
    """Make, fit, and hand out what was learned."""

    make: Callable[[], Any]
    attributes: Sequence[str] | Callable[[Any], Any]
    target: bool | None = None

    def __call__(self, data: Any) -> Any:
        """Fit a new estimator and return its attributes."""
        estimator = self.make()
        if not callable(getattr(estimator, "fit", None)):
            raise InvalidArgument(f"make() returned {shorten(estimator)}, which has no method fit.")
        features, targets = split(data, self.target)
        if targets is None:
            estimator.fit(features)
        else:
            estimator.fit(features, targets)
        if callable(self.attributes):
            return self.attributes(estimator)
        return numbers_of(estimator, self.attributes)


def mechanism(make: Callable[[], Any], *, attributes: Attributes = None, target: bool | None = None) -> Plain:
    """Return an estimator as a mechanism.

    Parameters
    ----------
    make
        Makes a new, unfitted estimator, for instance ``lambda: LogisticRegression(epsilon=1.0)``.
    attributes
        What is released: names of fitted attributes, joined to one vector; or a function of the fitted estimator; by
        default ``coef_`` and ``intercept_``, or, where there are none, every numeric attribute that ends in an underscore.
    target
        True: the last column of the rows is the target. By default rows are features alone, and data given as a pair
        (features, targets) are both.

    Examples
    --------
    >>> class Mean:
    ...     def fit(self, X):
    ...         self.mean_ = X.mean(axis=0)
    >>> import numpy as np
    >>> mechanism(Mean).sample([[1.0, 2.0], [3.0, 4.0]], 1, np.random.default_rng(0))
    [array([2., 3.])]
    """
    if not callable(make):
        raise InvalidArgument(
            f"make={shorten(make)} must be a function that makes a new estimator: lambda: {type(make).__name__}(...). "
            "A fitted estimator would carry state from one release to the next."
        )
    if isinstance(attributes, str):
        attributes = (attributes,)
    return Plain(Fit(make, fitted if attributes is None else attributes, target))


def split(data: Any, target: bool | None = None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Features and targets of a data set: a pair of arrays, or rows whose last column is the target if asked for."""
    paired = isinstance(data, tuple) and len(data) == 2 and np.ndim(data[0]) == 2
    if paired and target is not False:
        return np.array(data[0]), np.array(data[1])
    rows = np.array(data)  # a copy: fitting in place must not change the data of the next release
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if not target:
        return rows, None
    if rows.shape[1] < 2:
        raise InvalidArgument(
            f"data={shorten(data)} must have two columns or more where target=True: the last one is it."
        )
    return rows[:, :-1], rows[:, -1]


def fitted(estimator: Any) -> NDArray[np.float64]:
    """Coefficients and intercept, or all numeric attributes that end in an underscore, as one vector."""
    names = [name for name in COEFFICIENTS if hasattr(estimator, name)]
    if not names:
        public = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
        names = [name for name in sorted(public) if np.asarray(getattr(estimator, name)).dtype.kind in "biuf"]
    if not names:
        raise InvalidArgument(
            f"{type(estimator).__name__} has no numeric attribute that ends in an underscore; pass attributes=, names or a "
            "function of the fitted estimator."
        )
    return numbers_of(estimator, names)


def numbers_of(estimator: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """The named attributes, flattened and joined."""
    return np.concatenate([np.asarray(getattr(estimator, name), dtype=np.float64).reshape(-1) for name in names])
