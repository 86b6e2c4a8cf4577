"""Events of a running audit, and the handlers that receive them.

An audit emits typed events in the order in which things happen: ``Started``; for each round ``PairChosen``, ``OutputsDrawn``
(several times) and ``RoundSettled``; after a violation ``ViolationFound``, ``Shrinking`` and ``Confirming``; and last
``Finished``, which carries the result. Progress lines, journals and test sessions are handlers of this stream.

Handlers are called where the event happens. A generator of events could not do that: while a pair is shrunk, Hypothesis calls
the function that draws, and nothing can be yielded through its frames. Events never change what is drawn or found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dpaudit.neighbours import Pair
from dpaudit.result.model import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Sampling begins."""

    name: str
    samples: int  # the budget: outputs of both sides
    log_threshold: float  # log-wealth at which the claim is refuted
    deadline: float | None  # on the monotonic clock


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChosen:
    """The next round draws ``size`` outputs on each data set of a pair."""

    number: int
    pair: Pair
    size: int


@dataclass(frozen=True, slots=True)
class OutputsDrawn:
    """Outputs drawn since the last such event, on both sides."""

    outputs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSettled:
    """The bets on a round are settled."""

    samples: int  # outputs so far, on both sides and all pairs
    log_wealth: float  # evidence against the claim


@dataclass(frozen=True, slots=True)
class ViolationFound:
    """The claim is refuted; a small example of it is searched for next."""

    samples: int


@dataclass(frozen=True, slots=True)
class Shrinking:
    """Hypothesis tries another smaller pair."""

    pairs_tried: int


@dataclass(frozen=True, slots=True)
class Confirming:
    """The pair that was found is audited again on fresh outputs."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The audit is over."""

    result: Result


Event: TypeAlias = (
    Started | PairChosen | OutputsDrawn | RoundSettled | ViolationFound | Shrinking | Confirming | Finished
)
Handler: TypeAlias = Callable[[Event], None]
