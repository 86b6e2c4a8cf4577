r"""Evidence that grows from run to run, with one alpha over all of it.

Every run does two things. It explores: an ordinary audit with fresh seeds, whose outputs nominate a pair of data sets and views
of few cells (``nominee``), and which spends no alpha, because nothing that it shows is evidence. Then it bets: releases are
drawn on one of the nominees, one call each, and every round is settled in a file (``ledger``). The next run goes on with the
wealth that this one left.

**Validity.** Let F_k hold everything up to the end of round k: all explorations so far, all settled rounds, whatever made a run
stop, and all that happened between runs. Nominee, size, cells and bets of round k + 1 are functions of F_k. If a single release
keeps the claim and releases are independent, the factor of every bettor has conditional expectation at most 1 given F_k, by
the proof in ``evidence.e_process``; which pair it is does not matter, because the claim is about all pairs. So the wealth over
the rounds of all runs is one nonnegative supermartingale that starts from 1, and P(it ever reaches 1 / alpha) <= alpha by
Ville's inequality: however many runs there are, whenever they end, whatever decides that there is another one. Three things are
needed for it.

- *No seed is used twice.* Seeds descend from one root in the file. A round has its number in its key and an exploration the
  number of its run, so exploring and betting are independent of each other and of earlier runs.
- *No round is left out.* A round that is begun must be settled as a whole, or later ones would be conditional on how it ended.
  So time is looked at between rounds alone, and a line in the file announces each round. If a run is killed within one, the
  next run draws it first, from the seeds it had: a reproducible mechanism gives the outputs that were lost, and they are
  settled once. A mechanism with random numbers of its own would give others, and how the first draw ended may have depended on
  its outputs. Then all evidence is given up: it starts again from capital 1, with an alpha of its own. The k-th restart
  has ``RESTARTS`` / 2^k of alpha, the first start 1 - ``RESTARTS`` of it: at most alpha together.
- *No run is left out.* Every run goes into the one file, also one that found nothing. Lines that were changed or removed are
  noticed. If an older copy of everything is put back, the same rounds are drawn again: a reproducible mechanism then
  gives the same outputs and nothing is gained. With random numbers of its own, only reports of the runs that are missing
  can show it.

**Changes.** The evidence is about one hypothesis: this code, with these packages and options, keeps this claim
(``identity``). Something else is another hypothesis, with an e-process and an alpha of its own: its evidence starts afresh, and
the result says what has changed. Where an earlier state comes back, its evidence goes on where it had stopped, so
one hypothesis never has alpha twice. P(false alarm about one state) <= alpha for each; over a file with v different states that
all keep the claim it is at most v alpha, as for v different audits.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit._util.values import fingerprint
from dpaudit.claims import MetricDP, Verdict
from dpaudit.engine.accumulate.identity import identity
from dpaudit.engine.accumulate.ledger import FORMAT, Ledger
from dpaudit.engine.accumulate.nominee import Nominee, nominate
from dpaudit.engine.conclude import DEPENDENT
from dpaudit.engine.encoding.batch import encode, record_keys
from dpaudit.engine.encoding.suspects import as_suspects
from dpaudit.engine.events import Event, Finished, OutputsDrawn, PairChosen, RoundSettled
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.evidence.e_process import Counts
from dpaudit.engine.request import Request
from dpaudit.engine.run import Run, builder_of
from dpaudit.engine.sampling.blocks import CHANGED_INPUT, Sampler, TimedOut, block_sizes, is_distinctive, looked_at
from dpaudit.engine.sampling.seeds import BlockSeeds, SeedKey, seed_child
from dpaudit.engine.sampling.serial_dependence import ERROR_PROBABILITY, Timeline, dependence
from dpaudit.engine.search.attempt import Attempt
from dpaudit.engine.search.campaign import Campaign
from dpaudit.engine.views.condition import AnyOf
from dpaudit.engine.witness.event import observed_epsilon
from dpaudit.engine.witness.python_code import OutputNames, event_code
from dpaudit.engine.witness.script import script, write
from dpaudit.engine.witness.shrink import frequency, literal
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import as_mechanism
from dpaudit.result.model import Channel, Result, StoppedBy, Witness

EXPLORE = 0.3  # share of the samples and seconds of a run
RESTARTS = 0.1  # share of alpha that is kept for evidence that has to start again
ROUND_SHARE = 0.1  # a round has this share of the outputs that were counted on its nominee
SMALLEST_ROUND, LARGEST_ROUND = 16, 1 << 20  # releases of each side in a round
SMALLEST_BLOCK, LARGEST_BLOCK = 64, 4096  # releases of one side in a row
SHARE_OF_TIME = 0.25  # of the time that is left, a round may take this part
BETS_FOR = 100_000_000  # outputs for which the sizes of bets are chosen
MOST_NOMINEES = 8
COMPARED = 64  # releases that are drawn twice, to see whether seeds decide them
SHOWN_BEFORE = (
    "An earlier run has refuted the claim, so nothing more was drawn. A change of the mechanism starts afresh."
)
MEASURED = 20_000  # releases of each side on which the event of a witness is counted


def accumulate(request: Request, file: str | os.PathLike[str]) -> Result:
    """Make one run, add it to the evidence in a file, and return the result of all its runs."""
    if request.options.channel is Channel.TIMING or isinstance(request.claim, MetricDP):
        about = "channel='timing'" if request.options.channel is Channel.TIMING else "a claim about a metric"
        raise InvalidArgument(f"accumulate={str(file)!r} is not possible with {about}: leave it out.")
    ledger = Ledger(Path(file), request.name)
    epoch = Epoch.of(ledger, request)
    known = epoch.refutation
    if known is not None and request.options.until == "violation":
        result = replace(known, messages=(*known.messages, SHOWN_BEFORE))
        request.emit(Finished(result))
        return result
    return _AccumulatingRun(request, ledger, epoch).result()


@dataclass(frozen=True, slots=True)
class Epoch:
    """The lines about one state of a mechanism, and what is different from the state before."""

    number: int
    root: int  # of all seeds
    lines: tuple[Mapping[str, Any], ...]
    states: int  # different states in the file
    changes: tuple[str, ...]

    @classmethod
    def of(cls, ledger: Ledger, request: Request) -> Epoch:
        """Find the epoch of the present state in the file, or begin one."""
        parts = identity(request)
        begun = [line for line in ledger.lines if line["kind"] == "began"]
        last = next((line for line in reversed(ledger.lines) if line["kind"] == "run"), None)
        before = {} if last is None else begun[last["epoch"] - 1]["identity"]
        changes = tuple(_changes(before, parts)) if last is not None else ()
        number = next((line["epoch"] for line in begun if line["identity"] == parts), None)
        if number is None:
            number = len(begun) + 1
            seed = secrets.randbits(63) if request.options.seed is None else request.options.seed
            root = _integer(seed, SeedKey.EXPLORATION, 0, number)
            ledger.append("began", epoch=number, format=FORMAT, identity=parts, root=root, changes=list(changes))
            begun.append(ledger.lines[-1])
        lines = tuple(line for line in ledger.lines if line["kind"] != "began" and line["epoch"] == number)
        return cls(number, begun[number - 1]["root"], lines, len(begun), changes)

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """The ends of its runs."""
        return [line["summary"] for line in self.lines if line["kind"] == "end"]

    @property
    def refutation(self) -> Result | None:
        """The result that has refuted the claim."""
        return next(
            (Result.from_dict(line["result"]) for line in self.lines if line["kind"] == "end" and line["result"]), None
        )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return in words how two states differ."""
    found = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old != new:
            shown = name.startswith(("package", "option", "neighbours"))
            found.append(f"{name} {old} became {new}" if shown else f"{name} changed")
    return found


def _integer(entropy: int, *key: int) -> int:
    return int(seed_child(entropy, *key).generate_state(1, np.uint64)[0]) >> 1


class _AccumulatingRun:
    """One run: what was settled before, an exploration, and the bets."""

    def __init__(self, request: Request, ledger: Ledger, epoch: Epoch) -> None:
        self.request, self.ledger, self.epoch = request, ledger, epoch
        options = request.options
        self.number = sum(line["kind"] == "run" for line in epoch.lines) + 1
        self.points = points_of(request.claim)
        mechanism, suspects = as_mechanism(request.mechanism), as_suspects(options.suspect)
        self.sampler = Sampler(mechanism, True, options.timeout, options.timeout_is_output, suspects)
        self.nominees: dict[int, Nominee] = {}
        self.settled = self.restarts = 0
        self.announced: Mapping[str, Any] | None = None  # a round that a killed run has begun
        self.drawn = 0  # releases of both sides in the rounds of this run
        self.seconds = 0.0  # that they took
        self.timelines: dict[int, Timeline] = {}
        self.samples = sum(run["samples"] for run in epoch.runs)  # of earlier runs
        self.messages: list[str] = []
        self._start()
        for line in epoch.lines:
            self._restore(line)

    def _start(self) -> None:
        """Start evidence from capital 1."""
        options = self.request.options
        share = 1.0 - RESTARTS if self.restarts == 0 else RESTARTS / 2.0**self.restarts
        self.campaign: Campaign | None = None
        self.log_threshold = -math.log(options.alpha * share)
        self.trajectory: list[tuple[int, float]] = []

    def _restore(self, line: Mapping[str, Any]) -> None:
        match line["kind"]:
            case "nominee":
                self._admit(Nominee.from_plain(line["nominee"], line["content"]))
            case "drawing":
                self.announced = line
            case "round":
                self._settle(line["nominee"], [np.array(rows, dtype=np.int64) for rows in line["counts"]])
            case "given up":
                self.restarts += 1
                self.announced = None
                self._start()

    def _admit(self, nominee: Nominee) -> None:
        self.nominees[nominee.number] = nominee
        if self.campaign is None:
            self._new_campaign(nominee)

    def _new_campaign(self, nominee: Nominee) -> None:
        options = self.request.options
        # One pair stands for whichever nominee a round was drawn on: the capital is one, and the past says where it is bet.
        self.campaign = Campaign(
            self.request.claim,
            self.points,
            [nominee.pair],
            samples=BETS_FOR,
            complete=True,
            build=builder_of(options, self.sampler.suspects),
            for_bound=options.until == "budget",
        )
        self.phase = Attempt(self.request.claim, self.campaign, self.log_threshold, 0.0)

    def _settle(self, number: int, counts: Sequence[Counts]) -> float:
        """Settle a round, of this run or of an earlier one, and return the log-wealth."""
        nominee = self.nominees[number]
        if self.campaign is None:
            self._new_campaign(nominee)
        assert self.campaign is not None
        self.phase.drift.compare(nominee.counts[0], counts[0])
        log_wealth = self.campaign.settle(self.campaign.candidates[0], nominee.records(counts), leading=True, spent=1.0)
        self.settled += 1
        self.announced = None
        self.phase.crossed |= log_wealth >= self.log_threshold
        self.trajectory.append(
            (2 * int(counts[0][0].sum()) + (self.trajectory[-1][0] if self.trajectory else 0), log_wealth)
        )
        return log_wealth

    def result(self) -> Result:
        """Explore, bet, and conclude."""
        began = datetime.now(UTC).isoformat(timespec="seconds")
        self.ledger.append("run", epoch=self.epoch.number, run=self.number, date=began)
        explored, nominated = self._explore()
        if nominated is not None:
            self.ledger.append("nominee", epoch=self.epoch.number, nominee=nominated.number, content=nominated.plain())
            self._admit(nominated)
        stopped_by = explored.stopped_by
        if explored.stopped_by not in (StoppedBy.INTERRUPT, StoppedBy.TIMEOUT):
            stopped_by = self._bet(explored)
        return self._conclude(explored, stopped_by, began)

    def _explore(self) -> tuple[Result, Nominee | None]:
        """Make an ordinary audit, and nominate the pair that it sampled most."""
        options = self.request.options
        own = replace(
            self.request,
            options=replace(
                options,
                samples=max(2, int(EXPLORE * options.samples)),
                seconds=None if options.seconds is None else EXPLORE * options.seconds,
            ),
            entropy=_integer(self.epoch.root, SeedKey.EXPLORATION, self.number),
            deadline=None if options.seconds is None else self.request.started + EXPLORE * options.seconds,
            handlers=(self._pass_on,),
        )
        run = Run(own)
        explored = run.result()
        if explored.samples == 0:  # interrupted before anything was drawn
            return explored, None
        campaign = run.phase.campaign
        most = max(campaign.candidates, key=lambda candidate: candidate.seen)
        accused = campaign.leader() if explored.verdict is Verdict.VIOLATION else most
        found = nominate(1 + max(self.nominees, default=0), accused, self.points)
        if found is None and not self.nominees:
            self.messages.append(
                "There is nothing yet that could be bet on: data sets without a literal form, such as objects of a class of "
                "your own, and events of learned scores cannot be kept in a file."
            )
        return explored, found

    def _pass_on(self, event: Event) -> None:
        if not isinstance(event, Finished):
            self.request.emit(event)

    def _bet(self, explored: Result) -> StoppedBy:
        """Draw rounds until the claim is refuted, or the samples or the time of the run are used."""
        if not self.nominees:
            return explored.stopped_by
        options = self.request.options
        self.seconds_each = explored.seconds / max(explored.samples, 1)
        try:
            if self.announced is not None:
                self._draw_again(explored)
            while True:
                if self._refuted() and options.until == "violation":
                    return StoppedBy.VIOLATION
                nominee = self._best()
                size = self._next_size(nominee, options.samples - explored.samples - self.drawn)
                if size < 1:
                    late = self.request.deadline is not None and time.monotonic() >= self.request.deadline
                    return StoppedBy.SECONDS if late else StoppedBy.SAMPLES
                self._round(nominee, size)
        except KeyboardInterrupt:
            self.messages.append("Interrupted within a round, with which the next run begins.")
            return StoppedBy.INTERRUPT
        except TimedOut as late:
            self.messages.append(f"{late} The next run begins with the round in which it was.")
            return StoppedBy.TIMEOUT

    def _best(self) -> Nominee:
        newest = sorted(self.nominees.values(), key=lambda nominee: nominee.promise(self.points))[-MOST_NOMINEES:]
        self.nominees = {nominee.number: nominee for nominee in newest}
        return newest[-1]

    def _next_size(self, nominee: Nominee, left: int) -> int:
        size = min(max(SMALLEST_ROUND, math.ceil(ROUND_SHARE * nominee.seen)), LARGEST_ROUND, left // 2)
        if self.request.deadline is not None:
            free = SHARE_OF_TIME * (self.request.deadline - time.monotonic())
            if free <= 0.0:
                return 0
            size = min(size, max(SMALLEST_ROUND, int(free / (2.0 * self.seconds_each))))
        return size

    def _draw_again(self, explored: Result) -> None:
        """Draw the round in which a run was killed once more; give evidence up if that would give other outputs."""
        announced, self.announced = self.announced, None
        assert announced is not None
        nominee, size = self.nominees[announced["nominee"]], announced["size"]
        if explored.reproducible or self._is_reproducible(nominee, min(size, COMPARED)):
            self.messages.append("A run had been killed within a round, which was drawn again from its seeds.")
            self._round(nominee, size, announce=False)
            return
        self.ledger.append("given up", epoch=self.epoch.number, round=announced["round"])
        self.restarts += 1
        self._start()
        self.messages.append(
            "A run had been killed within a round, and the mechanism draws random numbers of its own, so the round cannot be "
            f"drawn again: evidence starts again, with {RESTARTS / 2.0**self.restarts:.3g} of alpha."
        )

    def _is_reproducible(self, nominee: Nominee, size: int) -> bool:
        """Return whether the same seeds give the same releases, where the exploration was too short to see it."""
        seeds = (seed_child(self.epoch.root, SeedKey.EXPLORATION, self.number, 0) for _ in range(2))
        first, again = (record_keys(encode(self.sampler.draw(nominee.pair.data, size, seed))) for seed in seeds)
        return bool((first == again).all()) and (is_distinctive(first) or size == COMPARED)

    def _round(self, nominee: Nominee, size: int, *, announce: bool = True) -> None:
        """Announce, draw and settle a round."""
        number = self.settled + self.restarts + 1
        epoch = self.epoch.number
        if announce:
            self.ledger.append("drawing", epoch=epoch, round=number, nominee=nominee.number, size=size)
        self.request.emit(PairChosen(number=nominee.number, pair=nominee.pair, size=size))
        since = time.monotonic()
        counts = self._draw(nominee, number, size)
        self.ledger.append(
            "round", epoch=epoch, round=number, nominee=nominee.number, counts=[rows.tolist() for rows in counts]
        )
        self.seconds += time.monotonic() - since
        self.drawn += 2 * size
        self.seconds_each = self.seconds / self.drawn
        log_wealth = self._settle(nominee.number, counts)
        self.request.emit(RoundSettled(samples=self.samples + self.drawn, log_wealth=log_wealth))

    def _draw(self, nominee: Nominee, number: int, size: int) -> list[Counts]:
        before = fingerprint(tuple(nominee.pair))
        totals = [np.zeros_like(counts) for counts in nominee.counts]
        timeline = self.timelines.setdefault(nominee.number, Timeline())
        coins = BlockSeeds(self.epoch.root, (SeedKey.EVIDENCE, number))
        for block, length in enumerate(block_sizes(size, least=SMALLEST_BLOCK, largest=LARGEST_BLOCK)):
            batches: list[Any] = [None, None]
            first = coins.first_side(block)
            for side in (first, 1 - first):
                data = nominee.pair[side]
                seed = seed_child(self.epoch.root, SeedKey.EVIDENCE, number, block, side)
                outputs = self.sampler.draw(data, length, seed)
                batches[side] = looked_at([outputs], self.sampler, features=nominee.features)
                for total, cells in zip(totals, nominee.views, strict=True):
                    total[side] += cells.count(batches[side])
            timeline.add([length], length, (batches[0], batches[1]), [first])
            self.request.emit(OutputsDrawn(2 * length))
        if fingerprint(tuple(nominee.pair)) != before:
            raise MechanismError(CHANGED_INPUT)
        return totals

    def _refuted(self) -> bool:
        """Return whether the claim, and everything stronger, is refuted."""
        if self.campaign is None:
            return False
        return self.phase.refuted or (bool(self.trajectory) and self.phase.read(self.trajectory[-1][1]))

    def _conclude(self, explored: Result, stopped_by: StoppedBy, began: str) -> Result:
        shown = None if self.campaign is None else self.phase.shown(hurried=False)
        verdict, witness = self._verdict(
            explored, shown is not None and shown.refuted, shown is not None and shown.stateful
        )
        bounded = shown is not None and not (shown.refuted and verdict is not Verdict.VIOLATION)
        samples = self.samples + explored.samples + self.drawn
        log_wealth = self.trajectory[-1][1] if self.trajectory else 0.0
        epsilon_lower = shown.epsilon_lower if bounded and shown is not None else 0.0
        summary = {
            "run": self.number,
            "date": began,
            "samples": explored.samples + self.drawn,
            "log_wealth": log_wealth,
            "epsilon_lower": epsilon_lower,
        }
        result = replace(
            explored,
            verdict=verdict,
            epsilon_lower=epsilon_lower,
            parameter_lower=shown.parameter_lower if bounded and shown is not None else 0.0,
            samples=samples,
            seconds=time.monotonic() - self.request.started,
            alpha=self.request.options.alpha,
            stopped_by=stopped_by,
            witness=witness,
            messages=(*self._history(), *self.messages, *(explored.messages if explored.verdict is verdict else ())),
            trajectory=tuple(self.trajectory),
            log_threshold=self.log_threshold,
            samples_confirming=0,
            accumulated=(*self.epoch.runs, summary),
        )
        refuted = verdict is Verdict.VIOLATION
        self.ledger.append(
            "end",
            epoch=self.epoch.number,
            run=self.number,
            summary=summary,
            result=result.to_dict() if refuted else None,
        )
        self.ledger.end()
        self.request.emit(Finished(result))
        return result

    def _history(self) -> list[str]:
        """Return what this result rests on."""
        notes = [
            f"Run {self.number} of this state of the mechanism; all its runs share one alpha. File: {self.ledger.head}."
        ]
        if self.epoch.changes:
            again = "goes on where it had stopped" if self.epoch.lines else "starts afresh"
            notes.append(
                f"Since the last run: {'; '.join(self.epoch.changes)}. So the evidence {again}: this is one of "
                f"{self.epoch.states} states in the file, each with an alpha of its own."
            )
        return notes

    def _verdict(self, explored: Result, refuted: bool, stateful: bool) -> tuple[Verdict, Witness | None]:
        if not refuted:
            if explored.verdict is not Verdict.VIOLATION:
                return explored.verdict, None
            log_wealth = self.trajectory[-1][1] if self.trajectory else 0.0
            self.messages.append(
                "The exploration of this run refuted the claim by itself, but exploring spends no alpha: the evidence of "
                f"all runs stands at exp({log_wealth:.1f}) of the exp({self.log_threshold:.1f}) that a verdict takes. "
                "Run it again."
            )
            return Verdict.INCONCLUSIVE, None
        if stateful:
            self.messages.append("Early and late outputs on the same data set differ, so releases are not independent.")
            return Verdict.INCONCLUSIVE, None
        nominee = self._best()
        event, swapped = nominee.event(self.points)
        rng = np.random.Generator(np.random.PCG64(seed_child(self.epoch.root, SeedKey.ORDERS, self.settled)))
        for timeline in self.timelines.values():
            how = dependence(timeline, event.contains, rng)
            if how is not None:
                self.messages.append(DEPENDENT.format(how=how, error=f"{ERROR_PROBABILITY:g}"))
                return Verdict.INCONCLUSIVE, None
        if explored.verdict is Verdict.VIOLATION and explored.witness is not None:
            return Verdict.VIOLATION, explored.witness
        return Verdict.VIOLATION, self._witness(nominee, event, swapped=swapped)

    def _witness(self, nominee: Nominee, event: AnyOf, *, swapped: bool) -> Witness:
        """Count the event that shows most on fresh releases, and write it down."""
        pair = tuple(reversed(nominee.pair)) if swapped else tuple(nominee.pair)
        labels: dict[int, str] = {}
        trials = min(MEASURED, max(SMALLEST_ROUND, self.settled and self.trajectory[-1][0] // 2))
        counts = [0, 0]
        with suppress(TimedOut):
            for side, data in enumerate(pair):
                seed = seed_child(self.epoch.root, SeedKey.MEASURE, self.number, side)
                outputs = self.sampler.draw(data, trials, seed)
                batch = looked_at([outputs], self.sampler, features=nominee.features)
                counts[side] = int(event.contains(batch).sum())
                labels.update(batch.labels)
        code = event_code(event, labels)
        (data_text, first), (neighbour_text, second) = literal(pair[0]), literal(pair[1])
        witness = Witness(
            data=data_text,
            neighbour=neighbour_text,
            literal=first and second,
            event=event.text(OutputNames(labels)),
            event_code=code.expression,
            on_data=frequency(counts[0], trials),
            on_neighbour=frequency(counts[1], trials),
            observed_log_ratio=observed_epsilon(counts[0], counts[1], trials, float(self.points.delta.min())),
            confirmed=True,
            shrunk=False,
            seed=self.epoch.root,
            mechanism=write(self.request.mechanism).public,
        )
        return script(
            witness,
            self.request.claim,
            code,
            self.request.mechanism,
            one_by_one=True,
            secret=False,
            suspects=self.sampler.suspects,
        )
