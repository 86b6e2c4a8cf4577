"""Audit the libraries of ``_entries`` in environments of their own, and write SCOREBOARD.md and the witnesses.

    python -m audits.libraries._scoreboard [LIBRARY | LIBRARY:FUNCTION ...]   # none: all; "table": only write the table

Environments and results are in ~/.cache/dpaudit/scoreboard, or $SCOREBOARD_HOME. A result is used again while version, function,
claim, pairs and options are the same; remove the folder to start afresh. Rows that are not asked for and have no result here
stay as they are in the table.
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
from audits.libraries._accountants import account_page, summary
from audits.libraries._entries import LIBRARIES, NOT_RUN
from audits.libraries._kinds import Account, Call, Library
from audits.libraries._witnesses import FOLDER, witness_name, witness_page
from dpaudit import Verdict, neighbours
from dpaudit._util.files import write_whole
from dpaudit.result.model import Result, claim_to_dict

HERE = Path(__file__).resolve().parent
SAMPLES, SECONDS = 20_000, 120.0
COLUMNS = 11
LONGEST = 240  # characters of a reason
UNREPORTED = "not yet reported"
TITLE = """# Scoreboard: audits of current releases

Each row is a call of a library, in an environment of its own with the newest release that pip installs, audited by
`make scoreboard` on given pairs of data sets at alpha 1e-6. A violation is a leak of that call beyond its claim. Nothing found
is no proof: the column "caught from" says from which epsilon on a leak in an event of probability 0.1 would have been caught.
Verdicts are about values; rows with "(bits)" are about the channel `representation`.

Rows with the claim "accountant" are compositions of noisy sums on which a privacy accountant was asked for epsilon
([how](../../docs/accountants.md)): a violation is a report below the truth. "Shown" is then the true epsilon with the report
beside it, where it understates most, and "samples" the number of compositions.

| library | version | function | claim | relation | verdict | shown | samples | seconds | caught from | more |
|---|---|---|---|---|---|---:|---:|---:|---:|---|
"""


def main(names: list[str]) -> int:
    """Audit what is asked for and has no result yet, and write the table and the witnesses."""
    home = home_of("SCOREBOARD_HOME", "scoreboard")
    table = HERE / "SCOREBOARD.md"
    before = _rows_of(table.read_text(encoding="utf-8")) if table.is_file() else {}
    pages: dict[str, str] = {}
    rows = [row for library in LIBRARIES for row in _rows(library, home, names, before, pages)]
    text = TITLE + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    text += "\nNot run:\n\n" + "".join(f"- {name}: {why}\n" for name, why in NOT_RUN.items())
    write_whole(table, text)
    for name, page in pages.items():
        write_whole(HERE / FOLDER / name, page)
    print(f"wrote {table}")
    return 0


def _rows_of(table: str) -> dict[tuple[str, ...], list[list[str]]]:
    """Return the rows of a table by library, function, claim and relation, in their order."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for line in table.splitlines():
        cells = line.strip("| ").split(" | ") if line.startswith("| ") else []
        cells += [""] * (COLUMNS - len(cells))  # the last one may be empty
        if len(cells) == COLUMNS and cells[2].startswith("`"):
            rows.setdefault(_identity(cells), []).append(cells)
    return rows


def _identity(row: list[str]) -> tuple[str, ...]:
    return row[0], *row[2:5]


def _rows(
    library: Library,
    home: Path,
    names: list[str],
    before: dict[tuple[str, ...], list[list[str]]],
    pages: dict[str, str],
) -> Iterator[list[str]]:
    """Yield the rows of a library; what has no result and is not asked for is as it was before, or left out."""
    entries = [*library.calls, *library.accounts]
    asked = [each for each in entries if {library.name, f"{library.name}:{each.function}"} & {*names} or not names]
    python, version, failed = None, "", ""
    if asked or is_made(home / "environments", library.name, library.requires, library.alone):
        try:
            python = environment(home / "environments", library.name, library.requires, library.alone)
            version = _version(python, library.name)
        except subprocess.CalledProcessError as error:
            failed = f"pip: exit code {error.returncode}"
    for entry in entries:
        # Calls of one function with one claim on other pairs have rows in the order of the entries.
        earlier = before.get(_identity(_begin(library, version, entry)), [])
        old = earlier.pop(0) if earlier else None
        plain = _result(library, entry, python, version, home, run=entry in asked) if python is not None else None
        if plain is not None and isinstance(entry, Account):
            yield _account_row(library, version, entry, plain, pages)
        elif plain is not None:
            yield _row(library, version, entry, plain, pages)
        elif failed and entry in asked:
            yield [*_begin(library, version, entry), "not installed", "", "", "", "", failed]
        elif old is not None:
            yield old


def _result(
    library: Library, entry: Call | Account, python: Path, version: str, home: Path, *, run: bool
) -> dict[str, Any] | None:
    """Return the result of an entry that is stored, or found now; None if there is none and none is asked for."""
    key = [version, library.path.read_text(encoding="utf-8"), _described(entry)]
    digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()
    path = home / "results" / f"{library.name}-{entry.function}-{digest}.json"
    if path.is_file():
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return stored
    if not run:
        return None
    print(f"{library.name} {version}: {entry.function}", flush=True)
    plain = summary(library, entry, python) if isinstance(entry, Account) else _audited(library, entry, python)
    if "error" not in plain:  # an error may be gone next time
        write_whole(path, json.dumps(plain))
    return plain


def _version(python: Path, name: str) -> str:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _described(entry: Call | Account) -> list[Any]:
    options = sorted(entry.options.items())
    if isinstance(entry, Account):
        return ["accountant", entry.function, entry.relation.value, options]
    return [entry.function, claim_to_dict(entry.claim), repr(entry.pairs), entry.channel, options]


def _audited(library: Library, call: Call, python: Path) -> dict[str, Any]:
    """Return the result of one audit, or what it raised."""
    mechanism = dpaudit.isolated(python, f"{library.path}:{call.function}", calls=call.form)  # type: ignore[arg-type]
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


def _begin(library: Library, version: str, entry: Call | Account) -> list[str]:
    """Return the first cells of a row, which say what is audited."""
    if isinstance(entry, Account):
        return [library.name, version, f"`{entry.function}`", "accountant", entry.relation.value]
    relation = entry.claim.relation.value if entry.claim.relation else ""
    claim = ", ".join(f"{name} {value:.4g}" for name, value in claim_to_dict(entry.claim)["parameters"].items())
    function = entry.function + (" (bits)" if entry.channel == "representation" else "")
    return [library.name, version, f"`{function}`", claim, relation]


def _row(library: Library, version: str, call: Call, plain: dict[str, Any], pages: dict[str, str]) -> list[str]:
    """Return the row of a result, and add the page of its witness."""
    begin = _begin(library, version, call)
    if "error" in plain:
        return [*begin, "not audited", "", "", "", "", _first_sentence(plain["error"])]
    result = Result.from_dict(plain)
    more, caught = "", ""  # a violation stopped early: nothing to say on what would have been caught
    if result.verdict is Verdict.VIOLATION:
        more = call.known or UNREPORTED
        if call.publish:
            more += _linked(library, call, witness_page(library, version, call, result), pages)
    else:
        finite = math.isfinite(result.detectable_epsilon)
        caught = f"{result.detectable_epsilon:.3g}" if finite else "nothing"
    if result.verdict is Verdict.INCONCLUSIVE:
        more = _undecided(result)
    return [
        *begin, result.verdict.value, f"{result.epsilon_lower:.3g}", f"{result.samples:,}", f"{result.seconds:.1f}", caught, more,
    ]  # fmt: skip


def _account_row(
    library: Library, version: str, account: Account, stored: dict[str, Any], pages: dict[str, str]
) -> list[str]:
    """Return the row of an accountant, and add the page of what is wrong with it."""
    shown, more = "", stored["refusal"] or ", ".join(stored["flaws"])
    if stored["truth"] is not None:
        shown = f"{stored['truth']:.3g} (reports {stored['reported']:.3g})"
    if stored["verdict"] == Verdict.VIOLATION.value:
        more = f"{more}; {account.known or UNREPORTED}"
        if account.publish:
            more += _linked(library, account, account_page(library, version, account, stored), pages)
    cost = f"{stored['checked']:,}", f"{stored['seconds']:.1f}"
    return [*_begin(library, version, account), stored["verdict"], shown, *cost, "", more]


def _linked(library: Library, entry: Call | Account, page: str, pages: dict[str, str]) -> str:
    """Keep the page of a witness, and return a link to it."""
    name = witness_name(library, entry, pages)
    pages[name] = page
    return f"; [witness]({FOLDER}/{name})"


def _undecided(result: Result) -> str:
    """Return why a result is inconclusive, and how many samples would decide where that is known."""
    reasons = [message for message in result.messages if message.startswith("Too few")] or [*result.messages, ""]
    needed = result.samples_needed
    enough = "" if needed is None or needed <= result.samples else f" About {needed:,} samples would decide."
    return _first_sentence(reasons[0]) + enough


def _first_sentence(text: str) -> str:
    words = " ".join(text.split()).replace("|", "\\|")
    first = words.partition(". ")[0].removesuffix(".") + "."
    return first if len(first) <= LONGEST else f"{first[: LONGEST - 3]}..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
