"""The channel ``timing``: does the duration of a call tell the data apart?

A duration is an output like any other, seen by whoever waits for the answer. But durations are not independent draws: caches,
frequencies and other processes make them drift. So every call has a fair-coin label, and bets are on the label given the
duration (``labels`` has the proof); data are copied afresh for every call and sizes must agree (``clock``); and next to the
comparison of D with D', call by call, runs a control: D against a copy of D, with coins of its own. If the control can tell
the copy from the original, against epsilon = 0 and at the same alpha, the machine or the harness breaks the symmetry that
the proof needs, and the audit is INCONCLUSIVE whatever the comparison says. One process only: a second one would share
caches with the first.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit._hypothesis import noticed_interrupts, passed
from dpaudit.claims import Claim, Relation, Verdict
from dpaudit.engine.brief import INTERRUPTED, Brief
from dpaudit.engine.clock import Stopwatch, Timed
from dpaudit.engine.durations import describe_times, threshold_event, timing_witness
from dpaudit.engine.evidence import Points, bet_sizes
from dpaudit.engine.family import LARGEST_EPSILON, claim_delta, claimed_epsilon, points_of
from dpaudit.engine.labels import LabelWealth, Settled, lower_bound
from dpaudit.engine.options import Options, slow_pairs
from dpaudit.engine.power import HEADLINE, detectable_epsilon
from dpaudit.engine.probing import traceback_of
from dpaudit.engine.progress import Progress, Seeking
from dpaudit.engine.result import Channel, Result, StoppedBy, Witness, as_plain
from dpaudit.engine.rivals import Rival, Stream, next_rival
from dpaudit.engine.sampling import seed_child
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import Named, as_mechanism
from dpaudit.neighbours import Neighbours
from dpaudit.validation import shorten

WARM_UP = 50  # calls on each side of every pair before its first bet, on which nothing is ever bet
FIRST_BLOCK = 100  # calls of each pair that are only learned from
SMALLEST_BLOCK, LARGEST_BLOCK = 50, 4096
GROWTH = 0.15
MEANT_FOR_A_PAIR = 2_000  # calls below which a further pair is not worth its share
CONFIRMING = 4  # times the calls that the audit needed
FROM_ZERO = 0.1
EQUALITY = Points.of([(0.0, 0.0)])
NOISE_NUMBER, COIN_NUMBER = 6_000_000, 6_000_001  # names of the seeds

LIMITS = (
    "Timing stands outside the promises of the other channels: a clock cannot be replayed, so the result is not reproducible, "
    "only one process is used, and alpha holds for the labels (fair coins) and a machine that treats equal data alike, which "
    "the concurrent control of D against a copy of D watches but cannot prove. It sees this machine, this interpreter and this "
    "load; differences below the clock's noise stay unseen, and nothing found is no sign of constant time."
)
UNEQUAL = (
    "their sizes differ, and so does the time to read them: every mechanism would be refuted, which says nothing about it. Use "
    "neighbours of one size (neighbours.substitute, zero_out, answers), and treat the size as public"
)
SIZES_AGREE = (Relation.SUBSTITUTE, Relation.ZERO_OUT, Relation.ANSWERS, Relation.USERS_SUBSTITUTE, None)


class TimingRun:
    """State of a running audit of the clock."""

    def __init__(self, mechanism: Any, claim: Claim, neighbours: Neighbours, options: Options, name: str) -> None:
        self.brief = Brief.of(mechanism, claim, neighbours, options, name)
        _check_options(claim, neighbours, options)
        self.claim, self.neighbours, self.options = claim, neighbours, options
        self.entropy, self.deadline = self.brief.entropy, self.brief.deadline
        self.mechanism = as_mechanism(mechanism)
        noise, coins = (
            np.random.Generator(np.random.PCG64(seed_child(self.entropy, number)))
            for number in (NOISE_NUMBER, COIN_NUMBER)
        )
        self.watch = Stopwatch(self.mechanism, noise, coins)
        self.points = points_of(claim)
        self.bets = bet_sizes(options.samples)
        self.log_threshold = math.log(1.0 / options.alpha)
        self.messages: list[str] = [LIMITS]
        self.timeline: list[Settled] = []
        self.trajectory: list[tuple[int, float]] = []
        self.calls, self.raised, self.best_lower = 0, 0, 0.0
        self.crossed = self.refuted = self.control_failed = False

    def result(self) -> Result:
        """Run the audit."""
        try:
            with noticed_interrupts():
                self.rivals = self._pool()
        except KeyboardInterrupt:
            return self.brief.nothing_drawn(self.log_threshold, self.messages)
        stopped_by = self._loop()
        if self.raised == self.calls > 0:
            plain = self.mechanism.resolve() if isinstance(self.mechanism, Named) else self.mechanism
            raise MechanismError(
                "The mechanism raised on every call, on both data sets, so there is nothing to time:\n\n"
                + traceback_of(plain, self.rivals[0].copy, seed_child(self.entropy, NOISE_NUMBER, 1))
            )
        return self._conclude(stopped_by)

    def _pool(self) -> list[Rival]:
        wanted = max(1, min(self.options.pairs, self.options.samples // MEANT_FOR_A_PAIR))
        deadline = self.options.pool_deadline(self.brief.started)
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
            Rival(
                number,
                pair,
                copy.deepcopy(pair.data),
                Stream(LabelWealth(self.points, self.bets)),
                Stream(LabelWealth(EQUALITY, self.bets)),
            )
            for number, pair in enumerate(even)
        ]

    def _loop(self) -> StoppedBy:
        options = self.options
        shown = Progress(
            self.brief.name, options.samples, self.log_threshold, wanted=options.progress, deadline=self.deadline
        )
        with shown as progress:
            while True:
                rival = next_rival(self.rivals, self.points)
                # A turn is one call of the comparison and one of the control.
                turns = min(self._block(rival), (options.samples - self.calls) // 2)
                if turns < 1:
                    return StoppedBy.SAMPLES
                timed = self._time(rival, turns)
                progress.advance(2 * len(timed))
                self._settle(rival, timed)
                progress.show(self.trajectory[-1][1])
                if self.control_failed:
                    return StoppedBy.CONTROL
                if self.refuted and options.until == "violation":
                    return StoppedBy.VIOLATION
                if timed.cause is not None:
                    self.messages.append(INTERRUPTED)
                    return StoppedBy.INTERRUPT
                if self.deadline is not None and time.monotonic() >= self.deadline:
                    return StoppedBy.SECONDS

    def _block(self, rival: Rival) -> int:
        seen = rival.comparison.seen
        return min(max(SMALLEST_BLOCK, math.ceil(GROWTH * seen)), LARGEST_BLOCK) if seen else FIRST_BLOCK

    def _time(self, rival: Rival, turns: int) -> Timed:
        pairs = [tuple(rival.pair), (rival.pair.data, rival.copy)]
        if not rival.comparison.seen:
            warm = self.watch.run(pairs, min(WARM_UP, max(1, (self.options.samples - self.calls) // 8)), self.deadline)
            self.calls += 2 * len(warm)
            self.raised += warm.raised
            turns = min(turns, (self.options.samples - self.calls) // 2)
        return self.watch.run(pairs, turns, self.deadline)

    def _settle(self, rival: Rival, timed: Timed) -> None:
        self.calls += 2 * len(timed)
        self.raised += timed.raised
        if len(timed):
            learning = not rival.comparison.seen
            views = rival.comparison.settle(timed.labels[:, 0], timed.nanoseconds[:, 0])
            if not learning:
                self.timeline.append(Settled(rival.number, views))
            rival.control.settle(timed.labels[:, 1], timed.nanoseconds[:, 1])
        log_wealth = self._log_wealth(lambda one: one.comparison)
        self.trajectory.append((self.calls, log_wealth))
        if self.options.on_round is not None:
            self.options.on_round(self.calls, log_wealth)
        self.control_failed |= self._log_wealth(lambda one: one.control) >= self.log_threshold
        self.crossed |= log_wealth >= self.log_threshold
        if self.crossed and not self.refuted:
            self.refuted = self._parameter_lower() >= self.claim.parameter

    def _log_wealth(self, stream: Callable[[Rival], Stream]) -> float:
        """Log of the capital of all pairs, which own equal parts of it."""
        parts = [stream(rival).log_wealth for rival in self.rivals]
        return float(np.logaddexp.reduce(parts) - math.log(len(parts)))

    def _bound(self, points_at: Callable[[float], Points], claimed: float, largest: float, *, tied: bool) -> float:
        return lower_bound(
            self.timeline,
            points_at,
            claimed,
            log_threshold=self.log_threshold,
            shares=len(self.rivals),
            bets=self.bets,
            largest=largest,
            tied=tied,
        )

    def _parameter_lower(self) -> float:
        largest = LARGEST_EPSILON if claimed_epsilon(self.claim) is not None else 100.0 * self.claim.parameter
        now = self._bound(lambda value: points_of(self.claim.at(value)), self.claim.parameter, largest, tied=True)
        self.best_lower = max(self.best_lower, now)
        return self.best_lower

    def _epsilon_lower(self, parameter_lower: float) -> float:
        if claimed_epsilon(self.claim) is not None:
            return parameter_lower
        delta = claim_delta(self.claim)
        return self._bound(lambda value: Points.of([(value, delta)]), 1.0, LARGEST_EPSILON, tied=False)

    def _conclude(self, stopped_by: StoppedBy) -> Result:
        detectable = self._detectable()
        verdict = self._verdict(detectable[HEADLINE])
        parameter_lower = 0.0 if self.control_failed else self._parameter_lower()
        calls, witness = self.calls, None
        leader = max(self.rivals, key=lambda rival: (rival.comparison.log_wealth, rival.comparison.seen))
        event = threshold_event(leader.comparison.labels, leader.comparison.nanoseconds, self.points)
        outputs = describe_times(leader.pair, leader.comparison.labels, leader.comparison.nanoseconds, event)
        if verdict is Verdict.VIOLATION and event is not None:
            witness, outputs, interrupted = self._witness(leader)
            if interrupted:
                self.messages.append(INTERRUPTED)
                stopped_by = StoppedBy.INTERRUPT
        return Result(
            name=self.brief.name,
            claim=self.claim,
            verdict=verdict,
            epsilon_lower=0.0 if self.control_failed else self._epsilon_lower(parameter_lower),
            delta=claim_delta(self.claim),
            parameter_lower=parameter_lower,
            alpha=self.options.alpha,
            samples=calls,
            seconds=time.monotonic() - self.brief.started,
            pairs=sum(rival.comparison.seen > 0 for rival in self.rivals),
            channel=Channel.TIMING,
            relation=self.neighbours.relation,
            detectable_epsilon=detectable[HEADLINE],
            detectable=detectable,
            stopped_by=stopped_by,
            reproducible=False,
            seed=self.entropy,
            witness=witness,
            messages=tuple(self.messages),
            trajectory=tuple(self.trajectory),
            threshold=self.log_threshold,
            samples_after=self.calls - calls,
            outputs=as_plain(outputs),
        )

    def _detectable(self) -> dict[float, float]:
        seen = max(rival.comparison.seen for rival in self.rivals)
        return detectable_epsilon(
            self.claim,
            per_side=max(seen // 2, 1),
            log_threshold=self.log_threshold,
            log_share=-math.log(len(self.rivals)),
            samples=self.options.samples,
        )

    def _verdict(self, detectable: float) -> Verdict:
        if self.control_failed:
            self.messages.append(
                "The control failed: calls on D and on a copy of D could be told apart by their times, so what differs is the "
                "machine or the harness, not the data. Run it on a quieter machine, pinned to one core, or once more."
            )
            return Verdict.INCONCLUSIVE
        if self.refuted:
            return Verdict.VIOLATION
        claimed = float(self.points.epsilon.max())
        allowed = claimed * self.options.power if claimed > 0.0 else FROM_ZERO
        if detectable > allowed:
            self.messages.append(
                f"Too few calls: an event of probability {HEADLINE} would be caught from epsilon {detectable:.3g} on, but "
                f"power={self.options.power:g} asks for {allowed:.3g}. Give more samples or seconds (half of the calls are the "
                "control), or a larger power=."
            )
            return Verdict.INCONCLUSIVE
        return Verdict.NO_VIOLATION_FOUND

    def _witness(self, leader: Rival) -> tuple[Witness | None, dict[str, Any], bool]:
        """Measure again on fresh calls, see whether they refute the claim by themselves, and whether it was interrupted."""
        fresh = Stream(LabelWealth(self.points, self.bets))
        best, cause = 0.0, None
        least = max(leader.comparison.seen, 4 * FIRST_BLOCK)
        with Seeking(self.brief.name, wanted=self.options.progress) as seeking:
            seeking.confirming()
            while (
                cause is None and (fresh.seen < least or best < self.log_threshold) and fresh.seen < CONFIRMING * least
            ):
                if self.deadline is not None and time.monotonic() > self.deadline + 0.1 * (self.options.seconds or 0.0):
                    break
                size = min(max(FIRST_BLOCK, math.ceil(GROWTH * fresh.seen)), LARGEST_BLOCK)
                timed = self.watch.run([tuple(leader.pair)], size)
                self.calls += len(timed)
                fresh.settle(timed.labels[:, 0], timed.nanoseconds[:, 0])
                best, cause = max(best, fresh.log_wealth), timed.cause
                seeking.refresh()
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
            origin=self.brief.mechanism,
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
