"""The canonical document: the results of a run as plain data. Every report is a function of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from dpaudit._util.terminal.exit_codes import ExitCode, strongest
from dpaudit._util.validation import check_choice
from dpaudit.claims import Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.report.origin import UNKNOWN, Origin
from dpaudit.result.model import ADDED, ADDED_LATER, Result
from dpaudit.utility.result import AccuracyResult

FORMAT = 1
FAIL_ON = ("violation", "inconclusive", "never")
LARGEST_NUMBER = 2**256  # largest integer in a file; a larger one is damage, and does not fit into a float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One audit of a run: its result, what was expected of it, and where it is defined."""

    result: Result
    expect: Verdict | None = None
    path: str = ""  # of the audit's definition
    line: int = 1
    mechanism_path: str = ""  # of the mechanism's, where it is in this repository (dpaudit.report.source)
    mechanism_line: int = 1

    @property
    def met(self) -> bool:
        """True if the result is the expected one, or, without an expectation, no violation."""
        if self.expect is not None:
            return self.result.verdict is self.expect
        return self.result.verdict is not Verdict.VIOLATION

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        expect = None if self.expect is None else self.expect.value
        return {
            "path": self.path,
            "line": self.line,
            "mechanism_path": self.mechanism_path,
            "mechanism_line": self.mechanism_line,
            "expect": expect,
            "met": self.met,
            "result": self.result.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Entry:
        """Read back what :meth:`to_dict` wrote."""
        _check_types(plain, _ENTRY_TYPES)
        _check_types({**ADDED, **ADDED_LATER, **plain["result"]}, _RESULT_TYPES)
        witness = plain["result"]["witness"]
        if witness is not None:
            _check_types(witness, _WITNESS_TYPES)
            for side in ("on_data", "on_neighbour"):
                _check_types(witness[side], _FREQUENCY_TYPES)
        expect = None if plain["expect"] is None else Verdict(plain["expect"])
        places = {name: plain[name] for name in ("path", "line", "mechanism_path", "mechanism_line")}
        return cls(result=Result.from_dict(plain["result"]), expect=expect, **places)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyEntry:
    """One accuracy check of a run: its result, what was expected of it, and where it is defined."""

    result: AccuracyResult
    expect: Verdict | None = None
    path: str = ""
    line: int = 1

    @property
    def met(self) -> bool:
        """True if the result is the expected one, or, without an expectation, no violation."""
        return self.result.verdict is self.expect if self.expect else self.result.verdict is not Verdict.VIOLATION

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        expect = None if self.expect is None else self.expect.value
        return {
            "path": self.path,
            "line": self.line,
            "expect": expect,
            "met": self.met,
            "result": self.result.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> AccuracyEntry:
        """Read back what :meth:`to_dict` wrote."""
        _check_types(plain, {"path": str, "line": int, "result": Mapping})
        expect = None if plain["expect"] is None else Verdict(plain["expect"])
        _check_types(plain["result"], _ACCURACY_TYPES)
        result = AccuracyResult.from_dict(plain["result"])
        return cls(result=result, expect=expect, path=plain["path"], line=plain["line"])


AnyEntry: TypeAlias = Entry | AccuracyEntry

_NUMBER = (int, float)
_ENTRY_TYPES: dict[str, Any] = {
    "path": str, "line": int, "mechanism_path": str, "mechanism_line": int, "result": Mapping,
}  # fmt: skip
_RESULT_TYPES: dict[str, Any] = {
    "name": str, "alpha": _NUMBER, "samples": int, "seconds": _NUMBER, "pairs": int, "reproducible": bool, "seed": int,
    "messages": [str], "samples_confirming": int, "samples_after": int, "coverage": _NUMBER, "samples_needed": (int, type(None)),
    "searched": [str], "outputs": Mapping, "accumulated": [Mapping], "versions": {str: str},
}  # fmt: skip
_ACCURACY_TYPES: dict[str, Any] = {
    "name": str, "data": str, "truth": str, "alpha": _NUMBER, "samples": int, "data_sets": int, "tested": int, "seed": int,
    "shrunk": bool, "messages": [str],
}  # fmt: skip
_WITNESS_TYPES: dict[str, Any] = {
    "data": str, "neighbour": str, "literal": bool, "event": str, "event_code": str, "confirmed": bool, "shrunk": bool,
    "seed": int, "mechanism": str, "script_text": str, "on_data": Mapping, "on_neighbour": Mapping,
}  # fmt: skip
_FREQUENCY_TYPES: dict[str, Any] = {"count": int, "trials": int, "low": _NUMBER, "high": _NUMBER}


def _check_types(plain: Any, types: Mapping[str, Any]) -> None:
    """Raise InvalidArgument for a value of the wrong type: reports rely on the types, and a file may be damaged."""
    for name, kind in types.items():
        value = plain[name]
        if isinstance(kind, list | dict):
            (of_items,) = set(kind)
            items = [*value, *value.values()] if isinstance(value, dict) else value
            right = isinstance(value, type(kind)) and all(isinstance(item, of_items) for item in items)
        else:
            right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            if isinstance(value, int | float) and not abs(value) < LARGEST_NUMBER:
                raise ValueError(f"{name} is beyond all bounds")
        if not right:
            raise TypeError(f"{name} has a value of the wrong type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An audit that could not be run, or a file whose audits could not be found."""

    name: str
    reason: str
    path: str = ""
    line: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "reason": self.reason, "path": self.path, "line": self.line}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Failure:
        """Read back what :meth:`to_dict` wrote."""
        _check_types(plain, {"name": str, "reason": str, "path": str, "line": int})
        return cls(**{name: plain[name] for name in ("name", "reason", "path", "line")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All audits of a run."""

    entries: tuple[Entry, ...]
    failures: tuple[Failure, ...] = ()
    regressions: tuple[str, ...] = ()  # against the baseline of the run, if it had one
    interrupted: bool = False  # these are the results so far
    fail_on: str = "inconclusive"  # the mildest verdict that makes the exit code non-zero; "never": only errors do
    accuracy: tuple[AccuracyEntry, ...] = ()
    origin: Origin = UNKNOWN

    @property
    def complete(self) -> bool:
        """True if every audit of the run has a result."""
        return not (self.interrupted or self.failures)

    @property
    def alpha_spent(self) -> float:
        """Sum of the false-alarm probabilities of its audits."""
        return sum(entry.result.alpha for entry in self.all_entries)

    @property
    def all_entries(self) -> tuple[AnyEntry, ...]:
        """Audits of privacy, then checks of accuracy."""
        return (*self.entries, *self.accuracy)

    def exit_code(self) -> ExitCode:
        """Return the exit code of the run; reports and comparisons of it end with the same."""
        codes = [ExitCode.OK]
        if self.interrupted:
            codes.append(ExitCode.INTERRUPTED)
        if self.failures:
            codes.append(ExitCode.ERROR)
        if self.fail_on != "never" and (self.regressions or any(not entry.met for entry in self.all_entries)):
            codes.append(ExitCode.FAILED)
        undecided = any(e.expect is None and e.result.verdict is Verdict.INCONCLUSIVE for e in self.all_entries)
        if self.fail_on == "inconclusive" and undecided:
            codes.append(ExitCode.UNDECIDED)
        return strongest(codes)

    def to_json(self) -> str:
        """The canonical text: sorted keys, one indent, so that two of them diff well."""
        plain: dict[str, Any] = {
            "format": FORMAT,
            "tool": "dpaudit",
            "complete": self.complete,
            "interrupted": self.interrupted,
            "fail_on": self.fail_on,
            "alpha_spent": self.alpha_spent,
            "audits": [entry.to_dict() for entry in self.entries],
            "failures": [failure.to_dict() for failure in self.failures],
            "regressions": list(self.regressions),
        }
        if self.origin != UNKNOWN:
            plain["origin"] = {"date": self.origin.date, "commit": self.origin.commit}
        if self.accuracy:
            plain["accuracy"] = [entry.to_dict() for entry in self.accuracy]
        return json.dumps(plain, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, *, origin: str = "the file") -> Document:
        """Read a document; anything else is an error that says what is wrong with it."""
        try:
            plain = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"{origin} is not JSON: {error}.") from None
        if not isinstance(plain, dict) or plain.get("tool") != "dpaudit":
            raise InvalidArgument(f"{origin} was not written by dpaudit.")
        if plain.get("format") != FORMAT:
            raise InvalidArgument(f"{origin} has format {plain.get('format')!r}; this version reads format {FORMAT}.")
        try:
            _check_types({"regressions": [], **plain}, {"complete": bool, "regressions": [str]})
            fail_on = plain.get("fail_on", "inconclusive")
            check_choice(FAIL_ON, fail_on=fail_on)
            return cls(
                entries=tuple(Entry.from_dict(item) for item in plain["audits"]),
                failures=tuple(Failure.from_dict(item) for item in plain.get("failures", ())),
                regressions=tuple(plain.get("regressions", ())),
                # Earlier versions did not record why a run is not complete.
                interrupted=plain.get("interrupted", not plain["complete"]) is True,
                fail_on=fail_on,
                accuracy=tuple(AccuracyEntry.from_dict(item) for item in plain.get("accuracy", ())),
                origin=_origin(plain.get("origin", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidArgument(f"{origin} is damaged: {type(error).__name__}: {error}.") from None


EntryT = TypeVar("EntryT", Entry, AccuracyEntry)


def _origin(plain: Mapping[str, Any]) -> Origin:
    found = {"date": "", "commit": "", **plain}
    _check_types(found, {"date": str, "commit": str})
    return Origin(date=found["date"], commit=found["commit"])


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def read_document(path: Path) -> Document:
    """Read a document from a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{str(path)!r} cannot be read: {error}.") from None
    return Document.from_json(text, origin=str(path))


def sorted_entries(entries: Sequence[EntryT]) -> tuple[EntryT, ...]:
    """Return the entries by name, because they finish in any order."""
    return tuple(sorted(entries, key=lambda entry: entry.result.name))
