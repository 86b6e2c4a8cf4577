"""What the outputs settled so far show: evidence, bounds, and whether they can be trusted.

An audit has one phase or two: where a call for several outputs gives none, it starts again one release at a time. Each
phase has a share of alpha of its own, so what the first one showed stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.claims import Claim
from dpaudit.engine.drift import Drift, Replays, Watch
from dpaudit.engine.evidence import Points
from dpaudit.engine.family import LARGEST_EPSILON, claim_delta, claimed_epsilon, points_of
from dpaudit.engine.sampling import Container
from dpaudit.engine.search import Campaign, Candidate


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


class Phase:
    """State of one phase: its campaign, and what watches over the outputs."""

    def __init__(self, claim: Claim, campaign: Campaign, log_threshold: float, raised_in_probe: float) -> None:
        self.claim = claim
        self.campaign = campaign
        self.log_threshold = log_threshold
        self.raised_in_probe = (
            raised_in_probe  # share of the outputs; 1 where there is no probe, which then tells nothing
        )
        self.drift = Drift()
        self.replays = Replays()
        self.watch = Watch()
        self.containers: dict[int, set[Container]] = {}  # by pair
        self.crossed = False  # the wealth against the claim has passed the threshold
        self.refuted = False
        self.best_lower = 0.0
        self._epsilon_known = 0.0

    @property
    def stateful(self) -> bool:
        """Whether outputs changed as the audit went on."""
        exhausted = self.watch.exhausted or (self.watch.always_raised and self.raised_in_probe < 1.0)
        return self.drift.found or exhausted

    def read(self, log_wealth: float) -> bool:
        """Look at the wealth after a round; whether that refutes the claim, for the first time."""
        self.crossed |= log_wealth >= self.log_threshold
        if not self.crossed or self.refuted:
            return False
        # Verdict and bound agree: everything stronger than the claim must be refuted too, now or later.
        self.refuted = self._parameter_lower() >= self.claim.parameter
        return self.refuted

    def shown(self, *, hurried: bool) -> Shown:
        """What this phase shows; where somebody waits, only what is known already."""
        if not hurried:
            self._parameter_lower()
        # An interrupt may have come after a round was booked and before it was read.
        crossed = self.crossed or any(r.log_wealth >= self.log_threshold for r in self.campaign.timeline)
        self.refuted |= crossed and self.best_lower >= self.claim.parameter
        stateful = self.stateful
        # Draws that are not independent bound nothing.
        return Shown(
            self.refuted,
            0.0 if stateful else self.best_lower,
            0.0 if stateful else self._epsilon_lower(hurried=hurried),
            stateful,
            self.campaign.leader(),
        )

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

    def _epsilon_lower(self, *, hurried: bool) -> float:
        if claimed_epsilon(self.claim) is not None:
            return self.best_lower
        if not hurried:
            delta = claim_delta(self.claim)
            self._epsilon_known = self.campaign.lower_bound(
                lambda value: Points.of([(value, delta)]), 1.0, self.log_threshold, largest=LARGEST_EPSILON, tied=False
            )
        return self._epsilon_known
