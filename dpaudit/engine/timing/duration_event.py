"""Events on the duration of a call: choose one, count it, draw it, and write a script that repeats the measurement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.values import source
from dpaudit.claims import Claim
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.timing.clock import Times
from dpaudit.engine.witness.script import full_name, import_block, unwritten, write
from dpaudit.engine.witness.shrink import frequency, literal
from dpaudit.neighbours import Pair
from dpaudit.result.model import Witness

LEVELS = 64
DURATION_CELLS = 40

TIMING_TEMPLATE = '''"""Repeats a measurement of dpaudit on the channel timing: {claim}.

Event: {event}. Times differ from machine to machine: the threshold may have to be moved.
"""

{imports}

mechanism = {mechanism}
data = {data}
neighbour = {neighbour}


def event(microseconds):
    return {expression}


on_data, on_neighbour = microseconds(mechanism, data, neighbour, calls={calls}, seed={seed})
counts = [sum(map(event, times)) for times in (on_data, on_neighbour)]
print(f"event on data:      {{counts[0]}} of {{len(on_data)}}; median {{np.median(on_data):.2f}} microseconds")
print(f"event on neighbour: {{counts[1]}} of {{len(on_neighbour)}}; median {{np.median(on_neighbour):.2f}} microseconds")
shares = [counts[0] / len(on_data), counts[1] / len(on_neighbour)]
ratio = math.inf if shares[1] == 0 else math.log(max(shares[0], 1e-300) / shares[1])
print(f"log-ratio {{ratio:.4f}}; the claim is {claim}")
'''


@dataclass(frozen=True, slots=True)
class Duration:
    """Calls that take at least, or less than, so many microseconds; ``swapped`` where it is likelier on the neighbour.

    >>> str(Duration(12.3, True, False)), Duration(12.3, True, False).code
    ('call takes at least 12.3 microseconds', 'microseconds >= 12.3')
    """

    microseconds: float
    at_least: bool
    swapped: bool

    def __str__(self) -> str:
        return f"call takes {'at least' if self.at_least else 'less than'} {self.microseconds:g} microseconds"

    @property
    def code(self) -> str:
        """A Python expression in ``microseconds``."""
        return f"microseconds {'>=' if self.at_least else '<'} {self.microseconds!r}"

    def contains(self, nanoseconds: Times) -> NDArray[np.bool_]:
        """Return for every call whether it is in the event."""
        above = nanoseconds >= 1000.0 * self.microseconds
        return above if self.at_least else ~above


def threshold_event(labels: Times, nanoseconds: Times, points: Points) -> Duration | None:
    """Return the threshold that exceeds what the claim allows by most standard errors."""
    sides = [np.sort(nanoseconds[labels == label]) for label in (0, 1)]
    if min(side.size for side in sides) == 0:
        return None
    levels = np.quantile(nanoseconds, np.arange(1, LEVELS) / LEVELS, method="higher")
    cuts = np.unique([float(f"{cut / 1000.0:.4g}") for cut in levels])
    below = np.stack([np.searchsorted(side, 1000.0 * cuts, side="left") / side.size for side in sides])
    smallest = min(side.size for side in sides)
    best: tuple[float, Duration | None] = (-np.inf, None)
    for at_least, shares in ((True, 1.0 - below), (False, below)):
        for swapped in (False, True):
            p, q = (shares[::-1] if swapped else shares)[:, None, :]
            c, delta = points.ratio[:, None], points.delta[:, None]
            variance = p * (1.0 - p) + c * c * q * (1.0 - q) + 1.0 / smallest
            score = ((p - c * q - delta) / np.sqrt(variance)).max(axis=0)
            place = int(np.argmax(score))
            if score[place] > best[0]:
                best = (float(score[place]), Duration(float(cuts[place]), at_least, swapped))
    return best[1]


def describe_times(pair: Pair, labels: Times, nanoseconds: Times, event: Duration | None) -> dict[str, Any]:
    """The summary of ``Result.outputs``: times on both sides with the event, and the event as a baseline keeps it."""
    if event is None:
        return {}
    ordered, sides = _ordered(pair, labels, nanoseconds, event)
    low, high = np.quantile(nanoseconds, [0.001, 0.99]) / 1000.0
    edges = np.linspace(low, high if high > low else low + 1.0, DURATION_CELLS + 1)
    counts = [np.histogram(side / 1000.0, edges)[0].tolist() for side in sides]
    reach = [event.microseconds, np.inf] if event.at_least else [-np.inf, event.microseconds]
    data, neighbour = source(ordered.data), source(ordered.neighbour)
    hits = [int(event.contains(side).sum()) for side in sides]
    return {
        "edges": edges.tolist(),
        "data": counts[0],
        "neighbour": counts[1],
        "event": [reach],
        "trials": [side.size for side in sides],
        "label": "microseconds",
        "pair": [data, neighbour],
        "leading": {
            "data": data,
            "neighbour": neighbour,
            "text": str(event),
            "event": None,  # the times of another day are not to be compared with these
            "on_data": [hits[0], sides[0].size],
            "on_neighbour": [hits[1], sides[1].size],
        },
    }


def timing_witness(
    pair: Pair,
    event: Duration,
    labels: Times,
    nanoseconds: Times,
    *,
    claim: Claim,
    delta: float,
    confirmed: bool,
    seed: int,
    origin: object,
) -> Witness:
    """The pair and the event, counted on fresh calls, with the program that repeats it."""
    ordered, sides = _ordered(pair, labels, nanoseconds, event)
    hits = [int(event.contains(side).sum()) for side in sides]
    (data, data_literal), (neighbour, neighbour_literal) = literal(ordered.data), literal(ordered.neighbour)
    share = hits[0] / sides[0].size - delta
    others = hits[1] / sides[1].size
    shown = 0.0 if share <= 0.0 else math.log(share / others) if others else math.inf
    written = write(origin)
    missing = [] if written.expression else [unwritten(origin)]
    known = data_literal and neighbour_literal
    if not known:
        missing.append("the data have no literal form: rebuild them here")
    text = TIMING_TEMPLATE.format(
        claim=repr(claim),
        event=event,
        imports=import_block(
            ["math"], data + neighbour, sorted({"microseconds", *written.replayed}), written.imports, missing
        ),
        mechanism=written.expression or f"placeholder({f'the mechanism {full_name(origin)}'!r})",
        data=data if known else "placeholder('the data')",
        neighbour=neighbour if known else "placeholder('the data')",
        expression=event.code,
        calls=labels.size,
        seed=seed,
    )
    return Witness(
        data=data,
        neighbour=neighbour,
        literal=known,
        event=str(event),
        event_code=event.code,
        on_data=frequency(hits[0], sides[0].size),
        on_neighbour=frequency(hits[1], sides[1].size),
        observed_log_ratio=shown,
        confirmed=confirmed,
        shrunk=False,
        seed=seed,
        mechanism=written.public,
        script_text=text,
    )


def _ordered(pair: Pair, labels: Times, nanoseconds: Times, event: Duration) -> tuple[Pair, list[Times]]:
    """Pair and times in the order in which the event is likelier on the data."""
    sides = [nanoseconds[labels == label] for label in (0, 1)]
    return (Pair(pair.neighbour, pair.data), sides[::-1]) if event.swapped else (pair, sides)
