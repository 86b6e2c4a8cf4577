r"""Confirm on single releases what was found on outputs that came many to a call.

The proof of the e-process multiplies over outputs, so it needs outputs that are independent and of which each is seen as it
would be alone. A call for several outputs promises the first and cannot promise the second: one missing value may turn the
integers of a whole table into floats, the longest row may widen all others, and noise may be drawn once for all. If the
outputs of a call may depend on each other in any way, then only averages over a call have known expectations, and the
information is the number of calls; no bet on 10^7 outputs from 100 calls can be both valid then and sharp.

So a claim is refuted only on releases that were drawn one call each. Outputs of larger calls choose the pair, the events and
the bets; anything may be done with them, because all that follows is conditional on them. The confirmation starts with its
own capital of 1 and multiplies it by the gains of the bettors (``Wealth``: the follower's), whose bets on a round are
functions of what came before. If the mechanism keeps its claim for a single release, and calls are independent of each
other, the confirmation's capital is a nonnegative supermartingale given everything that came before it, and P(it ever
reaches 1 / alpha) <= alpha by Ville's inequality, whatever larger calls do.

If the confirmation fails, the audit goes on one release at a time. The capital is divided beforehand: ``CONFIRMATION_RESERVE``
of it is never bet in the confirmation, and the rest of the audit starts from it. Both parts together are one capital of 1, so
one alpha covers them. If no confirmation was tried (a call for several outputs raised), all of it is left.

A lower bound does not rest on single releases: it rests on the promise of ``dpaudit.batched`` that the outputs of a call are
independent releases.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.engine.evidence.e_process import Record, log_mean_exp
from dpaudit.engine.sampling.serial_dependence import Timeline
from dpaudit.engine.search.campaign import Candidate

CONFIRMATION_RESERVE = 0.1


@dataclass(frozen=True, slots=True)
class ConfirmationRounds:
    """Sizes of the rounds of a confirmation, and when it is given up."""

    share: float = 0.1
    """Releases of each side in a round, as a share of the outputs on which the violation was found."""
    fewest: int = 50
    """Fewest releases of each side in a round."""
    most: float = 4.0
    """A confirmation is given up after this multiple of the outputs on which the violation was found."""
    hopeless: float = -6.0
    """A confirmation is given up when its log-capital falls below this."""


ROUNDS = ConfirmationRounds()


class Confirmation:
    """The capital of a confirmation on one pair, with bettors that learned on other outputs of that pair.

    It takes the place of a campaign in :func:`dpaudit.engine.search.rounds.settle_rounds`.
    """

    def __init__(self, found: Candidate) -> None:
        # Copies, because the search may go on where it was.
        wealth, learner = copy.deepcopy(found.wealth), copy.deepcopy(found.learner)
        self.candidate = replace(found, wealth=wealth, learner=learner, timeline=Timeline())
        self.found_on = found.seen
        self._gained = np.zeros(len(found.wealth.points))
        self._segment = SEGMENTS
        self._version = found.learner.version

    def next_candidate(self, spent: float) -> tuple[Candidate, bool]:
        """Return the one pair, which leads."""
        del spent
        return self.candidate, True

    def settle(self, candidate: Candidate, records: tuple[Record, ...], *, leading: bool, spent: float) -> float:
        """Settle a round, and return the log of the capital."""
        del leading, spent
        if records:
            _, gained = candidate.wealth.settle(records, self._segment)
            self._gained = self._gained + gained
        if candidate.learner.version != self._version:
            self._version = candidate.learner.version
            self._segment += 1
        return self.log_wealth()

    def log_wealth(self) -> float:
        """Return the log of the capital."""
        return float(log_mean_exp(self._gained))

    @property
    def log_left(self) -> float:
        """The log of the capital that is left for the rest of the audit."""
        return math.log(CONFIRMATION_RESERVE + (1.0 - CONFIRMATION_RESERVE) * math.exp(min(self.log_wealth(), 0.0)))

    @property
    def log_threshold_surplus(self) -> float:
        """Log-capital needed beyond log(1 / alpha), because a part of the capital is not bet."""
        return -math.log1p(-CONFIRMATION_RESERVE)

    def next_size(self) -> int:
        """Return the releases of each side in the next round; 0 if the confirmation is given up."""
        drawn = self.candidate.seen - self.found_on
        if drawn >= ROUNDS.most * self.found_on or self.log_wealth() < ROUNDS.hopeless:
            return 0
        return max(ROUNDS.fewest, math.ceil(ROUNDS.share * self.found_on))


SEGMENTS = 1_000_000_000  # segments of a confirmation are numbered from here, beyond those of any campaign
