"""Audits as tests and inside tests: what is collected, what fails and how, what it costs and what it spends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dpaudit.cli import main as cli


def test_audit_files_are_collected_where_they_are_asked_for(suite: Any) -> None:
    suite.audits(
        suite.audit("good") + suite.audit("bad", "half") + suite.audit("expected", "half", more='expect="VIOLATION"')
    )
    result = suite.run("-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "dpaudit *: alpha 1e-06 for the run, 1e-09 an audit",
            "audits/some.py::good PASSED*",
            "audits/some.py::bad FAILED*",
            "audits/some.py::expected PASSED*",
            "*_ audit bad _*",
            "VIOLATION  bad: claimed PureDP(epsilon=1.0)*",
            "Pair:",
            "  data:      [[]*",
            "*= dpaudit =*",
            "VIOLATION           bad: *",
            "3 audits: 2 VIOLATION, 1 NO_VIOLATION_FOUND; 1 of 1 expectations met. False-alarm probability spent: 3e-09. *1e-06.",
            "FAILED audits/some.py::bad - VIOLATION  bad*",
        ]
    )
    # The witness, not how dpaudit works.
    assert "dpaudit/engine" not in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_a_folder_called_audits_is_not_executed_unasked(suite: Any) -> None:
    suite.audits("raise SystemExit('executed')\n", configured="samples = 100")
    suite.tests("def test_it():\n    pass\n")
    suite.run().assert_outcomes(passed=1)


def test_audit_files_beside_testpaths_are_found(suite: Any) -> None:
    suite.audits(suite.audit("good", samples=200, more='expect="INCONCLUSIVE"'))
    (suite.pytester.path / "tests").mkdir()
    (suite.pytester.path / "tests" / "test_it.py").write_text("def test_it():\n    pass\n")
    suite.pytester.makeini("[pytest]\ntestpaths = tests\n")
    suite.run().assert_outcomes(passed=2)
    suite.run("tests").assert_outcomes(passed=1)  # a path on the command line is meant
    suite.run("audits").assert_outcomes(passed=1)
    suite.run("audits/some.py::good").assert_outcomes(passed=1)
    suite.run("-m", "dpaudit").assert_outcomes(passed=1, deselected=1)


def test_one_audit_of_a_file(suite: Any) -> None:
    text = suite.audit("first", samples=200, more='expect="INCONCLUSIVE"') + suite.audit("second", "half")
    suite.audits(text, configured='audits = ["audits/some.py:first"]')
    suite.run().assert_outcomes(passed=1)
    suite.audits(text, configured='audits = ["audits.some:first"]')
    suite.run().assert_outcomes(passed=1)


def test_files_that_cannot_be_collected(suite: Any) -> None:
    suite.audits("1 / 0\n")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["audits/some.py cannot be imported: ZeroDivisionError: division by zero *"])
    assert "importlib" not in result.stdout.str()


@pytest.mark.parametrize(
    ("configured", "words", "message"),
    [
        ("alhpa = 1", [], "*'alhpa' in [[]tool.dpaudit[]] of pyproject.toml is not a setting*Did you mean 'alpha'?*"),
        ('audits = ["missing"]', [], "*audits='missing' of [[]tool.dpaudit[]] does not exist*"),
        ("", ["--dpaudit-alpha", "2"], "*alpha=2.0 must lie strictly between 0 and 1. (from the command line)*"),
        ("", ["--dpaudit-samples", "many"], "*argument --dpaudit-samples: invalid*'many'*"),
        ("", ["--dpaudit-baseline", "missing.json"], "*missing.json' cannot be read*"),
        (
            "",
            ["--dpaudit-report", "report.doc"],
            "*--dpaudit-report report.doc: the suffix must be one of .json, .html*",
        ),
        ("", ["--dpaudit-report", "pyproject.toml/r.html"], "*r.html' cannot be written: Not a directory.*"),
        ("", ["--dpaudit-profile", "fast"], "*invalid choice: 'fast'*"),
    ],
)
def test_mistakes_end_the_run_at_once(suite: Any, configured: str, words: list[str], message: str) -> None:
    suite.audits(suite.audit("good"), configured=configured)
    result = suite.run(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert "Traceback" not in result.stderr.str()


def test_two_audits_of_one_name(suite: Any) -> None:
    suite.audits(suite.audit("same"), name="audits/a.py")
    suite.audits(suite.audit("same"), name="audits/b.py")
    result = suite.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*Two audits are called 'same'*"])


def test_the_fixture(suite: Any) -> None:
    suite.tests(
        """
def test_good(dpaudit_audit):
    result = dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000)
    assert result.alpha == pytest.approx(1e-9)
    assert result.name == "test_privacy.py::test_good"
    assert dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000).name == "test_privacy.py::test_good #2"
    assert dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000, name="n").name == "test_privacy.py::test_good::n"

def test_bad(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(half), ONE, PAIR, samples=20_000)

def test_expected(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(half), ONE, PAIR, samples=20_000, expect="VIOLATION")

def test_unmet(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000, expect="VIOLATION")

def test_weak(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=200)

def test_weak_and_allowed(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=200, allow_inconclusive=True)
"""
    )
    result = suite.run("-v")
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines(
        [
            ">       dpaudit_audit(dpaudit.batched(half), ONE, PAIR, samples=20_000)",
            "E       dpaudit.errors.PrivacyViolation: VIOLATION  test_privacy.py::test_bad*",
            "E         on neighbour: *",
            "test_privacy.py:*: PrivacyViolation",
            "E       *Unmet: Expected VIOLATION, but:",
            "E       NO_VIOLATION_FOUND *",
            "E       dpaudit.errors.Inconclusive: INCONCLUSIVE *",
            "*= dpaudit =*",
            "8 audits: *",
        ]
    )
    assert "pytest_plugin/" not in result.stdout.str()


def test_markers(suite: Any) -> None:
    suite.tests(
        """
pytestmark = pytest.mark.dpaudit(samples=200)

@pytest.mark.dpaudit(allow_inconclusive=True, seed=7)
def test_allowed(dpaudit_audit):
    result = dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000)
    assert (result.samples, result.seed) == (200, 7)

def test_not_allowed(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR)

@pytest.mark.dpaudit(smaples=3)
def test_misspelt(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR)

@pytest.mark.dpaudit(3)
def test_no_name(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR)
"""
    )
    result = suite.run("--strict-markers")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        ["*Inconclusive: *", "*option='smaples' must be one of *Did you mean 'samples'?", "*takes options by name*"]
    )


def test_flags_win_over_markers_over_settings_over_tests(suite: Any) -> None:
    suite.tests(
        """
@pytest.mark.dpaudit(samples=300)
def test_marked(dpaudit_audit):
    print("marked", dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=500, allow_inconclusive=True).samples)

def test_plain(dpaudit_audit):
    result = dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=500, seed=1, allow_inconclusive=True)
    print("plain", result.samples, result.seed)
"""
    )
    result = suite.run("-s")
    result.stdout.fnmatch_lines(["*marked 300", "*plain 500 1"])
    suite.pytester.makepyprojecttoml("[tool.dpaudit]\nsamples = 400\n")
    suite.run("-s").stdout.fnmatch_lines(["*marked 300", "*plain 400 1"])
    suite.run("-s", "--dpaudit-samples", "6e2", "--dpaudit-seed", "5").stdout.fnmatch_lines(
        ["*marked 600", "*plain 600 5"]
    )


def test_profiles(suite: Any) -> None:
    suite.tests(
        """
def test_it(dpaudit_audit):
    result = dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=10**9, until="budget", allow_inconclusive=True)
    print("stopped by", result.stopped_by.value)
"""
    )
    # The profile is five seconds; here it is made shorter.
    suite.pytester.makeconftest("import dpaudit.cli.config\ndpaudit.cli.config.PROFILES['ci']['seconds'] = 0.3\n")
    result = suite.run("-s", "--dpaudit-profile", "ci")
    import dpaudit.cli.config

    dpaudit.cli.config.PROFILES["ci"]["seconds"] = 5.0
    result.stdout.fnmatch_lines(["dpaudit *, profile ci", "*stopped by seconds"])


def test_the_run_refuses_to_spend_more_than_its_alpha(suite: Any) -> None:
    suite.audits("".join(suite.audit(f"a{k}", samples=200, more='expect="INCONCLUSIVE"') for k in range(3)))
    suite.pytester.makepyprojecttoml('[tool.dpaudit]\naudits = ["audits"]\nmax_audits = 2\n')
    result = suite.run()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "The false-alarm probability of the run is spent: alpha=1e-06, of which 1e-06 went to earlier audits*",
            "2 audits: * False-alarm probability spent: 1e-06. The run may spend 1e-06.",
        ]
    )


def test_one_audit_may_not_take_all(suite: Any) -> None:
    suite.tests(
        """
def test_greedy(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=200, alpha=0.05)
"""
    )
    suite.run().stdout.fnmatch_lines(["*this one asks for 0.05*"])
    result = suite.run("--dpaudit-alpha", "0.06")
    result.stdout.fnmatch_lines(["*Inconclusive*", "*False-alarm probability spent: 0.05. The run may spend 0.06."])


RERUN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for attempt in range(2):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        if not failed or attempt == 1:
            break
        item._initrequest() if hasattr(item, "_initrequest") else None
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_a_second_try_cannot_turn_a_violation_green(suite: Any) -> None:
    suite.pytester.makeconftest(RERUN)
    suite.tests(
        """
tries = 0

def test_lucky_the_second_time(dpaudit_audit):
    global tries
    tries += 1
    dpaudit_audit(dpaudit.batched(half if tries == 1 else noisy), ONE, PAIR, samples=20_000)

other = 0

def test_something_else():
    global other
    other += 1
    assert other == 2
"""
    )
    suite.audits(
        "calls = []\ndef moody(data, size, rng):\n    return half(data, size, rng)\n" + suite.audit("bad", "moody")
    )
    result = suite.run()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["An earlier try of this test found a violation; a second try does not undo it.", "VIOLATION *"]
    )


def test_reports(suite: Any) -> None:
    suite.audits(suite.audit("good") + suite.audit("bad", "half"))
    words = [f"--dpaudit-report=out.{suffix}" for suffix in ("json", "xml", "md", "sarif", "html")]
    result = suite.run(*words, "--junitxml=pytest.xml")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["wrote out.json", "wrote out.html"])
    folder = suite.pytester.path
    document = json.loads((folder / "out.json").read_text())
    assert [audit["result"]["verdict"] for audit in document["audits"]] == ["VIOLATION", "NO_VIOLATION_FOUND"]
    assert document["audits"][0]["path"] == "audits/some.py"
    page = (folder / "out.html").read_text()
    assert "<html" in page
    assert document["origin"]["date"][:10] in page
    cases = {case.get("name"): case for case in ElementTree.parse(folder / "pytest.xml").iter("testcase")}
    failure = cases["bad"].find("failure")
    assert failure is not None
    assert "Counted on fresh outputs" in str(failure.text)
    properties = [item.get("value") for item in cases["good"].iter("property")]
    assert str(properties[0]).startswith("NO_VIOLATION_FOUND, epsilon >= 0.")


def test_the_job_summary_of_a_workflow(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = suite.pytester.path / "summary.md"
    summary.write_text("# Before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    suite.tests("def test_it():\n    pass\n", name="test_other")
    suite.run()
    assert summary.read_text() == "# Before\n"  # nothing to report
    suite.audits(suite.audit("bad", "half"))
    suite.run()
    assert summary.read_text().startswith("# Before\n# dpaudit\n\n1 audit: 1 VIOLATION.")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.pytester.path))
    suite.run().stdout.fnmatch_lines(["Note: GITHUB_STEP_SUMMARY=* cannot be written: Is a directory."])


def saved_baseline(suite: Any) -> None:
    """The file that `dpaudit run --save-baseline` writes."""
    before = set(sys.modules)
    assert cli.main(["run", "--save-baseline", "base.json"], stdout=io.StringIO()) in (0, 1)
    for name in set(sys.modules) - before:  # a new process would know nothing of the audits
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(suite.pytester.path)):
            del sys.modules[name]
    sys.modules.pop("audits", None)


def test_baselines(suite: Any) -> None:
    coin = "def coin(data, size, rng):\n    return (rng.random(size) < TRUE) == bool(data)\n"
    two = suite.audit("coin", "coin", more='expect="VIOLATION"') + suite.audit("count")
    suite.audits("TRUE = 0.8\n" + coin + two)
    saved_baseline(suite)
    suite.run("--dpaudit-baseline", "base.json").assert_outcomes(passed=2)

    # The coin is still broken as expected, but in another way.
    suite.audits("TRUE = 0.99\n" + coin + two)
    result = suite.run("--dpaudit-baseline", "base.json")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["Worse than the baseline:", "coin: the event *differs more than it did*"])

    # An audit that is gone fails the run, unless audits were picked by hand.
    suite.audits("TRUE = 0.8\n" + coin + suite.audit("coin", "coin", more='expect="VIOLATION"'))
    result = suite.run("--dpaudit-baseline", "base.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["REGRESSION  count: the audit is gone."])
    assert suite.run("--dpaudit-baseline", "base.json", "-k", "coin").ret == pytest.ExitCode.OK
    assert suite.run("--dpaudit-baseline", "base.json", "audits").ret == pytest.ExitCode.OK


def test_ctrl_c_ends_the_run(suite: Any) -> None:
    suite.audits(
        "import signal\ncalls = 0\n"
        "def pressed(data, size, rng):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    if calls == 40:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return noisy(data, size, rng)\n" + suite.audit("a", "pressed", samples=10**7) + suite.audit("b")
    )
    result = suite.interrupted()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert result.countoutcomes() == [0, 0, 0]


def test_ctrl_c_while_shrinking_ends_the_run_too(suite: Any) -> None:
    suite.audits(
        "calls = 0\n"
        "def pressed(data, size, rng):\n"
        "    global calls\n"
        "    calls += size\n"
        "    if calls > 2_000:\n"
        "        raise KeyboardInterrupt\n"
        "    return 100.0 * len(data) + rng.laplace(size=size)\n" + suite.audit("a", "pressed") + suite.audit("b")
    )
    result = suite.interrupted()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert result.countoutcomes() == [0, 0, 0]


def test_without_the_plugin(suite: Any) -> None:
    suite.audits("raise SystemExit('executed')\n")
    suite.tests(
        """
def test_by_itself():
    result = dpaudit.assert_private(dpaudit.batched(noisy), ONE, PAIR, samples=20_000)
    assert result.alpha == 1e-6
"""
    )
    result = suite.pytester.runpytest_inprocess("-p", "no:dpaudit", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    assert "dpaudit" not in result.stdout.str().replace(str(Path(suite.pytester.path)), "")


def test_beside_hypothesis(suite: Any) -> None:
    suite.tests(
        """
from hypothesis import given, settings, strategies as st

@settings(max_examples=5, deadline=None, database=None)
@given(st.integers(0, 3))
def test_many(number):
    assert number < 4

@settings(max_examples=3, deadline=None, database=None)
@given(st.integers(1, 3))
def test_audits_inside(number):
    dpaudit.assert_private(dpaudit.batched(noisy), dpaudit.PureDP(float(number)), PAIR, samples=60_000)
"""
    )
    suite.run("-p", "hypothesispytest").assert_outcomes(passed=2)


def test_a_suite_that_does_not_use_it_loads_nothing(suite: Any) -> None:
    suite.pytester.makepyfile(
        """
import sys

def test_it():
    heavy = ("numpy", "scipy", "hypothesis.core", "dpaudit.claims", "dpaudit.cli.config", "dpaudit.pytest_plugin.session")
    assert [name for name in heavy if name in sys.modules] == []
"""
    )
    result = suite.run_apart("-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    assert "dpaudit" not in result.stdout.str().split("collected")[1]


def test_assert_private_inside_a_test_is_part_of_the_run(suite: Any) -> None:
    suite.tests(
        """
def test_good():
    result = dpaudit.assert_private(dpaudit.batched(noisy), ONE, PAIR, samples=20_000)
    assert result.alpha == pytest.approx(1e-9)
    assert result.name == "test_privacy.py::test_good"

def test_bad():
    dpaudit.assert_private(dpaudit.batched(half), ONE, PAIR, samples=20_000)

def test_found_on_purpose():
    with pytest.raises(dpaudit.PrivacyViolation):
        dpaudit.assert_private(dpaudit.batched(half), ONE, PAIR, samples=20_000)

@pytest.mark.dpaudit(samples=200, allow_inconclusive=True)
def test_weak():
    dpaudit.assert_private(dpaudit.batched(noisy), ONE, PAIR)

def test_the_fixture_is_charged_once(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000)
"""
    )
    result = suite.run()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E       dpaudit.errors.PrivacyViolation: VIOLATION  test_privacy.py::test_bad*",
            "*= dpaudit =*",
            "5 audits: *False-alarm probability spent: 5e-09.*",
        ]
    )
    assert "dpaudit/engine" not in result.stdout.str()


# Workers that need not rewrite the asserts of everything they import.
TWO_WORKERS = ("-n", "2", "--assert=plain")
ONE_WORKER = ("-n", "1", "--assert=plain")


def test_with_xdist(suite: Any) -> None:
    suite.audits("".join(suite.audit(f"a{k}", samples=20_000) for k in range(2)) + suite.audit("bad", "half"))
    suite.tests(
        """
def test_inside(dpaudit_audit):
    dpaudit_audit(dpaudit.batched(noisy), ONE, PAIR, samples=20_000)
"""
    )
    result = suite.run(*TWO_WORKERS, "--dpaudit-report", "out.json", "--dpaudit-alpha", "1e-5")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["*= dpaudit =*", "4 audits: 1 VIOLATION, 3 NO_VIOLATION_FOUND. *spent: 4e-08. The run may spend 1e-05."]
    )
    document = json.loads((suite.pytester.path / "out.json").read_text())
    assert [audit["result"]["name"] for audit in document["audits"]] == [
        "a0",
        "a1",
        "bad",
        "test_privacy.py::test_inside",
    ]


def test_the_sum_over_workers_is_held_too(suite: Any) -> None:
    suite.audits("".join(suite.audit(f"a{k}", samples=200, more='expect="INCONCLUSIVE"') for k in range(2)))
    suite.pytester.makepyprojecttoml('[tool.dpaudit]\naudits = ["audits"]\nmax_audits = 1\n')
    result = suite.run(*TWO_WORKERS, "--dist", "each", "--maxfail", "9")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["The audits spent a false-alarm probability of 2e-06, more than alpha=1e-06."])


SWALLOWING = """
import contextlib
import threading
import unittest

def private(mechanism=half):
    return dpaudit.assert_private(dpaudit.batched(mechanism), ONE, PAIR, samples=20_000)

def test_bare():
    try:
        private()
    except:
        pass

def test_thread():
    def go():
        with contextlib.suppress(AssertionError):
            private()
    thread = threading.Thread(target=go)
    thread.start()
    thread.join()

def test_skipped():
    try:
        private()
    except AssertionError:
        pytest.skip("not now")

class TestOld(unittest.TestCase):
    def test_skipped(self):
        with contextlib.suppress(AssertionError):
            private()
        self.skipTest("not now")

def test_expected():
    with pytest.raises(dpaudit.PrivacyViolation):
        private()

@pytest.mark.xfail(raises=dpaudit.PrivacyViolation, strict=True)
def test_expected_failure():
    private()
"""


@pytest.mark.parametrize("words", [(), ONE_WORKER], ids=["here", "xdist"])
def test_a_swallowed_violation_fails(suite: Any, words: tuple[str, ...]) -> None:
    suite.tests(SWALLOWING)
    result = suite.run("--dpaudit-report", "r.json", *words)
    result.assert_outcomes(failed=4, passed=1, xfailed=1)
    result.stdout.fnmatch_lines(["*its exception did not reach pytest*"])
    audits = json.loads((suite.pytester.path / "r.json").read_text())["audits"]
    assert sorted((a["result"]["name"].partition("::")[2], a["expect"]) for a in audits) == [
        ("TestOld::test_skipped", None),
        ("test_bare", None),
        ("test_expected", "VIOLATION"),
        ("test_expected_failure", "VIOLATION"),
        ("test_skipped", None),
        ("test_thread", None),
    ]


@pytest.mark.parametrize("words", [(), ONE_WORKER], ids=["here", "xdist"])
def test_a_violation_in_a_thread_that_outlives_its_test_fails_the_run(suite: Any, words: tuple[str, ...]) -> None:
    suite.tests(
        "import threading\nbegan, ended = threading.Event(), threading.Event()\nthreads = []\n"
        "def slow(data, size, rng):\n    began.set()\n    ended.wait(60)\n    return half(data, size, rng)\n"
        "def go():\n    try:\n        dpaudit.assert_private(dpaudit.batched(slow), ONE, PAIR, samples=20_000)\n"
        "    except AssertionError:\n        pass\n"
        "def test_start():\n    threads.append(threading.Thread(target=go))\n    threads[0].start()\n    began.wait(60)\n"
        "def test_later():\n    ended.set()\n    threads[0].join()\n"
    )
    result = suite.run("--dpaudit-report", "r.json", *words)
    result.assert_outcomes(passed=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*its exception did not reach pytest*VIOLATION*test_start*"])
    assert len(json.loads((suite.pytester.path / "r.json").read_text())["audits"]) == 1


@pytest.mark.parametrize("words", [(), ONE_WORKER], ids=["here", "xdist"])
def test_a_violation_that_a_test_file_swallows_while_it_is_imported_fails_the_run(
    suite: Any, words: tuple[str, ...]
) -> None:
    suite.tests(
        "with pytest.raises(AssertionError):\n    dpaudit.assert_private(dpaudit.batched(half), ONE, PAIR, name='meant')\n"
        "try:\n    dpaudit.assert_private(dpaudit.batched(half), ONE, PAIR, name='bad')\nexcept AssertionError:\n    pass\n"
        "def test_it():\n    pass\n"
    )
    result = suite.run("--dpaudit-report", "r.json", "--dpaudit-samples", "30000", *words)
    result.assert_outcomes(passed=1)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*its exception did not reach pytest*VIOLATION*::bad*"])
    audits = json.loads((suite.pytester.path / "r.json").read_text())["audits"]
    found = [(a["result"]["name"], a["expect"], a["result"]["samples"] <= 30_000) for a in audits]
    assert found == [("test_privacy.py::bad", None, True), ("test_privacy.py::meant", "VIOLATION", True)]


def test_audits_in_fixtures_belong_to_the_session(suite: Any) -> None:
    suite.tests(
        "@pytest.fixture\ndef safe():\n"
        "    yield dpaudit.assert_private(dpaudit.batched(noisy), ONE, PAIR)\n"
        "    dpaudit.assert_private(dpaudit.batched(noisy), ONE, PAIR)\n"
        "@pytest.fixture\ndef unsafe():\n"
        "    try:\n        dpaudit.assert_private(dpaudit.batched(half), ONE, PAIR)\n    except AssertionError:\n        pass\n"
        "def test_safe(safe):\n    assert safe.alpha < 2e-9\n    assert safe.samples <= 30_000\n"
        "def test_unsafe(unsafe):\n    pass\n"
    )
    result = suite.run("--dpaudit-report", "r.json", "--dpaudit-samples", "30000")
    result.assert_outcomes(passed=1, errors=1)
    names = [a["result"]["name"] for a in json.loads((suite.pytester.path / "r.json").read_text())["audits"]]
    assert names == ["test_privacy.py::test_safe", "test_privacy.py::test_safe #2", "test_privacy.py::test_unsafe"]


@pytest.mark.parametrize("words", [(), ONE_WORKER], ids=["here", "xdist"])
def test_audits_that_could_not_run_are_in_the_reports(suite: Any, words: tuple[str, ...]) -> None:
    suite.audits(
        "def wrong(data, size, rng):\n    return [0.0]\n"
        "def missing():\n    raise KeyError('x')\n"
        + suite.audit("broken", "wrong")
        + suite.audit("good")
        + 'odd = dpaudit.Audit(name="odd", mechanism=missing, mechanism_is_factory=True, claim=ONE, neighbours=PAIR)\n'
    )
    suite.tests("def test_other():\n    assert False\n")
    result = suite.run("--dpaudit-report", "r.json", *words)
    assert result.ret == 1
    document = json.loads((suite.pytester.path / "r.json").read_text())
    assert sorted(failure["name"] for failure in document["failures"]) == ["broken", "odd"]
    assert (document["complete"], document["interrupted"]) == (False, False)
    assert [audit["result"]["name"] for audit in document["audits"]] == ["good"]


def test_the_short_summary_begins_with_the_numbers(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)  # pytest does not cut the line there
    suite.tests("def test_count():\n    dpaudit.assert_private(dpaudit.batched(half), ONE, PAIR, samples=100_000)\n")
    lines = [line for line in suite.run().outlines if line.startswith("FAILED")]
    assert len(lines) == 1
    assert lines[0].startswith("FAILED test_privacy.py::test_count - epsilon >= 2")
    assert ", claimed PureDP" in lines[0]
