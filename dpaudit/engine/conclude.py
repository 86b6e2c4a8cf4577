"""Conclude an audit: from what was drawn to verdict, bounds, witness and messages, and so to the result."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dpaudit.claims import Verdict
from dpaudit.engine.events import ViolationFound
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.request import Findings, Request
from dpaudit.engine.sampling.blocks import OutOfTime, Sampler, TimedOut
from dpaudit.engine.sampling.probe import traceback_of
from dpaudit.engine.sampling.seeds import SeedKey, seed_child
from dpaudit.engine.search.attempt import Attempt, Shown
from dpaudit.engine.search.campaign import Candidate
from dpaudit.engine.search.detectable import HEADLINE, detectable_epsilon, search_cost
from dpaudit.engine.views.float_bits import MEANING, NO_FLOATS, all_whole, any_float
from dpaudit.engine.views.learner import Builder
from dpaudit.engine.witness.shrink import Looker, find_witness, leading_event
from dpaudit.errors import DPAuditError, MechanismError
from dpaudit.result.model import Channel, Result, StoppedBy, Witness

UNLIKE = (
    "Processes drew different outputs from the same seed, so the result depends on which process drew what. Something in the "
    "mechanism differs from process to process, such as the order of a set of words: start Python with PYTHONHASHSEED=0, sort "
    "what comes out of sets, or audit without executor= and --workers."
)
WITNESS_SHARE = 0.1  # of `seconds`, kept for the witness
PICTURE_SHARE = 0.05  # of `seconds` by which a picture may be late


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The state of a run whose last attempt has ended."""

    request: Request
    phase: Attempt
    earlier: Shown | None  # what the attempt in batches has shown, if a second one followed
    sampler: Sampler
    build: Builder
    drawn: int
    trajectory: tuple[tuple[int, float], ...]
    messages: list[str]  # more are added while the audit is concluded
    reproducible: bool
    alike: bool  # as far as was seen, all processes drew the same from one seed
    seconds_of_first_build: float  # of a pair's views, the longest
    hurried: bool  # interrupted while concluding: leave out what is not yet computed

    def result(self, stopped_by: StoppedBy) -> Result:
        """Conclude."""
        request, campaign = self.request, self.phase.campaign
        if self.phase.watch.always_raised and not self.phase.stateful:
            first = campaign.candidates[0].pair
            raise MechanismError(
                "The mechanism raised on every call, on both data sets, so there is nothing to audit:\n\n"
                + traceback_of(self.sampler.mechanism, first.data, seed_child(request.entropy, 0, 0, 2, 0))
            )
        shown = self.phase.shown(hurried=self.hurried).joined(self.earlier)
        detectable = self._detectable()
        verdict = self._verdict(stopped_by, shown, detectable[HEADLINE])
        looker = Looker(self.sampler, request, campaign.points, self.build, self._witness_deadline())
        witness: Witness | None = None
        outputs: dict[str, Any] = {}
        if verdict is Verdict.VIOLATION:
            witness, outputs = self._witness(looker, shown.leader)
        elif not self.hurried and self._time_for_a_picture():
            outputs = self._leading()
        return request.result(
            Findings(
                verdict=verdict,
                epsilon_lower=shown.epsilon_lower,
                parameter_lower=shown.parameter_lower,
                detectable=detectable,
                samples=self.drawn,
                pairs=sum(candidate.rounds > 0 for candidate in campaign.candidates),
                stopped_by=stopped_by,
                reproducible=self.reproducible and self.alike,
                log_threshold=self.phase.log_threshold,
                messages=self.messages,
                trajectory=self.trajectory,
                witness=witness,
                samples_after=looker.drawn,
                outputs=outputs,
            )
        )

    def _detectable(self) -> dict[float, float]:
        most = max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)
        return detectable_epsilon(
            self.request.claim,
            per_side=most.seen,
            log_threshold=self.phase.log_threshold,
            log_share=self.phase.campaign.log_stake(most),
            samples=self.request.options.samples,
            cost=search_cost(most.learner),
        )

    def _add_message(self, message: str) -> None:
        """Add a message once: an interrupt may lead to a second conclusion."""
        if message not in self.messages:
            self.messages.append(message)

    def _verdict(self, stopped_by: StoppedBy, shown: Shown, detectable: float) -> Verdict:
        if self.reproducible and not self.alike:
            self._add_message(UNLIKE)
        elif shown.stateful:
            self._add_message(
                "Early and late outputs on the same data set differ: the mechanism keeps state (a budget accountant, a cache, "
                "a seed), so its releases are not independent. Audit dpaudit.fresh(make), which makes a new one each time."
            )
        if shown.stateful:
            return Verdict.INCONCLUSIVE
        if shown.refuted:
            if self.phase.watch.constant:
                self._add_message(
                    "Every release on the same data gave the same output: the mechanism is deterministic, sets a fixed seed in "
                    "every call (np.random.seed, default_rng(0)), or remembers its first answer. If it keeps state by design, "
                    "audit dpaudit.fresh(make), which makes a new one each time."
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
        lacking = self.request.lacking_power(detectable)
        if lacking is not None:
            self._add_message(lacking)
            return Verdict.INCONCLUSIVE
        return Verdict.NO_VIOLATION_FOUND

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
                any_float(self.sampler.draw(data, 8, seed, deadline)) for data in self.phase.campaign.leader().pair
            )
        except (TimedOut, DPAuditError, OutOfTime):
            return False

    def _witness(self, looker: Looker, leader: Candidate) -> tuple[Witness | None, dict[str, Any]]:
        if self.hurried:
            return None, {}
        self.request.emit(ViolationFound(self.drawn))
        witness, outputs = find_witness(looker, leader.pair, leader.learner, spent=2 * leader.seen)
        if witness is None:
            self._add_message("No witness: time ran out, or a call failed, while a small example was searched for.")
        return witness, outputs

    def _time_for_a_picture(self) -> bool:
        """Return whether there is time for a picture: choosing its event takes about as long as building views."""
        until, seconds = self.request.deadline, self.request.options.seconds or 0.0
        return until is None or time.monotonic() + self.seconds_of_first_build - PICTURE_SHARE * seconds < until

    def _leading(self) -> dict[str, Any]:
        most = max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)
        # Against the claim itself no event of a mechanism that keeps it stands out, and the choice would be noise.
        shown = [value for value in (self.request.claim.parameter, self.phase.best_lower) if value > 0.0]
        half = points_of(self.request.claim.at(min(shown) / 2.0)) if shown else self.phase.campaign.points
        return leading_event(most.pair, most.learner, half) if most.learner.keeps else {}

    def _witness_deadline(self) -> float | None:
        """Return the end of the time for the witness: a tenth of `seconds`, even where the violation came late."""
        if self.request.deadline is None or self.request.options.seconds is None:
            return None
        return max(self.request.deadline, time.monotonic()) + WITNESS_SHARE * self.request.options.seconds
