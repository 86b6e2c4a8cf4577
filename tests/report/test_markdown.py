"""Markdown: a table and stories in which no name is markup, and the job summary of GitHub."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import InvalidArgument
from dpaudit.report import github_summary, markdown
from dpaudit.report.document import Document, Entry
from dpaudit.report.markdown import block, code
from tests.report.report_examples import HOSTILE, MARKUP, WITNESS, document, result, violation


def span(text: str) -> str:
    """A reader of code spans, by CommonMark section 6.1: from a run of backticks to the next run of that length."""
    opening = re.match("`+", text)
    assert opening is not None
    runs = [run for run in re.finditer("`+", text) if len(run[0]) == len(opening[0])]
    assert runs[1].end() == len(text), "the span ends before the text does"
    inside = text[opening.end() : runs[1].start()].replace("\n", " ")
    padded = inside.startswith(" ") and inside.endswith(" ") and inside.strip(" ")
    return inside[1:-1] if padded else inside


@given(st.text("`a <", min_size=1))
def test_a_code_span_holds_its_text(text: str) -> None:
    if text.strip(" "):
        assert span(code(text)) == text


@given(st.text("`a\n~", max_size=30))
def test_a_block_holds_its_text(text: str) -> None:
    first, *inside, last = block(text, "python")
    assert "\n".join(inside) == text
    assert last == first.removesuffix("python")
    assert not any(re.fullmatch(f" {{0,3}}{last}`*\\s*", line) for line in inside)


def outside_code(text: str) -> str:
    """Return the text without fenced blocks, code spans and escaped characters, read from left to right."""
    text = re.sub(r"(?ms)^(`{3,})python\n.*?^\1$", "", text)
    left, at = [], 0
    while at < len(text):
        run = re.compile("`+").match(text, at)
        if text[at] == "\\":
            at += 2
        elif run is None:
            left.append(text[at])
            at += 1
        else:
            closing = next(
                (end for end in re.compile("`+").finditer(text, run.end()) if len(end[0]) == len(run[0])), run
            )
            at = closing.end()
    return "".join(left)


def test_no_name_is_markup() -> None:
    text = markdown.render(document())
    prose = outside_code(text)
    assert set(re.findall("<[^>]*>", prose)) == {"<details>", "<summary>", "</summary>", "</details>"}
    assert "[link](" not in prose
    assert HOSTILE in text
    assert MARKUP.replace("|", "\\|") in text  # in the table, where a bar ends a cell


def test_every_row_of_the_table_has_its_cells() -> None:
    rows = [
        line for line in markdown.render(document()).splitlines() if line.startswith("| ") and "samples" not in line
    ]
    overview = rows[: len(document().entries)]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in overview] == [7] * len(document().entries)


def test_audits_that_need_attention_come_first_with_their_text() -> None:
    text = markdown.render(document())
    rows = [line for line in text.splitlines() if "NO_VIOLATION_FOUND" in line and line.startswith("|")]
    assert rows[0].startswith("| **NO_VIOLATION_FOUND** | `no longer found`")
    assert rows[1].startswith("| NO_VIOLATION_FOUND | `count`")
    assert "## VIOLATION: `half noise`" in text
    assert "## INCONCLUSIVE: `too few`" in text
    assert "`count`\n" not in text
    for part in ("data = []", "neighbour = [0]", "`output < 0.22`", "0.6489 to 0.7253", 'print("1 < 2 & 3")'):
        assert part in text
    assert "Interrupted" in markdown.render(document(interrupted=True))
    assert "Interrupted" not in text


def test_large_data_are_cut() -> None:
    large = replace(WITNESS, data="[" + "1, " * 100_000 + "]")
    assert len(markdown.render(Document(entries=(Entry(result=violation(witness=large)),)))) < 10_000


def test_the_job_summary_is_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert github_summary(document()) is None
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    assert github_summary(document()) == path
    assert path.read_text(encoding="utf-8") == "before\n" + markdown.render(document())
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(InvalidArgument, match="GITHUB_STEP_SUMMARY="):
        github_summary(document())


@pytest.mark.parametrize(
    ("before", "stories", "table"), [(0, True, True), (999_000, False, True), (999_700, False, False)]
)
def test_the_job_summary_keeps_to_its_limit(tmp_path: Path, before: int, stories: bool, table: bool) -> None:
    path = tmp_path / "summary.md"
    path.write_text("x" * before)
    made = Document(entries=(Entry(result=violation()), Entry(result=result())))
    markdown.github_summary(made, {"GITHUB_STEP_SUMMARY": str(path)})
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) <= markdown.LARGEST_SUMMARY
    assert ("Log-ratio" in text) == stories
    assert ("| `count` |" in text) == table
    assert "2 audits: 1 VIOLATION" in text
