"""The pinned digests, and what is said where a case gives others."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).with_name("results.json")
PARTS = ("numbers", "texts", "code")


def pinned() -> dict[str, dict[str, str]]:
    """Return the digests and the summary line of each case."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def difference(name: str, old: dict[str, str] | None, new: dict[str, str] | None) -> str:
    """Return which digests of a case changed, with the old and the new summary line; empty where none did."""
    if old is None or new is None:
        return f"{name}: {'removed' if new is None else 'new'}\n  {(old or new or {}).get('summary')}"
    changed = [part for part in PARTS if old[part] != new[part]]
    if not changed:
        return ""
    return f"{name}: {', '.join(changed)} changed\n  old: {old['summary']}\n  new: {new['summary']}"
