"""From what was drawn to what is said: verdict, bounds, power, witness, and the messages beside them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from dpaudit.claims import Verdict
from dpaudit.engine.brief import Brief
from dpaudit.engine.family import claim_delta, points_of
from dpaudit.engine.learning import Builder
from dpaudit.engine.phase import Phase, Shown
from dpaudit.engine.power import HEADLINE, detectable_epsilon, finding
from dpaudit.engine.probing import traceback_of
from dpaudit.engine.progress import Seeking
from dpaudit.engine.representation import MEANING, NO_FLOATS, all_whole, any_float
from dpaudit.engine.result import Channel, Result, StoppedBy, Witness, as_plain
from dpaudit.engine.sampling import OutOfTime, Sampler, TimedOut, seed_child
from dpaudit.engine.search import Candidate
from dpaudit.engine.shrink import Looker, find_witness, leading_event
from dpaudit.errors import DPAuditError, MechanismError

UNLIKE = (
    "Processes drew different outputs from the same seed, so the result depends on who drew what. Something in the mechanism "
    "differs from process to process, such as the order of a set of words: start Python with PYTHONHASHSEED=0, sort what comes "
    "out of sets, or audit without executor= and --workers."
)
FROM_ZERO = 0.1  # what must be detectable where the claim is epsilon = 0
TYPES_NUMBER = 6_000_000  # names a seed
FOR_THE_WITNESS = 0.1  # of the seconds
FOR_A_PICTURE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What a run leaves behind, whose last phase it was that ended."""

    brief: Brief
    phase: Phase
    earlier: Shown | None  # by the phase of calls for several outputs, if that ended before
    sampler: Sampler
    build: Builder
    drawn: int
    trajectory: tuple[tuple[int, float], ...]
    messages: list[str]  # it grows while things are concluded
    reproducible: bool
    alike: bool  # whether all processes drew the same from one seed, as far as was seen
    seconds_of_first_build: float  # of a pair's views, the longest
    hurried: bool  # interrupted while concluding: what was not yet worked out is left out

    def result(self, stopped_by: StoppedBy) -> Result:
        """Conclude."""
        brief, campaign = self.brief, self.phase.campaign
        if self.phase.watch.always_raised and not self.phase.stateful:
            first = campaign.candidates[0].pair
            raise MechanismError(
                "The mechanism raised on every call, on both data sets, so there is nothing to audit:\n\n"
                + traceback_of(self.sampler.mechanism, first.data, seed_child(brief.entropy, 0, 0, 2, 0))
            )
        shown = self.phase.shown(hurried=self.hurried).joined(self.earlier)
        detectable = self._detectable()
        verdict = self._verdict(stopped_by, shown, detectable[HEADLINE])
        seeking = Seeking(brief.name, wanted=brief.options.progress)
        looker = Looker(
            self.sampler, brief.claim, campaign.points, self.build, brief.entropy, seeking, self._witness_deadline()
        )
        witness: Witness | None = None
        outputs: dict[str, Any] = {}
        if verdict is Verdict.VIOLATION:
            witness, outputs = self._witness(looker, shown.leader)
        elif not self.hurried and self._time_for_a_picture():
            outputs = self._leading()
        return Result(
            name=brief.name,
            claim=brief.claim,
            verdict=verdict,
            epsilon_lower=shown.epsilon_lower,
            delta=claim_delta(brief.claim),
            parameter_lower=shown.parameter_lower,
            alpha=brief.options.alpha,
            samples=self.drawn,
            seconds=time.monotonic() - brief.started,
            pairs=sum(candidate.rounds > 0 for candidate in campaign.candidates),
            channel=brief.options.channel,
            relation=brief.neighbours.relation,
            detectable_epsilon=detectable[HEADLINE],
            detectable=detectable,
            stopped_by=stopped_by,
            reproducible=self.reproducible and self.alike,
            seed=brief.entropy,
            witness=witness,
            messages=tuple(self.messages),
            trajectory=self.trajectory,
            threshold=self.phase.log_threshold,
            samples_after=looker.drawn,
            outputs=as_plain(outputs),
        )

    def _detectable(self) -> dict[float, float]:
        most = max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)
        return detectable_epsilon(
            self.brief.claim,
            per_side=most.seen,
            log_threshold=self.phase.log_threshold,
            log_share=self.phase.campaign.log_stake(most),
            samples=self.brief.options.samples,
            hidden=finding(most.learner),
        )

    def _tell(self, message: str) -> None:
        """Say something once, though an interrupt may have it concluded twice."""
        if message not in self.messages:
            self.messages.append(message)

    def _verdict(self, stopped_by: StoppedBy, shown: Shown, detectable: float) -> Verdict:
        if self.reproducible and not self.alike:
            self._tell(UNLIKE)
        elif shown.stateful:
            self._tell(
                "Early and late outputs on the same data set differ: the mechanism keeps state (a budget accountant, a cache, "
                "a seed), so its releases are not independent. Audit dpaudit.fresh(make), which makes a new one each time."
            )
        if shown.stateful:
            return Verdict.INCONCLUSIVE
        if shown.refuted:
            if self.phase.watch.constant:
                self._tell(
                    "Every release on the same data gave the same output: the mechanism is deterministic, sets a fixed seed in "
                    "every call (np.random.seed, default_rng(0)), or remembers its first answer. If it keeps state by design, "
                    "audit dpaudit.fresh(make), which makes a new one each time."
                )
            if self.brief.options.channel is Channel.REPRESENTATION:
                self._tell(NO_FLOATS if self._lacks_floats() else MEANING)
            return Verdict.VIOLATION
        for message in self.phase.watch.blind_spots():
            self._tell(message)
        if stopped_by in (StoppedBy.TIMEOUT, StoppedBy.LOST_WORKER):
            return Verdict.INCONCLUSIVE
        if self.brief.options.channel is Channel.REPRESENTATION and self._lacks_floats():
            self._tell(NO_FLOATS)
            return Verdict.INCONCLUSIVE
        claimed = float(self.phase.campaign.points.epsilon.max())
        allowed = claimed * self.brief.options.power if claimed > 0.0 else FROM_ZERO
        if detectable > allowed:
            caught = (
                f"would be caught from epsilon {detectable:.3g} on"
                if math.isfinite(detectable)
                else "would not be caught, however much it tells"
            )
            self._tell(
                f"Too few samples: an event of probability {HEADLINE} {caught}, but power={self.brief.options.power:g} asks for "
                f"epsilon {allowed:.3g}. Give more samples, or a larger power=."
            )
            return Verdict.INCONCLUSIVE
        return Verdict.NO_VIOLATION_FOUND

    def _lacks_floats(self) -> bool:
        """Whether the outputs hold no floats. Encoded ones do not tell whole floats from integers, so a few are drawn."""
        seen = [
            batch
            for candidate in self.phase.campaign.candidates
            if candidate.learner.keeps
            for batch in candidate.learner.kept()
        ]
        if self.hurried or not seen or not all(map(all_whole, seen)):
            return False
        seed, deadline = seed_child(self.brief.entropy, TYPES_NUMBER), self._witness_deadline()
        try:
            return not any(
                any_float(self.sampler.draw(data, 8, seed, deadline)) for data in self.phase.campaign.leader().pair
            )
        except (TimedOut, DPAuditError, OutOfTime):
            return False

    def _witness(self, looker: Looker, leader: Candidate) -> tuple[Witness | None, dict[str, Any]]:
        if self.hurried:
            return None, {}
        with looker.seeking:
            witness, outputs = find_witness(
                looker,
                self.brief.neighbours,
                leader.pair,
                leader.learner,
                spent=2 * leader.seen,
                alpha=self.brief.options.alpha,
                shrink=self.brief.options.shrink,
                origin=self.brief.mechanism,
            )
        if witness is None:
            self._tell("No witness: time ran out, or a call failed, while a small example was being sought.")
        return witness, outputs

    def _time_for_a_picture(self) -> bool:
        """A picture is not worth more time than there is, and to choose its event takes about as long as views."""
        until, seconds = self.brief.deadline, self.brief.options.seconds or 0.0
        return until is None or time.monotonic() + self.seconds_of_first_build - FOR_A_PICTURE * seconds < until

    def _leading(self) -> dict[str, Any]:
        most = max(self.phase.campaign.candidates, key=lambda candidate: candidate.seen)
        # Against the claim itself a mechanism that keeps it has nothing to show, and the choice would be noise.
        shown = [value for value in (self.brief.claim.parameter, self.phase.best_lower) if value > 0.0]
        half = points_of(self.brief.claim.at(min(shown) / 2.0)) if shown else self.phase.campaign.points
        return leading_event(most.pair, most.learner, half) if most.learner.keeps else {}

    def _witness_deadline(self) -> float | None:
        """A tenth of the time budget is there for the witness even where the violation came late."""
        if self.brief.deadline is None or self.brief.options.seconds is None:
            return None
        return max(self.brief.deadline, time.monotonic()) + FOR_THE_WITNESS * self.brief.options.seconds
