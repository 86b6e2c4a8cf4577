"""Estimators in the style of scikit-learn: what ``fit`` leaves behind is the output.

The data are rows of numbers, or a pair of features and targets. A new estimator is made for every release, because a
fitted one remembers. Which fitted attributes are private an estimator does not say: diffprivlib's ``KMeans`` keeps the
cluster of every row beside its noisy centres. Only coefficients are released without being named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import Plain

Attributes: TypeAlias = Sequence[str] | Callable[[Any], Any] | None
COEFFICIENTS = ("coef_", "intercept_")


@dataclass(frozen=True, slots=True)
class Fit:
    """Make, fit, and hand out what was learned."""

    make: Callable[[], Any]
    attributes: Attributes = None
    target: bool | None = None

    def __call__(self, data: Any) -> Any:
        """Fit a new estimator and return its attributes."""
        estimator = self.make()
        if not callable(getattr(estimator, "fit", None)):
            raise MechanismError(f"make() returned {shorten(estimator)}, which has no method fit.")
        features, targets = split(data, self.target)
        if targets is None:
            estimator.fit(features)
        else:
            estimator.fit(features, targets)
        if callable(self.attributes):
            return self.attributes(estimator)
        return released(estimator, self.attributes)


def mechanism(make: Callable[[], Any], *, attributes: Attributes = None, target: bool | None = None) -> Plain:
    """Return an estimator as a mechanism.

    Parameters
    ----------
    make
        Makes a new, unfitted estimator, for instance ``lambda: LogisticRegression(epsilon=1.0)``.
    attributes
        What is released: names of fitted attributes with any content (numbers, lists, trees), as a dict; or a function
        of the fitted estimator. By default ``coef_`` and ``intercept_``; an estimator without ``coef_`` needs names.
    target
        True: the last column of the rows is the target. By default rows are features alone, and data given as a pair
        (features, targets) are both.

    Examples
    --------
    >>> class Mean:
    ...     def fit(self, X):
    ...         self.mean_ = X.mean(axis=0)
    >>> import numpy as np
    >>> mechanism(Mean, attributes="mean_").sample([[1.0, 2.0], [3.0, 4.0]], 1, np.random.default_rng(0))
    [{'mean_': array([2., 3.])}]
    """
    if not callable(make):
        raise InvalidArgument(
            f"make={shorten(make)} must be a function that makes a new estimator: lambda: {type(make).__name__}(...). "
            "A fitted estimator would carry state from one release to the next."
        )
    if isinstance(attributes, str):
        attributes = (attributes,)
    return Plain(Fit(make, attributes, target))


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


def released(estimator: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The named attributes by name, or coefficients and intercept.

    A missing attribute is an error of the caller. Were it an output, it would be the same one on all data, and hide what
    was to be audited; hence no error that counts as an output.
    """
    if names is None:
        names = [name for name in COEFFICIENTS if hasattr(estimator, name)] if hasattr(estimator, "coef_") else ()
        problem = "has no coef_, and does not say which of its fitted attributes are released"
    else:
        problem = f"has no fitted attribute {', '.join(name for name in names if not hasattr(estimator, name))}"
    if not names or not all(hasattr(estimator, name) for name in names):
        fitted = [
            name for name in getattr(estimator, "__dict__", {}) if name.endswith("_") and not name.startswith("_")
        ]
        raise MechanismError(
            f"{type(estimator).__name__} {problem}; pass attributes=[...] with those that leave it, or a function of the "
            f"fitted estimator. Fitted are: {', '.join(sorted(fitted)) or 'none'}."
        )
    return {name: getattr(estimator, name) for name in names}
