"""All rows of the ledger, in the order of the documents, and their table."""

from __future__ import annotations

from dpaudit._util.validation import did_you_mean
from dpaudit.errors import InvalidArgument
from dpaudit.statements.rows import (
    closeness,
    course,
    deciles,
    definitions,
    histogram,
    inverse,
    notes,
    response,
    slides,
    survey,
    threshold,
)
from dpaudit.statements.statement import Statement

STATEMENTS: tuple[Statement, ...] = tuple(
    statement
    for module in (
        definitions,
        threshold,
        histogram,
        deciles,
        inverse,
        course,
        closeness,
        response,
        notes,
        survey,
        slides,
    )
    for statement in module.CHAPTER.statements
)


def find_statement(row: str | int) -> Statement:
    """Return the row of that key or number (from 1).

    >>> find_statement("theorem-2.1.0.1").place
    'theorem 2.1.0.1; slides'
    """
    keys = [statement.key for statement in STATEMENTS]
    if str(row).isdecimal() and 1 <= int(row) <= len(STATEMENTS):
        return STATEMENTS[int(row) - 1]
    if row in keys:
        return STATEMENTS[keys.index(str(row))]
    raise InvalidArgument(
        f"row={row!r} is neither a number from 1 to {len(STATEMENTS)} nor a key of the ledger.{did_you_mean(row, keys)} "
        "`dpaudit statements` lists them."
    )


def markdown_table() -> str:
    """Return the ledger as a Markdown table."""
    head = [
        "| # | statement | it says | verdict | corrected form | counterexample | shown by |",
        "|--:|---|---|---|---|---|---|",
    ]
    rows = []
    for number, row in enumerate(STATEMENTS, start=1):
        cells = [
            str(number),
            f"{row.source}, {row.place} ({row.kind})",
            row.says,
            f"**{row.standing}**",
            row.corrected or "-",
            row.counterexample or "-",
            f"`{row.command}`",
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*head, *rows]) + "\n"
