"""A claim is refuted only on single releases, whatever a call for several outputs makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.engine.search.confirmation import RESERVE

Generator = np.random.Generator
PAIR = [([], [1])]


def audited(mechanism: Callable[..., Any], seed: int, **options: Any) -> dpaudit.Result:
    return dpaudit.audit(
        dpaudit.batched(mechanism), PureDP(1.0), PAIR, seed=seed, **{"samples": 10_000, "detect_factor": 1e9, **options}
    )


def half_noise(data: Any, size: int, rng: Generator) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


def noise_once(data: Any, size: int, rng: Generator) -> Any:
    return np.full(size, len(data) + rng.laplace())


def missing(size: int, rng: Generator, values: Any) -> list[Any]:
    """About one value in 300 is missing, whatever the data are."""
    return [None if gone else value for gone, value in zip(rng.random(size) < 0.003, values.tolist(), strict=True)]


def list_if_missing(data: Any, size: int, rng: Generator) -> Any:
    outputs = missing(size, rng, rng.laplace(size=size))
    return outputs if None in outputs else np.array(outputs)


def series_of_integers(data: Any, size: int, rng: Generator) -> Any:
    return pd.Series(missing(size, rng, rng.geometric(0.5, size))).tolist()


def nullable_series(data: Any, size: int, rng: Generator) -> Any:
    return pd.Series(missing(size, rng, rng.geometric(0.5, size)), dtype="Int64")


def object_array(data: Any, size: int, rng: Generator) -> Any:
    return np.array(missing(size, rng, rng.laplace(size=size)), dtype=object)


def frame(data: Any, size: int, rng: Generator) -> Any:
    return pd.DataFrame({"n": missing(size, rng, rng.geometric(0.5, size)), "x": rng.laplace(size=size)})


def rows_as_lists(data: Any, size: int, rng: Generator) -> Any:
    rows = [[value, 1.0] for value in missing(size, rng, rng.laplace(size=size))]
    return rows if any(row[0] is None for row in rows) else np.array(rows)


def ragged_or_table(data: Any, size: int, rng: Generator) -> Any:
    rows = [rng.laplace(size=2 if long else 1).tolist() for long in rng.random(size) < 0.003]
    return rows if len(set(map(len, rows))) > 1 else np.array(rows)


def padded_to_the_longest(data: Any, size: int, rng: Generator) -> Any:
    lengths = 1 + (rng.random(size) < 0.003)
    table = np.full((size, lengths.max()), np.nan)
    table[:, 0] = rng.laplace(size=size)
    return table


def words_beside_numbers(data: Any, size: int, rng: Generator) -> Any:
    return np.array(["none" if value is None else value for value in missing(size, rng, rng.geometric(0.5, size))])


def sorted_outputs(data: Any, size: int, rng: Generator) -> Any:
    return np.sort(len(data) + rng.laplace(size=size))


PRESENTED = [
    noise_once, list_if_missing, series_of_integers, nullable_series, object_array, frame, rows_as_lists, ragged_or_table,
    padded_to_the_longest, words_beside_numbers, sorted_outputs,
]  # fmt: skip


@pytest.mark.parametrize("mechanism", PRESENTED, ids=lambda mechanism: mechanism.__name__)
def test_sound_mechanisms_are_not_accused_however_outputs_are_presented(mechanism: Callable[..., Any]) -> None:
    """A false alarm has probability 1e-6 in each of the 11 x 4 audits."""
    for seed in range(4):
        result = audited(mechanism, seed, alpha=1e-6 / 44)
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
    assert any("single releases did not" in message for message in result.messages)
    assert result.samples_confirming > 0
    # The rest of the audit starts with the reserve and what the confirmation left of its capital, not with all of it.
    extra = result.log_threshold - math.log(1.0 / result.alpha)
    assert 0.0 < extra <= -math.log(RESERVE)


def test_one_release_mechanisms_need_no_confirmation() -> None:
    single = dpaudit.per_release(lambda data, rng: len(data) + rng.laplace(scale=0.5))
    result = dpaudit.audit(single, PureDP(1.0), PAIR, seed=0, samples=10_000, shrink=False)
    assert result.verdict is Verdict.VIOLATION
    assert result.samples_confirming == 0


def test_too_little_time_to_confirm_is_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpaudit.engine import run
    from dpaudit.engine.sampling.blocks import OutOfTime

    def out_of_time(*arguments: Any, **keywords: Any) -> Any:
        raise OutOfTime

    monkeypatch.setattr(run._SingleReleases, "draw", out_of_time)
    result = audited(half_noise, 0)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.parameter_lower < 1.0
    assert any("confirm" in message for message in result.messages)
