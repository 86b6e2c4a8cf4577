r"""Loops that try again: a run that comes back to a state in which it was before.

``while True: x = draw(); if accepted(x): return x`` has infinitely many paths. When a call of a random function finds the
program in the state ``b`` of an earlier call of the same run, up to the names of draws with equal laws, what follows has the
law that it had from ``b``. With ``D`` the laws of the paths from ``b`` that end, ``R`` the probability of those that come back,
and ``W`` that of all of them, the law from ``b`` is ``D + (R / W) law``, so every path in ``D`` weighs ``W / (W - R)`` times as
much, and nothing is left over. Of paths that were not followed (``rest``) it is not known whether they come back: if none does,
weights are smallest, and what is missing to ``W`` is ``rest W / (W - R)``.

**The state.** The call and its arguments; the frames from the one that holds the loop inwards, each with its place in the
code, what waits there on its stack (``places``), the variables that are still read, and everything that can be reached from
them and from the global names that the code uses (``contents``). Each frame calls the next one, with nothing in between
(``map`` and ``sorted`` call functions too, and count), and none belongs to a generator. The outermost frame is the same
object, so whatever called it stands still; what it holds can have changed only if it can be reached from inside. Mutable
objects must be the very same ones, with the same contents. Anything of a kind that is not known makes a state equal to no
other.

**Two states are equal** if a renaming of draws makes them the same, where

- a renamed draw was made after an earlier visit ``a`` of the same place, and every mutable object that could be reached at
  ``a`` can be reached still: so nothing else holds the old draw;
- both have the same law and region, and neither was compared with another draw or made a part of a sum.

And between the two, no draw older than ``b`` was asked anything, so the way back is independent of it.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.symbolic.running.loops.contents import Contents, NotComparable
from dpaudit.symbolic.running.loops.places import UNDERSTOOD, Place, makes_a_draw, place_of, runs
from dpaudit.symbolic.values.paths import Draw, Returned, Trace, is_library_of_ours, is_user_code

_MOST_VISITS = 24


@dataclass(frozen=True, slots=True)
class Visit:
    """One call of a random function: the state, the draws and the mutable objects in it, and how far the run was."""

    state: Hashable
    draws: tuple[Draw, ...]
    objects: dict[int, Any]
    made: tuple[int, ...]
    regions: dict[int, Any]
    constraints: int
    derived: int


def arrive(trace: Trace, call: Hashable, arguments: Any) -> None:
    """Note that a random function is called; end the run if it is in the state of an earlier call."""
    if not UNDERSTOOD:
        return
    frames = _frames()
    places: list[Place] = []
    for depth, frame in enumerate(frames):
        place = place_of(frame, innermost=depth == 0)
        if place is None or not (runs(place.called, frames[depth - 1].f_code) if depth else makes_a_draw(place.called)):
            return
        places.append(place)
        visits = trace.visits.setdefault((frame, frame.f_lasti, call), [])
        if not visits:
            visits.append(None)  # most calls are made once: the state is looked at from the second on
            continue
        if len(visits) == _MOST_VISITS:
            continue  # a loop that counts: its states differ
        try:
            visit = _visit(trace, (call, arguments), frames[: depth + 1], places)
        except (NotComparable, RecursionError):
            continue
        for earlier in visits[1:]:
            if _same(trace, earlier, visit, visits[1]):
                trace.returned = earlier.made
                raise Returned
        visits.append(visit)


def _frames() -> list[types.FrameType]:
    """Return the user's frames, innermost first, up to the first one of a library."""
    found: list[types.FrameType] = []
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_user_code(filename):
            found.append(frame)
        elif not is_library_of_ours(filename) or found:
            break
        frame = frame.f_back
    return found


def _visit(trace: Trace, call: Any, frames: list[types.FrameType], places: list[Place]) -> Visit:
    contents = Contents()
    state = (
        _by_value(call, contents),
        tuple(
            (
                frame.f_code,
                frame.f_lasti,
                tuple((name, contents.of(value)) for name, value in place.variables.items()),
                contents.of_code(frame.f_code, frame.f_globals),
            )
            for frame, place in zip(frames, places, strict=True)
        ),
        contents.of_modules(),
    )
    return Visit(
        state,
        tuple(contents.draws),
        contents.objects,
        tuple(trace.made),
        dict(trace.regions),
        len(trace.constraints),
        len(trace.derived),
    )


def _by_value(argument: Any, contents: Contents) -> Hashable:
    """Describe arguments of a draw, which are often made for this call: containers by what is in them."""
    if type(argument) in (list, tuple):
        return tuple(_by_value(item, contents) for item in argument)
    if type(argument) is dict:
        return tuple((key, _by_value(item, contents)) for key, item in argument.items())
    if type(argument) is np.ndarray and not argument.dtype.hasobject:
        return argument.dtype.str, argument.shape, argument.tobytes()
    return contents.of(argument)


def _same(trace: Trace, earlier: Visit, now: Visit, first: Visit) -> bool:
    if earlier.state != now.state:
        return False
    entangled = {index for constraint in trace.constraints for index, _ in constraint.terms}
    entangled |= set(trace.derived) | {index for parents in trace.derived.values() for index in parents}
    oldest = len(first.regions) if first.objects.keys() <= earlier.objects.keys() else math.inf
    for old, new in zip(earlier.draws, now.draws, strict=True):
        if old is not new:
            if min(old.index, new.index) < oldest or old.index in entangled or new.index in entangled:
                return False
            if old.source is not new.source and (old.source.name, old.source.shares) != (
                new.source.name,
                new.source.shares,
            ):
                return False
        if earlier.regions[old.index] != trace.regions[new.index]:
            return False
    count = len(earlier.regions)  # draws that are older than the earlier visit
    since = trace.constraints[earlier.constraints :]
    return (
        all(trace.regions[index] == region for index, region in earlier.regions.items())
        and all(index >= count for constraint in since for index, _ in constraint.terms)
        and len(trace.derived) == earlier.derived
    )


@dataclass(frozen=True, slots=True)
class Comeback:
    """A path that came back to an earlier state: its choices, those up to that state, and its probability."""

    made: tuple[int, ...]
    to: tuple[int, ...]
    weight: float
    error: float


def factors(
    ended: list[tuple[tuple[int, ...], float]], back: list[Comeback], unfollowed: list[tuple[tuple[int, ...], float]]
) -> tuple[list[float], float, float]:
    """Return the factor of each path that ended, the part of what was not followed, and the largest relative error of a factor.

    ``ended`` and ``unfollowed`` are choices with probabilities. States are taken from the innermost out: their longest choices
    first, because a path from an inner state may come back to an outer one.
    """
    weights = [weight for _, weight in ended]
    returns = [one.weight for one in back]
    rests = [weight for _, weight in unfollowed]
    error = max((one.error for one in back), default=0.0)
    total_error = endless = 0.0
    for state in sorted({one.to for one in back}, key=len, reverse=True):

        def inside(made: tuple[int, ...], state: tuple[int, ...] = state) -> bool:
            return made[: len(state)] == state

        own = [k for k, (made, _) in enumerate(ended) if inside(made)]
        other = [k for k, one in enumerate(back) if inside(one.made) and one.to != state]
        open_ = [k for k, (made, _) in enumerate(unfollowed) if inside(made)]
        R = math.fsum(returns[k] for k, one in enumerate(back) if one.to == state)
        left = math.fsum([*(weights[k] for k in own), *(returns[k] for k in other), *(rests[k] for k in open_)])
        for k, one in enumerate(back):
            if one.to == state:
                returns[k] = 0.0
        if left <= 0.0:
            endless += R  # a loop without a way out
            continue
        factor = 1.0 + R / left
        total_error += 4.0 * (error + 1e-15)
        for values, places in ((weights, own), (returns, other), (rests, open_)):
            for k in places:
                values[k] *= factor
    scale = [after / before if before > 0.0 else 1.0 for (_, before), after in zip(ended, weights, strict=True)]
    return scale, math.fsum([*rests, endless]), total_error
