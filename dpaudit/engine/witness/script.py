"""The script of a witness: a program that repeats the measurement and prints it.

It calls the user's function with numpy alone if that is possible; otherwise it imports ``dpaudit.replay``, and nothing else of
this package.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpaudit import claims
from dpaudit._util.literals import constructed
from dpaudit._util.terminal.escape import one_line
from dpaudit.claims import Claim
from dpaudit.engine.encoding.suspects import Suspect
from dpaudit.engine.witness.main_source import main_source
from dpaudit.engine.witness.python_code import EventCode
from dpaudit.mechanism import Batched, Fresh, Mechanism, Named, PerRelease, Plain, Then
from dpaudit.mechanism.conversations import Conversation
from dpaudit.result.model import Witness

PLACEHOLDER = "PLACEHOLDER"
WRAPPERS = ("after", "batched", "fresh", "per_release")

TEMPLATE = '''"""Repeats a measurement of dpaudit: {claim}.

Event: {event}
"""

{imports}

mechanism = {mechanism}
{suspects}data = {data}
neighbour = {neighbour}

{definitions}
def event(output):
    return {expression}


def outputs(data, trials, seed):
{drawing}


def count(data, trials, seed):
    return sum(bool(event(output)) for output in outputs(data, trials, seed))


trials = {trials}
on_data = count(data, trials, {seed})
on_neighbour = count(neighbour, trials, {seed} + 1)
print(f"event on data:      {{on_data}} of {{trials}}")
print(f"event on neighbour: {{on_neighbour}} of {{trials}}")
if on_data == on_neighbour:
    ratio = 0.0     # also where the event is gone from both
else:
    ratio = math.inf if on_neighbour == 0 else math.log(max(on_data, 1e-300) / on_neighbour)
print(f"log-ratio {{ratio:.4f}}; the claim is {claim}")
'''
PLACEHOLDER_FUNCTION = """

def placeholder(what):
    raise SystemExit(f"Fill in {what} where this script says placeholder.")
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A mechanism as source: import lines, and an expression that gives it again; both empty if there is none."""

    imports: tuple[str, ...] = ()
    expression: str = ""
    replayed: tuple[str, ...] = ()  # names of ``dpaudit.replay`` in the expression
    definitions: str = ""  # source of what cannot be imported, because a notebook or the main program defines it

    @property
    def public(self) -> str:
        """The expression with the public names of the wrappers, such as ``dpaudit.batched(f)``."""
        wrapper = self.expression.partition("(")[0]
        return f"dpaudit.{self.expression}" if wrapper in WRAPPERS else self.expression


def script(
    witness: Witness,
    claim: Claim,
    code: EventCode,
    origin: Any,
    *,
    one_by_one: bool,
    secret: bool,
    suspects: Sequence[Suspect] = (),
) -> Witness:
    """Return the witness with its script, in which a marked placeholder stands for everything without a source form.

    Parameters
    ----------
    witness : Witness
        Pair, event and counts.
    claim : Claim
        The claim that the event refutes.
    code : EventCode
        The event as Python.
    origin : object
        The mechanism as the user gave it.
    one_by_one : bool
        The measurement made a call for every output.
    secret : bool
        The data are Pufferfish secrets, from which data are drawn for every output.
    suspects : sequence of Suspect
        The user's functions of one output.
    """
    # A suspect sees outputs in the form in which the audit drew them, which ``draw`` gives.
    call = None if code.helpers or code.suspects or secret else _calls(origin, code, one_by_one=one_by_one)
    written = write(origin)
    modules, helpers = ["math"], code.helpers
    if call is not None:
        written, drawing = write(_unwrapped(origin)), call
        modules += ["random"] if "random.seed" in drawing else []
        helpers = [*written.replayed]
    else:
        drawing = f"    return draw(mechanism, data, trials, seed, one_by_one={one_by_one})"
        helpers = sorted({"draw", *helpers, *written.replayed})
    missing = [] if written.expression else [unwritten(origin)]
    if not witness.literal:
        missing.append("the data have no literal form: rebuild them here")
    if not witness.event_code:
        missing.append("the event has no short form: write a test of one output here")
    functions = {name: (suspects[place].function, write(suspects[place].function)) for place, name in code.suspects}
    missing += [unwritten(function, "the suspect") for function, found in functions.values() if not found.expression]
    lines = [*written.imports, *(line for _, found in functions.values() for line in found.imports)]
    text = TEMPLATE.format(
        claim=repr(claim),
        event=one_line(witness.event).replace("\\", "\\\\").replace('"', "'"),
        imports=import_block(modules, witness.data + witness.neighbour, helpers, list(dict.fromkeys(lines)), missing)
        + (f"\n\n\n{written.definitions}\n" if written.definitions else ""),
        mechanism=written.expression or f"placeholder({f'the mechanism {full_name(origin)}'!r})",
        suspects="".join(
            f"{name} = {found.expression or f'placeholder({full_name(function)!r})'}\n"
            for name, (function, found) in functions.items()
            if found.expression != name
        ),
        data=witness.data if witness.literal else f"placeholder('the data')  # {one_line(witness.data)}",
        neighbour=witness.neighbour if witness.literal else f"placeholder('the data')  # {one_line(witness.neighbour)}",
        definitions=f"\n{code.definitions}\n" if code.definitions else "",
        expression=witness.event_code or "placeholder('the event')",
        drawing=drawing,
        trials=witness.on_data.trials,
        seed=witness.seed,
    )
    return replace(witness, script_text=text)


def import_block(
    modules: Sequence[str], sources: str, replayed: Sequence[str], lines: Sequence[str], missing: Sequence[str]
) -> str:
    """Return the imports of a script, and its placeholders.

    Parameters
    ----------
    modules : sequence of str
        Modules of the standard library.
    sources : str
        Source of the data; pandas is imported if it is needed there.
    replayed : sequence of str
        Names of ``dpaudit.replay``, the only module of this package that a script may import.
    lines : sequence of str
        Imports of the mechanism.
    missing : sequence of str
        Notes on what has to be filled in.
    """
    blocks = [
        "\n".join(f"import {name}" for name in modules),
        "import numpy as np" + ("\nimport pandas as pd" if "pd." in sources else ""),
        "\n".join([*([f"from dpaudit.replay import {', '.join(replayed)}"] if replayed else []), *lines]),
        "".join(f"# {PLACEHOLDER}: {text}\n" for text in missing) + (PLACEHOLDER_FUNCTION if missing else ""),
    ]
    return "\n\n".join(block for block in blocks if block)


def _unwrapped(origin: Any) -> Any:
    return origin.__wrapped__ if isinstance(origin, Batched | PerRelease | Plain) else origin


def _calls(origin: Any, code: EventCode, *, one_by_one: bool) -> str | None:
    """Return the body of a function that calls the mechanism with numpy alone; None if that needs ``dpaudit.replay``."""
    if isinstance(getattr(origin, "__wrapped__", None), Then):
        return None
    match origin:
        case Named() | str() | Fresh():
            return None
        case PerRelease():
            setup, call = ["rng = np.random.default_rng(seed)"], "mechanism(data, rng)"
        case Batched():
            setup, call = [], "mechanism(data, {size}, {rng})"
        case Mechanism() if not isinstance(origin, Plain):
            setup, call = [], "mechanism.sample(data, {size}, {rng})"
        case _:
            setup, call = ["random.seed(seed)", "np.random.seed(seed % 2**32)"], "mechanism(data)"
    if "{size}" in call:
        call = f"np.asanyarray({call})" if code.from_arrays else call
        if not (one_by_one or code.may_raise):
            return f"    return {call.format(size='trials', rng='np.random.default_rng(seed)')}"
        setup, call = ["rng = np.random.default_rng(seed)"], call.format(size=1, rng="rng") + "[0]"
    if code.may_raise:
        loop = ["try:", f"    output = {call}", "except Exception as error:", "    output = error", "yield output"]
    elif one_by_one:
        outside = "continue  # an exception is an output outside this event"
        loop = ["try:", f"    output = {call}", "except Exception:", f"    {outside}", "yield output"]
    else:
        loop = [f"yield {call}"]
    loop = [f"    {line}" for line in loop]
    return "\n".join(f"    {line}" for line in [*setup, "for _ in range(trials):", *loop])


def full_name(origin: Any) -> str:
    """Return the name of a mechanism without a source form, in one line: its own, or that of its class."""
    named = _function_or_class(origin)
    return one_line(f"{getattr(named, '__module__', None)}.{named.__qualname__}")


def unwritten(origin: Any, what: str = "the mechanism") -> str:
    """Return why a mechanism or a suspect has no source form, and what to do about it."""
    named = _function_or_class(origin)
    if isinstance(named, type) and named.__module__ != "__main__" and _found(named.__module__, named.__qualname__):
        return (
            f"{what} is of {full_name(origin)}, whose repr does not make it again: put it here, or give the class a repr "
            "that makes it again, e.g. a dataclass"
        )
    return f"{what} {full_name(origin)} cannot be imported by name: put it here"


def _function_or_class(origin: Any) -> Any:
    inner = getattr(origin, "__wrapped__", origin)
    return inner if isinstance(getattr(inner, "__qualname__", None), str) else type(inner)


def write(origin: Any) -> Written:
    """Return a mechanism as source, if it can be imported by name or its repr makes it again."""
    if isinstance(origin, Named):
        return Written(expression=repr(origin.name))
    if isinstance(origin, str):
        return Written(expression=repr(origin))
    if isinstance(origin, PerRelease) and isinstance(origin.function, Conversation):
        inner = write(origin.function.begin)
        if not inner.expression:
            return inner
        return replace(inner, expression=f"interactive({inner.expression})", replayed=("interactive", *inner.replayed))
    if isinstance(origin, Batched | PerRelease | Fresh | Plain) and isinstance(origin.__wrapped__, Then):
        return _write_after(origin)
    if isinstance(origin, Batched | PerRelease | Fresh | Plain):
        wrapper = {Batched: "batched", PerRelease: "per_release", Fresh: "fresh", Plain: ""}[type(origin)]
        inner = write(origin.__wrapped__)
        if not inner.expression or not wrapper:
            return inner
        return replace(inner, expression=f"{wrapper}({inner.expression})", replayed=(wrapper, *inner.replayed))
    own = None if getattr(origin, "__module__", None) != "__main__" else main_source(origin)
    if own is not None:
        return Written(own.imports, origin.__name__, definitions=own.definitions)
    name = getattr(origin, "__qualname__", "")
    module = getattr(origin, "__module__", "") or ""
    if name and module != "__main__" and "<" not in name and _found(module, name) is origin:
        return Written((f"from {module} import {name.partition('.')[0]}",), name)
    kind = type(origin)
    if kind.__module__ not in ("__main__", "builtins") and _found(kind.__module__, kind.__qualname__) is kind:
        text = repr(origin)
        try:
            names = {"Relation": claims.Relation, **claims.CLAIM_KINDS}
            if constructed(text, {kind.__name__: kind, **names}) == origin:
                used = tuple(name for name in names if name in text)
                return Written((f"from {kind.__module__} import {kind.__name__}",), text, used)
        except Exception:
            return Written()
    return Written()


def _write_after(origin: Batched | PerRelease | Fresh | Plain) -> Written:
    """Return a mechanism with post-processing as ``after(mechanism, function)``."""
    both: Then = origin.__wrapped__  # type: ignore[assignment]
    first = getattr(both.first, "__self__", None)  # an object with ``sample``
    first = type(origin)(both.first) if first is None or not isinstance(first, Mechanism) else first
    inner, function = write(first), write(both.second)
    if not inner.expression or not function.expression:
        return Written()
    return Written(
        (*inner.imports, *function.imports),
        f"after({inner.expression}, {function.expression})",
        ("after", *inner.replayed, *function.replayed),
    )


def _found(module: str, qualified: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found
