"""An audit of the channel ``timing``: does the duration of a call depend on the data?

The caller sees how long an answer took, so a duration is an output. But durations are not independent draws: caches,
clock frequencies and other processes make them drift. Therefore every call gets a label by a fair coin, and the bets are on
the label given the duration (``label_bets`` has the proof). Data are copied for every call, and sizes must agree (``clock``).

A control runs beside the comparison of D with D', call by call: D against a copy of D, with its own coins. If the control
refutes epsilon = 0 at the same alpha, the machine or the harness breaks the symmetry that the proof needs, and the audit is
INCONCLUSIVE whatever the comparison shows. Only one process is used: a second one would share caches with the first.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.hypothesis_bridge import noticed_interrupts, passed
from dpaudit._util.validation import shorten
from dpaudit.claims import Claim, MetricDP, Relation, Verdict, claimed_epsilon
from dpaudit.engine.events import Confirming, OutputsDrawn, PairChosen, RoundSettled, Started, ViolationFound
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.evidence.e_process import Points, bet_sizes
from dpaudit.engine.options import Options, slow_pairs
from dpaudit.engine.request import INTERRUPTED, Findings, Request
from dpaudit.engine.sampling.probe import traceback_of
from dpaudit.engine.sampling.seeds import SeedKey, seed_child
from dpaudit.engine.search.bounds import epsilon_lower, parameter_lower
from dpaudit.engine.search.detectable import HEADLINE, Extent, detectable_epsilon
from dpaudit.engine.timing.clock import Stopwatch, Timed
from dpaudit.engine.timing.duration_event import describe_times, threshold_event, timing_witness
from dpaudit.engine.timing.label_bets import LabelWealth, SettledBlock, lower_bound
from dpaudit.engine.timing.pairs import LabelledCalls, TimedPair, next_pair
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import Named, as_mechanism
from dpaudit.neighbours import Neighbours
from dpaudit.result.model import Result, StoppedBy, Witness

EQUALITY = Points.of([(0.0, 0.0)])

TIMING_LIMITATIONS = (
    "Timing stands outside the promises of the other channels. A clock cannot be replayed, so the result is not reproducible, "
    "and only one process is used. Alpha holds if the machine treats equal data alike; the control of D against a copy of D "
    "tests that, but cannot prove it. The result is about this machine, this interpreter and this load. Differences below the "
    "noise of the clock are not seen, and finding nothing does not mean constant time."
)
UNEQUAL = (
    "their sizes differ, and so does the time to read them, so every mechanism would be refuted. Use "
    "neighbours of one size (neighbours.substitute, zero_out, answers), and treat the size as public"
)
SIZES_AGREE = (Relation.SUBSTITUTE, Relation.ZERO_OUT, Relation.ANSWERS, Relation.USERS_SUBSTITUTE, None)


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Numbers of calls."""

    warm_up: int = 50
    """Calls on each side of every pair before its first bet. Nothing is bet on them."""
    first_block: int = 100
    """The first calls of each pair, from which events are learned without a bet."""
    smallest_block: int = 50
    """The fewest calls of a pair in one turn."""
    largest_block: int = 4096
    """The most calls of a pair in one turn."""
    growth: float = 0.15
    """A block has this share of the calls of the pair so far."""
    per_pair: int = 2_000
    """The pool of pairs is smaller if the budget would give a pair fewer calls than this."""
    confirming_factor: int = 4
    """The measurement of a witness takes at most this multiple of the calls that the audit needed."""


CALLS = CallCounts()


class TimingRun:
    """State of a running audit of durations."""

    def __init__(self, request: Request) -> None:
        self.request = request
        _check_options(request.claim, request.neighbours, request.options)
        self.claim, self.neighbours, self.options = request.claim, request.neighbours, request.options
        self.entropy, self.deadline = request.entropy, request.deadline
        self.mechanism = as_mechanism(request.mechanism)
        noise, coins = (
            np.random.Generator(np.random.PCG64(seed_child(self.entropy, number)))
            for number in (SeedKey.TIMED_NOISE, SeedKey.TIMED_COINS)
        )
        self.watch = Stopwatch(self.mechanism, noise, coins)
        self.points = points_of(self.claim)
        self.bets = bet_sizes(self.options.samples)
        self.log_threshold = math.log(1.0 / self.options.alpha)
        self.messages: list[str] = [TIMING_LIMITATIONS]
        self.timeline: list[SettledBlock] = []
        self.trajectory: list[tuple[int, float]] = []
        self.calls, self.raised, self.best_lower = 0, 0, 0.0
        self.crossed = self.refuted = self.control_failed = False

    def result(self) -> Result:
        """Run the audit."""
        try:
            with noticed_interrupts():
                self.timed_pairs = self._pool()
        except KeyboardInterrupt:
            return self.request.nothing_drawn(self.log_threshold, self.messages)
        stopped_by = self._loop()
        if self.raised == self.calls > 0:
            plain = self.mechanism.resolve() if isinstance(self.mechanism, Named) else self.mechanism
            raise MechanismError(
                "The mechanism raised on every call, on both data sets, so there is nothing to time:\n\n"
                + traceback_of(plain, self.timed_pairs[0].copy, seed_child(self.entropy, SeedKey.TIMED_NOISE, 1))
            )
        return self._conclude(stopped_by)

    def _pool(self) -> list[TimedPair]:
        wanted = max(1, min(self.options.pairs, self.options.samples // CALLS.per_pair))
        deadline = self.options.pool_deadline(self.request.started)
        pairs = self.neighbours.pool(wanted, seed=self.entropy % 2**32, deadline=deadline)
        if passed(deadline) and not self.neighbours.named:
            self.messages.append(slow_pairs(len(pairs), wanted, self.options.seconds))
        even = [pair for pair in pairs if _size(pair.data) == _size(pair.neighbour)]
        if not even:
            shown = f"the pair {shorten(tuple(pairs[0]))} is refused" if pairs else "it yields no pair"
            raise InvalidArgument(f"neighbours={self.neighbours!r}, channel='timing': {shown}: {UNEQUAL}.")
        if len(even) < len(pairs):
            self.messages.append(f"{len(pairs) - len(even)} of {len(pairs)} pairs were left out: {UNEQUAL}.")
        return [
            TimedPair(
                number,
                pair,
                copy.deepcopy(pair.data),
                LabelledCalls(LabelWealth(self.points, self.bets)),
                LabelledCalls(LabelWealth(EQUALITY, self.bets)),
            )
            for number, pair in enumerate(even)
        ]

    def _loop(self) -> StoppedBy:
        options = self.options
        self.request.emit(
            Started(
                name=self.request.name,
                samples=options.samples,
                log_threshold=self.log_threshold,
                deadline=self.deadline,
            )
        )
        while True:
            timed_pair = next_pair(self.timed_pairs, self.points)
            # A turn is one call of the comparison and one of the control.
            turns = min(self._block(timed_pair), (options.samples - self.calls) // 2)
            if turns < 1:
                return StoppedBy.SAMPLES
            self.request.emit(PairChosen(number=timed_pair.number, pair=timed_pair.pair, size=turns))
            timed = self._time(timed_pair, turns)
            self.request.emit(OutputsDrawn(2 * len(timed)))
            self._settle(timed_pair, timed)
            if self.control_failed:
                return StoppedBy.CONTROL
            if self.refuted and options.until == "violation":
                return StoppedBy.VIOLATION
            if timed.cause is not None:
                self.messages.append(INTERRUPTED)
                return StoppedBy.INTERRUPT
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return StoppedBy.SECONDS

    def _block(self, timed_pair: TimedPair) -> int:
        seen = timed_pair.comparison.seen
        return (
            min(max(CALLS.smallest_block, math.ceil(CALLS.growth * seen)), CALLS.largest_block)
            if seen
            else CALLS.first_block
        )

    def _time(self, timed_pair: TimedPair, turns: int) -> Timed:
        pairs = [tuple(timed_pair.pair), (timed_pair.pair.data, timed_pair.copy)]
        if not timed_pair.comparison.seen:
            warm = self.watch.run(
                pairs, min(CALLS.warm_up, max(1, (self.options.samples - self.calls) // 8)), self.deadline
            )
            self.calls += 2 * len(warm)
            self.raised += warm.raised
            turns = min(turns, (self.options.samples - self.calls) // 2)
        return self.watch.run(pairs, turns, self.deadline)

    def _settle(self, timed_pair: TimedPair, timed: Timed) -> None:
        self.calls += 2 * len(timed)
        self.raised += timed.raised
        if len(timed):
            learning = not timed_pair.comparison.seen
            views = timed_pair.comparison.settle(timed.labels[:, 0], timed.nanoseconds[:, 0])
            if not learning:
                self.timeline.append(SettledBlock(timed_pair.number, views))
            timed_pair.control.settle(timed.labels[:, 1], timed.nanoseconds[:, 1])
        log_wealth = self._log_wealth(lambda one: one.comparison)
        self.trajectory.append((self.calls, log_wealth))
        self.request.emit(RoundSettled(samples=self.calls, log_wealth=log_wealth))
        self.control_failed |= self._log_wealth(lambda one: one.control) >= self.log_threshold
        self.crossed |= log_wealth >= self.log_threshold
        if self.crossed and not self.refuted:
            self.refuted = self._parameter_lower() >= self.claim.parameter

    def _log_wealth(self, stream: Callable[[TimedPair], LabelledCalls]) -> float:
        """Log of the capital of all pairs, which own equal parts of it."""
        parts = [stream(timed_pair).log_wealth for timed_pair in self.timed_pairs]
        return float(np.logaddexp.reduce(parts) - math.log(len(parts)))

    def _lower_bound(
        self, points_at: Callable[[float], Points], claimed: float, *, largest: float, tied: bool
    ) -> float:
        return lower_bound(
            self.timeline,
            points_at,
            claimed,
            log_threshold=self.log_threshold,
            shares=len(self.timed_pairs),
            bets=self.bets,
            largest=largest,
            tied=tied,
        )

    def _parameter_lower(self) -> float:
        self.best_lower = max(self.best_lower, parameter_lower(self.claim, self._lower_bound))
        return self.best_lower

    def _epsilon_lower(self, known: float) -> float:
        return known if claimed_epsilon(self.claim) is not None else epsilon_lower(self.claim, self._lower_bound)

    def _conclude(self, stopped_by: StoppedBy) -> Result:
        extent = self._extent()
        detectable = detectable_epsilon(self.claim, extent)
        verdict = self._verdict(detectable[HEADLINE], extent)
        shown = 0.0 if self.control_failed else self._parameter_lower()
        calls, witness = self.calls, None
        leader = max(
            self.timed_pairs, key=lambda timed_pair: (timed_pair.comparison.log_wealth, timed_pair.comparison.seen)
        )
        event = threshold_event(leader.comparison.labels, leader.comparison.nanoseconds, self.points)
        outputs = describe_times(leader.pair, leader.comparison.labels, leader.comparison.nanoseconds, event)
        if verdict is Verdict.VIOLATION and event is not None:
            witness, outputs, interrupted = self._witness(leader)
            if interrupted:
                self.messages.append(INTERRUPTED)
                stopped_by = StoppedBy.INTERRUPT
        return self.request.result(
            Findings(
                verdict=verdict,
                epsilon_lower=0.0 if self.control_failed else self._epsilon_lower(shown),
                parameter_lower=shown,
                detectable=detectable,
                samples=calls,
                pairs=sum(timed_pair.comparison.seen > 0 for timed_pair in self.timed_pairs),
                stopped_by=stopped_by,
                reproducible=False,
                log_threshold=self.log_threshold,
                messages=self.messages,
                trajectory=self.trajectory,
                witness=witness,
                samples_after=self.calls - calls,
                outputs=outputs,
            )
        )

    def _extent(self) -> Extent:
        seen = max(timed_pair.comparison.seen for timed_pair in self.timed_pairs)
        return Extent(
            per_side=max(seen // 2, 1),
            log_threshold=self.log_threshold,
            log_share=-math.log(len(self.timed_pairs)),
            samples=self.options.samples,
        )

    def _verdict(self, detectable: float, extent: Extent) -> Verdict:
        if self.control_failed:
            self.messages.append(
                "The control failed: the times of calls on D and on a copy of D differ, which is caused by the machine or the "
                "harness and not by the data. Run it again, or on a quieter machine, pinned to one core."
            )
            return Verdict.INCONCLUSIVE
        if self.refuted:
            return Verdict.VIOLATION
        lacking = self.request.lacking_power(detectable, extent, unit="calls (half of them are the control)")
        if lacking is not None:
            self.messages.append(lacking)
            return Verdict.INCONCLUSIVE
        return Verdict.NO_VIOLATION_FOUND

    def _witness(self, leader: TimedPair) -> tuple[Witness | None, dict[str, Any], bool]:
        """Measure again on fresh calls, see whether they refute the claim by themselves, and whether it was interrupted."""
        fresh = LabelledCalls(LabelWealth(self.points, self.bets))
        best, cause = 0.0, None
        least = max(leader.comparison.seen, 4 * CALLS.first_block)
        self.request.emit(ViolationFound(self.calls))
        self.request.emit(Confirming())
        while (
            cause is None
            and (fresh.seen < least or best < self.log_threshold)
            and fresh.seen < CALLS.confirming_factor * least
        ):
            if self.deadline is not None and time.monotonic() > self.deadline + 0.1 * (self.options.seconds or 0.0):
                break
            size = min(max(CALLS.first_block, math.ceil(CALLS.growth * fresh.seen)), CALLS.largest_block)
            timed = self.watch.run([tuple(leader.pair)], size)
            self.calls += len(timed)
            fresh.settle(timed.labels[:, 0], timed.nanoseconds[:, 0])
            best, cause = max(best, fresh.log_wealth), timed.cause
            self.request.emit(OutputsDrawn(len(timed)))
        event = threshold_event(leader.comparison.labels, leader.comparison.nanoseconds, self.points)
        if event is None or not 0 < int(fresh.labels.sum()) < fresh.labels.size:
            return None, {}, cause is not None
        outputs = describe_times(leader.pair, fresh.labels, fresh.nanoseconds, event)
        witness = timing_witness(
            leader.pair,
            event,
            fresh.labels,
            fresh.nanoseconds,
            claim=self.claim,
            delta=float(self.points.delta.min()),
            confirmed=best >= self.log_threshold,
            seed=self.entropy,
            origin=self.request.mechanism,
        )
        return witness, outputs, cause is not None


def _check_options(claim: Claim, neighbours: Neighbours, options: Options) -> None:
    if options.executor is not None:
        raise InvalidArgument(
            f"executor={options.executor!r} cannot be used with channel='timing': workers share caches, memory and cores with "
            "each other, so their times are neither independent nor comparable. Leave out executor= (and --workers)."
        )
    if options.timeout is not None:
        raise InvalidArgument(
            f"timeout={options.timeout!r} cannot be used with channel='timing': cutting off long calls would hide what is "
            "sought. Leave it out, and bound the whole audit with seconds=."
        )
    if isinstance(claim, MetricDP):
        raise InvalidArgument(
            f"claim={claim!r} cannot be used with channel='timing', where all pairs are tested against one epsilon. Audit pairs "
            "of one distance d against PureDP(epsilon * d)."
        )
    for what, relation in (("neighbours", neighbours.relation), ("claim", claim.relation)):
        if relation not in SIZES_AGREE:
            why = UNEQUAL if relation is not Relation.SECRETS else (
                "the data are drawn anew for every call, so their sizes may differ from call to call; fix the data"
            )  # fmt: skip
            given = neighbours if what == "neighbours" else claim
            raise InvalidArgument(
                f"{what}={given!r} of relation {relation.value!r} cannot be used with channel='timing': {why}."
            )


def _size(data: Any) -> Any:
    """The public size of a data set: the shape of an array or frame, the length of anything else that has one."""
    shape = getattr(data, "shape", None)
    if shape is not None:
        return tuple(shape)
    try:
        return len(data)
    except TypeError:
        return None
