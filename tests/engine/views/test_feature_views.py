"""Leaks in collections, text and bytes are found by their features, with events that read, run and can be stored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.encoding.feature_table import table_of_blocks
from dpaudit.engine.encoding.features import feature
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.condition import AnyOf, Interval, Number
from dpaudit.engine.views.feature import Feature, fit_feature_scores
from dpaudit.engine.views.learner import Learner, Settled
from dpaudit.engine.views.plain_events import read_event
from dpaudit.engine.views.view import ScoreView
from dpaudit.engine.witness.python_code import OutputNames, event_code
from tests.engine.witness import scripted

PAIR = [(0, 1)]


def audited(mechanism: Any, **options: Any) -> dpaudit.Result:
    return dpaudit.audit(
        dpaudit.per_release(mechanism), dpaudit.PureDP(1.0), PAIR, shrink=False, **{"samples": 20_000, **options}
    )


@pytest.mark.parametrize(
    ("mechanism", "event"),
    [
        (scripted.random_set, "count of 'w17' in output"),
        (scripted.words_in_a_list, "count of 'w"),
        (scripted.value_at_a_key, "output['k17']"),
        (scripted.json_of_counts, "json.loads(output)['count']"),
        (scripted.token_and_name, "output ends with "),
        (scripted.packed_numbers, "number 1 of output packed as <d"),
        (scripted.set_of_numbers, "count of 17 in output"),
    ],
)
def test_the_event_names_the_feature_and_its_script_counts_it(mechanism: Any, event: str, tmp_path: Path) -> None:
    found = audited(mechanism)
    assert found.verdict is dpaudit.Verdict.VIOLATION, found
    assert found.coverage == 1.0
    assert found.witness is not None
    assert event in found.witness.event
    if mechanism is scripted.random_set:  # the others run in this process only: a script takes half a second
        script = tmp_path / "script.py"
        script.write_text(found.witness.script(), encoding="utf-8")
        root = Path(__file__).parents[3]
        ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=root)
        assert float(ran.stdout.partition("log-ratio ")[2].partition(";")[0]) > 1.0


def test_a_sound_twin_is_covered_and_not_accused() -> None:
    found = audited(scripted.sound_set, samples=30_000)
    assert found.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND, found
    assert found.coverage == 1.0


def drawn(mechanism: Any, count: int, seed: int) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    return [[mechanism(side, rng) for _ in range(count)] for side in (0, 1)]


def test_every_form_of_an_event_holds_for_the_same_outputs() -> None:
    sides = drawn(scripted.value_at_a_key, 150, 3)
    batches = [encode(side).with_features(table_of_blocks([side])) for side in sides]
    views = [view for view, _ in build_views((batches[0], batches[1])) if isinstance(view, ScoreView)]
    assert {view.name for view in views} >= {"features", "feature 1"}
    for view in views:
        if not view.needs_features:
            continue
        cells = np.arange(view.cells) % 3 != 0
        condition = view.condition(cells, batches[0].labels)
        inside = condition.contains(batches[0])
        assert inside.tolist() == cells[view.locate(batches[0])].tolist()
        code = event_code(condition, batches[0].labels)
        names: dict[str, Any] = {"feature": feature, "np": np}
        exec(code.definitions, names)
        assert [bool(eval(code.expression, {**names, "output": output})) for output in sides[0][:50]] == inside[
            :50
        ].tolist()
        stored = condition.plain()
        if stored is not None:
            assert read_event(stored).contains(batches[0]).tolist() == inside.tolist()


def test_tests_and_absent_numbers_read_like_sentences() -> None:
    def said(name: str, *intervals: Interval, nan: bool = False) -> str:
        return AnyOf((Number(Feature(name), intervals, nan, name),)).text(OutputNames({}))

    assert said("output ends with 'bob'", Interval(0.5, None)) == "output ends with 'bob'"
    assert said("output ends with 'bob'", Interval(-np.inf, 1.0)) == "not (output ends with 'bob')"
    assert said("output['k']", nan=True) == "output['k'] is absent or NaN"
    assert said("count of 'a' in output", Interval(1.0, None)) == "count of 'a' in output >= 1.0"


@pytest.mark.parametrize(
    ("outputs", "needed"),
    [
        ([1.5, 2.5] * 50, False),
        (["yes", "no"] * 50, False),
        ([{"a": float(number)} for number in range(100)], False),
        ([("rows", float(number)) for number in range(100)], False),
        ([{number} for number in range(100)], True),
        ([str(number) for number in range(100)], True),
    ],
)
def test_features_are_computed_where_structures_and_numbers_do_not_suffice(outputs: list[Any], needed: bool) -> None:
    learner = Learner(build_views)
    batch = encode(outputs).with_features(table_of_blocks([outputs]))
    learner.settle(Settled((), (batch, batch)), len(outputs))
    assert learner.features is needed
    assert (learner.kept()[0].features is not None) is needed


def test_features_that_nothing_has_give_no_score() -> None:
    assert fit_feature_scores((encode([1.0]), encode([2.0]))) == (None, [])
