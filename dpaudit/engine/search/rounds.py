"""The round loop: choose a pair, draw a round on it, settle the bets, learn, and choose again.

Audits, the shorter audits made while a pair is shrunk, and audits of given scores all run this loop. They differ in where
the outputs of a round come from, which is their ``RoundSource``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from dpaudit.engine.evidence.e_process import Record
from dpaudit.engine.sampling.blocks import BlockPair, TaskResult, merge
from dpaudit.engine.search.campaign import Candidate
from dpaudit.engine.views.learner import Settled


@dataclass(slots=True)
class Budget:
    """Outputs of both sides that may be drawn, and those drawn so far."""

    samples: int
    drawn: int = 0

    @property
    def spent(self) -> float:
        """The share of the budget that is used."""
        return self.drawn / self.samples

    @property
    def left(self) -> int:
        """Outputs of each side that are left."""
        return (self.samples - self.drawn) // 2


class Capital(Protocol):
    """The bettor: it chooses the pair of each round, and keeps the wealth."""

    def next_candidate(self, spent: float) -> tuple[Candidate, bool]:
        """Return the pair to sample next and whether it is in the lead, after ``spent`` of the budget."""
        ...

    def settle(self, candidate: Candidate, records: tuple[Record, ...], *, leading: bool, spent: float) -> float:
        """Settle the bets on a round, and return the log-wealth against the claim."""
        ...


class RoundSource(Protocol):
    """Draws the outputs of a round."""

    def next_size(self, candidate: Candidate, *, leading: bool, left: int) -> int:
        """Return how many outputs of each side the next round has; below one ends the loop."""
        ...

    def draw(self, candidate: Candidate, size: int) -> TaskResult:
        """Draw a round, as far as possible. What is raised here ends the loop without settling anything of the round."""
        ...

    def check(self, candidate: Candidate, drawn: BlockPair) -> None:
        """Look at a round before it is settled, and raise if its outputs may not be bet on."""
        ...

    def is_last(self, candidate: Candidate) -> bool:
        """Return whether no round will follow on this pair, so that nothing needs to be learned from this one."""
        ...


@dataclass(frozen=True, slots=True)
class SettledRound:
    """A round whose bets were settled."""

    candidate: Candidate
    log_wealth: float  # of all capital against the claim
    complete: bool  # false where something cut the round short, which is raised next


def settle_rounds(capital: Capital, source: RoundSource, budget: Budget) -> Iterator[SettledRound]:
    """Draw and settle rounds until the budget is used, or raise what ended a round early after settling its beginning.

    Pair, size and bets of a round are functions of the rounds before it. Learning comes after settling.
    """
    while True:
        spent = budget.spent
        candidate, leading = capital.next_candidate(spent)
        size = source.next_size(candidate, leading=leading, left=budget.left)
        if size < 1:
            return
        ended = source.draw(candidate, size)
        if ended.blocks:
            drawn = merge(ended.blocks)
            source.check(candidate, drawn)
            candidate.rounds += 1
            budget.drawn += 2 * drawn.size
            records = candidate.learner.settle(
                Settled(drawn.counts, drawn.learn, drawn.repeats), drawn.size, last=source.is_last(candidate)
            )
            log_wealth = capital.settle(candidate, records, leading=leading, spent=spent)
            yield SettledRound(candidate, log_wealth, complete=ended.cause is None)
        if ended.cause is not None:
            raise ended.cause
