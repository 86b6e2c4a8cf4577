"""A row of the ledger: where a statement is printed, what it says, and the computation that decides whether it is true.

The row states what to expect (``standing``), so that a table can be printed without running anything. Running the row computes
the standing anew from its evidence, and a test compares the two for every row.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from dpaudit._util.validation import did_you_mean
from dpaudit.accuracy.bound import Status, judge
from dpaudit.accuracy.theorems import Effort, find_theorem
from dpaudit.errors import InvalidArgument

LOOSE = 1.5
"""A statement that could be stronger by this factor holds loosely."""


class Standing(StrEnum):
    """The standing of a printed statement: true, or in which way not."""

    HOLDS = "holds"
    LOOSE = "holds, loosely"
    VACUOUS = "vacuous"
    FALSE = "false"
    NO_CONTENT = "has no content"


class Kind(StrEnum):
    """The kind of statement, as its document calls it."""

    DEFINITION = "definition"
    ALGORITHM = "algorithm"
    LEMMA = "lemma"
    THEOREM = "theorem"
    COROLLARY = "corollary"
    PROOF = "proof"
    REMARK = "remark"
    EXAMPLE = "example"
    FIGURE = "figure"
    COMPLEXITY = "complexity"
    PAGE = "page"


class Evidence:
    """The outcome of a row's computation, and the standing that follows from it.

    A claim that fails makes the statement false. Otherwise it is vacuous if it was shown to say nothing, loose if it could be
    stronger by the factor ``LOOSE``, without content if nothing was claimed, and it holds in the remaining case.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pictures: list[str] = []
        self.corrections_hold = True
        self._claims = 0
        self._false = self._vacuous = self._loose = False

    def fact(self, text: str) -> None:
        """Note something that decides nothing."""
        self.lines.append(text)

    def picture(self, text: str) -> None:
        """Note lines that are to be printed as they are."""
        self.pictures.append(text)

    def claim(self, text: str, holds: bool | np.bool_) -> None:
        """Note a consequence of the printed statement, computed to be true or false."""
        self._claims += 1
        self._false |= not bool(holds)
        self.lines.append(f"{'true' if holds else 'FALSE'}: {text}")

    def vacuous(self, text: str, says_nothing: bool | np.bool_) -> None:
        """Note a computation that shows that the statement excludes nothing."""
        self._claims += 1
        self._vacuous |= bool(says_nothing)
        self.lines.append(f"{'vacuous' if says_nothing else 'not vacuous'}: {text}")

    def loose(self, text: str, factor: float) -> None:
        """Note by which factor the statement could be stronger."""
        self._claims += 1
        self._loose |= factor >= LOOSE
        self.lines.append(f"{'loose' if factor >= LOOSE else 'sharp'} (factor {factor:.3g}): {text}")

    def corrected(self, text: str, holds: bool | np.bool_) -> None:
        """Note a consequence of the corrected statement; it must be true."""
        self.corrections_hold &= bool(holds)
        self.lines.append(f"{'corrected, true' if holds else 'corrected, but FALSE'}: {text}")

    def theorem(self, name: str, variant: str, **point: Any) -> None:
        """Judge the printed form of an accuracy theorem at a point."""
        text, status, factor = _judged(name, variant, point)
        if status is Status.VACUOUS:
            self.vacuous(text, True)
        else:
            self.claim(text, status is Status.HOLDS)
            if status is Status.HOLDS and factor is not None:
                self.loose(f"{name}, {variant}", factor)

    def correction(self, name: str, variant: str, **point: Any) -> None:
        """Judge a corrected form of an accuracy theorem at a point."""
        text, status, _ = _judged(name, variant, point)
        self.corrected(text, status is Status.HOLDS)

    @property
    def standing(self) -> Standing:
        """The verdict on the printed statement."""
        if self._false:
            return Standing.FALSE
        if self._vacuous:
            return Standing.VACUOUS
        if self._loose:
            return Standing.LOOSE
        return Standing.HOLDS if self._claims else Standing.NO_CONTENT


def _judged(name: str, variant: str, given: Mapping[str, Any]) -> tuple[str, Status, float | None]:
    """Evaluate a form: what was found in words, its status, and by which factor a bound that holds is loose."""
    theorem = find_theorem(name)
    form, point = theorem.form(variant), theorem.complete(given)
    bound = form.bound(**point)
    effort = Effort(alpha=1e-6, rng=np.random.default_rng(0))
    if not bound.applies:
        return f"{name}, {variant}: hypothesis not met: {', '.join(bound.unmet)}", Status.NOT_APPLICABLE, None
    truth = form.truth(bound, effort, **point)
    status = judge(bound, truth)
    where = ", ".join(f"{key}={value:g}" for key, value in given.items() if isinstance(value, int | float))
    text = (
        f"{bound.quantity} {bound.sense} {bound.value:.6g} is claimed, it is {truth.middle:.6g} ({where or 'defaults'})"
    )
    factor = None
    if bound.sense == "<=" and truth.middle > 0.0:
        factor = bound.value / truth.middle
    elif bound.sense == ">=" and truth.middle < 1.0:
        factor = (1.0 - bound.value) / (1.0 - truth.middle)
    return text, status, factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of running a row."""

    statement: Statement
    standing: Standing
    corrections_hold: bool
    lines: tuple[str, ...]
    pictures: tuple[str, ...] = ()

    @property
    def as_expected(self) -> bool:
        """True if the standing is the one of the ledger, and every corrected form holds."""
        return self.standing is self.statement.standing and self.corrections_hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A row of the ledger.

    ``corrected`` and ``counterexample`` are empty where nothing needs correction. ``check(evidence, **parameters)`` runs the
    computation; its keyword arguments are the parameters of the row.
    """

    key: str
    source: str
    place: str
    kind: Kind
    says: str
    standing: Standing
    check: Callable[..., None]
    corrected: str = ""
    counterexample: str = ""

    @property
    def command(self) -> str:
        """The command that runs the row."""
        return f"dpaudit statements show {self.key}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults of the parameters of the row."""
        found = list(inspect.signature(self.check).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in found}

    def run(self, **parameters: Any) -> Finding:
        """Run the computation."""
        for name in parameters:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise InvalidArgument(
                    f"{name}={parameters[name]!r} is not a parameter of {self.key}; it has {known}."
                    f"{did_you_mean(name, self.parameters)}"
                )
        evidence = Evidence()
        self.check(evidence, **parameters)
        return Finding(
            statement=self,
            standing=evidence.standing,
            corrections_hold=evidence.corrections_hold,
            lines=tuple(evidence.lines),
            pictures=tuple(evidence.pictures),
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "key": self.key,
            "source": self.source,
            "place": self.place,
            "kind": str(self.kind),
            "says": self.says,
            "standing": str(self.standing),
            "corrected": self.corrected,
            "counterexample": self.counterexample,
            "command": self.command,
        }


class Chapter:
    """Collects the rows of one module, in the order in which they are written."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.statements: list[Statement] = []

    def row(
        self,
        key: str,
        place: str,
        kind: Kind,
        says: str,
        standing: Standing,
        *,
        corrected: str = "",
        counterexample: str = "",
        source: str | None = None,
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Make a row of the function that decides it."""

        def add(check: Callable[..., None]) -> Callable[..., None]:
            self.statements.append(
                Statement(
                    key=key,
                    source=source or self.source,
                    place=place,
                    kind=kind,
                    says=says,
                    standing=standing,
                    corrected=corrected,
                    counterexample=counterexample,
                    check=check,
                )
            )
            return check

        return add


def reference(module: str) -> Any:
    """Return a module of the reference mechanisms, under the name that the wheel has them."""
    return importlib.import_module(f"dpaudit.mechanisms.{module}")


def close(first: float, second: float, tolerance: float = 1e-9) -> bool:
    """Return True for two numbers that agree to a relative tolerance."""
    return math.isclose(first, second, rel_tol=tolerance, abs_tol=tolerance)
