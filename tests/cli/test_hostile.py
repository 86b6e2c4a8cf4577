"""Exit codes, reports and printed text stay right, whatever the audited code does."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dpaudit.cli import jobs
from dpaudit.cli import main as cli

# Each of these raises what is no Exception, where no Exception is expected.
RAISING = {
    "cancelled": "raise asyncio.CancelledError('stop')",
    "generator": "raise GeneratorExit",
    "own": "raise Own('panic')",
    "pressed": "raise KeyboardInterrupt",
    "left": "sys.exit(0)",
    "output": "return Hostile()",
}
HEAD = """
import asyncio
import os
import sys

class Own(BaseException):
    def __str__(self):
        raise RuntimeError('no message either')

class Hostile:
    def __deepcopy__(self, memo):
        raise asyncio.CancelledError
"""


def raising(project: Any, bodies: dict[str, str]) -> None:
    project.audits(
        HEAD,
        *(
            f"def {name}_(data):\n    {body}\n"
            f'{name} = dpaudit.Audit(name="{name}", mechanism={name}_, claim=dpaudit.PureDP(1.0), neighbours=PAIR)\n'
            for name, body in bodies.items()
        ),
        project.audit("good"),
    )


def run_apart(project: Any, line: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a line of a shell, in which $D is the command."""
    environ = {**os.environ, "D": f"{sys.executable} -m dpaudit"}
    return subprocess.run(["bash", "-c", line], cwd=project.root, env=environ, capture_output=True, timeout=120, **more)


@pytest.mark.parametrize("mode", [(), ("-j", "2"), ("--workers", "2")], ids=["serial", "jobs", "workers"])
def test_an_exception_of_a_mechanism_is_an_error_of_its_audit(
    project: Any, mode: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    raising(project, RAISING)
    code, out = project.run("run", *mode, "--output", "o.json", "--junit", "j.xml", "--sarif", "s.json")
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err
    assert "NO_VIOLATION_FOUND  good" in out
    assert "6 of 7 audits could not be run." in out
    document = json.loads(Path("o.json").read_text())
    assert sorted(failure["name"] for failure in document["failures"]) == sorted(RAISING)
    assert not document["interrupted"]
    reasons = {failure["name"]: failure["reason"].splitlines()[0] for failure in document["failures"]}
    assert reasons["cancelled"] == "CancelledError: stop"
    assert reasons["pressed"] == "KeyboardInterrupt: no interrupt was sent to the run"
    assert "sys.exit(0)" in reasons["left"]
    suite = ElementTree.parse("j.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("7", "6", "0")
    results = json.loads(Path("s.json").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["could-not-run"] * 6


def test_a_process_that_ends_early_is_an_error_of_its_audit(project: Any) -> None:
    raising(project, {"leaves": "os._exit(0)", "crashes": "os.kill(os.getpid(), 11)"})
    for mode in (("-j", "2"), ("--workers", "2")):
        code, out = project.run("run", *mode, "--output", "o.json")
        assert code == 2
        assert "NO_VIOLATION_FOUND  good" in out
        document = json.loads(Path("o.json").read_text())
        assert not document["complete"]
        failures = {f["name"]: f["reason"] for f in document["failures"]}
        assert failures["leaves"] == "its process died: a process ended with exit code 0."
        assert failures["crashes"] == "its process died: a process was ended by SIGSEGV."


@pytest.mark.skipif(sys.platform != "linux", reason="runs are supervised on Linux only")
@pytest.mark.parametrize(
    ("body", "how"), [("os._exit(0)", b"with exit code 0"), ("os.kill(os.getpid(), 11)", b"by SIGSEGV")]
)
def test_a_run_that_did_not_reach_its_end_is_never_green(project: Any, body: str, how: bytes) -> None:
    raising(project, {"leaves": body})
    ended = run_apart(project, "$D run")
    assert ended.returncode == 2
    assert b"dpaudit: the process ended " + how + b" before the run did" in ended.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_process_that_code_under_audit_forks_does_not_go_on_with_the_run(project: Any) -> None:
    project.audits(
        "import os\nif os.fork() == 0:\n    PAIR = []\n"
        "calls = 0\ndef forks(data, size, rng):\n    global calls\n    calls += 1\n"
        "    return 0 * size if calls == 9 and os.fork() == 0 else half(data, size, rng)\n",
        project.audit("bad", "forks"),
    )
    ended = run_apart(project, "$D run --output o.json")
    assert (ended.returncode, ended.stdout.count(b"1 audit: 1 VIOLATION"), ended.stderr) == (1, 1, b"")


def test_an_audit_file_cannot_change_what_ends_the_run(project: Any) -> None:
    project.audits("import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n", project.audit("bad", "half"))
    assert run_apart(project, "$D run | true; exit ${PIPESTATUS[0]}").returncode == 1
    project.audits(
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n",
        "def presses(data, size, rng):\n    signal.raise_signal(signal.SIGINT)\n    return half(data, size, rng)\n",
        project.audit("pressed", "presses"),
    )
    project.fresh()
    assert project.run("run")[0] == 130


ELSEWHERE = "from dpaudit.cli import main, supervisor; supervisor.possible = lambda: False; main.entry()"


@pytest.mark.parametrize(("code", "mechanism"), [(2, "os._exit(0)"), (1, "atexit.register(os._exit, 0)")])
def test_an_early_exit_is_no_success_without_a_supervisor_either(project: Any, code: int, mechanism: str) -> None:
    project.audits(
        f"import atexit, os\ndef ends(data, size, rng):\n    {mechanism}\n    return half(data, size, rng)\n",
        project.audit("bad", "ends"),
    )
    ended = subprocess.run([sys.executable, "-c", ELSEWHERE, "run"], cwd=project.root, capture_output=True, check=False)
    assert ended.returncode == code, ended.stderr
    assert (b"ended with exit code 0 before the run did" in ended.stderr) == (code == 2)


@pytest.mark.skipif(sys.platform != "linux", reason="runs are supervised on Linux only")
def test_neither_threads_nor_exit_handlers_change_the_code(project: Any) -> None:
    project.audits(
        "import atexit, os, threading, time\natexit.register(os._exit, 0)\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n",
        project.audit("bad", "half"),
    )
    assert run_apart(project, "$D run").returncode == 1


def test_a_closed_pipe_neither_stops_a_run_nor_changes_its_code(project: Any) -> None:
    project.audits(*(project.audit(f"bad{number}", "half", samples=4000) for number in range(3)))
    ended = run_apart(project, "$D run --output o.json | head -1; exit ${PIPESTATUS[0]}")
    assert ended.returncode == 1
    assert ended.stderr == b""
    assert len(json.loads((project.root / "o.json").read_text())["audits"]) == 3


def test_streams_that_are_closed_change_nothing(project: Any) -> None:
    project.audits(project.audit("bad", "half", samples=4000))
    for closed in (">&-", "2>&- <&-"):
        ended = run_apart(project, f"$D run --output o.json {closed}")
        assert ended.returncode == 1, ended.stderr
        assert b"Traceback" not in ended.stderr


class Full(io.StringIO):
    """A file on a disk that is full."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_json_that_a_full_disk_has_cut_is_no_success(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.audits(project.audit("good", samples=4000))
    assert cli.main(["list"], stdout=Full()) == 0  # lines that are lost change nothing
    for words in (["list", "--json"], ["run", "--json", "--fail-on", "never"]):
        assert cli.main(words, stdout=Full()) == 2
        assert "dpaudit: The JSON cannot be written: No space left on device." in capsys.readouterr().err


def test_a_folder_that_was_removed(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (project.root / "gone").mkdir()
    os.chdir("gone")
    (project.root / "gone").rmdir()
    assert project.run("list") == (2, "")
    assert capsys.readouterr().err == "dpaudit: The current folder was removed; change to another one.\n"


def test_a_mechanism_cannot_close_the_streams_of_the_run(project: Any) -> None:
    raising(project, {"closes": "sys.stdout.close(); return 0.5"})
    code, out = project.run("run", "--fail-on", "never")
    assert code == 0
    assert "2 audits: " in out


def test_a_file_that_cannot_be_imported_does_not_take_the_others_along(project: Any) -> None:
    project.audits(project.audit("good"))
    project.write("audits/broken.py", "import asyncio\nraise asyncio.CancelledError('stop')\n")
    project.write("audits/pressed.py", "raise KeyboardInterrupt\n")
    for mode in ((), ("-j", "2")):
        code, out = project.run("run", *mode, "--output", "o.json")
        assert code == 2
        assert "ERROR  audits/broken.py: audits/broken.py cannot be imported: CancelledError: stop (" in out
        assert (
            "ERROR  audits/pressed.py: audits/pressed.py cannot be imported: KeyboardInterrupt: no interrupt was" in out
        )
        assert "NO_VIOLATION_FOUND  good" in out
    failures = json.loads(Path("o.json").read_text())["failures"]
    assert [failure["path"] for failure in failures] == ["audits/broken.py", "audits/pressed.py"]


CHECK = ("check", "good.py:f", "--epsilon", "1", "--relation", "substitute", "--seconds", "1", "--rows")


@pytest.mark.parametrize(
    "words",
    [
        ("list", "sys"),
        ("run", "itertools"),
        ("list", "spaced.inner"),
        (*CHECK, f"integers(0, {10**400})"),
        (*CHECK, "floats(allow_nan=2)"),
        (*CHECK, "lists(" * 60 + "integers()" + ")" * 60),
        (*CHECK, "lists(lists(integers(), min_size=50), min_size=50)"),
        (*CHECK, "lists(integers(), min_size=1000000000)"),
        (*CHECK, "integers(0, 1)", "--max-size", "1000000000", "--min-size", "100000000"),
        ("anonymity", "t.csv", "-q", "a", "--encoding", "utf-16"),
        ("anonymity", "u.csv", "-q", "a", "-s", "b", "--distance", "emd", "--taxonomy", "deep.json"),
        ("report", "beyond.json"),
    ],
    ids=str,
)
def test_arguments_that_once_gave_a_traceback_or_took_minutes(
    project: Any, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    project.audits(project.audit("good", samples=200))
    project.write("good.py", "def f(data):\n    return 0\n")
    project.write("spaced/inner/file.py", "")
    (project.root / "t.csv").write_bytes("a,b\n1,2\n".encode("utf-16-le"))
    project.write("u.csv", "a,b\n1,2\n")
    project.write("deep.json", "[" * 100_000)
    if words[0] == "report":
        project.run("run", "--output", "beyond.json")
        plain = json.loads(Path("beyond.json").read_text())
        plain["audits"][0]["result"]["alpha"] = 10**400
        project.write("beyond.json", json.dumps(plain))
        capsys.readouterr()
    code, out = project.run(*words)
    err = capsys.readouterr().err
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    assert "not expected" not in err


def test_an_object_whose_class_raises_is_no_audit(project: Any) -> None:
    project.audits(
        "class Odd:\n    @property\n    def __class__(self):\n        raise RuntimeError('no')\nodd = Odd()\nmore = [Odd()]\n",
        project.audit("good"),
    )
    assert project.run("list")[0] == 0


def test_an_unexpected_error_is_2(
    project: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.audits(project.audit("good"))
    monkeypatch.setattr("dpaudit.cli.plan.collected", lambda *_, **__: 1 / 0)
    assert project.run("run")[0] == 2
    assert "dpaudit: ZeroDivisionError: division by zero. This error was not expected" in capsys.readouterr().err


def test_a_call_that_holds_the_interpreter_costs_one_audit(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "OVERDUE_GRACE", 3.0)
    raising(project, {"holds": "return 9 ** 9 ** 9"})
    for mode in (("-j", "2"), ("--workers", "2")):
        code, out = project.run("run", *mode, "--seconds", "0.2")
        assert code == 3
        assert re.search("The audit had not ended . s after it began, with seconds=0.2, so its process was ended", out)
        assert re.search("^[A-Z_]+ +good: ", out, re.MULTILINE)


def test_an_unenforceable_time_limit_is_reported_at_the_start(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project.audits(project.audit("good"))
    project.run("run", "--seconds", "5")
    assert capsys.readouterr().err.startswith("Note: calls run in this process, where --seconds cannot end one")
    project.write("good.py", "def f(data):\n    return 0\n")
    project.run(*CHECK, "integers(0, 1)", "--samples", "100")
    assert capsys.readouterr().err.startswith("Note: calls run in this process, where --seconds cannot end one")
    project.run("run", "--seconds", "5", "--timeout", "5")
    assert capsys.readouterr().err == ""


def test_a_call_that_takes_longer_than_the_timeout(project: Any) -> None:
    raising(project, {"slow": "__import__('time').sleep(60)"})
    code, out = project.run("run", "--timeout", "0.2")
    assert code == 3
    assert "took longer than timeout=0.2 seconds" in out


@pytest.mark.skipif(not hasattr(signal, "ITIMER_PROF"), reason="there is no such timer here")
def test_a_call_that_does_not_return_to_python_is_ended_by_the_timeout(project: Any) -> None:
    raising(project, {"holds": "sum(range(10**12))"})
    code, out = project.run("run", "-j", "2", "--timeout", "0.1")
    assert code == 3
    assert "With timeout=0.1: a call took much longer than timeout= allows and did not return to Python" in out
    assert "NO_VIOLATION_FOUND  good" in out


@pytest.mark.skipif(sys.platform != "linux", reason="by the kernel on Linux; elsewhere a thread does it")
def test_workers_end_when_their_parent_is_killed(project: Any) -> None:
    script = (
        "import os, sys, time\nfrom dpaudit.engine.sampling.processes import Workers\nif __name__ == '__main__':\n"
        "    workers = Workers(1)\n    print(workers.submit(os.getpid).result(), flush=True)\n"
        "    workers.submit(pow, 9, 9 ** 9).result()\n"
    )
    project.write("parent.py", script)
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=project.root, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout as stdout:
        worker = int(stdout.readline())
        parent.kill()
        parent.wait()
    until = time.monotonic() + 30.0
    while Path(f"/proc/{worker}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    left = Path(f"/proc/{worker}").exists()
    if left:
        os.kill(worker, signal.SIGKILL)
    assert not left


HOSTILE = "x\n::error::forged\x1b[2J\r##[add-mask]y\u202e"
RAW = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae|^\s*::|##\[", re.MULTILINE)


def test_every_command_escapes_text_of_user_code(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    name = repr(HOSTILE)
    project.audits(
        f"def loud(data):\n    raise ValueError({name})\n",
        f"def wrong(data, size, rng):\n    return {name}\n",
        f"A = lambda name, f: dpaudit.Audit(name=name, mechanism=f, claim=dpaudit.PureDP(1.0), neighbours=[([], [{name}])], "
        'options={"samples": 4000})\n',
        f"audits = [A({name} + 'half', dpaudit.batched(half)), A({name} + 'loud', loud), "
        f"A({name} + 'w', dpaudit.batched(wrong))]\n",
    )
    (project.root / "t.csv").write_text(
        f'{HOSTILE.split(chr(10))[0]},b\n"1{HOSTILE}",2\n3,{HOSTILE[1:]!r}\n', newline=""
    )
    project.write("broken.py", f"raise ValueError({name})\n")
    shown = []
    for words in (
        ("list",),
        ("list", "--json"),
        ("run", "--output", "o.json"),
        ("run", "--json"),
        ("run", "broken.py"),
        ("run", HOSTILE),
        ("run", "--select", HOSTILE),
        ("run", "--fail-on", HOSTILE),
        ("report", "o.json"),
        ("compare", "o.json", "none.json"),
        ("compare", "o.json", "empty.json"),
        ("anonymity", "t.csv", "-q", "x", "-s", "b"),
        ("anonymity", "t.csv", "-q", "x", "-s", "b", "--json"),
        ("anonymity", "t.csv", "-q", HOSTILE),
        ("accuracy", "show", HOSTILE),
        ("check", f"broken.py:{HOSTILE}", "--epsilon", "1", "--rows", HOSTILE, "--relation", "substitute"),
        ("init", HOSTILE),
    ):
        if words[-1] == "empty.json":
            plain = json.loads(Path("o.json").read_text())
            project.write("empty.json", json.dumps({**plain, "audits": [], "failures": []}))
        code, out = project.run(*words)
        text = (out + capsys.readouterr().err).encode()
        assert not RAW.search(text), (words, RAW.search(text), text)
        shown.append("forged" in text.decode() or code)
    assert all(shown)


@pytest.mark.parametrize("mode", [(), ("-j", "2")], ids=["serial", "jobs"])
def test_an_exception_of_an_accuracy_check_is_its_error(project: Any, mode: tuple[str, ...]) -> None:
    checks = (
        f"def {name}_(data):\n    {body}\n"
        f'{name} = dpaudit.AccuracyAudit(name="{name}", mechanism={name}_, truth=len, claim=dpaudit.MeanError(1.5), data=[[1]])\n'
        for name, body in RAISING.items()
        if name != "output"
    )
    project.audits(HEAD, *checks, project.audit("good"))
    code, out = project.run("run", *mode, "--output", "o.json")
    assert code == 2
    assert "NO_VIOLATION_FOUND  good" in out
    assert "5 of 6 audits could not be run." in out
    document = json.loads(Path("o.json").read_text())
    assert sorted(f["name"] for f in document["failures"]) == sorted(set(RAISING) - {"output"})
    assert not document["interrupted"]


def test_every_calculator_escapes_text_of_user_code(project: Any, capsys: pytest.CaptureFixture[str]) -> None:
    name = repr(HOSTILE)
    project.audits(
        f"def shows(data, rng):\n    print({name})\n    return data[0]\n",
        f"def refuses(composition, delta):\n    raise ValueError({name})\n",
        f"accurate = dpaudit.AccuracyAudit(name={name}, mechanism=dpaudit.batched(half), truth=len, "
        f"claim=dpaudit.MeanError(0.1), data=[[{name}]], options=dict(samples=2000))\n",
        f"curve = dpaudit.Tradeoff(name={name}, parameter={name}, make=lambda b: dpaudit.batched(half), values=[0.5], truth=len, "
        "data=[1], neighbours=[([], [1])])\n",
        name="some.py",
    )
    column = HOSTILE.replace("\n", " ")
    rows = "".join(f'"{cell}{HOSTILE}",{number},p{number}\n' for number, cell in enumerate("aabb"))
    (project.root / "t.csv").write_text(f'"{column}",b,id\n{rows}', newline="")
    project.write("h.json", json.dumps({column: {HOSTILE: 1}}))
    known = ("-q", f'"{column}"', "-s", "b")
    one = ("--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "substitute")
    shown = []
    for words in (
        ("run", "some.py", "--output", "o.json"),
        ("report", "o.json"),
        ("verify", "some.py:shows", *one, "--rows", f"sampled_from(['a', {name}])", "--law"),
        ("check", "--command", HOSTILE, *one, "--samples", "100"),
        ("accountant", "some.py:refuses", "--examples", "2"),
        ("accountant", "some.py:refuses", "--examples", "2", "--json"),
        ("accountant", f"some.py:{HOSTILE}"),
        ("tradeoff", "some.py:curve", "--samples", "2000"),
        ("tradeoff", "some.py:curve", "--samples", "2000", "--json"),
        ("statements", "show", HOSTILE),
        ("anonymise", "t.csv", *known, "--k", "2"),
        ("anonymise", "t.csv", *known, "--k", "2", "--hierarchies", "h.json"),
        ("risk", "t.csv", *known),
        ("risk", "t.csv", *known, "--json"),
        ("risk", "t.csv", "-q", f'"{column}",b', "--id", "id", "--points", "1", "--require", "unique=0"),
        ("risk", "t.csv", "-q", HOSTILE),
    ):
        code, out = project.run(*words)
        err = capsys.readouterr().err
        # What code under audit prints is its own, and goes to standard error.
        text = (out + err.replace(f"{HOSTILE}\n", "")).encode()
        assert not RAW.search(text), (words, RAW.search(text), text)
        assert "Traceback" not in err, (words, err)
        shown.append((words, "forged" in text.decode() or code))
    assert [words for words, found in shown if not found] == []


def test_reports_and_comparisons_exit_as_the_run_did(project: Any) -> None:
    raising(project, {"own": "raise Own"})
    assert project.run("run", "--output", "failed.json")[0] == 2
    assert project.run("report", "failed.json", "--html", "r.html", "--markdown", "r.md")[0] == 2
    code, out = project.run("report", "failed.json")
    assert code == 2
    assert "ERROR  own: Own: (a message that cannot be read)" in out
    assert "1 of 2 audits could not be run." in out
    for file in ("r.html", "r.md"):
        text = Path(file).read_text()
        assert "1 of 2 audits could not be run." in text
        assert "nterrupted" not in text
    project.fresh()
    project.audits(project.audit("good"), project.audit("own"))
    assert project.run("run", "--output", "fine.json", "--save-baseline", "base.json")[0] == 0
    assert project.run("report", "fine.json")[0] == 0
    assert project.run("compare", "fine.json", "fine.json") == (0, "No regression.\n")
    code, out = project.run("compare", "base.json", "failed.json")
    assert code == 2  # what could not be run is not gone
    assert out == "No regression.\nThe run of failed.json itself ended with exit code 2.\n"
    plain = json.loads(Path("fine.json").read_text())
    project.write("cut.json", json.dumps({**plain, "complete": False, "interrupted": True}))
    assert project.run("report", "cut.json")[0] == 130
    assert project.run("compare", "fine.json", "cut.json")[0] == 130
