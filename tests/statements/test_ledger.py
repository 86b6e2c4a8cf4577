"""The ledger: every row runs, its computed verdict is the one that is listed, and the page shows what the code has."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from pathlib import Path

import pytest

from dpaudit._util.terminal.console import Console
from dpaudit.cli import main as cli
from dpaudit.statements import command
from dpaudit.statements.ledger import STATEMENTS, find_statement, markdown_table
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing

ROOT = Path(__file__).parents[2]


def call(*arguments: str) -> tuple[int, str]:
    parser = argparse.ArgumentParser(prog="dpaudit statements")
    command.add_arguments(parser)
    stdout = io.StringIO()
    return command.run(parser.parse_args(list(arguments)), Console(stdout), Console(sys.stderr)), stdout.getvalue()


@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: row.key)
def test_every_row_is_decided_by_its_computation(row):
    found = row.run()
    assert found.standing is row.standing, found.lines
    assert found.corrections_hold, found.lines
    assert found.lines, "a row shows numbers, or the reason why there are none"
    if row.standing is Standing.NO_CONTENT:
        assert row.corrected or any(line.startswith("Reason: ") for line in found.lines)
    if row.standing in (Standing.FALSE, Standing.VACUOUS):
        assert row.corrected
        assert row.counterexample
    assert all(line.isascii() for line in found.lines)


def test_the_ledger_covers_the_five_documents():
    assert len(STATEMENTS) >= 86
    assert len({row.key for row in STATEMENTS}) == len(STATEMENTS)
    sources = {source for row in STATEMENTS for source in row.source.split("; ")}
    assert sources == {"report", "slides", "course notes", "lecture notes", "notes"}
    assert {row.kind for row in STATEMENTS} == set(Kind)


def test_the_page_is_generated_from_the_ledger():
    page = (ROOT / "docs" / "statements.md").read_text(encoding="utf-8")
    assert markdown_table() in page, "regenerate the table with: dpaudit statements list --markdown"


def test_a_verdict_follows_from_evidence_and_from_nothing_else():
    def standing(*calls):
        evidence = Evidence()
        for name, *arguments in calls:
            getattr(evidence, name)("text", *arguments)
        return evidence.standing

    assert standing(("fact",)) is Standing.NO_CONTENT
    assert standing(("claim", True)) is Standing.HOLDS
    assert standing(("claim", True), ("loose", 1.4)) is Standing.HOLDS
    assert standing(("claim", True), ("loose", 2.0)) is Standing.LOOSE
    assert standing(("vacuous", True), ("loose", 2.0)) is Standing.VACUOUS
    assert standing(("vacuous", True), ("claim", False)) is Standing.FALSE
    assert standing(("corrected", True)) is Standing.NO_CONTENT


def test_a_row_that_contradicts_the_ledger_is_reported(monkeypatch):
    chapter = Chapter("report")
    chapter.row("wrong", "nowhere", Kind.LEMMA, "1 = 2.", Standing.HOLDS)(lambda e: e.claim("1 = 2", 1 == 2))
    monkeypatch.setattr("dpaudit.statements.ledger.STATEMENTS", tuple(chapter.statements))
    code, text = call("show", "wrong")
    assert code == 1
    assert "CONTRADICTS the ledger, which says: holds." in text
    code, text = call("verify")
    assert code == 1
    assert "1 contradict the ledger" in text


def test_list_and_its_filters():
    code, text = call()
    assert code == 0
    assert f"{len(STATEMENTS)} statements: " in text
    assert all(row.key in text for row in STATEMENTS)
    code, text = call("list", "--verdict", "false", "--source", "course notes", "--json")
    assert code == 0
    assert json.loads(text) == []
    code, text = call("list", "--verdict", "false", "--json")
    assert {row["standing"] for row in json.loads(text)} == {"false"}


def test_show_takes_parameters_and_draws(tmp_path):
    picture = tmp_path / "figure.svg"
    code, text = call("show", "figure-1", "--set", "steps=8", "--set", "b=4", "--plot", str(picture))
    assert code == 0
    assert "parameters: a=0.0, b=4.0, steps=8" in text
    assert re.search(r"^\|--------\|", text, flags=re.MULTILINE)
    assert ">3.5</text>" in picture.read_text()
    code, text = call("show", "figure-1", "--set", "a=1", "--set", "b=2", "--json")
    assert code == 0
    assert json.loads(text)["found"] == "false"  # the points of the report do not start at a
    assert call("show", "figure-1", "--set", "step=8")[0] == 2
    assert call("show", "figure-1", "--set", "steps=many")[0] == 2
    assert call("show", "pew", "--plot", str(picture))[0] == 2


def test_rows_are_found_by_key_and_by_number(capsys):
    assert find_statement(1) is STATEMENTS[0]
    assert find_statement(str(len(STATEMENTS))) is STATEMENTS[-1]
    assert call("show", "theorem-2.1.01")[0] == 2
    assert "Did you mean 'theorem-2.1.0.1'" in capsys.readouterr().err


def test_the_command_line_knows_the_ledger(capsys):
    assert cli.main(["statements", "show", "lemma-2.2.4.1"], stdout=io.StringIO()) == 0
