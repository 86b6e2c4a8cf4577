"""The options of an audit, checked."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from dpaudit._util.validation import check_choice, check_count, check_open_unit, check_positive, shorten
from dpaudit.engine.encoding.suspects import as_suspects
from dpaudit.engine.events import Handler
from dpaudit.errors import InvalidArgument
from dpaudit.result.model import Channel

POOL = 32
"""Pairs that compete from the start."""
FOR_THE_POOL = 0.2
"""Share of ``seconds`` in which these pairs are generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of an audit; each is described at :func:`dpaudit.audit`."""

    samples: int = 1_000_000
    seconds: float | None = None
    alpha: float = 1e-6
    seed: int | None = 0
    channel: Channel = Channel.VALUE
    executor: Executor | None = None
    pairs: int = POOL
    detect_factor: float = 2.0
    until: Literal["violation", "budget"] = "violation"
    shrink: bool = True
    timeout: float | None = None
    timeout_is_output: bool = False
    boosted: bool = False
    suspect: Any = None
    allow_constant: bool = False
    progress: bool | None = None
    on_event: Handler | None = None

    def __post_init__(self) -> None:
        check_count(samples=self.samples, minimum=2)
        check_count(pairs=self.pairs)
        check_open_unit(alpha=self.alpha)
        check_positive(detect_factor=self.detect_factor)
        if self.detect_factor <= 1.0:
            raise InvalidArgument(
                f"detect_factor={self.detect_factor!r} must exceed 1: it is the multiple of the claim to be caught."
            )
        if self.seconds is not None:
            check_positive(seconds=self.seconds)
        if self.timeout is not None:
            check_positive(timeout=self.timeout)
        if self.seed is not None:
            check_count(minimum=0, seed=self.seed)
        check_choice(("violation", "budget"), until=self.until)
        check_choice(Channel, channel=self.channel)
        for name in ("shrink", "boosted", "timeout_is_output", "allow_constant"):
            check_choice((True, False), **{name: getattr(self, name)})
        if as_suspects(self.suspect) and self.channel is not Channel.VALUE:
            raise InvalidArgument(
                f'suspect={shorten(self.suspect)} looks at outputs, so it needs channel="value", not "{self.channel.value}".'
            )
        check_choice((True, False, None), progress=self.progress)
        if self.on_event is not None and not callable(self.on_event):
            raise InvalidArgument(f"on_event={self.on_event!r} must be a function of one event, or None.")
        if isinstance(self.executor, type):
            raise InvalidArgument(
                f"executor={self.executor!r} is a class; pass an instance, such as {self.executor.__name__}(2)."
            )
        if self.executor is not None and not hasattr(self.executor, "submit"):
            raise InvalidArgument(
                f"executor={self.executor!r} must be a concurrent.futures.Executor, such as ProcessPoolExecutor(2)."
            )
        if self.timeout is not None and isinstance(self.executor, ThreadPoolExecutor):
            raise InvalidArgument(
                f"timeout={self.timeout!r} needs workers that are processes, such as ProcessPoolExecutor(2): workers that are "
                "threads cannot be interrupted."
            )

    def pool_deadline(self, started: float) -> float | None:
        """Return when to stop generating pairs, in an audit that started at ``started``."""
        return None if self.seconds is None else started + FOR_THE_POOL * self.seconds


def slow_pairs(made: int, wanted: int, seconds: float | None) -> str:
    """Return a message for an audit in which generating pairs used its whole share of the time."""
    return (
        f"Generating pairs used its whole share of the time budget ({FOR_THE_POOL:.0%} of seconds={seconds}), so {made} "
        f"of {wanted} were tried and none will be added. Give more seconds, or simpler rows."
    )
