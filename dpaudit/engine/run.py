"""The story of one audit: choose pairs, probe the mechanism, draw and settle rounds, and conclude."""

from __future__ import annotations

import itertools
import math
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dpaudit._util.hypothesis_bridge import noticed_interrupts
from dpaudit._util.validation import shorten
from dpaudit.engine.conclude import Conclusion
from dpaudit.engine.encoding.batch import Encoded, encode
from dpaudit.engine.encoding.suspects import Suspect, as_suspects
from dpaudit.engine.events import OutputsDrawn, PairChosen, RoundSettled, Started
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.options import Options
from dpaudit.engine.pairs import Pairs
from dpaudit.engine.request import INTERRUPTED, Request
from dpaudit.engine.sampling.blocks import (
    BLOCKS,
    BatchDependentContainer,
    BatchRaised,
    BlockPair,
    OutOfTime,
    Sampler,
    Task,
    TaskResult,
    TimedOut,
    check_containers,
)
from dpaudit.engine.sampling.executor import LostWorker, TaskRunner
from dpaudit.engine.sampling.probe import Probe, nothing_but_errors, probe
from dpaudit.engine.sampling.rounds import run_round
from dpaudit.engine.sampling.seeds import BlockSeeds, SeedKey, seed_child
from dpaudit.engine.search.attempt import Attempt, Shown
from dpaudit.engine.search.campaign import Campaign, Candidate, growth_of
from dpaudit.engine.search.confirmation import Confirmation
from dpaudit.engine.search.rounds import Budget, settle_rounds
from dpaudit.engine.single_releases import NotConfirmed, SingleReleases
from dpaudit.engine.views.float_bits import build_bit_views
from dpaudit.engine.views.learner import Builder, Settled, ViewBuilder
from dpaudit.mechanism import Raised, as_mechanism
from dpaudit.neighbours import Pair
from dpaudit.result.model import Channel, Result, StoppedBy

DEPENDENT_CALLS = (
    "Outputs of different calls differ more than outputs of one call: the mechanism keeps state, or outputs of one call depend "
    "on each other"
)
ONE_VALUE_PER_CALL = (
    "All outputs of one call are equal: one noise value is drawn for the whole batch. Draw one for each output, as in "
    "rng.laplace(scale=..., size=size)"
)


UNLIKE_SINGLE_RELEASES = (
    "Outputs that came many to a call refuted the claim, but single releases did not: outputs of one call depend on each other, "
    "or look different because of each other"
)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Numbers that shape a run, in samples unless they are shares or factors."""

    few_probed: int = 6
    """Outputs of each draw of a probe, where calls make one release each."""
    many_probed: int = 64
    """Outputs of each draw of a probe, where calls make several, and of a second one if the first saw too few values."""
    most_probed: int = 4
    """Pairs that are probed at most. On many pairs a mechanism may give the same output whatever it draws."""
    first_probe_share: float = 0.27
    """The largest share of the samples that the first probe may take."""
    probe_share: float = 0.05
    """The largest share of the samples, and of the samples drawn so far, that goes into further probes."""
    most_errors: int = 1000
    """Calls on each side that are made before a mechanism is said to raise on every call."""
    seconds_of_errors: float = 1.0
    """The longest time that these may take."""
    most_interrupts: int = 5
    """Attempts to conclude, each of which may be interrupted again."""
    last_round: float = 0.8
    """A round larger than this share of the remaining samples takes all of them."""
    per_pair_in_time: int = 40
    """Pairs are left out if the time, at the rate of the first calls, would give each of them fewer samples than this."""
    most_confirming: int = 2**62
    """Samples of a confirmation on single releases; it has limits of its own."""


LIMITS_OF_RUN = RunLimits()


class Run:
    """State of a running audit. It is the source of the rounds that it settles."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.options = request.options
        self.neighbours = request.neighbours
        self.entropy, self.deadline = request.entropy, request.deadline
        self.token = secrets.token_hex(8)
        mechanism = as_mechanism(request.mechanism)
        self.suspects = as_suspects(self.options.suspect)
        self.sampler = Sampler(mechanism, False, self.options.timeout, self.options.timeout_is_output, self.suspects)
        self.log_threshold = math.log(1.0 / self.options.alpha)
        self.build = builder_of(self.options, self.suspects)
        self.budget = Budget(self.options.samples)
        self.sampled: Candidate | None = None
        self.seconds_drawing = 0.0
        self.fastest = math.inf  # the least time of one output in any round, which waiting for others does not lengthen
        self.seconds_of_first_build = 0.0  # of a pair's views, the longest
        self.messages: list[str] = []
        self.pairs = Pairs(request, self.messages)
        self.sizes: tuple[int, ...] = ()  # blocks of the last round
        self.first_sides: list[int] = []  # the side that was drawn first, of each of them
        self.reproducible = False
        self.probe_settled = False  # shared random state would have been detected
        self.one_value_per_call = False
        self.runner = TaskRunner(self.options.executor)
        self.trajectory: list[tuple[int, float]] = []
        self.earlier: Shown | None = None  # what the attempt in batches has shown, if a second one followed
        self.confirmation: Confirmation | None = None  # of what larger calls have shown; None if it failed
        self.confirmed = not self.sampler.batched  # the evidence rests on releases drawn one call each
        self.confirming = Budget(LIMITS_OF_RUN.most_confirming)
        self.hurried = False  # interrupted while concluding: leave out what is not yet computed

    def result(self) -> Result:
        """Run the audit."""
        try:
            with noticed_interrupts():
                pairs, complete = self.pairs.pool()
        except KeyboardInterrupt:
            return self.request.nothing_drawn(self.log_threshold, self.messages)
        self._start(pairs, complete, raised_in_probe=1.0)
        try:
            return self._conclude(self._draw(pairs, complete))
        except KeyboardInterrupt:  # while bounds or a witness were computed, or for the second time
            self.hurried = True
        for _ in range(LIMITS_OF_RUN.most_interrupts):
            with suppress(KeyboardInterrupt):
                return self._conclude(self._cut_short(KeyboardInterrupt()))
        raise KeyboardInterrupt

    def _draw(self, pairs: Sequence[Pair], complete: bool) -> StoppedBy:
        try:
            return self._attempt()
        except (BatchRaised, TimedOut) as error:
            if self.phase.refuted and self.confirmed:
                # The verdict and its bound have all of alpha, so there is none for another attempt.
                self.messages.append(
                    f"The audit ended after the violation, because a call for several outputs failed ({error})."
                )
                return StoppedBy.VIOLATION
            if isinstance(error, BatchDependentContainer | NotConfirmed):
                self.messages.append(f"{error}; the audit started again one release at a time.")
            else:
                self.messages.append(
                    f"A call for several outputs raised ({error}); the audit started again one release at a time, where an "
                    "exception is an output."
                )
        dependent = self.phase.stateful or (self.confirmation is not None and not self.confirmed)
        # Outputs that depend on each other showed nothing. Otherwise two attempts give two bounds, of which the larger is
        # reported: each has half of alpha.
        if not dependent:
            self.phase.log_threshold, self.phase.best_lower = self.log_threshold + math.log(2.0), 0.0
            self.log_threshold += math.log(2.0)
            self.earlier = self.phase.shown(hurried=False)
        if self.confirmation is not None and not self.confirmed:
            self.log_threshold -= self.confirmation.log_left
            self.confirmation = None
        self.sampler = replace(self.sampler, one_by_one=True)
        self.confirmed = True
        self._start(pairs, complete, raised_in_probe=self.phase.raised_in_probe)
        return self._attempt()

    def _attempt(self) -> StoppedBy:
        try:
            self._probe()
            self._plan_by_time()
            return self._loop()
        except (KeyboardInterrupt, OutOfTime, TimedOut, LostWorker) as cause:
            if self._ends_batching(cause):
                raise
            return self._cut_short(cause)

    def _ends_batching(self, cause: BaseException | None) -> bool:
        """Return whether a call for several outputs gave none where each release alone would have one."""
        timed_out = isinstance(cause, TimedOut) and self.sampler.batched and self.options.timeout_is_output
        return timed_out or isinstance(cause, BatchRaised)

    def _start(self, pairs: Sequence[Pair], complete: bool, *, raised_in_probe: float) -> None:
        campaign = Campaign(
            self.request.claim,
            points_of(self.request.claim),
            pairs,
            samples=self.options.samples,
            complete=complete,
            build=self.build,
            for_bound=self.options.until == "budget",
            growth=growth_of(self.sampler),
        )
        self.phase = Attempt(self.request.claim, campaign, self.log_threshold, raised_in_probe)
        self.pairs.start_again()

    def _probe(self) -> None:
        """Look for shared random state on the first pairs, until the outputs of one vary enough to detect it.

        What is drawn is the first round of the pair, from which views are learned.
        """
        size = LIMITS_OF_RUN.many_probed if self.sampler.batched else LIMITS_OF_RUN.few_probed
        deadline = None if self.options.seconds is None else self.request.started + 0.1 * self.options.seconds
        for candidate in self.phase.campaign.candidates[: LIMITS_OF_RUN.most_probed]:
            share = LIMITS_OF_RUN.first_probe_share if candidate.number == 1 else LIMITS_OF_RUN.probe_share
            if self.budget.drawn + 4 * size > share * self.options.samples:
                return
            try:
                found = self._probed(candidate.pair, size, deadline)
            except OutOfTime:
                if candidate.number == 1:
                    self.messages.append("Calls are too slow for a probe of shared random state; none was made.")
                return
            self.phase.raised_in_probe = found.raised
            if found.raised == 1.0 and candidate.number == 1 and not self._answers():
                raise nothing_but_errors(self.sampler, candidate.pair, self.entropy)
            self.phase.watch.see(candidate.number, found.outputs)
            candidate.rounds += 1
            candidate.learner.settle(Settled((), found.outputs), size)
            if found.distinctive:
                return

    def _answers(self) -> bool:
        """Return whether any call gives an output: errors may be frequent, or belong to some of the pairs only."""
        stop = time.monotonic() + LIMITS_OF_RUN.seconds_of_errors
        pairs = itertools.cycle(candidate.pair for candidate in self.phase.campaign.candidates)
        calls = min(LIMITS_OF_RUN.most_errors, int(0.5 * LIMITS_OF_RUN.probe_share * self.options.samples))
        for call, pair in zip(range(calls), pairs, strict=False):
            for side, data in enumerate(pair):
                self.budget.drawn += 1
                with suppress(OutOfTime):
                    drawn = self.sampler.draw(data, 1, seed_child(self.entropy, 0, 0, 7, call, side), self.deadline)
                    if not isinstance(drawn[0], Raised):
                        self.budget.drawn += 1 - side  # as many outputs of both sides
                        return True
            if time.monotonic() > stop:
                break
        return False

    def _plan_by_time(self) -> None:
        """Leave out pairs for which there is no time, by the rate of the first calls."""
        if self.deadline is None or not self.budget.drawn:
            return
        affordable = self._samples_in_time() / LIMITS_OF_RUN.per_pair_in_time
        if affordable < len(self.phase.campaign.candidates):
            tried = max(1, int(affordable))
            self.phase.campaign.keep(tried)
            each = self.seconds_drawing / self.budget.drawn
            self.messages.append(
                f"Calls take {each:.2g} s each, so only {tried} pair(s) were tried; raise seconds= for more."
            )

    def _samples_in_time(self) -> float:
        """Return how many samples there is time for, at the rate so far; at most those that are left."""
        if self.deadline is None:
            return 2.0 * self.budget.left
        rate = self.budget.drawn / max(self.seconds_drawing, 1e-9)
        return min(2.0 * self.budget.left, rate * max(self.deadline - time.monotonic(), 0.0))

    def _probe_again(self, pair: Pair) -> None:
        """Probe with more outputs once these are a small share of those drawn, if a few did not vary enough."""
        size = LIMITS_OF_RUN.many_probed
        if self.probe_settled or 4 * size > LIMITS_OF_RUN.probe_share * self.budget.drawn:
            return
        with suppress(OutOfTime):
            self._probed(pair, size, self.deadline)
        self.probe_settled = True

    def _probed(self, pair: Pair, size: int, deadline: float | None) -> Probe:
        began = time.monotonic()
        found = probe(self.sampler, pair, self.entropy, size, deadline, features=True)
        self.seconds_drawing += time.monotonic() - began
        self.budget.drawn += found.drawn
        self.reproducible = found.reproducible
        self.runner.reproducible = found.reproducible and found.distinctive
        self.probe_settled = found.distinctive
        self.one_value_per_call = found.one_value_per_call
        self.pairs.check_untouched(pair)
        return found

    def _loop(self) -> StoppedBy:
        request = self.request
        request.emit(
            Started(
                name=request.name,
                samples=self.options.samples,
                log_threshold=self.log_threshold,
                deadline=self.deadline,
            )
        )
        with self.runner:
            for settled in settle_rounds(self.phase.campaign, self, self.budget):
                self._settled(settled.candidate, settled.log_wealth)
                self._probe_again(settled.candidate.pair)
                if self.sampler.batched and self.phase.stateful and not self.confirmed:
                    raise NotConfirmed(ONE_VALUE_PER_CALL if self.one_value_per_call else DEPENDENT_CALLS)
                if self.phase.refuted and not self.confirmed:
                    self._confirm()
                if self.phase.refuted and self.options.until == "violation":
                    return StoppedBy.VIOLATION
                if settled.complete and self._out_of_time():
                    return StoppedBy.SECONDS
                if settled.complete:
                    self.budget.drawn += self.pairs.propose(
                        self.phase.campaign, self.budget.drawn, self._samples_in_time, self._draw_for_sweep
                    )
        return StoppedBy.SAMPLES

    def _confirm(self) -> None:
        """Repeat on single releases what outputs of larger calls have shown; raise NotConfirmed if that fails."""
        self.confirmation = Confirmation(self.phase.campaign.leader())
        single = SingleReleases(self, self.confirmation, self.confirming)
        if not single.confirm(self.log_threshold):
            raise NotConfirmed(ONE_VALUE_PER_CALL if self.one_value_per_call else UNLIKE_SINGLE_RELEASES)
        self.confirmed = True
        single.lengthen()

    def next_size(self, candidate: Candidate, *, leading: bool, left: int) -> int:
        """Return the size of the next round; one that would leave little takes all that is left."""
        stop_at = math.inf if self.phase.campaign.for_bound else self.log_threshold
        size = candidate.next_size(leading=leading, log_threshold=stop_at)
        return left if size > LIMITS_OF_RUN.last_round * left else size

    def draw(self, candidate: Candidate, size: int) -> TaskResult:
        """Draw a round here or on the executor."""
        number = candidate.number + (SeedKey.ONE_BY_ONE if self.sampler.one_by_one else 0)
        return self.draw_round(candidate, size, self.sampler, number)

    def draw_round(
        self, candidate: Candidate, size: int, sampler: Sampler, number: int, *, fewest_kept: int = 0
    ) -> TaskResult:
        """Draw a round with a sampler and the seeds of ``number``, and hand back at least ``fewest_kept`` outputs."""
        self.sampled = candidate
        self.request.emit(PairChosen(number=candidate.number, pair=candidate.pair, size=size))
        sizes = sampler.blocks(size, timed=self.deadline is not None, width=candidate.learner.width)
        keep = max(candidate.learner.rows_to_keep(len(sizes)), -(-fewest_kept // len(sizes)))
        task = Task(
            sampler=sampler,
            data=candidate.pair.data,
            neighbour=candidate.pair.neighbour,
            views=candidate.learner.views,
            entropy=self.entropy,
            key=(number, candidate.rounds),
            first=0,
            sizes=(),
            keep=keep,
            features=candidate.learner.features,
            audit=f"{self.token}.{number}",  # by pair: what processes draw from one seed is alike on the same data only
        )
        ended = run_round(
            task,
            sizes,
            deadline=self.deadline,
            runner=self.runner,
            seconds_each=self.seconds_drawing / max(self.budget.drawn, 1),
            on_block=lambda outputs: self.request.emit(OutputsDrawn(outputs)),
        )
        if ended.cause is not None and self._ends_batching(ended.cause):
            # Nothing that was drawn up to the call that raised, and with it, is settled or drawn again.
            whole = sum(block.size for block in ended.blocks)
            self.budget.drawn += 2 * min(whole + sizes[0], size)
            raise ended.cause
        self.sizes, self._first_block = sizes, min(sizes[0], task.keep)
        seeds = BlockSeeds(self.entropy, task.key)
        self.first_sides = list(map(seeds.first_side, range(len(sizes))))
        return ended

    def check(self, candidate: Candidate, drawn: BlockPair) -> None:
        """Look for outputs that depend on each other, on their batch, or on the time."""
        self._check_containers(candidate, drawn)
        if not self.sampler.batched:
            candidate.timeline.add(self.sizes, drawn.size, drawn.learn, self.first_sides)
        self.phase.replays.compare(candidate.number, drawn.learn[0].first(self._first_block))
        self.seconds_drawing += drawn.seconds[0]
        self.fastest = min(self.fastest, drawn.seconds[0] / (2 * drawn.size))
        self.phase.watch.see(candidate.number, drawn.learn)
        self.phase.drift.compare_structures(candidate.number, drawn.learn)
        for (past, ordered), new in zip(candidate.learner.past_counts(), drawn.counts, strict=True):
            if ordered:
                self.phase.drift.compare(past, new[:, : past.shape[1]])

    def is_last(self, candidate: Candidate) -> bool:
        """Return whether there is no time to learn views from this round."""
        return self._out_of_time(candidate.learner.seconds_to_build or self.seconds_of_first_build)

    def _settled(self, candidate: Candidate, log_wealth: float) -> None:
        """Read the evidence after a round."""
        if candidate.rounds == 1:
            self.seconds_of_first_build = max(self.seconds_of_first_build, candidate.learner.seconds_to_build / 2.0)
        self.trajectory.append((self.budget.drawn, log_wealth))
        self.request.emit(RoundSettled(samples=self.budget.drawn, log_wealth=log_wealth))
        if candidate.rounds == 1:
            self.pairs.check_untouched(candidate.pair)
        if self.phase.read(log_wealth) and self.sampler.batched and not self.phase.replays.differed:
            self._check_replays(candidate)

    def _check_containers(self, candidate: Candidate, merged: BlockPair) -> None:
        """Settle nothing of a round in which an output looked different because of others that came with it.

        What was settled before is the beginning of a longer e-process, and stands. Where the container depends on the data
        set alone, each release by itself shows that too.
        """
        known = self.phase.containers.setdefault(candidate.number, set())
        known |= merged.containers
        try:
            check_containers(known)
        except BatchDependentContainer:
            self.budget.drawn += 2 * merged.size
            raise

    def _check_replays(self, candidate: Candidate) -> None:
        """Before an accusation, look at as many outputs as it rests on, where fewer were never seen to differ."""
        size = min(candidate.seen, BLOCKS.largest)
        with suppress(BatchRaised, TimedOut):
            for part in range(2):
                seed = seed_child(self.entropy, 0, 0, 6, part)
                drawn = self.sampler.draw(candidate.pair.neighbour, size, seed, self.deadline)
                self.phase.replays.compare(-candidate.number, encode(drawn))

    def _out_of_time(self, needed: float = 0.0) -> bool:
        return self.deadline is not None and time.monotonic() + needed >= self.deadline

    def _draw_for_sweep(self, data: object, size: int, number: int) -> Encoded:
        return encode(self.sampler.draw(data, size, seed_child(self.entropy, SeedKey.SWEEP, number), self.deadline))

    def _cut_short(self, cause: BaseException) -> StoppedBy:
        match cause:
            case KeyboardInterrupt():
                if INTERRUPTED not in self.messages:  # an interrupt may lead to a second conclusion
                    self.messages.append(INTERRUPTED)
                return StoppedBy.INTERRUPT
            case TimedOut():
                pair = (self.sampled or self.phase.campaign.candidates[0]).pair  # the probe uses the first one
                self.messages.append(
                    f"{cause} It was on the pair {shorten(tuple(pair), 200)} with seed {self.entropy}. Nothing "
                    "was drawn again: a retry would hide what made it slow."
                )
                return StoppedBy.TIMEOUT
            case LostWorker():
                self.messages.append(f"A worker was lost ({cause}). The result rests on what was settled before.")
                return StoppedBy.LOST_WORKER
            case OutOfTime() if str(cause):
                self.messages.append(str(cause))
        return StoppedBy.SECONDS

    def _conclude(self, stopped_by: StoppedBy) -> Result:
        for candidate in self.phase.campaign.candidates:
            if candidate.rounds:
                self.pairs.check_untouched(candidate.pair)
        return Conclusion(
            request=self.request,
            phase=self.phase,
            earlier=self.earlier,
            confirmation=self.confirmation if self.confirmed else None,
            confirmed=self.confirmed,
            confirming=self.confirming.drawn,
            sampler=self.sampler,
            build=self.build,
            drawn=self.budget.drawn,
            trajectory=tuple(self.trajectory),
            messages=self.messages,
            reproducible=self.reproducible,
            alike=self.runner.alike,
            fastest=self.fastest,
            seconds_of_first_build=self.seconds_of_first_build,
            hurried=self.hurried,
        ).result(stopped_by)


def builder_of(options: Options, suspects: Sequence[Suspect] = ()) -> Builder:
    """Return the function that builds views for the channel."""
    if options.channel is Channel.VALUE:
        return ViewBuilder(options.boosted, tuple(suspect.name for suspect in suspects))
    if options.channel is Channel.REPRESENTATION:
        return build_bit_views
    raise AssertionError(f"channel={options.channel.value!r} has a run of its own")
