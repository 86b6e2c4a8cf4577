"""The commands ``dpaudit risk`` and ``dpaudit anonymise``, through the command line."""

import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from dpaudit.anonymity import Sources, Table, assess, html_report, lecture_notes, picture
from dpaudit.cli.main import main

RELEASE = "id,age,sex,ill\n1,20-29,f,flu\n2,20-29,f,flu\n3,30-39,f,flu\n4,30-39,f,ulcer\n5,30-39,m,cold\n"
PEOPLE = "id,age,sex\n1,21,f\n2,25,f\n3,33,f\n4,35,f\n5,38,m\n6,39,m\n7,50,m\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "release.csv").write_text(RELEASE)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "raw.csv").write_text("\n".join(PEOPLE.splitlines()[:6]) + "\n")
    notes = lecture_notes()
    notes.original.to_csv(tmp_path / "notes.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments):
    stdout = io.StringIO()
    return main([str(argument) for argument in arguments], stdout=stdout), stdout.getvalue()


def risk(*arguments):
    return call("risk", "release.csv", "-q", "age,sex", "-s", "ill", *arguments)


def test_everything_in_one_document(files):
    arguments = ["--id", "id", "--population", "people.csv", "--population-size", 7, "--external", "people.csv"]
    code, text = risk(*arguments, "--original", "raw.csv", "--earlier", "release.csv", "--json")
    document = json.loads(text, parse_constant=pytest.fail)
    assert code == 0
    assert [entry["attacker"] for entry in document["attackers"]] == ["prosecutor", "journalist", "marketer"]
    assert [entry["maximum"] for entry in document["attackers"]] == [1.0, 0.5, 0.5]
    assert document["attackers"][0]["average"] == pytest.approx(3 / 5)
    assert document["uniqueness"]["unique"] == 1
    assert document["k_map"] == 2
    assert document["presence"] == {"lower": 0.0, "upper": 1.0, "absent": 1}
    assert document["population_uniqueness"]["population"] == 7
    linkage = document["linkage"]
    assert (linkage["people"], linkage["linked"], linkage["singled_out"]) == (7, 6, 2)
    assert (linkage["present"], linkage["right"], linkage["missed"]) == (5, 1, 0)
    assert linkage["disclosures"] == [{"attribute": "ill", "disclosed": 4, "right": 3, "baseline": 3 / 5}]
    assert document["inference"][0]["disclosed"] == 3
    assert document["releases"][0]["disclosed"] == 3
    # Ages span 4 of 17, 5 of 17 and (39 is not in the original) 0; nothing else is generalised.
    spans = [4, 4, 5, 5, 5]
    assert document["cost"]["granularity_by_column"]["age"] == pytest.approx(sum(spans) / 5 / 17)


@pytest.mark.parametrize(
    ("arguments", "required", "code"),
    [
        ([], "max-risk=1", 0),
        ([], "max-risk=1/2", 1),
        ([], "average-risk=0.6,unique=0.2", 0),
        ([], "unique=0.1", 1),
        ([], "suppressed=0", 0),
        (["--population", "people.csv"], "journalist-risk=0.5,k-map=2,presence=1", 0),
        (["--population", "people.csv"], "k-map=3", 1),
        (["--population", "people.csv"], "marketer-risk=0.4", 1),
        (["--external", "people.csv"], "singled-out=2", 0),
        (["--external", "people.csv", "--id", "id"], "singled-out=1", 0),
        (["--external", "people.csv"], "linked-disclosed=0", 1),
        (["--earlier", "release.csv", "--id", "id"], "disclosed=3", 0),
        (["--earlier", "release.csv", "--id", "id"], "m-invariance=1", 1),
        (["--original", "raw.csv"], "loss=0.5", 0),
    ],
)
def test_requirements_decide_the_exit_code(files, arguments, required, code):
    found, text = risk(*arguments, "--require", required)
    assert found == code
    assert ("NOT everything required" in text) == bool(code)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--require", "max-risk"], "must look like name=number"),
        (["--require", "maxrisk=1"], "Did you mean 'max-risk'"),
        (["--require", "k-map=2"], "this needs --population"),
        (["--require", "max-risk=0.1,max-risk=0.2"], "twice"),
        (["--require", "max-risk=-1"], "must be at least 0"),
        (["--earlier", "release.csv"], "--earlier needs --id"),
        (["--everyone"], "--everyone says something about --external"),
        (["--external", "people.csv", "--everyone"], "so they are not all in it"),
        (["--population", "absent.csv"], "No such file"),
        (["--population", "raw.csv", "--id", "ill"], "must name every record"),
        (["--threshold", "2"], "threshold=2.0"),
        (["--points", "2"], "--points needs --id"),
        (["--html", "absent/x/../../release.csv/x.html"], "cannot be written"),
        (["--population-size", "2"], "population=2"),
        (["--hierarchies", "people.csv"], "cannot be read as JSON"),
    ],
)
def test_input_errors_exit_with_2(files, arguments, message, capsys):
    code, text = risk(*arguments)
    assert (code, text) == (2, "")
    assert message in capsys.readouterr().err


def test_unicity_of_traces(files):
    (files / "traces.csv").write_text("who,place,hour\na,1,8\na,2,9\nb,1,8\nb,3,9\nc,1,8\n")
    arguments = ["risk", "traces.csv", "-q", "place,hour", "--id", "who", "--points"]
    assert call(*arguments, 1) == (0, "1 point identifies 33.33 % of 3 people\n")
    assert call(*arguments, 2, "--require", "unique=0.5")[0] == 1
    code, text = call(*arguments, 1, "--draws", 500, "--json")
    found = json.loads(text)
    assert code == 0
    assert found["lower"] <= 1 / 3 <= found["upper"]


def test_report_and_picture_are_written_and_reproducible(files):
    options = ["--population", "people.csv", "--require", "max-risk=0.09"]
    for name in ("one", "two"):
        assert risk(*options, "--html", f"{name}.html", "--plot", f"{name}.svg")[0] == 1
        assert (files / "one.html").read_bytes() == (files / f"{name}.html").read_bytes()
    drawn = "".join(ET.parse(files / "one.svg").getroot().itertext())
    for text in ("prosecutor", "journalist", "marketer", "threshold 0.0909", "20 %"):
        assert text in drawn
    page = (files / "one.html").read_text()
    for text in ("Can a person's record be found?", "Not everything required is met", "above the threshold", "<svg"):
        assert text in page.replace("&#x27;", "'")


def test_hostile_text_reaches_neither_terminal_nor_page(files, capsys):
    (files / "odd.csv").write_text('q,s\n"\x1b[31m\n::error::<script>",a\n', newline="")
    code, text = call("risk", "odd.csv", "-q", "q", "-s", "s", "--html", "odd.html", "--plot", "odd.svg")
    page = (files / "odd.html").read_text()
    assert code == 0
    assert "\\x1b[31m\\n::error::<script>" in text
    assert "\x1b" not in text + page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert call("risk", "odd.csv", "-q", "q", "--population", "odd.csv", "--external", "release.csv")[0] == 2
    (files / "other.csv").write_text("q,s\n1,a\n")
    assert call("risk", "odd.csv", "-q", "q", "--population", "other.csv")[0] == 2  # no person fits the class
    error = capsys.readouterr().err
    assert "\\x1b[31m\\n::error::" in error
    assert "\x1b" not in error


def test_a_document_of_a_table_without_anything_else():
    table = Table.from_frame({"q": [1, 1, 2]}, quasi_identifiers="q")
    document = assess(table, sources=Sources())
    assert "No external table was given" in html_report(document, str)
    assert "No sensitive column was named" in html_report(document, str)
    assert "100 %" not in picture(document)


def test_anonymise_and_measure_again(files):
    code, text = call("anonymise", "notes.csv", "-q", "plz,points", "-s", "system", "--k", 3, "-o", "out.csv")
    assert code == 0
    assert text.startswith("9 records in 2 classes of at least 4; information loss 0.705 by granularity")
    checks = ["-q", "plz,points", "-s", "system", "--original", "notes.csv", "--require", "k=3"]
    assert call("anonymity", "out.csv", *checks)[0] == 0
    assert (files / "out.csv").read_text().splitlines()[1] == "2608-3270,35-89,iOS"


def test_full_domain_with_withheld_records(files, capsys):
    rows = "id,plz,job\n1,3270,nurse\n2,3271,doctor\n3,3270,nurse\n4,9000,pilot\n"
    (files / "raw.csv").write_text(rows)
    (files / "h.json").write_text(
        '{"plz": {"prefixes": 4}, "job": {"taxonomy": {"health": ["nurse", "doctor"], "pilot": null}}}'
    )
    options = ["--k", 2, "--method", "full-domain", "--hierarchies", "h.json", "--suppression", 0.25, "--keep", "id"]
    code, text = call("anonymise", "raw.csv", "-q", "plz,job", *options)
    assert (code, text) == (0, "plz,job,id\n327*,health,1\n327*,health,2\n327*,health,3\n")
    assert "1 withheld" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "10"], "k=10 is more than"),
        (["--k", "2", "--suppression", "0.1"], "belongs to --method full-domain"),
        (["--k", "2", "--t", "0.1", "--method", "full-domain"], "belongs to --method mondrian"),
        (["--k", "2", "--hierarchies", "h.json"], "must be one of 'prefixes'"),
        (["--k", "2", "--hierarchies", "list.json"], "an entry for each column"),
        (["--k", "2", "--hierarchies", "odd.json"], "it must be an object with one of"),
        (["--k", "2", "--hierarchies", "type.json"], "does not fit 'intervals'"),
        (["--k", "2", "--l", "9"], "l=9.0 cannot be met"),
    ],
)
def test_errors_of_anonymise(files, arguments, message, capsys):
    for name, text in {
        "h": '{"plz": {"prefix": 4}}',
        "list": "[]",
        "odd": '{"plz": 4}',
        "type": '{"plz": {"intervals": 4}}',
    }.items():
        (files / f"{name}.json").write_text(text)
    code, text = call("anonymise", "notes.csv", "-q", "plz,points", "-s", "system", *arguments)
    assert (code, text) == (2, "")
    assert message in capsys.readouterr().err


def test_numbers_dates_and_text_of_files(files, capsys):
    """Numbers and dates become ranges, digits with a leading zero and columns named by --text become sets."""
    frame = pd.DataFrame(
        {"age": [20, 30], "born": ["2001-02-03", "1991-05-06"], "plz": ["0100", "0200"], "code": [7, 8]}
    )
    frame.to_csv(files / "types.csv", index=False)
    code, text = call("anonymise", "types.csv", "-q", "age,born,plz,code", "--text", "code", "--k", 2)
    assert code == 0
    cells = pd.read_csv(io.StringIO(text), dtype=str).iloc[0].tolist()
    assert cells == ["20-30", "[1991-05-06, 2001-02-03]", "{0100, 0200}", "{7, 8}"]


def test_options_are_declared_without_pandas():
    code = (
        "import argparse, sys\n"
        "from dpaudit.anonymity.commands import anonymise, risk\n"
        "anonymise.add_arguments(argparse.ArgumentParser()); risk.add_arguments(argparse.ArgumentParser())\n"
        "sys.exit(sum(m in sys.modules for m in ('pandas', 'scipy', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_attack_on_a_large_release_is_fast_enough_to_run(files):
    """10,000 people against 2,000 classes: the expected number of right links is the number of classes."""
    rng = np.random.default_rng(0)
    raw = pd.DataFrame({"a": rng.integers(0, 100, 10_000), "b": rng.integers(0, 50, 10_000)})
    shown = pd.DataFrame({"a": [f"{v // 2 * 2}-{v // 2 * 2 + 1}" for v in raw["a"]], "b": raw["b"].astype(str)})
    table = Table.from_frame(shown, quasi_identifiers=["a", "b"])
    document = assess(table, sources=Sources(external=raw, truth=range(10_000)))
    assert document["linkage"]["expected"] == pytest.approx(len(table.classes))
