r"""Loops that try again: a run that comes back to a state in which it was before.

``while True: x = draw(); if accepted(x): return x`` has infinitely many paths. When a call of a random function finds the
program in the state ``b`` of an earlier call of the same run, up to the names of draws with equal laws, what follows has the
law that it had from ``b``. With ``D`` the laws of the paths from ``b`` that end, ``R`` the probability of those that come back,
and ``W`` that of all of them, the law from ``b`` is ``D + (R / W) law``, so every path in ``D`` weighs ``W / (W - R)`` times as
much, and nothing is left over. Of paths that were not followed (``rest``) it is not known whether they come back: if none does,
weights are smallest, and what is missing to ``W`` is ``rest W / (W - R)``.

**The state.** Everything outside that the function can reach (globals, closures, attributes; see ``state``), by value. The call
and its arguments; the frames from the one that holds the loop inwards: the same frame object (whatever
called it stands still), the place in its code, its variables by value. Nothing else may wait on the stack of values below the
call but what follows from the variables by operators and functions such as ``sum``: no iterator of a ``for`` loop, no result
of a call. A variable of a kind whose contents are not known here (an
iterator, an open file) makes a state equal to no other. Two states are equal if a renaming of draws makes them the same, where

- a renamed draw was made since the loop's frame was first seen, so that no frame outside of it has the old one under its name;
- both have the same law and region, and neither was compared with another draw or made a part of a sum.

And between the two, no draw older than ``b`` was asked anything, so the way back is independent of it.
"""

from __future__ import annotations

import bisect
import dis
import functools
import math
import sys
import types
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.symbolic.values.arrays import SymbolicArray
from dpaudit.symbolic.values.paths import Draw, Returned, Trace, is_library_of_ours, is_user_code
from dpaudit.symbolic.values.symbols import Image, Linear, PendingComparison, Steps, is_symbol

_MOST_VISITS = 24
_MOST_ITEMS = 1000
_DEEPEST = 4
_ONE_AND_THE_SAME = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.random.Generator)


@dataclass(frozen=True, slots=True)
class Visit:
    """One call of a random function: the state, the draws in it, and how far the run was."""

    state: Hashable
    draws: tuple[Draw, ...]
    made: tuple[int, ...]
    regions: dict[int, Any]
    constraints: int
    derived: int


class _Unknown(Exception):
    """A variable whose contents cannot be compared."""


def arrive(trace: Trace, call: Hashable, arguments: Any) -> None:
    """Note that a random function is called; end the run if it is in the state of an earlier call."""
    frames = _frames()
    for depth, frame in enumerate(frames):
        if not _nothing_hidden(frame.f_code, frame.f_lasti):
            return
        visits = trace.visits.setdefault((frame, frame.f_lasti, call), [])
        first = trace.first_seen.setdefault(frame, len(trace.draws))
        if not visits:
            visits.append(None)  # most calls are made once: the state is looked at from the second on
            continue
        if len(visits) == _MOST_VISITS:
            continue  # a loop that counts: its states differ
        try:
            visit = _visit(trace, (call, arguments), frames[: depth + 1])
        except _Unknown:
            continue
        for earlier in visits[1:]:
            if _same(trace, earlier, visit, first):
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


def _visit(trace: Trace, call: Any, frames: list[types.FrameType]) -> Visit:
    draws: list[Draw] = []
    outside = trace.outside()
    if outside is None:
        raise _Unknown
    state = (
        outside,
        _token(call, draws, 0),
        tuple((frame.f_code, frame.f_lasti, _token(_variables(frame), draws, 0)) for frame in frames),
    )
    return Visit(
        state, tuple(draws), tuple(trace.made), dict(trace.regions), len(trace.constraints), len(trace.derived)
    )


def _variables(frame: types.FrameType) -> dict[str, Any]:
    """Return the variables of a frame that may be read before they are written again; all if values wait on the stack."""
    offsets, live = _live(frame.f_code)
    names = live[offsets[bisect.bisect_right(offsets, frame.f_lasti) - 1]]
    if _PLAIN in (_waiting(frame.f_code, frame.f_lasti) or ()):
        names = None  # in `place += step()` the variable is not read again, but its value is on the stack
    return {name: value for name, value in frame.f_locals.items() if names is None or name in names}


@functools.lru_cache(maxsize=1024)
def _live(code: types.CodeType) -> tuple[list[int], dict[int, frozenset[str] | None]]:
    """Return the places of instructions, and the variables that are read after each before they are written; None: all.

    Variables that inner functions share are always among them. All are where an exception may lead elsewhere, or where the
    names of all variables are asked for.
    """
    instructions = list(dis.get_instructions(code))
    offsets = [step.offset for step in instructions]
    if code.co_exceptiontable or {"locals", "eval", "exec", "vars", "dir"} & set(code.co_names):
        return offsets, dict.fromkeys(offsets)
    place = {offset: k for k, offset in enumerate(offsets)}
    shared = frozenset(code.co_cellvars + code.co_freevars)
    before = [shared] * (len(instructions) + 1)
    after = [shared] * len(instructions)
    changed = True
    while changed:
        changed = False
        for k in reversed(range(len(instructions))):
            step = instructions[k]
            after[k] = frozenset() if _leaves(step) else before[k + 1]
            if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
                after[k] |= before[place[step.argval]]
            written, read = _written_and_read(step, code)
            now = (after[k] - written) | read | shared
            changed |= now != before[k]
            before[k] = now
    return offsets, dict(zip(offsets, after, strict=True))


def _leaves(step: dis.Instruction) -> bool:
    """Return True if the next instruction does not follow."""
    return step.opname in _ENDS or (step.opname.startswith("JUMP_") and "IF" not in step.opname)


def _written_and_read(step: dis.Instruction, code: types.CodeType) -> tuple[set[str], set[str]]:
    if "FAST" not in step.opname:
        return set(), set()
    if step.opname == "STORE_FAST":
        return {step.argval}, set()
    if step.opname in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
        return set(), {step.argval}
    return set(), set(code.co_varnames)  # several at once: as if it read them all


def _same(trace: Trace, earlier: Visit, now: Visit, first: int) -> bool:
    if earlier.state != now.state:
        return False
    entangled = {index for constraint in trace.constraints for index, _ in constraint.terms}
    entangled |= set(trace.derived) | {index for parents in trace.derived.values() for index in parents}
    for old, new in zip(earlier.draws, now.draws, strict=True):
        if old is not new:
            if min(old.index, new.index) < first or old.index in entangled or new.index in entangled:
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


def _token(value: Any, draws: list[Draw], depth: int) -> Hashable:
    """Return a value as something that equals that of another value if they are alike; draws by the order of appearance."""
    inner = functools.partial(_token, draws=draws, depth=depth + 1)
    if depth > _DEEPEST:
        raise _Unknown
    if is_symbol(value):
        return _symbol_token(value, draws)
    if value is None or isinstance(value, bool | int | str | bytes | complex):
        return type(value), value
    if isinstance(value, float | np.generic):
        return type(value), value.hex() if isinstance(value, float) else value.tobytes()
    if type(value) is SymbolicArray:
        return "array", value.dtype.str, value.shape, tuple(map(inner, value.cells.ravel().tolist()))
    if isinstance(value, np.ndarray) and value.size <= _MOST_ITEMS:
        content = tuple(map(inner, value.ravel().tolist())) if value.dtype.hasobject else value.tobytes()
        return "array", value.dtype.str, value.shape, content
    if isinstance(value, list | tuple) and len(value) <= _MOST_ITEMS:
        return type(value), tuple(map(inner, value))
    if isinstance(value, dict) and len(value) <= _MOST_ITEMS:
        return type(value), tuple((inner(key), inner(item)) for key, item in value.items())
    if isinstance(value, set | frozenset | range) and len(value) <= _MOST_ITEMS:
        return type(value), tuple(map(inner, value))
    if isinstance(value, _ONE_AND_THE_SAME):
        return "same", id(value)
    if is_user_code(getattr(sys.modules.get(type(value).__module__), "__file__", "<") or "<") and hasattr(
        value, "__dict__"
    ):
        return "object", id(value), inner(vars(value))
    raise _Unknown


def _symbol_token(value: Any, draws: list[Draw]) -> Hashable:
    for drawn in value.draws():
        if drawn not in draws:
            draws.append(drawn)
    places = tuple(draws.index(drawn) for drawn in value.draws())
    match value:
        case Linear():
            return "linear", places, tuple(factor for _, factor in value.terms), value.constant, value.integer
        case Image():
            return "image", places, value.chain, value.integer
        case Steps():
            return "steps", places, tuple((region, repr(item)) for region, item in value.cells)
        case PendingComparison():
            return "comparison", _symbol_token(value.linear, draws), value.strict
    raise _Unknown


def _nothing_hidden(code: types.CodeType, offset: int) -> bool:
    """Return True if a plain call is made, and all that waits on the stack of values below it follows from the variables."""
    below = _waiting(code, offset)
    return below is not None and _HIDDEN not in below


def _waiting(code: types.CodeType, offset: int) -> Stack | None:
    """Return what lies on the stack of values below a call; None where no plain call is made."""
    offsets, stacks = _stacks(code)
    stack, instruction = stacks[offsets[bisect.bisect_right(offsets, offset) - 1]]  # caches follow an instruction
    return stack[: len(stack) - _taken(instruction)] if instruction.opname in _CALLS else None


_HIDDEN, _PLAIN, _CONSTANT = "hidden", "plain", "constant"  # the name of a pure function is a constant too
_CALLS = {
    "CALL": 2,
    "CALL_KW": 3,
}  # taken from the stack beside the arguments: the function, its self, names of keywords
_PURE = {"len", "sum", "min", "max", "abs", "float", "int", "round", "bool"}
_NO_EFFECT = {"RESUME", "NOP", "CACHE", "PRECALL", "KW_NAMES", "COPY_FREE_VARS", "MAKE_CELL", "NOT_TAKEN"}
_TAKES = {
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "BINARY_SUBSCR"), 2),
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT", "UNARY_POSITIVE", "LOAD_ATTR", "LOAD_METHOD"), 1),
}
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")

Stack = tuple[str, ...]


def _taken(call: dis.Instruction) -> int:
    return _CALLS[call.opname] + (call.arg or 0)


@functools.lru_cache(maxsize=1024)
def _stacks(code: types.CodeType) -> tuple[list[int], dict[int, tuple[Stack, dis.Instruction]]]:
    """Return the places of instructions, and each with the stack of values before it; plain values follow from variables."""
    instructions = list(dis.get_instructions(code))
    place = {instruction.offset: k for k, instruction in enumerate(instructions)}
    found: dict[int, tuple[Stack, dis.Instruction]] = {}
    waiting: list[tuple[int, Stack]] = [(0, ())]
    while waiting:
        k, stack = waiting.pop()
        while k < len(instructions):
            step = instructions[k]
            known = found.get(step.offset)
            if known is not None:
                both = zip(known[0], stack, strict=False)
                stack = tuple(one if one == other else _HIDDEN for one, other in both)
                if stack == known[0]:
                    break
            found[step.offset] = stack, step
            if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
                waiting.append((place[step.argval], _after(step, stack, jump=True)))
            if _leaves(step):
                break
            stack = _after(step, stack, jump=False)
            k += 1
    return sorted(found), found


def _after(step: dis.Instruction, stack: Stack, *, jump: bool) -> Stack:
    """Return the stack after an instruction."""
    name = step.opname
    if name in _NO_EFFECT:
        return stack
    if name in _CALLS:
        kept = stack[: len(stack) - _taken(step)]
        pure = _PURE.intersection(stack[len(kept) :])
        return (*kept, _joined(stack[len(kept) :]) if pure else _HIDDEN)
    argument = step.arg if step.opcode >= dis.HAVE_ARGUMENT else None
    change = dis.stack_effect(step.opcode, argument, jump=jump)
    if name.startswith("LOAD_") and name not in _TAKES:
        loaded = _CONSTANT if name in ("LOAD_CONST", "LOAD_GLOBAL") else _PLAIN
        last = step.argval if name == "LOAD_GLOBAL" and step.argval in _PURE else loaded
        return (*stack, *[loaded] * (change - 1), last)
    takes = step.arg if name in ("BUILD_TUPLE", "BUILD_LIST") else 0 if name == "PUSH_NULL" else _TAKES.get(name)
    if takes is None:  # anything else: a variable is stored, an iterator made, ...
        left = stack[: max(0, len(stack) + min(change, 0))]
        return tuple(_HIDDEN for _ in left) + (_HIDDEN,) * max(change, 0)
    kept = stack[: len(stack) - takes]
    return (*kept, *[_joined(stack[len(kept) :])] * (takes + change))


def _joined(entries: Stack) -> str:
    """Return what a result of these values is."""
    return _HIDDEN if _HIDDEN in entries else _PLAIN if _PLAIN in entries else _CONSTANT


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
