"""The command ``dpaudit accuracy``: its output, its files, and its exit codes."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys

import pytest

from dpaudit._util.terminal.console import Console
from dpaudit.accuracy import command
from dpaudit.accuracy.theorems import THEOREMS, names


def call(*arguments: str) -> tuple[int, str]:
    parser = argparse.ArgumentParser(prog="dpaudit accuracy")
    command.add_arguments(parser)
    stdout = io.StringIO()
    code = command.run(parser.parse_args(list(arguments)), Console(stdout), Console(sys.stderr))
    return code, stdout.getvalue()


def test_every_parameter_has_an_option():
    assert {name for theorem in THEOREMS for name in theorem.parameters} == set(command.PARAMETERS)


def test_list():
    code, text = call("list")
    assert code == 0
    assert all(name in text for name in names())
    code, text = call("list", "--json")
    assert [entry["name"] for entry in json.loads(text)] == list(names())


def test_show_prints_bound_truth_and_status():
    code, text = call("show", "histogram-uniform", "--n", "1000", "--steps", "1", "--epsilon", "100")
    assert code == 0
    assert "semi-repaired" in text
    assert "0.94847264" in text  # docs/theory.md R10
    assert "truth 0: VIOLATED" in text
    assert "(vacuous)" in text


def test_show_json_and_hypotheses():
    code, text = call("show", "mean-error-closed", "--n", "1000", "--epsilon", "0.1", "--json", "--no-truth")
    assert code == 0
    printed = json.loads(text)["forms"][0]
    assert printed["unmet"]
    assert printed["truth"] is None
    _, text = call("show", "mean-error-closed", "--n", "1000", "--epsilon", "0.1", "--no-truth")
    assert "hypothesis not met: alpha <= n/10" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "histogram-uniform", "--beta", "0"], "beta=0.0 must lie strictly between 0 and 1"),
        (["show", "histogram-uniform", "--i", "0"], "i=0 must be from 1 to 9"),
        (["show", "mean-error", "--n", "1"], "divide by log n"),
        (["show", "mean-error-closed", "--n", "2"], "probability only from n = 3 on"),
        (["show", "histogram-uniform", "--steps", "217.147"], "steps=217.147 must be a whole number"),
        (["show", "histogram-uniform", "--gamma", "-0.1"], "gamma=-0.1 must be zero or positive"),
        (["show", "histogram-uniform", "--rho", "1"], "is not a parameter of histogram-uniform"),
        (["show", "histogram"], "is not known"),
        (["verify", "histogram-uniform", "--beta", "0"], "beta is the failure probability"),
        (["verify", "histogram-uniform", "--gamma=-0.1:0.1"], "gamma=-0.1"),
        (["verify", "histogram-uniform", "--n", "a:b"], "n='a'"),
        (["verify", "--n", "10"], "parameters need a THEOREM"),
        (["show", "above-threshold", "--offsets", "a"], "offsets='a' must be numbers"),
        (["compare", "--n", "1"], "log n"),
        (["compare", "--n", "10", "--law", "cauchy"], "law='cauchy'"),
        (["compare", "--n", "10", "--mechanism", "histograms"], "Did you mean 'histogram'"),
        (["show", "naive-median", "--plot", "x.png"], "must end in .svg"),
    ],
)
def test_bad_parameters_name_the_condition(arguments, words, capsys):
    code, text = call(*arguments)
    assert code == 2
    assert text == ""
    assert words in capsys.readouterr().err


def test_verify_table_and_exit_code():
    code, text = call("verify", "threshold-in-histogram", "--steps", "10", "--beta", "0.1", "--epsilon", "1")
    assert code == 0  # the printed form is expected to be false
    assert "VIOLATED" in text
    assert "truth 0.774687" in text
    code, text = call("verify", "threshold-in-histogram", "--variant", "corrected-36", "--points", "5", "--json")
    assert code == 0
    (entry,) = json.loads(text)
    assert entry["status"] == "holds"
    assert entry["counterexample"] is None


def test_verify_fails_when_a_form_expected_to_hold_is_violated(monkeypatch):
    from dataclasses import replace

    from dpaudit.accuracy import theorems
    from dpaudit.accuracy.bound import Status

    broken = theorems.find_theorem("threshold-in-histogram")
    forms = tuple(replace(form, expected=Status.HOLDS) for form in broken.forms)
    monkeypatch.setattr(theorems, "THEOREMS", (replace(broken, forms=forms),))
    code, text = call("verify", "--points", "5")
    assert code == 1
    assert "UNEXPECTED: threshold-in-histogram, printed is violated." in text


def test_verify_region_and_plot(tmp_path):
    path = tmp_path / "verify.svg"
    code, text = call(
        "verify", "mean-error", "--variant", "corrected-36", "--n", "30,60", "--i", "5", "--epsilon", "20:200", "--points", "8",
        "--plot", str(path),
    )  # fmt: skip
    assert code == 0
    assert "corrected-36" in text
    assert path.read_text().count("<svg") == 1
    assert list(tmp_path.iterdir()) == [path]  # no temporary file is left


def test_compare_table_json_and_plot(tmp_path):
    path = tmp_path / "compare.svg"
    arguments = [
        "compare",
        "--n",
        "50,100",
        "--epsilon",
        "10",
        "--law",
        "uniform,normal",
        "--mechanism",
        "histogram,naive-laplace",
    ]
    code, text = call(*arguments, "--plot", str(path))
    assert code == 0
    assert len(text.splitlines()) == 9
    assert "sampling error" in path.read_text()
    code, text = call(*arguments, "--json")
    rows = json.loads(text)
    assert {row["contender"] for row in rows} == {"histogram", "naive-laplace"}
    assert all(row["error"]["low"] <= row["bound"] for row in rows)


def test_show_plots_all_forms(tmp_path):
    path = tmp_path / "forms.svg"
    code, _ = call("show", "histogram-uniform", "--no-truth", "--over", "n=50:5000", "--plot", str(path))
    assert code == 0
    assert "corrected-72" in path.read_text()
    code, _ = call("show", "above-threshold", "--no-truth", "--plot", str(path))
    assert code == 0


def test_help_imports_nothing_heavy():
    script = (
        "import argparse, sys; from dpaudit.accuracy import command; p = argparse.ArgumentParser(); command.add_arguments(p);"
        "print([m for m in ('scipy', 'hypothesis', 'matplotlib', 'pandas', 'statsmodels') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_progress_is_silent_without_a_terminal(capsys):
    call("verify", "laplace-tail", "--points", "3")
    assert capsys.readouterr().err == ""


def test_show_skips_a_form_that_is_undefined_at_the_point():
    code, text = call("show", "histogram-uniform", "--steps", "1", "--beta", "0.7")
    assert code == 0
    assert "corrected-72" in text
    assert text.count("undefined here: beta/queries=0.7 leaves no alpha > 0") == 2


def test_show_takes_any_quantile_and_any_share_of_epsilon():
    code, text = call(
        "show", "mean-error-monotone", "--quantile", "1/4", "--releases", "1", "--epsilon", "1.1111111111"
    )
    assert code == 0
    assert "quantile=0.25, releases=1" in text
    _, decile = call("show", "mean-error-monotone", "--i", "5", "--releases", "9")
    _, level = call("show", "mean-error-monotone", "--quantile", "0.5", "--releases", "1", "--epsilon", str(10 / 9))
    assert [line for line in decile.splitlines() if "truth" in line] == [x for x in level.splitlines() if "truth" in x]


def test_verify_says_that_an_expected_counterexample_was_not_found():
    # Theorem 2.2.3.1 repaired by a reader is false; at this one point it happens to hold.
    point = ["--n", "100", "--steps", "50", "--gamma", "0.1", "--beta", "0.3", "--epsilon", "400"]
    code, text = call("verify", "histogram-uniform", "--variant", "semi-repaired", *point)
    assert code == 0
    assert "a counterexample is expected, and none was found at these 9 points" in text
    code, text = call("verify", "threshold-in-histogram", "--variant", "printed", "--steps", "10", "--epsilon", "1")
    assert "none was found" not in text
