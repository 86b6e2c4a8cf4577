"""Suspects: the user's own functions of one output, as bets, in the witness and in its script; and post-processing."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.engine.encoding.batch import encode, stack
from dpaudit.engine.encoding.suspects import as_suspects, with_suspects
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Raised
from tests.engine.short_audits import same
from tests.engine.witness import scripted

CLAIM = dpaudit.PureDP(1.0)
PAIR = [(0, 1)]
HASHED = dpaudit.per_release(scripted.hashed)
MANY_HASHED = dpaudit.batched(scripted.many_hashed)


def audited(suspect: Any, mechanism: Any = HASHED, **options: Any) -> dpaudit.Result:
    return dpaudit.audit(mechanism, CLAIM, PAIR, suspect=suspect, **{"samples": 20_000, "shrink": False, **options})


def test_a_leak_in_a_pair_of_numbers_is_found_through_the_suspect_alone() -> None:
    assert audited(None).verdict is not dpaudit.Verdict.VIOLATION
    found = audited(scripted.parity)
    assert found.verdict is dpaudit.Verdict.VIOLATION
    assert found.samples < 2_000


@pytest.mark.parametrize(
    ("suspect", "event"),
    [
        (scripted.even, "suspect even(output) is "),
        (scripted.parity, "suspect parity(output) "),
        (scripted.colour, "suspect colour(output) is 'blue output'"),
        (scripted.fails, "suspect fails(output) raises ValueError: no parity"),
        ({"left or right": scripted.even}, "suspect left or right(output) is "),
        ([len, scripted.even], "suspect even(output) is "),
        (scripted.truth_or_word, "suspect truth_or_word(output) is "),
    ],
)
def test_events_name_the_suspect_and_scripts_count_them(suspect: Any, event: str, tmp_path: Path) -> None:
    found = audited(suspect, MANY_HASHED if suspect is scripted.even else HASHED)
    assert found.verdict is dpaudit.Verdict.VIOLATION
    assert found.witness is not None
    shown = found.witness.event
    assert shown.startswith(event) or shown in (
        event,
        "suspect fails(output) is number",
        "suspect colour(output) is 'red'",
    )
    script = tmp_path / "script.py"
    script.write_text(found.witness.script(), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    ratio = float(ran.stdout.partition("log-ratio ")[2].partition(";")[0])
    assert ratio > 1.0


def test_a_suspect_that_cannot_be_imported_is_a_placeholder() -> None:
    found = audited(lambda output: scripted.parity(output))
    assert found.witness is not None
    assert "suspect_0 = placeholder(" in found.witness.script()
    assert "the suspect tests.engine.test_suspects" in found.witness.script()


def test_the_values_do_not_depend_on_the_batch() -> None:
    suspects = as_suspects([scripted.truth_or_word, scripted.fails, scripted.parity])
    outputs = [(seed, answer) for seed in range(5) for answer in range(2)] + [Raised("ValueError")]
    together = with_suspects(encode(outputs), [outputs], suspects)
    alone = stack([with_suspects(encode([output]), [[output]], suspects) for output in outputs])
    for one, other in zip(together.suspects, alone.suspects, strict=True):
        assert one.codes.tolist() == other.codes.tolist()
        assert np.array_equal(one.values, other.values, equal_nan=True)
    chosen = together.rows(slice(2, 7)).first(3)
    assert [len(values) for values in chosen.suspects] == [3, 3, 3]
    assert chosen.suspects[2].values.tolist() == together.suspects[2].values[2:5].tolist()


def test_executors_change_nothing() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert same(audited(scripted.even), audited(scripted.even, executor=pool))


def test_a_sound_mechanism_is_not_accused_through_its_suspects() -> None:
    # Randomised response at exactly the claim: the suspect holds all the information, and its bound is tight.
    private = dpaudit.batched(lambda data, size, rng: rng.random(size) < np.exp(data) / (1.0 + np.exp(1.0)))
    found = audited([bool, float, str], private, samples=200_000)
    assert found.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND


@pytest.mark.parametrize(
    ("suspect", "message"),
    [
        (3, r"suspect=3 must be a function of one output, a list of such functions, or a dict of them by name\."),
        ([3], "suspect=.* must be a function of one output"),
        ("even", "suspect='even' must be a function"),
        ([len, len], "names must differ"),
    ],
)
def test_other_arguments_are_refused(suspect: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        audited(suspect)


def test_a_suspect_returns_one_value() -> None:
    with pytest.raises(InvalidArgument, match=r"suspect=tuple: returned .*which holds several numbers"):
        audited({"tuple": tuple})


def test_suspects_belong_to_the_values() -> None:
    with pytest.raises(InvalidArgument, match='needs channel="value"'):
        audited(len, channel="representation")


@pytest.mark.parametrize(
    "mechanism",
    [
        HASHED.after(scripted.parity),
        MANY_HASHED.after(scripted.parity),
        dpaudit.fresh(scripted.make_plain_hashed).after(scripted.parity),
        dpaudit.after(scripted.plain_hashed, scripted.parity),
        dpaudit.after(scripted.Hashing(), scripted.parity),
        dpaudit.after("tests.engine.witness.scripted:Hashing", scripted.parity),
    ],
    ids=["per_release", "batched", "fresh", "plain", "object", "name"],
)
def test_post_processing_is_a_mechanism_whose_script_runs(mechanism: Any, tmp_path: Path) -> None:
    found = dpaudit.audit(mechanism, CLAIM, PAIR, samples=20_000, shrink=False)
    assert found.verdict is dpaudit.Verdict.VIOLATION
    assert found.witness is not None
    script = tmp_path / "script.py"
    script.write_text(found.witness.script(), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert float(ran.stdout.partition("log-ratio ")[2].partition(";")[0]) > 1.0


def test_an_exception_of_the_post_processing_is_the_output_of_one_release() -> None:
    outputs = dpaudit.batched(lambda data, size, rng: [1, 0, 2]).after(lambda output: 6 // output)
    assert outputs.sample([], 3, np.random.default_rng(0)) == [
        6,
        Raised("ZeroDivisionError", "integer division or modulo by zero"),
        3,
    ]
