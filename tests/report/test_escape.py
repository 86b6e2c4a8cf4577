"""Text of user code is shown with its control characters escaped, in every report."""

from __future__ import annotations

import io
import re
import unicodedata
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit._util.terminal.console import Console
from dpaudit._util.terminal.escape import one_line, visible
from dpaudit.report import html, junit, markdown, sarif
from dpaudit.report.terminal import Style, line, show_line, show_summary, story
from tests.report.report_examples import HIDDEN, document

# What neither a terminal nor an XML reader may see raw, written down apart from the code under test.
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@given(st.text(st.characters()))
def test_nothing_hidden_remains(text: str) -> None:
    for shown in (visible(text), one_line(text)):
        assert not FORBIDDEN.search(shown)
        shown.encode()  # and it can be written
    assert "\n" not in one_line(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M", "Zs"])))
def test_visible_text_is_unchanged(text: str) -> None:
    assert visible(text) == text == one_line(text)


@given(st.text(st.characters(exclude_characters="\\")))
def test_the_original_can_be_recovered(text: str) -> None:
    def unescape(found: re.Match[str]) -> str:
        return found[0].encode("ascii").decode("unicode_escape")

    assert re.sub(r"\\(x..|u....|U........|[nrt])", unescape, one_line(text)) == text


def test_emoji_and_scripts_with_joiners_stay() -> None:
    text = "\U0001f468\u200d\U0001f469 \u0915\u094d\u200c\u0937"
    assert any(unicodedata.category(char) == "Cf" for char in text)
    assert visible(text) == text


@pytest.mark.parametrize("module", [html, junit, markdown, sarif], ids=lambda module: module.__name__)
def test_no_report_holds_a_control_character(module: ModuleType) -> None:
    text = module.render(document())
    assert not FORBIDDEN.search(text)
    assert not re.search(r"^::error::", text, re.MULTILINE)
    assert "u202e" in text  # it is shown


def test_a_name_cannot_steer_the_terminal() -> None:
    entry = next(entry for entry in document().entries if entry.result.name == HIDDEN)
    summary, coloured = io.StringIO(), io.StringIO()
    show_summary(Console(summary), document())
    for text in (line(entry), story(entry), summary.getvalue()):
        assert not FORBIDDEN.search(text)
        assert not re.search(r"^::error::", text, re.MULTILINE)
    assert len(line(entry).splitlines()) == 1
    show_line(Console(coloured), entry, Style(colour=True))
    assert coloured.getvalue().count("\x1b[") == 2  # our own, around the verdict
