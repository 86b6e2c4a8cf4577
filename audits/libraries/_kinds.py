"""What an entry of the scoreboard is: a library, the calls of it that are audited, and its accountants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit import ApproxDP, PureDP, Relation
from dpaudit.claims import Claim


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function of ``_functions``, its claim, and the pairs on which it is audited."""

    function: str
    claim: Claim
    pairs: Sequence[tuple[Any, Any]]
    channel: str = "value"
    options: dict[str, Any] = field(default_factory=dict)
    known: str = ""  # where a violation of it was reported, or why it is meant
    publish: bool = True  # its witness is stored in witnesses/; not where a leak is new and its authors do not know yet
    form: str = "data"  # how the function is called, as in dpaudit.isolated


@dataclass(frozen=True, kw_only=True)
class Account:
    """A function of ``_functions`` that accounts: epsilon of a composition, as ([(noise, rate, steps, kind), ...], delta)."""

    function: str
    relation: Relation = Relation.ADD_REMOVE
    options: dict[str, Any] = field(default_factory=dict)
    known: str = ""
    publish: bool = True


@dataclass(frozen=True, kw_only=True)
class Library:
    """A distribution, what pip installs for it, and the calls that are audited."""

    name: str
    requires: Sequence[str]
    alone: Sequence[str] = ()
    file: str
    calls: Sequence[Call] = ()
    accounts: Sequence[Account] = ()

    @property
    def path(self) -> Path:
        """The file of its functions."""
        return (Path(__file__).parent / "_functions" / self.file).resolve()

    @property
    def repository_path(self) -> str:
        """The same, from the root of the repository."""
        return self.path.relative_to(Path(__file__).resolve().parents[2]).as_posix()

    def installed(self, version: str) -> list[str]:
        """Return what pip installs for one version of the library."""
        wanted = [*self.requires, *self.alone]
        return [f"{name}=={version}" if name.partition("[")[0] == self.name else name for name in wanted]


def pure(
    function: str,
    pairs: Sequence[tuple[Any, Any]],
    epsilon: float = 1.0,
    relation: Relation = Relation.ANSWERS,
    **more: Any,
) -> Call:
    """Return a call that claims pure differential privacy; a little more, because libraries round up."""
    return Call(function=function, claim=PureDP(epsilon * (1.0 + 1e-9), relation), pairs=pairs, **more)


def approximate(
    function: str, pairs: Sequence[tuple[Any, Any]], claim: tuple[float, float], relation: Relation, **more: Any
) -> Call:
    """Return a call that claims approximate differential privacy."""
    return Call(function=function, claim=ApproxDP(*claim, relation), pairs=pairs, **more)
