"""A claim is refuted only on single releases, whatever a call for several outputs makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpaudit
from benchmarks.presentations import PRESENTED, noise_once
from dpaudit import PureDP, Verdict
from dpaudit.engine.search.confirmation import CONFIRMATION_RESERVE

Generator = np.random.Generator
PAIR = [([], [1])]


def audited(mechanism: Callable[..., Any], seed: int, **options: Any) -> dpaudit.Result:
    return dpaudit.audit(
        dpaudit.batched(mechanism), PureDP(1.0), PAIR, seed=seed, **{"samples": 10_000, "detect_factor": 1e9, **options}
    )


def half_noise(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


@pytest.mark.parametrize("mechanism", PRESENTED, ids=lambda mechanism: mechanism.__name__)
def test_sound_mechanisms_are_not_accused_however_outputs_are_presented(mechanism: Callable[..., Any]) -> None:
    """A false alarm has probability 1e-6 in each of the audits."""
    for seed in range(4):
        result = audited(mechanism, seed, alpha=1e-6 / 100)
        assert result.verdict is Verdict.NO_VIOLATION_FOUND, result


def test_a_violation_is_confirmed_on_single_releases() -> None:
    sizes: list[int] = []

    def recorded(data: Any, size: int, rng: Generator) -> Any:
        sizes.append(size)
        return half_noise(data, size, rng)

    result = audited(recorded, 0, shrink=False)
    assert result.verdict is Verdict.VIOLATION
    assert 0 < result.samples_confirming <= sizes.count(1)
    assert result.samples_confirming < 2 * result.samples


def test_evidence_from_dependent_outputs_is_withdrawn() -> None:
    """Noise drawn once for a call refutes the claim in batches, and never on single releases."""
    result = audited(noise_once, 4)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert any("one noise value is drawn for the whole batch" in message for message in result.messages)
    assert result.samples_confirming > 0
    # The rest of the audit starts with the reserve and what the confirmation left of its capital, not with all of it.
    extra = result.log_threshold - math.log(1.0 / result.alpha)
    assert 0.0 < extra <= -math.log(CONFIRMATION_RESERVE)


def test_one_release_mechanisms_need_no_confirmation() -> None:
    single = dpaudit.per_release(lambda data, rng: len(data) + rng.laplace(scale=0.5))
    result = dpaudit.audit(single, PureDP(1.0), PAIR, seed=0, samples=10_000, shrink=False)
    assert result.verdict is Verdict.VIOLATION
    assert result.samples_confirming == 0


def test_too_little_time_to_confirm_is_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpaudit.engine import single_releases
    from dpaudit.engine.sampling.blocks import OutOfTime

    def out_of_time(*arguments: Any, **keywords: Any) -> Any:
        raise OutOfTime

    monkeypatch.setattr(single_releases.SingleReleases, "draw", out_of_time)
    result = audited(half_noise, 0)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.parameter_lower < 1.0
    assert any("confirm" in message for message in result.messages)


class CachedUntilItRaises:
    """Outputs of large calls leak; single releases are cached until a large call raises."""

    def __init__(self) -> None:
        self.calls = 0
        self.kept: dict[int, tuple[float, int]] = {}

    def __call__(self, data: Any, size: int, rng: Generator) -> Any:
        if size > 1:
            self.calls += 1
            if self.calls > 40:
                raise ValueError
            return 5 * len(data) + rng.laplace(size=size)
        value, left = self.kept.get(len(data), (0.0, 0))
        if not left or self.calls > 40:
            value, left = len(data) + rng.laplace(), 20
        self.kept[len(data)] = (value, left - 1)
        return [value]


def test_releases_that_confirm_are_tested_for_dependence_if_a_later_call_raises() -> None:
    result = audited(CachedUntilItRaises(), 4, samples=12_000, alpha=1e-3, until="budget", shrink=False)
    assert any("ended after the violation" in message for message in result.messages)
    assert result.samples_confirming > 0
    assert result.verdict is Verdict.INCONCLUSIVE
    assert any("a release often equals the one before it" in message for message in result.messages)


def test_an_audit_without_samples_for_single_releases_does_not_say_that_outputs_are_equal() -> None:
    def rounded(data: Any, size: int, rng: Generator) -> Any:
        outputs = len(data) + rng.laplace(size=size)
        return np.round(outputs, 0 if size > 1 and abs(outputs).max() > 6 else 3)

    result = audited(rounded, 0, samples=1000)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not any("All outputs were equal" in message for message in result.messages)
