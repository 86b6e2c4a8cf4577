"""The program at the end of a violation: it repeats the measurement and prints it."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from dpaudit import claims
from dpaudit._util.escape import one_line
from dpaudit._util.literals import constructed
from dpaudit.claims import Claim
from dpaudit.mechanism import Batched, Fresh, Named, PerRelease, Plain
from dpaudit.result.model import Witness

PLACEHOLDER = "PLACEHOLDER"
CLAIMS = ("PureDP", "ApproxDP", "GaussianDP", "ZeroConcentratedDP", "RenyiDP")

TEMPLATE = '''"""Repeats a measurement of dpaudit: {claim}.

Event: {event}
"""

import math

import numpy as np

from dpaudit.engine.encoding.batch import code, number, numbers, record, structure
from dpaudit.engine.sampling.blocks import Sampler
from dpaudit.mechanism import as_mechanism
{imports}
mechanism = as_mechanism({mechanism})
data = {data}
neighbour = {neighbour}

{definitions}

def event(output):
    return {expression}


def count(data, trials, seed):
    outputs = Sampler(mechanism, one_by_one={one_by_one}).draw(data, trials, np.random.SeedSequence(seed))
    return sum(bool(event(output)) for output in outputs)


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


def script(witness: Witness, claim: Claim, definitions: str, origin: Any, *, one_by_one: bool) -> Witness:
    """Return the witness with its script; what cannot be written down is a marked placeholder that says so."""
    imports, expression = importable(origin)
    missing: list[str] = []
    if not expression:
        missing.append(unwritten(origin))
    if not witness.literal:
        missing.append("the data have no literal form: rebuild them here")
    if not witness.event_code:
        missing.append("the event has no short form: write a test of one output here")
    note = "".join(f"# {PLACEHOLDER}: {text}\n" for text in missing)
    if missing:
        note += (
            '\n\ndef placeholder(what):\n    raise SystemExit(f"Fill in {what} where this script says placeholder.")\n'
        )
    text = TEMPLATE.format(
        claim=repr(claim),
        event=one_line(witness.event).replace("\\", "\\\\").replace('"', "'"),
        imports=("import pandas as pd\n" if "pd." in witness.data + witness.neighbour else "") + imports + "\n" + note,
        mechanism=expression or f"placeholder({f'the mechanism {full_name(origin)}'!r})",
        data=witness.data if witness.literal else f"placeholder('the data')  # {one_line(witness.data)}",
        neighbour=witness.neighbour if witness.literal else f"placeholder('the data')  # {one_line(witness.neighbour)}",
        definitions=definitions,
        expression=witness.event_code or "placeholder('the event')",
        one_by_one=one_by_one or "raises " in witness.event,
        trials=witness.on_data.trials,
        seed=witness.seed,
    )
    return replace(witness, script_text=text)


def full_name(origin: Any) -> str:
    """What a mechanism that cannot be written down is called, in one line: its own name, or that of its class."""
    named = _function_or_class(origin)
    return one_line(f"{getattr(named, '__module__', None)}.{named.__qualname__}")


def unwritten(origin: Any) -> str:
    """Why a mechanism cannot be written down, and what to do about it."""
    named = _function_or_class(origin)
    if isinstance(named, type) and named.__module__ != "__main__" and _found(named.__module__, named.__qualname__):
        return (
            f"the mechanism is of {full_name(origin)}, whose repr does not make it again: put it here, or give the class a repr "
            "that makes it again, e.g. a dataclass"
        )
    return f"the mechanism {full_name(origin)} cannot be imported by name: put it here"


def _function_or_class(origin: Any) -> Any:
    inner = getattr(origin, "__wrapped__", origin)
    return inner if isinstance(getattr(inner, "__qualname__", None), str) else type(inner)


def importable(origin: Any) -> tuple[str, str]:
    """Import lines and an expression that gives the mechanism again; ``("", "")`` where there are none."""
    if isinstance(origin, Named):
        return "", repr(origin.name)
    if isinstance(origin, str):
        return "", repr(origin)
    if isinstance(origin, Batched | PerRelease | Fresh | Plain):
        wrapper = {Batched: "dpaudit.batched", PerRelease: "dpaudit.per_release", Fresh: "dpaudit.fresh", Plain: ""}
        lines, name = importable(origin.__wrapped__)
        return (f"import dpaudit\n{lines}", f"{wrapper[type(origin)]}({name})") if name else ("", "")
    name = getattr(origin, "__qualname__", "")
    module = getattr(origin, "__module__", "") or ""
    if name and module != "__main__" and "<" not in name and _found(module, name) is origin:
        return f"from {module} import {name.partition('.')[0]}", name
    kind = type(origin)
    if kind.__module__ not in ("__main__", "builtins") and _found(kind.__module__, kind.__qualname__) is kind:
        text = repr(origin)
        try:
            names = {"Relation": claims.Relation, **{name: getattr(claims, name) for name in CLAIMS}}
            if constructed(text, {kind.__name__: kind, **names}) == origin:
                used = [name for name in names if name in text]
                line = f"from dpaudit import {', '.join(used)}\n" if used else ""
                return f"{line}from {kind.__module__} import {kind.__name__}", text
        except Exception:
            return "", ""
    return "", ""


def _found(module: str, qualified: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return found
