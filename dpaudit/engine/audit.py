"""The entry points: run an audit, or keep its definition for later."""

from __future__ import annotations

import inspect
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, TypeVar

from dpaudit._util.deprecation import checked_keywords, renamed_fields
from dpaudit._util.surroundings import engine_state
from dpaudit._util.validation import check_choice, shorten
from dpaudit._util.values import fingerprint
from dpaudit.claims import Claim, Verdict
from dpaudit.engine.accumulate.evidence import accumulate as accumulated
from dpaudit.engine.events import Handler
from dpaudit.engine.options import Options
from dpaudit.engine.progress import ProgressHandler
from dpaudit.engine.request import Request
from dpaudit.engine.run import Run
from dpaudit.engine.timing.run import TimingRun
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism.programs import program
from dpaudit.mechanism.waiting import close_all
from dpaudit.neighbours import Neighbours, as_neighbours
from dpaudit.result.model import Channel, Result

F = TypeVar("F", bound=Callable[..., Any])


ELSEWHERE = {
    "workers": "Give executor=, e.g. concurrent.futures.ProcessPoolExecutor(4); `dpaudit run --workers 4` makes one itself.",
    "expect": "It belongs to a definition: dpaudit.Audit(..., expect='VIOLATION'), which `dpaudit run` and pytest compare with "
    "the verdict. Here, compare result.verdict yourself.",
    "delta": "It belongs to the claim: dpaudit.ApproxDP(epsilon, delta).",
    "epsilon": "It belongs to the claim: dpaudit.PureDP(epsilon).",
    "relation": "It belongs to the neighbours, e.g. dpaudit.neighbours.add_remove(...), and may be named by the claim.",
}
"""Keywords that are not options of an audit, and where they belong."""


@checked_keywords(ELSEWHERE, power="detect_factor")
def audit(
    mechanism: Any,
    claim: Claim,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    *,
    name: str | None = None,
    samples: int = 1_000_000,
    seconds: float | None = None,
    alpha: float = 1e-6,
    seed: int | None = 0,
    channel: Channel | Literal["value", "representation", "timing"] = Channel.VALUE,
    executor: Executor | None = None,
    pairs: int = 32,
    detect_factor: float = 2.0,
    until: Literal["violation", "budget"] = "violation",
    shrink: bool = True,
    timeout: float | None = None,
    timeout_is_output: bool = False,
    boosted: bool = False,
    suspect: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | Mapping[str, Callable[[Any], Any]] | None = None,
    allow_constant: bool = False,
    accumulate: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    on_event: Handler | None = None,
) -> Result:
    """Look for a violation of ``claim`` by running the mechanism, and lower-bound its true epsilon.

    Parameters
    ----------
    mechanism
        An object with ``sample(data, size, rng)``, any function ``f(data)``, a name ``"package.module:factory"``, or what
        ``dpaudit.batched``, ``per_release`` and ``fresh`` make.
    claim
        ``PureDP``, ``ApproxDP``, ``GaussianDP``, ``ZeroConcentratedDP`` or ``RenyiDP``; a curve, ``ProfileDP`` or ``TradeOffDP``;
        ``BoundedRange``; or ``MetricDP``, by which every pair has its own epsilon.
    neighbours
        Where to look: made by ``dpaudit.neighbours``, or a list of pairs ``(data, neighbour)``.
    name
        The name under which the result is reported; None: that of the mechanism.
    samples
        Budget: outputs of both sides, all pairs, learning included. Confirming a violation of a batched mechanism on
        single releases, and finding a smaller witness, come on top.
    seconds
        Budget of time; the audit ends within a tenth of it, or one call of the mechanism. None: no limit.
    alpha
        Probability that a mechanism that keeps its claim is reported as a violation, over the whole run: all pairs,
        both directions, all events, all looks.
    seed
        Root of all random numbers; None: a fresh one, which the result names.
    channel
        ``"value"``, ``"representation"`` (the bits of floats) or ``"timing"`` (how long a call takes); each has
        its own alpha. Timing is for neighbours of equal sizes and one process, half of its samples are a control, and it
        stands outside the promises on alpha and reproducibility (see ``dpaudit.engine.timing.run``).
    executor
        Any ``concurrent.futures.Executor``, which draws the outputs; None: this process does.
    pairs
        How many pairs of data sets compete.
    detect_factor
        INCONCLUSIVE unless an event of probability 0.1 at this multiple of the claim would have been caught on the pair sampled
        most. (``detectable_epsilon`` of the result is about a leak on any one of the pairs, which has to be found first.)
    until
        ``"violation"``: stop as soon as the claim is refuted. ``"budget"``: go on for the best lower bound.
    shrink
        After a violation, search for a smaller pair of data sets that shows it.
    timeout
        Seconds that one call of the mechanism may take; a longer one ends the audit. None: no limit.
    timeout_is_output
        Treat a call that timed out as an output, as an exception is, instead of ending the audit.
    boosted
        Also learn scores of vectors by gradient-boosted trees (needs scikit-learn; slower).
    suspect
        Where you suspect a leak: a function of one output that returns a truth value, a number or a category; or a list of
        functions, or a dict of them by name. Each has its own share of the capital from the start.
    allow_constant
        Accept a mechanism whose output never varied on any data set; otherwise that is INCONCLUSIVE.
    accumulate
        A file in which evidence is kept: this run goes on where the last one stopped, with one alpha over all of them. It
        explores with a part of its samples, and bets with the rest, one call a release.
    progress
        Show progress on standard error; None: if that is a terminal.
    on_event
        A function that receives the events of the audit (see ``dpaudit.engine.events``).

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
    check_arguments(mechanism, claim, neighbours, name)
    if not isinstance(channel, Channel):
        check_choice([known.value for known in Channel], channel=channel)
    chosen = Options(
        samples=samples,
        seconds=seconds,
        alpha=alpha,
        seed=seed,
        channel=Channel(channel),
        executor=executor,
        pairs=pairs,
        detect_factor=detect_factor,
        until=until,
        shrink=shrink,
        timeout=timeout,
        timeout_is_output=timeout_is_output,
        boosted=boosted,
        suspect=suspect,
        allow_constant=allow_constant,
        progress=progress,
        on_event=on_event,
    )
    run = TimingRun if chosen.channel is Channel.TIMING else Run
    close = as_neighbours(neighbours)
    equal = _equal_pairs(close)
    with engine_state(), ProgressHandler(wanted=progress) as show_progress:
        handlers = (show_progress,) if on_event is None else (show_progress, on_event)
        request = Request.of(mechanism, claim, close, chosen, name or name_of(mechanism), handlers, notes=equal)
        try:
            return run(request).result() if accumulate is None else accumulated(request, accumulate)
        finally:
            close_all()


def with_options_of_audit(function: F) -> F:
    """Let ``help`` and completion show the keywords of :func:`audit` in place of ``**options``."""
    own = inspect.signature(function)
    before = [parameter for parameter in own.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    more = [
        parameter
        for parameter in inspect.signature(audit).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in own.parameters
    ]
    function.__signature__ = own.replace(parameters=[*before, *more])  # type: ignore[attr-defined]
    return function


@renamed_fields("Options of dpaudit.audit go into options={...}.", made="mechanism_is_factory")
@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A definition of an audit: what ``dpaudit run`` and the pytest plugin collect.

    Parameters
    ----------
    name : str
        The name under which the result is reported.
    mechanism : Mechanism, callable or str
        As for :func:`audit`.
    command, mode
        Instead of a mechanism: a program and how it is called, as for :func:`dpaudit.program`.
    claim : Claim
        The claim to audit.
    neighbours : Neighbours, list of pairs or callable
        Where to look, or a function that makes it when the audit runs.
    options : dict
        Keywords of :func:`audit`, such as ``{"samples": 100_000}``.
    expect : Verdict or str, optional
        The verdict that the audit must reach; a run with any other one fails. None: a violation fails.
    mechanism_is_factory : bool
        ``mechanism`` is a function that makes the mechanism, and is called when the audit runs.
    """

    name: str
    mechanism: Any = None
    command: InitVar[str | Sequence[str] | None] = None
    mode: InitVar[Literal["once", "stream"]] = "once"
    claim: Claim
    neighbours: Any
    options: dict[str, Any] = field(default_factory=dict)
    expect: Verdict | str | None = None
    mechanism_is_factory: bool = False

    def __post_init__(self, command: str | Sequence[str] | None, mode: Literal["once", "stream"]) -> None:
        check_name(self.name)
        if (command is None) == (self.mechanism is None):
            raise InvalidArgument(
                f"mechanism={shorten(self.mechanism)}, command={command!r} of the audit {self.name!r}: give one of the two."
            )
        if command is not None:
            object.__setattr__(self, "mechanism", program(command, mode))
        if isinstance(self.expect, str):
            check_choice([verdict.value for verdict in Verdict], expect=self.expect)
            object.__setattr__(self, "expect", Verdict(self.expect))

    @with_options_of_audit
    def run(self, **overrides: Any) -> Result:
        """Run the audit with its options; keywords of :func:`audit` replace them."""
        where = self.neighbours() if callable(self.neighbours) else self.neighbours
        mechanism = self.mechanism() if self.mechanism_is_factory else self.mechanism
        return audit(mechanism, self.claim, where, **{"name": self.name, **self.options, **overrides})


def name_of(mechanism: Any) -> str:
    """Return a readable name of a mechanism."""
    if isinstance(mechanism, str):
        return mechanism
    inner = getattr(mechanism, "__wrapped__", mechanism)
    return getattr(inner, "__qualname__", None) or getattr(inner, "__name__", None) or type(inner).__name__


def check_arguments(mechanism: Any, claim: Any, neighbours: Any, name: Any) -> None:
    """Refuse arguments in another order, and a name that is none."""
    if isinstance(neighbours, Claim) or (isinstance(mechanism, Claim) and not isinstance(claim, Claim)):
        raise InvalidArgument(
            f"mechanism={shorten(mechanism)}, claim={shorten(claim)}, neighbours={shorten(neighbours)} must come in the order "
            "audit(mechanism, claim, neighbours): some of them are swapped."
        )
    check_name(name)


def check_name(name: Any) -> None:
    """Refuse a name that is neither text nor None, which stands for the name of the mechanism."""
    if name is not None and not isinstance(name, str):
        raise InvalidArgument(f"name={shorten(name)} must be text (str), under which the result is reported.")


def _equal_pairs(neighbours: Neighbours) -> tuple[str, ...]:
    """Return a message about given pairs of a data set and itself, which can show nothing; raise if there are no others."""
    given = neighbours.corners() if neighbours.named else []
    equal = [pair for pair in given if _same(pair.data, pair.neighbour)]
    if not equal:
        return ()
    if len(equal) == len(given):
        raise InvalidArgument(
            f"neighbours={shorten([tuple(pair) for pair in given])}: both data sets are the same, which can show nothing. "
            "Give pairs that differ, such as [([], [1])]."
        )
    which = f"{len(equal)} of {len(given)} pairs, such as {shorten(tuple(equal[0]))},"
    return (f"{which} are a data set and itself, which can show nothing; leave them out.",)


def _same(data: Any, neighbour: Any) -> bool:
    if fingerprint(data) != fingerprint(neighbour):
        return False
    try:  # a fingerprint may be a shortened repr, of a table of another library
        return pickle.dumps(data) == pickle.dumps(neighbour)
    except Exception:
        return False
