"""Accuracy claims of the user's own: the test is valid and has power, the search finds and shrinks, files and runs know them."""

from __future__ import annotations

import io
import json
import math
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import DrawnData, MeanError, RootMeanSquaredError, Verdict, WithinError
from dpaudit.baseline import Baseline
from dpaudit.baseline.regressions import less_accurate, regressions
from dpaudit.cli import main as cli
from dpaudit.errors import AccuracyViolation, Inconclusive, InvalidArgument
from dpaudit.report import junit, markdown
from dpaudit.report.document import AccuracyEntry, Document
from dpaudit.utility.mean_test import MeanTest
from dpaudit.utility.result import AccuracyResult

ROWS = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def noisy_mean(data, size, rng):
    return float(np.mean(data)) + rng.laplace(scale=1.0 / len(data), size=size)


def upper_median(data, size, rng):
    return np.sort(data)[len(data) // 2] + rng.laplace(scale=0.01, size=size)


MEAN = dpaudit.batched(noisy_mean)


@pytest.mark.parametrize("claim", [WithinError(0.5, 0.05), MeanError(0.3), RootMeanSquaredError(0.7)])
def test_a_false_claim_is_refuted_on_the_smallest_data(claim):
    result = dpaudit.check_accuracy(MEAN, np.mean, claim, ROWS, samples=30_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.lower >= claim.limit
    assert result.data == "[0.0]"  # one record has the most noise
    truths = {WithinError: math.exp(-0.5), MeanError: 1.0, RootMeanSquaredError: 2.0}
    assert result.lower <= truths[type(claim)] <= result.upper


@pytest.mark.parametrize("claim", [WithinError(3.0, 0.06), MeanError(1.1), RootMeanSquaredError(1.6)])
def test_a_true_claim_holds_at_a_level(claim):
    result = dpaudit.check_accuracy(MEAN, np.mean, claim, ROWS, samples=30_000, examples=30)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.lower <= result.mean_score <= result.upper <= 2.0 * claim.limit
    assert "not about all data" in str(result)
    assert result.data_sets > 1


def test_the_search_finds_the_data_that_break_it():
    # The upper median is no median for an even number of records.
    result = dpaudit.check_accuracy(
        dpaudit.batched(upper_median), np.median, WithinError(0.2, 0.01), ROWS, samples=30_000
    )
    assert result.verdict is Verdict.VIOLATION
    assert len(eval(result.data)) == 2


@pytest.mark.parametrize(
    ("claim", "draw"),
    [
        (WithinError(0.5, 0.05), lambda rng, size: (rng.random(size) < 0.05).astype(float)),
        (MeanError(1.0), lambda rng, size: rng.exponential(size=size)),
        (RootMeanSquaredError(math.sqrt(2.0)), lambda rng, size: rng.laplace(size=size)),
    ],
)
def test_exactly_tight_claims_are_refuted_at_most_as_often_as_alpha(claim, draw):
    # 400 tests at alpha = 0.1: more than 77 refutations have probability below 1e-6 if each has at most 0.1.
    refuted = 0
    for seed in range(400):
        test = MeanTest(claim.limit, 0.1)
        test.add(claim.score(np.abs(draw(np.random.default_rng(seed), 300))))
        refuted += test.refuted
    assert refuted <= 77


def test_bounds_cover_the_mean():
    rng = np.random.default_rng(0)
    for _ in range(30):
        test = MeanTest(1.0, 1e-6)
        test.add(np.minimum(rng.exponential(size=500), 20.0))
        assert test.lower(1e-6) < 1.0 < test.upper(1e-6, 20.0)


def test_a_claim_without_exceptions_is_refuted_by_one():
    always = WithinError(10.0, beta=0.0)
    assert dpaudit.check_accuracy(MEAN, np.mean, always, [[0.5]], samples=2000).verdict is not Verdict.VIOLATION
    never = dpaudit.batched(lambda data, size, rng: np.full(size, 11.0))
    assert dpaudit.check_accuracy(never, 0.0, always, [[0.5]], samples=2000).verdict is Verdict.VIOLATION


def test_outputs_that_are_no_numbers_have_an_infinite_error():
    for output in (None, math.nan, "three"):
        broken = dpaudit.batched(lambda data, size, rng, output=output: [output] * size)
        result = dpaudit.check_accuracy(broken, 0.0, MeanError(1.0), [[1]], samples=1000)
        assert result.verdict is Verdict.VIOLATION
        assert math.isinf(result.lower)


def test_data_of_a_law_are_drawn_for_every_release():
    law = DrawnData(lambda rng: rng.random(50), "50 uniform records")
    result = dpaudit.check_accuracy(MEAN, 0.5, MeanError(0.06), law, samples=4000)
    # Sampling error (0.033 on average) and noise (0.02): the truth is the mean of the law, not of the sample.
    assert 0.03 < result.mean_score < 0.06
    assert result.data == "50 uniform records"
    assert dpaudit.check_accuracy(MEAN, np.mean, MeanError(0.06), law, samples=4000).mean_score < 0.025


def test_vectors_are_compared_coordinate_by_coordinate():
    pair = dpaudit.batched(lambda data, size, rng: np.tile([0.0, 3.0], (size, 1)))
    result = dpaudit.check_accuracy(pair, [0.0, 1.0], MeanError(1.5), [[0]], samples=1000)
    assert result.verdict is Verdict.VIOLATION
    assert result.mean_score == 2.0
    l1 = dpaudit.check_accuracy(
        pair, [1.0, 1.0], MeanError(2.5), [[0]], error=lambda a, b: np.abs(np.subtract(a, b)).sum(), samples=1000
    )
    assert l1.mean_score == 3.0


def test_assert_accurate_raises_with_the_data():
    with pytest.raises(AccuracyViolation, match="data:") as caught:
        dpaudit.assert_accurate(MEAN, np.mean, MeanError(0.1), [[0.2, 0.4]], samples=20_000)
    assert pickle.loads(pickle.dumps(caught.value)).result.verdict is Verdict.VIOLATION
    with pytest.raises(Inconclusive):
        dpaudit.assert_accurate(MEAN, np.mean, WithinError(10.0, 0.001), [[0.2]], samples=1000)
    with pytest.raises(TypeError, match="assert_accurate"):
        bool(dpaudit.check_accuracy(MEAN, np.mean, MeanError(0.1), [[0.2]], samples=1000))


def test_bad_arguments_name_what_is_allowed():
    with pytest.raises(InvalidArgument, match="must be one of WithinError"):
        dpaudit.check_accuracy(MEAN, np.mean, dpaudit.PureDP(1.0), [[0.2]])
    with pytest.raises(InvalidArgument, match="holds no data set"):
        dpaudit.check_accuracy(MEAN, np.mean, MeanError(1.0), [])
    with pytest.raises(InvalidArgument, match=r"largest=0\.5 must be above"):
        MeanError(1.0, largest=0.5)


AUDITS = """
import dpaudit, numpy as np

def noisy(data, size, rng):
    return len(data) + rng.laplace(scale={scale}, size=size)

count = dpaudit.AccuracyAudit(name="count", mechanism=dpaudit.batched(noisy), truth=len, claim=dpaudit.MeanError(1.5),
                              data=[[1, 2]], options={{"samples": 20_000}})
"""


def run(tmp_path, monkeypatch, scale, *arguments):
    (tmp_path / "audits").mkdir(exist_ok=True)
    (tmp_path / "audits" / f"count_{str(scale).replace('.', '_')}.py").write_text(AUDITS.format(scale=scale))
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    name = f"audits/count_{str(scale).replace('.', '_')}.py"
    return cli.main(["run", name, *arguments], stdout=out), out.getvalue()


def test_dpaudit_run_collects_them_and_baselines_notice(tmp_path, monkeypatch):
    code, text = run(tmp_path, monkeypatch, 1.0, "--save-baseline", "base.json", "--output", "results.json")
    assert code == 0, text
    assert "NO_VIOLATION_FOUND" in text
    assert "1 audit: 1 NO_VIOLATION_FOUND" in text
    stored = json.loads((tmp_path / "results.json").read_text())["accuracy"]
    assert stored[0]["result"]["claim"] == {"kind": "MeanError", "error": 1.5, "largest": "inf"}
    assert Document.from_json((tmp_path / "results.json").read_text()).accuracy[0].result.name == "count"
    code, text = run(tmp_path, monkeypatch, 1.2, "--baseline", "base.json")
    assert code == 1, text
    assert "REGRESSION  count: it is less accurate on [1, 2]" in text
    code, text = run(tmp_path, monkeypatch, 3.0, "--baseline", "base.json")
    assert code == 1
    assert "VIOLATION" in text
    assert "data:  [1, 2]" in text


def test_pytest_collects_accuracy_audits(pytester, monkeypatch):
    pytester.makepyprojecttoml('[tool.dpaudit]\naudits = ["audits"]\n')
    (pytester.path / "audits").mkdir()
    (pytester.path / "audits" / "good.py").write_text(AUDITS.format(scale=1.0))
    (pytester.path / "audits" / "bad.py").write_text(AUDITS.format(scale=3.0).replace('name="count"', 'name="bad"'))
    (pytester.path / "test_it.py").write_text(
        "import dpaudit\n"
        "def test_it():\n"
        "    noisy = dpaudit.batched(lambda data, size, rng: 1.0 + rng.laplace(size=size))\n"
        "    dpaudit.assert_accurate(noisy, 1.0, dpaudit.MeanError(1.2), [[0]], samples=20_000)\n"
    )
    result = pytester.runpytest_inprocess("-p", "dpaudit", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*mean error * or more*"])


def test_results_and_baselines_are_read_back():
    result = dpaudit.check_accuracy(MEAN, np.mean, MeanError(0.1), [[0.2, 0.4]], samples=5000, name="mean")
    assert AccuracyResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    document = Document(entries=(), accuracy=(AccuracyEntry(result=result),))
    assert document.exit_code() == 1
    base = Baseline.of(document)
    assert Baseline.from_json(base.to_json()).accuracy["mean"] == result
    assert regressions(base, base) == []
    weaker = dpaudit.check_accuracy(MEAN, np.mean, MeanError(0.9), [[0.2, 0.4]], samples=5000, name="mean")
    assert "does not imply it" in less_accurate(result, weaker)


def test_junit_and_markdown_show_accuracy():
    result = dpaudit.check_accuracy(MEAN, np.mean, MeanError(0.1), [[0.2, 0.4]], samples=5000, name="mean <b>\x1b[31m")
    document = Document(entries=(), accuracy=(AccuracyEntry(result=result, path="audits/a.py"),))
    suite = ElementTree.fromstring(junit.render(document))
    assert suite.attrib["failures"] == "1"
    assert "data:  [0.2, 0.4]" in suite.find(".//failure").text
    text = markdown.render(document)
    assert "| VIOLATION | mean \\<b\\>" in text
    assert "data:  [0.2, 0.4]" in text
    assert "\x1b" not in text


def test_tradeoff_measures_error_and_epsilon(tmp_path, monkeypatch):
    (tmp_path / "curves.py").write_text(
        "import dpaudit\n"
        "from dpaudit.mechanisms.laplace import LaplaceMechanism\n"
        "exact = dpaudit.Tradeoff(name='laplace', make=lambda e: LaplaceMechanism(e), values=[0.5, 1, 2], truth=0.0, data=0.0,\n"
        "                         neighbours=[(0.0, 1.0)], parameter='epsilon')\n"
        "def noisy(scale):\n"
        "    return dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=scale, size=size))\n"
        "black_box = dpaudit.Tradeoff(name='count', make=noisy, values=[0.5, 2.0], truth=len, data=[1], neighbours=[([], [1])])\n"
    )
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    assert cli.main(["tradeoff", "curves.py:exact", "--json", "--plot", "curve.svg"], stdout=out) == 0
    points = json.loads(out.getvalue())["points"]
    assert [point["epsilon"] for point in points] == pytest.approx([0.5, 1.0, 2.0])
    assert [point["mean_error"] for point in points] == pytest.approx([2.0, 1.0, 0.5], rel=0.1)
    assert "mean error" in (tmp_path / "curve.svg").read_text()
    out = io.StringIO()
    assert cli.main(["tradeoff", "curves.py:black_box", "--samples", "20000"], stdout=out) == 0
    assert ">= 1." in out.getvalue()  # true epsilons are 2 and 0.5, and bounds are below them
    assert cli.main(["tradeoff", "curves.py:noisy"], stdout=out) == 2
