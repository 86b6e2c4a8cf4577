"""The canonical document: what a run did, as plain data. Every report is a function of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.claims import Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.result.model import Result
from dpaudit.utility.result import AccuracyResult

FORMAT = 1
OK, FAILED, USAGE, UNDECIDED = 0, 1, 2, 3


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
        """Whether the result is what was expected, or, with no expectation, no violation."""
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
        _check_types(plain["result"], _RESULT_TYPES)
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
        """Whether the result is what was expected, or, with no expectation, no violation."""
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
        result = AccuracyResult.from_dict(plain["result"])
        return cls(result=result, expect=expect, path=plain["path"], line=plain["line"])


_NUMBER = (int, float)
_ENTRY_TYPES: dict[str, Any] = {
    "path": str, "line": int, "mechanism_path": str, "mechanism_line": int, "result": Mapping,
}  # fmt: skip
_RESULT_TYPES: dict[str, Any] = {
    "name": str, "alpha": _NUMBER, "samples": int, "seconds": _NUMBER, "pairs": int, "reproducible": bool, "seed": int,
    "messages": [str], "samples_after": int, "outputs": Mapping, "versions": {str: str},
}  # fmt: skip
_WITNESS_TYPES: dict[str, Any] = {
    "data": str, "neighbour": str, "literal": bool, "event": str, "event_code": str, "confirmed": bool, "shrunk": bool,
    "seed": int, "mechanism": str, "script_text": str, "on_data": Mapping, "on_neighbour": Mapping,
}  # fmt: skip
_FREQUENCY_TYPES: dict[str, Any] = {"count": int, "trials": int, "low": _NUMBER, "high": _NUMBER}


def _check_types(plain: Any, types: Mapping[str, Any]) -> None:
    """A file may come from anywhere, and reports trust the types of what they print."""
    for name, kind in types.items():
        value = plain[name]
        if isinstance(kind, list | dict):
            items = [*value, *value.values()] if isinstance(value, dict) else value
            right = isinstance(value, type(kind)) and all(isinstance(item, str) for item in items)
        else:
            right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right:
            raise TypeError(f"{name} has a value of the wrong type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All audits of a run."""

    entries: tuple[Entry, ...]
    complete: bool = True  # False: interrupted; these are the results so far
    accuracy: tuple[AccuracyEntry, ...] = ()

    @property
    def alpha_spent(self) -> float:
        """Sum of the false-alarm probabilities of the audits in it."""
        return sum(entry.result.alpha for entry in self.all_entries)

    @property
    def all_entries(self) -> tuple[Entry | AccuracyEntry, ...]:
        """Audits of privacy, then checks of accuracy."""
        return (*self.entries, *self.accuracy)

    def exit_code(self, fail_on: str = "inconclusive") -> int:
        """0 nothing found and every expectation met; 1 violation or unmet expectation; 3 inconclusive. 1 beats 3."""
        if fail_on == "never":
            return OK
        both = self.all_entries
        if any(not entry.met for entry in both):
            return FAILED
        undecided = any(e.expect is None and e.result.verdict is Verdict.INCONCLUSIVE for e in both)
        return UNDECIDED if undecided and fail_on == "inconclusive" else OK

    def to_json(self) -> str:
        """The canonical text: sorted keys, one indent, so that two of them diff well."""
        plain: dict[str, Any] = {
            "format": FORMAT,
            "tool": "dpaudit",
            "complete": self.complete,
            "alpha_spent": self.alpha_spent,
            "audits": [entry.to_dict() for entry in self.entries],
        }
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
            entries = tuple(Entry.from_dict(item) for item in plain["audits"])
            accuracy = tuple(AccuracyEntry.from_dict(item) for item in plain.get("accuracy", []))
            return cls(entries=entries, complete=bool(plain["complete"]), accuracy=accuracy)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidArgument(f"{origin} is damaged: {type(error).__name__}: {error}.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def read_document(path: Path) -> Document:
    """Read a document from a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{str(path)!r} cannot be read: {error}.") from None
    return Document.from_json(text, origin=str(path))


def sorted_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Entries by name, whatever order they finished in."""
    return tuple(sorted(entries, key=lambda entry: entry.result.name))
