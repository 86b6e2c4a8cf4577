"""The check of the exact law before an audit: violations, private mechanisms, and the text of the result."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproxDP, GaussianDP, PureDP, Verdict
from dpaudit.cli.main import main
from dpaudit.result.model import StoppedBy
from dpaudit.symbolic import first_look
from dpaudit.symbolic.first_look import LOOK, look

ONE_MORE = [([], [1])]


@pytest.fixture(autouse=True)
def _without_hurry(monkeypatch):
    """Give every look half a minute, so that a busy machine finds what a quiet one does."""
    monkeypatch.setattr(first_look, "LOOK", replace(LOOK, seconds=30.0))


def half_scale(data, rng):
    return len(data) + rng.laplace(scale=0.5)


def right_scale(data, rng):
    return len(data) + rng.laplace(scale=1.0)


def charged_once(data, rng):
    return {key: data.count(key) + rng.laplace(scale=1.0) for key in (0, 1)}


def nothing_for_no_data(data, rng):
    return sum(data) + rng.laplace() if data else None


def raises_for_no_data(data, rng):
    return data[0] + rng.laplace(scale=100.0)


def biased_bits(data, rng):
    return [bit if rng.random() < 0.75 else 1 - bit for bit in data]


def normal_noise(data, rng):
    return np.array([len(data), 0.0]) + rng.normal(scale=1.0, size=2)


def clipped_inverse(data, rng):
    """Laplace noise whose tails end: over the reals in an atom of probability 2^-54."""
    u = rng.random() - 0.5
    return len(data) - np.sign(u) * np.log(max(1.0 - 2.0 * abs(u), 2.0**-54))


@pytest.mark.parametrize(
    ("function", "claim", "pairs", "event", "epsilon"),
    [
        (half_scale, PureDP(1.0), ONE_MORE, "output <= 0.0", 2.0),
        (charged_once, PureDP(1.0), [([0], [1])], "output[0] >= 1.0 and output[1] <= 0.0", 2.0),
        (nothing_for_no_data, PureDP(3.0), ONE_MORE, "output is None", math.inf),
        (raises_for_no_data, PureDP(3.0), ONE_MORE, "raises IndexError: list index out of range", math.inf),
        (biased_bits, PureDP(1.0), [([0], [1])], "output == [0]", math.log(3.0)),
    ],
)
def test_a_violation_is_exact_and_names_pair_and_event(function, claim, pairs, event, epsilon):
    with pytest.raises(dpaudit.PrivacyViolation) as caught:
        dpaudit.assert_private(dpaudit.per_release(function), claim, pairs)
    result = caught.value.result
    assert (result.verdict, result.stopped_by, result.samples) == (Verdict.VIOLATION, StoppedBy.EXACT, 0)
    assert result.epsilon_lower == pytest.approx(epsilon, rel=1e-7)
    assert result.epsilon_lower <= epsilon
    assert result.witness.event.startswith(f"{event}  [exact probabilities: ")
    assert "exact, no samples" in str(result)
    assert "an event of probability" not in str(result)
    again = dpaudit.Result.from_dict(result.to_dict())
    assert again == result


def test_the_script_of_an_error_runs(capsys):
    result = look(dpaudit.per_release(raises_for_no_data), PureDP(3.0), ONE_MORE, name="f").result
    exec(compile(result.witness.script(), "script", "exec"), {"__name__": "script"})
    assert "event on data:      1000 of 1000\nevent on neighbour: 0 of 1000" in capsys.readouterr().out


def test_the_event_of_a_violation_has_the_probabilities_that_are_named():
    result = look(dpaudit.per_release(half_scale), PureDP(1.0), ONE_MORE, name="f").result
    numbers = [float(number) for number in re.findall(r"(\d\.\d+) on", result.witness.event)]
    assert numbers == pytest.approx([0.5, 0.5 * math.exp(-2.0)], rel=1e-5)
    assert result.witness.on_data.low <= 0.5 <= result.witness.on_data.high


@pytest.mark.parametrize(
    ("claim", "true"), [(ApproxDP(0.5, 1e-3), None), (GaussianDP(0.5), 1.0), (dpaudit.ZeroConcentratedDP(0.1), 0.5)]
)
def test_other_claims(claim, true):
    result = look(dpaudit.per_release(normal_noise), claim, ONE_MORE, name="f").result
    assert result.verdict is Verdict.VIOLATION
    if true is not None:
        assert claim.parameter < result.parameter_lower <= true


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01)])
def test_what_keeps_its_claim_is_noted_and_audited_by_samples(claim):
    result = dpaudit.assert_private(
        dpaudit.per_release(right_scale), claim, ONE_MORE, samples=20_000, allow_inconclusive=True
    )
    assert result.samples > 0
    assert result.messages[-1] == "Exact, over the reals, from the code: 1 pair of data sets keeps the claim."


def test_an_event_of_the_reals_alone_is_no_violation():
    looked = look(dpaudit.per_release(clipped_inverse), PureDP(1.0), ONE_MORE, name="f")
    assert (looked.result, looked.note) == (None, "")


def test_a_wrong_law_is_dropped_when_the_running_code_disagrees(monkeypatch):
    right = first_look.extract

    def wrong(release, function, data, limits, **options):
        return right(lambda data, rng: len(data) + rng.laplace(scale=0.5), function, data, limits, **options)

    monkeypatch.setattr(first_look, "extract", wrong)
    assert look(dpaudit.per_release(right_scale), PureDP(1.0), ONE_MORE, name="f").result is None


@pytest.mark.parametrize(
    "options", [{"channel": "representation"}, {"timeout": 1.0}, {"alpha": 2.0}, {"samplez": 3}, {"channel": "bits"}]
)
def test_mechanisms_that_are_not_examined(options):
    assert look(dpaudit.per_release(half_scale), PureDP(1.0), ONE_MORE, name="f", **options).result is None


def test_it_can_be_left_out():
    with pytest.raises(dpaudit.PrivacyViolation) as caught:
        dpaudit.assert_private(dpaudit.per_release(half_scale), PureDP(1.0), ONE_MORE, exact_first=False)
    assert caught.value.result.stopped_by is StoppedBy.VIOLATION


def test_it_gives_up_at_once_where_the_code_is_not_followed():
    calls = []

    def ratio(data, rng):
        calls.append(1)
        return (len(data) + rng.laplace()) / (1.0 + rng.exponential())

    assert look(dpaudit.per_release(ratio), PureDP(1.0), ONE_MORE, name="f").note == ""
    assert len(calls) <= 2


def test_the_time_it_takes_is_a_part_of_the_seconds(monkeypatch):
    now = [0.0]

    def ticking():
        now[0] += LOOK.share
        return now[0]

    monkeypatch.setattr(time, "monotonic", ticking)
    rows = dpaudit.neighbours.fixed([([0] * k, [0] * (k + 1)) for k in range(50)])
    note = look(dpaudit.per_release(right_scale), PureDP(1.0), rows, name="f", seconds=1.0).note
    assert note == "" or int(note.split("code: ")[1].split()[0]) < 50


def test_check_says_exact(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.py").write_text("def noisy(data, rng):\n    return len(data) + rng.laplace(scale=0.5)\n")
    options = ["check", "counts.py:noisy", "--samples", "1000", "--rows", "integers(0, 9)", "--relation", "add-remove"]
    assert main([*options, "--epsilon", "1"]) == 1
    assert "exact, no samples" in capsys.readouterr().out
    main([*options, "--epsilon", "2"])
    assert "keep the claim." in capsys.readouterr().out
    main([*options, "--epsilon", "1", "--samples-only"])
    assert "xact" not in capsys.readouterr().out


def test_a_call_that_asks_without_end_is_cut() -> None:
    """The text of a large random number, as a program or a file name needs it, has 2^62 values."""

    def seeded(data, rng):
        return len(str(rng.integers(2**62))) + len(data) + rng.laplace()

    short = replace(LOOK, seconds=0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_look, "LOOK", short)
        assert look(dpaudit.per_release(seeded), dpaudit.PureDP(1.0), [([], [1])], name="seeded").result is None
