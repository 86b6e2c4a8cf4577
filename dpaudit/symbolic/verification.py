"""Verify a claim against the code: extract the output laws of neighbouring data sets, and compare them exactly."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpaudit._util.notebook import card
from dpaudit._util.validation import check_choice, check_positive, shorten
from dpaudit._util.values import fingerprint, source
from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    MetricDP,
    PureDP,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
)
from dpaudit.errors import CannotFollow, LawError
from dpaudit.exact.divergences import divergence
from dpaudit.exact.law import HasLaw
from dpaudit.exact.verification import ORDERS, ROUNDING_FLOOR, Verification, neighbours_to_search, profile_grid
from dpaudit.exact.verification import verify as verify_declared
from dpaudit.symbolic import comparison
from dpaudit.symbolic.law import ExtractedLaw
from dpaudit.symbolic.running.coverage import Lines
from dpaudit.symbolic.running.extraction import Extraction, Limits, extract
from dpaudit.symbolic.running.reach import Reach
from dpaudit.symbolic.running.release import concrete, mechanism_of, release_of
from dpaudit.symbolic.single import DIVERGENCE_ERROR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpaudit.neighbours import Neighbours, Pair
    from dpaudit.result.model import Result

Interval = tuple[float, float]

EXACT_MEANING = (
    "Exact, without samples: over the reals (not the rounding of floats), for the pairs tried, and for random draws as "
    "their libraries document them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeVerification:
    """The result of :func:`dpaudit.verify` for code whose output law was extracted.

    ``quantity`` is what the claim bounds and ``allowed`` the claimed value. ``interval`` holds the true value on the
    ``shown`` pair (the smallest violating pair, or the worst of all), and ``epsilon`` the largest epsilon over all pairs.
    The verdict is VIOLATION if the lower end of a pair breaks the claim, NO_VIOLATION_FOUND if the upper ends of all pairs
    keep it, and INCONCLUSIVE otherwise. ``missed`` are lines of the user's code that no pair reached. ``unfollowed`` is
    the reason why some pairs could not be compared. On ``rare`` pairs what breaks the claim has a probability below 1e-12,
    which the rounding of numbers in the code explains: the lower end of their interval leaves it out, so they are undecided.
    """

    mechanism: str
    claim: Claim
    verdict: Verdict
    quantity: str
    interval: Interval
    allowed: float
    epsilon: Interval
    shown: Pair
    witness: Pair | None
    law: ExtractedLaw
    neighbour_law: ExtractedLaw
    pairs: int
    undecided: int
    unfollowed: CannotFollow | None
    rare: int
    missed: tuple[tuple[str, int], ...]
    seconds: float
    seed: int
    tolerance: float

    @property
    def verified(self) -> bool:
        """True if the claim is kept, exactly, on every pair that was tried."""
        return self.verdict is Verdict.NO_VIOLATION_FOUND

    @property
    def meaning(self) -> str:
        """The scope of the verdict, in a sentence."""
        return EXACT_MEANING

    def __str__(self) -> str:
        head = {
            Verdict.VIOLATION: "VIOLATION, exact",
            Verdict.NO_VIOLATION_FOUND: "VERIFIED on every pair tried, exact",
            Verdict.INCONCLUSIVE: "INCONCLUSIVE",
        }[self.verdict]
        lines = [f"{head}: {self.claim!r}, law extracted from the code of {self.mechanism}"]
        lines.append(f"  {self.quantity} is {_shown(self.interval)}, claimed {self.allowed:.12g}, on")
        lines += [f"    data      = {source(self.shown.data)}", f"    neighbour = {source(self.shown.neighbour)}"]
        if self.quantity != "epsilon":
            lines.append(f"  largest epsilon over all pairs: {_shown(self.epsilon)}")
        if self.undecided:
            lines.append(f"  {self.undecided} pairs are not decided: the interval contains the claimed value")
        if self.rare:
            lines.append(
                f"  On {self.rare} pair{'s' * (self.rare > 1)} only events of probability below "
                f"{comparison.LEAST_MASS:g} in all break the claim.\n"
                "  That is no violation: numbers that are rounded may be the reason, such as probabilities that do not quite\n"
                "  sum to 1."
            )
        if self.unfollowed is not None:
            lines.append("  Some pairs could not be followed: " + str(self.unfollowed).replace("\n", "\n  "))
        if self.missed:
            lines.append("  Lines that no pair reached: " + _lines(self.missed))
        lines.append(f"  {self.pairs} pairs tried in both orders in {self.seconds:.2f} s, seed={self.seed}")
        lines.append(f"  {EXACT_MEANING}")
        return "\n".join(lines)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the laws on both data sets of the pair that is shown, with matplotlib, and return the axes."""
        from dpaudit.symbolic.picture import draw

        return draw({"data": self.law, "neighbour": self.neighbour_law}, axes)

    def _repr_html_(self) -> str:
        facts = [
            ("claimed", repr(self.claim)),
            (self.quantity, f"{_shown(self.interval)} on this pair, {self.allowed:.12g} allowed"),
            ("data", source(self.shown.data)),
            ("neighbour", source(self.shown.neighbour)),
            ("pairs tried", f"{self.pairs}, in both orders"),
        ]
        return card(self.verdict, f"exact law, from the code of {self.mechanism}", facts, text=str(self))


def verify(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    examples: int = 300,
    seed: int = 0,
    tolerance: float = 1e-9,
    seconds: float = 60.0,
    limits: Limits | None = None,
    otherwise: Literal["raise", "audit"] = "raise",
) -> Verification | CodeVerification | Result:
    """Search the neighbours for a pair on which the mechanism's exact output law breaks its claim.

    A mechanism with a method ``law(data)`` is verified by the law that it declares. Of any other (an ordinary function
    ``f(data, rng)``, ``f(data)``, or a wrapped one), the law is extracted from the code: it is run with symbols in place of
    random numbers, every branch is followed with its exact probability, and the laws on the two data sets are compared.
    Nothing is sampled, so there is no error probability.

    Parameters
    ----------
    mechanism : object with ``law(data)``, or any mechanism or function
        What is verified.
    claim : Claim
        The claim to verify. Its relation, if it names one, must be that of the neighbours.
    neighbours : Neighbours or list of pairs
        The pairs to search: all corner pairs, then ``examples`` pairs by Hypothesis, towards larger values. A list of
        pairs ``(data, neighbour)`` is searched as it is.
    examples, seed : int
        Size and seed of the search; the same seed gives the same result.
    tolerance : float
        Relative rounding allowance on the claimed value.
    seconds : float
        Time after which no more pairs are tried (extracted laws only).
    limits : Limits, optional
        How many paths of one data set are followed, and how long.
    otherwise : {"raise", "audit"}
        If the code cannot be followed: raise CannotFollow, which names the line, or run the black-box audit and return
        its Result.

    Returns
    -------
    Verification, CodeVerification or Result
        For a declared law, an extracted law, or an audit.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> from dpaudit import PureDP, neighbours
    >>> def noisy_count(data, rng):
    ...     return len(data) + rng.laplace(scale=0.5)
    >>> found = verify(noisy_count, PureDP(1.0), neighbours.add_remove(st.booleans()))
    >>> found.verdict.value, [round(end, 9) for end in found.epsilon], found.witness
    ('VIOLATION', [2.0, 2.0], Pair(data=[], neighbour=[False]))
    >>> print(found.law)
    1  number: Laplace(location=0.0, scale=0.5)
    """
    check_choice(("raise", "audit"), otherwise=otherwise)
    if not isinstance(mechanism, type) and isinstance(mechanism, HasLaw):
        return verify_declared(mechanism, claim, neighbours, examples=examples, seed=seed, tolerance=tolerance)
    try:
        return verify_code(
            mechanism,
            claim,
            neighbours,
            examples=examples,
            seed=seed,
            tolerance=tolerance,
            seconds=seconds,
            limits=limits,
        )
    except CannotFollow:
        if otherwise == "raise":
            raise
    from dpaudit.engine.audit import audit

    return audit(mechanism_of(mechanism), claim, neighbours, seed=seed)


def verify_code(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    examples: int = 300,
    seed: int = 0,
    tolerance: float = 1e-9,
    seconds: float = 60.0,
    limits: Limits | None = None,
) -> CodeVerification:
    """Verify by the law of the code, also for a mechanism that declares one; arguments as for :func:`dpaudit.verify`."""
    from dpaudit._util.hypothesis_bridge import maximise, until

    check_positive(seconds=seconds)
    known_neighbours = neighbours_to_search(claim, neighbours, examples=examples, seed=seed, tolerance=tolerance)
    started = time.monotonic()
    search = _Search(mechanism_of(mechanism), measure_of(claim, tolerance), limits or Limits())
    with until(started + seconds):
        try:
            found = maximise(
                known_neighbours, search.score, exceeds=lambda value: value > 0.0, examples=examples, seed=seed
            )
        except GivenUp:
            assert search.unfollowed is not None
            raise search.unfollowed from None
        if found.witness is None:
            search.reach_missed_lines(known_neighbours, examples, seed)
    if not search.intervals:
        assert search.unfollowed is not None
        raise search.unfollowed
    return search.result(mechanism, claim, found.witness, time.monotonic() - started, seed, tolerance)


@dataclass(frozen=True, slots=True)
class ClaimedQuantity:
    """The quantity that a claim bounds: an interval of it from two extracted laws; above ``limit`` it is a violation."""

    quantity: str
    allowed: float
    limit: float
    value: Callable[[Extraction, Extraction], Interval]
    distance: Callable[[Any, Any], float] | None = (
        None  # of metric privacy: the quantity is divided by that of the pair
    )
    floor: Callable[[Extraction, Extraction, float], float] | None = None
    """For claims without delta: an upper end of the probability by which a pair exceeds a level."""

    def on(self, pair: Pair, P: Extraction, Q: Extraction) -> Interval:
        """The interval for one pair."""
        low, high = self.value(P, Q)
        if self.distance is None:
            return low, high
        distance = self.distance(pair.data, pair.neighbour)
        if distance > 0.0:
            return low / distance, high / distance
        return math.inf if low > 0.0 else 0.0, math.inf if high > 0.0 else 0.0

    def above_floor(self, pair: Pair, P: Extraction, Q: Extraction) -> tuple[Interval, bool]:
        """The interval, and True if its lower end was lowered because what breaks the claim is too rare to count."""
        low, high = self.on(pair, P, Q)
        if low <= self.limit or self.floor is None:
            return (low, high), False
        level = self.limit if self.distance is None else self.limit * self.distance(pair.data, pair.neighbour)
        if self.floor(P, Q, level) > comparison.LEAST_MASS:
            return (low, high), False
        shown = comparison.epsilon_above_floor(P, Q) if self.quantity == "epsilon" else 0.0
        return (min(shown, self.limit), high), True

    def excess(self, interval: Interval) -> float:
        """How far the lower end is above the limit, on a scale on which a search can climb."""
        low = interval[0]
        if low == math.inf:
            return math.inf
        return low - self.limit


def measure_of(claim: Claim, tolerance: float) -> ClaimedQuantity:
    """The quantity that a claim bounds."""
    slack = 1.0 + tolerance
    match claim:
        case PureDP(epsilon=allowed):
            return ClaimedQuantity("epsilon", allowed, allowed * slack, comparison.epsilon, floor=_excess)
        case MetricDP(epsilon=allowed):
            return ClaimedQuantity(
                "epsilon per distance",
                allowed,
                allowed * slack,
                comparison.epsilon,
                distance=claim.between,
                floor=_excess,
            )
        case BoundedRange(epsilon=allowed):
            return ClaimedQuantity(
                "range of the log-ratio", allowed, allowed * slack, comparison.log_ratio_range, floor=_impossible
            )
        case ApproxDP(epsilon=level):
            allowed = claim.delta_claimed
            return ClaimedQuantity(
                f"delta at epsilon={level:g}",
                allowed,
                allowed * slack + ROUNDING_FLOOR,
                lambda P, Q: comparison.delta(P, Q, level),
            )
        case RenyiDP(order=order, epsilon=allowed):
            return ClaimedQuantity(
                f"Renyi divergence of order {order:g}",
                allowed,
                allowed * slack,
                lambda P, Q: _renyi(P, Q, [order], [1.0]),
                floor=_impossible,
            )
        case ZeroConcentratedDP(rho=allowed):
            return ClaimedQuantity(
                "largest Renyi divergence over its order",
                allowed,
                allowed * slack,
                lambda P, Q: _renyi(P, Q, list(ORDERS), list(ORDERS)),
                floor=_impossible,
            )
    grid = profile_grid(claim)
    bound = np.asarray(claim.delta(grid)) * slack + ROUNDING_FLOOR

    def above(P: Extraction, Q: Extraction) -> Interval:
        # As for pure DP, the largest epsilon is compared with the levels up to the tolerance: from there on delta is zero.
        zero = grid * slack >= comparison.epsilon(P, Q)[1]
        ends = np.array(
            [
                (0.0, 0.0) if none else comparison.delta(P, Q, float(level))
                for level, none in zip(grid, zero, strict=True)
            ]
        )
        ends -= bound[:, None]
        return float(ends[:, 0].max()), float(ends[:, 1].max())

    return ClaimedQuantity("delta above the claimed profile", 0.0, 0.0, above)


def _excess(P: Extraction, Q: Extraction, level: float) -> float:
    return comparison.delta(P, Q, level)[1]


def _impossible(P: Extraction, Q: Extraction, _level: float) -> float:
    """Return the probability of outcomes that only one data set has, if laws of finitely many differ in that; one otherwise."""
    few = all(ExtractedLaw(law).outcomes() is not None for law in (P, Q))
    return comparison.delta(P, Q, 700.0)[1] if few and comparison.epsilon(P, Q)[0] == math.inf else 1.0


def _renyi(P: Extraction, Q: Extraction, orders: list[float], divisors: list[float]) -> Interval:
    try:
        laws = ExtractedLaw(P).to_exact(), ExtractedLaw(Q).to_exact()
        values = [
            max(divergence.renyi(*laws, order), divergence.renyi(*laws[::-1], order)) / divisor
            for order, divisor in zip(orders, divisors, strict=True)
        ]
    except LawError:
        return 0.0, math.inf
    slack = P.error + Q.error + DIVERGENCE_ERROR
    return max(values) * (1.0 - slack), max(values) * (1.0 + slack) + 64.0 * (P.error + Q.error)


class GivenUp(BaseException):
    """No pair could be followed so far. Not an Exception, which the search would replay and shrink."""


class _Search:
    """Extract and compare pair by pair, and remember what was found."""

    def __init__(self, mechanism: Any, measure: ClaimedQuantity, limits: Limits) -> None:
        self.release, self.function = release_of(mechanism)
        self.reach = Reach.of(self.function)
        self.measure = measure
        self.limits = limits
        self.lines = Lines()
        self.laws: dict[Any, Extraction] = {}
        self.intervals: dict[Any, tuple[Pair, Interval, Interval]] = {}
        self.unfollowed: CannotFollow | None = None
        self.unfollowed_pairs: set[Any] = set()
        self.rare: set[Any] = set()

    def law(self, data: Any) -> Extraction:
        """Extract the law on one data set, once."""
        key = fingerprint(data)
        if key not in self.laws:
            self.laws[key] = extract(self.release, self.function, data, self.limits, self.lines, self.reach)
        return self.laws[key]

    def score(self, pair: Pair) -> float:
        """How far the quantity of a pair is above the claim, for certain; minus one where it cannot be followed."""
        key = fingerprint(pair.data), fingerprint(pair.neighbour)
        if key not in self.intervals:
            if key in self.unfollowed_pairs:
                return -1.0
            try:
                P, Q = self.law(pair.data), self.law(pair.neighbour)
                value, rare = self.measure.above_floor(pair, P, Q)
                pure = value if self.measure.quantity == "epsilon" else comparison.epsilon(P, Q)
            except CannotFollow as error:
                self.unfollowed_pairs.add(key)
                self.unfollowed = self.unfollowed or error
                if not self.intervals and len(self.unfollowed_pairs) >= 3:
                    raise GivenUp from None
                return -1.0
            self.intervals[key] = pair, value, pure
            if rare:
                self.rare.add(key)
        return self.measure.excess(self.intervals[key][1])

    def reach_missed_lines(self, neighbours: Neighbours, examples: int, seed: int) -> None:
        """Run more pairs with real random numbers, and compare those that reach lines which no pair has reached."""
        from dpaudit._util.hypothesis_bridge import explore

        missed = set(self.lines.missed(self.function))
        if not missed:
            return

        def visit(pair: Pair) -> bool:
            probe = Lines()
            for number, data in enumerate(pair):
                try:
                    with probe.recording():
                        concrete(self.release, copy.deepcopy(data), seed + number)
                except Exception:
                    continue
            if probe.seen & missed:
                self.score(pair)
                missed.difference_update(self.lines.seen)
            return not missed

        explore(neighbours.strategy, visit, examples=3 * examples, seed=seed + 1)

    def result(
        self, mechanism: Any, claim: Claim, witness: Pair | None, seconds: float, seed: int, tolerance: float
    ) -> CodeVerification:
        """Return the verification that all pairs together give."""
        found = list(self.intervals.values())
        undecided = [item for item in found if item[1][0] <= self.measure.limit < item[1][1]]
        broken = [item for item in found if item[1][0] > self.measure.limit]
        if broken:
            verdict = Verdict.VIOLATION
        elif undecided or self.unfollowed is not None:
            verdict = Verdict.INCONCLUSIVE
        else:
            verdict = Verdict.NO_VIOLATION_FOUND
        shown = max(found, key=lambda item: (item[1][0], item[1][1]))
        if broken and witness is None:
            witness = broken[0][0]
        if witness is not None:
            key = fingerprint(witness.data), fingerprint(witness.neighbour)
            shown = self.intervals.get(key, shown)
        pair, interval, _ = shown
        return CodeVerification(
            mechanism=getattr(self.function, "__qualname__", None) or shorten(mechanism),
            claim=claim,
            verdict=verdict,
            quantity=self.measure.quantity,
            interval=interval,
            allowed=self.measure.allowed,
            epsilon=(max(item[2][0] for item in found), max(item[2][1] for item in found)),
            shown=pair,
            witness=witness,
            law=ExtractedLaw(self.law(pair.data)),
            neighbour_law=ExtractedLaw(self.law(pair.neighbour)),
            pairs=len(found),
            undecided=len(undecided),
            rare=len(self.rare),
            unfollowed=self.unfollowed,
            missed=tuple(self.lines.missed(self.function)),
            seconds=seconds,
            seed=seed,
            tolerance=tolerance,
        )


def _shown(interval: Interval) -> str:
    low, high = interval
    if low == high or (math.isfinite(high) and high - low <= 1e-8 * max(1.0, abs(high))):
        return f"{0.5 * (low + high):.9g}"
    return f"between {low:.9g} and {high:.9g}"


def _lines(missed: Sequence[tuple[str, int]]) -> str:
    by_file: dict[str, list[int]] = {}
    for filename, line in missed:
        by_file.setdefault(filename, []).append(line)
    return "; ".join(f"{name}: {', '.join(map(str, lines[:20]))}" for name, lines in by_file.items())
