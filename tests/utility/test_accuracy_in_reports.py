"""Accuracy checks of audit files beside privacy audits: -j, the journal, SARIF and HTML."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import dpaudit
from dpaudit import MeanError
from dpaudit.cli import main as cli
from dpaudit.report import html, sarif
from dpaudit.report.document import AccuracyEntry, Document

AUDITS = """
import dpaudit

def noisy(data, size, rng):
    return len(data) + rng.laplace(size=size)

def check(name, error):
    return dpaudit.AccuracyAudit(name=name, mechanism=dpaudit.batched(noisy), truth=len, claim=dpaudit.MeanError(error),
                                 data=[[1, 2]], options={"samples": 20_000})

good, bad = check("good", 1.5), check("bad", 0.5)
private = dpaudit.Audit(name="private", mechanism=dpaudit.batched(noisy), claim=dpaudit.PureDP(1.0), neighbours=[([], [1])],
                        options={"samples": 20_000})
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "audits.py").write_text(AUDITS)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        out = io.StringIO()
        return cli.main(["run", "audits.py", *arguments], stdout=out), out.getvalue()

    return call


def test_side_by_side_gives_the_same_results_as_in_turn(run, tmp_path):
    assert run("--output", "one.json")[0] == 1
    assert run("--output", "two.json", "-j", "2")[0] == 1
    one, two = (json.loads((tmp_path / name).read_text())["accuracy"] for name in ("one.json", "two.json"))
    assert [entry["result"]["name"] for entry in one] == ["bad", "good"]
    assert one == two


def test_an_interrupted_run_is_resumed_without_checking_again(run, tmp_path):
    run("--output", "one.json")
    (journal,) = (tmp_path / ".dpaudit").glob("run-*.jsonl")
    lines = [line for line in journal.read_text().splitlines() if json.loads(line)["kind"] != "end"]
    journal.write_text("\n".join(lines) + "\n")
    code, text = run("--resume", "--output", "two.json")
    assert code == 1
    assert text.count("[from the journal]") == 3
    one, two = (json.loads((tmp_path / name).read_text())["accuracy"] for name in ("one.json", "two.json"))
    assert one == two


def test_sarif_and_html_show_an_accuracy_violation():
    mechanism = dpaudit.batched(lambda data, size, rng: np.mean(data) + rng.laplace(size=size))
    result = dpaudit.check_accuracy(mechanism, np.mean, MeanError(0.1), [[0.2, 0.4]], samples=5000, name="mean <b>")
    document = Document(entries=(), accuracy=(AccuracyEntry(result=result, path="audits/a.py", line=7),))
    ((found,),) = (run["results"] for run in json.loads(sarif.render(document))["runs"])
    assert (found["ruleId"], found["level"]) == ("accuracy-violation", "error")
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert found["properties"]["claim"] == {"kind": "MeanError", "error": 0.1, "largest": "inf"}
    assert found["properties"]["observed"].startswith("mean error ")
    assert "data:  [0.2, 0.4]" in found["message"]["text"]
    page = html.render(document)
    assert "data:  [0.2, 0.4]" in page
    assert "mean &lt;b&gt;" in page


def test_sarif_keeps_checks_of_accuracy_and_audits_of_one_name_apart():
    mechanism = dpaudit.batched(lambda data, size, rng: rng.laplace(size=size))
    result = dpaudit.check_accuracy(mechanism, 0.0, MeanError(0.1), [[0]], samples=5000, name="same")
    entry = AccuracyEntry(result=result, path="a.py")
    both = json.loads(sarif.render(Document(entries=(), accuracy=(entry, entry))))["runs"][0]["results"]
    marks = [one["partialFingerprints"]["dpauditAudit/v1"] for one in both]
    assert len(set(marks)) == 2
