"""The small language for rows: what it makes, and that nothing in it is executed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit._util.hypothesis_bridge import explore
from dpaudit.cli.rows import NAMES, parse_rows
from dpaudit.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("integers(0, 10)", st.integers(0, 10)),
        (" integers(min_value=-3, max_value=4) ", st.integers(-3, 4)),
        ("floats(0, 1, allow_nan=False)", st.floats(0, 1, allow_nan=False)),
        ("sampled_from(['a', 'b'])", st.sampled_from(["a", "b"])),
        ("sampled_from((1, -2, inf))", st.sampled_from((1, -2, float("inf")))),
        ("tuples(booleans(), none())", st.tuples(st.booleans(), st.none())),
        ("fixed_dictionaries({'age': integers(0, 99)})", st.fixed_dictionaries({"age": st.integers(0, 99)})),
        ("one_of(none(), text(max_size=2))", st.one_of(st.none(), st.text(max_size=2))),
        ("lists(just(b'x'), max_size=1)", st.lists(st.just(b"x"), max_size=1)),
    ],
)
def test_the_strategies_that_it_makes(text: str, same: st.SearchStrategy[object]) -> None:
    assert repr(parse_rows(text)) == repr(same)


def test_the_strategies_yield_values() -> None:
    seen = set()
    explore(parse_rows("integers(0, 2)"), lambda value: bool(seen.add(value)), examples=100, seed=0)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an expression"),
        ("integers(0, 10", "is not an expression"),
        ("a\0b", "is not an expression"),
        ("(" * 300, "is not an expression"),
        ("3", "must be a strategy"),
        ("[integers()]", "must be a strategy"),
        ("integer()", "'integer' is not a strategy here.*Did you mean 'integers'?"),
        ("__import__('os').system('true')", "is not allowed"),
        ("integers.__class__", "is not allowed"),
        ("builds(dict)", "'builds' is not a strategy here"),
        ("integers(*[1, 2])", "is not allowed"),
        ("integers(**{'min_value': 1})", r"\*\* is not allowed"),
        ("integers().map(abs)", "is not allowed"),
        ("integers(0, 10**9)", "is not allowed"),
        ("integers(0, (lambda: 1)())", "is not allowed"),
        ("[x for x in ()]", "is not allowed"),
        ("f'{1}'", "is not allowed"),
        ("integers(5, 1)", "rows="),
        ("integers('a')", "rows="),
        ("floats(nan, 1)", "rows="),
        ("sampled_from([])", "rows="),
        ("integers(unknown=1)", "unknown"),
        ("fixed_dictionaries({[1]: none()})", "unhashable"),
        ("one_of()", "has no value at all"),
    ],
)
def test_unsafe_or_invalid_rows_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        parse_rows(text)


LITERALS = st.one_of(
    st.integers().map(repr),
    st.floats().map(repr),
    st.text(max_size=3).map(repr),
    st.sampled_from(["None", "[]", "inf", "..."]),
)


def calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    named = st.builds(
        "{}={}".format, st.sampled_from(["min_value", "max_value", "min_size", "alphabet", "width"]), inner
    )
    many = st.lists(st.one_of(inner, named), max_size=3).map(", ".join)
    return st.one_of(
        st.builds("{}({})".format, st.sampled_from(NAMES), many),
        many.map("[{}]".format),
        inner.map(lambda text: f"{{{text}: {text}}}"),
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(st.recursive(LITERALS, calls, max_leaves=5), st.text(max_size=12)))
def test_any_text_is_a_strategy_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidArgument):
        assert isinstance(parse_rows(text), st.SearchStrategy)
