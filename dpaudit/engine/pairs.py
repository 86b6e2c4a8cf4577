"""The pairs of one audit: the pool it starts with, those a look at many more has found, and edits of the most promising one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dpaudit._util.hypothesis_bridge import passed, until
from dpaudit._util.values import fingerprint
from dpaudit.engine.options import slow_pairs
from dpaudit.engine.request import Request
from dpaudit.engine.sampling.blocks import CHANGED_INPUT, OutOfTime
from dpaudit.engine.sampling.seeds import seed_child
from dpaudit.engine.search.campaign import Campaign
from dpaudit.engine.search.sweep import SWEEP, Draw, sweep
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism.code_constants import code_constants
from dpaudit.neighbours import Pair


@dataclass(frozen=True, slots=True)
class PairLimits:
    """Limits of the proposal of pairs: when, and how many, in samples unless they are shares or factors."""

    per_pair: int = 400
    """The pool of pairs is smaller if the budget would give a pair fewer samples than this."""
    first_sweep: int = 5_000
    """Many more pairs are looked at once so many samples showed nothing."""
    first_sweep_share: float = 0.03
    """They are looked at once this share of the samples that can be drawn showed nothing, too."""
    sweep_below: float = 3.0
    """Log-wealth of the most promising pair that counts as something. A little of it comes by chance."""
    first_edits: int = 20_000
    """The most promising pair is edited for the first time after so many samples."""
    growth: float = 1.7
    """It is edited again when the number of samples has grown by this factor."""
    edits: int = 3
    """The number of edited pairs that are added each time."""


PAIR_LIMITS = PairLimits()
EDITS = 5  # with the number of pairs the key of a seed; keys of rounds have more numbers


class Pairs:
    """Finds pairs for the campaigns of one audit, and checks that a mechanism leaves them as they were."""

    def __init__(self, request: Request, messages: list[str]) -> None:
        self._request = request
        self._messages = messages
        self._prints: dict[int, object] = {}  # fingerprints of the pairs, by identity
        self._swept = False
        self._edit_at = PAIR_LIMITS.first_edits

    def pool(self) -> tuple[list[Pair], bool]:
        """Return the pairs to start with, and whether there are no others."""
        pairs, complete = self._pool()
        self._prints = {id(pair): fingerprint(tuple(pair)) for pair in pairs}
        return pairs, complete

    def _pool(self) -> tuple[list[Pair], bool]:
        request, options, neighbours = self._request, self._request.options, self._request.neighbours
        wanted = max(1, min(options.pairs, options.samples // PAIR_LIMITS.per_pair))
        deadline = options.pool_deadline(request.started)
        pairs = neighbours.pool(wanted, seed=request.entropy % 2**32, deadline=deadline)
        if not pairs:
            raise InvalidArgument(f"neighbours={neighbours!r} yields no pair; widen its strategy.")
        editable = False
        if len(pairs) == wanted and not passed(deadline):
            with until(deadline):
                editable = bool(neighbours.edits(pairs[0], np.random.default_rng(0), 1))
        if passed(deadline) and not neighbours.named:
            self._messages.append(slow_pairs(len(pairs), wanted, options.seconds))
            return pairs, True
        corners = {fingerprint(tuple(pair)) for pair in neighbours.corners()}
        tried = sum(fingerprint(tuple(pair)) in corners for pair in pairs)
        if len(corners) > tried:
            self._messages.append(
                f"Of {len(corners)} corner pairs only {tried} were tried; raise pairs= or samples= for all."
            )
        return pairs, not editable

    def check_untouched(self, pair: Pair) -> None:
        """Raise MechanismError if the mechanism has changed its input."""
        if fingerprint(tuple(pair)) != self._prints[id(pair)]:
            raise MechanismError(CHANGED_INPUT)

    def start_again(self) -> None:
        """Prepare for another campaign on the same pool. Many more pairs are looked at once in an audit."""
        self._edit_at = PAIR_LIMITS.first_edits

    def propose(self, campaign: Campaign, drawn: int, in_time: Callable[[], float], draw: Draw) -> int:
        """Propose pairs to the campaign if it is time for that, and return how many samples that took.

        Parameters
        ----------
        campaign : Campaign
            The shares of such pairs were set aside at its start.
        drawn : int
            Samples so far.
        in_time : callable
            How many more samples there is time for.
        draw : callable
            Draws outputs for a look at many pairs.
        """
        looked_at = 0
        if not self._swept:
            planned = drawn + in_time()
            if drawn >= max(PAIR_LIMITS.first_sweep, PAIR_LIMITS.first_sweep_share * planned):
                self._swept = True
                looked_at = self._sweep(campaign, int(planned), draw)
        if drawn + looked_at >= self._edit_at:
            self._edit_at = math.ceil(PAIR_LIMITS.growth * (drawn + looked_at))
            if campaign.open_to_proposals:
                seed = seed_child(self._request.entropy, EDITS, len(campaign.candidates))
                rng = np.random.Generator(np.random.PCG64(seed))
                self._add(
                    campaign,
                    self._request.neighbours.edits(campaign.most_promising().pair, rng, PAIR_LIMITS.edits),
                )
        return looked_at

    def _sweep(self, campaign: Campaign, planned: int, draw: Draw) -> int:
        """Look at many more pairs with a few outputs each, and propose those that look most different."""
        rows = SWEEP.rows(planned)
        if not rows or not campaign.open_to_proposals or campaign.most_promising().log_wealth > PAIR_LIMITS.sweep_below:
            return 0
        request = self._request
        constants = code_constants(request.mechanism)
        with until(request.options.pool_deadline(time.monotonic())):
            pairs = list(request.neighbours.sweep(rows, seed=request.entropy % 2**32, constants=constants))
        with suppress(OutOfTime):
            found, drawn = sweep(pairs, draw)
            self._add(campaign, found)
            return drawn
        return 0

    def _add(self, campaign: Campaign, pairs: Sequence[Pair]) -> None:
        known = {self._prints[id(candidate.pair)] for candidate in campaign.candidates}
        for pair in pairs:
            print_of_pair = fingerprint(tuple(pair))
            if print_of_pair not in known:
                self._prints[id(campaign.propose(pair).pair)] = print_of_pair
