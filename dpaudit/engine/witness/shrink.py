"""From the pair that refuted the claim to the smallest one that still does, and to an event that a person can check.

Shrinking never changes the verdict. Hypothesis walks towards smaller pairs; its predicate, a short audit of one pair, is
memoised by the pair, so that it is deterministic whatever the mechanism does. The pair it ends at is confirmed outside
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
from dpaudit.engine.encoding.batch import Encoded, container, encode
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
    seed_child,
)
from dpaudit.engine.search.campaign import Campaign, Candidate
from dpaudit.engine.search.rounds import Budget, settle_rounds
from dpaudit.engine.views.learner import Builder, Learner
from dpaudit.engine.witness.event import Event, observed_epsilon, simplest
from dpaudit.engine.witness.picture import leading, summary
from dpaudit.engine.witness.script import importable, script
from dpaudit.errors import DPAuditError, InvalidArgument
from dpaudit.neighbours import Pair
from dpaudit.result.model import Frequency, Witness

SHRINKING_ALPHA = 1e-3  # of one look at one pair while shrinking; the confirmation is what counts
EXAMPLES = 60
MOST_LOOKS = 200
FEWEST_SAMPLES = 2_000
CONFIRMING = 6  # times what the audit spent on the pair it found
SHRINK_NUMBER, CONFIRM_NUMBER, MEASURE_NUMBER = 2_000_000, 3_000_000, 4_000_000  # names of their seeds
LARGEST_MEASUREMENT = 100_000
CONFIDENCE = 0.99
FEWEST_TO_LOOK_AT = 50
MOST_ALONE = 20_000  # samples of one look, where a mechanism made for many outputs at once is called for each
MOST_TO_CHOOSE_ON = 8192


@dataclass
class Looker:
    """Audits one pair at a time, each with seeds of its own."""

    sampler: Sampler
    request: Request
    points: Points
    build: Builder
    deadline: float | None = None  # monotonic; after it no further pair is audited
    drawn: int = 0
    looks: int = 0
    _alone: set[Hashable] = field(default_factory=set)  # pairs that are audited one release at a time
    _containers: dict[Hashable, set[Container]] = field(default_factory=dict)  # by pair

    @property
    def entropy(self) -> int:
        """The root of all random numbers of the audit."""
        return self.request.entropy

    def alone(self, pair: Pair) -> bool:
        """Whether a call for several outputs on this pair gave none that may be counted."""
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
        self.looks += 1
        campaign = Campaign(
            self.request.claim, self.points, [pair], samples=max(samples, 2), complete=True, build=self.build
        )
        source = _OnePair(self, log_threshold, base + self.looks)
        for settled in settle_rounds(campaign, source, Budget(samples)):
            if settled.log_wealth >= log_threshold:
                return settled.candidate.learner
        return None

    def draw(self, pair: Pair, trials: int) -> tuple[Encoded, Encoded]:
        """Fresh outputs of both sides, encoded; ``BatchRaised`` as in :meth:`refutes`."""
        sampler, batches = self.sampler_for(pair), []
        for side, data in enumerate(pair):
            # A second draw from the seeds of one that raised would know that they make it raise.
            seed = seed_child(self.entropy, MEASURE_NUMBER, 0, int(self.alone(pair)), side)
            self.drawn += trials
            try:
                outputs = sampler.draw(data, trials, seed, self.deadline)
            except BatchRaised:
                self.audit_alone(pair)
                raise
            self.check_containers(pair, [held] if (held := container(outputs)) is not None else [])
            batches.append(encode(outputs).first(trials))
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

    looker: Looker
    log_threshold: float
    number: int  # names the seeds

    def next_size(self, candidate: Candidate, *, leading: bool, left: int) -> int:
        del leading  # the only pair always leads
        return min(candidate.next_size(leading=True, log_threshold=self.log_threshold), left)

    def draw(self, candidate: Candidate, size: int) -> TaskResult:
        looker, learner, pair = self.looker, candidate.learner, candidate.pair
        sampler = looker.sampler_for(pair)
        sizes = sampler.blocks(size, timed=looker.deadline is not None, width=learner.width)
        task = Task(
            sampler, pair.data, pair.neighbour, learner.views, looker.entropy,
            (self.number, candidate.rounds), 0, sizes, learner.rows_to_keep(len(sizes)),
        )  # fmt: skip
        ended = run_task(
            task, deadline=looker.deadline, on_block=lambda outputs: looker.request.emit(OutputsDrawn(outputs))
        )
        if ended.cause is not None:  # the call that was cut short counts too
            looker.drawn += 2 * min(sum(block.size for block in ended.blocks) + sizes[0], size)
            if isinstance(ended.cause, BatchRaised):
                looker.audit_alone(pair)
            raise ended.cause
        looker.drawn += 2 * size
        return ended

    def check(self, candidate: Candidate, drawn: BlockPair) -> None:
        self.looker.check_containers(candidate.pair, drawn.containers)

    def is_last(self, candidate: Candidate) -> bool:
        del candidate
        return False


def _unordered(pair: Pair) -> Hashable:
    return frozenset((fingerprint(pair.data), fingerprint(pair.neighbour)))


def find_witness(looker: Looker, found: Pair, learner: Learner, *, spent: int) -> tuple[Witness | None, dict[str, Any]]:
    """Shrink the pair, confirm it, choose the event, measure it, and write it down; with a summary of the outputs.

    ``learner`` is what the audit learned on the pair it found; it is used where no pair could be confirmed. All budgets are in
    samples, as multiples of ``spent``, what the audit spent on that pair, so that the witness does not depend on the clock. An
    interrupt passes through to the caller: the result has to mention it, so that a run of many audits ends.
    """
    request = looker.request
    try:
        small = _shrink(looker, found, spent) if request.options.shrink else None
        same = small is None or fingerprint(tuple(small)) == fingerprint(tuple(found))
        request.emit(Confirming())
        attempts = [found] if small is None or same else [small, found]
        confirmed = _confirm(looker, attempts, max(CONFIRMING * spent, FEWEST_SAMPLES), request.options.alpha)
        pair, learner = confirmed or (found, learner)
        event = simplest(learner.kept(), learner.views, looker.points, learner.labels)
        if event is None:
            return None, {}
        measured = measure(looker, pair, event, min(max(spent // 2, 1000), LARGEST_MEASUREMENT))
        return _as_witness(looker, measured, confirmed is not None, pair is not found), measured.outputs
    except (TimedOut, DPAuditError, OutOfTime):
        return None, {}  # the verdict stands without a witness


def _shrink(looker: Looker, found: Pair, spent: int) -> Pair | None:
    known: dict[Hashable, bool] = {fingerprint(tuple(found)): True}
    budget = min(max(20 * spent, 40_000), max(2 * spent, 2_000_000))
    hung = False

    def violates(pair: Pair) -> bool:
        nonlocal hung
        key = fingerprint(tuple(pair))
        if key not in known:
            left = budget - looker.drawn
            late = looker.deadline is not None and time.monotonic() > looker.deadline
            if looker.looks >= MOST_LOOKS or left < FEWEST_SAMPLES or late or hung:
                return False
            looker.request.emit(Shrinking(looker.looks))
            try:
                known[key] = look(pair, min(max(2 * spent, FEWEST_SAMPLES), left))
            except (DPAuditError, OutOfTime):  # Hypothesis would take it for the failure it is to shrink
                known[key] = False
            except TimedOut:  # smaller pairs may be as slow
                known[key], hung = False, True
        return known[key]

    def look(pair: Pair, allowed: int) -> bool:
        allowed = min(allowed, MOST_ALONE) if looker.alone(pair) else allowed
        threshold = math.log(1.0 / SHRINKING_ALPHA)
        try:
            return looker.refutes(pair, log_threshold=threshold, samples=allowed, base=SHRINK_NUMBER) is not None
        except BatchRaised:
            return look(pair, allowed)

    with until(looker.deadline):
        return smallest(looker.request.neighbours.strategy, violates, examples=EXAMPLES, seed=looker.entropy % 2**32)


def _confirm(looker: Looker, pairs: Sequence[Pair], allowed: int, alpha: float) -> tuple[Pair, Learner] | None:
    """The first pair whose fresh outputs refute the claim by themselves, and what was learned there."""
    attempts, number = deque(pairs), 0
    while attempts:
        pair = attempts.popleft()
        number += 1
        threshold = math.log(number * (number + 1) / alpha)
        try:
            learned = looker.refutes(pair, log_threshold=threshold, samples=allowed, base=CONFIRM_NUMBER)
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


def measure(looker: Looker, pair: Pair, event: Event, trials: int) -> Measured:
    """Count the event on fresh outputs of both sides."""
    ordered = Pair(pair.neighbour, pair.data) if event.swapped else pair
    try:
        batches = looker.draw(ordered, trials)
    except BatchRaised:
        batches = looker.draw(ordered, trials)
    counts = [event.count(batch) for batch in batches]
    lead = leading(event, described(ordered.data)[0], described(ordered.neighbour)[0], counts, trials)
    return Measured(event, ordered, counts, trials, summary(event, batches, lead))


def leading_event(pair: Pair, learner: Learner, points: Points) -> dict[str, Any]:
    """For an audit that found nothing: the event that told the two sides apart best.

    It is chosen in the first half of the outputs kept for learning, and counted on others, so nothing more is drawn.
    """
    sides = learner.kept()
    half, others = learner.halves()
    if half.stop < FEWEST_TO_LOOK_AT:
        return {}
    first = slice(min(half.stop, MOST_TO_CHOOSE_ON))
    event = simplest((sides[0].rows(first), sides[1].rows(first)), learner.views, points, learner.labels)
    if event is None:
        return {}
    rest = [batch.rows(others) for batch in (reversed(sides) if event.swapped else sides)]
    ordered = Pair(pair.neighbour, pair.data) if event.swapped else pair
    counts = [event.count(batch) for batch in rest]
    lead = leading(event, described(ordered.data)[0], described(ordered.neighbour)[0], counts, len(rest[0]))
    return summary(event, (rest[0], rest[1]), lead)


def _as_witness(looker: Looker, measured: Measured, confirmed: bool, shrunk: bool) -> Witness:
    origin = looker.request.mechanism
    definitions, expression = measured.event.code()
    data_source, data_literal = literal(measured.pair.data)
    neighbour_source, neighbour_literal = literal(measured.pair.neighbour)
    delta = float(looker.points.delta.min())
    witness = Witness(
        data=data_source,
        neighbour=neighbour_source,
        literal=data_literal and neighbour_literal,
        event=str(measured.event),
        event_code=expression,
        on_data=frequency(measured.counts[0], measured.trials),
        on_neighbour=frequency(measured.counts[1], measured.trials),
        observed_log_ratio=observed_epsilon(measured.counts[0], measured.counts[1], measured.trials, delta),
        confirmed=confirmed,
        shrunk=shrunk,
        seed=looker.entropy,
        mechanism=importable(origin)[1],
    )
    return script(
        witness, looker.request.claim, definitions, origin, one_by_one=looker.sampler_for(measured.pair).one_by_one
    )


def frequency(count: int, trials: int) -> Frequency:
    """A count with its exact interval."""
    low, high = clopper_pearson(count, trials, alpha=1.0 - CONFIDENCE)
    return Frequency(count=count, trials=trials, low=low, high=high)


def literal(data: object) -> tuple[str, bool]:
    """Return source for the data, and whether it makes the data again; it is parsed, never evaluated."""
    text, whole = described(data)
    try:
        return text, whole and fingerprint(rebuild(text)) == fingerprint(data)
    except InvalidArgument:
        return text, False
