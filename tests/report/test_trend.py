"""Reports that say where a run comes from, what failed, and how audits went over several runs."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dpaudit.claims import Verdict
from dpaudit.cli.main import main
from dpaudit.errors import InvalidArgument
from dpaudit.report import html
from dpaudit.report.document import Document, Entry, Failure
from dpaudit.report.origin import Origin, origin_of
from dpaudit.report.trend import trends
from tests.report.report_examples import result, violation


def run(date: str, *entries: Entry) -> Document:
    return Document(entries=entries, origin=Origin(date=date, commit="0123456789ab"))


GOOD = Entry(result=result("a"))
BAD = Entry(result=violation(name="a"))


def test_a_trend_is_of_audits_that_several_runs_have_and_names_the_change() -> None:
    found = trends(
        [run("2026-01-01T00:00:00+00:00", GOOD), run("2026-01-02T00:00:00+00:00", BAD, Entry(result=result("b")))]
    )
    assert [picture.title for picture in found] == ["a"]
    assert found[0].caption == "2 runs, 2026-01-01 to 2026-01-02; NO_VIOLATION_FOUND became VIOLATION in run 2."
    words = {element.text for element in ElementTree.fromstring(found[0].svg).iter("text")}
    assert {"shown", "violation", "claimed", "run", "epsilon"} <= words


def test_the_page_has_date_commit_versions_power_and_failures() -> None:
    failed = Failure(name="broken", reason="ValueError: no")
    page = html.render(replace(run("2026-01-02T03:04:05+00:00", GOOD), failures=(failed,)), [run("", GOOD)])
    assert "2026-01-02 03:04:05 UTC; commit 0123456789ab; " in page
    assert 'data-label="Would have caught"' in page
    assert page.count("broken") == 2  # with its reason, and in the table of all audits
    assert "Over 2 runs" in page
    assert "Over" not in html.render(run("", GOOD)).partition("<body>")[2]


def test_an_origin_is_kept_in_the_file_and_checked() -> None:
    kept = run("2026-01-02", GOOD)
    assert Document.from_json(kept.to_json()) == kept
    assert "origin" not in Document(entries=()).to_json()
    with pytest.raises(InvalidArgument, match="is damaged"):
        Document.from_json(kept.to_json().replace('"0123456789ab"', "5"))


def test_the_origin_is_the_commit_of_the_repository(tmp_path: Path) -> None:
    assert origin_of(tmp_path / "gone").commit == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert origin_of(tmp_path).commit == head[:12]


def test_report_of_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / f"{number}.json" for number in (1, 2)]
    for path, entry in zip(paths, (GOOD, BAD), strict=True):
        path.write_text(run("2026-01-01", entry).to_json())
    page = tmp_path / "page.html"
    assert main(["report", *map(str, paths), "--html", str(page)]) == 1  # as the last run ended
    assert "NO_VIOLATION_FOUND became VIOLATION in run 2" in page.read_text()
    assert GOOD.result.verdict is Verdict.NO_VIOLATION_FOUND
    assert "wrote" in capsys.readouterr().out
