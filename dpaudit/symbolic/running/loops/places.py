"""The state of a frame at a call: what waits on its stack of values, what it calls, and which variables it may still read.

Read from the bytecode of Python 3.11, 3.12 and 3.13. Only instructions that are listed are understood: after any other one,
all that waits on the stack counts as hidden, and a frame with something hidden is not described. So does code that is reached
by an exception only.
"""

from __future__ import annotations

import bisect
import dis
import functools
import inspect
import sys
import types
from typing import Any, NamedTuple

import numpy as np

from dpaudit.symbolic.running.loops.contents import IMMUTABLE
from dpaudit.symbolic.values.arrays import SymbolicArray
from dpaudit.symbolic.values.paths import is_library_of_ours
from dpaudit.symbolic.values.symbols import is_symbol

UNDERSTOOD = sys.version_info[:2] in ((3, 11), (3, 12), (3, 13))

Entry = tuple[Any, ...]
"""A value on the stack by its kind: what it is made of, so that it follows from the variables."""
Stack = tuple[Entry, ...]

_HIDDEN: Entry = ("hidden",)
_CONSTANT: Entry = ("constant",)
_NULL: Entry = ("null",)
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    np.ufunc,
)
_PURE = {"len", "sum", "min", "max", "abs", "float", "int", "round", "bool"}
_PURE_CALLS = [("global", name) for name in _PURE]
_NO_EFFECT = {
    *("RESUME", "NOP", "CACHE", "PRECALL", "KW_NAMES", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG"),
    *("JUMP_FORWARD", "JUMP_BACKWARD"),
}
_ONE_OF_TWO = {"BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "BINARY_SUBSCR"}
_ONE_OF_ONE = {
    *("UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT", "UNARY_POSITIVE", "TO_BOOL"),
    *("LIST_TO_TUPLE", "CALL_INTRINSIC_1"),
}
_BUILDS = {
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_SLICE", "BUILD_CONST_KEY_MAP"), 1),
    "BUILD_MAP": 2,
}
_ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Place(NamedTuple):
    """A call in a frame: what it calls, and the variables that are still read."""

    called: Any
    variables: dict[str, Any]


def place_of(frame: types.FrameType, *, innermost: bool) -> Place | None:
    """Describe the call at which a frame stands; None if something is hidden."""
    if frame.f_code.co_flags & _RESUMED:
        return None  # others go on between its steps
    standing = _standing(frame)
    if standing is None:
        return None
    offset, waiting, callee = standing
    variables = frame.f_locals
    needed: set[str] = set()
    for entry in waiting:
        names = _follows(entry, frame, variables, fresh=innermost)
        if names is None:
            return None
        needed |= names
    try:
        called = _resolved(callee, frame, variables)
    except LookupError:
        return None
    read = _read(frame.f_code)[2][offset]
    kept = {name: value for name, value in variables.items() if read is None or name in read or name in needed}
    return Place(called, kept)


def is_called(function: Any, frame: types.FrameType) -> bool:
    """Return True if a frame calls this function itself, and not compiled code that calls it; False if that is not known."""
    standing = _standing(frame) if UNDERSTOOD else None
    try:
        return standing is not None and _resolved(standing[2], frame, frame.f_locals) is function
    except LookupError:
        return False


def _standing(frame: types.FrameType) -> tuple[int, Stack, Entry] | None:
    """Return the place of the call at which a frame stands, what waits below it, and what is called."""
    offsets, stacks, _ = _read(frame.f_code)
    offset = offsets[bisect.bisect_right(offsets, frame.f_lasti) - 1]  # caches follow an instruction
    stack, call = stacks.get(offset, (None, None))
    if stack is None or call is None or (taken := _taken(call)) is None or taken > len(stack):
        return None
    return offset, stack[: len(stack) - taken], _callee(stack[len(stack) - taken :])


def makes_a_draw(called: Any) -> bool:
    """Return True for functions of the symbolic generators."""
    called = getattr(called, "__func__", called)
    return type(called) is types.FunctionType and is_library_of_ours(called.__code__.co_filename)


def runs(called: Any, code: types.CodeType) -> bool:
    """Return True if a call of this object runs this code, with nothing in between."""
    if type(called) is types.MethodType:
        called = called.__func__
    if type(called) is not types.FunctionType and not isinstance(called, type):
        called = _in_classes(type(called), "__call__")
    return type(called) is types.FunctionType and called.__code__ is code


def _follows(entry: Entry, frame: types.FrameType, variables: Any, *, fresh: bool) -> set[str] | None:
    """Return the variables from which a waiting value follows; None if it does not.

    ``fresh`` values were calculated after the last call: what they were made of has not changed since.
    """
    match entry:
        case ("constant",) | ("null",):
            return set()
        case ("local", name):
            return {name} if name in variables else None
        case ("stale", inner):
            return _follows(inner, frame, variables, fresh=False)
        case ("value", parts):
            found = [_part(part, frame, variables, fresh=fresh) for part in parts]
            return None if None in found else set().union(*found)  # type: ignore[arg-type]
        case ("global" | "cell" | "attribute", *_):
            return _part(entry, frame, variables, fresh=fresh)
    return None


def _part(entry: Entry, frame: types.FrameType, variables: Any, *, fresh: bool) -> set[str] | None:
    try:
        value = _resolved(entry, frame, variables)
    except LookupError:
        return None
    if entry[0] != "local" and (type(value) in _FUNCTIONS or isinstance(value, type)):
        return _locals_in(entry)
    known = _is_plain(value) if fresh else entry[0] == "local" and _is_fixed(value)
    return _locals_in(entry) if known else None


def _is_fixed(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_fixed, value))
    return is_symbol(value) or type(value) in (*IMMUTABLE, float, complex) or issubclass(type(value), np.generic)


def _is_plain(value: Any) -> bool:
    """Return True if operators on a value run no code of the user's."""
    if type(value) in (tuple, list, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(map(_is_plain, (*value.keys(), *value.values())))
    if type(value) is np.ndarray:
        return not value.dtype.hasobject
    return type(value) is SymbolicArray or _is_fixed(value)


def _locals_in(entry: Entry) -> set[str]:
    return _locals_in(entry[1]) if entry[0] in ("attribute", "stale") else {entry[1]} if entry[0] == "local" else set()


def _resolved(entry: Entry, frame: types.FrameType, variables: Any) -> Any:
    """Return the object that a name or an attribute stands for; LookupError if that takes code to find out."""
    match entry:
        case ("local" | "cell", name):
            return variables[name]
        case ("global", name):
            return frame.f_globals[name] if name in frame.f_globals else frame.f_builtins[name]
        case ("attribute", base, name):
            return _attribute(_resolved(base, frame, variables), name)
        case ("stale", inner):
            return _resolved(inner, frame, variables)
    raise LookupError


def _attribute(owner: Any, name: str) -> Any:
    if is_symbol(owner):
        raise LookupError
    if isinstance(owner, types.ModuleType):
        return vars(owner)[name]
    if is_library_of_ours(getattr(sys.modules.get(type(owner).__module__), "__file__", None) or "<"):
        return getattr(owner, name)
    kind = owner if isinstance(owner, type) else type(owner)
    if owner is not kind and _in_classes(kind, "__getattribute__") is not object.__getattribute__:
        raise LookupError
    found = _in_classes(kind, name)
    if owner is not kind and name in getattr(owner, "__dict__", {}) and not hasattr(type(found), "__set__"):
        return vars(owner)[name]
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if found is None or (type(found) not in _FUNCTIONS and hasattr(type(found), "__get__")):
        raise LookupError
    return found


def _in_classes(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


@functools.lru_cache(maxsize=1024)
def _read(
    code: types.CodeType,
) -> tuple[list[int], dict[int, tuple[Stack, dis.Instruction]], dict[int, frozenset[str] | None]]:
    """Return the places of all instructions, the stack before each that is reached, and what is read after it."""
    instructions = list(dis.get_instructions(code))
    return [step.offset for step in instructions], _stacks(instructions), _live(code, instructions)


# What waits on the stack.


def _stacks(instructions: list[dis.Instruction]) -> dict[int, tuple[Stack, dis.Instruction]]:
    place = {instruction.offset: k for k, instruction in enumerate(instructions)}
    found: dict[int, tuple[Stack, dis.Instruction]] = {}
    waiting: list[tuple[int, Stack]] = [(0, ())]
    while waiting:
        k, stack = waiting.pop()
        while k < len(instructions):
            step = instructions[k]
            known = found.get(step.offset)
            if known is not None:
                if len(known[0]) != len(stack):
                    return {}  # not understood
                stack = tuple(_joined(one, other) for one, other in zip(known[0], stack, strict=True))
                if stack == known[0]:
                    break
            found[step.offset] = stack, step
            if _jumps(step):
                waiting.append((place[step.argval], _after(step, stack, jump=True)))
            if _leaves(step):
                break
            stack = _after(step, stack, jump=False)
            k += 1
    return found


def _joined(one: Entry, other: Entry) -> Entry:
    """Return what is known of a value where two ways meet."""
    if one == other or one == _stale(other):
        return one
    return other if other == _stale(one) else _HIDDEN


def _jumps(step: dis.Instruction) -> bool:
    return step.opcode in dis.hasjrel or step.opcode in dis.hasjabs


def _leaves(step: dis.Instruction) -> bool:
    """Return True if the next instruction does not follow."""
    return step.opname in _ENDS or (step.opname.startswith("JUMP_") and "IF" not in step.opname)


def _after(step: dis.Instruction, stack: Stack, *, jump: bool) -> Stack:
    """Return the stack after an instruction."""
    name, argument = step.opname, step.arg or 0
    if name in _NO_EFFECT:
        return stack
    if name.startswith("LOAD_"):
        loaded = _loaded(step, stack)
        if loaded is not None:
            return loaded
    if name == "PUSH_NULL":
        return (*stack, _NULL)
    if name in _ONE_OF_TWO:
        return (*stack[:-2], _value(stack[-2:]))
    if name in _ONE_OF_ONE:
        return (*stack[:-1], _value(stack[-1:]))
    if name in _BUILDS:
        kept = len(stack) - _BUILDS[name] * argument - (name == "BUILD_CONST_KEY_MAP")
        return (*stack[:kept], _value(stack[kept:]))
    if name in ("LIST_EXTEND", "LIST_APPEND", "SET_UPDATE") and argument == 1:  # while a list is written down
        joined = _value(stack[-2:])
        return (*stack[:-2], joined) if joined != _HIDDEN else (*map(_stale, stack[:-2]), joined)
    if name == "COPY":
        return (*stack, stack[-argument])
    if name == "SWAP":
        changed = list(stack)
        changed[-1], changed[-argument] = changed[-argument], changed[-1]
        return tuple(changed)
    if name == "POP_TOP" or name.startswith("POP_JUMP_"):
        return stack[:-1]
    if name.startswith("JUMP_IF_"):
        return stack if jump else stack[:-1]
    taken = _taken(step)
    if taken is not None:
        below, called = stack[: len(stack) - taken], stack[len(stack) - taken :]
        callee = _callee(called)
        if name == "CALL" and callee in _PURE_CALLS:
            return (*below, _value((callee, *called[2:])))
        return (*map(_stale, below), _HIDDEN)
    change = dis.stack_effect(step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None, jump=jump)
    return (_HIDDEN,) * (len(stack) + change)  # a variable is stored, an iterator made, ...


def _loaded(step: dis.Instruction, stack: Stack) -> Stack | None:
    name = step.opname
    match name:
        case "LOAD_CONST":
            return (*stack, _CONSTANT)
        case "LOAD_FAST" | "LOAD_FAST_CHECK":
            return (*stack, ("local", step.argval))
        case "LOAD_FAST_LOAD_FAST":
            return (*stack, *(("local", each) for each in step.argval))
        case "LOAD_DEREF":
            return (*stack, ("cell", step.argval))
        case "LOAD_GLOBAL":
            entry = ("global", step.argval)
            if not (step.arg or 0) & 1:
                return (*stack, entry)
            return (*stack, entry, _NULL) if sys.version_info >= (3, 13) else (*stack, _NULL, entry)
        case "LOAD_METHOD":
            return (*stack[:-1], ("attribute", stack[-1], step.argval), stack[-1])
        case "LOAD_ATTR":
            attribute = ("attribute", stack[-1], step.argval)
            method = sys.version_info >= (3, 12) and (step.arg or 0) & 1
            return (*stack[:-1], attribute, stack[-1]) if method else (*stack[:-1], attribute)
    return None


def _taken(step: dis.Instruction) -> int | None:
    """Return how many values a call takes: the function, its self or nothing, arguments, names of keywords."""
    beside = {"CALL": 2, "CALL_KW": 3}.get(step.opname)
    return None if beside is None else beside + (step.arg or 0)


def _stale(entry: Entry) -> Entry:
    return ("stale", entry) if entry[0] in ("value", "global", "cell", "attribute") else entry


def _callee(taken: Stack) -> Entry:
    return taken[1] if taken[0] == _NULL else taken[0]


def _value(entries: Stack) -> Entry:
    """Return the entry of a result of these values."""
    parts: list[Entry] = []
    for entry in entries:
        match entry:
            case ("local" | "global" | "cell" | "attribute", *_):
                parts.append(entry)
            case ("value", inner):
                parts.extend(inner)
            case ("constant",) | ("null",):
                pass
            case _:
                return _HIDDEN
    return "value", tuple(parts)


# Which variables are read after a place, before they are written.


def _live(code: types.CodeType, instructions: list[dis.Instruction]) -> dict[int, frozenset[str] | None]:
    """Return the variables that are read after each instruction before they are written; None: all.

    Variables that inner functions share are always among them. All are where an exception may lead elsewhere.
    """
    offsets = [step.offset for step in instructions]
    if code.co_exceptiontable:
        return dict.fromkeys(offsets)
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
            if _jumps(step):
                after[k] |= before[place[step.argval]]
            written, read = _written_and_read(step, code)
            now = (after[k] - written) | read | shared
            changed |= now != before[k]
            before[k] = now
    return dict(zip(offsets, after, strict=True))


def _written_and_read(step: dis.Instruction, code: types.CodeType) -> tuple[set[str], set[str]]:
    match step.opname:
        case "STORE_FAST":
            return {step.argval}, set()
        case "STORE_FAST_STORE_FAST":
            return set(step.argval), set()
        case "STORE_FAST_LOAD_FAST":
            return {step.argval[0]}, {step.argval[1]} - {step.argval[0]}
        case "LOAD_FAST" | "LOAD_FAST_CHECK":
            return set(), {step.argval}
        case "LOAD_FAST_LOAD_FAST":
            return set(), set(step.argval)
    return set(), set(code.co_varnames) if "FAST" in step.opname else set()
