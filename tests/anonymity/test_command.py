"""The command ``dpaudit anonymity``: tables of measures, requirements, exit codes, files and pictures."""

import argparse
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from dpaudit._util.terminal.console import Console
from dpaudit.anonymity import (
    EarthMovers,
    Ordered,
    Suppression,
    Table,
    lecture_notes,
    n_t_closeness,
    recursive_level,
    t_closeness,
    uniform_prior,
)
from dpaudit.anonymity.commands.anonymity import add_arguments, run


@pytest.fixture
def files(tmp_path):
    notes = lecture_notes()
    notes.released.to_csv(tmp_path / "table.csv", index=False)
    notes.original.to_csv(tmp_path / "raw.csv", index=False, sep=";")
    return tmp_path


def call(*arguments):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    stdout = io.StringIO()
    args = parser.parse_args([str(argument) for argument in arguments])
    return run(args, Console(stdout), Console(sys.stderr)), stdout.getvalue()


def measure(files, *arguments):
    return call(files / "table.csv", "-q", "plz,points", "-s", "system", *arguments)


def test_table_of_measures(files):
    code, text = measure(files)
    assert code == 0
    lines = text.splitlines()
    assert lines[0].endswith("table.csv: 9 records, 3 classes (quasi-identifiers plz, points; sensitive system)")
    t = next(line for line in lines if line.startswith("t-closeness (tv) of system"))
    assert "5/9 (0.555556)" in t
    assert "class 2 (plz=2600-3199, points=35-45), records 4, 5, 6" in t
    worst = lines[lines.index("worst classes by t-closeness (tv) of system") + 1 :]
    assert [line.split()[2] for line in worst[:3]] == ["2", "1", "3"]
    assert "Windows 0.667, Linux 0.333 [3 records]" in worst[0]
    for name in ("k-anonymity", "alpha", "distinct l-", "entropy l-", "recursive (c, 2)", "beta-", "delta-"):
        assert any(line.startswith(name) for line in lines)


@pytest.mark.parametrize(
    ("required", "code"),
    [
        ("k=3", 0),
        ("k=4", 1),
        ("k=3,l=2", 0),
        ("l=3", 1),
        ("t=0.56", 0),
        ("t=0.55", 1),
        ("t=5/9", 0),
        ("t=4/9", 1),
        ("alpha=0.67", 0),
        ("alpha=0.66", 1),
        ("c=2", 1),
        ("c=2.01", 0),
        ("beta=2", 0),
        ("beta=1.99", 1),
        ("delta=1000", 1),
        ("entropy-l=1.8", 0),
        ("entropy-l=1.9", 1),
        ("k=3, l=2 , t=0.2", 1),
    ],
)
def test_requirements_decide_the_exit_code(files, required, code):
    found, text = measure(files, "--require", required)
    assert found == code
    assert ("NOT met" in text) == bool(code)
    assert ("NOT everything required" in text) == bool(code)


def test_closeness_requirements(files):
    assert measure(files, "--n", 8, "--require", "epsilon=0.5")[0] == 0
    assert measure(files, "--n", 8, "--partition", "--require", "partition-epsilon=0.5")[0] == 0
    assert measure(files, "--n", 9, "--partition", "--require", "partition-epsilon=0.5")[0] == 1


def test_original_is_compared(files):
    code, text = measure(files, "--original", files / "raw.csv")
    assert code == 1
    assert "1 of 27 published cells is wrong" in text
    assert "record 3: plz 3400 is not in 3200-3299; the records of its class span 3270-3400" in text
    raw = (files / "raw.csv").read_text().replace("3400", "3299")
    (files / "raw.csv").write_text(raw)
    assert measure(files, "--original", files / "raw.csv")[0] == 0


def test_json_is_complete_and_valid(files):
    code, text = measure(files, "--json", "--require", "k=3,delta=5", "--n", 5, "--original", files / "raw.csv")
    report = json.loads(text, parse_constant=pytest.fail)  # no NaN, no Infinity
    assert code == 1
    assert report["met"] is False
    assert (report["records"], report["classes"]) == (9, 3)
    by_symbol = {entry["symbol"]: entry for entry in report["measures"]}
    assert set(by_symbol) == {"k", "alpha", "l", "entropy-l", "c", "t", "beta", "delta", "epsilon"}
    assert by_symbol["k"]["met"] is True
    assert by_symbol["delta"]["met"] is False
    assert by_symbol["delta"]["value"] == "inf"
    assert (by_symbol["t"]["exact"], by_symbol["t"]["met"]) == ("5/9", None)
    assert by_symbol["t"]["deciding_class"]["key"] == {"plz": "2600-3199", "points": "35-45"}
    assert by_symbol["t"]["records"] == [4, 5, 6]
    assert by_symbol["epsilon"]["exact"] == "1/5"
    assert sum(by_symbol["epsilon"]["reference"].values()) >= 5
    assert [entry["class"] for entry in report["worst_classes"]["classes"]] == [2, 1, 3]
    assert report["release"]["first"] == [
        {"record": 3, "column": "plz", "original": "3400", "released": "3200-3299", "span": "3270-3400"}
    ]


@pytest.mark.parametrize("distance", ["tv", "l1", "l2", "max", "kl", "kl-reverse", "js", "hellinger", "chi2"])
def test_every_distance(files, distance):
    code, text = measure(files, "--distance", distance)
    assert code == 0
    assert f"t-closeness ({distance}) of system" in text


def test_earth_movers(files):
    order = "iOS,Android,MacOS,Linux,Windows"
    assert "emd (ordered, ranks)" in measure(files, "--distance", "emd", "--order", order)[1]
    assert "emd (equal)" in measure(files, "--distance", "emd", "--ground", "equal")[1]
    tree = {"mobile": ["iOS", "Android"], "desktop": {"unix": ["MacOS", "Linux"], "Windows": None}}
    (files / "tree.json").write_text(json.dumps(tree))
    assert "emd (taxonomy)" in measure(files, "--distance", "emd", "--taxonomy", files / "tree.json")[1]
    numeric = files / "numbers.csv"
    numeric.write_text("q,s\n1,9\n1,10\n2,11\n2,9\n")
    code, text = call(numeric, "-q", "q", "-s", "s", "--distance", "emd", "--ground", "values", "--require", "t=0.25")
    assert code == 0
    assert "emd (ordered, values)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--require", "k"], "must look like name=number"),
        (["--require", "t=1/0"], "'t=1/0' must look like"),
        (["--require", "t=nan"], "'t=nan' must look like"),
        (["--require", "k=many"], "'k=many' must look like"),
        (["--require", "kk=3"], "Did you mean 'k'"),
        (["--require", "k=3,k=4"], "twice"),
        (["--require", "epsilon=0.5"], "needs --n"),
        (["--distance", "emd"], "not a number"),
        (["--order", "a,b"], "--order belongs to --distance emd"),
        (["--distance", "emd", "--ground", "taxonomy"], "needs --taxonomy"),
        (["--distance", "emd", "--taxonomy", "absent.json"], "cannot be read as JSON"),
        (["--distance", "emd", "--order", "iOS,Android"], "is not in order"),
        (["--n", "10"], "n=10"),
        (["--worst", "-1"], "--worst=-1"),
        (["--require", "k=0"], "--require k=0 must be at least 1: otherwise every table meets it"),
        (["--require", "l=1/2"], "--require l=1/2 must be at least 1"),
        (["--require", "t=-0.1"], "--require t=-0.1 must be at least 0"),
        (["--require", "alpha=2"], "must be above 0 and at most 1"),
        (["--require", "delta=0"], "--require delta=0 must be above 0"),
        (["--original", "absent.csv"], "No such file"),
        (["--encoding", "klingon"], "klingon"),
        (["-s", "plz"], "both a quasi-identifier and sensitive"),
        (["-s", "sistem"], "Did you mean 'system'"),
        (["--level", "0"], "level=0"),
        (["--plot", "absent/dir/x.svg"], "cannot be written"),
    ],
)
def test_input_errors_exit_with_2(files, arguments, message, capsys):
    code, text = measure(files, *arguments)
    assert (code, text) == (2, "")
    error = capsys.readouterr().err
    assert error.startswith("dpaudit: ")
    assert message in error


def test_everything_that_python_has(files):
    (files / "h.json").write_text(
        '{"plz": {"intervals": [[2600, 3200, 3300, 3700, 3900]]}, "points": {"intervals": [[25, 35, 46, 75, 91]], "x": 1}}'
    )
    assert measure(files, "--n", 3, "--natural", "--hierarchies", files / "h.json")[0] == 2  # two kinds in one entry
    (files / "h.json").write_text('{"plz": {"suppression": true}, "points": {"suppression": true}}')
    options = ["--n", 4, "--natural", "--hierarchies", files / "h.json", "--c", 3, "--enhanced", "--cost", "--json"]
    report = json.loads(measure(files, *options)[1], parse_constant=pytest.fail)
    table = lecture_notes().table
    found = {entry["symbol"]: entry for entry in report["measures"]}
    natural = n_t_closeness(table, 4, hierarchies={"plz": Suppression(), "points": Suppression()}, exact=True)
    assert found["natural-t"]["exact"] == str(natural.value)
    assert found["recursive-l"]["value"] == recursive_level(table, c=3).value
    assert found["enhanced-beta"]["value"] == 2  # below ln 9
    assert report["cost"] == {
        "discernibility": 27,
        "average_class_size": 3.0,
        "classification_metric": {"system": 5 / 9},
    }
    assert "discernibility 27, records per class 3" in measure(files, "--cost")[1]
    assert measure(files, "--enhanced", "--require", "enhanced-beta=1.9")[0] == 1
    assert measure(files, "--c", 3, "--require", "recursive-l=2")[0] == 0


def test_priors(files):
    uniform = t_closeness(
        lecture_notes().table, reference=uniform_prior(lecture_notes().released["system"]), exact=True
    )
    assert json.loads(measure(files, "--prior", "uniform", "--json")[1])["measures"][5]["exact"] == str(uniform.value)
    weights = dict.fromkeys(lecture_notes().released["system"].unique(), 1)
    (files / "prior.json").write_text(json.dumps(weights))
    assert json.loads(measure(files, "--prior", files / "prior.json", "--json")[1])["measures"][5]["exact"] == str(
        uniform.value
    )
    (files / "prior.json").write_text("[1]")
    assert measure(files, "--prior", files / "prior.json")[0] == 2


def test_withheld_records_are_found_by_their_id(files):
    (files / "raw.csv").write_text("id,q,s\n1,20,a\n2,25,b\n3,70,c\n")
    (files / "out.csv").write_text("id,q,s\n2,20-29,b\n1,20-29,a\n")
    code, text = call(files / "out.csv", "-q", "q", "-s", "s", "--original", files / "raw.csv", "--id", "id")
    assert code == 0
    assert "none of 4 published cells is wrong, 1 record withheld" in text


def test_others_known(tmp_path):
    """Each column is 2-diverse in the class, but an observer who knows one value knows the other."""
    path = tmp_path / "both.csv"
    path.write_text("q,a,b\n1,x,p\n1,y,r\n")
    assert call(path, "-q", "q", "-s", "a,b", "--require", "l=2")[0] == 0
    assert call(path, "-q", "q", "-s", "a,b", "--require", "l=2", "--others-known")[0] == 1


def test_ordered_and_equal_by_name(files):
    numbers = files / "numbers.csv"
    numbers.write_text("q,s\n1,3\n1,4\n2,5\n2,9\n")
    table = Table.from_file(numbers, quasi_identifiers="q", sensitive="s")
    for name in ("ordered", "equal"):
        code, text = call(numbers, "-q", "q", "-s", "s", "--distance", name)
        assert code == 0
        assert str(t_closeness(table, distance=name, exact=True).value) in text
    assert t_closeness(table, distance="ordered").value == t_closeness(table, distance=EarthMovers(Ordered())).value


def test_without_sensitive_attributes(files, capsys):
    assert call(files / "table.csv", "-q", "plz", "--require", "k=3")[0] == 0
    assert call(files / "table.csv", "-q", "plz", "--require", "t=0.2")[0] == 2
    assert "needs --sensitive" in capsys.readouterr().err
    assert call(files / "table.csv", "-q", "plz", "--plot", files / "x.svg")[0] == 2


def test_several_attributes_and_quoted_names(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    path.write_text('"age, years",a,b\n1,x,p\n1,y,p\n')
    code, text = call(path, "-q", '"age, years"', "-s", "a", "-s", "b", "--require", "l=2")
    assert code == 1
    assert "distinct l-diversity of a" in text
    assert "distinct l-diversity of b" in text
    assert call(path, "-q", '"age, years"', "-s", "a,b", "--distance", "emd", "--order", "x,y")[0] == 2
    assert "one sensitive attribute" in capsys.readouterr().err


def test_missing_cells(tmp_path, capsys):
    path = tmp_path / "missing.csv"
    path.write_text("q,s\n1,a\n,b\nNA,c\n")
    assert call(path, "-q", "q", "-s", "s")[0] == 2
    assert "missing='value'" in capsys.readouterr().err
    assert "3 classes" in call(path, "-q", "q", "-s", "s", "--missing", "value")[1]
    marked = call(path, "-q", "q", "-s", "s", "--missing", "suppressed", "--missing-mark", "NA")[1]
    assert "2 classes" in marked


def test_plot_is_drawn_and_reproducible(files):
    pytest.importorskip("matplotlib")
    for name in ("one.svg", "two.svg"):
        assert measure(files, "--plot", files / name)[0] == 0
    one = (files / "one.svg").read_bytes()
    assert one == (files / "two.svg").read_bytes()
    drawn = "".join(ET.fromstring(one).itertext())
    for text in ("class 2: 5/9", "Windows", "plz=2600-3199", "t-closeness (tv) of system"):
        assert text in drawn
    assert not list(files.glob(".*"))  # no half-written file stays behind


def test_plot_of_odd_texts_and_many_values(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "odd.csv"
    lines = ["q,s", *(f"$x^2$ \u6771\u4eac,{value}" for value in ["$\\frac", "\u6771", *range(60)]), "other,0"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert call(path, "-q", "q", "-s", "s", "--plot", tmp_path / "odd.svg")[0] == 0
    drawn = "".join(ET.parse(tmp_path / "odd.svg").getroot().itertext())
    assert "other values" in drawn
    assert "$x^2$" in drawn


def test_a_plot_without_matplotlib_names_the_extra_to_install(files, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert measure(files, "--plot", files / "x.svg")[0] == 2
    assert "dpaudit[report]" in capsys.readouterr().err
    assert not (files / "x.svg").exists()


def test_options_are_declared_without_pandas():
    code = (
        "import argparse, sys, dpaudit.anonymity.commands.anonymity as c; c.add_arguments(argparse.ArgumentParser());"
        "sys.exit(sum(m in sys.modules for m in ('pandas', 'scipy.stats', 'scipy.optimize', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_everything_exported_exists():
    from dpaudit import anonymity

    for name in anonymity.__all__:
        assert getattr(anonymity, name).__doc__ or name in {"SUPPRESSED"}
    assert {"mondrian", "lecture_notes"} <= set(dir(anonymity))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = anonymity.nonsense
