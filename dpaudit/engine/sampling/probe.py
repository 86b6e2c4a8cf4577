"""Probe a mechanism before any bet: shared random state, reproducibility, exceptions."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.engine.encoding.batch import Encoded, encode, record_keys
from dpaudit.engine.sampling.blocks import Sampler, is_distinctive, looked_at
from dpaudit.engine.sampling.independence import raised_share
from dpaudit.engine.sampling.seeds import seed_child
from dpaudit.errors import MechanismError
from dpaudit.mechanism import Fresh, Mechanism, Named, PerRelease, Plain, Raised, called_otherwise
from dpaudit.neighbours import Pair


@dataclass(frozen=True, slots=True)
class Probe:
    """Result of a few draws on which nothing is bet."""

    reproducible: bool
    raised: float  # share of the releases that raised
    distinctive: bool  # equal outputs would not be chance
    one_value_per_call: bool  # the outputs of each call were all equal, those of two calls were not
    outputs: tuple[Encoded, Encoded]  # of D and of D', from different seeds

    @property
    def drawn(self) -> int:
        """Outputs that the probe drew: two sequences more than it returns."""
        return 4 * len(self.outputs[0])


def probe(
    sampler: Sampler, pair: Pair, entropy: int, size: int, deadline: float | None, *, features: bool = False
) -> Probe:
    """Draw twice from one seed, once from another seed, and once on the neighbour.

    Parameters
    ----------
    sampler : Sampler
        Draws the outputs.
    pair : Pair
        The pair of data sets.
    entropy : int
        Root of the seeds.
    size : int
        Outputs of each draw. Sequences of six different outputs are never equal by chance; of outputs with few values, more are
        needed.
    deadline : float, optional
        Monotonic time of the end of the audit.
    features : bool
        Return the outputs of the pair with their features.

    Raises
    ------
    MechanismError
        If sequences from different seeds or data sets are equal and chance would make them so with probability below 1e-9,
        estimated from the collisions seen.
    """
    data, neighbour = pair
    drawn = looked_at([sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0), deadline)], sampler, features=features)
    again = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 0, 0), deadline))
    other_seed = encode(sampler.draw(data, size, seed_child(entropy, 0, 0, 1, 0), deadline))
    on_neighbour = sampler.draw(neighbour, size, seed_child(entropy, 0, 0, 0, 1), deadline)
    other_side = looked_at([on_neighbour], sampler, features=features)
    distinctive = is_distinctive(record_keys(drawn))
    if distinctive and _same(drawn, other_seed):
        raise MechanismError(
            "The mechanism gave the same sequence of outputs for two different seeds: it draws from a generator of its own "
            "that starts afresh in every call (a fixed seed?). Draw from the `rng` handed in, or make the generator once."
        )
    if distinctive and _same(drawn, other_side):
        raise MechanismError(
            "The mechanism gave the same sequence of outputs on both data sets: the two sides share their random numbers, "
            "so they are not independent. Draw from the `rng` that is handed in."
        )
    raised = np.mean([raised_share(drawn), raised_share(other_side)])
    alike = all(_all_equal(batch) for batch in (drawn, other_seed, other_side)) and not _same(drawn, other_seed)
    return Probe(_same(drawn, again), float(raised), distinctive, sampler.batched and alike, (drawn, other_side))


def nothing_but_errors(sampler: Sampler, pair: Pair, entropy: int) -> MechanismError:
    """Return the error of an audit in which every call raised, with the traceback of one more call."""
    return MechanismError(
        "The mechanism raised on every call, on both data sets, so there is nothing to audit:\n\n"
        + traceback_of(sampler.mechanism, pair.data, seed_child(entropy, 0, 0, 2, 0))
    )


def traceback_of(mechanism: Mechanism, data: Any, seed: np.random.SeedSequence) -> str:
    """Call the mechanism once more and return the traceback of its exception."""
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
                drawn = mechanism.sample(data, 1, rng)
                if isinstance(drawn, list) and isinstance(drawn[0], Raised):
                    return str(drawn[0])  # in another interpreter, where its traceback stayed
    except Exception as error:
        hint = (called_otherwise(mechanism) if isinstance(error, TypeError) else "") or expects_array(error, data)
        return traceback.format_exc() + (f"\n{hint}" if hint else "")
    return "(and did not raise when called once more)"


def expects_array(error: Exception, data: Any) -> str:
    """Return a hint if a function failed because its data are a list where it expects an array or a frame.

    >>> expects_array(AttributeError("'list' object has no attribute 'mean'"), [1])
    'The data sets are lists. For arrays pass container=np.ndarray to the neighbours, for data frames ...
    """
    wanted = isinstance(error, AttributeError | TypeError) and isinstance(data, list)
    if not wanted or not re.search(r"'list'|list indices", str(error)):
        return ""
    return (
        "The data sets are lists. For arrays pass container=np.ndarray to the neighbours, for data frames "
        "container=neighbours.frame(columns, dtypes)."
    )


def _all_equal(batch: Encoded) -> bool:
    keys = record_keys(batch)
    return bool((keys == keys[:1]).all())


def _same(a: Encoded, b: Encoded) -> bool:
    return bool(
        a.values.shape == b.values.shape
        and (a.codes == b.codes).all()
        and np.array_equal(a.values, b.values, equal_nan=True)
    )
