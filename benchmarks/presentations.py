"""Sound mechanisms whose calls present their outputs differently from call to call, and how often they are accused.

None of them looks at its data, or each release keeps the claim with equality; what differs is how the outputs of one call
are made and presented. Every accusation is false.
"""
# ruff: noqa: ARG001  # a mechanism is called with its data, also one that does not look at them

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import dpaudit
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import PureDP, Verdict
from dpaudit._util.intervals import clopper_pearson

Generator = np.random.Generator
RARE = 0.003  # probability of the output that changes how the others of its call are presented
ALPHAS = (1e-6, 0.1)


def _missing(size: int, rng: Generator, values: Any) -> list[Any]:
    return [None if gone else value for gone, value in zip(rng.random(size) < RARE, values.tolist(), strict=True)]


def noise_once(data: Any, size: int, rng: Generator) -> Any:
    return np.full(size, len(data) + rng.laplace())


def sorted_outputs(data: Any, size: int, rng: Generator) -> Any:
    return np.sort(len(data) + rng.laplace(size=size))


def antithetic(data: Any, size: int, rng: Generator) -> Any:
    half = rng.laplace(size=size - size // 2)
    return len(data) + np.concatenate([half, -half[: size // 2]])


def list_if_missing(data: Any, size: int, rng: Generator) -> Any:
    outputs = _missing(size, rng, rng.laplace(size=size))
    return outputs if None in outputs else np.array(outputs)


def series_of_integers(data: Any, size: int, rng: Generator) -> Any:
    return pd.Series(_missing(size, rng, rng.geometric(0.5, size))).tolist()


def nullable_series(data: Any, size: int, rng: Generator) -> Any:
    return pd.Series(_missing(size, rng, rng.geometric(0.5, size)), dtype="Int64")


def object_array(data: Any, size: int, rng: Generator) -> Any:
    return np.array(_missing(size, rng, rng.laplace(size=size)), dtype=object)


def masked_array(data: Any, size: int, rng: Generator) -> Any:
    outputs = rng.geometric(0.5, size)
    gone = rng.random(size) < RARE
    return np.ma.masked_array(outputs, gone) if gone.any() else outputs


def frame(data: Any, size: int, rng: Generator) -> Any:
    return pd.DataFrame({"n": _missing(size, rng, rng.geometric(0.5, size)), "x": rng.laplace(size=size)})


def records(data: Any, size: int, rng: Generator) -> Any:
    rows = np.empty(size, dtype=[("n", "i8"), ("x", "f8")])
    rows["n"], rows["x"] = rng.geometric(0.5, size), rng.laplace(size=size)
    return rows if (rows["n"] < 9).all() else rows.tolist()


def categories(data: Any, size: int, rng: Generator) -> Any:
    return pd.Categorical(_missing(size, rng, rng.choice(["no", "yes"], size=size)))


def rows_as_lists(data: Any, size: int, rng: Generator) -> Any:
    rows = [[value, 1.0] for value in _missing(size, rng, rng.laplace(size=size))]
    return rows if any(row[0] is None for row in rows) else np.array(rows)


def ragged_or_table(data: Any, size: int, rng: Generator) -> Any:
    rows = [rng.laplace(size=2 if long else 1).tolist() for long in rng.random(size) < RARE]
    return rows if len(set(map(len, rows))) > 1 else np.array(rows)


def padded_to_the_longest(data: Any, size: int, rng: Generator) -> Any:
    lengths = 1 + (rng.random(size) < RARE)
    table = np.full((size, lengths.max()), np.nan)
    table[:, 0] = rng.laplace(size=size)
    return table


def words_beside_numbers(data: Any, size: int, rng: Generator) -> Any:
    return np.array(["none" if value is None else value for value in _missing(size, rng, rng.geometric(0.5, size))])


def integers_or_floats(data: Any, size: int, rng: Generator) -> Any:
    outputs = rng.geometric(0.5, size)
    return outputs + 0.5 * (rng.random(size) < RARE) if rng.random() < 0.5 else outputs


def dicts(data: Any, size: int, rng: Generator) -> Any:
    outputs = [{"n": value} for value in _missing(size, rng, rng.geometric(0.5, size))]
    return outputs if all(output["n"] is not None for output in outputs) else pd.DataFrame(outputs).to_dict("records")


PRESENTED: tuple[Callable[..., Any], ...] = (
    noise_once, sorted_outputs, antithetic, list_if_missing, series_of_integers, nullable_series, object_array, masked_array,
    frame, records, categories, rows_as_lists, ragged_or_table, padded_to_the_longest, words_beside_numbers,
    integers_or_floats, dicts,
)  # fmt: skip


def one_audit(task: tuple[int, float, int, int]) -> tuple[float, str]:
    """Alpha and verdict of one audit of a mechanism."""
    number, alpha, seed, samples = task
    result = dpaudit.audit(
        dpaudit.batched(PRESENTED[number]), PureDP(1.0), [([], [1])],
        samples=samples, alpha=alpha, seed=seed, shrink=False, detect_factor=1e9,
    )  # fmt: skip
    return alpha, result.verdict.value


def rows(audits: int, samples: int, workers: int) -> Iterator[Row]:
    """One row a mechanism; more false alarms than alpha allows, or any at 1e-6, are a fault."""
    with mapper(workers) as spread:
        for number, mechanism in enumerate(PRESENTED):
            tasks = [(number, alpha, seed, samples) for alpha in ALPHAS for seed in range(audits)]
            seen = Counter(spread(one_audit, tasks))
            rare, common = (seen[alpha, Verdict.VIOLATION.value] for alpha in ALPHAS)
            row: Row = {
                "mechanism": mechanism.__name__,
                "rare": rare,
                "common": common,
                "nothing": sum(seen[alpha, Verdict.NO_VIOLATION_FOUND.value] for alpha in ALPHAS),
                "audits": len(ALPHAS) * audits,
            }
            if rare or clopper_pearson(common, audits, alpha=1e-3)[0] > ALPHAS[1]:
                row["fault"] = f"{mechanism.__name__} was accused in {rare} and {common} of {audits} audits"
            yield row


def run(
    *, quick: bool, audits: int | None = None, samples: int | None = None, workers: int = WORKERS
) -> Iterator[Table]:
    """60 audits of 20,000 samples at each alpha; in quick mode 3."""
    audits = audits or (3 if quick else 60)
    samples = samples or 20_000
    yield Table(
        title=f"Presentations: {audits} audits of {samples:,} samples of each mechanism at each alpha",
        columns=(
            Column("mechanism", "mechanism", "<22"),
            Column("rare", f"false alarms at {ALPHAS[0]:g}"),
            Column("common", f"at {ALPHAS[1]:g}"),
            Column("nothing", "NO_VIOLATION_FOUND"),
            Column("audits", "of"),
        ),
        rows=rows(audits, samples, workers),
    )
