"""Events that two extracted laws give different probabilities: readable, and a test of one output of the running code.

Candidates are one outcome, the structure of the output (None, an exception, a length), a half-line in one number of the
output, and one half-line in each of several independent numbers. Every probability is a mass of the extracted laws.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.values import fingerprint, source
from dpaudit.exact.form import Form, form_of, log_total
from dpaudit.mechanism import Raised
from dpaudit.symbolic import comparison
from dpaudit.symbolic.running.extraction import Extraction, Leaf
from dpaudit.symbolic.values import forms
from dpaudit.symbolic.values.regions import Region

ReadOutput = Callable[[Any], Any]

MOST_CUTS = 24
"""Ends of half-lines that are tried in one number of the output."""


@dataclass(frozen=True, slots=True)
class ExactEvent:
    """A set of outputs: in words, as a Python expression in ``output`` (or empty), as a test, and its two probabilities."""

    text: str
    code: str
    holds: Callable[[Any], bool]
    on_data: float
    on_neighbour: float


def events(P: Extraction, Q: Extraction) -> Iterator[ExactEvent]:
    """Yield candidates for an event that is likelier under ``P`` than under ``Q``."""
    yield from _outcomes(P, Q)
    yield from _structures(P, Q)
    blocks: dict[Hashable, tuple[list[comparison.Term], list[comparison.Term]]] = {}
    for side, law in enumerate((P, Q)):
        for leaf in law.leaves:
            blocks.setdefault(leaf.skeleton, ([], []))[side].append(comparison.Term(leaf.weight, leaf.coordinates))
    for key, (terms, others) in blocks.items():
        if terms and others and terms[0].laws and all(tag is None for tag in key[2]):  # type: ignore[index]
            yield from _half_lines(key, comparison._merged(terms), comparison._merged(others))


def _certain(leaf: Leaf) -> bool:
    return all(law.value is not None for law in leaf.coordinates)


def _outcomes(P: Extraction, Q: Extraction) -> Iterator[ExactEvent]:
    """Single outcomes of paths that end in one."""
    masses: dict[Hashable, list[float]] = {}
    outcomes: dict[Hashable, Any] = {}
    for side, law in enumerate((P, Q)):
        for leaf in law.leaves:
            if _certain(leaf):
                key = fingerprint(leaf.shown)
                outcomes.setdefault(key, leaf.shown)
                masses.setdefault(key, [0.0, 0.0])[side] += leaf.weight
    for key, (p, q) in masses.items():
        if p > q:
            text, code = _equality(outcomes[key])
            yield ExactEvent(text, code, lambda output, key=key: fingerprint(output) == key, p, q)  # type: ignore[misc]


def _equality(outcome: Any) -> tuple[str, str]:
    if isinstance(outcome, Raised):
        text = str(outcome)  # "raises package.Error: message"
        name = text.removeprefix("raises ").partition(":")[0].rpartition(".")[2]
        return text, f"type(output).__name__ == {name!r}"
    if outcome is None or isinstance(outcome, bool | np.bool_):
        return f"output is {outcome}", f"output is {outcome}" if outcome is None else f"bool(output) is {outcome}"
    text = source(outcome)
    same = f"np.array_equal(output, {text})" if isinstance(outcome, np.ndarray) else f"output == {text}"
    return f"output == {text}", same


def _structures(P: Extraction, Q: Extraction) -> Iterator[ExactEvent]:
    """Outputs of one type and length, whatever numbers are in them."""
    masses: dict[Hashable, list[float]] = {}
    for side, law in enumerate((P, Q)):
        for leaf in law.leaves:
            masses.setdefault(leaf.skeleton[0], [0.0, 0.0])[side] += leaf.weight  # type: ignore[index]
    for skeleton, (p, q) in masses.items():
        if p > q and skeleton == "number":
            code = "isinstance(output, (int, float, np.number, np.bool_))"
            yield ExactEvent("output is a number", code, _is_number, p, q)
        elif p > q and skeleton[0] in ("list", "tuple"):  # type: ignore[index]
            length = len(skeleton[1])  # type: ignore[index]
            code = f"isinstance(output, {skeleton[0]}) and len(output) == {length}"  # type: ignore[index]
            kind = skeleton[0]  # type: ignore[index]
            yield ExactEvent(f"output is a {kind} of length {length}", code, _has_length(kind, length), p, q)


def _is_number(output: Any) -> bool:
    return isinstance(output, int | float | np.number | np.bool_)


def _has_length(kind: str, length: int) -> Callable[[Any], bool]:
    return lambda output: type(output).__name__ == kind and len(output) == length


@dataclass(frozen=True, slots=True)
class _HalfLine:
    """All values of one number of the output up to a cut, from it on, or equal to it, with both probabilities."""

    place: str
    read: ReadOutput
    sign: str
    cut: float
    on_data: float
    on_neighbour: float

    def holds(self, output: Any) -> bool:
        value = self.read(output)
        return bool(
            value <= self.cut if self.sign == "<=" else value >= self.cut if self.sign == ">=" else value == self.cut
        )

    @property
    def code(self) -> str:
        return f"{self.place} {self.sign} {self.cut!r}"

    @property
    def gain(self) -> float:
        """Information on one output if both events are what is looked at."""
        if self.on_data <= 0.0:
            return 0.0
        return self.on_data * (math.log(self.on_data / self.on_neighbour) if self.on_neighbour > 0.0 else 700.0)


def _half_lines(key: Any, terms: list[comparison.Term], others: list[comparison.Term]) -> Iterator[ExactEvent]:
    skeleton = key[0]
    places = list(_places(skeleton, "output"))
    if len(places) != len(terms[0].laws):
        return
    p, q = (math.fsum(term.weight for term in side) for side in (terms, others))
    fits = _fits(skeleton)
    best: list[_HalfLine] = []
    for at, (place, read) in enumerate(places):
        laws = [form_of(comparison._only(side, at).laws[0].law) for side in (terms, others)]
        found = list(_cuts(place, read, laws[0], laws[1]))
        for half in found:
            yield _event([half], p * half.on_data, q * half.on_neighbour, fits)
        found = [half for half in found if half.gain > 1e-12 and half.on_data > half.on_neighbour]
        if found:
            best.append(max(found, key=lambda half: half.gain))
    if len(best) > 1 and len(terms) == len(others) == 1:  # the numbers are independent on both data sets
        masses = [math.prod(half.on_data for half in best), math.prod(half.on_neighbour for half in best)]
        yield _event(best, p * masses[0], q * masses[1], fits)


def _event(halves: list[_HalfLine], p: float, q: float, fits: Callable[[Any], bool]) -> ExactEvent:
    text = " and ".join(half.code for half in halves)
    return ExactEvent(text, text, lambda output: fits(output) and all(half.holds(output) for half in halves), p, q)


def _fits(skeleton: Any) -> Callable[[Any], bool]:
    """Return a test of the structure of an output, so that its numbers can be read."""
    from dpaudit.symbolic.laws.outputs import read

    return lambda output: read(output, []) == skeleton


def _places(skeleton: Any, code: str) -> Iterator[tuple[str, ReadOutput]]:
    """Yield every number of an output: how it is written, and a function that reads it; nothing for unusual containers."""
    if skeleton == "number":
        yield code, _itself
        return
    kind, inner, *rest = skeleton
    items: list[tuple[Any, Any]] = []
    if kind == "array" and not rest:
        items = [(index if len(index) != 1 else index[0], "number") for index in itertools.product(*map(range, inner))]
    elif kind in ("list", "tuple"):
        items = list(enumerate(inner))
    elif kind == "dict":
        items = [(_plain_key(key), item) for key, item in inner]
    for key, item in items:
        shown = ", ".join(map(str, key)) if kind == "array" and isinstance(key, tuple) else repr(key)
        for text, read in _places(item, f"{code}[{shown}]"):
            yield text, functools.partial(_read_inside, key, read)


def _itself(output: Any) -> Any:
    return output


def _read_inside(key: Any, read: ReadOutput, output: Any) -> Any:
    return read(output[key])


def _plain_key(key: Any) -> Any:
    skeleton, numbers = key
    if skeleton == "number":
        kind, value = numbers[0]
        return int(value) if kind == "i" else bool(value) if kind == "b" else value
    return skeleton[1]


def _cuts(place: str, read: ReadOutput, P: Form, Q: Form) -> Iterator[_HalfLine]:
    marks: set[float] = set()
    for form in (P, Q):
        for part in (form.continuous, form.lattice):
            if part is not None:
                step = form.lattice.step if part is form.lattice and form.lattice is not None else 1.0
                marks |= {float(x) * step for x in (*part.kinks, *part.landmarks)}
        marks |= {float(x) for x in form.atoms if isinstance(x, int | float)}
    cuts = sorted(x for x in marks if math.isfinite(x))
    if len(cuts) > MOST_CUTS:
        cuts = [cuts[k] for k in np.linspace(0, len(cuts) - 1, MOST_CUTS).round().astype(int)]
    for cut in cuts:
        for sign, region in (
            ("<=", Region.below(cut, closed=True)),
            (">=", Region.above(cut, closed=True)),
            ("==", Region.point(cut)),
        ):
            p, q = (_mass(form, region) for form in (P, Q))
            if p > q:
                yield _HalfLine(place, read, sign, cut, p, q)


def _mass(form: Form, region: Region) -> float:
    part = forms.restricted(form, region)
    if not (part.atoms or part.lattice or part.continuous):
        return 0.0
    total = log_total(part)
    return math.exp(total) if total > -math.inf else 0.0
