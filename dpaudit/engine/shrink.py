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

from dpaudit._hypothesis import smallest, until
from dpaudit.claims import Claim
from dpaudit.engine.events import Event, observed_epsilon, simplest
from dpaudit.engine.evidence import Points
from dpaudit.engine.learning import Builder, Learner, Settled
from dpaudit.engine.outputs import Encoded, container, encode
from dpaudit.engine.progress import Seeking
from dpaudit.engine.result import Frequency, Witness
from dpaudit.engine.sampling import (
    BatchRaised,
    Container,
    OutOfTime,
    Sampler,
    Task,
    TellingContainer,
    TimedOut,
    check_containers,
    merge,
    run_task,
    seed_child,
)
from dpaudit.engine.script import importable, script
from dpaudit.engine.search import Campaign
from dpaudit.engine.summary import leading, summary
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import Neighbours, Pair
from dpaudit.values import fingerprint, source

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
    claim: Claim
    points: Points
    build: Builder
    entropy: int
    seeking: Seeking
    deadline: float | None = None  # monotonic; past it looking stops
    drawn: int = 0
    looks: int = 0
    _alone: set[Hashable] = field(default_factory=set)  # pairs to be looked at one release at a time
    _containers: dict[Hashable, set[Container]] = field(default_factory=dict)  # by pair

    def alone(self, pair: Pair) -> bool:
        """Whether a call for several outputs on this pair gave none that may be counted."""
        return _unordered(pair) in self._alone

    def sampler_for(self, pair: Pair) -> Sampler:
        """The audit's own, or one release at a time."""
        return replace(self.sampler, one_by_one=True) if self.alone(pair) else self.sampler

    def refutes(self, pair: Pair, *, log_threshold: float, samples: int, base: int) -> Learner | None:
        """Audit the pair alone; return what was learned if the claim is refuted within ``samples``.

        ``BatchRaised`` says that the pair is to be looked at once more, which will be one release at a time.
        """
        self.looks += 1
        sampler = self.sampler_for(pair)
        campaign = Campaign(self.claim, self.points, [pair], samples=max(samples, 2), complete=True, build=self.build)
        candidate = campaign.candidates[0]
        spent = 0
        while True:
            size = min(candidate.next_size(leading=True, log_threshold=log_threshold), (samples - spent) // 2)
            if size < 1:
                return None
            learner = candidate.learner
            sizes = sampler.blocks(size, timed=self.deadline is not None, width=learner.width)
            task = Task(
                sampler, pair.data, pair.neighbour, learner.views, self.entropy,
                (base + self.looks, candidate.rounds), 0, sizes, learner.wanted(len(sizes)),
            )  # fmt: skip
            ended = run_task(task, deadline=self.deadline, on_block=self.seeking.refresh)
            if ended.cause is not None:
                # With the call that was cut short.
                self.drawn += 2 * min(sum(block.size for block in ended.blocks) + sizes[0], size)
                if isinstance(ended.cause, BatchRaised):
                    self._alone.add(_unordered(pair))
                raise ended.cause
            merged = merge(ended.blocks)
            spent += 2 * size
            self.drawn += 2 * size
            self._check_containers(pair, merged.containers)
            candidate.rounds += 1
            records = learner.settle(Settled(merged.counts, merged.learn, merged.repeats), size)
            if campaign.settle(candidate, records) >= log_threshold:
                return learner

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
                self._alone.add(_unordered(pair))
                raise
            self._check_containers(pair, [held] if (held := container(outputs)) is not None else [])
            batches.append(encode(outputs).head(trials))
        return batches[0], batches[1]

    def _check_containers(self, pair: Pair, containers: Iterable[Container]) -> None:
        known = self._containers.setdefault(_unordered(pair), set())
        known.update(containers)
        try:
            check_containers(known)
        except TellingContainer:
            self._alone.add(_unordered(pair))
            known.clear()
            raise


def _unordered(pair: Pair) -> Hashable:
    return frozenset((fingerprint(pair.data), fingerprint(pair.neighbour)))


def find_witness(
    looker: Looker,
    neighbours: Neighbours,
    found: Pair,
    learner: Learner,
    *,
    spent: int,
    alpha: float,
    shrink: bool,
    origin: object,
) -> tuple[Witness | None, dict[str, Any]]:
    """Shrink, confirm, choose the event, measure it, and write it down; with a summary of the outputs.

    ``learner`` is what the audit learned on the pair it found: it serves where no pair could be confirmed. All budgets are in
    samples, as multiples of what the audit spent on that pair, so that the witness does not depend on the clock. An interrupt
    goes through to the caller: the result has to say that there was one, or whoever runs many audits would go on.
    """
    try:
        small = _shrink(looker, neighbours, found, spent) if shrink else None
        same = small is None or fingerprint(tuple(small)) == fingerprint(tuple(found))
        looker.seeking.confirming()
        attempts = [found] if small is None or same else [small, found]
        confirmed = _confirm(looker, attempts, max(CONFIRMING * spent, FEWEST_SAMPLES), alpha)
        pair, learner = confirmed or (found, learner)
        event = simplest(learner.kept(), learner.views, looker.points, learner.labels)
        if event is None:
            return None, {}
        measured = measure(looker, pair, event, min(max(spent // 2, 1000), LARGEST_MEASUREMENT))
        return _as_witness(looker, measured, confirmed is not None, pair is not found, origin), measured.outputs
    except (TimedOut, DPAuditError, OutOfTime):
        return None, {}  # the verdict stands without a witness


def _shrink(looker: Looker, neighbours: Neighbours, found: Pair, spent: int) -> Pair | None:
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
            looker.seeking.shrinking(looker.looks)
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
        return smallest(neighbours.strategy, violates, examples=EXAMPLES, seed=looker.entropy % 2**32)


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
    lead = leading(event, source(ordered.data), source(ordered.neighbour), counts, trials)
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
    lead = leading(event, source(ordered.data), source(ordered.neighbour), counts, len(rest[0]))
    return summary(event, (rest[0], rest[1]), lead)


def _as_witness(looker: Looker, measured: Measured, confirmed: bool, shrunk: bool, origin: object) -> Witness:
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
        epsilon=observed_epsilon(measured.counts[0], measured.counts[1], measured.trials, delta),
        confirmed=confirmed,
        shrunk=shrunk,
        seed=looker.entropy,
        mechanism=importable(origin)[1],
    )
    return script(witness, looker.claim, definitions, origin, one_by_one=looker.sampler_for(measured.pair).one_by_one)


def frequency(count: int, trials: int) -> Frequency:
    """A count with its exact interval."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(count, trials, alpha=1.0 - CONFIDENCE, method="beta")
    # statsmodels gives NaN at the ends, where the bound is the end itself.
    low = 0.0 if count == 0 else float(low)
    high = 1.0 if count == trials else float(high)
    if not (0.0 <= low <= high <= 1.0):
        raise ArithmeticError(f"No exact interval for {count} of {trials}: got ({low}, {high}).")
    return Frequency(count=count, trials=trials, low=low, high=high)


def literal(data: object) -> tuple[str, bool]:
    """Source for the data, and whether evaluating it gives the data back."""
    text = source(data)
    import numpy as np

    names: dict[str, object] = {"np": np}
    if "pd." in text:
        import pandas as pd

        names["pd"] = pd
    try:
        again = eval(text, {"__builtins__": {"float": float}}, names)
        return text, fingerprint(again) == fingerprint(data)
    except Exception:
        return text, False
