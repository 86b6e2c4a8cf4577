"""The commands: exit codes, streams, selection, baselines, and errors of the user's."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit.cli import main as cli
from dpaudit.result.model import StoppedBy


def test_nothing_found_is_0(project: Any) -> None:
    project.audits(project.audit("good"))
    code, out = project.run("run")
    assert code == 0
    assert out.startswith("NO_VIOLATION_FOUND  good: claimed PureDP(epsilon=1.0)")
    assert "False-alarm probability spent: 1e-09." in out


def test_a_violation_is_1_and_is_explained(project: Any) -> None:
    project.audits(project.audit("bad", "half"), project.audit("weak", samples=200))
    code, out = project.run("run")
    assert code == 1  # violation beats inconclusive
    assert "Counted on fresh outputs" in out
    assert re.search(r"data:      \[1?\]\n  neighbour: \[1?\]\n", out)


@pytest.mark.parametrize(("fail_on", "expected"), [("inconclusive", 3), ("violation", 0), ("never", 0)])
def test_inconclusive_is_3_unless_allowed(project: Any, fail_on: str, expected: int) -> None:
    project.audits(project.audit("weak", samples=200))
    code, out = project.run("run", "--fail-on", fail_on)
    assert code == expected
    assert "Too few samples" in out


def test_fail_on_never_is_0_for_a_violation_too(project: Any) -> None:
    project.audits(project.audit("bad", "half"))
    assert project.run("run", "--fail-on", "never")[0] == 0


def test_expectations(project: Any) -> None:
    project.audits(project.audit("bad", "half", more='expect="VIOLATION"'))
    code, out = project.run("run")
    assert code == 0
    assert "[as expected]" in out
    assert "Counted" not in out  # what was expected needs no story
    project.audits(project.audit("good", more='expect="VIOLATION"'))
    project.fresh()
    code, out = project.run("run")
    assert code == 1
    assert "UNEXPECTED: expected VIOLATION" in out


def test_json_has_stdout_to_itself(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.audits(
        "print('on import')\n",
        "def chatty(data):\n    print('in a call')\n    return 1\n",
        'talk = dpaudit.Audit(name="talk", mechanism=chatty, claim=dpaudit.PureDP(1.0), neighbours=PAIR, '
        'options={"samples": 4000})\n',
    )
    out = io.StringIO()
    assert cli.main(["run", "--json", "--fail-on", "never"], stdout=out) == 0
    document = json.loads(out.getvalue())
    assert [audit["result"]["name"] for audit in document["audits"]] == ["talk"]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "on import" in shown.err
    assert "in a call" in shown.err
    assert "1 audit:" in shown.err


def test_select_and_targets(project: Any) -> None:
    project.audits(project.audit("first"), project.audit("second"))
    project.audits(project.audit("third"), name="elsewhere/more.py")
    assert "1 audit:" in project.run("run", "--select", "sec")[1]
    assert "third" in project.run("run", "elsewhere")[1]
    assert "third" in project.run("run", "elsewhere/more.py:third")[1]
    assert "third" in project.run("run", "elsewhere.more:third")[1]


def test_list(project: Any) -> None:
    project.audits(project.audit("first"), project.audit("second", more='expect="VIOLATION"'))
    assert project.run("list") == (
        0,
        """first  PureDP(epsilon=1.0)  audits/some.py:10
second  PureDP(epsilon=1.0)  audits/some.py:11  (expects VIOLATION)
""",
    )
    plain = json.loads(project.run("list", "--json")[1])
    assert plain[1] == {
        "name": "second",
        "claim": "PureDP(epsilon=1.0)",
        "expect": "VIOLATION",
        "path": "audits/some.py",
        "line": 11,
    }


def test_trouble_in_one_audit_does_not_lose_the_others(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.audits(
        "def wrong(data, size, rng):\n    return [0.0]\n",
        "def forgetful():\n    raise KeyError('neighbours')\n",
        project.audit("broken", "wrong"),
        'odd = dpaudit.Audit(name="odd", mechanism=noisy, claim=dpaudit.PureDP(1.0), neighbours=forgetful)\n',
        project.audit("good"),
    )
    code, out = project.run("run", "--output", "results.json", "--save-baseline", "base.json")
    assert code == 2
    assert "ERROR  broken: The mechanism returned 1 outputs" in out
    assert "ERROR  odd: KeyError: 'neighbours'" in out
    assert "NO_VIOLATION_FOUND  good" in out
    assert "2 of 3 audits could not be run." in out
    assert '    File "' in out  # the traceback of an unexpected error
    assert json.loads(Path("results.json").read_text())["complete"] is False
    assert not Path("base.json").exists()


@pytest.mark.parametrize("how", [(), ("--workers", "2")])  # for -j see test_hostile.py
def test_leaving_the_program_is_an_error_of_that_audit(project: Any, how: tuple[str, ...]) -> None:
    project.audits(
        "import sys\nimport time\n",
        "def leaves(data, size, rng):\n    sys.exit(0)\n",
        "def late(data, size, rng):\n    time.sleep(size * 2e-6)\n"
        "    return sys.exit(0) if size > 300 else noisy(data, size, rng)\n",
        "def nowhere():\n    sys.exit(0)\n",
        project.audit("at_once", "leaves"),
        project.audit("late_one", "late", samples=200_000),
        'odd = dpaudit.Audit(name="odd", mechanism=noisy, claim=dpaudit.PureDP(1.0), neighbours=nowhere)\n',
        project.audit("good"),
    )
    code, out = project.run("run", *how)
    assert code == 2, out
    for name in ("at_once", "late_one"):
        assert f"ERROR  {name}: The mechanism called sys.exit(0), which ends the program" in out
    assert "ERROR  odd: SystemExit: 0" in out
    assert "NO_VIOLATION_FOUND  good" in out


def test_leaving_the_program_under_check(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("mech.py", "import sys\ndef leaves(data):\n    sys.exit(0)\n")
    words = ("--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "substitute")
    assert project.run("check", "mech.py:leaves", *words)[0] == 2
    assert "dpaudit: The mechanism called sys.exit(0)" in capsys.readouterr().err


def test_one_alpha_for_the_run(project: Any) -> None:
    project.audits(*(project.audit(f"audit{k}", samples=2) for k in range(3)))
    assert '"alpha": 1e-05' in project.run("run", "--alpha", "1e-4", "--max-audits", "10", "--json")[1]
    code, _ = project.run("run", "--max-audits", "2")
    assert code == 2
    project.audits(project.audit("greedy", options='"alpha": 0.5'), name="audits/greedy.py")
    assert project.run("run", "audits/greedy.py")[0] == 2
    assert project.run("run", "audits/greedy.py", "--alpha", "0.6")[0] == 0


def test_ctrl_c_keeps_the_results_so_far(
    project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.audits(
        "import signal\n",
        "import signal\ncalls = 0\n",
        "def pressed(data, size, rng):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls == 40:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return noisy(data, size, rng)\n",
        project.audit("a"),
        project.audit("b", "pressed", samples=10_000_000),
        project.audit("c"),
    )
    code, out = project.run("run", "--output", "results.json", "--save-baseline", "base.json")
    assert code == 130
    assert "2 of 3 audits have results, which are kept; `dpaudit run --resume` runs those" in capsys.readouterr().err
    document = json.loads(Path("results.json").read_text())
    assert [audit["result"]["stopped_by"] for audit in document["audits"]] == ["samples", StoppedBy.INTERRUPT.value]
    assert document["complete"] is False
    assert "base.json was not written, because the run is not complete." in out


def test_ctrl_c_while_shrinking_keeps_the_verdict_and_ends_the_run(project: Any) -> None:
    project.audits(
        "import signal\ncalls = 0\n",
        "def pressed(data, size, rng):\n"
        "    global calls\n"
        "    calls += size\n"
        "    if calls > 2_000:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return 100.0 * len(data) + rng.laplace(size=size)\n",
        project.audit("a", "pressed"),
        project.audit("b"),
    )
    code, _ = project.run("run", "--output", "results.json")
    assert code == 130
    (only,) = json.loads(Path("results.json").read_text())["audits"]
    assert (only["result"]["verdict"], only["result"]["stopped_by"]) == ("VIOLATION", StoppedBy.INTERRUPT.value)


def test_jobs_give_the_results_of_one_after_the_other(project: Any) -> None:
    project.audits(project.audit("one"), project.audit("two", "half"))
    project.run("run", "--output", "alone.json")
    code, _ = project.run("run", "--output", "beside.json", "-j", "2")
    assert code == 1
    texts = [json.loads(Path(name).read_text()) for name in ("alone.json", "beside.json")]
    for document in texts:
        del document["origin"]  # the date
        for audit in document["audits"]:
            del audit["result"]["seconds"]
    assert texts[0] == texts[1]


def test_workers_can_import_functions_of_audit_files(project: Any) -> None:
    # Slow enough to be worth sending away.
    project.audits(
        "import time\n",
        "def slow(data, size, rng):\n    time.sleep(size * 2e-6)\n    return noisy(data, size, rng)\n",
        project.audit("good", "slow", samples=100_000),
    )
    code, out = project.run("run", "--workers", "2")
    assert code == 0, out
    assert project.run("run", "--workers", "2", "-j", "2")[0] == 2


def test_a_lambda_under_workers_names_the_ways_out(project: Any) -> None:
    project.audits(
        "import time\n",
        project.audit(
            "a", "lambda data, size, rng: [time.sleep(size * 2e-6), noisy(data, size, rng)][1]", samples=100_000
        ),
    )
    code, out = project.run("run", "--workers", "2")
    assert code == 2
    assert re.search(r"ERROR  a: .*cannot be sent.* On the command line, -j N .* --executor dask:ADDRESS", out), out
    code, out = project.run("run", "-j", "2")
    assert code == 0, out


def test_a_cluster_that_does_not_answer_is_reported_at_once(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dpaudit[dask]'")
    project.audits(project.audit("a"))
    with socket.socket() as held:  # a port at which no server listens
        held.bind(("127.0.0.1", 0))
        address = f"dask:tcp://127.0.0.1:{held.getsockname()[1]}"
        begin = time.monotonic()
        assert project.run("run", "--executor", address)[0] == 2
    assert time.monotonic() - begin < 10.0
    assert re.search(
        rf"executor='{address}' cannot be reached \(.*\): is a scheduler running there", capsys.readouterr().err
    )


def test_check(project: Any) -> None:
    project.write(
        "mech.py",
        "import random\nclass Holder:\n    @staticmethod\n    def coin(data):\n"
        "        return (1 in data) if random.random() < 0.9 else (1 not in data)\n",
    )
    words = ("check", "mech.py:Holder.coin", "--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "substitute")
    code, out = project.run(*words, "--max-size", "1", "--samples", "1e5", "--samples-only")
    assert code == 1
    assert "an event of probability 1e-06" in out  # one audit, one alpha
    code, out = project.run(*words, "--max-size", "1")
    assert code == 1
    assert "exact, no samples" in out
    assert project.run(*words, "--delta", "0.9", "--max-size", "1", "--samples", "20_000")[0] in (0, 3)


@pytest.mark.parametrize("function", ["noisy", "one"])
def test_check_sees_how_a_function_is_called(project: Any, function: str) -> None:
    project.audits("def one(data, rng):\n    return len(data) + rng.laplace()\n")
    words = ("--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "add-remove", "--max-size", "1")
    code, out = project.run("check", f"audits/some.py:{function}", *words, "--samples", "60_000")
    assert code == 0, out
    assert project.run("check", f"audits/some.py:{function}", *words, "--calls", "data", "--samples", "2000")[0] == 2


def test_settings_of_the_project(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project.audits(project.audit("good"), name="privacy/some.py")
    project.write("pyproject.toml", '[tool.dpaudit]\naudits = ["privacy"]\nsamples = 3e3\n')
    assert "3,000 samples" in project.run("run")[1]
    (project.root / "deep").mkdir()
    monkeypatch.chdir(project.root / "deep")
    assert "3,000 samples" in project.run("run")[1]  # paths in the file are relative to it
    monkeypatch.setenv("DPAUDIT_SAMPLES", "4000")
    assert "4,000 samples" in project.run("run")[1]
    assert "5,000 samples" in project.run("run", "--samples", "5000")[1]


def test_baseline_round_trip(project: Any) -> None:
    project.audits(project.audit("first"), project.audit("second"))
    assert project.run("run", "--save-baseline", "base.json")[0] == 0
    before = Path("base.json").read_text()
    code, out = project.run("run", "--baseline", "base.json", "--save-baseline", "base.json")
    stored = json.loads(Path("base.json").read_text())["audits"].values()
    assert [audit["alpha"] for audit in stored] == [pytest.approx(0.9e-9)] * len(stored)  # a tenth is left for changes
    assert code == 0
    assert "No regression against the baseline." in out
    assert Path("base.json").read_text() == before  # saving again changes nothing
    assert project.run("compare", "base.json", "base.json") == (0, "No regression.\n")

    # A selection leaves audits out; it does not make them vanish.
    assert project.run("run", "--baseline", "base.json", "--select", "first")[0] == 0
    assert project.run("run", "audits/some.py:first", "--baseline", "base.json")[0] == 0

    project.audits(project.audit("first"))
    project.fresh()
    code, out = project.run("run", "--baseline", "base.json")
    assert code == 1
    assert "REGRESSION  second: the audit is gone" in out
    assert project.run("run", "--baseline", "base.json", "--fail-on", "never")[0] == 0

    project.audits(project.audit("first").replace("PureDP(1.0)", "PureDP(2.0)"), project.audit("second", "half"))
    project.fresh()
    code, out = project.run("run", "--baseline", "base.json", "--output", "new.json")
    assert code == 1
    assert "REGRESSION  first: the claim was PureDP(epsilon=1.0) and is PureDP(epsilon=2.0)" in out
    assert "REGRESSION  second: the baseline's claim PureDP(epsilon=1.0) is refuted" in out
    code, out = project.run("compare", "base.json", "new.json")
    assert code == 1
    assert "REGRESSION  second: the baseline's claim" in out


@pytest.mark.parametrize(("before", "after", "how"), [("0.80", "0.88", "more"), ("0.88", "0.80", "less")])
def test_a_changed_mechanism_is_a_regression(project: Any, before: str, after: str, how: str) -> None:
    coin = "def coin(data, size, rng):\n    return (rng.random(size) < TRUE) == bool(data)\n"
    expected = project.audit("coin", "coin", samples=200_000, more='expect="VIOLATION"', options='"until": "budget"')
    project.audits(f"TRUE = {before}\n", coin, expected)
    assert project.run("run", "--save-baseline", "base.json")[0] == 0
    assert project.run("run", "--baseline", "base.json")[0] == 0
    project.audits(f"TRUE = {after}\n", coin, expected)
    project.fresh()
    code, out = project.run("run", "--baseline", "base.json")
    assert code == 1
    assert f"on [] and [1] differs {how} than it did" in out


def test_a_quiet_mechanism_that_changed_is_a_regression(project: Any) -> None:
    project.audits(project.audit("count", samples=200_000))
    project.run("run", "--save-baseline", "base.json")
    project.write("audits/some.py", Path("audits/some.py").read_text().replace("scale=1.0", "scale=1.6"))
    project.fresh()
    code, out = project.run("run", "--baseline", "base.json")
    assert code == 1
    assert "differs less than it did" in out


def test_a_leak_in_the_bits_that_got_worse_is_a_regression(project: Any) -> None:
    rough = (
        "import numpy as np\n"
        "def rough(data, size, rng):\n"
        "    answer = np.where(rng.random(size) < TRUE, len(data), 1 - len(data))\n"
        "    return answer + rng.laplace(size=size)\n"
    )
    audit = project.audit(
        "rough",
        "rough",
        samples=50_000,
        more='expect="VIOLATION"',
        options='"channel": "representation", "until": "budget"',
    )
    project.audits("TRUE = 0.85\n", rough, audit)
    code, out = project.run("run", "--save-baseline", "base.json")
    assert code == 0, out
    assert "Note:" not in out
    assert '"lowest_bit": [' in Path("base.json").read_text()
    project.audits("TRUE = 0.99\n", rough, audit)
    project.fresh()
    code, out = project.run("run", "--baseline", "base.json")
    assert code == 1
    assert "differs more than it did: its log-ratio is between" in out


def test_an_event_without_a_plain_form_is_reported(project: Any) -> None:
    many = "def many(data, size, rng):\n    return len(data) + 3.0 * rng.laplace(size=(size, 12))\n"
    project.audits(many, project.audit("many", "many", samples=60_000, more='expect="VIOLATION"'))
    code, out = project.run("run", "--save-baseline", "base.json")
    assert code == 0, out
    note = "Note: the leading event of 'many' was not counted again: the event has no plain form"
    assert note in out
    assert json.loads(Path("base.json").read_text())["audits"]["many"]["leading"]["event"] is None
    code, out = project.run("run", "--baseline", "base.json")
    assert code == 0, out
    assert note in out


def test_an_unreadable_baseline_is_2_and_nothing_runs(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.audits(project.audit("good"))
    project.write(
        "bad.json", '{"tool": "dpaudit", "kind": "baseline", "format": 1, "audits": {"x": {}}, "versions": {}}'
    )
    for name in ("missing.json", "bad.json"):
        code, out = project.run("run", "--baseline", name)
        assert (code, out) == (2, "")
        assert name in capsys.readouterr().err


def test_reports(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project.audits(project.audit("good"))
    summary = project.write("summary.md", "before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert project.run("run", "--output", "r.json", "--junit", "r.xml", "--markdown", "r.md")[0] == 0
    assert "<testsuite" in Path("r.xml").read_text()
    assert summary.read_text() == "before\n" + Path("r.md").read_text()
    code, out = project.run("report", "r.json", "--sarif", "r.sarif")
    assert (code, out) == (0, "wrote r.sarif\n")
    code, out = project.run("report", "r.json")
    assert code == 0
    assert out.startswith("NO_VIOLATION_FOUND")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--html", "audits"], "'audits' cannot be written: it is a folder."),
        (["--output", "audits/some.py/r.json"], "cannot be written: Not a directory."),
        (["--save-baseline", "audits/some.py/b.json"], "cannot be written: Not a directory."),
        (["--sarif", "r" * 300], "cannot be written: File name too long."),
        (["--junit", "r.xml", "--markdown", "./r.xml"], "'r.xml' is wanted for junit and for markdown"),
    ],
)
def test_a_report_that_cannot_be_written_is_an_error_before_the_run(
    project: Any, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    project.audits(
        "from pathlib import Path\ndef seen(data):\n    Path('called').touch()\n    return 1\n",
        'one = dpaudit.Audit(name="one", mechanism=seen, claim=dpaudit.PureDP(1.0), neighbours=PAIR)\n',
    )
    assert project.run("run", *words) == (2, "")
    assert message in capsys.readouterr().err
    assert not Path("called").exists()
    assert sorted(path.name for path in Path().iterdir()) == ["audits"]


def test_check_verifies_its_report_paths_first(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("check", "no.py:f", "--epsilon", "1", "--rows", "none()", "--relation", "substitute", "--html", ".")
    assert project.run(*words)[0] == 2
    assert "'.' cannot be written: it is a folder." in capsys.readouterr().err


def test_a_job_summary_that_cannot_be_written_changes_no_exit_code(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.audits(project.audit("good"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root))
    code, out = project.run("run")
    assert code == 0
    assert "Note: GITHUB_STEP_SUMMARY=" in out


def test_init_never_overwrites(project: Any) -> None:
    code, out = project.run("init")
    assert code == 0
    assert "wrote audits/first_audit.py" in out
    project.write("audits/first_audit.py", "# mine\n")
    code, out = project.run("init")
    assert "kept audits/first_audit.py, which was there already" in out
    assert Path("audits/first_audit.py").read_text() == "# mine\n"
    assert project.run("init", "nowhere")[0] == 2
    project.write("other/audits", "a file, not a folder")
    assert project.run("init", "other")[0] == 2


def test_the_first_audit_works_and_halving_its_scale_is_caught(project: Any) -> None:
    project.run("init")
    assert project.run("run", "--samples", "60_000")[0] == 0
    path = Path("audits/first_audit.py")
    path.write_text(path.read_text().replace("1.0 / EPSILON", "0.5 / EPSILON"))
    project.fresh()
    assert project.run("run")[0] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["run", "--sampels", "5"], "Did you mean '--samples'?"),
        (["run", "--sampels=5"], "Did you mean '--samples'?"),
        (["run", "--channel", "vaule"], "Did you mean 'value'?"),
        (["run", "adits"], "Did you mean 'audits'?"),
        (["run", "audits/sone.py"], "Did you mean 'some.py'?"),
        (["run", "audits/some.py:god"], "Did you mean 'good'?"),
        (["run", "--select", "goood"], "Did you mean 'good'?"),
        (["run", "--samples", "many"], "'many' is not a whole number"),
        (["run", "--samples", "1e999"], "'1e999' is not a whole number"),
        (["run", "--alpha", "2"], "alpha=2.0 must lie strictly between 0 and 1. (from the command line)"),
        (["run", "--executor", "dusk:1"], "must look like dask:tcp"),
        (
            ["check", "audits/some.py:noisi", "--epsilon", "1", "--rows", "none()", "--relation", "substitute"],
            "'noisy'",
        ),
        (
            ["check", "x", "--epsilon", "1", "--rows", "none()", "--relation", "substitute"],
            "must look like file.py:name",
        ),
        (["report", "missing.json"], "missing.json"),
        (["accuracy", "shwo"], "Did you mean 'show'?"),
        (["accuracy", "show", "no-such-theorem"], "no-such-theorem"),
        (["anonymity", "missing.csv", "-q", "a"], "missing.csv"),
        (["run", "a\0b"], "NUL"),
        ([":"], "invalid choice"),
        (["run", ":name"], "names nothing"),
        (["run", ""], "names nothing"),
    ],
)
def test_mistakes_end_with_2_and_say_what_to_do(
    project: Any, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    project.audits(project.audit("good", samples=200))
    code, out = project.run(*words)
    shown = capsys.readouterr()
    assert code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert out == shown.out == ""


def test_no_arguments_help(project: Any) -> None:
    code, out = project.run()
    assert code == 0
    assert out.startswith("usage: dpaudit")
    assert "exit codes:" in out


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["accuracy", "--help"], ["anonymity", "--help"]])
def test_help_of_everything(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith("usage: dpaudit")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"dpaudit {dpaudit.__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from dpaudit.cli.main import main; main(['--help']); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'hypothesis', 'pandas', 'statsmodels')))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_without_a_terminal_everything_is_ascii(project: Any) -> None:
    project.audits(project.audit("good").replace('name="good"', 'name="gr\u00f6\u00dfe \u2603"'))
    shown = subprocess.run([sys.executable, "-m", "dpaudit", "run", "--samples", "200"], capture_output=True)
    assert shown.returncode == 3
    assert b"gr\\xf6\\xdfe \\u2603" in shown.stdout
    shown.stdout.decode("ascii")


BARE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize(
    ("words", "code", "locale", "terminal"),
    [
        (["list"], 0, {"PYTHONIOENCODING": "ascii:strict"}, True),
        (["run", "--samples", "200"], 3, BARE, True),
        (["anonymity", "t\u00e4ble.csv", "-q", "stra\u00dfe", "-s", "krank"], 0, {"PYTHONIOENCODING": "ascii"}, False),
    ],
)
def test_an_ascii_locale_is_no_reason_to_die(
    project: Any, words: list[str], code: int, locale: dict[str, str], terminal: bool
) -> None:
    project.audits(project.audit("good").replace('name="good"', 'name="gr\u00f6\u00dfe \u2603"'))
    project.write("t\u00e4ble.csv", "stra\u00dfe,krank\n\u00e4,ja\n\u00e4,nein\n")
    command, environment = [sys.executable, "-m", "dpaudit", *words], {**os.environ, **locale}
    if terminal:
        done, shown = on_a_terminal(command, environment)
    else:
        finished = subprocess.run(command, capture_output=True, env=environment)
        done, shown = finished.returncode, finished.stdout + finished.stderr
    assert b"Traceback" not in shown
    assert done == code, shown


def on_a_terminal(command: list[str], environment: dict[str, str]) -> tuple[int, bytes]:
    pty = pytest.importorskip("pty", reason="this system has no terminals to make")
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return running.returncode, shown


def test_colours(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project.audits(project.audit("good"))
    assert "\x1b" not in project.run("run")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[32mNO_VIOLATION_FOUND\x1b[0m" in project.run("run")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in project.run("run")[1]


def test_a_reader_that_has_seen_enough(project: Any) -> None:
    project.audits(*(project.audit(f"audit{k}", samples=200) for k in range(20)))
    shown = subprocess.run(
        f"{sys.executable} -m dpaudit list | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("audit0")
    assert shown.stderr == ""
