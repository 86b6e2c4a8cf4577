"""The number of samples that would decide an undecided audit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Result, Verdict


def audit(samples: int, claimed: float) -> Result:
    def tight(data: list[int], size: int, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(len(data) + rng.laplace(scale=1.0 / claimed, size=size))

    mechanism = dpaudit.batched(tight)
    return dpaudit.audit(mechanism, PureDP(claimed), [([], [1])], samples=samples, seed=3)


@pytest.mark.parametrize("claimed", [0.2, 1.0])
def test_about_the_named_number_of_samples_decides(claimed: float) -> None:
    """Twice the number decides, and half of it does not."""
    few = audit(600, claimed)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert few.samples_needed is not None
    assert few.samples_needed > 600
    said = [re.search(r"About ([\d,]+) samples would decide", message) for message in few.messages]
    [number] = [int(found[1].replace(",", "")) for found in said if found]
    assert few.samples_needed <= number <= 1.1 * few.samples_needed  # two digits, rounded up
    assert audit(2 * few.samples_needed, claimed).verdict is Verdict.NO_VIOLATION_FOUND
    assert audit(few.samples_needed // 2, claimed).verdict is Verdict.INCONCLUSIVE


def test_no_number_is_named_if_samples_do_not_help() -> None:
    constant = dpaudit.batched(lambda data, size, rng: np.zeros(size))
    result = dpaudit.audit(constant, PureDP(1.0), [([], [1])], samples=20_000, seed=0)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not any("would decide" in message for message in result.messages)
    assert Result.from_dict(result.to_dict()).samples_needed == result.samples_needed
