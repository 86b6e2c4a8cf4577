"""A request: the arguments of one audit with its seed, its clock and the handlers of its events. It builds the result."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpaudit._util.validation import shorten
from dpaudit.claims import Claim, Relation, Verdict, claim_delta, claimed_epsilon
from dpaudit.engine.events import Event, Finished, Handler
from dpaudit.engine.evidence.claim_points import points_of
from dpaudit.engine.options import Options
from dpaudit.engine.search.detectable import HEADLINE, MASSES, Extent, detects_multiple
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours import Neighbours, check_relation
from dpaudit.result.model import Channel, Result, StoppedBy, Witness, as_plain

DRAWING_SHARE = 0.95  # of `seconds`; the rest is for bounds and the report
DETECTABLE_FROM_ZERO = 0.1  # the epsilon that must be detectable where the claim is epsilon = 0
INTERRUPTED = "Interrupted; this is the result so far."


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The part of a result that the audit found; the request adds the rest."""

    verdict: Verdict
    epsilon_lower: float
    parameter_lower: float
    detectable: Mapping[float, float]  # by the probability of an event, the epsilon from which on it would be detected
    samples: int
    pairs: int  # pairs of data sets that were sampled
    stopped_by: StoppedBy
    reproducible: bool
    log_threshold: float
    messages: Sequence[str] = ()
    trajectory: Sequence[tuple[int, float]] = ()
    witness: Witness | None = None
    samples_confirming: int = 0
    samples_after: int = 0
    coverage: float = 1.0
    samples_needed: int | None = None
    searched: Sequence[str] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A mechanism, its claim, where to look and how; the root of all random numbers; the clock; the handlers of events."""

    mechanism: Any  # as given by the user: a script names it in the same way
    claim: Claim
    neighbours: Neighbours
    options: Options
    name: str
    entropy: int
    started: float  # monotonic
    deadline: float | None  # monotonic; after it nothing is drawn for the verdict
    handlers: tuple[Handler, ...] = ()
    notes: tuple[str, ...] = ()  # messages about the request itself, the last ones of the result

    @classmethod
    def of(
        cls,
        mechanism: Any,
        claim: Any,
        neighbours: Neighbours,
        options: Options,
        name: str,
        handlers: Sequence[Handler] = (),
        notes: Sequence[str] = (),
    ) -> Request:
        """Check the claim against the neighbours, and start the clock.

        Parameters
        ----------
        mechanism, claim, neighbours, name
            As given to :func:`dpaudit.audit`.
        options : Options
            The other arguments.
        handlers : sequence of callable
            Receive the events of the audit.
        notes : sequence of str
            Messages about the request that the result ends with.
        """
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
            deadline=None if options.seconds is None else started + DRAWING_SHARE * options.seconds,
            handlers=tuple(handlers),
            notes=tuple(notes),
        )

    def emit(self, event: Event) -> None:
        """Pass an event to every handler."""
        for handler in self.handlers:
            handler(event)

    def lacking_power(self, detectable: float, extent: Extent, *, unit: str = "samples") -> str | None:
        """Return a message if a leak of ``detect_factor`` times the claim would not be detected, otherwise None."""
        claim, factor = self.claim, self.options.detect_factor
        claimed = float(points_of(claim).epsilon.max())
        more = f"Give more {unit}, or a larger detect_factor=."
        if claimed > 0.0 and claimed_epsilon(claim) is None:
            if math.isfinite(detectable) and detects_multiple(claim, factor, extent):
                return None
            return f"Too few {unit}: a leak of detect_factor={factor:g} times the claim may not be detected. {more}"
        wanted = claimed * factor if claimed > 0.0 else DETECTABLE_FROM_ZERO
        if detectable <= wanted:
            return None
        detected = f"would be detected from epsilon {detectable:.3g} on" if math.isfinite(detectable) else (
            "would not be detected at any epsilon"
        )  # fmt: skip
        return (
            f"Too few {unit}: an event of probability {HEADLINE} {detected}, but "
            f"detect_factor={factor:g} asks for epsilon {wanted:.3g}. {more}"
        )

    def result(self, findings: Findings) -> Result:
        """Build the result, and announce it as the last event."""
        result = Result(
            name=self.name,
            claim=self.claim,
            verdict=findings.verdict,
            epsilon_lower=findings.epsilon_lower,
            delta=claim_delta(self.claim),
            parameter_lower=findings.parameter_lower,
            alpha=self.options.alpha,
            samples=findings.samples,
            seconds=time.monotonic() - self.started,
            pairs=findings.pairs,
            channel=self.options.channel,
            relation=self.neighbours.relation,
            detectable_epsilon=findings.detectable[HEADLINE],
            detectable=dict(findings.detectable),
            stopped_by=findings.stopped_by,
            reproducible=findings.reproducible,
            seed=self.entropy,
            witness=findings.witness,
            messages=(*findings.messages, *self.notes),
            trajectory=tuple(findings.trajectory),
            log_threshold=findings.log_threshold,
            samples_confirming=findings.samples_confirming,
            samples_after=findings.samples_after,
            coverage=findings.coverage,
            samples_needed=findings.samples_needed,
            searched=tuple(findings.searched),
            outputs=as_plain(findings.outputs),
        )
        self.emit(Finished(result))
        return result

    def nothing_drawn(self, log_threshold: float, messages: Sequence[str]) -> Result:
        """Return the result of an audit that was interrupted before anything was drawn."""
        return self.result(
            Findings(
                verdict=Verdict.INCONCLUSIVE,
                epsilon_lower=0.0,
                parameter_lower=0.0,
                detectable=dict.fromkeys(MASSES, math.inf),
                samples=0,
                pairs=0,
                stopped_by=StoppedBy.INTERRUPT,
                reproducible=False,
                log_threshold=log_threshold,
                messages=(*messages, INTERRUPTED),
            )
        )


def result_without_draws(
    name: str,
    claim: Claim,
    *,
    verdict: Verdict,
    options: Mapping[str, Any],
    relation: Relation | None,
    stopped_by: StoppedBy,
    seconds: float,
    messages: Sequence[str],
    epsilon_lower: float = 0.0,
    parameter_lower: float = 0.0,
    pairs: int = 0,
    reproducible: bool = False,
    witness: Witness | None = None,
    samples_after: int = 0,
) -> Result:
    """Return the result of an audit in which nothing was bet on: an exact law decided, or it was ended from outside.

    Parameters
    ----------
    name, claim, verdict, relation, stopped_by, seconds, messages
        As in the result.
    options : mapping
        The keywords of the audit, of which alpha, channel and seed are in the result.
    epsilon_lower, parameter_lower, pairs, reproducible, witness, samples_after
        What an exact law has shown.
    """
    return Result(
        name=name,
        claim=claim,
        verdict=verdict,
        epsilon_lower=epsilon_lower,
        delta=claim_delta(claim),
        parameter_lower=parameter_lower,
        alpha=options.get("alpha", Options().alpha),
        samples=0,
        seconds=seconds,
        pairs=pairs,
        channel=Channel(options.get("channel", Channel.VALUE)),
        relation=relation,
        detectable_epsilon=math.inf,
        detectable=dict.fromkeys(MASSES, math.inf),
        stopped_by=stopped_by,
        reproducible=reproducible,
        seed=options.get("seed") or Options().seed or 0,
        witness=witness,
        messages=tuple(messages),
        samples_after=samples_after,
    )
