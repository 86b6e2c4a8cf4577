"""Count a stored event on its stored pair again, with the present mechanism."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

from dpaudit._util.literals import rebuild
from dpaudit.baseline.stored import Leading
from dpaudit.engine.encoding.batch import Encoded, encode
from dpaudit.engine.encoding.feature_table import table_of_blocks
from dpaudit.engine.sampling.blocks import BatchRaised, OutOfTime, Sampler
from dpaudit.engine.sampling.seeds import SeedKey, seed_child
from dpaudit.engine.views.condition import AnyOf
from dpaudit.engine.views.plain_events import read_event
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Outputs, as_mechanism

FIRST_BLOCK = 500
FEWEST, MOST = 1_000, 200_000
SHARE = 10  # one sample here for this many samples of the audit


def trials_for(samples: int) -> int:
    """Return the number of outputs of each side, for an audit with this many samples."""
    return min(max(samples // SHARE, FEWEST), MOST)


def measure(mechanism: Any, leading: Leading, *, seed: int, trials: int, seconds: float = 30.0) -> Leading:
    """Count the event on fresh outputs of both sides.

    The seed is that of the audit, so that a reproducible mechanism that did not change gives the very counts that were
    stored. Blocks double; when time is up, the complete ones count.

    Parameters
    ----------
    mechanism : object
        As for :func:`dpaudit.audit`.
    leading : Leading
        The pair and the event, as stored.
    seed, trials : int
        Seed of the draws, and number of outputs of each side.
    seconds : float
        Time limit.

    Raises
    ------
    InvalidArgument
        The pair or the event has no plain form, or nothing could be drawn.
    """
    if leading.event is None:
        raise InvalidArgument(
            "the event has no plain form (a learned score, or a suspect), so runs are not compared by it."
        )
    event = read_event(leading.event)
    pair = (rebuild(leading.data), rebuild(leading.neighbour))
    sampler = Sampler(as_mechanism(mechanism))
    deadline = time.monotonic() + seconds
    try:
        counts, drawn = _count(sampler, event, pair, seed, trials, deadline)
    except BatchRaised:
        counts, drawn = _count(replace(sampler, one_by_one=True), event, pair, seed, trials, deadline)
    if not drawn:
        raise InvalidArgument(f"fewer than {FIRST_BLOCK} outputs could be drawn in {seconds:g} s.")
    return replace(leading, on_data=(counts[0], drawn), on_neighbour=(counts[1], drawn))


def _count(
    sampler: Sampler, event: AnyOf, pair: tuple[Any, Any], seed: int, trials: int, deadline: float
) -> tuple[list[int], int]:
    counts, drawn, block = [0, 0], 0, 0
    features = '"feature"' in json.dumps(event.plain())
    while drawn < trials and (drawn == 0 or time.monotonic() < deadline):
        size = min(max(drawn, FIRST_BLOCK), trials - drawn)
        try:
            found = [
                int(
                    event.contains(
                        _encoded(_draw(sampler, data, size, seed, block, side, deadline), features=features)
                    ).sum()
                )
                for side, data in enumerate(pair)
            ]
        except OutOfTime:
            break
        counts = [old + new for old, new in zip(counts, found, strict=True)]
        drawn += size
        block += 1
    return counts, drawn


def _encoded(outputs: Outputs, *, features: bool) -> Encoded:
    batch = encode(outputs)
    return batch.with_features(table_of_blocks([outputs])) if features else batch


def _draw(sampler: Sampler, data: Any, size: int, seed: int, block: int, side: int, deadline: float) -> Any:
    return sampler.draw(data, size, seed_child(seed, SeedKey.BASELINE, 0, block, side), deadline)
