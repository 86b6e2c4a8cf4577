"""Mutants do what their names say: exact epsilons against closed forms, samplers against their laws, and one audit."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.mutation import behaviours, judging, running
from benchmarks.mutation.best_event import samples_needed
from benchmarks.mutation.extracted import disagreement, epsilon_from_code
from benchmarks.mutation.judging import epsilon_at, judge, with_code
from benchmarks.mutation.mutants import Litter, Mutant, litter, pool_of
from benchmarks.mutation.rewriting import Target, rewritten, truncated
from benchmarks.mutation.running import judged, row_of, score
from benchmarks.mutation.subjects import SharedCounts, clamped_sum, subjects
from dpaudit import exact
from dpaudit.exact.mechanism_laws.histogram import PrintedBugs
from mechanisms.laplace import LaplaceMechanism

SHOWN = (
    "laplace",
    "laplace-sum",
    "discrete-laplace",
    "noisy-histogram",
    "exponential",
    "k-ary-response",
    "above-threshold",
)


@functools.cache
def made(name: str) -> Litter:
    return litter(next(subject for subject in subjects() if subject.name == name))


def mutant(name: str, mutation: str) -> Mutant:
    return next(one for one in made(name).mutants if one.name == mutation)


def judged_epsilon(name: str, mutation: str) -> float:
    """Climbing by epsilon alone: the samples that events need are not asked for here, and take most of the time."""
    known = made(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "_rough", lambda *_: 1.0)
        return judge(mutant(name, mutation), known.claim, known.subject, pool_of(known.subject)).epsilon


@pytest.mark.parametrize(
    ("name", "mutation", "truth"),
    [
        ("laplace", "noise x 0.5", 2.0),
        ("laplace", "noise x 0.9", 1 / 0.9),
        ("laplace", "released twice", 2.0),
        ("laplace", "raw once in 1000", math.inf),
        # At the answer itself: mixture densities (0.9 + 0.1 * 4)/2 against (0.9 e^-1 + 0.1 * 4 e^-4)/2.
        ("laplace", "noise x 0.25 once in 10", math.log(1.3 / (0.9 * math.exp(-1) + 0.4 * math.exp(-4)))),
        ("laplace", "noise one-sided", math.inf),
        ("laplace", "output rounded", 1.0),
        # Integer answers: mass 1 - 1/e at the answer itself against (1 - 1/e) / (2 e) at the neighbour's.
        ("laplace", "noise cut to an integer", math.log(2.0 * math.e)),
        ("laplace-sum", "noise cut to an integer", math.inf),  # the fraction of the answer is released
        ("noisy-histogram", "noise cut to an integer", math.log(2.0 * math.e)),
        ("discrete-laplace", "decay cut to tenths", -math.log(0.3)),
        ("k-ary-response", "probability of another answer cut to tenths", math.log(0.6 / 0.2)),
        ("laplace", "output clamped to a public range", 1.0),
        ("laplace", "answers halved", 0.5),
        ("laplace-sum", "first row twice", 2.0),
        ("laplace-sum", "code, clamped_sum: min(max(row, 0.0), 1.0) -> max(row, 0.0)", 3.0),
        ("discrete-laplace", "answers doubled", 2.0),
        # Mass at the truth over that on the neighbour: 0.9 t + 0.1 against 0.9 t/e, t = tanh(1/2).
        (
            "discrete-laplace",
            "raw once in 10",
            math.log((0.9 * math.tanh(0.5) + 0.1) / (0.9 * math.tanh(0.5) * math.exp(-1))),
        ),
        ("k-ary-response", "noise x 0.8", 1.25),
        ("k-ary-response", "raw once in 10", math.log((0.9 * math.e / (math.e + 2) + 0.1) / (0.9 / (math.e + 2)))),
        ("noisy-histogram", "first row left out", 2.0),
        ("exponential", "monotone noise", None),
    ],
)
def test_exact_epsilon(name: str, mutation: str, truth: float | None) -> None:
    if truth is None:  # the same law as with half the noise, and therefore not listed twice
        assert all(one.name != mutation for one in made(name).mutants)
    else:
        assert judged_epsilon(name, mutation) == pytest.approx(truth, rel=1e-9)


def test_epsilon_at_delta() -> None:
    """Of two Gaussians the profile is a closed form (Balle and Wang 2018)."""
    from dpaudit.claims import gaussian_delta

    found = epsilon_at(exact.Gaussian(0.0, 0.7), exact.Gaussian(1.0, 0.7), 1e-2)
    assert float(gaussian_delta(found, 1 / 0.7)) == pytest.approx(1e-2, rel=1e-6)


def test_rewriting_covers_the_operators() -> None:
    texts = [text for text, _ in rewritten(Target((clamped_sum,)))]
    assert len(texts) == len(set(texts)) == 8
    assert "clamped_sum: loop over data without its last" in texts
    assert "clamped_sum: min(max(row, 0.0), 1.0) -> max(max(row, 0.0), 1.0)" in texts
    results = {text: function([0.25, 5.0, -2.0]) for text, function in rewritten(Target((clamped_sum,)))}
    assert clamped_sum([0.25, 5.0, -2.0]) == 1.25
    assert results["clamped_sum: loop over data without its first"] == 1.0
    assert results["clamped_sum: max(row, 0.0) -> row"] == -0.75
    assert results["clamped_sum: 1.0 -> 2.0"] == 2.25


def test_truncation_cuts_quotients_and_nothing_else() -> None:
    (text, cut), *more = truncated(Target((LaplaceMechanism,), ("scale",)))
    assert text == "scale: self.sensitivity / self.epsilon -> self.sensitivity // self.epsilon"
    assert (cut(2.0, 3.0).scale, LaplaceMechanism(2.0, 3.0).scale, more) == (1.0, 1.5, [])


def test_rewriting_reaches_sampler_and_law_through_a_chain() -> None:
    scales = {text: made(1.0, 3.0).law(0.0).scale for text, made in rewritten(Target((LaplaceMechanism,), ("scale",)))}
    assert set(scales.values()) == {3.0}  # epsilon is 1: dropping it, or multiplying by it, changes nothing
    scales = {text: made(2.0, 3.0).law(0.0).scale for text, made in rewritten(Target((LaplaceMechanism,), ("scale",)))}
    assert sorted(scales.values()) == [3.0, 6.0]
    assert LaplaceMechanism(2.0, 3.0).scale == 1.5


def test_every_mechanism_has_ten_mutants_and_all_are_different() -> None:
    for name in SHOWN:
        known = made(name)
        assert len(known.mutants) >= 10, name
        assert known.claim.parameter == 1.0
        assert sum(one.refused for one in known.mutants) == 1


def columns(outputs: Any, size: int) -> list[np.ndarray]:
    """Coordinates as numbers that keep what is equal and what is not."""
    table = np.asarray(outputs if isinstance(outputs, np.ndarray) else list(outputs)).reshape(size, -1)
    return list(table.T)


@pytest.mark.parametrize("name", SHOWN)
def test_samplers_follow_their_laws(name: str) -> None:
    """Each mutant's outputs against draws of its law, coordinate by coordinate; false alarm below 1e-9 each."""
    size = 1000
    pair = pool_of(made(name).subject)[1]
    for one in made(name).mutants:
        if one.refused or one.name in ("one noise for all coordinates", "noise cut to an integer"):
            continue  # their laws are those of what can be computed from the outputs
        for data in pair:
            rng = np.random.default_rng(3)
            law = one.mechanism.law(data)
            pairs = zip(
                columns(one.mechanism.sample(data, size, rng), size), columns(law.sample(size, rng), size), strict=True
            )
            for drawn, expected in pairs:
                values, codes = np.unique(np.concatenate([drawn, expected]), return_inverse=True)
                if values.size > 50:
                    chance = stats.ks_2samp(
                        *(np.nan_to_num(x.astype(float), nan=1e9) for x in (drawn, expected))
                    ).pvalue
                else:
                    counts = np.stack([np.bincount(part, minlength=values.size) for part in np.split(codes, 2)])
                    counts = counts[:, counts.sum(axis=0) >= 20]
                    chance = stats.chi2_contingency(counts).pvalue if counts.shape[1] > 1 else 1.0
                assert chance > 1e-9, (one.name, data)


def test_one_noise_for_all_coordinates() -> None:
    one = mutant("noisy-histogram", "one noise for all coordinates").mechanism
    outputs = one.sample(["red", "red", "blue"], 50, np.random.default_rng(0))
    assert np.allclose(outputs - outputs[:, :1], [0.0, -2.0, -1.0])
    assert [law.outcomes[0] for law in one.law(["red", "red", "blue"]).laws[1:]] == [-2.0, -1.0]


@pytest.mark.parametrize("name", ["laplace-sum", "gaussian", "noisy-histogram"])
def test_noise_cut_to_an_integer(name: str) -> None:
    """Fraction and integer part of every coordinate against the law, which lists one after the other."""
    one, size = mutant(name, "noise cut to an integer").mechanism, 20_000
    data = {"laplace-sum": [0.25, 5.0], "gaussian": 1.3}.get(name, ["red"])
    outputs = np.asarray(one.sample(data, size, np.random.default_rng(1)), dtype=float).reshape(size, -1)
    laws = one.law(data).laws
    for column, fraction, noisy in zip(outputs.T, laws[::2], laws[1::2], strict=True):
        assert np.allclose(column - np.floor(column + 1e-9), fraction.outcomes[0])
        values, counts = np.unique(np.floor(column + 1e-9), return_counts=True)
        expected = size * np.exp(noisy.log_prob(values))
        often = expected > 20
        assert expected.sum() == pytest.approx(size, rel=0.01)
        chi_square = ((counts - expected)[often] ** 2 / expected[often]).sum()
        assert stats.chi2.sf(chi_square, often.sum()) > 1e-9


def test_failing_is_an_output_like_any_other() -> None:
    def draw(data: float, size: int, rng: np.random.Generator) -> Any:
        return LaplaceMechanism(1.0).sample(math.log(data), size, rng)

    known = made("laplace")
    one = behaviours.remembered(behaviours.Mechanism(draw, lambda data: exact.Laplace(math.log(data), 1.0)))
    truth = judge(Mutant("laplace", "log", one), known.claim, known.subject, pool_of(known.subject))
    assert truth.epsilon == math.inf
    assert 0.0 in truth.pair  # it fails there, and nowhere else on the pairs of numbers up to 2
    assert truth.samples == samples_needed(1.0, 0.0, 1.0)
    unknown = behaviours.remembered(behaviours.Mechanism(lambda *_: [0.0], lambda data: math.log(data)))
    with pytest.raises(ValueError, match="domain"):  # a law that is not known is not the law of a failure
        unknown.law(0.0)


@pytest.mark.parametrize("alike", [True, False])
def test_counts_that_are_shared_are_answered_at_once(alike: bool) -> None:
    """The quick sampler against the exact law, over several pieces; false alarm below 1e-9 a coordinate."""
    bugs = PrintedBugs(queries_never_cleared=not alike)
    method = SharedCounts(3.0, 0.0, 1.0, steps=8, quantiles=(0.25, 0.5, 0.75), bugs=bugs)
    data, size = [0.1, 0.4, 0.4, 0.8], 20_000
    outputs = method.sample(data, size, np.random.default_rng(7))
    for column, law in enumerate(method.law(data).laws):
        expected = size * np.exp(law.log_probabilities)
        counts = np.array([(outputs[:, column] == value).sum() for value in law.outcomes])
        assert counts.sum() == size
        assert stats.chisquare(counts, expected * size / expected.sum()).pvalue > 1e-9
    assert method.true(data) == [0.5, 0.5, 0.875]


def test_parts_are_all_of_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    number = next(i for i, subject in enumerate(subjects()) if subject.name == "laplace")
    monkeypatch.setattr(running, "row_of", lambda known, place, *_: known.mutants[place].name)
    parts = [running.rows_of((number, part, 1, 0)) for part in range(running.PARTS)]
    assert [name for part in parts for name in part] == [one.name for one in made("laplace").mutants]


def test_outcomes_and_score() -> None:
    def row(verdict: str, harmful: bool, needs: float, replays: bool = False) -> dict[str, Any]:
        known = {"mechanism": "m", "mutation": "x", "verdict": verdict, "harmful": harmful, "needs": needs}
        known |= {"replays": replays, "said": "shares state"}
        return known | judged(known)

    rows = [
        *(row("VIOLATION", True, 100.0) for _ in range(17)),
        row("REFUSED", True, 62.0, replays=True),
        row("NO_VIOLATION_FOUND", True, 59_000.0),
        row("VIOLATION", True, 70_000.0),
        row("NO_VIOLATION_FOUND", True, 1e9),
        row("NO_VIOLATION_FOUND", False, math.inf),
    ]
    assert [one["outcome"] for one in rows[17:]] == ["caught", "MISSED", "caught", "out of reach", "harmless"]
    total = score(rows)
    assert (total["exposable"], total["caught"], total["refused"], total["beyond"]) == (19, 18, 1, 1)
    assert "fault" in total
    assert "fault" not in score(rows[:18])
    assert "flagged" in row("VIOLATION", False, math.inf)["fault"]
    for harmful in (True, False):  # an unexpected refusal does not count as caught
        refused = row("REFUSED", harmful, 62.0)
        assert refused["outcome"] == "REFUSED"
        assert refused["fault"] == "m, x: refused, though it replays nothing: shares state"
    assert score([row("REFUSED", True, 62.0)])["caught"] == score([row("REFUSED", True, 62.0)])["refused"] == 0


def test_a_broken_protocol_is_not_caught_but_a_fault() -> None:
    known = made("laplace")
    broken = Mutant("laplace", "one output too many", behaviours.remembered(_TooMany()))
    row = row_of(replace(known, mutants=(broken,)), 0, samples=2_000, seed=0)
    assert (row["verdict"], row["outcome"]) == ("REFUSED", "REFUSED")
    assert "replays nothing: The mechanism returned" in row["fault"]


class _TooMany:
    def sample(self, data: float, size: int, rng: np.random.Generator) -> Any:
        return rng.laplace(data, 0.5, size + 1)

    def law(self, data: float) -> exact.Laplace:
        return exact.Laplace(data, 0.5)


@pytest.mark.parametrize(
    ("mutation", "outcome"),
    [("noise x 0.5", "caught"), ("same seed in every call", "caught"), ("output rounded", "harmless")],
)
def test_audit_of_a_mutant(mutation: str, outcome: str) -> None:
    known = made("laplace-count")
    place = next(i for i, one in enumerate(known.mutants) if one.name == mutation)
    row = row_of(known, place, samples=20_000, seed=0)
    assert row["outcome"] == outcome
    assert row["verdict"] == {"noise x 0.5": "VIOLATION", "same seed in every call": "REFUSED"}.get(
        mutation, row["verdict"]
    )


def test_bare_on_one_branch() -> None:
    change = behaviours.bare_where(lambda truth: truth == 2.0)
    one = behaviours.changed(LaplaceMechanism(1.0), float, change)
    assert (one.law(2.0), one.law(1.0)) == (exact.Discrete({2.0: 1.0}), exact.Laplace(1.0, 1.0))
    assert (one.sample(2.0, 5, np.random.default_rng(0)) == 2.0).all()


def test_the_epsilon_of_a_mutant_comes_from_its_code() -> None:
    known = made("laplace")
    one = mutant("laplace", "noise x 0.5")
    truth = with_code(judge(one, known.claim, known.subject, pool_of(known.subject)), one, known.claim)
    assert truth.from_code
    assert truth.contradicted is None
    assert truth.epsilon == pytest.approx(2.0, rel=1e-9)


def test_a_law_that_the_code_does_not_have_is_seen() -> None:
    pair = pool_of(made("laplace").subject)[0]
    wrong = LaplaceMechanism(1.0)
    assert disagreement(0.5, epsilon_from_code(wrong, pair, 0.0))
    assert not disagreement(1.0, epsilon_from_code(wrong, pair, 0.0))
    assert not disagreement(0.5, None)
