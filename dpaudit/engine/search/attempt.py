"""Evidence and bounds of one attempt of an audit, and the checks that its draws are independent.

An audit has one attempt or two: if a call for several outputs raises, a second attempt draws one release at a time. Each
attempt then has half of alpha, so the conclusions of the first remain valid, and the larger of two bounds is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpaudit.claims import Claim, claimed_epsilon
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.sampling.blocks import Container
from dpaudit.engine.sampling.independence import DriftTest, OutputMonitor, RepeatTest
from dpaudit.engine.search.bounds import epsilon_lower, parameter_lower
from dpaudit.engine.search.campaign import Campaign, Candidate


@dataclass(frozen=True, slots=True)
class Shown:
    """Conclusions from the rounds settled so far, at the attempt's share of alpha, and the pair with most evidence."""

    refuted: bool
    parameter_lower: float
    epsilon_lower: float
    stateful: bool
    leader: Candidate

    def joined(self, earlier: Shown | None) -> Shown:
        """Combine with an earlier attempt, which remains valid because each attempt has its own share of alpha."""
        if earlier is None:
            return self
        return Shown(
            self.refuted or earlier.refuted,
            max(self.parameter_lower, earlier.parameter_lower),
            max(self.epsilon_lower, earlier.epsilon_lower),
            self.stateful or earlier.stateful,
            self.leader if self.refuted or not earlier.refuted else earlier.leader,
        )


class Attempt:
    """State of one attempt: its campaign, and the tests of its outputs."""

    def __init__(self, claim: Claim, campaign: Campaign, log_threshold: float, raised_in_probe: float) -> None:
        self.claim = claim
        self.campaign = campaign
        self.log_threshold = log_threshold
        self.raised_in_probe = raised_in_probe  # share of the outputs; 1 if there was no probe
        self.drift = DriftTest()
        self.replays = RepeatTest()
        self.watch = OutputMonitor()
        self.containers: dict[int, set[Container]] = {}  # by pair
        self.crossed = False  # the wealth against the claim has passed the threshold
        self.refuted = False
        self.best_lower = 0.0
        self._epsilon_known = 0.0

    @property
    def stateful(self) -> bool:
        """True if the outputs changed during the audit."""
        exhausted = self.watch.exhausted or (self.watch.always_raised and self.raised_in_probe < 1.0)
        return self.drift.found or exhausted

    def read(self, log_wealth: float) -> bool:
        """Read the log-wealth after a round, and return whether it refutes the claim for the first time."""
        self.crossed |= log_wealth >= self.log_threshold
        if not self.crossed or self.refuted:
            return False
        # Verdict and bound agree: everything stronger than the claim must be refuted too, now or later.
        self.refuted = self._parameter_lower() >= self.claim.parameter
        return self.refuted

    def shown(self, *, hurried: bool) -> Shown:
        """Return the conclusions; if ``hurried``, after an interrupt, without computing bounds again."""
        if not hurried:
            self._parameter_lower()
        # An interrupt may have come after a round was settled and before its wealth was read.
        crossed = self.crossed or any(r.log_wealth >= self.log_threshold for r in self.campaign.timeline)
        self.refuted |= crossed and self.best_lower >= self.claim.parameter
        stateful = self.stateful
        # Draws that are not independent give no bound.
        return Shown(
            self.refuted,
            0.0 if stateful else self.best_lower,
            0.0 if stateful else self._epsilon_lower(hurried=hurried),
            stateful,
            self.campaign.leader(),
        )

    def _parameter_lower(self) -> float:
        """Return the largest bound read so far; all of them rest on the maximum of the same wealth."""
        now = parameter_lower(self.claim, self._lower_bound)
        self.best_lower = max(self.best_lower, now)
        return self.best_lower

    def _epsilon_lower(self, *, hurried: bool) -> float:
        if claimed_epsilon(self.claim) is not None:
            return self.best_lower
        if not hurried:
            self._epsilon_known = epsilon_lower(self.claim, self._lower_bound)
        return self._epsilon_known

    def _lower_bound(
        self, points_at: Callable[[float], Points], claimed: float, *, largest: float, tied: bool
    ) -> float:
        return self.campaign.lower_bound(points_at, claimed, self.log_threshold, largest=largest, tied=tied)
