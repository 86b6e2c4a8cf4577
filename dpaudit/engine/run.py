"""One audit from beginning to end: pairs, probe, rounds, and how it ends. What is said of it is the ``conclusion``."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit._hypothesis import noticed_interrupts, passed, until
from dpaudit.claims import Claim
from dpaudit.engine.brief import INTERRUPTED, Brief
from dpaudit.engine.conclusion import Conclusion
from dpaudit.engine.crew import Crew, LostWorker
from dpaudit.engine.family import points_of
from dpaudit.engine.learning import Builder, Settled, build_views
from dpaudit.engine.options import Options, slow_pairs
from dpaudit.engine.outputs import encode
from dpaudit.engine.phase import Phase, Shown
from dpaudit.engine.probing import probe
from dpaudit.engine.progress import Progress
from dpaudit.engine.representation import build_bit_views
from dpaudit.engine.result import Channel, Result, StoppedBy
from dpaudit.engine.rounds import run_round
from dpaudit.engine.sampling import (
    CHANGED_INPUT,
    LARGEST_BLOCK,
    BatchRaised,
    BlockPair,
    OutOfTime,
    Sampler,
    Task,
    TellingContainer,
    TimedOut,
    check_containers,
    merge,
    seed_child,
)
from dpaudit.engine.search import Campaign, Candidate
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import as_mechanism
from dpaudit.neighbours import Neighbours, Pair
from dpaudit.validation import shorten
from dpaudit.values import fingerprint

PROBE_CHARGE = 264
MOST_PROBED = 16  # pairs: on many a mechanism says the same whatever it draws
MOST_FOR_PROBES = 0.05  # share of the samples
FEWEST_FOR_A_PROBE = 1000  # smaller budgets are spent on the audit alone
FIRST_PROPOSALS = 20_000  # samples after which promising pairs are edited,
PROPOSE_EVERY = 1.7  # again at every multiple by this factor,
PROPOSALS = 3  # so many at a time
IMPATIENCE = 5  # interrupts of a conclusion that takes milliseconds, after which there is none
LAST_ROUND = 0.8  # of what is left; a round as large takes the rest too
MEANT_FOR_A_PAIR = 400  # samples below which a further pair in the pool is not worth its share


class Run:
    """State of a running audit."""

    def __init__(self, mechanism: Any, claim: Claim, neighbours: Neighbours, options: Options, name: str) -> None:
        self.brief = Brief.of(mechanism, claim, neighbours, options, name)
        self.options = options
        self.neighbours = neighbours
        self.entropy, self.deadline = self.brief.entropy, self.brief.deadline
        self.token = secrets.token_hex(8)
        self.sampler = Sampler(as_mechanism(mechanism), False, options.timeout, options.timeout_is_output)
        # Where one call makes many releases, two phases own half of alpha each: if such a call raises, the audit starts
        # again one release at a time.
        self.log_threshold = math.log((2.0 if self.sampler.batched else 1.0) / options.alpha)
        self.build = builder_of(options)
        self.sampled: Candidate | None = None
        self.drawn = 0
        self.seconds_drawing = 0.0
        self.seconds_of_first_build = 0.0  # of a pair's views, the longest
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
            return self.brief.nothing_drawn(self.log_threshold, self.messages)
        self.prints = {id(pair): fingerprint(tuple(pair)) for pair in pairs}
        probed = self.options.samples >= FEWEST_FOR_A_PROBE
        self._start(pairs, complete, raised_in_probe=0.0 if probed else 1.0)
        try:
            return self._conclude(self._draw(pairs, complete))
        except KeyboardInterrupt:  # while bounds or a witness were worked out, or for the second time
            self.hurried = True
        for _ in range(IMPATIENCE):
            with suppress(KeyboardInterrupt):
                return self._conclude(self._cut_short(KeyboardInterrupt()))
        raise KeyboardInterrupt

    def _draw(self, pairs: Sequence[Pair], complete: bool) -> StoppedBy:
        try:
            return self._one_phase(pairs)
        except TellingContainer as error:
            self.messages.append(f"{error}; the audit started again one release at a time.")
        except (BatchRaised, TimedOut) as error:
            self.messages.append(
                f"A call for several outputs raised ({error}); the audit started again one release at a time, where an "
                "exception is an output."
            )
        self.earlier = self.phase.shown(hurried=False)
        self.sampler = replace(self.sampler, one_by_one=True)
        self._start(pairs, complete, raised_in_probe=self.phase.raised_in_probe)
        return self._one_phase(pairs)

    def _one_phase(self, pairs: Sequence[Pair]) -> StoppedBy:
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
        deadline = self.options.pool_deadline(self.brief.started)
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

    def _start(self, pairs: Sequence[Pair], complete: bool, *, raised_in_probe: float) -> None:
        campaign = Campaign(
            self.brief.claim,
            points_of(self.brief.claim),
            pairs,
            samples=self.options.samples,
            complete=complete,
            build=self.build,
            for_bound=self.options.until == "budget",
        )
        self.phase = Phase(self.brief.claim, campaign, self.log_threshold, raised_in_probe)
        self.propose_at = FIRST_PROPOSALS

    def _probe(self, pairs: Sequence[Pair]) -> None:
        """Look for shared random state on the first pairs, until the outputs of one vary enough to tell."""
        if self.options.samples < max(FEWEST_FOR_A_PROBE, self.drawn + PROBE_CHARGE):
            return
        deadline = None if self.options.seconds is None else self.brief.started + 0.1 * self.options.seconds
        for number, pair in enumerate(pairs[:MOST_PROBED]):
            try:
                found = probe(self.sampler, pair.data, pair.neighbour, self.entropy, deadline)
            except OutOfTime:
                if number == 0:
                    self.messages.append("Calls are too slow for a probe of shared random state; none was made.")
                return
            self.reproducible = found.reproducible
            self.crew.reproducible = found.reproducible and found.telling
            self.phase.raised_in_probe = found.raised
            self.drawn += PROBE_CHARGE  # a fixed amount: how much was drawn depends on the clock
            self._check_untouched(pair)
            if found.telling or self.drawn > MOST_FOR_PROBES * self.options.samples:
                return

    def _check_untouched(self, pair: Pair) -> None:
        if fingerprint(tuple(pair)) != self.prints[id(pair)]:
            raise MechanismError(CHANGED_INPUT)

    def _loop(self) -> StoppedBy:
        options = self.options
        stop_at = math.inf if self.phase.campaign.for_bound else self.log_threshold
        shown = Progress(
            self.brief.name, options.samples, self.log_threshold, wanted=options.progress, deadline=self.deadline
        )
        with shown as progress, self.crew:
            while True:
                if self.drawn >= self.propose_at:
                    self._propose()
                spent = self.drawn / options.samples
                candidate, leading = self.phase.campaign.next_candidate(spent)
                left = (options.samples - self.drawn) // 2
                size = candidate.next_size(leading=leading, log_threshold=stop_at)
                if size > LAST_ROUND * left:
                    size = left
                if size < 1:
                    return StoppedBy.SAMPLES
                self.sampled = candidate
                sizes = self.sampler.blocks(size, timed=self.deadline is not None, width=candidate.learner.width)
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
                    self.phase.replays.compare(candidate.number, merged.learn[0].head(min(sizes[0], task.keep)))
                    self._settle(candidate, merged, leading=leading, spent=spent)
                    progress.show(self.trajectory[-1][1])
                if self.phase.refuted and options.until == "violation":
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
        known = self.phase.containers.setdefault(candidate.number, set())
        known |= merged.containers
        try:
            check_containers(known)
        except TellingContainer:
            self.drawn += 2 * merged.size
            raise

    def _check_replays(self, candidate: Candidate) -> None:
        """Before an accusation, look at as many outputs as it rests on, where fewer were never seen to differ."""
        size = min(candidate.seen, LARGEST_BLOCK)
        with suppress(BatchRaised, TimedOut):
            for part in range(2):
                seed = seed_child(self.entropy, 0, 0, 6, part)
                drawn = self.sampler.draw(candidate.pair.neighbour, size, seed, self.deadline)
                self.phase.replays.compare(-candidate.number, encode(drawn))

    def _out_of_time(self, needed: float = 0.0) -> bool:
        return self.deadline is not None and time.monotonic() + needed >= self.deadline

    def _propose(self) -> None:
        """Edit the most promising pair; the shares of such proposals were set aside at the start."""
        self.propose_at = math.ceil(PROPOSE_EVERY * self.drawn)
        if not self.phase.campaign.open_to_proposals:
            return
        rng = np.random.Generator(np.random.PCG64(seed_child(self.entropy, 5, len(self.phase.campaign.candidates))))
        known = {fingerprint(tuple(candidate.pair)) for candidate in self.phase.campaign.candidates}
        for pair in self.neighbours.edits(self.phase.campaign.most_promising().pair, rng, PROPOSALS):
            if fingerprint(tuple(pair)) not in known:
                self.prints[id(self.phase.campaign.propose(pair).pair)] = fingerprint(tuple(pair))

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
        self.phase.watch.see(candidate.number, merged.learn)
        for (past, ordered), new in zip(candidate.learner.past_counts(), merged.counts, strict=True):
            if ordered:
                self.phase.drift.compare(past, new[:, : past.shape[1]])
        records = candidate.learner.settle(
            Settled(merged.counts, merged.learn, merged.repeats),
            merged.size,
            last=self._out_of_time(candidate.learner.seconds_to_build or self.seconds_of_first_build),
        )
        if candidate.rounds == 1:
            self.seconds_of_first_build = max(self.seconds_of_first_build, candidate.learner.seconds_to_build / 2.0)
        log_wealth = self.phase.campaign.settle(candidate, records, leading=leading, spent=spent)
        self.trajectory.append((self.drawn, log_wealth))
        if self.options.on_round is not None:
            self.options.on_round(self.drawn, log_wealth)
        if candidate.rounds == 1:
            self._check_untouched(candidate.pair)
        if self.phase.read(log_wealth) and self.sampler.batched and not self.phase.replays.differed:
            self._check_replays(candidate)

    def _cut_short(self, cause: BaseException) -> StoppedBy:
        match cause:
            case KeyboardInterrupt():
                if INTERRUPTED not in self.messages:  # an interrupt may have it concluded twice
                    self.messages.append(INTERRUPTED)
                return StoppedBy.INTERRUPT
            case TimedOut():
                pair = (self.sampled or self.phase.campaign.candidates[0]).pair  # the probe is on the first one
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
                self._check_untouched(candidate.pair)
        return Conclusion(
            brief=self.brief,
            phase=self.phase,
            earlier=self.earlier,
            sampler=self.sampler,
            build=self.build,
            drawn=self.drawn,
            trajectory=tuple(self.trajectory),
            messages=self.messages,
            reproducible=self.reproducible,
            alike=self.crew.alike,
            seconds_of_first_build=self.seconds_of_first_build,
            hurried=self.hurried,
        ).result(stopped_by)


def builder_of(options: Options) -> Builder:
    """How views are made for the channel that is watched."""
    if options.channel is Channel.VALUE:
        return partial(build_views, boosted=options.boosted)
    if options.channel is Channel.REPRESENTATION:
        return build_bit_views
    raise AssertionError(f"channel={options.channel.value!r} has a run of its own")
