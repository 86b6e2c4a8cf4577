"""Shrink the pair that refuted the claim to the smallest one that still does, and find an event that is easy to check.

Shrinking never changes the verdict. Hypothesis walks towards smaller pairs; its predicate, a short audit of one pair, is
memoised by the pair, so that it is deterministic even if the mechanism is not. The pair it ends at is confirmed outside
Hypothesis on fresh outputs, the j-th attempt at ``alpha / (j (j + 1))``; if that fails, the original pair is tried, and
reported as unconfirmed if that fails too.

Other pairs than those of the audit are called here. Where a call for several outputs raises on one of them, or comes in a
container in which outputs look different because of each other, that pair is looked at again one release at a time, with
other seeds: nothing that was drawn before the call is used, and the second look is an attempt of its own.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpaudit._util.hypothesis_bridge import smallest, until
from dpaudit._util.intervals import clopper_pearson
from dpaudit._util.literals import rebuild
from dpaudit._util.values import described, fingerprint
from dpaudit.claims import distance_between
from dpaudit.engine.encoding.batch import Encoded, container, encode
from dpaudit.engine.encoding.feature_table import table_of_blocks
from dpaudit.engine.encoding.suspects import with_suspects
from dpaudit.engine.events import Confirming, OutputsDrawn, Shrinking
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.request import Request
from dpaudit.engine.sampling.blocks import (
    BatchDependentContainer,
    BatchRaised,
    BlockPair,
    Container,
    OutOfTime,
    Sampler,
    Task,
    TaskResult,
    TimedOut,
    check_containers,
    run_task,
)
from dpaudit.engine.sampling.seeds import SeedKey, seed_child
from dpaudit.engine.search.campaign import Campaign, Candidate, growth_of
from dpaudit.engine.search.rounds import Budget, settle_rounds
from dpaudit.engine.views.learner import Builder, Learner
from dpaudit.engine.witness.event import Event, observed_epsilon, simplest
from dpaudit.engine.witness.picture import leading, summary
from dpaudit.engine.witness.script import script, write
from dpaudit.errors import DPAuditError, InvalidArgument
from dpaudit.neighbours import Pair, Secret
from dpaudit.result.model import Frequency, Witness


@dataclass(frozen=True, slots=True)
class ShrinkLimits:
    """Limits of the search for a small witness, in samples unless said otherwise."""

    alpha: float = 1e-3
    """Error probability of one short audit while shrinking. The confirmation that follows has the alpha of the audit."""
    examples: int = 60
    """Pairs that Hypothesis generates before it shrinks."""
    most_audits: int = 200
    """Short audits while shrinking."""
    fewest: int = 2_000
    """The smallest budget of a short audit, if so much is left."""
    always: int = 40_000
    """Samples after the verdict that are always allowed, unless calls are slow."""
    share: float = 0.5
    """Share of the samples after the verdict that each of two ways of shrinking may take."""
    slow: float = 2e-4
    """Seconds of one output, in the fastest round, from which calls are slow: a witness then takes half as much as the audit."""
    confirming_factor: int = 6
    """The confirmation may take this multiple of what the audit spent on the pair that it found."""
    largest_measurement: int = 100_000
    """The event is counted on at most so many outputs of each side."""
    confidence: float = 0.99
    """Confidence level of the intervals for the counted frequencies, a probability."""
    fewest_to_choose_on: int = 50
    """Without a violation, an event is chosen only from at least so many outputs of each side."""
    fewest_of_a_leak: int = 4
    """With a violation, from at least so many."""
    most_one_by_one: int = 20_000
    """Budget of a short audit that calls a mechanism made for many outputs once for each."""
    most_to_choose_on: int = 8192
    """Without a violation, an event is chosen from at most so many outputs of each side."""


SHRINK = ShrinkLimits()


@dataclass
class PairAuditor:
    """Audits one pair at a time, each with seeds of its own."""

    sampler: Sampler
    request: Request
    points: Points
    build: Builder
    deadline: float | None = None  # monotonic; after it no further pair is audited
    allowed: int = SHRINK.always  # outputs of both sides that may be drawn in all
    drawn: int = 0
    audits: int = 0
    _alone: set[Hashable] = field(default_factory=set)  # pairs that are audited one release at a time
    _containers: dict[Hashable, set[Container]] = field(default_factory=dict)  # by pair

    @property
    def left(self) -> int:
        """Outputs of both sides that may still be drawn."""
        return max(self.allowed - self.drawn, 0)

    @property
    def entropy(self) -> int:
        """The root of all random numbers of the audit."""
        return self.request.entropy

    def points_on(self, pair: Pair) -> Points:
        """Return the points that are bet against on this pair."""
        return self.points.stretched(distance_between(self.request.claim, pair.data, pair.neighbour))

    def alone(self, pair: Pair) -> bool:
        """Return whether a call for several outputs on this pair gave none that may be counted."""
        return _unordered(pair) in self._alone

    def audit_alone(self, pair: Pair) -> None:
        """Audit the pair one release at a time from now on."""
        self._alone.add(_unordered(pair))

    def sampler_for(self, pair: Pair) -> Sampler:
        """Return the sampler of the audit, or one that draws one release at a time."""
        return replace(self.sampler, one_by_one=True) if self.alone(pair) else self.sampler

    def refutes(self, pair: Pair, *, log_threshold: float, samples: int, base: int) -> Learner | None:
        """Audit the pair alone; return what was learned if the claim is refuted within ``samples``.

        ``BatchRaised`` means that the pair is to be audited once more, which will be one release at a time.
        """
        self.audits += 1
        campaign = Campaign(
            self.request.claim,
            self.points,
            [pair],
            samples=max(samples, 2),
            complete=True,
            build=self.build,
            growth=growth_of(self.sampler_for(pair)),
        )
        source = _OnePair(self, log_threshold, base + self.audits)
        for settled in settle_rounds(campaign, source, Budget(samples)):
            if settled.log_wealth >= log_threshold:
                return settled.candidate.learner
        return None

    def draw(self, pair: Pair, trials: int, *, features: bool) -> tuple[Encoded, Encoded]:
        """Fresh outputs of both sides, encoded; ``BatchRaised`` as in :meth:`refutes`."""
        sampler, batches = self.sampler_for(pair), []
        for side, data in enumerate(pair):
            # A second draw from the seeds of one that raised would know that they make it raise.
            seed = seed_child(self.entropy, SeedKey.MEASURE, 0, int(self.alone(pair)), side)
            self.drawn += trials
            try:
                outputs = sampler.draw(data, trials, seed, self.deadline)
            except BatchRaised:
                self.audit_alone(pair)
                raise
            self.check_containers(pair, [held] if (held := container(outputs)) is not None else [])
            batch = with_suspects(encode(outputs), [outputs], sampler.suspects)
            batches.append(batch.with_features(table_of_blocks([outputs]) if features else None).first(trials))
        return batches[0], batches[1]

    def check_containers(self, pair: Pair, containers: Iterable[Container]) -> None:
        """Raise where outputs of this pair came in containers that depend on the other outputs of the call."""
        known = self._containers.setdefault(_unordered(pair), set())
        known.update(containers)
        try:
            check_containers(known)
        except BatchDependentContainer:
            self.audit_alone(pair)
            known.clear()
            raise


@dataclass(frozen=True, slots=True)
class _OnePair:
    """Rounds of one short audit, drawn in this process."""

    auditor: PairAuditor
    log_threshold: float
    number: int  # names the seeds

    def next_size(self, candidate: Candidate, *, leading: bool, left: int) -> int:
        del leading  # the only pair always leads
        return min(candidate.next_size(leading=True, log_threshold=self.log_threshold), left)

    def draw(self, candidate: Candidate, size: int) -> TaskResult:
        auditor, learner, pair = self.auditor, candidate.learner, candidate.pair
        sampler = auditor.sampler_for(pair)
        sizes = sampler.blocks(size, timed=auditor.deadline is not None, width=learner.width)
        task = Task(
            sampler, pair.data, pair.neighbour, learner.views, auditor.entropy,
            (self.number, candidate.rounds), 0, sizes, learner.rows_to_keep(len(sizes)), learner.features,
        )  # fmt: skip
        ended = run_task(
            task, deadline=auditor.deadline, on_block=lambda outputs: auditor.request.emit(OutputsDrawn(outputs))
        )
        if ended.cause is not None:  # the call that was cut short counts too
            auditor.drawn += 2 * min(sum(block.size for block in ended.blocks) + sizes[0], size)
            if isinstance(ended.cause, BatchRaised):
                auditor.audit_alone(pair)
            raise ended.cause
        auditor.drawn += 2 * size
        return ended

    def check(self, candidate: Candidate, drawn: BlockPair) -> None:
        self.auditor.check_containers(candidate.pair, drawn.containers)

    def is_last(self, candidate: Candidate) -> bool:
        del candidate
        return False


def _unordered(pair: Pair) -> Hashable:
    return frozenset((fingerprint(pair.data), fingerprint(pair.neighbour)))


def find_witness(
    auditor: PairAuditor, found: Pair, learner: Learner, *, spent: int
) -> tuple[Witness | None, dict[str, Any]]:
    """Shrink the pair, confirm it, choose the event, measure it, and write it down; with a summary of the outputs.

    ``learner`` is what the audit learned on the pair it found; it is used where no pair could be confirmed. All budgets are in
    samples, as multiples of ``spent``, what the audit spent on that pair, so that the witness does not depend on the clock. An
    interrupt passes through to the caller: the result has to mention it, so that a run of many audits ends.
    """
    request = auditor.request
    try:
        smaller = _shrink(auditor, found, spent) if request.options.shrink else []
        request.emit(Confirming())
        attempts = {fingerprint(tuple(found)): found}
        for pair in reversed(smaller):
            attempts.setdefault(fingerprint(tuple(pair)), pair)
        allowed = min(max(SHRINK.confirming_factor * spent, SHRINK.fewest), auditor.left)
        confirmed = _confirm(auditor, [*reversed(attempts.values())], allowed, request.options.alpha)
        pair, learned = confirmed or (found, learner)
        event = simplest(learned.kept(), learned.views, auditor.points_on(pair), learned.labels)
        trials = min(max(spent // 2, 1000), SHRINK.largest_measurement, auditor.left // 2)
        if event is not None and (trials >= SHRINK.fewest_to_choose_on or confirmed is not None):
            measured = measure(auditor, pair, event, max(trials, SHRINK.fewest_to_choose_on))
            if any(measured.counts):
                return _as_witness(auditor, measured, confirmed is not None, pair is not found), measured.outputs
    except (TimedOut, DPAuditError, OutOfTime):
        pass  # the pair and the event as they were found are shown instead
    return witness_as_found(auditor, found, learner)


def witness_as_found(auditor: PairAuditor, found: Pair, learner: Learner) -> tuple[Witness | None, dict[str, Any]]:
    """Write down the pair that the audit found, with an event counted on outputs that it was not chosen on.

    Nothing is drawn. None only if too few outputs were kept to choose an event.
    """
    measured = (
        _counted_on_others(found, learner, auditor.points_on(found), SHRINK.fewest_of_a_leak) if learner.keeps else None
    )
    return (None, {}) if measured is None else (_as_witness(auditor, measured, False, False), measured.outputs)


def _shrink(auditor: PairAuditor, found: Pair, spent: int) -> list[Pair]:
    """Return pairs that seem to violate the claim too, the smallest first."""
    known: dict[Hashable, bool] = {fingerprint(tuple(found)): True}
    budget = min(max(20 * spent, SHRINK.always), SHRINK.share * auditor.allowed)
    hung = False

    def violates(pair: Pair) -> bool:
        nonlocal hung
        key = fingerprint(tuple(pair))
        if key not in known:
            left = budget - auditor.drawn
            late = auditor.deadline is not None and time.monotonic() > auditor.deadline
            if auditor.audits >= SHRINK.most_audits or left < min(spent, SHRINK.fewest) or late or hung:
                return False
            auditor.request.emit(Shrinking(auditor.audits))
            try:
                known[key] = look(pair, min(max(2 * spent, SHRINK.fewest), int(left)))
            except (DPAuditError, OutOfTime):  # Hypothesis would take it for the failure it is to shrink
                known[key] = False
            except TimedOut:  # smaller pairs may be as slow
                known[key], hung = False, True
        return known[key]

    def look(pair: Pair, allowed: int) -> bool:
        allowed = min(allowed, SHRINK.most_one_by_one) if auditor.alone(pair) else allowed
        threshold = math.log(1.0 / SHRINK.alpha)
        try:
            return auditor.refutes(pair, log_threshold=threshold, samples=allowed, base=SeedKey.SHRINK) is not None
        except BatchRaised:
            return look(pair, allowed)

    neighbours = auditor.request.neighbours
    with until(auditor.deadline):
        small = smallest(neighbours.strategy, violates, examples=SHRINK.examples, seed=auditor.entropy % 2**32)
    if neighbours.simpler is None:
        return [] if small is None else [small]
    # Hypothesis divides its attempts among everything that could be smaller; leaving out single parts has as many of its own.
    steps = [small or found]
    budget = auditor.drawn + min(max(20 * spent, SHRINK.always), SHRINK.share * auditor.left)
    while shorter := next((pair for pair in neighbours.simpler(steps[0]) if violates(pair)), None):
        steps.insert(0, shorter)
    return [steps[0], *([small] if small is not None else [])]


def _confirm(auditor: PairAuditor, pairs: Sequence[Pair], allowed: int, alpha: float) -> tuple[Pair, Learner] | None:
    """The first pair whose fresh outputs refute the claim by themselves, and what was learned there."""
    attempts, number = deque(pairs), 0
    while attempts:
        pair = attempts.popleft()
        number += 1
        threshold = math.log(number * (number + 1) / alpha)
        try:
            learned = auditor.refutes(pair, log_threshold=threshold, samples=allowed, base=SeedKey.CONFIRM)
        except BatchRaised:
            attempts.appendleft(pair)
            continue
        except (DPAuditError, TimedOut):
            continue
        if learned is not None:
            return pair, learned
    return None


@dataclass(frozen=True, slots=True)
class Measured:
    """An event counted on fresh outputs of both sides; ``pair`` is ordered so that the event is likelier on the data."""

    event: Event
    pair: Pair
    counts: list[int]
    trials: int
    outputs: dict[str, Any]  # see `summary`


def measure(auditor: PairAuditor, pair: Pair, event: Event, trials: int) -> Measured:
    """Count the event on fresh outputs of both sides."""
    ordered = Pair(pair.neighbour, pair.data) if event.swapped else pair
    features = event.view.needs_features
    try:
        batches = auditor.draw(ordered, trials, features=features)
    except BatchRaised:
        batches = auditor.draw(ordered, trials, features=features)
    counts = [event.count(batch) for batch in batches]
    lead = leading(event, described(ordered.data)[0], described(ordered.neighbour)[0], counts, trials)
    return Measured(event, ordered, counts, trials, summary(event, batches, lead))


def leading_event(pair: Pair, learner: Learner, points: Points) -> dict[str, Any]:
    """For an audit that found nothing, return the event that differs most between the two sides.

    It is chosen in the first half of the outputs kept for learning, and counted on others, so nothing more is drawn.
    """
    measured = _counted_on_others(pair, learner, points, SHRINK.fewest_to_choose_on)
    return {} if measured is None else measured.outputs


def _counted_on_others(pair: Pair, learner: Learner, points: Points, fewest: int) -> Measured | None:
    """Choose an event on the first half of the outputs kept for learning, and count it on others; None if they are few."""
    sides = learner.kept()
    half, others = learner.halves()
    if half.stop < fewest:
        return None
    first = slice(min(half.stop, SHRINK.most_to_choose_on))
    event = simplest((sides[0].rows(first), sides[1].rows(first)), learner.views, points, learner.labels)
    if event is None:
        return None
    rest = [batch.rows(others) for batch in (reversed(sides) if event.swapped else sides)]
    ordered = Pair(pair.neighbour, pair.data) if event.swapped else pair
    counts = [event.count(batch) for batch in rest]
    lead = leading(event, described(ordered.data)[0], described(ordered.neighbour)[0], counts, len(rest[0]))
    return Measured(event, ordered, counts, len(rest[0]), summary(event, (rest[0], rest[1]), lead))


def _as_witness(auditor: PairAuditor, measured: Measured, confirmed: bool, shrunk: bool) -> Witness:
    origin = auditor.request.mechanism
    code = measured.event.code()
    data_source, data_literal = literal(measured.pair.data)
    neighbour_source, neighbour_literal = literal(measured.pair.neighbour)
    delta = float(auditor.points.delta.min())
    witness = Witness(
        data=data_source,
        neighbour=neighbour_source,
        literal=data_literal and neighbour_literal,
        event=str(measured.event),
        event_code=code.expression,
        on_data=frequency(measured.counts[0], measured.trials),
        on_neighbour=frequency(measured.counts[1], measured.trials),
        observed_log_ratio=observed_epsilon(measured.counts[0], measured.counts[1], measured.trials, delta),
        confirmed=confirmed,
        shrunk=shrunk,
        seed=auditor.entropy,
        mechanism=write(origin).public,
    )
    one_by_one = auditor.sampler_for(measured.pair).one_by_one or "raises " in witness.event
    secret = any(isinstance(data, Secret) for data in measured.pair)
    return script(
        witness,
        auditor.request.claim,
        code,
        origin,
        one_by_one=one_by_one,
        secret=secret,
        suspects=auditor.sampler.suspects,
    )


def frequency(count: int, trials: int) -> Frequency:
    """A count with its exact interval."""
    low, high = clopper_pearson(count, trials, alpha=1.0 - SHRINK.confidence)
    return Frequency(count=count, trials=trials, low=low, high=high)


def literal(data: object) -> tuple[str, bool]:
    """Return source for the data, and whether it makes the data again; it is parsed, never evaluated."""
    text, whole = described(data)
    try:
        return text, whole and fingerprint(rebuild(text)) == fingerprint(data)
    except InvalidArgument:
        return text, False
