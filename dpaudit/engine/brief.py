"""What an audit is given, whatever channel it watches, and when it has to end."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.claims import Claim, Verdict
from dpaudit.engine.family import claim_delta
from dpaudit.engine.options import Options
from dpaudit.engine.power import MASSES
from dpaudit.engine.result import Result, StoppedBy
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours import Neighbours, check_relation
from dpaudit.validation import shorten

FOR_DRAWING = 0.95  # of the seconds: bounds and report come on top, and want a little of the time
INTERRUPTED = "Interrupted; this is the result so far."


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A mechanism, what it claims, where to look and how; the root of all random numbers, and the clock."""

    mechanism: Any  # as it was given, which is how a script names it
    claim: Claim
    neighbours: Neighbours
    options: Options
    name: str
    entropy: int
    started: float  # monotonic
    deadline: float | None  # monotonic; past it nothing is drawn for the verdict

    @classmethod
    def of(cls, mechanism: Any, claim: Any, neighbours: Neighbours, options: Options, name: str) -> Brief:
        """Check what was given, and start the clock."""
        if isinstance(claim, type) or not isinstance(claim, Claim):
            raise InvalidArgument(f"claim={shorten(claim)} must be a claim such as dpaudit.PureDP(1.0).")
        check_relation(claim, neighbours)
        started = time.monotonic()
        return cls(
            mechanism=mechanism,
            claim=claim,
            neighbours=neighbours,
            options=options,
            name=name,
            entropy=secrets.randbits(63) if options.seed is None else options.seed,
            started=started,
            deadline=None if options.seconds is None else started + FOR_DRAWING * options.seconds,
        )

    def nothing_drawn(self, log_threshold: float, messages: Sequence[str]) -> Result:
        """The result where the audit was interrupted before anything was drawn."""
        return Result(
            name=self.name,
            claim=self.claim,
            verdict=Verdict.INCONCLUSIVE,
            epsilon_lower=0.0,
            delta=claim_delta(self.claim),
            parameter_lower=0.0,
            alpha=self.options.alpha,
            samples=0,
            seconds=time.monotonic() - self.started,
            pairs=0,
            channel=self.options.channel,
            relation=self.neighbours.relation,
            detectable_epsilon=math.inf,
            detectable=dict.fromkeys(MASSES, math.inf),
            stopped_by=StoppedBy.INTERRUPT,
            reproducible=False,
            seed=self.entropy,
            messages=(*messages, INTERRUPTED),
            threshold=log_threshold,
        )
