"""A look at the exact law of the code before an audit by samples: what it refutes ends the audit in milliseconds.

The look is short (:data:`LOOK`), and gives up without a word where the code cannot be followed. A violation is reported only
if all of this holds:

- on one pair an event has probabilities ``p`` and ``q`` with ``p > exp(epsilon) q + delta(epsilon)`` for an epsilon of the
  claim's profile, and the excess is above ``LOOK.least_excess`` and above the error of the extracted masses: an event of
  probability 2^-54 that only the reals have (``log(max(u, 2**-54))``) accuses no code;
- outputs of the running code, drawn as an audit draws them, hit the event about as often as the two laws say. A mistake in an
  extracted law would show here.

Pairs on which a pure or approximate claim is kept exactly are named in a note, and the audit goes on: what holds over the
reals and on the pairs tried says nothing about floats, other pairs, and randomness of another kind.
"""

from __future__ import annotations

import copy
import functools
import math
import random
import threading
import time
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpaudit._util.hypothesis_bridge import until
from dpaudit._util.intervals import clopper_pearson
from dpaudit._util.surroundings import engine_state
from dpaudit.claims import (
    ApproxDP,
    BoundedRange,
    Claim,
    MetricDP,
    PureDP,
    Relation,
    Verdict,
    claim_delta,
)
from dpaudit.engine.audit import check_arguments
from dpaudit.engine.conclude import DOMAIN_ERROR, NARROW
from dpaudit.engine.events import Finished
from dpaudit.engine.options import Options
from dpaudit.engine.request import result_without_draws
from dpaudit.engine.witness.event import observed_epsilon
from dpaudit.engine.witness.python_code import EventCode
from dpaudit.engine.witness.script import script, write
from dpaudit.engine.witness.shrink import frequency, literal
from dpaudit.errors import CannotFollow, InvalidArgument
from dpaudit.exact.verification import profile_grid
from dpaudit.mechanism import Batched, PerRelease, Plain, Raised, as_mechanism
from dpaudit.neighbours import Neighbours, Pair, as_neighbours, check_relation
from dpaudit.result.model import Channel, Result, StoppedBy, Witness
from dpaudit.symbolic.event import ExactEvent, events
from dpaudit.symbolic.running.extraction import Extraction, Limits, Release, extract
from dpaudit.symbolic.running.reach import Reach
from dpaudit.symbolic.running.release import release_of
from dpaudit.symbolic.values.forms import PartLaw
from dpaudit.symbolic.verification import ClaimedQuantity, measure_of


@dataclass(frozen=True, slots=True)
class Look:
    """How long the look is, and what it takes to report a violation."""

    pairs: int = 8
    """Pairs of data sets that are looked at."""
    seconds: float = 1.0
    """Time for all of it, unless a single call takes longer; fewer pairs are looked at then."""
    share: float = 0.05
    """The largest part of the ``seconds`` of an audit."""
    paths: int = 64
    """Paths of one data set that are followed."""
    tolerance: float = 1e-9
    """Relative rounding allowance on the claimed value."""
    least_excess: float = 1e-9
    """The least probability by which an event must exceed what the claim allows."""
    outputs: int = 1000
    """Outputs of each side on which the event is counted."""
    disagreement: float = 1e-9
    """The laws are dropped if the counts have a smaller probability under them."""


LOOK = Look()


class Looked(NamedTuple):
    """The outcome of the look: a violation, or a note for the result of the audit, or neither."""

    result: Result | None = None
    note: str = ""


def look(mechanism: Any, claim: Claim, neighbours: Any, *, name: str, **options: Any) -> Looked:
    """Compare exact laws on the first pairs; ``options`` are those of the audit that would follow."""
    if not _worth_it(mechanism, claim, options):
        return Looked()
    check_arguments(mechanism, claim, neighbours, name)
    close = as_neighbours(neighbours)
    if close.relation is Relation.SECRETS:
        return Looked()
    check_relation(claim, close)
    try:
        with engine_state(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            looked = _Look(as_mechanism(mechanism), claim, close, name, options).run()
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ):  # not followed, or an exception (or exit) of the user's code: the audit goes on, and says more
        return Looked()
    if looked.result is not None and options.get("on_event") is not None:
        options["on_event"](Finished(looked.result))
    return looked


def _worth_it(mechanism: Any, claim: Any, options: dict[str, Any]) -> bool:
    try:
        Options(**{**options, "channel": Channel(options.get("channel", Channel.VALUE))})
    except (TypeError, ValueError, InvalidArgument):
        return False  # the audit says what is wrong
    if not isinstance(claim, Claim) or isinstance(claim, MetricDP | BoundedRange):
        return False
    if threading.current_thread() is not threading.main_thread():  # random functions are replaced for all threads
        return False
    if Channel(options.get("channel", Channel.VALUE)) is not Channel.VALUE or options.get("timeout") is not None:
        return False
    # Objects with a method ``sample`` are left out: it may be code of any kind, and most draw in C. So are programs, services
    # and other interpreters, which are objects too: what they are sent cannot hold symbols.
    function = mechanism.function if isinstance(mechanism, Batched | PerRelease | Plain) else mechanism
    while isinstance(function, functools.partial):
        function = function.func
    return isinstance(function, types.FunctionType | types.MethodType)


class _Look:
    def __init__(self, mechanism: Any, claim: Claim, close: Neighbours, name: str, options: dict[str, Any]) -> None:
        self.mechanism, self.claim, self.close, self.name, self.options = mechanism, claim, close, name, options
        self.release: Release
        self.release, self.function = release_of(mechanism)
        self.reach = Reach.of(self.function)
        self.measure: ClaimedQuantity = measure_of(claim, LOOK.tolerance)
        self.started = time.monotonic()
        given = options.get("seconds")
        self.deadline = self.started + min(LOOK.seconds, math.inf if given is None else LOOK.share * given)
        self.seed = options.get("seed", 0) or 0
        pure = isinstance(claim, PureDP | ApproxDP)
        self.levels = [claim.parameter] if pure else [float(level) for level in profile_grid(claim)]
        self.counted: list[tuple[int, int]] = []  # hits and outputs on both sides
        self.allowed = [(level, float(claim.delta(level))) for level in self.levels]

    def run(self) -> Looked:
        kept = 0
        for count, pair in enumerate(self._pairs(), start=1):
            laws = [self._law(data) for data in pair]
            for place, (P, Q) in enumerate((laws, laws[::-1])):
                found = self._violation(P, Q)
                if found is not None and self._agrees(
                    found, ordered := Pair(*(pair if place == 0 else tuple(pair)[::-1]))
                ):
                    return Looked(self._result(found, ordered, count))
            # Of other claims a whole profile would have to be computed, which takes seconds.
            if isinstance(self.claim, PureDP | ApproxDP) and self.measure.on(pair, *laws)[1] <= self.measure.limit:
                kept += 1
            if time.monotonic() > self.deadline:
                break
        text = f"{kept} pairs of data sets keep" if kept > 1 else "1 pair of data sets keeps"
        return Looked(note=f"Exact, over the reals, from the code: {text} the claim." if kept else "")

    def _pairs(self) -> Iterator[Pair]:
        with until(self.deadline):
            yield from self.close.corners()[: LOOK.pairs]

    def _law(self, data: Any) -> Extraction:
        left = max(0.01, self.deadline - time.monotonic())
        law = extract(self.release, self.function, data, Limits(paths=LOOK.paths, seconds=left), reach=self.reach)
        numbers = [one for leaf in law.leaves for one in leaf.coordinates if isinstance(one.law, PartLaw)]
        if law.rest > LOOK.least_excess or any(
            one.key is None and one.form().continuous is not None for one in numbers
        ):
            raise CannotFollow("Integrals over integrals take too long for a first look")
        return law

    def _excess(self, event: ExactEvent, error: float) -> float:
        p, q = event.on_data * (1.0 - error), event.on_neighbour * (1.0 + error)
        return max(
            p - math.exp(min(level, 700.0)) * q - delta * (1.0 + LOOK.tolerance) for level, delta in self.allowed
        )

    def _violation(self, P: Extraction, Q: Extraction) -> ExactEvent | None:
        """Return the event with the largest ratio among those that break the claim."""
        error = P.error + Q.error + LOOK.tolerance
        broken = [event for event in events(P, Q) if self._excess(event, error) > LOOK.least_excess + P.rest + Q.rest]
        return max(broken, key=lambda event: (self._epsilon(event), event.on_data), default=None)

    def _epsilon(self, event: ExactEvent) -> float:
        """Return the epsilon that the event shows at the delta at which results state it."""
        surplus = event.on_data - claim_delta(self.claim)
        if surplus <= 0.0:
            return 0.0
        return math.log(surplus / event.on_neighbour) - 4.0 * LOOK.tolerance if event.on_neighbour > 0.0 else math.inf

    def _agrees(self, event: ExactEvent, pair: Pair) -> bool:
        """Count the event on outputs of the running code; keep the counts if they are likely under both laws."""
        counted = []
        for number, (data, probability) in enumerate(zip(pair, (event.on_data, event.on_neighbour), strict=True)):
            outputs = self._outputs(data, self.seed + number)
            hits = sum(event.holds(output) for output in outputs)
            low, high = clopper_pearson(hits, len(outputs), alpha=LOOK.disagreement)
            if not low <= probability <= high:
                return False
            counted.append((hits, len(outputs)))
        self.counted = counted
        return True

    def _outputs(self, data: Any, seed: int) -> list[Any]:
        """Draw outputs of the running code, one call each, as the script of a witness does."""
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - what a function without a generator may draw from
        rng = np.random.default_rng(seed)
        outputs: list[Any] = []
        until = max(self.deadline, time.monotonic() + 0.1 * LOOK.seconds)
        while len(outputs) < LOOK.outputs and (not outputs or time.monotonic() < until):
            try:
                outputs.append(copy.deepcopy(self.release(copy.deepcopy(data), rng)))
            except Exception as error:
                outputs.append(Raised.from_exception(error))
        return outputs

    def _result(self, event: ExactEvent, pair: Pair, pairs: int) -> Result:
        epsilon = self._epsilon(event)
        parameter = self._parameter(event)
        trials = min(trials for _, trials in self.counted)
        sides = [frequency(hits, trials) for hits, trials in self.counted]
        (data, is_literal), (neighbour, is_literal_too) = literal(pair.data), literal(pair.neighbour)
        exact = (
            f"{event.text}  [exact probabilities: {event.on_data:.6g} on data, {event.on_neighbour:.6g} on neighbour]"
        )
        witness = Witness(
            data=data,
            neighbour=neighbour,
            literal=is_literal and is_literal_too,
            event=exact,
            event_code=event.code,
            on_data=sides[0],
            on_neighbour=sides[1],
            observed_log_ratio=observed_epsilon(sides[0].count, sides[1].count, trials, claim_delta(self.claim)),
            confirmed=True,
            shrunk=False,
            seed=self.seed,
            mechanism=write(self.mechanism).public,
        )
        raises = event.text.startswith("raises ")
        code = EventCode(event.code, may_raise=raises, from_arrays=event.code.startswith("np."))
        messages = (NARROW.format(event=event.text),) if DOMAIN_ERROR.match(event.text) else ()
        return result_without_draws(
            self.name,
            self.claim,
            verdict=Verdict.VIOLATION,
            options={**self.options, "seed": self.seed},
            relation=self.close.relation,
            stopped_by=StoppedBy.EXACT,
            seconds=time.monotonic() - self.started,
            messages=messages,
            epsilon_lower=epsilon,
            parameter_lower=parameter,
            pairs=pairs,
            reproducible=True,
            witness=script(witness, self.claim, code, self.mechanism, one_by_one=True, secret=False),
            samples_after=sum(trials for _, trials in self.counted),
        )

    def _parameter(self, event: ExactEvent) -> float:
        """Return the largest parameter of the claim, within a thousandth, that the event refutes."""

        def refuted(parameter: float) -> bool:
            weaker = self.claim.at(parameter)
            return any(
                event.on_data - math.exp(min(level, 700.0)) * event.on_neighbour > float(weaker.delta(level))
                for level in self.levels
            )

        if isinstance(self.claim, PureDP | ApproxDP):
            return self._epsilon(event)
        low = high = self.claim.parameter
        while high < 1e6 * self.claim.parameter and refuted(2.0 * high):
            low = high = 2.0 * high
        high = 2.0 * high
        while high > 1.001 * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if refuted(middle) else (low, middle)
        return low
