"""OpenDP measurements as mechanisms, with the claim that their privacy map states.

A measurement says by ``map(d_in)`` what it promises for data sets at distance ``d_in`` in its input metric. Adding or
removing one row is distance 1 in the symmetric metric and replacing one row distance 2 (one row leaves, another comes);
in the change-one metrics replacing is distance 1. For metrics on answers (absolute, l1, l2 distance) the caller says how
far neighbouring answers may be apart.

OpenDP draws from the operating system: audits stay valid, but cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from dpaudit._util.validation import shorten
from dpaudit.adapters._loading import load, native
from dpaudit.claims import ApproxDP, Claim, ProfileDP, PureDP, Relation, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Plain

DISTANCE = {
    ("SymmetricDistance", Relation.ADD_REMOVE): 1,
    ("SymmetricDistance", Relation.SUBSTITUTE): 2,
    ("InsertDeleteDistance", Relation.ADD_REMOVE): 1,
    ("InsertDeleteDistance", Relation.SUBSTITUTE): 2,
    ("ChangeOneDistance", Relation.SUBSTITUTE): 1,
    ("HammingDistance", Relation.SUBSTITUTE): 1,
    ("DiscreteDistance", Relation.SUBSTITUTE): 1,
}


@dataclass(frozen=True, slots=True)
class Release:
    """One invocation of a measurement, on data in Python's own types."""

    measurement: Any
    convert: Callable[[Any], Any] = native

    def __call__(self, data: Any) -> Any:
        """Release once."""
        return self.measurement(self.convert(data))


def prelude(*features: str) -> Any:
    """Return ``opendp.prelude`` with the named features enabled ("contrib" if none is named)."""
    dp = load("opendp.prelude", extra="libraries")
    dp.enable_features(*(features or ("contrib",)))
    return dp


def mechanism(measurement: Any, *, convert: Callable[[Any], Any] = native) -> Plain:
    """Return a measurement as a mechanism; each call is one release.

    Parameters
    ----------
    measurement
        What ``space >> ... >> dp.m.then_laplace(...)`` makes, or anything callable with a method ``map``.
    convert
        Applied to the data first; by default numpy values become Python's own.
    """
    if not callable(measurement) or not hasattr(measurement, "map"):
        raise InvalidArgument(
            f"measurement={measurement!r} must be an OpenDP measurement: callable, with a method map. A constructor such as "
            "dp.m.then_laplace(...) becomes one by input_space >> constructor."
        )
    if hasattr(measurement, "output_metric"):
        raise InvalidArgument(
            f"measurement={shorten(measurement)} is a transformation, which adds no noise. Chain it with a measurement, such as "
            "transformation >> dp.m.then_laplace(scale=1.0); its stability is for dpaudit.check_sensitivity."
        )
    return Plain(Release(measurement, convert))


def claim(
    measurement: Any,
    relation: Relation,
    *,
    distance: float | None = None,
    delta: float | None = None,
    order: float | None = None,
) -> Claim:
    """Return what the measurement's privacy map promises under the relation.

    Parameters
    ----------
    measurement
        With ``map``, ``input_metric`` and ``output_measure``.
    relation
        ``ADD_REMOVE`` or ``SUBSTITUTE`` for metrics on rows, ``ANSWERS`` for metrics on answers.
    distance
        The input distance of neighbours; required for metrics on answers, known for the others.
    delta
        Where the measurement states a whole profile, the delta at which its epsilon is read.
    order
        Where it states a Renyi curve, the order at which it is read.
    """
    apart = _distance(measurement, relation, distance)
    promised = measurement.map(apart)
    measure = str(measurement.output_measure)
    match _head(measure):
        case "MaxDivergence":
            return PureDP(_positive(promised, apart), relation)
        case "ZeroConcentratedDivergence":
            return ZeroConcentratedDP(_positive(promised, apart), relation)
        case "FixedSmoothedMaxDivergence":
            return _approximate(promised, relation)
        case "Approximate" if "(MaxDivergence" in measure:
            return _approximate(promised, relation)
        case "SmoothedMaxDivergence":
            if delta is None:
                raise InvalidArgument(f"delta={delta!r} must be given: the measurement states epsilon for every delta.")
            return _approximate((promised.epsilon(delta), delta), relation)
        case "RenyiDivergence":
            if order is None:
                raise InvalidArgument(f"order={order!r} must be given: the measurement states epsilon for every order.")
            return RenyiDP(order, promised(order), relation)
    raise InvalidArgument(
        f"output_measure={measure!r} has no claim here; convert the measurement with dp.c.make_zCDP_to_approxDP and "
        "dp.c.make_fix_delta, or state the claim yourself."
    )


def profile(
    measurement: Any,
    relation: Relation,
    *,
    distance: float | None = None,
    epsilons: Iterable[float] | None = None,
) -> ProfileDP:
    """Return the whole privacy profile that a measurement states, as a claim.

    Parameters
    ----------
    measurement, relation, distance
        As for :func:`claim`; its output measure is ``SmoothedMaxDivergence``, as ``dp.c.make_zCDP_to_approxDP`` makes it.
    epsilons
        Where to read the profile, as for :meth:`dpaudit.ProfileDP.of`.
    """
    measure = str(measurement.output_measure)
    promised = measurement.map(_distance(measurement, relation, distance))
    if not callable(getattr(promised, "delta", None)):
        raise InvalidArgument(
            f"output_measure={measure!r} states no privacy profile; convert the measurement with dp.c.make_zCDP_to_approxDP, or "
            "use dpaudit.adapters.opendp.claim."
        )
    return ProfileDP.of(promised, epsilons=epsilons, relation=relation)


def _head(measure_or_metric: Any) -> str:
    return str(measure_or_metric).partition("(")[0].strip()


def _distance(measurement: Any, relation: Relation, distance: float | None) -> float:
    metric = _head(measurement.input_metric)
    known = DISTANCE.get((metric, relation))
    if relation is Relation.ADD_REMOVE and "size=" in str(getattr(measurement, "input_domain", "")):
        raise InvalidArgument(
            f"relation={relation!r} leaves the domain {measurement.input_domain}, in which all data sets have one size, so the "
            "map says nothing about it; use Relation.SUBSTITUTE."
        )
    if known is not None and distance is None:
        return known
    if distance is None:
        rows = sorted({name for name, _ in DISTANCE})
        if metric in rows:
            raise InvalidArgument(
                f"relation={relation!r} has no distance in the metric {metric}; use the relation that its neighbours have."
            )
        raise InvalidArgument(
            f"distance={distance!r} must be given: {measurement.input_metric} does not say how far neighbours are apart. "
            "Pass the sensitivity of the query."
        )
    return distance


def _approximate(promised: tuple[float, float], relation: Relation) -> Claim:
    epsilon, delta = promised
    return ApproxDP(epsilon, delta, relation) if delta > 0.0 else PureDP(_positive(epsilon, "the relation"), relation)


def _positive(promised: float, apart: Any) -> float:
    if not promised > 0.0:
        raise InvalidArgument(
            f"map({apart}) is {promised!r}: the measurement claims that neighbours cannot be distinguished at all, which no "
            "audit can refute at a finite ratio. Audit against a small claim such as PureDP(1e-3)."
        )
    return float(promised)
