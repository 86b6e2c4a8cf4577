"""``dpaudit run --accumulate``: evidence goes on from run to run, and the report shows it."""

from __future__ import annotations

import json
from typing import Any

AUDITS = """
import dpaudit

def scale():
    return 1.0

def noisy(data, rng):
    return len(data) + rng.laplace(scale=scale())

def audit(name):
    return dpaudit.Audit(name=name, mechanism=dpaudit.per_release(noisy), claim=dpaudit.PureDP(1.0), neighbours=[([], [1])])

first, second = audit("first"), audit("second")
"""


def test_evidence_is_continued_and_shown(project: Any) -> None:
    project.write("audits/counts.py", AUDITS)
    words = ("run", "--samples", "400", "--fail-on", "never", "--accumulate", "evidence.jsonl")
    code, _ = project.run(*words)
    assert code == 0
    code, _ = project.run(*words, "-j", "2", "--html", "report.html", "--output", "results.json")
    assert code == 0
    page = (project.root / "report.html").read_text()
    assert page.count("Evidence over the runs") >= 2
    assert "2 runs share one alpha" in page
    for entry in json.loads((project.root / "results.json").read_text())["audits"]:
        assert [run["run"] for run in entry["result"]["accumulated"]] == [1, 2]
    project.write("audits/counts.py", AUDITS.replace("return 1.0", "return 2.0"))
    project.fresh()
    code, out = project.run(*words)
    assert code == 0
    assert out.count("counts changed. So the evidence starts afresh") == 2
    project.write("audits/counts.py", AUDITS)
    project.fresh()
    code, out = project.run(*words, "--select", "first")
    assert "goes on where it had stopped" in out


def test_a_file_that_was_changed_is_an_error_of_its_audit(project: Any) -> None:
    project.write("audits/counts.py", AUDITS)
    words = ("run", "--samples", "400", "--select", "first", "--accumulate", "evidence.jsonl")
    project.run(*words)
    file = project.root / "evidence.jsonl"
    file.write_text(file.read_text().replace('"nominee": 1', '"nominee": 2'))
    code, out = project.run(*words)
    assert code == 2
    assert "so the file was changed" in out
