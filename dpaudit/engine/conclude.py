"""Conclude an audit: from what was drawn to verdict, bounds, witness and messages, and so to the result."""

from __future__ import annotations

import math
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit._util.messages import duration
from dpaudit.claims import MetricDP, Verdict
from dpaudit.engine.encoding.batch import encode, record_keys
from dpaudit.engine.events import ViolationFound
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.request import Findings, Request
from dpaudit.engine.sampling.blocks import OutOfTime, Sampler, TimedOut
from dpaudit.engine.sampling.probe import nothing_but_errors
from dpaudit.engine.sampling.seeds import SeedKey, seed_child
from dpaudit.engine.sampling.serial_dependence import ERROR_PROBABILITY, FEWEST_RELEASES, dependence
from dpaudit.engine.search.attempt import Attempt, Shown
from dpaudit.engine.search.campaign import CHOICE, Candidate
from dpaudit.engine.search.confirmation import Confirmation
from dpaudit.engine.search.detectable import HEADLINE, Extent, detectable_epsilon, search_cost
from dpaudit.engine.views.float_bits import MEANING, NO_FLOATS, all_whole, any_float
from dpaudit.engine.views.learner import Builder
from dpaudit.engine.witness.event import simplest
from dpaudit.engine.witness.shrink import SHRINK, PairAuditor, find_witness, leading_event, witness_as_found
from dpaudit.errors import DPAuditError
from dpaudit.result.model import Channel, Result, StoppedBy, Witness

UNLIKE = (
    "Processes drew different outputs from the same seed, so the result depends on which process drew what. Something in the "
    "mechanism differs from process to process, such as the order of a set of words: start Python with PYTHONHASHSEED=0, sort "
    "what comes out of sets, or audit without executor= and --workers."
)
UNCONFIRMED = (
    "Outputs that came many to a call refuted the claim, but there was no time to confirm it on releases drawn one call each, "
    "so this is no violation yet. Give more time, or audit fewer pairs."
)
DEPENDENT = (
    "Releases are not independent: {how}. The mechanism keeps state (a cache, a budget, a pool of noise, correlated noise), so "
    "its releases say little about a single one; independent releases look like this with probability at most {error}. Audit "
    "dpaudit.fresh(make), which makes a new mechanism for each release, or take the state out."
)
CHANGES_LATER = "the same output came again and again, and then another one"
HARDLY_ANSWERED = (
    "Of {releases:,} releases that were looked at all but {answers} raised. If the mechanism stops answering after some calls (a "
    "budget accountant), audit dpaudit.fresh(make), which makes a new one each time; otherwise narrow the rows to data that it "
    "answers."
)
NEVER_VARIED = (
    "All outputs were equal, on every data set that was tried. A constant is private, but this is almost always a mistake: a "
    "forgotten return, or an option that switches the release off. If it is meant, pass allow_constant=True."
)
BESIDE_A_SEED = (
    "A number of each output, such as {token}, looks like a random seed. If other parts of the output are computed from it (a "
    "hash, a permutation, a share of a secret), a leak is in both together, where no event of numbers shows it. Say what you "
    "suspect: suspect= takes functions of one output, such as whether the answer is the hash of one value under this seed."
)
NOTHING_SETTLED = (
    "Samples or time ran out before a round was settled, so there is nothing to judge. Give more samples, or more time."
)
TOO_MANY_PAIRS = (
    "Too few samples for the {pairs} given pairs: if one of them leaks and the others do not, an event of probability {mass} "
    "would not be detected at any epsilon. Give more samples, or fewer pairs."
)
NARROW = (
    "The event is an error that reads like a limit on the data ({event}). If such rows cannot occur, narrow the rows of the "
    "neighbours until both data sets are allowed; if they can, then whether the release raises says which data set it was."
)
# A KeyError names the missing key, and an assertion often says nothing.
DOMAIN_ERROR = re.compile(
    r"raises (?:[\w.]+\.)?(?:KeyError\b|AssertionError$|(?:Value|Assertion|Type)Error: .*?"
    r"(?:out of (?:bounds|range)|outside|must |should |not in\b|not allowed|at (?:least|most)|expected|invalid|unknown|"
    r"between|negative|positive|empty|domain error))",
    re.IGNORECASE,
)
MOST_DOUBLINGS = 24  # of the samples, when it is computed how many would decide
TYPES_LOOKED_AT = 1000  # outputs of each side of which the types are looked at
FEWEST_COVERED = 0.5  # share of the outputs that must be looked at before nothing found means something
WITNESS_SHARE = 0.1  # of `seconds`, kept for the witness
PICTURE_SHARE = 0.05  # of `seconds` by which a picture may be late


@dataclass(frozen=True, slots=True)
class ConstantWatch:
    """How long a mechanism whose releases were all equal is watched before it is called constant."""

    releases: int = 10_000
    """The most releases that are drawn."""
    at_once: int = 500
    """Releases that are drawn before they are compared."""
    lasting: int = 20
    """Other outputs in a row that chance does not explain, after so many equal ones."""
    by_chance: float = 1e-6
    """Other outputs of which this is the probability, after so many equal ones, do not come by chance either."""
    seconds: float = 1.0
    """The longest time that this may take, and then the clock's next second is waited for."""


WATCHING = ConstantWatch()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The state of a run whose last attempt has ended."""

    request: Request
    phase: Attempt
    earlier: Shown | None  # what the attempt in batches has shown, if a second one followed
    confirmation: Confirmation | None  # what single releases have confirmed, where outputs came many to a call
    confirmed: bool  # the evidence rests on releases drawn one call each
    confirming: int  # samples that a confirmation took
    sampler: Sampler
    build: Builder
    drawn: int
    trajectory: tuple[tuple[int, float], ...]
    messages: list[str]  # more are added while the audit is concluded
    reproducible: bool
    alike: bool  # as far as was seen, all processes drew the same from one seed
    fastest: float  # seconds of one output in the fastest round
    seconds_of_first_build: float  # of a pair's views, the longest
    hurried: bool  # interrupted while concluding: leave out what is not yet computed
    needed: list[int | None] = field(default_factory=list)  # what `samples_needed` returned

    def result(self, stopped_by: StoppedBy) -> Result:
        """Conclude."""
        request, campaign = self.request, self.phase.campaign
        if self.phase.watch.always_raised and not self.phase.stateful:
            raise nothing_but_errors(self.sampler, campaign.candidates[0].pair, request.entropy)
        shown = self.phase.shown(hurried=self.hurried).joined(self.earlier)
        coverage = self._coverage()
        verdict = self._verdict(stopped_by, shown, coverage)
        bounded = verdict is Verdict.VIOLATION or not shown.refuted
        slow = SHRINK.slow < self.fastest < math.inf
        allowed = self.drawn // 2 if slow else max(self.drawn, SHRINK.always)
        auditor = PairAuditor(self.sampler, request, campaign.points, self.build, self._witness_deadline(), allowed)
        witness: Witness | None = None
        outputs: dict[str, Any] = {}
        if verdict is Verdict.VIOLATION:
            witness, outputs = self._witness(auditor, self._accused(shown))
            if witness is not None and DOMAIN_ERROR.match(witness.event):
                self._add_message(NARROW.format(event=witness.event))
        elif not self.hurried and self._time_for_a_picture():
            outputs = self._leading()
        return request.result(
            Findings(
                verdict=verdict,
                epsilon_lower=shown.epsilon_lower if bounded else 0.0,
                parameter_lower=shown.parameter_lower if bounded else 0.0,
                detectable=self._detectable(self._extent(on_leader=False)),
                samples=self.drawn,
                pairs=sum(candidate.rounds > 0 for candidate in campaign.candidates),
                stopped_by=stopped_by,
                reproducible=self.reproducible and self.alike,
                log_threshold=self.phase.log_threshold,
                messages=self.messages,
                trajectory=self.trajectory,
                witness=witness,
                samples_confirming=self.confirming,
                samples_after=auditor.drawn,
                coverage=coverage,
                samples_needed=self.samples_needed() if verdict is Verdict.INCONCLUSIVE else None,
                searched=tuple(dict.fromkeys(name for each in campaign.candidates for name in each.learner.searched)),
                outputs=outputs,
            )
        )

    def _extent(self, *, on_leader: bool, factor: float = 1.0) -> Extent:
        """Return what was spent on the pair sampled most, or on all pairs; with ``factor``, with so many times the outputs."""
        campaign = self.phase.campaign
        most = self._sampled_most()
        return Extent(
            per_side=int(factor * (most.seen if on_leader else sum(each.seen for each in campaign.candidates))),
            log_threshold=self.phase.log_threshold,
            log_share=campaign.log_stake(most),
            samples=math.ceil(factor * self.request.options.samples),
            cost=search_cost(most.learner),
            pairs=1 if on_leader else sum(candidate.rounds > 0 for candidate in campaign.candidates),
            explored=CHOICE.explore if campaign.for_bound else None,
        )

    def _detectable(self, extent: Extent) -> dict[float, float]:
        """Return what would have been detected: against metric privacy on the pair sampled most, per unit of distance."""
        claim, distance = self.request.claim, self._sampled_most().distance
        if not isinstance(claim, MetricDP) or not 0.0 < distance < math.inf:
            return detectable_epsilon(claim, extent)
        detectable = detectable_epsilon(claim.at(claim.parameter * distance), extent)
        return {mass: epsilon / distance for mass, epsilon in detectable.items()}

    def _sampled_most(self) -> Candidate:
        return max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)

    def _lacking_power(self, *, factor: float = 1.0) -> str | None:
        """Return a message if too little would have been detected; with ``factor``, if so many times the outputs were drawn."""
        on_leader = self._extent(on_leader=True, factor=factor)
        if (lacking := self.request.lacking_power(self._detectable(on_leader)[HEADLINE], on_leader)) is not None:
            return lacking
        # Pairs that are given are all asked about; those that a search proposes are there to find a leader.
        pairs = sum(candidate.rounds > 0 for candidate in self.phase.campaign.candidates)
        if pairs <= 1 or not self.request.neighbours.named:
            return None
        on_any = self._detectable(self._extent(on_leader=False, factor=factor))[HEADLINE]
        return None if math.isfinite(on_any) else TOO_MANY_PAIRS.format(pairs=pairs, mass=HEADLINE)

    def _add_message(self, message: str) -> None:
        """Add a message once: an interrupt may lead to a second conclusion."""
        if message not in self.messages:
            self.messages.append(message)

    def _accused(self, shown: Shown) -> Candidate:
        """Return the pair on which the claim is refuted, with the releases that show it."""
        return shown.leader if self.confirmation is None else self.confirmation.candidate

    def _verdict(self, stopped_by: StoppedBy, shown: Shown, coverage: float) -> Verdict:
        if self.reproducible and not self.alike:
            self._add_message(UNLIKE)
        elif shown.stateful:
            self._add_message(
                "Early and late outputs on the same data set differ: the mechanism keeps state (a budget accountant, a cache, "
                "a seed), so its releases are not independent. Audit dpaudit.fresh(make), which makes a new one each time."
            )
        if shown.stateful:
            return Verdict.INCONCLUSIVE
        if shown.refuted and not self.confirmed:
            self._add_message(UNCONFIRMED)
            return Verdict.INCONCLUSIVE
        if shown.refuted:
            accused = self._accused(shown)
            if (how := self._dependence(accused)) is not None:
                self._add_message(DEPENDENT.format(how=how, error=f"{ERROR_PROBABILITY:g}"))
                return Verdict.INCONCLUSIVE
            if (self._settled_any and self.phase.watch.constant) or accused.timeline.is_constant():
                self._add_message(
                    "Every release on the same data gave the same output: the mechanism is deterministic, sets a fixed seed in "
                    "every call (np.random.seed, default_rng(0)), or remembers its first answer. If it keeps state by design, "
                    "audit dpaudit.fresh(make), which makes a new one each time."
                )
            if isinstance(self.request.claim, MetricDP):
                self._add_message(
                    f"The pair on which the claim is refuted is {accused.distance:.4g} apart, so the claim allows it a "
                    f"log-ratio of {self.request.claim.epsilon * accused.distance:.4g}. A smaller pair that is shown has a "
                    "distance of its own."
                )
            if self.request.options.channel is Channel.REPRESENTATION:
                self._add_message(NO_FLOATS if self._lacks_floats() else MEANING)
            return Verdict.VIOLATION
        for message in self.phase.watch.blind_spots():
            self._add_message(message)
        if stopped_by in (StoppedBy.TIMEOUT, StoppedBy.LOST_WORKER):
            return Verdict.INCONCLUSIVE
        if self.request.options.channel is Channel.REPRESENTATION and self._lacks_floats():
            self._add_message(NO_FLOATS)
            return Verdict.INCONCLUSIVE
        if (unseen := self._nothing_to_see(coverage)) is not None:
            self._add_message(unseen)
            return Verdict.INCONCLUSIVE
        if (lacking := self._lacking_power()) is not None:
            self._add_message(lacking + self._what_would_decide())
            return Verdict.INCONCLUSIVE
        return Verdict.NO_VIOLATION_FOUND

    def samples_needed(self) -> int | None:
        """Return about how many samples would have been enough to catch what was asked for; None if no number would."""
        if not self.needed:
            self.needed.append(self._samples_needed())
        return self.needed[0]

    def _samples_needed(self) -> int | None:
        if self.drawn == 0 or self.hurried:
            return None

        def enough(factor: float) -> bool:
            return self._lacking_power(factor=factor) is None

        if enough(1.0):
            return self.drawn
        if not enough(2.0**MOST_DOUBLINGS):
            return None
        high = next((2.0**power for power in range(1, MOST_DOUBLINGS + 1) if enough(2.0**power)), 2.0**MOST_DOUBLINGS)
        low = high / 2.0
        for _ in range(6):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return math.ceil(high * self.drawn)

    def _what_would_decide(self) -> str:
        needed = self.samples_needed()
        if needed is None or needed <= self.drawn:
            return ""
        unit = 10 ** max(len(str(needed)) - 2, 0)  # rounded up to two digits: fewer would not decide
        text = f" About {-(-needed // unit) * unit:,} samples would decide"
        seconds = (time.monotonic() - self.request.started) / self.drawn
        if self.request.options.seconds is None:
            return f"{text}."
        return (
            f"{text}, {duration(needed * seconds)} at {duration(seconds)} a call; batch the mechanism, raise seconds=, or name "
            "the pairs."
        )

    @property
    def _settled_any(self) -> bool:
        """True if the last attempt settled a round; a second one may find all samples used."""
        return any(candidate.rounds for candidate in self.phase.campaign.candidates)

    def _nothing_to_see(self, coverage: float) -> str | None:
        """Return a message if the outputs never varied, or if a leak in most of them could not be seen."""
        if not self._settled_any:
            return NOTHING_SETTLED
        if self.phase.watch.never_varied and not self.request.options.allow_constant:
            return NEVER_VARIED
        if (watch := self.phase.watch).hardly_answered:
            return HARDLY_ANSWERED.format(answers=watch.answers, releases=watch.releases)
        if coverage < FEWEST_COVERED:
            return (
                f"Only {coverage:.0%} of the outputs could be looked at; the others hold no numbers and did not repeat often "
                "enough for a bet. Return what they contain as numbers or as fewer distinct values."
            )
        if self.phase.watch.token and self.request.options.suspect is None:
            return BESIDE_A_SEED.format(token=self.phase.watch.token)
        return None

    def _coverage(self) -> float:
        most = max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)
        return most.learner.coverage() if most.learner.keeps else 0.0

    def _dependence(self, accused: Candidate) -> str | None:
        """Return how the releases that an accusation rests on depend on each other; None if they were not seen to."""
        timeline, learner = accused.timeline, accused.learner
        if timeline.is_constant():
            return CHANGES_LATER if not self.hurried and self._changes_later(accused) else None
        if timeline.size < FEWEST_RELEASES:
            return None
        rng = np.random.Generator(np.random.PCG64(seed_child(self.request.entropy, SeedKey.ORDERS)))
        # The views of the audit were learned from its first outputs. If they have cells for values that were repeated there,
        # an event of theirs is more frequent among early releases, although releases are independent.
        of_d, of_neighbour = (side.rows(rng.permutation(len(side))) for side in timeline.sides())
        views = [view for view, _ in self.build((of_d, of_neighbour))]
        event = simplest((of_d, of_neighbour), views, accused.wealth.points, learner.labels)
        return None if event is None else dependence(timeline, event.contains, rng)

    def _changes_later(self, accused: Candidate) -> bool:
        """Return whether a mechanism whose releases were all equal gives other ones from some call on, or later.

        An output that is rare by chance is followed by the usual one again, so others must come ``WATCHING.lasting`` times in
        a row; or there must be so many of them that they would hardly have been missing before, as where outputs alternate
        from call to call: if k of n releases are others, all k come after the first t with probability (n / (n + t))^k at
        most. A seed that is the time in seconds gives another output in the next second. With a time limit, a call that is
        late by chance would look like another output, so nothing is drawn.
        """
        if self.sampler.timeout is not None:
            return False
        single = replace(self.sampler, one_by_one=True)
        known = record_keys(accused.timeline.sides()[0])[0]
        until, limit = time.monotonic() + WATCHING.seconds, self._witness_deadline()

        def changed(part: int, size: int, deadline: float | None) -> bool:
            seed = seed_child(self.request.entropy, SeedKey.LATER, part)
            drawn = encode(single.draw(accused.pair.data, size, seed, deadline))
            usual = np.flatnonzero(record_keys(drawn) == known)
            by_chance = (size - usual.size) * math.log(size / (size + accused.timeline.size))
            lasting = np.diff(usual, prepend=-1, append=size).max() > min(WATCHING.lasting, size)
            return bool(lasting or by_chance < math.log(WATCHING.by_chance))

        parts = WATCHING.releases // WATCHING.at_once
        with suppress(TimedOut, DPAuditError):
            with suppress(OutOfTime):
                if any(changed(part, WATCHING.at_once, min(until, limit or until)) for part in range(parts)):
                    return True
            wait = 1.0 - time.time() % 1.0
            if limit is None or time.monotonic() + wait < limit:
                time.sleep(wait)
                with suppress(OutOfTime):
                    return changed(parts, WATCHING.lasting, limit)
        return False

    def _lacks_floats(self) -> bool:
        """Return whether the outputs hold no floats. Encoding does not distinguish 1.0 from 1, so a few more are drawn."""
        seen = [
            batch
            for candidate in self.phase.campaign.candidates
            if candidate.learner.keeps
            for batch in candidate.learner.kept()
        ]
        if self.hurried or not seen or not all(map(all_whole, seen)):
            return False
        seed, deadline = seed_child(self.request.entropy, SeedKey.TYPES), self._witness_deadline()
        try:
            return not any(
                any_float(self.sampler.draw(data, TYPES_LOOKED_AT, seed, deadline))
                for data in self.phase.campaign.leader().pair
            )
        except (TimedOut, DPAuditError, OutOfTime):
            return False

    def _witness(self, auditor: PairAuditor, leader: Candidate) -> tuple[Witness | None, dict[str, Any]]:
        if self.hurried:
            return witness_as_found(auditor, leader.pair, leader.learner)
        self.request.emit(ViolationFound(self.drawn))
        return find_witness(auditor, leader.pair, leader.learner, spent=2 * leader.seen)

    def _time_for_a_picture(self) -> bool:
        """Return whether there is time for a picture: choosing its event takes about as long as building views."""
        until, seconds = self.request.deadline, self.request.options.seconds or 0.0
        return until is None or time.monotonic() + self.seconds_of_first_build - PICTURE_SHARE * seconds < until

    def _leading(self) -> dict[str, Any]:
        most = max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)
        # Against the claim itself no event of a mechanism that keeps it stands out, and the choice would be noise.
        shown = [value for value in (self.request.claim.parameter, self.phase.best_lower) if value > 0.0]
        half = points_of(self.request.claim.at(min(shown) / 2.0)) if shown else self.phase.campaign.points
        return leading_event(most.pair, most.learner, half.stretched(most.distance)) if most.learner.keeps else {}

    def _witness_deadline(self) -> float | None:
        """Return the end of the time for the witness: a tenth of `seconds`, even where the violation came late."""
        if self.request.deadline is None or self.request.options.seconds is None:
            return None
        return max(self.request.deadline, time.monotonic()) + WITNESS_SHARE * self.request.options.seconds
