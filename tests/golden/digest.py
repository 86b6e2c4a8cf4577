"""Digests of a result: one of its numbers and structure, one of its texts, one of its code.

Left out is what may differ between two runs of the same audit, or change without a change of the result: times, versions,
names of scores that were tried, and import lines of scripts. Floats are rounded to nine digits, so that another build of
numpy changes nothing.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
from dataclasses import fields
from typing import Any

from dpaudit import Result
from dpaudit.engine.membership import OneRunBound

DIGITS = 9
ZERO = 1e-12  # what is smaller is what rounding left of a difference
LONG_FLOAT = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?")
VARYING = ("seconds", "versions", "searched")  # the last is said in words
WORDED = ("name", "messages")  # of a result
WORDED_IN_OUTPUTS = ("categories", "label", "text", "structure")  # at any depth


def digests(result: Result | OneRunBound) -> dict[str, str]:
    """Return the three digests of a result and a line that sums it up."""
    numbers, texts, code = parts(result)
    return {"numbers": _hash(numbers), "texts": _hash(texts), "code": _hash(code), "summary": summary(result)}


def summary(result: Result | OneRunBound) -> str:
    """Return verdict, bound, samples and event in one line."""
    line = f"{result.verdict.value}, epsilon_lower {result.epsilon_lower:.6g}"
    if isinstance(result, OneRunBound):
        return f"{line}, {result.correct} of {result.guesses} guesses"
    witness = result.witness
    shown = f", {witness.data} against {witness.neighbour}: {witness.event}" if witness else ""
    return f"{line}, {result.samples} samples{shown}"


def parts(result: Result | OneRunBound) -> tuple[Any, Any, Any]:
    """Return what the three digests are made of, as plain data."""
    if isinstance(result, OneRunBound):
        plain = {field.name: getattr(result, field.name) for field in fields(result)}
        numbers = {**plain, "claim": repr(result.claim), "verdict": result.verdict.value}
        return _rounded(numbers), {"str": _rounded(str(result))}, {}
    plain = {name: value for name, value in result.to_dict().items() if name not in VARYING}
    texts = {name: plain.pop(name) for name in WORDED}
    code: dict[str, Any] = {}
    plain["outputs"], texts["outputs"] = _split(plain["outputs"])
    if plain["witness"] is not None:
        witness = plain["witness"] = dict(plain["witness"])
        texts["event"] = witness.pop("event")
        code["event"] = witness.pop("event_code")
        code["mechanism"] = witness.pop("mechanism")
        code["script"], texts["docstring"] = _taken_apart(witness.pop("script_text"))
    return _rounded(plain), _rounded(texts), _rounded(code)


def _split(value: Any) -> tuple[Any, list[Any]]:
    """Return a summary of outputs without its texts, and the texts in the order of their names."""
    if isinstance(value, dict):
        kept, texts = {}, []
        for name in sorted(value):
            if name in WORDED_IN_OUTPUTS:
                texts.append([name, value[name]])
            else:
                kept[name], inner = _split(value[name])
                texts += inner
        return kept, texts
    if isinstance(value, list):
        both = [_split(item) for item in value]
        return [kept for kept, _ in both], [text for _, texts in both for text in texts]
    return value, []


def _taken_apart(script: str) -> tuple[str, str]:
    """Return a script without docstring, imports and empty lines, and its docstring, which has the event in words."""
    lines = script.splitlines()
    module = ast.parse(script)
    docstring = ast.get_docstring(module) or ""
    left_out = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in [*module.body[: bool(docstring)], *left_out]:
        for place in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[place] = ""
    return "\n".join(line for line in lines if line.strip()), docstring


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return 0.0 if abs(value) < ZERO else float(f"{value:.{DIGITS}g}")
    if isinstance(value, str):
        return LONG_FLOAT.sub(lambda found: f"{float(found[0]):.{DIGITS}g}", value)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def _hash(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
