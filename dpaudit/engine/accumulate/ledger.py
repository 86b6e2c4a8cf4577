"""The file in which evidence is kept: JSON lines, each with a digest of all lines of its audit up to itself.

A line is appended in one piece and reaches the disk before the run goes on, so that of a run that is killed at any moment at most
the last line is torn. A torn line is ignored. A line that was changed, removed or inserted breaks the chain of digests, and
the file is refused. A whole file that is replaced by an older one is noticed where the file beside it, ``.NAME.head``, was not
replaced along with it; and each result names its run and the end of the chain, so that two reports show it, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpaudit._util.files import check_writable, write_whole
from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument

try:
    import fcntl
except ImportError:  # on Windows two runs at once are only noticed when one of them reads
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
START_AFRESH = "Move the file away to start afresh; what it has shown then no longer counts."


class Ledger:
    """The lines of one audit in a file that may hold several audits."""

    def __init__(self, path: Path, audit: str) -> None:
        self.path, self.audit = path, audit
        self.lines: list[dict[str, Any]] = []
        self._chains = [""]  # before the first line, and after each
        self._size = 0  # bytes of the file that were read
        check_writable(path)
        with self._locked():
            self._read()
            self._check_head()

    @property
    def head(self) -> str:
        """The digest of all lines so far, short enough to print."""
        return self._chains[-1][:12]

    def append(self, kind: str, **content: Any) -> None:
        """Append a line, and return when it is on the disk."""
        line = {"audit": self.audit, "line": len(self.lines) + 1, "kind": kind, **content}
        with self._locked() as file:
            before = len(self.lines)
            self._read()
            if len(self.lines) > before:
                raise InvalidArgument(f"accumulate={str(self.path)!r}: another run of {self.audit!r} is writing to it.")
            chain = _digest(self._chains[-1], line)
            text = json.dumps({**line, "chain": chain}, allow_nan=False) + "\n"
            torn = self._size > 0 and os.pread(file, 1, self._size - 1) != b"\n"
            content_bytes = (b"\n" if torn else b"") + text.encode()
            if os.write(file, content_bytes) < len(content_bytes):
                raise InvalidArgument(f"accumulate={str(self.path)!r} cannot be written: the disk is full.")
            os.fsync(file)
        self._size += len(content_bytes)
        self.lines.append(line)
        self._chains.append(chain)

    def end(self) -> None:
        """Note beside the file where it ends."""
        with self._locked():
            write_whole(self._head_file, json.dumps({**self._heads(), self.audit: [len(self.lines), self._chains[-1]]}))

    @property
    def _head_file(self) -> Path:
        return self.path.with_name(f".{self.path.name}.head")

    def _heads(self) -> dict[str, Any]:
        try:
            heads = json.loads(self._head_file.read_bytes())
        except (OSError, ValueError):
            return {}
        return heads if isinstance(heads, dict) else {}

    def _check_head(self) -> None:
        known = self._heads().get(self.audit)
        if known is None:
            return
        count, chain = known
        if count > len(self.lines) or self._chains[count] != chain:
            raise InvalidArgument(
                f"accumulate={str(self.path)!r} is not the file that the last run of {self.audit!r} left: that one had "
                f"{count} lines of this audit, this one has {len(self.lines)}. Put it back. {START_AFRESH} Then remove "
                f"{str(self._head_file)!r}, too."
            )

    def _read(self) -> None:
        """Read what is new in the file."""
        with self.path.open("rb") as file:
            file.seek(self._size)
            text = file.read()
        for raw in text.split(b"\n"):
            line = _parsed(raw)
            if line is None or line.get("audit") != self.audit:
                continue
            chain = line.pop("chain", None)
            if line.get("line") != len(self.lines) + 1 or chain != _digest(self._chains[-1], line):
                raise InvalidArgument(
                    f"accumulate={str(self.path)!r}: the line {shorten(raw.decode(errors='replace'))} does not follow from the "
                    f"{len(self.lines)} lines of {self.audit!r} before it, so the file was changed. {START_AFRESH}"
                )
            if line["kind"] == "began" and line.get("format") != FORMAT:
                raise InvalidArgument(f"accumulate={str(self.path)!r} is from another version. {START_AFRESH}")
            self.lines.append(line)
            self._chains.append(chain)
        self._size += len(text)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise InvalidArgument(
                f"accumulate={str(self.path)!r} cannot be written: {error.strerror or error}."
            ) from None
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _parsed(raw: bytes) -> dict[str, Any] | None:
    """Return a line; None if it is torn."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _digest(before: str, line: Mapping[str, Any]) -> str:
    text = json.dumps(line, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(f"{before}\n{text}".encode(), digest_size=16).hexdigest()
