"""Everything that leaves an audit: results, work for them, scripts that repeat the measurement; and the front doors."""

from __future__ import annotations

import contextlib
import io
import json
import math
import multiprocessing
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import MechanismError, PureDP, Result, Verdict, neighbours
from dpaudit.engine.sampling import executor as task_runner
from mechanisms.broken.laplace import MisscaledLaplace
from tests.engine.short_audits import CLAIM, PAIR, audit, laplace, noisy_count, same

RESULTS: dict[str, Callable[[], Result]] = {
    "violation": lambda: audit(noisy_count(0.3)),
    "infinite": lambda: audit(len),
    "nothing": lambda: audit(noisy_count(1.0)),
    "inconclusive": lambda: audit(noisy_count(1.0), samples=300),
    "zero-concentrated": lambda: dpaudit.audit(noisy_count(1.0), dpaudit.ZeroConcentratedDP(0.5), PAIR, samples=3000),
    "approximate": lambda: dpaudit.audit(len, dpaudit.ApproxDP(1.0, 1e-5), PAIR, samples=3000, name="inf"),
    "Renyi": lambda: dpaudit.audit(noisy_count(1.0), dpaudit.RenyiDP(4.0, 0.5), PAIR, samples=3000),
    "related": lambda: dpaudit.audit(
        noisy_count(1.0),
        PureDP(1.0, dpaudit.Relation.ADD_REMOVE),
        neighbours.add_remove(st.integers(0, 3), max_size=2),
        samples=3000,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_pickle_and_convert(name: str) -> None:
    result = RESULTS[name]()
    assert pickle.loads(pickle.dumps(result)) == result
    text = json.dumps(result.to_dict(), allow_nan=False)
    again = Result.from_dict(json.loads(text))
    assert again == result
    assert str(again) == str(result)
    assert json.dumps(again.to_dict(), allow_nan=False) == text


def test_the_same_seed_gives_the_same_result() -> None:
    for mechanism in (noisy_count(0.5), noisy_count(1.0), laplace):
        assert same(audit(mechanism, seed=7), audit(mechanism, seed=7))
    assert not same(audit(noisy_count(1.0), seed=7), audit(noisy_count(1.0), seed=8))
    first = audit(noisy_count(1.0), seed=None)
    assert same(first, audit(noisy_count(1.0), seed=first.seed))


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """Write a module that workers and scripts can import."""
    made: list[str] = []

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        made.append(name)
        return str(tmp_path)

    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    for name in made:
        sys.modules.pop(name, None)


WHERE = [(np.array([0.0]), np.array([1.0])), (np.array([5.0]), np.array([4.0]))]


@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_workers_change_nothing(factor: float, processes: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Executor | None] = []
    submit = task_runner.TaskRunner.submit

    def noted(team: task_runner.TaskRunner, *task: Any) -> Any:
        sent.append(team.executor)
        return submit(team, *task)

    monkeypatch.setattr(task_runner.TaskRunner, "submit", noted)
    monkeypatch.setattr(task_runner, "WORTH_SENDING", 1e-5)  # so quick a mechanism would not be sent away
    mechanism = MisscaledLaplace(1.0, factor)
    options = {"samples": 100_000, "seed": 3}
    alone = dpaudit.audit(mechanism, mechanism.claim, WHERE, **options)
    with ThreadPoolExecutor(3) as threads:
        for executor in (threads, processes):
            assert same(alone, dpaudit.audit(mechanism, mechanism.claim, WHERE, executor=executor, **options))
            assert sent.count(executor) > 10


def test_workers_change_nothing_for_plain_functions() -> None:
    """Global generators are seeded per block; threads must not seed them under each other's feet."""

    def slow(data: list[int]) -> float:
        time.sleep(1e-5)
        return laplace(data)

    alone = audit(slow)
    with ThreadPoolExecutor(4) as threads:
        assert same(alone, audit(slow, executor=threads))


def test_workers_that_share_random_state_are_refused(module: Callable[[str, str], str]) -> None:
    module(
        "shares_its_generator",
        "import time\nimport numpy as np\nRNG = np.random.default_rng(0)\n\n"
        "def release(data):\n    time.sleep(2e-5)\n    return len(data) + RNG.laplace()\n\n"
        "def make():\n    return release\n",
    )
    with (
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor,
        pytest.raises(MechanismError, match="share random state"),
    ):
        audit("shares_its_generator:make", samples=100_000, executor=executor)


def test_a_mechanism_that_cannot_be_pickled_is_an_error_with_advice(processes: Executor) -> None:
    def slow(data: list[int]) -> float:
        time.sleep(2e-5)
        return laplace(data)

    with pytest.raises(dpaudit.InvalidArgument, match=r"package\.module:factory"):
        audit(slow, executor=processes)


# The script at the end of a violation


def repeated(text: str, folder: str) -> str:
    """Return the output of a script in another process: it shares neither the names of this one nor its hashes of strings."""
    printed = io.StringIO()
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(text, "script", "exec"), {"__name__": "__main__"})
    finally:
        sys.path.remove(folder)
    return printed.getvalue()


SCRIPTED = {
    "number": "return len(data) + rng.laplace(scale=0.3)",
    "category": "return 'even' if (len(data) + int(rng.laplace(scale=0.2))) % 2 == 0 else 'odd'",
    "long category": "return ('even' if (len(data) + int(rng.laplace(scale=0.2))) % 2 == 0 else 'odd') + 'x' * 300",
    "exception": "if not data and rng.random() < 0.5:\n        raise KeyError('empty')\n    return 1.5",
    "vector": "return (len(data) + rng.laplace(scale=0.3, size=3)).tolist()",
    "ragged": "return [1.5] * (1 + int(rng.random() < (0.9 if data else 0.1)))",
    "dict": "return {'n': 3, 'extra': 1} if data and rng.random() < 0.5 else {'n': 3}",
    "missing": "return None if data and rng.random() < 0.5 else float('nan') if rng.random() < 0.3 else 2.5",
    "exact": "return 0.25 if data and rng.random() < 0.4 else rng.random()",
    "type": "return True if rng.random() < (0.9 if data else 0.1) else 1.0",
    "end of a long string": "return 'x' * 3000 + ('a' if rng.random() < (0.9 if data else 0.1) else 'b')",
    "order of keys": "return {'a': 1, 'b': 2} if rng.random() < (0.9 if data else 0.1) else {'b': 2, 'a': 1}",
    "date": (
        "import datetime\n    return datetime.date(2020, 1, 1) + datetime.timedelta(round(5 * len(data) + rng.laplace()))"
    ),
    "masked": (
        "import numpy as np\n    return np.ma.masked_array([1.0, 2.0], [rng.random() < (0.9 if data else 0.1), False])"
    ),
    "missing in pandas": "import pandas\n    return pandas.NA if rng.random() < (0.9 if data else 0.1) else 1.0",
    "columns": (
        "import pandas\n    return pandas.DataFrame({'a' if rng.random() < (0.9 if data else 0.1) else 'b': [1.0]})"
    ),
    "cyclic": "loop = [int(rng.random() < (0.9 if data else 0.1))]\n    loop.append(loop)\n    return loop",
    "object": "import types\n    return types.SimpleNamespace(value=5 * len(data) + rng.laplace())",
    "large integer": "return 10**17 + int(1e6 * (5 * len(data) + rng.laplace()))",
}


@pytest.mark.parametrize("name", SCRIPTED)
def test_the_script_repeats_the_measurement(name: str, module: Callable[[str, str], str], processes: Executor) -> None:
    file = f"scripted_{name.replace(' ', '_')}"
    folder = module(file, f"def release(data, rng):\n    {SCRIPTED[name]}\n")
    function = getattr(__import__(file), "release")  # noqa: B009 - the module is made by the test
    result = audit(dpaudit.per_release(function), samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    witness = result.witness
    assert witness is not None
    script = witness.script()
    assert f"from {file} import release" in script
    compile(script, "script", "exec")
    assert "PLACEHOLDER" not in script
    printed = processes.submit(repeated, script, folder).result(timeout=60.0)
    on_data, on_neighbour = (int(line.split(":")[1].split()[0]) for line in printed.splitlines()[:2])
    trials = witness.on_data.trials
    for count, expected in ((on_data, witness.on_data), (on_neighbour, witness.on_neighbour)):
        # Fresh draws of the same event: within six standard errors of a difference (probability 2e-9 each).
        p = (count + expected.count + 1) / (2 * trials + 2)
        assert abs(count - expected.count) <= 6.0 * math.sqrt(2 * trials * p * (1 - p)) + 1
    assert on_data > on_neighbour


def test_data_without_source_become_a_marked_placeholder() -> None:
    class KeyTable:
        def __init__(self, rows: int) -> None:
            self.rows = rows

        def __repr__(self) -> str:
            return f"<KeyTable of {self.rows} rows>"

    result = audit(lambda data: data.rows, [(KeyTable(0), KeyTable(1))])
    assert result.witness is not None
    assert not result.witness.literal
    script = result.witness.script()
    compile(script, "script", "exec")
    assert script.count("PLACEHOLDER") >= 2
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr  # it says what is missing instead
    assert "Fill in the mechanism " in done.stderr
    assert "<lambda> cannot be imported by name: put it here" in script


def test_a_class_without_a_repr_is_named_in_the_script(module: Callable[[str, str], str]) -> None:
    module("audited_class", "class Tells:\n    def sample(self, data, size, rng):\n        return [len(data)] * size\n")
    mechanism = __import__("audited_class").Tells()
    result = audit(mechanism)
    assert result.witness is not None
    script = result.witness.script()
    compile(script, "script", "exec")
    assert "the mechanism is of audited_class.Tells, whose repr does not make it again" in script
    assert "give the class a repr that makes it again, e.g. a dataclass" in script
    assert "placeholder('the mechanism audited_class.Tells')" in script


def test_importable_objects_need_no_placeholder() -> None:
    mechanism = MisscaledLaplace(1.0, 0.4)
    result = dpaudit.audit(mechanism, mechanism.claim, WHERE, samples=20_000, seed=1)
    assert result.witness is not None
    script = result.witness.script()
    assert "PLACEHOLDER" not in script
    run = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "log-ratio" in done.stdout


# Front doors


def test_assert_private() -> None:
    with pytest.raises(dpaudit.PrivacyViolation, match="VIOLATION") as caught:
        dpaudit.assert_private(noisy_count(0.3), CLAIM, PAIR, samples=6000)
    assert caught.value.result.verdict is Verdict.VIOLATION
    assert pickle.loads(pickle.dumps(caught.value)).result == caught.value.result
    with pytest.raises(dpaudit.Inconclusive):
        dpaudit.assert_private(noisy_count(1.0), CLAIM, PAIR, samples=300)
    few = dpaudit.assert_private(noisy_count(1.0), CLAIM, PAIR, samples=300, allow_inconclusive=True)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert dpaudit.assert_private(noisy_count(1.0), CLAIM, PAIR, samples=20_000).verdict is Verdict.NO_VIOLATION_FOUND


def test_budgets_are_kept() -> None:
    for samples in (2, 3, 50, 100, 261, 500, 1999, 5000):
        calls = 0

        def counted(data: list[int]) -> float:
            nonlocal calls
            calls += 1
            return laplace(data)

        result = audit(counted, samples=samples)
        assert result.samples <= samples
        assert calls <= samples
        assert result.samples >= calls


def test_nothing_is_printed_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    audit(noisy_count(1.0))
    audit(noisy_count(0.5))
    assert capfd.readouterr() == ("", "")


def test_progress_shows_samples_and_evidence(capfd: pytest.CaptureFixture[str]) -> None:
    def slow(data: list[int], size: int, rng: np.random.Generator) -> Any:
        time.sleep(0.002)  # long enough for the bar to be drawn
        return len(data) + rng.laplace(size=size)

    audit(dpaudit.batched(slow), progress=True)
    shown = capfd.readouterr().err
    assert "evidence" in shown
    assert "6.00k" in shown


def test_progress_goes_on_while_a_small_example_is_sought_and_changes_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    where = neighbours.add_remove(st.integers(0, 5), min_size=1, max_size=4)
    silent, watched = (audit(noisy_count(0.5), where, samples=20_000, progress=wanted) for wanted in (False, True))
    shown = capfd.readouterr().err
    assert "violation found, shrinking: 0 pairs tried, 0 s" in shown
    assert "violation found, confirming, " in shown
    assert replace(watched, seconds=0.0) == replace(silent, seconds=0.0)
