"""The canonical document: what a run did, as plain data. Every report is a function of it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.claims import Verdict
from dpaudit.engine.result import Result
from dpaudit.errors import InvalidArgument

FORMAT = 1
OK, FAILED, USAGE, UNDECIDED = 0, 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One audit of a run: its result, what was expected of it, and where it is defined."""

    result: Result
    expect: Verdict | None = None
    path: str = ""
    line: int = 1

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
            "expect": expect,
            "met": self.met,
            "result": self.result.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Entry:
        """Read back what :meth:`to_dict` wrote."""
        expect = None if plain["expect"] is None else Verdict(plain["expect"])
        return cls(result=Result.from_dict(plain["result"]), expect=expect, path=plain["path"], line=plain["line"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All audits of a run."""

    entries: tuple[Entry, ...]
    complete: bool = True  # False: interrupted; these are the results so far

    @property
    def alpha_spent(self) -> float:
        """Sum of the false-alarm probabilities of the audits in it."""
        return sum(entry.result.alpha for entry in self.entries)

    def exit_code(self, fail_on: str = "inconclusive") -> int:
        """0 nothing found and every expectation met; 1 violation or unmet expectation; 3 inconclusive. 1 beats 3."""
        if fail_on == "never":
            return OK
        if any(not entry.met for entry in self.entries):
            return FAILED
        undecided = any(e.expect is None and e.result.verdict is Verdict.INCONCLUSIVE for e in self.entries)
        return UNDECIDED if undecided and fail_on == "inconclusive" else OK

    def to_json(self) -> str:
        """The canonical text: sorted keys, one indent, so that two of them diff well."""
        plain = {
            "format": FORMAT,
            "tool": "dpaudit",
            "complete": self.complete,
            "alpha_spent": self.alpha_spent,
            "audits": [entry.to_dict() for entry in self.entries],
        }
        return json.dumps(plain, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, *, origin: str = "the file") -> Document:
        """Read a document; anything else is an error that says what is wrong with it."""
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise InvalidArgument(f"{origin} is not JSON: {error}.") from None
        if not isinstance(plain, dict) or plain.get("tool") != "dpaudit":
            raise InvalidArgument(f"{origin} was not written by dpaudit.")
        if plain.get("format") != FORMAT:
            raise InvalidArgument(f"{origin} has format {plain.get('format')!r}; this version reads format {FORMAT}.")
        try:
            entries = tuple(Entry.from_dict(item) for item in plain["audits"])
            return cls(entries=entries, complete=bool(plain["complete"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{origin} is damaged: {type(error).__name__}: {error}.") from None


def read_document(path: Path) -> Document:
    """Read a document from a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{str(path)!r} cannot be read: {error}.") from None
    return Document.from_json(text, origin=str(path))


def write_whole(path: Path, text: str) -> None:
    """Write a file so that at any moment there is the old one or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def sorted_entries(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Entries by name, whatever order they finished in."""
    return tuple(sorted(entries, key=lambda entry: entry.result.name))
