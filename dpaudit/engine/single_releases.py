"""Releases drawn one call each, on which a violation that outputs of larger calls have shown must be shown again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from dpaudit.engine.sampling.blocks import BatchRaised, BlockPair, Sampler, TaskResult, merge
from dpaudit.engine.sampling.seeds import SeedKey
from dpaudit.engine.search.campaign import Candidate
from dpaudit.engine.search.confirmation import Confirmation
from dpaudit.engine.search.rounds import Budget, settle_rounds


@dataclass(frozen=True, slots=True)
class SingleReleaseLimits:
    """Limits of the number of releases that are drawn for the test of dependence."""

    most_compared: int = 4_096
    """The most releases of each side that are tested for dependence after a confirmation."""
    compared_at_once: int = 512
    """Releases of each side in one round of these."""


SINGLE_RELEASES = SingleReleaseLimits()


class NotConfirmed(BatchRaised):
    """Single releases did not confirm what outputs of larger calls have shown."""


class RoundDrawer(Protocol):
    """Draws rounds (see ``run``)."""

    sampler: Sampler
    sizes: tuple[int, ...]  # blocks of the last round
    first_sides: list[int]  # the side that was drawn first, of each of them

    def draw_round(
        self, candidate: Candidate, size: int, sampler: Sampler, number: int, *, fewest_kept: int = 0
    ) -> TaskResult:
        """Draw a round with a sampler and the seeds of ``number``, and hand back at least ``fewest_kept`` outputs."""
        ...


@dataclass(frozen=True, slots=True)
class SingleReleases:
    """The source of the rounds of a confirmation: one call a release, with seeds of their own."""

    drawer: RoundDrawer
    confirmation: Confirmation
    budget: Budget  # of the confirmation, which has limits of its own

    def confirm(self, log_threshold: float) -> bool:
        """Return whether single releases refute the claim as well."""
        enough = log_threshold + self.confirmation.log_threshold_surplus
        return any(settled.log_wealth >= enough for settled in settle_rounds(self.confirmation, self, self.budget))

    def lengthen(self) -> None:
        """Draw as many single releases as the violation was found on, for the test of dependence.

        What was learned from larger calls may be a pool of noise that is used in turn, which fewer releases would not show. How
        many there are does not depend on the speed of calls: the verdict may depend on them, and is to be reproducible.
        """
        candidate = self.confirmation.candidate
        wanted = min(self.confirmation.found_on, SINGLE_RELEASES.most_compared)
        while candidate.timeline.size < wanted and not candidate.timeline.full:
            ended = self.draw(candidate, min(wanted - candidate.timeline.size, SINGLE_RELEASES.compared_at_once))
            candidate.rounds += 1
            if ended.cause is not None:
                return
            drawn = merge(ended.blocks)
            self.check(candidate, drawn)
            self.budget.drawn += 2 * drawn.size

    def next_size(self, candidate: Candidate, *, leading: bool, left: int) -> int:
        """Return the releases of each side in the next round; 0 if the confirmation is given up."""
        del candidate, leading, left
        return self.confirmation.next_size()

    def draw(self, candidate: Candidate, size: int) -> TaskResult:
        """Draw a round."""
        single = replace(self.drawer.sampler, one_by_one=True)
        number, keep = SeedKey.SINGLE + candidate.number, 0 if candidate.timeline.full else size
        return self.drawer.draw_round(candidate, size, single, number, fewest_kept=keep)

    def check(self, candidate: Candidate, drawn: BlockPair) -> None:
        """Keep the releases in their order, for the test of dependence."""
        candidate.timeline.add(self.drawer.sizes, drawn.size, drawn.learn, self.drawer.first_sides)

    def is_last(self, candidate: Candidate) -> bool:
        """Return False: views may be learned after every round."""
        del candidate
        return False
