"""One audit from beginning to end: probe, rounds, verdict, bounds, witness."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit._hypothesis import noticed_interrupts, passed, until
from dpaudit.claims import Claim, Verdict
from dpaudit.engine.crew import Crew, LostWorker
from dpaudit.engine.drift import Drift, Replays, Watch
from dpaudit.engine.evidence import Points
from dpaudit.engine.family import LARGEST_EPSILON, claim_delta, claimed_epsilon, points_of
from dpaudit.engine.learning import Builder, Settled, build_views
from dpaudit.engine.options import Options, slow_pairs
from dpaudit.engine.outputs import encode, same_to_each
from dpaudit.engine.power import HEADLINE, MASSES, detectable_epsilon, finding
from dpaudit.engine.probing import probe, traceback_of
from dpaudit.engine.progress import Progress
from dpaudit.engine.representation import MEANING, NO_FLOATS, all_whole, any_float, build_bit_views
from dpaudit.engine.result import Channel, Result, StoppedBy, Witness, as_plain
from dpaudit.engine.rounds import run_round
from dpaudit.engine.sampling import (
    CHANGED_INPUT,
    LARGEST_BLOCK,
    BatchRaised,
    BlockPair,
    Container,
    OutOfTime,
    Sampler,
    Task,
    TellingContainer,
    TimedOut,
    merge,
    seed_child,
)
from dpaudit.engine.search import Campaign, Candidate
from dpaudit.engine.shrink import Looker, find_witness, leading_event
from dpaudit.errors import DPAuditError, InvalidArgument, MechanismError
from dpaudit.mechanism import as_mechanism
from dpaudit.neighbours import Neighbours, Pair, check_relation
from dpaudit.validation import shorten
from dpaudit.values import fingerprint

PROBE_CHARGE = 264
MOST_PROBED = 16  # pairs: on many a mechanism says the same whatever it draws
MOST_FOR_PROBES = 0.05  # share of the samples
FEWEST_FOR_A_PROBE = 1000  # smaller budgets are spent on the audit alone
FIRST_PROPOSALS = 20_000  # samples after which promising pairs are edited,
PROPOSE_EVERY = 1.7  # again at every multiple by this factor,
PROPOSALS = 3  # so many at a time
FROM_ZERO = 0.1  # what must be detectable where the claim is epsilon = 0
INTERRUPTED = "Interrupted; this is the result so far."
UNLIKE = (
    "Processes drew different outputs from the same seed, so the result depends on who drew what. Something in the mechanism "
    "differs from process to process, such as the order of a set of words: start Python with PYTHONHASHSEED=0, sort what comes "
    "out of sets, or audit without executor= and --workers."
)
IMPATIENCE = 5  # interrupts of a conclusion that takes milliseconds, after which there is none
TYPES_NUMBER = 6_000_000  # names a seed
LAST_ROUND = 0.8  # of what is left; a round as large takes the rest too
MEANT_FOR_A_PAIR = 400  # samples below which a further pair in the pool is not worth its share


@dataclass(frozen=True, slots=True)
class Shown:
    """What the outputs settled so far show at the phase's share of alpha, and the pair that shows it best."""

    refuted: bool
    parameter_lower: float
    epsilon_lower: float
    stateful: bool
    leader: Candidate

    def joined(self, earlier: Shown | None) -> Shown:
        """With what an earlier phase showed, which stands: each phase has a share of alpha of its own."""
        if earlier is None:
            return self
        return Shown(
            self.refuted or earlier.refuted,
            max(self.parameter_lower, earlier.parameter_lower),
            max(self.epsilon_lower, earlier.epsilon_lower),
            self.stateful or earlier.stateful,
            self.leader if self.refuted or not earlier.refuted else earlier.leader,
        )


class Run:
    """State of a running audit."""

    def __init__(self, mechanism: Any, claim: Claim, neighbours: Neighbours, options: Options, name: str) -> None:
        if isinstance(claim, type) or not isinstance(claim, Claim):
            raise InvalidArgument(f"claim={shorten(claim)} must be a claim such as dpaudit.PureDP(1.0).")
        check_relation(claim, neighbours)
        self.source = mechanism
        self.claim = claim
        self.neighbours = neighbours
        self.options = options
        self.name = name
        self.entropy = secrets.randbits(63) if options.seed is None else options.seed
        self.token = secrets.token_hex(8)
        self.started = time.monotonic()
        # Bounds and report come on top of the sampling, and want a little of the time.
        self.deadline = None if options.seconds is None else self.started + 0.95 * options.seconds
        self.sampler = Sampler(as_mechanism(mechanism), False, options.timeout, options.timeout_is_output)
        # Where one call makes many releases, two phases own half of alpha each: if such a call raises, the audit starts
        # again one release at a time.
        self.log_threshold = math.log((2.0 if self.sampler.batched else 1.0) / options.alpha)
        self.build = builder_of(options)
        self.points = points_of(claim)
        self.sampled: Candidate | None = None
        self.best_lower = 0.0
        self.drawn = 0
        self.seconds_drawing = 0.0
        self.seconds_of_first_build = 0.0  # of a pair's views, the longest
        self.raised_in_probe = 0.0
        self.messages: list[str] = []
        self.reproducible = False
        self.crew = Crew(options.executor)
        self.trajectory: list[tuple[int, float]] = []
        self.earlier: Shown | None = None  # by the phase of calls for several outputs, once it ended
        self.hurried = False  # interrupted while concluding: what was not yet worked out is left out

    def result(self) -> Result:
        """Run the audit."""
        try:
            with noticed_interrupts():
                pairs, complete = self._pool()
        except KeyboardInterrupt:
            return self._nothing_drawn()
        self.prints = {id(pair): fingerprint(tuple(pair)) for pair in pairs}
        self._start(pairs, complete)
        try:
            return self._conclude(self._draw(pairs, complete))
        except KeyboardInterrupt:  # while bounds or a witness were worked out, or for the second time
            self.hurried = True
        for _ in range(IMPATIENCE):
            with suppress(KeyboardInterrupt):
                return self._conclude(self._cut_short(KeyboardInterrupt()))
        raise KeyboardInterrupt

    def _nothing_drawn(self) -> Result:
        return Result.of_nothing(
            masses=MASSES,
            name=self.name,
            claim=self.claim,
            delta=claim_delta(self.claim),
            alpha=self.options.alpha,
            seconds=time.monotonic() - self.started,
            channel=self.options.channel,
            relation=self.neighbours.relation,
            seed=self.entropy,
            threshold=self.log_threshold,
            messages=(*self.messages, INTERRUPTED),
        )

    def _draw(self, pairs: Sequence[Pair], complete: bool) -> StoppedBy:
        try:
            return self._phase(pairs)
        except TellingContainer as error:
            self.messages.append(f"{error}; the audit started again one release at a time.")
        except (BatchRaised, TimedOut) as error:
            self.messages.append(
                f"A call for several outputs raised ({error}); the audit started again one release at a time, where an "
                "exception is an output."
            )
        self.earlier = self._shown()
        self.sampler = replace(self.sampler, one_by_one=True)
        self._start(pairs, complete)
        return self._phase(pairs)

    def _phase(self, pairs: Sequence[Pair]) -> StoppedBy:
        try:
            self._probe(pairs)
            return self._loop()
        except (KeyboardInterrupt, TimedOut) as cause:  # in the probe, or while a round was being settled
            if self._ends_batching(cause):
                raise
            return self._cut_short(cause)

    def _ends_batching(self, cause: BaseException | None) -> bool:
        """Whether a call for several outputs gave none where each release alone would have one."""
        timed_out = isinstance(cause, TimedOut) and self.sampler.batched and self.options.timeout_is_output
        return timed_out or isinstance(cause, BatchRaised)

    def _pool(self) -> tuple[list[Pair], bool]:
        wanted = max(1, min(self.options.pairs, self.options.samples // MEANT_FOR_A_PAIR))
        deadline = self.options.pool_deadline(self.started)
        pairs = self.neighbours.pool(wanted, seed=self.entropy % 2**32, deadline=deadline)
        if not pairs:
            raise InvalidArgument(f"neighbours={self.neighbours!r} yields no pair; widen its strategy.")
        editable = False
        if len(pairs) == wanted and not passed(deadline):
            with until(deadline):
                editable = bool(self.neighbours.edits(pairs[0], np.random.default_rng(0), 1))
        if passed(deadline) and not self.neighbours.named:
            self.messages.append(slow_pairs(len(pairs), wanted, self.options.seconds))
            return pairs, True
        corners = {fingerprint(tuple(pair)) for pair in self.neighbours.corners()}
        tried = sum(fingerprint(tuple(pair)) in corners for pair in pairs)
        if len(corners) > tried:
            self.messages.append(
                f"Of {len(corners)} corner pairs only {tried} were tried; raise pairs= or samples= for all."
            )
        return pairs, not editable

    def _start(self, pairs: Sequence[Pair], complete: bool) -> None:
        self.campaign = Campaign(
            self.claim,
            self.points,
            pairs,
            samples=self.options.samples,
            complete=complete,
            build=self.build,
            for_bound=self.options.until == "budget",
        )
        self.best_lower = self.epsilon_known = 0.0
        self.drift = Drift()
        self.replays = Replays()
        self.containers: dict[int, set[Container]] = {}  # by pair
        self.watch = Watch()
        self.propose_at = FIRST_PROPOSALS
        self.crossed = False  # the wealth against the claim has passed the threshold
        self.refuted = False

    def _probe(self, pairs: Sequence[Pair]) -> None:
        """Look for shared random state on the first pairs, until the outputs of one vary enough to tell."""
        if self.options.samples < max(FEWEST_FOR_A_PROBE, self.drawn + PROBE_CHARGE):
            return
        deadline = None if self.options.seconds is None else self.started + 0.1 * self.options.seconds
        for number, pair in enumerate(pairs[:MOST_PROBED]):
            try:
                found = probe(self.sampler, pair.data, pair.neighbour, self.entropy, deadline)
            except OutOfTime:
                if number == 0:
                    self.messages.append("Calls are too slow for a probe of shared random state; none was made.")
                return
            self.reproducible = found.reproducible
            self.crew.reproducible = found.reproducible and found.telling
            self.raised_in_probe = found.raised
            self.drawn += PROBE_CHARGE  # a fixed amount: how much was drawn depends on the clock
            self._check_untouched(pair)
            if found.telling or self.drawn > MOST_FOR_PROBES * self.options.samples:
                return

    def _check_untouched(self, pair: Pair) -> None:
        if fingerprint(tuple(pair)) != self.prints[id(pair)]:
            raise MechanismError(CHANGED_INPUT)

    def _loop(self) -> StoppedBy:
        options = self.options
        stop_at = math.inf if self.campaign.for_bound else self.log_threshold
        shown = Progress(
            self.name, options.samples, self.log_threshold, wanted=options.progress, deadline=self.deadline
        )
        with shown as progress, self.crew:
            while True:
                if self.drawn >= self.propose_at:
                    self._propose()
                spent = self.drawn / options.samples
                candidate, leading = self.campaign.next_candidate(spent)
                left = (options.samples - self.drawn) // 2
                size = candidate.next_size(leading=leading, log_threshold=stop_at)
                if size > LAST_ROUND * left:
                    size = left
                if size < 1:
                    return StoppedBy.SAMPLES
                self.sampled = candidate
                sizes = self.sampler.blocks(size, timed=self.deadline is not None)
                task = self._task(candidate, len(sizes))
                ended = run_round(
                    task,
                    sizes,
                    deadline=self.deadline,
                    crew=self.crew,
                    seconds_each=self.seconds_drawing / max(self.drawn, 1),
                    on_block=progress.advance,
                )
                if ended.cause is not None and self._ends_batching(ended.cause):
                    # What was drawn up to the call that raised, and with it, is neither settled nor drawn again.
                    whole = sum(block.size for block in ended.blocks)
                    self.drawn += 2 * min(whole + sizes[0], size)
                    raise ended.cause
                if ended.blocks:
                    merged = merge(ended.blocks)
                    self._check_containers(candidate, merged)
                    self.replays.compare(candidate.number, merged.learn[0].head(min(sizes[0], task.keep)))
                    self._settle(candidate, merged, leading=leading, spent=spent)
                    progress.show(self.trajectory[-1][1])
                if self.refuted and options.until == "violation":
                    return StoppedBy.VIOLATION
                if ended.cause is not None:
                    return self._cut_short(ended.cause)
                if self._out_of_time():
                    return StoppedBy.SECONDS

    def _check_containers(self, candidate: Candidate, merged: BlockPair) -> None:
        """Settle nothing of a round in which an output looked different because of others that came with it.

        What was settled before is the beginning of a longer e-process, and stands. Where the container depends on the data
        set alone, each release by itself shows that too.
        """
        known = self.containers.setdefault(candidate.number, set())
        known |= merged.containers
        if not same_to_each(known):
            self.drawn += 2 * merged.size
            names = [f"{kind} of shape {shape}" if shape else kind for kind, shape in sorted(known)]
            raise TellingContainer(
                f"Calls for several outputs came as {' and as '.join(names)}, where an output may look different because of "
                "others that came with it"
            )

    def _check_replays(self, candidate: Candidate) -> None:
        """Before an accusation, look at as many outputs as it rests on, where fewer were never seen to differ."""
        size = min(candidate.seen, LARGEST_BLOCK)
        with suppress(BatchRaised, TimedOut):
            for part in range(2):
                seed = seed_child(self.entropy, 0, 0, 6, part)
                drawn = self.sampler.draw(candidate.pair.neighbour, size, seed, self.deadline)
                self.replays.compare(-candidate.number, encode(drawn))

    def _out_of_time(self, needed: float = 0.0) -> bool:
        return self.deadline is not None and time.monotonic() + needed >= self.deadline

    def _propose(self) -> None:
        """Edit the most promising pair; the shares of such proposals were set aside at the start."""
        self.propose_at = math.ceil(PROPOSE_EVERY * self.drawn)
        if not self.campaign.open_to_proposals:
            return
        rng = np.random.Generator(np.random.PCG64(seed_child(self.entropy, 5, len(self.campaign.candidates))))
        known = {fingerprint(tuple(candidate.pair)) for candidate in self.campaign.candidates}
        for pair in self.neighbours.edits(self.campaign.most_promising().pair, rng, PROPOSALS):
            if fingerprint(tuple(pair)) not in known:
                self.prints[id(self.campaign.propose(pair).pair)] = fingerprint(tuple(pair))

    def _task(self, candidate: Candidate, blocks: int) -> Task:
        learner = candidate.learner
        number = candidate.number + (1_000_000 if self.sampler.one_by_one else 0)
        return Task(
            sampler=self.sampler,
            data=candidate.pair.data,
            neighbour=candidate.pair.neighbour,
            views=learner.views,
            entropy=self.entropy,
            key=(number, candidate.rounds),
            first=0,
            sizes=(),
            keep=learner.wanted(blocks),
            audit=f"{self.token}.{number}",  # by pair: what processes draw from one seed is alike on the same data only
        )

    def _settle(self, candidate: Candidate, merged: BlockPair, *, leading: bool, spent: float) -> None:
        candidate.rounds += 1
        self.drawn += 2 * merged.size
        self.seconds_drawing += merged.seconds[0]
        self.watch.see(candidate.number, merged.learn)
        for (past, ordered), new in zip(candidate.learner.past_counts(), merged.counts, strict=True):
            if ordered:
                self.drift.compare(past, new[:, : past.shape[1]])
        records = candidate.learner.settle(
            Settled(merged.counts, merged.learn, merged.repeats),
            merged.size,
            last=self._out_of_time(candidate.learner.seconds_to_build or self.seconds_of_first_build),
        )
        if candidate.rounds == 1:
            self.seconds_of_first_build = max(self.seconds_of_first_build, candidate.learner.seconds_to_build / 2.0)
        log_wealth = self.campaign.settle(candidate, records, leading=leading, spent=spent)
        self.trajectory.append((self.drawn, log_wealth))
        if self.options.on_round is not None:
            self.options.on_round(self.drawn, log_wealth)
        if candidate.rounds == 1:
            self._check_untouched(candidate.pair)
        self.crossed |= log_wealth >= self.log_threshold
        if self.crossed and not self.refuted:
            # Verdict and bound agree: everything stronger than the claim must be refuted too, now or later.
            self.refuted = self._parameter_lower() >= self.claim.parameter
            if self.refuted and self.sampler.batched and not self.replays.differed:
                self._check_replays(candidate)

    def _cut_short(self, cause: BaseException) -> StoppedBy:
        match cause:
            case KeyboardInterrupt():
                self._tell(INTERRUPTED)
                return StoppedBy.INTERRUPT
            case TimedOut():
                pair = (self.sampled or self.campaign.candidates[0]).pair  # the probe is on the first one
                self.messages.append(
                    f"{cause} It was on the pair {shorten(tuple(pair), 200)} with seed {self.entropy}. Nothing "
                    "was drawn again: a retry would hide what made it slow."
                )
                return StoppedBy.TIMEOUT
            case LostWorker():
                self.messages.append(f"A worker was lost ({cause}). The result rests on what was settled before.")
                return StoppedBy.LOST_WORKER
        return StoppedBy.SECONDS

    def _parameter_lower(self) -> float:
        """The best bound of all looks: each of them lies below the maximum of the same wealth."""
        largest = LARGEST_EPSILON if claimed_epsilon(self.claim) is not None else 100.0 * self.claim.parameter
        now = self.campaign.lower_bound(
            lambda value: points_of(self.claim.at(value)),
            self.claim.parameter,
            self.log_threshold,
            largest=largest,
            tied=True,
        )
        self.best_lower = max(self.best_lower, now)
        return self.best_lower

    def _shown(self) -> Shown:
        """What this phase shows; where somebody waits, only what is known already."""
        if not self.hurried:
            self._parameter_lower()
        # An interrupt may have come after a round was booked and before it was read.
        crossed = self.crossed or any(r.log_wealth >= self.log_threshold for r in self.campaign.timeline)
        self.refuted |= crossed and self.best_lower >= self.claim.parameter
        stateful = self._stateful()
        # Draws that are not independent bound nothing.
        return Shown(
            self.refuted,
            0.0 if stateful else self.best_lower,
            0.0 if stateful else self._epsilon_lower(),
            stateful,
            self.campaign.leader(),
        )

    def _epsilon_lower(self) -> float:
        if claimed_epsilon(self.claim) is not None:
            return self.best_lower
        if not self.hurried:
            delta = claim_delta(self.claim)
            self.epsilon_known = self.campaign.lower_bound(
                lambda value: Points.of([(value, delta)]), 1.0, self.log_threshold, largest=LARGEST_EPSILON, tied=False
            )
        return self.epsilon_known

    def _conclude(self, stopped_by: StoppedBy) -> Result:
        for candidate in self.campaign.candidates:
            if candidate.rounds:
                self._check_untouched(candidate.pair)
        if self.watch.always_raised and not self._stateful():
            first = self.campaign.candidates[0].pair
            raise MechanismError(
                "The mechanism raised on every call, on both data sets, so there is nothing to audit:\n\n"
                + traceback_of(self.sampler.mechanism, first.data, seed_child(self.entropy, 0, 0, 2, 0))
            )
        shown = self._shown().joined(self.earlier)
        detectable = self._detectable()
        verdict = self._verdict(stopped_by, shown, detectable[HEADLINE])
        looker = Looker(self.sampler, self.claim, self.points, self.build, self.entropy, self._witness_deadline())
        witness: Witness | None = None
        outputs: dict[str, Any] = {}
        if verdict is Verdict.VIOLATION:
            witness, outputs = self._witness(looker, shown.leader)
        elif not self.hurried and not self._out_of_time(
            self.seconds_of_first_build - 0.05 * (self.options.seconds or 0.0)
        ):
            # A picture is not worth more time than there is, and to choose its event takes about as long as views.
            outputs = self._leading()
        return Result(
            name=self.name,
            claim=self.claim,
            verdict=verdict,
            epsilon_lower=shown.epsilon_lower,
            delta=claim_delta(self.claim),
            parameter_lower=shown.parameter_lower,
            alpha=self.options.alpha,
            samples=self.drawn,
            seconds=time.monotonic() - self.started,
            pairs=sum(candidate.rounds > 0 for candidate in self.campaign.candidates),
            channel=self.options.channel,
            relation=self.neighbours.relation,
            detectable_epsilon=detectable[HEADLINE],
            detectable=detectable,
            stopped_by=stopped_by,
            reproducible=self.reproducible and self.crew.alike,
            seed=self.entropy,
            witness=witness,
            messages=tuple(self.messages),
            trajectory=tuple(self.trajectory),
            threshold=self.log_threshold,
            samples_after=looker.drawn,
            outputs=as_plain(outputs),
        )

    def _detectable(self) -> dict[float, float]:
        most = max(self.campaign.candidates, key=lambda candidate: candidate.seen)
        return detectable_epsilon(
            self.claim,
            per_side=most.seen,
            log_threshold=self.log_threshold,
            log_share=self.campaign.log_stake(most),
            samples=self.options.samples,
            hidden=finding(most.learner),
        )

    def _stateful(self) -> bool:
        """Whether outputs changed as the audit went on."""
        probed = self.options.samples >= FEWEST_FOR_A_PROBE
        exhausted = self.watch.exhausted or (probed and self.watch.always_raised and self.raised_in_probe < 1.0)
        return self.drift.found or exhausted

    def _tell(self, message: str) -> None:
        """Say something once, though an interrupt may have it concluded twice."""
        if message not in self.messages:
            self.messages.append(message)

    def _verdict(self, stopped_by: StoppedBy, shown: Shown, detectable: float) -> Verdict:
        if self.reproducible and not self.crew.alike:
            self._tell(UNLIKE)
        if shown.stateful and (self.crew.alike or not self.reproducible):
            self._tell(
                "Early and late outputs on the same data set differ: the mechanism keeps state (a budget accountant, a cache, "
                "a seed), so its releases are not independent. Audit dpaudit.fresh(make), which makes a new one each time."
            )
        if shown.stateful:
            return Verdict.INCONCLUSIVE
        if shown.refuted:
            if self.watch.constant:
                self._tell(
                    "Every release on the same data gave the same output: the mechanism is deterministic, sets a fixed seed in "
                    "every call (np.random.seed, default_rng(0)), or remembers its first answer. If it keeps state by design, "
                    "audit dpaudit.fresh(make), which makes a new one each time."
                )
            if self.options.channel is Channel.REPRESENTATION:
                self._tell(NO_FLOATS if self._lacks_floats() else MEANING)
            return Verdict.VIOLATION
        for message in self.watch.blind_spots():
            self._tell(message)
        if stopped_by in (StoppedBy.TIMEOUT, StoppedBy.LOST_WORKER):
            return Verdict.INCONCLUSIVE
        if self.options.channel is Channel.REPRESENTATION and self._lacks_floats():
            self._tell(NO_FLOATS)
            return Verdict.INCONCLUSIVE
        claimed = float(self.points.epsilon.max())
        allowed = claimed * self.options.power if claimed > 0.0 else FROM_ZERO
        if detectable > allowed:
            caught = (
                f"would be caught from epsilon {detectable:.3g} on"
                if math.isfinite(detectable)
                else "would not be caught, however much it tells"
            )
            self._tell(
                f"Too few samples: an event of probability {HEADLINE} {caught}, but power={self.options.power:g} asks for "
                f"epsilon {allowed:.3g}. Give more samples, or a larger power=."
            )
            return Verdict.INCONCLUSIVE
        return Verdict.NO_VIOLATION_FOUND

    def _lacks_floats(self) -> bool:
        """Whether the outputs hold no floats. Encoded ones do not tell whole floats from integers, so a few are drawn."""
        seen = [
            batch
            for candidate in self.campaign.candidates
            if candidate.learner.keeps
            for batch in candidate.learner.kept()
        ]
        if self.hurried or not seen or not all(map(all_whole, seen)):
            return False
        seed, deadline = seed_child(self.entropy, TYPES_NUMBER), self._witness_deadline()
        try:
            return not any(
                any_float(self.sampler.draw(data, 8, seed, deadline)) for data in self.campaign.leader().pair
            )
        except (TimedOut, DPAuditError, OutOfTime):
            return False

    def _witness(self, looker: Looker, leader: Candidate) -> tuple[Witness | None, dict[str, Any]]:
        if self.hurried:
            return None, {}
        witness, outputs = find_witness(
            looker,
            self.neighbours,
            leader.pair,
            leader.learner,
            spent=2 * leader.seen,
            alpha=self.options.alpha,
            shrink=self.options.shrink,
            origin=self.source,
        )
        if witness is None:
            self._tell("No witness: time ran out, or a call failed, while a small example was being sought.")
        return witness, outputs

    def _leading(self) -> dict[str, Any]:
        most = max(self.campaign.candidates, key=lambda candidate: candidate.seen)
        # Against the claim itself a mechanism that keeps it has nothing to show, and the choice would be noise.
        shown = [value for value in (self.claim.parameter, self.best_lower) if value > 0.0]
        half = points_of(self.claim.at(min(shown) / 2.0)) if shown else self.points
        return leading_event(most.pair, most.learner, half) if most.learner.keeps else {}

    def _witness_deadline(self) -> float | None:
        """A tenth of the time budget is there for the witness even where the violation came late."""
        if self.deadline is None or self.options.seconds is None:
            return None
        return max(self.deadline, time.monotonic()) + 0.1 * self.options.seconds


def builder_of(options: Options) -> Builder:
    """How views are made for the channel that is watched."""
    if options.channel is Channel.VALUE:
        return partial(build_views, boosted=options.boosted)
    if options.channel is Channel.REPRESENTATION:
        return build_bit_views
    raise AssertionError(f"channel={options.channel.value!r} has a run of its own")
