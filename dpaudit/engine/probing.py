"""A look before any bet: do draws share random state, is the mechanism reproducible, does it answer at all?"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.engine.drift import raised_share
from dpaudit.engine.outputs import Encoded, encode, record_keys
from dpaudit.engine.sampling import Sampler, seed_child, telling
from dpaudit.errors import MechanismError
from dpaudit.mechanism import Fresh, Mechanism, Named, PerRelease, Plain, called_otherwise


@dataclass(frozen=True, slots=True)
class Probe:
    """What a few draws, on which nothing is ever bet, told about the mechanism."""

    reproducible: bool
    raised: float  # share of the releases that raised
    telling: bool = False  # chance alone would not have repeated its outputs


def probe(sampler: Sampler, data: Any, neighbour: Any, entropy: int, deadline: float | None) -> Probe:
    """Look for shared random state before any bet, and whether the mechanism is reproducible.

    The same seed is drawn twice, another seed once, and the neighbour once. Equal sequences from different seeds are
    refused where chance could not have made them (less than one in a thousand million, by the collisions seen).
    """
    begin = time.perf_counter()
    size = 8
    drawn = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0), deadline))
    elapsed = time.perf_counter() - begin
    # A slow mechanism is asked for less: the probe is to cost no more than a twentieth of the time there is.
    allowed = 0.02 if deadline is None else 0.05 * max(deadline - time.monotonic(), 0.0)
    # How many pairs are probed depends on what was told, and the audit goes on otherwise if a call for several outputs raises:
    # so the clock may save only calls that could do neither.
    tells = telling(record_keys(drawn))
    if elapsed * 32 < max(allowed, 0.02) or (deadline is None and (sampler.batched or not tells)):
        size = 64
        drawn = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0), deadline))
    again = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0), deadline))
    other_seed = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 1, 0), deadline))
    other_side = encode(sampler.draw(neighbour, size, seed_child(entropy, 0, 0, 0, 1), deadline))
    if raised_share(drawn) == 1.0 and raised_share(other_side) == 1.0:
        raise MechanismError(
            "The mechanism raised on every call, on both data sets, so there is nothing to audit:\n\n"
            + traceback_of(sampler.mechanism, data, seed_child(entropy, 0, 0, 2, 0))
        )
    tells = tells or telling(record_keys(drawn))
    if tells and _same(drawn, other_seed):
        raise MechanismError(
            "The mechanism gave the same sequence of outputs for two different seeds: it draws from a generator of its own "
            "that starts afresh in every call (a fixed seed?). Draw from the `rng` handed in, or make the generator once."
        )
    if tells and _same(drawn, other_side):
        raise MechanismError(
            "The mechanism gave the same sequence of outputs on both data sets: the two sides share their random numbers, "
            "so they are not independent. Draw from the `rng` that is handed in."
        )
    raised = np.mean([raised_share(drawn), raised_share(other_side)])
    return Probe(_same(drawn, again), float(raised), tells)


def traceback_of(mechanism: Mechanism, data: Any, seed: np.random.SeedSequence) -> str:
    """Call once more, this time without turning the exception into an output."""
    rng = np.random.Generator(np.random.PCG64(seed))
    if isinstance(mechanism, Named):
        mechanism = mechanism.resolve()
    try:
        match mechanism:
            case Plain():
                mechanism.function(data)
            case PerRelease():
                mechanism.function(data, rng)
            case Fresh():
                mechanism.release(data, rng)
            case _:
                mechanism.sample(data, 1, rng)
    except Exception as error:
        told = called_otherwise(mechanism) if isinstance(error, TypeError) else ""
        return traceback.format_exc() + (f"\n{told}" if told else "")
    return "(and did not raise when called once more)"


def _same(a: Encoded, b: Encoded) -> bool:
    return bool(
        a.values.shape == b.values.shape
        and (a.codes == b.codes).all()
        and np.array_equal(a.values, b.values, equal_nan=True)
    )
