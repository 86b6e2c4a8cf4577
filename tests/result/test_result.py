"""Results: one line of repr, no truth value, hashable, and JSON that is read back, also that of the first format."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit import ApproxDP, PureDP, Result, Verdict
from dpaudit.errors import InvalidArgument

FORMAT_1 = Path(__file__).with_name("result_format_1.json")  # written by the last version of that format


def half_noise(data: Any, size: int, rng: Any) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


@pytest.fixture(scope="module")
def violation() -> Result:
    result = dpaudit.audit(dpaudit.batched(half_noise), PureDP(1.0), [([], [1])], samples=4000, name="half\nnoise")
    assert result.verdict is Verdict.VIOLATION
    return result


def test_repr_is_one_line(violation: Result) -> None:
    assert repr(violation).startswith("<Result VIOLATION half noise: claimed PureDP(epsilon=1.0)")
    assert "\n" not in repr(violation)
    assert str(violation).count("\n") > 5


def test_a_result_has_no_truth_value(violation: Result) -> None:
    with pytest.raises(TypeError, match=r"ambiguous.*result\.verdict.*dpaudit\.assert_private"):
        bool(violation)
    with pytest.raises(TypeError, match="ambiguous"):
        assert violation


def test_results_are_hashable_and_equal_results_have_equal_hashes(violation: Result) -> None:
    again = pickle.loads(pickle.dumps(violation))
    assert again == violation
    assert len({violation, again, replace(violation, seed=1)}) == 2


def test_json_is_read_back(violation: Result) -> None:
    plain = json.loads(json.dumps(violation.to_dict(), allow_nan=False))
    assert Result.from_dict(plain) == violation


def test_json_of_format_1_is_read() -> None:
    plain = json.loads(FORMAT_1.read_text(encoding="utf-8"))
    assert plain["format"] == 1
    assert {"threshold"} <= plain.keys()
    assert "epsilon" in plain["witness"]
    result = Result.from_dict(plain)
    assert result.log_threshold == plain["threshold"]
    assert result.witness is not None
    assert result.witness.observed_log_ratio == plain["witness"]["epsilon"]
    assert result.claim == ApproxDP(1.0, 1e-6)
    assert result.verdict is Verdict.VIOLATION
    assert Result.from_dict(result.to_dict()) == result
    assert result.to_dict()["format"] == 2


@pytest.mark.parametrize("number", [0, 3, None, "2"])
def test_json_of_another_format_is_refused(violation: Result, number: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"must be 1 or 2; it is from another version"):
        Result.from_dict({**violation.to_dict(), "format": number})


def test_old_names_of_fields_work_and_warn(violation: Result) -> None:
    assert violation.witness is not None
    with pytest.warns(DeprecationWarning, match=r"Result\.threshold is now called Result\.log_threshold"):
        assert violation.threshold == violation.log_threshold  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"Witness\.epsilon is now called Witness\.observed_log_ratio"):
        assert violation.witness.epsilon == violation.witness.observed_log_ratio  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"ApproxDP\.claimed_delta is now called ApproxDP\.delta_claimed"):
        assert ApproxDP(1.0, 1e-6).claimed_delta == 1e-6  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"made= is now called mechanism_is_factory="):
        audit = dpaudit.Audit(name="a", mechanism=len, claim=PureDP(1.0), neighbours=[([], [1])], made=True)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match=r"Audit\.made is now called Audit\.mechanism_is_factory"):
        assert audit.made is True  # type: ignore[attr-defined]
