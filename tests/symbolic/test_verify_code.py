"""Verification of ordinary functions: verdicts, intervals, lines that were not reached, and the way back to an audit."""

from __future__ import annotations

import io
import math
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import ApproxDP, GaussianDP, PureDP, RenyiDP, Verdict, ZeroConcentratedDP, neighbours
from dpaudit.cli import main as cli
from dpaudit.errors import CannotFollow
from dpaudit.symbolic import Limits, law_of
from dpaudit.symbolic.verification import CodeVerification

COUNTS = neighbours.add_remove(st.integers(0, 3), max_size=4)


def noisy_count(data, rng):
    return len(data) + rng.laplace(scale=1.0)


def early_return(data, rng):
    if not data:
        return 0.0
    return len(data) + rng.laplace(scale=1.0)


def wrong_on_a_branch(data, rng):
    if 3 in data and len(data) > 2:
        return float(len(data))
    return len(data) + rng.laplace(scale=1.0)


def retries(data, rng):
    tries = []
    while True:
        noisy = len(data) + rng.laplace(scale=1.0)
        tries.append(None)  # so that no state comes again, and every turn is a path of its own
        if abs(noisy - 2.0) <= 2.0:  # one way to fail; with two of them the number of paths doubles with every turn
            return noisy


def gaussian_count(data, rng):
    return len(data) + rng.normal(scale=2.0)


def squared(data, rng):
    return len(data), rng.laplace() * rng.laplace()


def test_a_right_scale_is_verified():
    found = dpaudit.verify(noisy_count, PureDP(1.0), COUNTS, examples=30)
    assert isinstance(found, CodeVerification)
    assert found.verified
    assert found.verdict is Verdict.NO_VIOLATION_FOUND
    assert found.epsilon == pytest.approx((1.0, 1.0), rel=1e-9)
    assert found.epsilon[0] <= 1.0 <= found.epsilon[1]
    assert "VERIFIED on every pair tried, exact" in str(found)


@pytest.mark.parametrize(
    "mechanism",
    [
        noisy_count,
        dpaudit.per_release(noisy_count),
        dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(size=size)),
        dpaudit.fresh(lambda: lambda data: len(data) + np.random.default_rng().laplace()),
        lambda data: len(data) + np.random.laplace(),  # noqa: NPY002
    ],
    ids=["function", "per_release", "batched", "fresh", "legacy"],
)
def test_every_kind_of_mechanism(mechanism):
    found = dpaudit.verify(mechanism, PureDP(0.5), COUNTS, examples=5)
    assert found.verdict is Verdict.VIOLATION
    assert found.witness == (([], [0]))
    assert found.epsilon[0] == pytest.approx(1.0)


def test_a_declared_law_still_comes_first():
    class Declared:
        def law(self, data):
            return dpaudit.exact.Laplace(len(data), 2.0)

        def sample(self, data, size, rng):
            raise AssertionError("not run")

    found = dpaudit.verify(Declared(), PureDP(1.0), COUNTS, examples=5)
    assert not isinstance(found, CodeVerification)
    assert found.epsilon == 0.5


def test_an_early_return_on_empty_data():
    found = dpaudit.verify(early_return, PureDP(1.0), COUNTS, examples=20)
    assert found.verdict is Verdict.VIOLATION
    assert found.interval == (math.inf, math.inf)
    assert [] in found.witness


def test_a_branch_that_few_data_take_is_searched_for():
    rows = neighbours.add_remove(st.integers(0, 12), max_size=4)
    found = dpaudit.verify(wrong_on_a_branch, PureDP(1.0), rows, examples=15)
    line = wrong_on_a_branch.__code__.co_firstlineno + 2
    reached = (__file__, line) not in found.missed
    assert reached == (found.verdict is Verdict.VIOLATION)


def test_lines_that_no_pair_reached_are_listed():
    found = dpaudit.verify(wrong_on_a_branch, PureDP(1.0), [([0], [0, 1])])
    assert found.missed == ((__file__, wrong_on_a_branch.__code__.co_firstlineno + 2),)
    assert f"{__file__}: {found.missed[0][1]}" in str(found)


def test_a_retry_loop_is_bracketed():
    pair = [([0], [0, 0])]
    limits = Limits(paths=12)
    assert law_of(retries, [0], limits=limits).rest < 1e-5
    loose = dpaudit.verify(retries, ApproxDP(1.2, 1e-4), pair, limits=limits)
    assert loose.verdict is Verdict.NO_VIOLATION_FOUND
    assert loose.interval[1] < 1e-4
    pure = dpaudit.verify(retries, PureDP(2.0), pair, limits=limits)
    assert pure.verdict is Verdict.INCONCLUSIVE  # what is not followed could lie anywhere
    assert pure.interval[1] == math.inf
    broken = dpaudit.verify(retries, PureDP(0.5), pair, limits=limits)
    assert broken.verdict is Verdict.VIOLATION
    # Truncated Laplace laws: the ratio of densities is e times that of the normalising masses.
    masses = [1.0 - 0.5 * math.exp(-m) - 0.5 * math.exp(-(4 - m)) for m in (1, 2)]
    truth = 1.0 + abs(math.log(masses[0] / masses[1]))
    assert 0.5 < broken.interval[0] <= truth


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (GaussianDP(0.5), Verdict.NO_VIOLATION_FOUND),
        (GaussianDP(0.49), Verdict.VIOLATION),
        (ZeroConcentratedDP(0.125), Verdict.NO_VIOLATION_FOUND),
        (ZeroConcentratedDP(0.12), Verdict.VIOLATION),
        (RenyiDP(4.0, 0.5), Verdict.NO_VIOLATION_FOUND),
        (RenyiDP(4.0, 0.49), Verdict.VIOLATION),
        (ApproxDP(1.0, 0.0062), Verdict.VIOLATION),
        (ApproxDP(1.0, 0.007), Verdict.NO_VIOLATION_FOUND),
    ],
    ids=repr,
)
def test_every_kind_of_claim(claim, verdict):
    assert dpaudit.verify(gaussian_count, claim, [([], [1])]).verdict is verdict


def test_code_that_cannot_be_followed_is_an_error_or_an_audit():
    with pytest.raises(CannotFollow, match="product or quotient") as caught:
        dpaudit.verify(squared, PureDP(1.0), COUNTS, examples=5)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.line) == (str(caught.value), caught.value.line)
    audited = dpaudit.verify(squared, PureDP(1.0), [([], [0])], otherwise="audit")
    assert isinstance(audited, dpaudit.Result)


def test_the_law_can_be_looked_at():
    law = law_of(noisy_count, [1, 2])
    assert str(law) == "1  number: Laplace(location=2.0, scale=1.0)"
    assert law.log_prob([2.0]) == pytest.approx([-math.log(2.0)])
    assert law.sample(5, np.random.default_rng(0)).shape == (5,)


FILE = """
def noisy_count(data, rng):
    return len(data) + rng.laplace(scale=0.5)

def followed_by_nobody(data, rng):
    return "%s" % rng.laplace()
"""


@pytest.mark.parametrize(
    ("name", "epsilon", "code", "text"),
    [
        ("noisy_count", "2", 0, "VERIFIED on every pair tried"),
        ("noisy_count", "1", 1, "VIOLATION, exact"),
        ("followed_by_nobody", "1", 3, "line 6, in followed_by_nobody"),
    ],
)
def test_the_command_line(tmp_path, monkeypatch, name, epsilon, code, text):
    (tmp_path / "counts.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    words = ["verify", f"counts.py:{name}", "--epsilon", epsilon, "--rows", "booleans()", "--relation", "add-remove"]
    assert cli.main([*words, "--examples", "10", "--law"], stdout=out) == code
    assert text in out.getvalue()


@pytest.mark.parametrize("claim", [dpaudit.ApproxDP(800.0, 1e-5), dpaudit.GaussianDP(40.0)], ids=repr)
def test_claims_beyond_the_largest_exponent_are_compared(claim: dpaudit.Claim) -> None:
    result = dpaudit.verify(lambda data, rng: data[0] + rng.laplace(), claim, [([0], [1])])
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
