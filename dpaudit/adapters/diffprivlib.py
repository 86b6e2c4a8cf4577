"""diffprivlib's mechanisms, tools and models as mechanisms, with the claim that their epsilon and delta state.

The library does not say which neighbours it means; the relation is the caller's. Its mechanisms perturb one value, whose
sensitivity they are given (``Relation.ANSWERS``). Its tools and models that average or standardise divide by the number
of rows, and ``count_nonzero`` clamps to it, so that number is public (``Relation.SUBSTITUTE``; under addition and removal
they are refuted, or fail). Histograms are calibrated for one row more or less (``Relation.ADD_REMOVE``).

Without ``random_state`` the library draws from the operating system: audits stay valid, but cannot be replayed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpaudit._util.validation import shorten
from dpaudit.adapters import estimators
from dpaudit.adapters._loading import load
from dpaudit.claims import ApproxDP, Claim, PureDP, Relation
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Plain


@dataclass(frozen=True, slots=True)
class Randomised:
    """``randomise`` of one mechanism, on what the query answers."""

    mechanism: Any
    query: Callable[[Any], Any] | None = None

    def __call__(self, data: Any) -> Any:
        """Release once."""
        value = data if self.query is None else self.query(data)
        return self.mechanism.randomise(value)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of ``diffprivlib.tools`` with its arguments; every release has a budget accountant of its own.

    The library's default accountant is one for the whole process and remembers every release.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    accountant: Callable[[], Any] | None = None

    def __call__(self, data: Any) -> Any:
        """Release once."""
        own = {} if self.accountant is None else {"accountant": self.accountant()}
        return self.function(data, **own, **self.arguments)


def mechanism(perturb: Any, *, query: Callable[[Any], Any] | None = None) -> Plain:
    """Return a ``diffprivlib.mechanisms`` object as a mechanism.

    Parameters
    ----------
    perturb
        Any object with a method ``randomise(value)``.
    query
        Turns the data into the value; without it the data are the value.
    """
    if not callable(getattr(perturb, "randomise", None)) or isinstance(perturb, type):
        raise InvalidArgument(
            f"perturb={shorten(perturb)} must be an instance with a method randomise(value), such as "
            "diffprivlib.mechanisms.Laplace(epsilon=1, sensitivity=1)."
        )
    return Plain(Randomised(perturb, query))


def tool(function: Callable[..., Any], **arguments: Any) -> Plain:
    """Return a function of ``diffprivlib.tools`` as a mechanism, for instance ``tool(tools.mean, bounds=(0, 1))``."""
    own = None
    if "accountant" in _parameters(function) and "accountant" not in arguments:
        own = load("diffprivlib", extra="libraries").BudgetAccountant
    return Plain(Tool(function, arguments, own))


def model(make: Callable[[], Any], *, attributes: estimators.Attributes = None, target: bool | None = None) -> Plain:
    """Return a function that makes a ``diffprivlib.models`` estimator as a mechanism.

    Parameters
    ----------
    make, attributes, target
        As for :func:`dpaudit.adapters.estimators.mechanism`.
    """
    return estimators.mechanism(make, attributes=attributes, target=target)


def claim(source: Any, relation: Relation | None = None, **arguments: Any) -> Claim:
    """Return the claim that ``epsilon`` and ``delta`` of a mechanism, a model, or a tool with its arguments make.

    Parameters
    ----------
    source : object
        A mechanism or a model of diffprivlib, or a function of ``diffprivlib.tools``.
    relation : Relation, optional
        The relation of the claim.
    **arguments
        Arguments of the function, as given to :func:`tool`.

    Examples
    --------
    >>> def mean(array, epsilon=1.0):
    ...     return 0.0
    >>> claim(mean, Relation.SUBSTITUTE, epsilon=0.5)
    PureDP(epsilon=0.5, relation='substitute')
    >>> claim(mean)
    PureDP(epsilon=1.0)
    """
    if isinstance(source, type):
        raise InvalidArgument(f"source={source!r} is a class; pass an instance of it, made with its epsilon.")
    if inspect.isroutine(source):
        stated = {**_parameters(source), **arguments}
        epsilon, delta = stated.get("epsilon"), stated.get("delta", 0.0)
    elif arguments:
        raise InvalidArgument(
            f"source={shorten(source)} states its own epsilon; {', '.join(arguments)} can be given for functions only."
        )
    else:
        epsilon, delta = getattr(source, "epsilon", None), getattr(source, "delta", 0.0)
    if epsilon is None or epsilon is inspect.Parameter.empty:
        passing = "pass epsilon=, or state" if inspect.isroutine(source) else "state"
        raise InvalidArgument(
            f"source={shorten(source)} states no epsilon; {passing} the claim yourself, such as PureDP(1.0)."
        )
    if delta is None or delta is inspect.Parameter.empty:
        delta = 0.0
    return ApproxDP(float(epsilon), float(delta), relation) if delta else PureDP(float(epsilon), relation)


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    except (TypeError, ValueError):
        return {}
