"""One run of a function on symbolic draws: which way it went at each choice, and what that says about the draws.

A run is directed by the choices of its prefix; beyond it, every choice with more than one possible answer takes the first
and records the others as forks, which later runs follow. A choice is one of

- a partition of the values of one draw (a comparison with a constant, the value of a coin),
- the sign of a linear combination of several draws (a noisy answer against a noisy threshold),
- the largest of several such combinations.

What is known about the draws at the end of a run is a region for each, and linear constraints between several.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import sysconfig
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.symbolic.values.regions import FULL, Region

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from dpaudit.symbolic.draws.sources import Source

MOST_DECISIONS = 5_000
"""Largest number of choices on one path; a loop that asks for more is cut."""

_OURS = str(Path(__file__).parents[2]) + os.sep
_LIBRARIES = tuple(
    str(Path(path).resolve()) + os.sep
    for path in {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        str(Path(__file__).parents[2]),
    }
)


class Stop(BaseException):
    """The run cannot be followed further. Not an Exception, so that the user's ``except Exception`` lets it pass."""

    def __init__(self, reason: str, place: tuple[str, int, str] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


class Returned(BaseException):
    """The run came back to a state in which it was before."""


class PathCut(BaseException):
    """The path has more choices than are followed; its mass goes to what is not known."""


def stop(reason: str) -> Stop:
    """Return the exception that ends an extraction, with the user's line that led to it, and mark the run."""
    error = Stop(reason, user_line(sys._getframe(1)))
    trace = Trace.current
    if trace is not None and trace.stopped is None:
        trace.stopped = error
    return error


@functools.lru_cache(maxsize=4096)
def is_user_code(filename: str) -> bool:
    """Return True if a file belongs to neither Python, an installed package, nor dpaudit."""
    if filename.startswith("<"):
        return not filename.startswith("<frozen") and not filename.startswith("<__array_function__")
    return not os.path.abspath(filename).startswith(_LIBRARIES)


@functools.lru_cache(maxsize=4096)
def is_library_of_ours(filename: str) -> bool:
    """Return True if a file belongs to dpaudit."""
    return os.path.abspath(filename).startswith(_OURS)


def user_line(frame: FrameType | None) -> tuple[str, int, str] | None:
    """Return file, line and function of the innermost frame of the user's code."""
    while frame is not None:
        if is_user_code(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return None


@dataclass(eq=False, slots=True)
class Draw:
    """One random draw of one run."""

    trace: Trace
    index: int
    source: Source
    call: str

    def __repr__(self) -> str:
        return f"x{self.index}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """``sum(coefficient * draw) + constant > 0``, or ``>= 0``; coefficients by the number of the draw."""

    terms: tuple[tuple[int, Fraction], ...]
    constant: Fraction
    strict: bool


@dataclass(frozen=True, slots=True)
class Fork:
    """A path that was not taken: the choices that lead to it, and an upper bound of its log-probability."""

    choices: tuple[int, ...]
    signatures: tuple[Any, ...]
    log_bound: float


@dataclass(eq=False)
class Trace:
    """The state of one run."""

    choices: tuple[int, ...] = ()
    signatures: tuple[Any, ...] = ()
    draws: list[Draw] = field(default_factory=list)
    regions: dict[int, Region] = field(default_factory=dict)
    log_masses: dict[int, float] = field(default_factory=dict)
    constraints: list[Constraint] = field(default_factory=list)
    known: set[Constraint] = field(default_factory=set)
    """The constraints once more, to look one up."""
    made: list[int] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    forks: list[Fork] = field(default_factory=list)
    derived: dict[int, tuple[int, ...]] = field(default_factory=dict)
    merged: dict[Any, Draw] = field(default_factory=dict)
    doubts: list[tuple[int, Region]] = field(default_factory=list)
    """Draws, and where in them the rounding of floats decided a comparison."""
    results: list[Any] = field(default_factory=list)
    generators: list[Any] = field(default_factory=list)
    least: float = -math.inf
    """Log of the probability below which a path is cut, so that a loop is not followed along its unlikely side for ever."""
    deadline: float = math.inf
    """Monotonic time after which the path is cut: one call may ask without end, as ``str`` of a large random number does."""
    visits: dict[Any, list[Any]] = field(default_factory=dict)
    """Calls of random functions by frame and place; see dpaudit.symbolic.running.loops."""
    returned: tuple[int, ...] | None = None
    """The choices up to the state to which the run came back."""
    stopped: Stop | None = None
    cut: bool = False
    error: Exception | None = None

    current = None  # type: Trace | None

    def draw(self, source: Source, call: str) -> Draw:
        """Make a new draw."""
        if len(self.draws) >= 20_000:
            raise stop("More than 20000 random draws in one release")
        if time.monotonic() > self.deadline:
            self.cut = True
            raise PathCut
        drawn = Draw(self, len(self.draws), source, call)
        self.draws.append(drawn)
        self.regions[drawn.index] = FULL
        self.log_masses[drawn.index] = 0.0
        return drawn

    def check(self, *draws: Draw) -> None:
        """Refuse draws of another run, and draws that were replaced by a sum of them."""
        for drawn in draws:
            if drawn.trace is not self:
                raise stop(
                    "A random number of an earlier run was used: the function keeps state between releases (a cache, a "
                    "global, an attribute)"
                )
            if any(drawn.index in parents for parents in self.derived.values()):
                raise stop("A draw is used on its own after a rounded or clipped sum of it with another draw was used")

    @property
    def log_bound(self) -> float:
        """Upper bound of the log-probability of what is known: draws are independent, constraints are left out."""
        return math.fsum(self.log_masses.values())

    def region(self, drawn: Draw) -> Region:
        """Return the region in which a draw may lie."""
        self.check(drawn)
        return self.regions[drawn.index]

    def decide(self, drawn: Draw, options: Sequence[Region]) -> int:
        """Choose one of several regions that together cover the line, and return its number.

        Regions of probability zero are never chosen: they do not change the law of the output.
        """
        self.check(drawn)
        if time.monotonic() > self.deadline:
            self.cut = True
            raise PathCut
        known = self.regions[drawn.index]
        possible = []
        for number, option in enumerate(options):
            inside = known.meet(option)
            log_mass = drawn.source.log_mass(inside) if inside.parts else -math.inf
            if log_mass > -math.inf:
                possible.append((number, inside, log_mass))
        if not possible:
            raise stop("Every branch has probability zero; this is a defect of the extraction, please report it")
        others = self.log_bound - self.log_masses[drawn.index]
        chosen = self._choose(
            ("draw", drawn.index, tuple(inside.parts for _, inside, _ in possible)),
            [others + log_mass for _, _, log_mass in possible],
        )
        number, inside, log_mass = possible[chosen]
        if len(possible) > 1:  # otherwise the region lost nothing but points without mass
            self.regions[drawn.index] = inside
            self.log_masses[drawn.index] = log_mass
            if others + log_mass < self.least:
                self.cut = True
                raise PathCut
        return number

    def decide_constraints(self, options: Sequence[Sequence[Constraint]]) -> int:
        """Choose one of several sets of constraints of which exactly one holds, and return its number."""
        for option in options:
            for constraint in option:
                self.check(*(self.draws[index] for index, _ in constraint.terms))
        for number, option in enumerate(options):
            if all(constraint in self.known for constraint in option):
                return number
        chosen = self._choose(
            ("constraint", tuple(tuple(option) for option in options)), [self.log_bound] * len(options)
        )
        self.constraints.extend(constraint for constraint in options[chosen] if constraint not in self.known)
        self.known.update(options[chosen])
        return chosen

    def _choose(self, signature: Any, log_bounds: Sequence[float]) -> int:
        if len(log_bounds) == 1:
            return 0
        place = len(self.made)
        if place >= MOST_DECISIONS:
            self.cut = True
            raise PathCut
        if place < len(self.choices):
            if self.signatures[place] != signature:
                raise stop(
                    "The function did not repeat itself: on the same data and the same draws it asked for something else. "
                    "It keeps state between releases, or has randomness of another kind"
                )
            chosen = self.choices[place]
        else:
            chosen = 0
            for other in range(1, len(log_bounds)):
                self.forks.append(Fork((*self.made, other), (*self.seen, signature), log_bounds[other]))
        self.made.append(chosen)
        self.seen.append(signature)
        return chosen


def active() -> Trace:
    """Return the run under way."""
    if Trace.current is None:
        raise Stop("A symbolic random number was used after its run had ended")
    return Trace.current


@contextmanager
def running(trace: Trace) -> Iterator[Trace]:
    """Make ``trace`` the run under way inside the block."""
    before = Trace.current
    Trace.current = trace
    try:
        yield trace
    finally:
        Trace.current = before
