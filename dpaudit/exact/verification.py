"""Verify a claim against the declared output law, by exact divergences and a search for the worst pair."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit._util.notebook import card
from dpaudit._util.validation import check_count, check_open_unit, shorten
from dpaudit._util.values import source
from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    MetricDP,
    ProfileDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
    Verdict,
    ZeroConcentratedDP,
    distance_between,
)
from dpaudit.errors import InvalidArgument, LawError, MechanismError
from dpaudit.exact.divergences import divergence
from dpaudit.exact.law import HasLaw, Law, checked_law

if TYPE_CHECKING:
    from dpaudit.neighbours import Neighbours, Pair

ROUNDING_FLOOR = 1e-14
"""Absolute allowance for a delta: a sum of terms that are zero in exact arithmetic, weighted by probabilities."""

_SMALLEST_DELTA = 1e-12  # a profile is compared down to here
_GRID = 33
ORDERS = (1.01, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of :func:`verify`.

    ``quantity`` is what the claim bounds, ``largest`` its value on the ``worst`` pair of all that were tried, and
    ``allowed`` the claimed value. ``epsilon`` is the largest exact epsilon over all pairs tried (infinite where outputs
    of one side are impossible on the other), and ``delta`` the delta of the worst pair at ``at_epsilon``, for claims
    that have such an epsilon and laws of which it can be computed. ``witness`` is the smallest violating pair and
    ``witness_value`` its value. ``reproduce`` is a Python expression that compares the two laws of the witness again, and
    ``examples``, ``seed`` and ``tolerance`` are those of the search.
    """

    mechanism: str
    claim: Claim
    verdict: Verdict
    quantity: str
    largest: float
    allowed: float
    epsilon: float
    delta: float | None
    at_epsilon: float | None
    worst: Pair
    witness: Pair | None
    witness_value: float | None
    reproduce: str
    pairs: int
    examples: int
    seed: int
    tolerance: float

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.claim!r}, exact law of {self.mechanism}"]
        shown, value = (self.worst, self.largest) if self.witness is None else (self.witness, self.witness_value)
        lines.append(f"  {self.quantity} is {value:.12g}, claimed {self.allowed:.12g}, on")
        lines += [f"    data      = {source(shown.data)}", f"    neighbour = {source(shown.neighbour)}"]
        if self.witness is None:
            lines.append("  the largest value of all pairs tried")
        else:
            lines.append(f"  largest over all pairs tried: {self.largest:.12g}")
        lines.append(f"  Reproduce with {self.reproduce}")
        lines.append(
            f"  {self.pairs} pairs tried in both orders, seed={self.seed}, tolerance={self.tolerance:g} (relative)"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        pair, value = (self.worst, self.largest) if self.witness is None else (self.witness, self.witness_value)
        facts = [
            ("claimed", repr(self.claim)),
            (self.quantity, f"{value:.12g} on this pair, {self.allowed:.12g} allowed"),
            ("data", source(pair.data)),
            ("neighbour", source(pair.neighbour)),
            ("pairs tried", f"{self.pairs}, in both orders"),
        ]
        return card(self.verdict, f"exact law of {self.mechanism}", facts, text=str(self))


@dataclass(frozen=True, slots=True)
class _Measure:
    """The quantity that a claim bounds: ``value(P, Q)`` of two laws; above ``limit`` it is a violation."""

    quantity: str
    allowed: float
    limit: float
    value: Callable[[Law, Law], float]
    call: str
    at_epsilon: float | None = None


def verify(
    mechanism: HasLaw,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    examples: int = 300,
    seed: int = 0,
    tolerance: float = 1e-9,
) -> Verification:
    """Search the neighbours for a pair on which the mechanism's exact output law breaks its claim.

    For each pair the two laws are compared in both orders, over the reals, without sampling: pure DP by epsilon,
    approximate DP by delta at the claimed epsilon, Renyi DP by the Renyi divergence of its order, zCDP by the largest
    Renyi divergence per order over a grid of orders, bounded range by the range of the log-ratio, metric privacy by epsilon
    per distance, curves at the points that define them, and every other claim by its profile on a grid of epsilons. A
    violation is therefore certain up to rounding; finding none says nothing about pairs that were not tried.

    Parameters
    ----------
    mechanism : object with ``law(data)``
        Its law is verified, not its sampler.
    claim : Claim
        The claim to verify. Its relation, if it names one, must be that of the neighbours.
    neighbours : Neighbours or list of pairs
        The pairs to search: all corner pairs, then ``examples`` pairs by Hypothesis, towards larger values. A list of
        pairs ``(data, neighbour)`` is searched as it is.
    examples, seed : int
        Size and seed of the search; the same seed gives the same result.
    tolerance : float
        Relative rounding allowance on the claimed value.

    Returns
    -------
    Verification
        With the smallest violating pair as its ``witness``.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> from dpaudit import neighbours
    >>> from dpaudit.exact import Laplace
    >>> class NoisyCount:
    ...     def law(self, data):
    ...         return Laplace(len(data), 0.5)
    >>> found = verify(NoisyCount(), PureDP(1.0), neighbours.add_remove(st.booleans()))
    >>> found.verdict.value, found.epsilon, found.witness
    ('VIOLATION', 2.0, Pair(data=[], neighbour=[False]))
    """
    from dpaudit._util.hypothesis_bridge import maximise

    if isinstance(mechanism, type) or not isinstance(mechanism, HasLaw):
        raise InvalidArgument(
            f"mechanism={shorten(mechanism)} has no method law(data) that returns its exact output law. Pass an "
            "instance that has one, or audit the running code with dpaudit.audit."
        )
    pairs = neighbours_to_search(claim, neighbours, examples=examples, seed=seed, tolerance=tolerance)
    measure = _measure(claim, tolerance)
    comparison = _Comparison(mechanism, claim, measure)
    search = maximise(pairs, comparison.on, exceeds=lambda value: value > measure.limit, examples=examples, seed=seed)
    again = comparison.on(search.worst)
    if again != search.largest:
        raise MechanismError(
            f"{shorten(mechanism)}.law is not deterministic: the {measure.quantity} was {search.largest!r} and then "
            f"{again!r} on the same pair. A law is a function of the data alone.\n{_shown(search.worst)}"
        )
    if measure.at_epsilon is None and not isinstance(claim, RenyiDP | ZeroConcentratedDP | BoundedRange | MetricDP):
        # A profile was compared as a whole; report it where it is exceeded most.
        level = _worst_level(claim, tolerance, *_laws(mechanism, search.witness or search.worst))
        measure = _delta_measure(level, claim.delta(level), tolerance)
    reported = _Comparison(mechanism, claim, measure)
    return Verification(
        mechanism=shorten(mechanism),
        claim=claim,
        verdict=Verdict.NO_VIOLATION_FOUND if search.witness is None else Verdict.VIOLATION,
        quantity=measure.quantity,
        largest=reported.on(search.worst),
        allowed=measure.allowed,
        epsilon=comparison.largest_epsilon,
        delta=_delta_if_known(*_laws(mechanism, search.worst), measure.at_epsilon),
        at_epsilon=measure.at_epsilon,
        worst=search.worst,
        witness=search.witness,
        witness_value=None if search.witness is None else reported.on(search.witness),
        reproduce=measure.call.format("mechanism.law(data), mechanism.law(neighbour)"),
        pairs=search.pairs,
        examples=examples,
        seed=seed,
        tolerance=tolerance,
    )


def neighbours_to_search(
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    examples: int,
    seed: int,
    tolerance: float,
) -> Neighbours:
    """Check the arguments of a verification, and return its neighbours.

    Parameters
    ----------
    claim, neighbours, examples, seed, tolerance
        As for :func:`verify`.
    """
    from dpaudit.neighbours import as_neighbours, check_relation

    check_count(examples=examples)
    check_count(minimum=0, seed=seed)
    check_open_unit(tolerance=tolerance)
    found = as_neighbours(neighbours)
    check_relation(claim, found)
    return found


class _Comparison:
    """Compares the laws on pairs of data sets, each pair of laws once, and keeps the largest epsilon of all."""

    def __init__(self, mechanism: HasLaw, claim: Claim, measure: _Measure) -> None:
        self.mechanism, self.claim, self.measure = mechanism, claim, measure
        self.largest_epsilon = 0.0
        self._known: dict[tuple[Law, Law], tuple[float, float]] = {}

    def on(self, pair: Pair) -> float:
        """Return the quantity that the claim bounds, divided by the pair's distance for metric privacy."""
        P, Q = _laws(self.mechanism, pair)
        try:
            found = self._known.get((P, Q))  # many data sets share one law
            hashable = True
        except TypeError:
            found, hashable = None, False
        if found is None:
            found = self._compare(P, Q, pair)
        if hashable:
            self._known[P, Q] = self._known[Q, P] = found
        epsilon, value = found
        self.largest_epsilon = max(self.largest_epsilon, epsilon)
        distance = distance_between(self.claim, pair.data, pair.neighbour)
        return value / distance if distance > 0.0 else (math.inf if value > 0.0 else 0.0)

    def _compare(self, P: Law, Q: Law, pair: Pair) -> tuple[float, float]:
        epsilon = _checked(lambda: divergence.epsilon(P, Q), "epsilon", pair)
        if self.measure.value is divergence.epsilon:
            return epsilon, epsilon
        return epsilon, _checked(lambda: self.measure.value(P, Q), self.measure.quantity, pair)


def _measure(claim: Claim, tolerance: float) -> _Measure:
    slack = 1.0 + tolerance
    match claim:
        case PureDP(epsilon=allowed):
            return _Measure(
                "epsilon", allowed, allowed * slack, divergence.epsilon, "dpaudit.exact.epsilon({})", at_epsilon=allowed
            )
        case MetricDP(epsilon=allowed):
            return _Measure(
                "epsilon per distance",
                allowed,
                allowed * slack,
                divergence.epsilon,
                "dpaudit.exact.epsilon({}) / distance",
            )
        case BoundedRange(epsilon=allowed):
            return _Measure(
                "range of the log-ratio",
                allowed,
                allowed * slack,
                divergence.log_ratio_range,
                "dpaudit.exact.log_ratio_range({})",
            )
        case ApproxDP():
            return _delta_measure(claim.epsilon, claim.delta_claimed, tolerance)
        case RenyiDP(order=order, epsilon=allowed):
            return _Measure(
                f"Renyi divergence of order {order:g}",
                allowed,
                allowed * slack,
                lambda P, Q: _renyi(P, Q, order),
                f"dpaudit.exact.renyi({{}}, {order!r})",
            )
        case ZeroConcentratedDP(rho=allowed):
            return _Measure(
                "largest Renyi divergence over its order",
                allowed,
                allowed * slack,
                lambda P, Q: max(_renyi(P, Q, order) / order for order in ORDERS),
                f"dpaudit.exact.renyi({{}}, order) / order for order in {ORDERS}",
            )
    grid = profile_grid(claim)
    bound = np.asarray(claim.delta(grid)) * slack + ROUNDING_FLOOR
    return _Measure(
        "delta above the claimed profile",
        0.0,
        0.0,
        lambda P, Q: float(np.max(divergence.profile(P, Q, grid) - bound)),
        "dpaudit.exact.profile({}, epsilons)",
    )


def _delta_measure(level: float, allowed: float, tolerance: float) -> _Measure:
    return _Measure(
        f"delta at epsilon={level:g}",
        allowed,
        allowed * (1.0 + tolerance) + ROUNDING_FLOOR,
        lambda P, Q: divergence.delta(P, Q, level),
        f"dpaudit.exact.delta({{}}, {level!r})",
        at_epsilon=level,
    )


def _worst_level(claim: Claim, tolerance: float, P: Law, Q: Law) -> float:
    grid = profile_grid(claim)
    bound = np.asarray(claim.delta(grid)) * (1.0 + tolerance) + ROUNDING_FLOOR
    return float(grid[int(np.argmax(divergence.profile(P, Q, grid) - bound))])


def _delta_if_known(P: Law, Q: Law, level: float | None) -> float | None:
    """Return the delta for the report, or None: for a product of densities it may be unknown, although epsilon is known."""
    try:
        return None if level is None else divergence.delta(P, Q, level)
    except LawError:
        return None


def _renyi(P: Law, Q: Law, order: float) -> float:
    return max(divergence.renyi(P, Q, order), divergence.renyi(Q, P, order))


def profile_grid(claim: Claim) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Epsilons at which a curve is defined, or from 0 to where the claim allows next to nothing, denser near 0."""
    if isinstance(claim, ProfileDP | TradeOffDP):
        return claim.levels
    top = 1.0
    while claim.delta(top) > _SMALLEST_DELTA and top < 1e6:
        top *= 2.0
    return top * np.linspace(0.0, 1.0, _GRID) ** 2


def _laws(mechanism: HasLaw, pair: Pair) -> tuple[Law, Law]:
    laws = []
    for data in pair:
        try:
            law = mechanism.law(copy.deepcopy(data))
        except Exception as error:
            raise MechanismError(
                f"{shorten(mechanism)}.law raised {type(error).__name__}: {error}\n  data = {shorten(data, 400)}"
            ) from error
        laws.append(checked_law(law, f"{shorten(mechanism)}.law", f"\n  data = {shorten(data, 400)}"))
    return laws[0], laws[1]


def _checked(compute: Callable[[], float], quantity: str, pair: Pair) -> float:
    try:
        value = compute()
    except Exception as error:
        raise LawError(
            f"The {quantity} of the two laws raised {type(error).__name__}: {error}\n{_shown(pair)}"
        ) from error
    if math.isnan(value):
        raise LawError(f"The {quantity} of the two laws is NaN; a law must be a probability law.\n{_shown(pair)}")
    return value


def _shown(pair: Pair) -> str:
    return f"  data      = {shorten(pair.data, 400)}\n  neighbour = {shorten(pair.neighbour, 400)}"
