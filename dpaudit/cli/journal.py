"""A journal of each run: JSON lines in ``.dpaudit/``, so that a killed run can be resumed.

Every line is a complete record, written with one system call as soon as it exists, so if the process is killed at most
the last line is damaged. ``--resume`` reuses a finished audit from any of the journals, but only if its key is the
same: a digest of the mechanism, the sources of the project, the package versions, the claim, the neighbours, the
options and the seed. An audit that had not ended starts again from its seed, which for a reproducible mechanism gives
the same result, and otherwise a valid one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import secrets
import stat
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.engine.accumulate.identity import describe
from dpaudit.result.model import claim_to_dict, versions

if TYPE_CHECKING:
    from dpaudit.engine.audit import Audit
    from dpaudit.utility.definition import AccuracyAudit

FOLDER = ".dpaudit"
FORMAT = 1
KEPT_JOURNALS = 10  # journals of earlier runs that are left for reading
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
SAME_RESULT = ("executor", "progress", "on_event")  # options that change how an audit runs, not what it finds


@dataclass
class Journal:
    """The file that a run writes as it goes on, and the records that an earlier run left."""

    path: Path | None  # None: no journal is written
    earlier: Mapping[str, Any] = field(default_factory=dict)  # entries as plain data, by key

    @classmethod
    def start(cls, folder: Path, *, resume: bool, say: Callable[[str], None]) -> Journal:
        """Begin a journal in ``folder``; with ``resume``, offer the results of all runs there that did not end."""
        if folder.is_symlink():  # the target of the link is not part of this project
            say(f"No journal is kept ({folder} is a symbolic link); this run cannot be resumed.")
            return cls(None)
        earlier: dict[str, Any] = {}
        if resume:
            earlier = _resumable(folder, say)
        try:
            return cls(_new_file(folder), earlier)
        except OSError as error:
            say(f"No journal is kept ({error.strerror or error}: {folder}); this run cannot be resumed.")
            return cls(None, earlier)

    def began(self, key: str, name: str) -> None:
        """An audit begins."""
        self._write({"kind": "began", "key": key, "name": name})

    def round(self, key: str, samples: int, log_wealth: float) -> None:
        """A round of an audit was settled."""
        self._write({"kind": "round", "key": key, "samples": int(samples), "log_wealth": round(float(log_wealth), 6)})

    def finished(self, key: str, entry: Mapping[str, Any]) -> None:
        """An audit ended with a result of its own: one that was interrupted did not."""
        self._write({"kind": "result", "key": key, "entry": entry}, durable=True)

    def end(self) -> None:
        """Record the end of the run: there is nothing left to resume."""
        self._write({"kind": "end"}, durable=True)

    def _write(self, record: Mapping[str, Any], *, durable: bool = False) -> None:
        if self.path is None:
            return
        line = json.dumps(record, sort_keys=True, allow_nan=False) + "\n"
        # Opened anew for every line: other processes append too, and the folder may be removed during the run.
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | NO_LINKS)
            try:
                content = line.encode()
                if os.write(handle, content) < len(content):  # the disk is full
                    self.path = None
                if durable:
                    os.fsync(handle)
            finally:
                os.close(handle)
        except OSError:
            self.path = None


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A journal that an earlier run left."""

    path: Path
    ended: bool
    results: Mapping[str, Any]  # entries as plain data, by key


def _earlier(folder: Path, say: Callable[[str], None]) -> list[_Earlier]:
    """Return the journals of a folder, the newest first; other files with such a name are left out."""
    found = []
    for path in sorted(folder.glob("run-*.jsonl"), reverse=True):
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            text = path.read_bytes()
        except OSError as error:
            say(f"{path} cannot be read ({error.strerror or error}), and is ignored.")
            continue
        records = list(read_lines(text, functools.partial(_about, path, say)))
        if not records or records[0].get("kind") != "run" or records[0].get("format") != FORMAT:
            say(f"{path} is not a journal of this version, and is ignored.")
            continue
        results = {
            record["key"]: record.get("entry")
            for record in records
            if record.get("kind") == "result" and isinstance(record.get("key"), str)
        }
        found.append(_Earlier(path, any(record.get("kind") == "end" for record in records), results))
    return found


def _about(path: Path, say: Callable[[str], None], message: str) -> None:
    say(f"{path}: {message}")


def _resumable(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the results of runs that did not end, except those that a later, complete run has too."""
    journals = _earlier(folder, say)
    if not journals:
        say(f"Nothing to resume: there is no journal in {folder}.")
    results: dict[str, Any] = {}
    delivered: set[str] = set()
    for journal in journals:
        if journal.ended:
            delivered |= journal.results.keys()
        else:
            new = {key: entry for key, entry in journal.results.items() if key not in delivered}
            results = {**new, **results}
    if journals and not results and journals[0].ended:
        say("The last run was completed, so there is nothing to resume, and everything is run.")
    return results


def _new_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # this includes symbolic links
        _create(folder / ".gitignore", b"*\n")
    _remove_superseded(folder)
    header = {"kind": "run", "format": FORMAT, "versions": versions()}
    path = folder / f"run-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{os.getpid()}.jsonl"
    _create(path, (json.dumps(header, sort_keys=True, allow_nan=False) + "\n").encode())
    return path


def _create(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def _remove_superseded(folder: Path) -> None:
    """Remove all but the newest journals, except those of interrupted runs whose results no later journal has."""
    if len(list(folder.glob("run-*.jsonl"))) < KEPT_JOURNALS:
        return
    newer: set[str] = set()
    for number, journal in enumerate(_earlier(folder, lambda _: None)):
        if number >= KEPT_JOURNALS - 1 and (journal.ended or journal.results.keys() <= newer):
            journal.path.unlink(missing_ok=True)
        newer |= journal.results.keys()


def read_lines(text: bytes, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Return the records of a journal; a line that is not complete JSON is left out, with a message."""
    *whole, rest = text.split(b"\n")
    for number, line in enumerate(whole, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield record
        else:
            say(f"line {number} is damaged and ignored.")
    if rest:
        say("the last line is incomplete, as after a kill, and ignored.")


def audit_key(audit: Audit | AccuracyAudit, options: Mapping[str, Any], sources: str) -> str:
    """The digest under which a result is kept. ``sources`` is that of the code, from :func:`sources_digest`."""
    chosen = {**audit.options, **options}
    try:
        parts = {
            "sources": sources,
            "versions": versions(),
            "audit": _definition(audit),
            "options": {name: describe(value) for name, value in chosen.items() if name not in SAME_RESULT},
        }
        text = json.dumps(parts, sort_keys=True, default=str)
    except Exception:  # the user's __repr__ raised: return a key that matches no other
        text = secrets.token_hex(16)
    return _digest(text.encode())


def _definition(audit: Audit | AccuracyAudit) -> dict[str, Any]:
    """An audit of privacy or of accuracy as plain data, without its options."""
    fields = {item.name: getattr(audit, item.name) for item in dataclasses.fields(audit) if item.name != "options"}
    return {
        name: claim_to_dict(value) if name == "claim" and hasattr(value, "parameter_name") else describe(value)
        for name, value in fields.items()
    }


def sources_digest(root: Path, modules: Iterable[types.ModuleType | None] | None = None) -> str:
    """Digest of the code that results depend on: dpaudit itself, and every module loaded from the project at ``root``."""
    package = Path(__file__).resolve().parents[1]
    files = set(package.rglob("*.py"))
    top = root.resolve()
    for module in list(sys.modules.values()) if modules is None else modules:
        name = getattr(module, "__file__", None)
        path = Path(name).resolve() if isinstance(name, str) else None
        if path is None or path.suffix != ".py" or path.is_relative_to(package) or not path.is_relative_to(top):
            continue
        if not any(part == "site-packages" or part.startswith(".") for part in path.relative_to(top).parts):
            files.add(path)
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(files):
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
