"""Keywords of the entry points: one set of names and defaults, shown by ``help``, with old names that warn."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any

import pytest

import dpaudit
from dpaudit.engine.events import Finished
from dpaudit.engine.options import Options
from dpaudit.errors import InvalidArgument
from tests.engine.short_audits import noisy_count


def keywords(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def test_the_defaults_of_audit_are_those_of_the_options() -> None:
    own = keywords(dpaudit.audit)
    assert own.pop("name") is None
    assert own.pop("accumulate") is None
    assert own == {field.name: field.default for field in fields(Options)}
    assert MISSING not in own.values()


@pytest.mark.parametrize(
    ("function", "more"), [(dpaudit.assert_private, {"allow_inconclusive", "exact_first"}), (dpaudit.Audit.run, set())]
)
def test_other_entry_points_show_the_keywords_of_audit(function: Any, more: set[str]) -> None:
    shown = keywords(function)
    assert shown.keys() - more == keywords(dpaudit.audit).keys()
    assert {name: default for name, default in shown.items() if name not in more} == keywords(dpaudit.audit)


def test_every_keyword_of_audit_is_documented() -> None:
    text = inspect.getdoc(dpaudit.audit) or ""
    assert all(f"\n{name}\n    " in text for name in inspect.signature(dpaudit.audit).parameters)


def test_unknown_and_old_keywords_are_handled_by_every_entry_point() -> None:
    definition = dpaudit.Audit(name="a", mechanism=noisy_count(1.0), claim=dpaudit.PureDP(1.0), neighbours=[([], [1])])

    def assert_it(**options: Any) -> Any:
        return dpaudit.assert_private(
            noisy_count(1.0), dpaudit.PureDP(1.0), [([], [1])], allow_inconclusive=True, **options
        )

    for run in (definition.run, assert_it):
        with pytest.raises(InvalidArgument, match="Did you mean 'samples'"):
            run(sampels=2000)
        with pytest.warns(DeprecationWarning, match="power= is now called detect_factor="):
            run(power=3.0, samples=2000)


def test_a_definition_runs_under_another_name() -> None:
    definition = dpaudit.Audit(name="a", mechanism=noisy_count(1.0), claim=dpaudit.PureDP(1.0), neighbours=[([], [1])])
    assert definition.run(samples=2000).name == "a"
    assert definition.run(samples=2000, name="b").name == "b"


def test_the_last_event_carries_the_result_with_all_its_messages() -> None:
    seen: list[Any] = []
    pairs = [([], [1]), ([], [])]
    result = dpaudit.audit(noisy_count(1.0), dpaudit.PureDP(1.0), pairs, samples=2000, on_event=seen.append)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].result is result
    assert "1 of 2 pairs" in result.messages[-1]
