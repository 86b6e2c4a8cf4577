"""When and from which commit a run was made, for the head of its reports."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Date (ISO 8601, UTC) and commit of a run; empty where they are not known."""

    date: str = ""
    commit: str = ""


UNKNOWN = Origin()


def origin_of(root: Path) -> Origin:
    """Return the date of now, and the commit of the repository around ``root``, marked if files differ from it."""
    try:
        # Without tags, because a tag may have any name.
        command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10, check=False)
        commit = done.stdout.strip() if done.returncode == 0 else ""
    except (OSError, subprocess.SubprocessError, ValueError):  # git is not installed, or the folder was removed
        commit = ""
    return Origin(date=datetime.now(UTC).isoformat(timespec="seconds"), commit=commit)
