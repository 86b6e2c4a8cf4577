"""The front door: run an audit, assert that it finds nothing, or keep its definition for later."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpaudit.claims import Claim, Verdict
from dpaudit.engine.options import Options
from dpaudit.engine.result import Channel, Result
from dpaudit.engine.run import Run
from dpaudit.engine.surroundings import current
from dpaudit.engine.timing import TimingRun
from dpaudit.errors import Inconclusive, InvalidArgument, PrivacyViolation
from dpaudit.neighbours import Neighbours, fixed
from dpaudit.validation import check_choice, shorten
from dpaudit.values import fingerprint


def audit(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    name: str | None = None,
    **options: Any,
) -> Result:
    """Look for a violation of ``claim`` by running the mechanism, and lower-bound its true epsilon.

    Parameters
    ----------
    mechanism
        An object with ``sample(data, size, rng)``, any function ``f(data)``, a name ``"package.module:factory"``, or what
        ``dpaudit.batched``, ``per_release`` and ``fresh`` make.
    claim
        ``PureDP``, ``ApproxDP``, ``GaussianDP``, ``ZeroConcentratedDP`` or ``RenyiDP``.
    neighbours
        Where to look: made by ``dpaudit.neighbours``, or a list of pairs.
    samples
        Budget: outputs of both sides, all pairs, learning included. Finding a smaller witness comes on top.
    seconds
        Budget of time; the audit ends within a tenth of it, or one call of the mechanism.
    alpha
        Probability that a mechanism that keeps its claim is reported as a violation, over the whole run: all pairs,
        both directions, all events, all looks.
    seed
        Root of all random numbers (None: a fresh one, which the result names).
    channel
        ``"value"`` (default), ``"representation"`` (the bits of floats) or ``"timing"`` (how long a call takes); each has
        its own alpha. Timing is for neighbours of equal sizes and one process, half of its samples are a control, and it
        stands outside the promises on alpha and reproducibility (see ``dpaudit.engine.timing``).
    executor
        Any ``concurrent.futures.Executor``.
    pairs
        How many pairs of data sets compete.
    power
        INCONCLUSIVE unless an event of probability 0.1 at this multiple of the claim would have been caught.
    until
        ``"violation"``: stop as soon as the claim is refuted. ``"budget"``: go on for the best lower bound.

    Returns
    -------
    Result
        Verdict, ``epsilon_lower``, the witness, and what would have been detected.

    Examples
    --------
    >>> import dpaudit
    >>> half_noise = dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=0.5, size=size))
    >>> result = dpaudit.audit(half_noise, dpaudit.PureDP(1.0), [([], [1])], seed=0)
    >>> result.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    >>> result.epsilon_lower >= 1.0
    True
    """
    _check_arguments(mechanism, claim, neighbours, name)
    if not isinstance(options.get("channel", Channel.VALUE), Channel):
        check_choice([channel.value for channel in Channel], channel=options["channel"])
        options["channel"] = Channel(options["channel"])
    unknown = sorted(set(options) - set(Options.__dataclass_fields__))
    if unknown:
        check_choice(sorted(Options.__dataclass_fields__), option=unknown[0])
    chosen = Options(**options)
    run = TimingRun if chosen.channel is Channel.TIMING else Run
    close = as_neighbours(neighbours)
    equal = _equal_pairs(close)
    result = run(mechanism, claim, close, chosen, name or name_of(mechanism)).result()
    return replace(result, messages=(*result.messages, equal)) if equal else result


def assert_private(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    allow_inconclusive: bool = False,
    name: str | None = None,
    **options: Any,
) -> Result:
    """Audit, and raise :class:`PrivacyViolation` with the witness, or :class:`Inconclusive`; otherwise return the result.

    Inside pytest it is part of the run: it has the run's options, and a share of the run's alpha unless it names its own.
    """
    around = current()
    if around is not None:
        name, options = around.options(name, options)
    result = audit(mechanism, claim, neighbours, name=name, **options)
    if around is not None:
        around.finished(result)
        allow_inconclusive = allow_inconclusive or around.allows_inconclusive()
    if result.verdict is Verdict.VIOLATION:
        raise PrivacyViolation(str(result), result)
    if result.verdict is Verdict.INCONCLUSIVE and not allow_inconclusive:
        raise Inconclusive(str(result), result)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A definition of an audit: what ``dpaudit run`` and the pytest plugin collect.

    ``expect`` turns it into an examination: an unmet expectation fails.
    """

    name: str
    mechanism: Any
    claim: Claim
    neighbours: Any  # Neighbours, or a function that makes them
    options: dict[str, Any] = field(default_factory=dict)
    expect: Verdict | str | None = None
    made: bool = False  # ``mechanism`` is a function that makes it, called when the audit runs

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.expect, str):
            check_choice([verdict.value for verdict in Verdict], expect=self.expect)
            object.__setattr__(self, "expect", Verdict(self.expect))

    def run(self, **overrides: Any) -> Result:
        """Run it, with options replaced where given."""
        where = self.neighbours() if callable(self.neighbours) else self.neighbours
        mechanism = self.mechanism() if self.made else self.mechanism
        return audit(mechanism, self.claim, where, name=self.name, **{**self.options, **overrides})

    def met(self, result: Result) -> bool:
        """Whether the result is what was expected (without expectation: no violation, and conclusive)."""
        return result.verdict is (self.expect or Verdict.NO_VIOLATION_FOUND)


def name_of(mechanism: Any) -> str:
    """A readable name for whatever is audited."""
    if isinstance(mechanism, str):
        return mechanism
    inner = getattr(mechanism, "__wrapped__", mechanism)
    return getattr(inner, "__qualname__", None) or type(inner).__name__


def _check_arguments(mechanism: Any, claim: Any, neighbours: Any, name: Any) -> None:
    if isinstance(neighbours, Claim) or (isinstance(mechanism, Claim) and not isinstance(claim, Claim)):
        raise InvalidArgument(
            f"mechanism={shorten(mechanism)}, claim={shorten(claim)}, neighbours={shorten(neighbours)} must come in the order "
            "audit(mechanism, claim, neighbours): some of them are swapped."
        )
    check_name(name)


def check_name(name: Any) -> None:
    """A name is text, or None where it is taken from the mechanism."""
    if name is not None and not isinstance(name, str):
        raise InvalidArgument(f"name={shorten(name)} must be text (str), under which the result is reported.")


def _equal_pairs(neighbours: Neighbours) -> str:
    """What is to be said about given pairs of a data set and itself, which can show nothing."""
    given = neighbours.corners() if neighbours.named else []
    equal = [pair for pair in given if _same(pair.data, pair.neighbour)]
    if not equal:
        return ""
    if len(equal) == len(given):
        raise InvalidArgument(
            f"neighbours={shorten([tuple(pair) for pair in given])}: both data sets are the same, which can show nothing. "
            "Give pairs that differ, such as [([], [1])]."
        )
    return (
        f"{len(equal)} of {len(given)} pairs, such as {shorten(tuple(equal[0]))}, are a data set and itself, which can show "
        "nothing; leave them out."
    )


def _same(data: Any, neighbour: Any) -> bool:
    if fingerprint(data) != fingerprint(neighbour):
        return False
    try:  # a fingerprint may be a shortened repr, of a table of another library
        return pickle.dumps(data) == pickle.dumps(neighbour)
    except Exception:
        return False


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def as_neighbours(neighbours: Any) -> Neighbours:
    """Neighbours as they are, or those of a list of pairs."""
    if isinstance(neighbours, Neighbours):
        return neighbours
    if isinstance(neighbours, tuple) and len(neighbours) == 2 and not all(map(_is_pair, neighbours)):
        raise InvalidArgument(
            f"neighbours={shorten(neighbours)} must be a list of pairs; did you mean [(data, neighbour)]?"
        )
    if isinstance(neighbours, list | tuple):
        return fixed(neighbours)
    raise InvalidArgument(
        f"neighbours={shorten(neighbours)} must come from dpaudit.neighbours, or be a list of pairs (data, neighbour)."
    )
