"""Baselines: what counts as a regression, plain events and data without execution, and files from anywhere."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit import baseline
from dpaudit._util.literals import rebuild
from dpaudit._util.values import fingerprint, source
from dpaudit.baseline import Baseline, Leading, Stored, measure, regressions, trials_for
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP, Relation, Verdict
from dpaudit.engine.encoding.batch import encode, structure
from dpaudit.engine.evidence.e_process import Points
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.float_bits import build_bit_views
from dpaudit.engine.views.learner import Learner, Settled
from dpaudit.engine.views.plain_events import log_ratio_interval, read_event
from dpaudit.engine.witness.event import simplest
from dpaudit.errors import InvalidArgument
from dpaudit.report.document import Document, Entry
from dpaudit.result.model import Channel

BELOW = {"any": [{"column": 0, "within": [["-inf", 0.5]]}]}
LEADING = Leading(
    data="[]", neighbour="[1]", text="output < 0.5", event=BELOW, on_data=(700, 1000), on_neighbour=(300, 1000)
)
STORED = Stored(
    name="count",
    path="audits/a.py",
    claim=PureDP(1.0),
    verdict=Verdict.NO_VIOLATION_FOUND,
    expect=None,
    channel=Channel.VALUE,
    alpha=1e-6,
    samples=1000,
    seed=0,
    epsilon_lower=0.8,
    delta=0.0,
    detectable_epsilon=1.1,
    leading=LEADING,
)


def of(*stored: Stored) -> Baseline:
    return Baseline(audits={one.name: one for one in stored})


def kinds(new: Stored, old: Stored = STORED) -> list[str]:
    return [regression.kind for regression in regressions(of(old), of(new))]


def test_nothing_changed() -> None:
    assert kinds(STORED) == []


def test_new_audits_are_no_regression() -> None:
    assert regressions(of(STORED), of(STORED, replace(STORED, name="new"))) == []


def test_vanished() -> None:
    found = regressions(of(STORED), of())
    assert [str(one) for one in found] == ["count: the audit is gone (it was in audits/a.py)."]
    assert regressions(of(STORED), of(), expected=lambda stored: stored.path != "audits/a.py") == []
    assert kinds(replace(STORED, channel=Channel.REPRESENTATION)) == ["vanished"]


@pytest.mark.parametrize(
    ("old", "new", "lower", "delta", "verdict", "expected"),
    [
        (PureDP(1.0), PureDP(1.0), 1.0, 0.0, Verdict.VIOLATION, ["refuted"]),
        (PureDP(1.0), PureDP(1.0), 1.3, 0.0, Verdict.VIOLATION, ["refuted"]),
        # Hidden by a weaker claim: nothing is violated today, and the old promise is broken all the same.
        (PureDP(1.0), PureDP(2.0), 1.3, 0.0, Verdict.NO_VIOLATION_FOUND, ["refuted", "weakened"]),
        (PureDP(1.0), PureDP(2.0), 1.0, 0.0, Verdict.NO_VIOLATION_FOUND, ["weakened"]),
        # A stronger claim that is refuted says nothing about the weaker one.
        (PureDP(2.0), PureDP(1.0), 1.3, 0.0, Verdict.VIOLATION, []),
        (PureDP(1.0), ApproxDP(1.0, 1e-5), 1.2, 1e-5, Verdict.VIOLATION, ["refuted", "weakened"]),
        (ApproxDP(1.0, 1e-5), PureDP(1.0), 1.2, 0.0, Verdict.VIOLATION, []),
        # The claim is the same: only the verdict counts. With the bound on epsilon the check would cost two alphas.
        (GaussianDP(0.1), GaussianDP(0.1), 3.0, 1e-5, Verdict.NO_VIOLATION_FOUND, []),
        (GaussianDP(0.1), GaussianDP(0.1), 3.0, 1e-5, Verdict.VIOLATION, ["refuted"]),
        (GaussianDP(0.1), GaussianDP(0.2), 3.0, 1e-5, Verdict.NO_VIOLATION_FOUND, ["refuted", "weakened"]),
        (PureDP(1.0, relation=Relation.SUBSTITUTE), PureDP(1.0), 0.0, 0.0, Verdict.NO_VIOLATION_FOUND, ["weakened"]),
        (PureDP(1.0), PureDP(1.0, relation=Relation.SUBSTITUTE), 0.0, 0.0, Verdict.NO_VIOLATION_FOUND, []),
        (PureDP(1.0), PureDP(0.9), 0.0, 0.0, Verdict.NO_VIOLATION_FOUND, []),
    ],
)
def test_refuted_and_weakened(
    old: Claim, new: Claim, lower: float, delta: float, verdict: Verdict, expected: list[str]
) -> None:
    after = replace(
        STORED, claim=new, epsilon_lower=lower, delta=delta, verdict=verdict, detectable_epsilon=new.parameter
    )
    assert kinds(after, replace(STORED, claim=old, detectable_epsilon=10.0)) == expected


def test_a_check_costs_one_alpha() -> None:
    """The intervals of a change are as wide as a tenth of alpha asks for, where the verdict has nine tenths."""
    alpha = 0.09
    counts = {"on_data": (600, 1000), "on_neighbour": (500, 1000)}
    stored = replace(STORED, alpha=alpha, leading=replace(LEADING, **counts))
    for right in range(600, 1000):
        now = replace(stored, leading=replace(LEADING, on_data=(right, 1000), on_neighbour=(500, 1000)))
        low = log_ratio_interval((right, 1000), (500, 1000), 0.005)[0]
        high = log_ratio_interval((600, 1000), (500, 1000), 0.005)[1]
        assert kinds(now, stored) == (["changed"] if low > high else [])


def test_a_violation_in_the_baseline_is_no_regression() -> None:
    broken = replace(STORED, verdict=Verdict.VIOLATION, expect=Verdict.VIOLATION, epsilon_lower=1.5)
    assert kinds(broken, broken) == []


@pytest.mark.parametrize(
    ("detectable", "verdict", "expected"),
    [
        (1.12, Verdict.NO_VIOLATION_FOUND, []),
        (1.21, Verdict.NO_VIOLATION_FOUND, []),  # twice the margin: a busy machine
        (1.25, Verdict.NO_VIOLATION_FOUND, ["power"]),
        (math.inf, Verdict.NO_VIOLATION_FOUND, ["power"]),
        (1.1, Verdict.INCONCLUSIVE, ["power"]),
        (math.inf, Verdict.VIOLATION, ["refuted"]),
        (1.01, Verdict.NO_VIOLATION_FOUND, []),
    ],
)
def test_power(detectable: float, verdict: Verdict, expected: list[str]) -> None:
    assert kinds(replace(STORED, detectable_epsilon=detectable, verdict=verdict)) == expected


@pytest.mark.parametrize(
    ("on_data", "on_neighbour", "expected"),
    [
        ((700, 1000), (300, 1000), ""),
        ((720, 1000), (290, 1000), ""),
        ((900, 1000), (50, 1000), "differs more"),
        ((500, 1000), (500, 1000), "differs less"),
        ((0, 1000), (0, 1000), ""),
    ],
)
def test_another_log_ratio(on_data: tuple[int, int], on_neighbour: tuple[int, int], expected: str) -> None:
    now = replace(LEADING, on_data=on_data, on_neighbour=on_neighbour)
    for found in (
        regressions(of(STORED), of(STORED), measured={"count": now}),
        regressions(of(STORED), of(replace(STORED, leading=now))),
    ):
        assert [one.kind for one in found] == (["changed"] if expected else [])
        assert all(expected in str(one) and "output < 0.5" in str(one) for one in found)


@pytest.mark.parametrize(
    "other", [None, replace(LEADING, data="[2]"), replace(LEADING, event=None), replace(LEADING, text="other")]
)
def test_other_questions_are_not_compared(other: Leading | None) -> None:
    far = None if other is None else replace(other, on_data=(1, 1000), on_neighbour=(999, 1000))
    assert kinds(replace(STORED, leading=far)) == []
    if other is not None and other.event is None:  # two learned scores may have one text
        assert kinds(replace(STORED, leading=far), replace(STORED, leading=other)) == []


@pytest.mark.parametrize(("count", "trials", "alpha"), [(3, 50, 1e-3), (70, 100, 1e-9), (0, 20, 0.05), (20, 20, 0.05)])
def test_log_ratio_intervals_against_binomial_tails(count: int, trials: int, alpha: float) -> None:
    # Clopper and Pearson 1934: the ends are where a tail of the binomial law is half the level. Tails by mpmath.
    mpmath.mp.dps = 40

    def tail(p: Any, ks: range) -> Any:
        return mpmath.fsum(mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in ks)

    def where(rises: bool, ks: range) -> Any:
        """The point at which the tail, which rises or falls with p, is half the level of one share, which has half of alpha."""
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if (tail(middle, ks) < mpmath.mpf(alpha) / 4) == rises else (low, middle)
        return low

    low = where(True, range(count, trials + 1)) if count else mpmath.mpf(0)
    high = where(False, range(count + 1)) if count < trials else mpmath.mpf(1)
    found = log_ratio_interval((count, trials), (count, trials), alpha)
    expected = float(mpmath.log(high / low)) if low else math.inf
    assert found == pytest.approx((-expected, expected), rel=1e-7)


# Files


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    full = of(
        STORED,
        replace(STORED, name="other", leading=None, detectable_epsilon=math.inf, claim=ApproxDP(1.0, 1e-5)),
        replace(STORED, name="expected", expect=Verdict.VIOLATION, claim=GaussianDP(1.0, relation=Relation.ADD_REMOVE)),
    )
    path = tmp_path / "deep" / "base.json"
    baseline.save(path, full)
    again = baseline.read(path)
    assert again == full
    assert again.to_json() == path.read_text() == full.to_json()
    assert not list(path.parent.glob(".*"))


def test_results_of_a_run_are_read_too(tmp_path: Path) -> None:
    result = dpaudit.audit(lambda data: len(data), PureDP(1.0), [([], [1])], samples=200)
    document = Document(entries=(Entry(result=result, path="a.py"),))
    path = tmp_path / "results.json"
    path.write_text(document.to_json())
    assert baseline.read(path) == Baseline.of(document)
    assert baseline.compare_files(path, path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "was not written by dpaudit"),
        ("{}", "was not written by dpaudit"),
        ('{"kind": "baseline"}', "was not written by dpaudit"),
        ('{"kind": "baseline", "tool": "dpaudit", "format": 2}', "has format 2; this version reads format 1"),
        ('{"kind": "baseline", "tool": "dpaudit", "format": 1}', "is damaged: KeyError"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=message):
        baseline.read(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("claim", "kind"), "Audit"),
        (("verdict",), "FINE"),
        (("alpha",), 2.0),
        (("epsilon_lower",), "nan"),
        (("leading", "on_data"), [5, 4]),
        (("leading", "on_data"), [1.5, 4]),
        (("leading", "on_data"), [True, 4]),
        (("leading", "data"), 3),
        (("leading", "event", "any"), [{"code": "xyz"}]),
        (("leading", "event", "any"), [{"column": -1, "nan": True}]),
        (("leading", "event", "any"), [{"eval": "1"}]),
        (("leading", "event", "not"), 1),
        (("path",), None),
    ],
)
def test_values_that_are_refused(tmp_path: Path, place: tuple[str, ...], value: Any) -> None:
    plain = json.loads(of(STORED).to_json())
    holder = plain["audits"]["count"]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path = tmp_path / "base.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(InvalidArgument, match=r"base\.json is damaged"):
        baseline.read(path)


def test_a_missing_file() -> None:
    with pytest.raises(InvalidArgument, match=r"'missing\.json' cannot be read"):
        baseline.read(Path("missing.json"))


# Data without execution

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.complex_numbers(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        | st.frozensets(st.integers(0, 9), max_size=3)
        | st.sets(st.integers(0, 9), max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(PLAIN)
def test_plain_data_are_read_as_they_were_written(value: Any) -> None:
    try:
        again = rebuild(source(value))
    except InvalidArgument:
        # The signs of complex zeros are not in their source.
        assert "j" in source(value)
    else:
        assert fingerprint(again) == fingerprint(value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([0.0, math.inf, math.nan]),
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.zeros((0, 2)),
        np.array(["a", "bc"]),
        [np.float64(1.5), np.int64(3)],
        pd.DataFrame({"age": [1, 2], "name": ["x", "y"]}),
        pd.DataFrame({"age": pd.Series([], dtype="int64")}),
    ],
    ids=["floats", "table", "empty", "words", "scalars", "frame", "empty frame"],
)
def test_arrays_and_frames_are_read_as_they_were_written(value: Any) -> None:
    assert fingerprint(rebuild(source(value))) == fingerprint(value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "[x for x in range(3)]",
        "np.load('x')",
        "np.array([1], dtype='O')",
        "np.array([1], like=[1])",
        "pd.read_csv('x')",
        "pd.DataFrame({'a': [1]}).astype({'a': 'no such type'})",
        "float('1')",
        "(lambda: 1)()",
        "-'a'",
        "1 + 1",
        "f'{1}'",
        "Secret(1)",
        "",
        "(" * 500,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="has no plain form"):
        rebuild(text)


# Events without execution


def test_events_by_hand() -> None:
    batch = encode([1.0, 2.5, None, math.nan, math.inf, -math.inf, "word", 3])
    whole = [structure(output) for output in (1.0, None, "word", 3)]
    assert whole == ["number", "None", "'word'", "number"]
    codes = [f"{int(code):016x}" for code in batch.codes]

    def chosen(*parts: dict[str, Any], negated: bool = False) -> list[int]:
        event = {"any": list(parts), "not": negated}
        return np.flatnonzero(read_event(event).contains(batch)).tolist()

    assert chosen({"column": 0, "within": [[1.0, 2.5]]}) == [0]
    assert chosen({"column": 0, "within": [[1.0, "inf"]]}) == [0, 1, 7]
    assert chosen({"column": 0, "within": [[1.0, None]]}) == [0, 1, 4, 7]
    assert chosen({"column": 0, "equals": [2.5, 3]}) == [1, 7]
    assert chosen({"column": 0, "nan": True}) == [2, 3, 6]  # where there is no number
    assert chosen({"code": codes[0], "column": 0, "nan": True}) == [3]
    assert chosen({"code": codes[2]}, {"code": codes[6]}) == [2, 6]
    assert chosen({"other_than": [codes[0], codes[7]]}) == [2, 6]
    assert chosen({"code": codes[2]}, negated=True) == [0, 1, 3, 4, 5, 6, 7]
    assert chosen({"linear": [[0, 2.0], [1, 5.0]], "offset": 1.0, "within": [[3.5, 5.5]]}) == [1, 7]
    assert chosen() == []
    batch = encode([0.0, -0.0, 0.75, 0.1, -12.34, 1 / 3, math.inf, math.nan])
    for grids, found in (([-1100], [0, 6, 7]), ([-1101], [1]), ([-2], [2]), ([2001, 2002], [3, 4]), ([-54], [5])):
        assert chosen({"column": 0, "within": [["-inf", None]], "nan": True, "lowest_bit": grids}) == found
    assert chosen({"column": 1, "nan": True, "lowest_bit": [2001], "other_bits": True}) == [*range(8)]


@pytest.mark.parametrize("grid", [-1102, -1099, 1024, 2000, 2023, -54.0, True, "2001", None])
@pytest.mark.parametrize("column", [0, 1])
def test_grids_that_no_number_is_on_are_refused(grid: Any, column: int) -> None:
    with pytest.raises(InvalidArgument, match="is no grid of numbers"):
        read_event({"any": [{"column": column, "lowest_bit": [grid]}]})


MECHANISMS = {
    "float": lambda shift, rng: shift + rng.laplace(),
    "integer": lambda shift, rng: int(shift + rng.geometric(0.5)),
    "some raise, some are None": lambda shift, rng: None if rng.random() < 0.3 + 0.2 * shift else shift + rng.normal(),
    "words": lambda shift, rng: "yes" if rng.random() < 0.3 + 0.4 * shift else "no",
    "vector": lambda shift, rng: rng.normal(size=3) + np.array([shift, 0.0, shift]),
    "ragged": lambda shift, rng: [1.0] * int(rng.integers(1, 3 + shift)),
    "dictionary": lambda shift, rng: {"a": shift + rng.normal(), "b": 1},
    "with infinities": lambda shift, rng: math.inf if rng.random() < 0.2 + 0.3 * shift else rng.normal(),
    "with NaN": lambda shift, rng: math.nan if rng.random() < 0.2 + 0.3 * shift else rng.normal(),
    "repeated": lambda shift, rng: (1.0, 2.0) if rng.random() < 0.1 + 0.3 * shift else (rng.normal(), rng.normal()),
    "rounded": lambda shift, rng: round(rng.normal(), 2 + shift),
    "signs of zero": lambda shift, rng: math.copysign(max(rng.normal(), 0.0), 0.5 + rng.random() - shift),
}


BITS = ("float", "vector", "ragged", "with infinities", "with NaN", "rounded", "signs of zero")


@pytest.mark.parametrize(
    ("name", "build"), [*((name, build_views) for name in MECHANISMS), *((name, build_bit_views) for name in BITS)]
)
def test_events_of_the_engine_mean_the_same_as_plain_data(name: str, build: Any) -> None:
    rng = np.random.default_rng(0)
    learn, fresh = ([encode([MECHANISMS[name](shift, rng) for _ in range(1500)]) for shift in (0, 1)] for _ in range(2))
    learner = Learner(build)
    learner.settle(Settled((), (learn[0], learn[1])), 1500)
    compared = 0
    for view in learner.views:
        event = simplest(learner.kept(), [view], Points.of([(0.1, 0.0)]), learner.labels)
        plain = None if event is None else event.condition.plain()
        if event is None or plain is None:
            continue
        plain = json.loads(json.dumps(plain).replace("-Infinity", '"-inf"').replace("Infinity", '"inf"'))
        for batch in fresh:
            assert (read_event(plain).contains(batch) == event.contains(batch)).all()
        compared += 1
    assert compared


# Measuring


def noisy(scale: float) -> Any:
    return dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=scale, size=size))


def test_an_unchanged_mechanism_gives_the_very_counts_of_before() -> None:
    first = measure(noisy(1.0), LEADING, seed=3, trials=5000)
    assert first.on_data is not None
    assert first.on_data[1] == 5000
    assert measure(noisy(1.0), first, seed=3, trials=5000) == first
    # P(Laplace(0, 1) < 1/2) = 1 - exp(-1/2) / 2 = 0.6967; six standard deviations of 5000 draws are 0.039.
    assert first.on_data[0] / 5000 == pytest.approx(1 - math.exp(-0.5) / 2, abs=0.039)


def test_a_change_is_seen_and_chance_is_not() -> None:
    stored = replace(STORED, leading=measure(noisy(1.0), LEADING, seed=0, trials=20_000))
    for scale, seed, expected in ((1.0, 1, []), (1.0, 2, []), (2.0, 1, ["changed"]), (0.5, 1, ["changed"])):
        again = measure(noisy(scale), LEADING, seed=seed, trials=20_000)
        found = regressions(of(stored), of(stored), measured={"count": again})
        assert [one.kind for one in found] == expected


def test_a_call_that_raises_is_measured_one_by_one() -> None:
    def sometimes(data: Any, size: int, rng: np.random.Generator) -> Any:
        if (rng.random(size) < 0.5).any():
            raise ValueError("unlucky")
        return np.zeros(size)

    found = measure(dpaudit.batched(sometimes), LEADING, seed=0, trials=1000)
    assert found.on_data is not None
    assert found.on_data[0] == pytest.approx(500, abs=120)  # more than seven standard deviations


def test_time_ends_a_measurement() -> None:
    calls = 0

    def tiring(data: Any, rng: np.random.Generator) -> float:
        nonlocal calls
        calls += 1
        if calls > 1000:  # the first block of both sides is fast, on a busy machine too
            time.sleep(0.05)
        return float(rng.random())

    found = measure(dpaudit.per_release(tiring), LEADING, seed=0, trials=10**6, seconds=2.0)
    assert found.on_data is not None
    assert found.on_data[1] == 500
    with pytest.raises(InvalidArgument, match=r"could be drawn in 0\.01 s"):
        measure(dpaudit.per_release(tiring), LEADING, seed=0, trials=10**6, seconds=0.01)


def test_an_event_that_cannot_be_measured_has_a_reason() -> None:
    with pytest.raises(InvalidArgument, match="the event has no plain form"):
        measure(noisy(1.0), replace(LEADING, event=None), seed=0, trials=10)
    with pytest.raises(InvalidArgument, match="has no plain form, so the data set cannot be made again"):
        measure(noisy(1.0), replace(LEADING, data="Secret(...)"), seed=0, trials=10)


def test_trials() -> None:
    assert [trials_for(samples) for samples in (10, 100_000, 10**9)] == [1000, 10_000, 200_000]


# Accuracy


def row(low: float | None, high: float | None, n: int = 100) -> dict[str, Any]:
    error = {"low": low, "high": high, "estimate": low, "method": "exact", "error_probability": 0.0}
    return {"contender": "histogram", "law": "uniform", "quantile": 0.5, "epsilon": 1.0, "n": n, "error": error}


def test_errors_that_got_worse(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps([row(0.1, 0.2), row(0.1, 0.2, n=200), row(0.1, None, n=300), row(0.1, 0.2, n=400)]))
    new.write_text(json.dumps([row(0.21, 0.3), row(0.15, 0.3, n=200), row(9.0, 10.0, n=300)]))
    found = baseline.compare_files(old, new)
    assert [(one.kind, one.audit[-5:]) for one in found] == [("error", "n=100"), ("vanished", "n=400")]
    assert "between 0.21 and 0.3, and was between 0.1 and 0.2" in str(found[0])
    new.write_text("[3]")
    with pytest.raises(InvalidArgument, match="is not an output of `dpaudit accuracy compare --json`"):
        baseline.compare_files(old, new)


def test_the_comparison_writes_what_is_compared() -> None:
    from dpaudit.accuracy.comparison import compare

    rows = [one.as_json() for one in compare(n=[100], epsilon=[1.0], contenders=["naive-laplace"])]
    assert baseline.accuracy_regressions(rows, rows) == []
