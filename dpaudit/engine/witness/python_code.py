"""Events as Python: an expression in ``output``, in plain Python and numpy where that is possible.

Structures that plain Python distinguishes (None, text, exceptions, mappings by their keys, one kind of number) are tested
without help, and numbers are taken from their place, as ``output[2]`` or ``output['mean']``. All others need functions of
``dpaudit.replay``: ``number``, ``numbers``, ``structure``, ``code``, ``record`` and ``lowest_bit``. Where text would be
ambiguous or too long, these compare digests of the structure or of the whole output.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dpaudit.engine.encoding.batch import digest, encode, record_keys
from dpaudit.engine.encoding.single_output import read
from dpaudit.engine.encoding.structure import CUT, MARKS, placeholder, plain
from dpaudit.engine.views.condition import AnyOf, Condition, hexadecimal

Labels: TypeAlias = Mapping[int, str]

NUMBERS = ("number", "bool")
"""Kinds of real numbers, as structures name them."""
HELPERS = (
    "attempt",
    "code",
    "decimals",
    "feature",
    "lowest_bit",
    "number",
    "numbers",
    "record",
    "structure",
    "summary",
)
"""Functions of ``dpaudit.replay`` that read parts of an output."""
_SINGLE = {placeholder(kind) for kind in NUMBERS}
_NUMBER_PLACE = re.compile("|".join(map(re.escape, _SINGLE)))
_ARRAY = re.compile(rf"array of {re.escape(placeholder('number'))} with shape \(([0-9, ]+)\)")


@dataclass(frozen=True, slots=True)
class EventCode:
    """An event as Python."""

    expression: str  # in ``output``; empty if there is none
    definitions: str = ""  # code that the expression needs
    may_raise: bool = False  # exceptions were among the outputs
    from_arrays: bool = False  # the outputs look like entries of numpy arrays
    suspects: tuple[tuple[int, str], ...] = ()  # places of the suspects that it calls, and what it calls them

    @property
    def helpers(self) -> list[str]:
        """The functions of ``dpaudit.replay`` that the code calls."""
        names = {
            node.id
            for text in (self.definitions, self.expression)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Name)
        }
        return sorted(names.intersection(HELPERS))


def event_code(condition: AnyOf, labels: Labels) -> EventCode:
    """Return an event as Python."""
    names = OutputNames(labels)
    expression = condition.python(names)
    known = set(labels.values())
    return EventCode(
        expression,
        "\n\n".join(names.defined) if expression else "",
        may_raise=any(label.startswith("raises ") for label in known),
        from_arrays=all(label in (placeholder("number"), "None") or _ARRAY.fullmatch(label) for label in known),
        suspects=tuple(names.suspects.items()) if expression else (),
    )


class OutputNames:
    """Python expressions for the parts of an output that has one of these structures."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.defined: list[str] = []
        self.suspects: dict[int, str] = {}

    @cached_property
    def _tests(self) -> dict[int, str]:
        return _plain_tests(self.labels)

    @cached_property
    def _places(self) -> list[str]:
        return _places(next(iter(self.labels.values()))) if len(self.labels) == 1 else []

    @cached_property
    def _texts(self) -> dict[int, str]:
        """Structures as text, without those whose text is cut or shared."""
        texts = {code: plain(label) for code, label in self.labels.items()}
        uses = Counter(texts.values())
        return {code: text for code, text in texts.items() if uses[text] == 1 and CUT not in self.labels[code]}

    def define(self, code: str) -> None:
        """Note code that an expression needs before it."""
        if code not in self.defined:
            self.defined.append(code)

    def suspect(self, place: int, name: str, condition: Condition, labels: Labels) -> str:
        """Return a condition on the value of a suspect: the condition on an output, with a call in place of the output."""
        function = self.suspects[place] = (
            name if name.isidentifier() and not keyword.iskeyword(name) else f"suspect_{place}"
        )
        inside = condition.python(OutputNames(labels))
        raises = any(label.startswith("raises ") for label in labels.values())
        call = ast.parse(f"attempt({function}, output)" if raises else f"{function}(output)", mode="eval").body
        return ast.unparse(_Called(call).visit(ast.parse(inside, mode="eval"))) if inside else ""

    def structure(self, code: int) -> str:
        """Return a test of the structure."""
        if code in self._tests:
            return self._tests[code]
        text = self._texts.get(code)
        return f"structure(output) == {text!r}" if text else f"code(output) == {hexadecimal(code)!r}"

    def other_structure(self, codes: Sequence[int]) -> str:
        """Return a test that the structure is none of these."""
        if self._tests.keys() >= set(codes):
            return f"not ({' or '.join(f'({self._tests[code]})' for code in codes) or 'False'})"
        return f"code(output) not in {list(map(hexadecimal, codes))!r}"

    def number(self, index: int) -> str:
        """Return one number of the output: the output itself if it is nothing else."""
        if (
            self._tests
            and index == 0
            and all(label in _SINGLE for label in self.labels.values() if _NUMBER_PLACE.search(label))
        ):
            return "output"
        if set(self.labels.values()) <= _SINGLE:
            return "output"
        return f"output{self._places[index]}" if index < len(self._places) else f"number(output, {index})"

    def record(self, key: int, text: str) -> str:
        """Return a test that the output is the one with this key; empty if it cannot be written down."""
        if key in self._tests:  # an output without numbers has the code of its structure as its key
            return self._tests[key]
        found = _literal(text, key)
        if found is None:
            return ""
        literal, name, leaves = found
        plainly = len(self.labels) == 1 or bool(self._tests)
        if plainly and (name in NUMBERS or literal.startswith(("(", "{"))):
            return f"output == {literal}"
        if plainly and literal.startswith("array("):
            numbers = literal.removeprefix("array(").removesuffix(")")
            # A masked array would be compared with the values under its mask, which are not released.
            return f"(np.array_equal(output, {numbers}) and not np.ma.is_masked(output))"
        structure = f"structure(output) == {name!r}"
        if len(self.labels) == 1:
            return f"numbers(output) == {leaves!r}"
        return f"{structure} and numbers(output) == {leaves!r}" if leaves else structure

    def kind(self, key: int, text: str) -> str:
        """Return the type of a number, if numbers came in several types."""
        if sum(digest(label) in self.labels for label in _SINGLE) < 2:
            return ""
        found = _literal(text, key)
        return f" ({found[1]})" if found is not None and found[1] in NUMBERS else ""


class _Called(ast.NodeTransformer):
    """Put an expression in place of ``output``."""

    def __init__(self, call: ast.expr) -> None:
        self.call = call

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.call if node.id == "output" else node


def _plain_tests(labels: Labels) -> dict[int, str]:
    """Return a test in plain Python for every structure; none if that does not distinguish all of them."""
    if set(labels.values()) <= {"True", "False"}:  # of a suspect that returns nothing else
        return {code: "output" if label == "True" else "not output" for code, label in labels.items()}
    tests = {code: _plain_test(label) for code, label in labels.items()}
    return tests if all(tests.values()) and len(set(tests.values())) == len(tests) else {}


def _plain_test(label: str) -> str:
    """Return a test for a structure, empty if plain Python has no short one."""
    if label == "None":
        return "output is None"
    if label in ("True", "False"):  # of a suspect; truth values of outputs are numbers
        return f"isinstance(output, (bool, np.bool_)) and {'not ' * (label == 'False')}output"
    if label in _SINGLE:
        return "isinstance(output, (int, float, np.number, np.bool_, np.ndarray))"
    if label.startswith("raises "):  # "raises package.Error: message"
        return f"type(output).__name__ == {label.removeprefix('raises ').partition(':')[0].rpartition('.')[2]!r}"
    value = _evaluated(_NUMBER_PLACE.sub("0", _without_order(label)))
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return f"hasattr(output, 'keys') and sorted(output.keys()) == {sorted(value)!r}"
    return f"output == {value!r}" if isinstance(value, str | bytes) and repr(value) == label else ""


def _places(label: str) -> list[str]:
    """Return where the numbers of a structure are, as ``[2]`` or ``['mean']``; empty if plain Python cannot reach them all."""
    array = _ARRAY.fullmatch(label)
    if array is not None:
        shape = [int(size) for size in array[1].split(",") if size.strip()]
        return ["".join(f"[{place}]" for place in places) for places in itertools.product(*map(range, shape))]
    label = _without_order(label)
    try:
        body = ast.parse(_NUMBER_PLACE.sub("NUMBER", label), mode="eval").body
        return list(_paths(body, "")) if not any(mark in _NUMBER_PLACE.sub("", label) for mark in MARKS) else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _without_order(label: str) -> str:
    """Return the structure of a mapping without the order of its entries; its numbers are in the order of the keys."""
    head, order, _ = label.partition("} in the order ")
    return f"{head}}}" if order and label.startswith("{") else label


def _paths(node: ast.expr, path: str) -> Iterator[str]:
    match node:
        case ast.Name(id="NUMBER"):
            yield path
        case ast.Tuple(elts=items):
            for place, item in enumerate(items):
                yield from _paths(item, f"{path}[{place}]")
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                yield from _paths(value, f"{path}[{ast.literal_eval(key)!r}]" if key is not None else path)
        case ast.Constant():
            return
        case _:  # a list may have been an iterator, which cannot be indexed
            raise ValueError(ast.dump(node))


def _literal(text: str, key: int) -> tuple[str, str, list[float]] | None:
    """Return the literal, structure and numbers of an output from its text; None unless they give its key."""
    text = text.removeprefix("output == ")
    value = _evaluated(text.removeprefix("array(").removesuffix(")") if text.startswith("array(") else text)
    if value is _NOTHING:
        return None
    candidates = [value]
    with suppress(ValueError):  # parts of different lengths make no array
        candidates.append(np.array(value))
    for candidate in candidates:
        label, leaves = read(candidate)
        if int(record_keys(encode([candidate]))[0]) == key and all(map(math.isfinite, leaves)):
            return text, plain(label), leaves
    return None


_NOTHING = object()


def _evaluated(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOTHING
