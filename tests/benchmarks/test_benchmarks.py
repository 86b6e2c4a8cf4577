"""The benchmarks run at tiny sizes, and what they print and write is well formed."""

from __future__ import annotations

import functools
import importlib
import json
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import dpaudit
from benchmarks import (
    accuracy,
    anonymity,
    best_possible,
    catalogue,
    detection,
    leaks,
    mutation,
    overhead,
    presentations,
    promises,
    samplers,
    scaling,
    soak,
    soundness,
    tables,
)
from benchmarks.__main__ import NAMES, main
from benchmarks.best_possible import Cells, best_epsilon, cells_of, fewest_samples, growth
from benchmarks.detection import Disjoint
from benchmarks.mutation import running
from benchmarks.tables import Column, Table, plain, save, show_all
from dpaudit.accuracy.bound import Status
from mechanisms import registry
from mechanisms.broken.gaussian import HalvedVariance
from mechanisms.broken.laplace import MisscaledLaplace, OccasionallyRaw
from mechanisms.broken.sparse_vector import svt3, svt34_parallel
from mechanisms.laplace import LaplaceMechanism
from mechanisms.registry.tight import tight_mechanisms
from mechanisms.sparse_vector import numerical_svt

TINY: dict[str, Any] = {
    "catalogue": functools.partial(catalogue.run, quick=True, samples=3_000, numbers=[2], workers=0),
    "overhead": functools.partial(overhead.run, quick=True, sizes=[2_000], releases=500, times=1, workers=0),
    "detection": functools.partial(
        detection.run, quick=True, seeds=1, promises=["Laplace at half scale"], names=["laplace-half-scale"], workers=0
    ),
    "leaks": functools.partial(
        leaks.run, quick=True, seeds=1, twins=1, names=["the bit itself", "set: one of 40 words"], workers=0
    ),
    "soundness": functools.partial(soundness.run, quick=True, audits=1, samples=300, workers=0),
    "presentations": functools.partial(presentations.run, quick=True, audits=1, samples=1_000, workers=0),
    "promises": functools.partial(promises.run, quick=True, audits=1, samples=1_000, workers=0),
    "mutation": functools.partial(mutation.run, quick=True, samples=2_000, names=("laplace",), workers=0),
    "scaling": functools.partial(scaling.run, quick=True, samples=3_000, times=1),
    "samplers": functools.partial(samplers.run, quick=True, size=1_000),
    "anonymity": functools.partial(anonymity.run, quick=True, records=300),
    "soak": functools.partial(soak.run, quick=True, seconds=0.0, seed=3),
}


@pytest.fixture
def few_cases(monkeypatch):
    monkeypatch.setattr(overhead, "CASES", overhead.CASES[:1])
    monkeypatch.setattr(overhead, "first_audit", lambda: {"what": "first audit", "value": 1.0, "unit": "s"})
    monkeypatch.setattr(soundness, "CHECK_EVERY", 2)
    monkeypatch.setattr(promises, "PROMISES", promises.PROMISES[::12])

    litter = running._litter
    monkeypatch.setattr(running, "_litter", lambda number: replace(litter(number), mutants=litter(number).mutants[:2]))
    # Threads in place of processes: what is measured then means nothing, but it is measured in the same way.
    traffic = scaling.traffic
    monkeypatch.setattr(scaling, "traffic", lambda samples: traffic(8 * samples))
    monkeypatch.setattr(scaling, "TRAVELLERS", {"Laplace": scaling.TRAVELLERS["Laplace"]})
    monkeypatch.setattr(scaling, "Workers", ThreadPoolExecutor)
    monkeypatch.setattr(scaling.Busy, "calibrated", lambda: (scaling.Busy(1), 1e-8))
    monkeypatch.setattr(
        scaling,
        "executors",
        lambda counts, stack: [("processes", k, stack.enter_context(ThreadPoolExecutor(k))) for k in counts],
    )


@pytest.mark.usefixtures("few_cases")
@pytest.mark.parametrize("name", TINY)
def test_runs_prints_and_becomes_json(name):
    lines: list[str] = []
    done = json.loads(json.dumps(show_all(TINY[name](), lines.append), allow_nan=False))
    assert done["tables"]
    assert any(table["rows"] for table in done["tables"])
    for table in done["tables"]:
        assert table["title"]
        assert all(isinstance(row, dict) for row in table["rows"])
    printed = [line for line in lines if line.startswith("|")]
    assert len(printed) == sum(2 + len(table["rows"]) for table in done["tables"])
    assert done["cpu_seconds"] >= 0.0


@pytest.mark.parametrize("per_normal", [4e-9, 8e-9, 25e-9])
def test_busy_mechanism_is_set_to_its_cost(monkeypatch, per_normal):
    monkeypatch.setattr(scaling.Busy, "cost", property(lambda self: 3e-7 + per_normal * self.normals))
    busy, cost = scaling.Busy.calibrated()
    assert cost == busy.cost == pytest.approx(scaling.COST, rel=scaling.NEAR)


def test_every_row_of_the_catalogue_is_begun_once():
    assert sorted(catalogue.LONGEST_FIRST) == list(range(1, 21))


def test_accuracy_has_rows(monkeypatch):
    monkeypatch.setattr(accuracy, "corrected", lambda quick, workers: iter([("holds", True, "9 points")]))
    monkeypatch.setattr(accuracy, "published", lambda largest: iter([("refuted", False, "nothing found")]))
    done = show_all(accuracy.run(quick=True), lambda line: None)
    assert [row["met"] for row in done["tables"][0]["rows"]] == ["ok", "ok", "FAIL"]
    assert done["faults"] == ["refuted: nothing found"]


def test_a_form_that_holds_nowhere_or_is_violated_is_not_met(monkeypatch):
    for counts, met in (({Status.HOLDS: 50}, True), ({Status.HOLDS: 49}, False), ({Status.VACUOUS: 900}, False)):
        monkeypatch.setattr(accuracy, "verify", lambda *_, counts=counts, **__: (SimpleNamespace(counts=counts),))
        assert {passed for _, passed, _ in accuracy.holding(("histogram-uniform", True))} == {met}
    found = Counter({Status.HOLDS: 900, Status.VIOLATED: 1})
    monkeypatch.setattr(accuracy, "verify", lambda *_, **__: (SimpleNamespace(counts=found),))
    assert not any(passed for _, passed, _ in accuracy.holding(("laplace-tail", True)))


def test_thinned_grids_keep_every_decile():
    for grid in accuracy.GRIDS.values():
        thin = accuracy.thinned(grid)
        assert thin["i"] == grid["i"]
        assert 100 < math.prod(map(len, thin.values())) < math.prod(map(len, grid.values()))


# The entry point


def test_without_arguments_it_helps(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in NAMES)


def test_an_unknown_name_gets_the_near_one(capsys):
    assert main(["soundnes"]) == 2
    assert "Did you mean 'soundness'?" in capsys.readouterr().err


def test_a_size_that_a_benchmark_does_not_have_is_refused(capsys):
    assert main(["anonymity", "--samples", "1e3"]) == 2
    assert "anonymity has no such size" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_module_that_runs(name):
    assert callable(importlib.import_module(f"benchmarks.{name}").run)


def test_figures_are_written_and_unmet_requirements_fail(tmp_path, monkeypatch, capsys):
    def run(*, quick):
        yield Table(
            title="one", columns=(Column("x", "x"),), rows=[{"x": math.inf}, {"x": 2, "fault": "two is too much"}]
        )

    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(run=run))
    path = tmp_path / "deep" / "figures.json"
    assert main(["anonymity", "samplers", "--quick", "--json", str(path)]) == 1
    written = json.loads(path.read_text())
    assert written["quick"] is True
    assert set(written["benchmarks"]) == {"anonymity", "samplers"}
    assert written["benchmarks"]["anonymity"]["tables"][0]["rows"] == [
        {"x": "inf"},
        {"x": 2, "fault": "two is too much"},
    ]
    assert written["benchmarks"]["anonymity"]["faults"] == ["two is too much"]
    shown = capsys.readouterr().out
    assert "NOT MET: two is too much" in shown
    assert "infinite" in shown
    assert [entry.name for entry in path.parent.iterdir()] == ["figures.json"]


# Tables


def test_cells_are_formatted_aligned_and_blank_where_missing():
    column = Column("x", "value", ">9.2f")
    assert column.cell({"x": 3.14159}) == "     3.14"
    assert column.cell({}) == " " * 9
    assert column.cell({"x": "text"}) == "     text"
    assert Column("n", "n", ">7,").cell({"n": 12345}) == " 12,345"
    assert Column("w", "a long heading", "<3").cell({"w": "x"}) == "x             "


def test_plain_data_has_no_numpy_and_no_infinity():
    mixed = {"a": np.float64(math.nan), 1: (np.int64(3), -math.inf), "b": [True, None, "x"]}
    assert plain(mixed) == {"a": "nan", "1": [3, "-inf"], "b": [True, None, "x"]}


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "figures.json"
    save(path, {"x": 1})
    with pytest.raises(ValueError, match="Out of range"):
        save(path, {"x": math.nan})
    assert json.loads(path.read_text()) == {"x": 1}


def test_rows_print_at_once():
    seen: list[str] = []

    def rows():
        yield {"x": 1}
        assert seen[-1].startswith("|")
        assert seen[-1].strip("| ") == "1"
        yield {"x": 2}

    Table(title="t", columns=(Column("x", "x"),), rows=rows()).show(seen.append)
    assert tables.FORMAT == 1


# Soundness


def test_more_alarms_than_chance_allows_is_a_fault():
    counts = Counter({("alarms", 0.01): 60, ("epsilon above", 0.1): 150})
    assert "fault" in soundness.judged("m", ("given", "budget"), 0.01, 2000, counts)
    assert soundness.judged("m", ("given", "budget"), 0.1, 2000, counts)["verdict"] == "ok"
    border = soundness.judged("m", ("given", "budget"), 0.01, 2000, Counter({("alarms", 0.01): 25}))
    assert border["verdict"] == "within error"
    assert "fault" not in border


def test_a_mechanism_that_leaks_is_counted_at_every_alpha():
    """The control of the soundness count: with a claim of half its epsilon, randomised response raises alarms."""
    tight = tight_mechanisms()[0]
    lying = SimpleNamespace(
        name=tight.name,
        mechanism=tight.mechanism,
        claim=dpaudit.PureDP(0.3),
        pairs=tight.pairs,
        everywhere=None,
        epsilon=0.3,
    )
    for until in ("violation", "budget"):
        seen = Counter(soundness.one_audit(lying, ("given", until), 1, 1500))
        assert seen == Counter({(kind, alpha): 1 for kind in soundness.KINDS for alpha in soundness.ALPHAS})


def test_an_audit_that_depends_on_alpha_is_noticed(monkeypatch):
    monkeypatch.setattr(soundness, "events", lambda *task: (frozenset({"alarms"}), task[-1]))
    with pytest.raises(AssertionError, match="depends on alpha"):
        soundness.one_audit(tight_mechanisms()[0], ("given", "budget"), 0, 300)


# Detection


def test_every_broken_module_is_in_the_examination():
    homes = {entry.make.func.__module__ for entry in detection.broken() if isinstance(entry.make, functools.partial)}
    homes |= {entry.make.__module__ for entry in detection.broken() if not isinstance(entry.make, functools.partial)}
    homes |= {type(entry.make()).__module__ for entry in detection.broken()}
    for path in (Path(registry.__file__).parent / "broken").glob("[a-z]*.py"):
        assert f"mechanisms.broken.{path.stem}" in homes, path.stem


# What would have been possible


def nearest_private_pair(P: Any, Q: Any, epsilon: float, delta: float) -> float:
    """The same minimum by a general optimiser over all pairs of laws, with slack for what exceeds c times the other."""
    k, c = len(P), math.exp(epsilon)

    def distance(x):
        return float(P @ (np.log(P) - x[:k]) + Q @ (np.log(Q) - x[k : 2 * k]))

    def excess(x, sign):
        p, q = np.exp(x[:k]), np.exp(x[k : 2 * k])
        return p - c * q if sign > 0 else q - c * p

    limits = [
        {"type": "eq", "fun": lambda x: np.exp(x[:k]).sum() - 1.0},
        {"type": "eq", "fun": lambda x: np.exp(x[k : 2 * k]).sum() - 1.0},
        {"type": "ineq", "fun": lambda x: x[2 * k : 3 * k] - excess(x, +1)},
        {"type": "ineq", "fun": lambda x: x[3 * k :] - excess(x, -1)},
        {"type": "ineq", "fun": lambda x: delta - x[2 * k : 3 * k].sum()},
        {"type": "ineq", "fun": lambda x: delta - x[3 * k :].sum()},
    ]
    start = np.concatenate([np.log((P + Q) / 2.0), np.log((P + Q) / 2.0), np.full(2 * k, delta / k)])
    bounds = [(None, 0.0)] * (2 * k) + [(0.0, 1.0)] * (2 * k)
    options = {"ftol": 1e-14, "maxiter": 1000}
    found = minimize(distance, start, constraints=limits, bounds=bounds, method="SLSQP", options=options)
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("delta", [0.0, 0.02, 0.2])
def test_growth_is_the_distance_to_the_nearest_private_pair(seed, epsilon, delta):
    P, Q = np.random.default_rng(seed).dirichlet(np.ones(5), size=2)
    nearest = nearest_private_pair(P, Q, epsilon, delta)
    assert growth(Cells(P, Q), epsilon, delta) == pytest.approx(nearest, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("mechanism", "delta", "samples"),
    [
        (Disjoint(), 0.0, 44.1),
        (MisscaledLaplace(1.0, 0.5), 0.0, 310),
        (MisscaledLaplace(1.0, 0.9), 0.0, 17_421),
        (HalvedVariance(1.0, 1e-2), 1e-2, 6_411),
        (OccasionallyRaw(1.0), 0.0, 44_102),
    ],
)
def test_the_fewest_samples_that_any_test_needs(mechanism, delta, samples):
    """The figures were computed by numerical integration on a grid, apart from this code."""
    cells = cells_of(mechanism, np.array([0.0]), np.array([1.0]), np.random.default_rng(0), draws=10_000)
    assert fewest_samples(cells, 1.0, delta, 1e-6) == pytest.approx(samples, rel=1e-3)


def test_growth_ends_at_the_true_epsilon():
    p = 1.0 / (1.0 + math.exp(-1.0))
    response = Cells(np.array([p, 1.0 - p]), np.array([1.0 - p, p]))
    assert growth(response, 0.999) > 1e-8
    assert growth(response, 1.0) == pytest.approx(0.0, abs=1e-12)


def test_of_an_event_impossible_on_one_side():
    """P(S) = p, Q(S) = 0: with n of each side none is seen on Q, so c is refuted up to about n p / log(1/alpha)."""
    p, samples, alpha = 0.01, 2_000_000, 1e-3
    cells = Cells(np.array([p, 1.0 - p]), np.array([0.0, 1.0]))
    assert best_epsilon(cells, samples, alpha) == pytest.approx(
        math.log(samples / 2 * p / math.log(1 / alpha)), abs=1e-3
    )


def test_too_few_samples_show_nothing():
    assert best_epsilon(Cells(np.array([0.51, 0.49]), np.array([0.49, 0.51])), 100, 1e-3) == 0.0


@pytest.mark.parametrize(
    "mechanism",
    [
        svt3(epsilon=1.0, threshold=1.0),
        svt3(epsilon=1.0, threshold=1.0, hits=2),
        numerical_svt(epsilon=1.0, threshold=1.0, hits=2),
        svt34_parallel(epsilon=1.0, threshold=1.0),
        LaplaceMechanism(1.0),
    ],
    ids=["compared value", "two hits", "fresh value", "parallel", "Laplace"],
)
def test_log_ratios_reweight_one_side_to_the_other(mechanism):
    """E_Q[g P/Q] = E_P[g] for any g, here of the log-ratio itself: what a wrong density cannot do."""
    rng = np.random.default_rng(0)
    data, neighbour = np.array([1.0, 0.5, 2.0]), np.array([0.0, 1.5, 1.0])
    draws = 40_000
    on_P, on_Q = (
        best_possible.log_ratio(mechanism, data, neighbour, mechanism.sample(where, draws, rng))
        for where in (data, neighbour)
    )
    for cut in (-1.0, -0.3, 0.0, 0.3, 1.0):
        weighted, plainly = np.exp(on_Q) * (on_Q > cut), (on_P > cut).astype(float)
        error = math.sqrt((weighted.var() + plainly.var()) / draws)
        assert abs(weighted.mean() - plainly.mean()) <= 5.5 * error  # five comparisons: false alarm below 1e-6
    total = np.exp(on_Q)
    assert abs(total.mean() - 1.0) <= 5.5 * total.std() / math.sqrt(draws)


def test_cells_from_draws_agree_with_the_exact_ones():
    """Laplace of scale 1, answers 1 apart: sixteen cells a unit give the same limit."""
    rng = np.random.default_rng(1)
    edges = np.concatenate([[-np.inf], np.linspace(-10, 11, 2101), [np.inf]])

    def masses(centre):
        x = edges - centre
        cdf = np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1.0 - 0.5 * np.exp(-np.maximum(x, 0)))
        return np.diff(cdf)

    reference = best_epsilon(Cells(masses(0.0), masses(1.0)), 1_000_000, 1e-3)
    cells = best_possible.cells_of(LaplaceMechanism(1.0), 0.0, 1.0, rng, draws=50_000)
    assert best_epsilon(cells, 1_000_000, 1e-3) == pytest.approx(reference, abs=2e-3)


@pytest.mark.parametrize("samples", ["-5", "1", "1.5", "nan", "1e400", "many"])
def test_sizes_that_are_none_are_usage_errors(samples: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["soundness", "--samples", samples])
    assert left.value.code == 2
    assert "--samples" in capsys.readouterr().err


def test_figures_that_cannot_be_saved_are_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "figures.json"):
        assert main(["accuracy", "--quick", "--json", str(place)]) == 2
        assert "--json=" in capsys.readouterr().err
