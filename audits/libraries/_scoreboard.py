"""Audit the libraries of ``_entries`` in environments of their own, and write SCOREBOARD.md; what was done before is kept.

    python -m audits.libraries._scoreboard [LIBRARY...]      # none: all of them; "table": only write the table

Environments and results are in ~/.cache/dpaudit/scoreboard, or $SCOREBOARD_HOME. A result is used again while version, function,
claim, pairs and options are the same; remove the folder to start afresh.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dpaudit
from audits._environments import environment, home_of, is_made
from audits.libraries._entries import LIBRARIES, NOT_RUN, Call, Library
from dpaudit import Verdict, neighbours
from dpaudit._util.files import write_whole
from dpaudit.result.model import Result, claim_to_dict

HERE = Path(__file__).resolve().parent
SAMPLES, SECONDS = 20_000, 120.0
TITLE = """# Scoreboard: audits of current releases

Each row is a call of a library, in an environment of its own with the newest release that pip installs, audited by
`make scoreboard` on given pairs of data sets at alpha 1e-6. A violation is a leak of that call beyond its claim. Nothing found
is no proof: the column "caught from" says from which epsilon on a leak in an event of probability 0.1 would have been caught.
Verdicts are about values; rows with "(bits)" are about the channel `representation`.

| library | version | function | claim | relation | verdict | shown | samples | seconds | caught from | more |
|---|---|---|---|---|---|---:|---:|---:|---:|---|
"""


def main(names: list[str]) -> int:
    """Audit what has no result yet, and write the table."""
    home = home_of("SCOREBOARD_HOME", "scoreboard")
    rows: list[list[str]] = []
    for library in LIBRARIES:
        rows.extend(_rows(library, home, run=not names or library.name in names))
    text = TITLE + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    text += "\nNot run:\n\n" + "".join(f"- {name}: {why}\n" for name, why in NOT_RUN.items())
    write_whole(HERE / "SCOREBOARD.md", text)
    print(f"wrote {HERE / 'SCOREBOARD.md'}")
    return 0


def _rows(library: Library, home: Path, *, run: bool) -> Iterator[list[str]]:
    """Yield the rows of a library; what has no result yet is run, or left out."""
    if not run and not is_made(home / "environments", library.name, library.requires, library.alone):
        return
    try:
        python = environment(home / "environments", library.name, library.requires, library.alone)
    except subprocess.CalledProcessError as error:
        yield [library.name, "", "", "", "", "not installed", "", "", "", "", f"pip: exit code {error.returncode}"]
        return
    version = _version(python, library.name)
    for call in library.calls:
        file = HERE / ("" if library.file.startswith("..") else "_functions") / library.file
        key = [version, file.read_text(encoding="utf-8"), _described(call)]
        digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()
        path = home / "results" / f"{library.name}-{call.function}-{digest}.json"
        if path.is_file():
            plain = json.loads(path.read_text(encoding="utf-8"))
        elif not run:
            continue
        else:
            print(f"{library.name} {version}: {call.function}", flush=True)
            plain = _audited(library, call, python, file)
            if "error" not in plain:  # an error may be gone next time
                write_whole(path, json.dumps(plain))
        yield _row(library, version, call, plain)


def _version(python: Path, name: str) -> str:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _described(call: Call) -> list[Any]:
    return [call.function, claim_to_dict(call.claim), repr(call.pairs), call.channel, sorted(call.options.items())]


def _audited(library: Library, call: Call, python: Path, file: Path) -> dict[str, Any]:
    """Return the result of one audit, or what it raised."""
    mechanism = dpaudit.isolated(python, f"{file.resolve()}:{call.function}", calls="data")
    options = {"samples": SAMPLES, "seconds": SECONDS, "detect_factor": 3.0, "shrink": False, **call.options}
    try:
        result = dpaudit.audit(
            mechanism,
            call.claim,
            neighbours.fixed(call.pairs, relation=call.claim.relation),
            name=f"{library.name} {call.function}",
            channel=call.channel,  # type: ignore[arg-type]
            progress=False,
            **options,
        )
    except dpaudit.errors.DPAuditError as error:
        return {"error": str(error)}
    return result.to_dict()


def _row(library: Library, version: str, call: Call, plain: dict[str, Any]) -> list[str]:
    relation = call.claim.relation.value if call.claim.relation else ""
    claim = ", ".join(f"{name} {value:.4g}" for name, value in claim_to_dict(call.claim)["parameters"].items())
    function = call.function + (" (bits)" if call.channel == "representation" else "")
    begin = [library.name, version, f"`{function}`", claim, relation]
    if "error" in plain:
        return [*begin, "not audited", "", "", "", "", _short(plain["error"])]
    result = Result.from_dict(plain)
    more = call.known
    if result.verdict is Verdict.VIOLATION and not more:
        more = "not yet reported"
    if result.verdict is Verdict.INCONCLUSIVE:
        more = _short(result.messages[0] if result.messages else "")
    caught = f"{result.detectable_epsilon:.3g}" if math.isfinite(result.detectable_epsilon) else "nothing"
    if result.verdict is Verdict.VIOLATION:
        caught = ""  # it stopped early
    return [
        *begin, result.verdict.value, f"{result.epsilon_lower:.3g}", f"{result.samples:,}", f"{result.seconds:.1f}", caught, more,
    ]  # fmt: skip


def _short(text: str) -> str:
    first = " ".join(text.split()).replace("|", "\\|")
    return first if len(first) <= 160 else f"{first[:157]}..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
