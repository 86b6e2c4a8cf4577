"""Lines and totals on a terminal."""

from __future__ import annotations

import io
import math

import pytest

from dpaudit._util.terminal.console import Console
from dpaudit.claims import ApproxDP, GaussianDP, PureDP, Verdict
from dpaudit.report import markdown
from dpaudit.report.document import Document, Entry
from dpaudit.report.terminal import Style, green_notes, line, show_line, show_summary, story, totals
from dpaudit.result.text import headline
from tests.report.report_examples import inconclusive, result, violation


def test_lines_say_what_was_expected() -> None:
    plain = line(Entry(result=violation("x")))
    assert plain == (
        "VIOLATION           x: claimed PureDP(epsilon=1.0), shown epsilon >= 1.045 (5,568 samples, 1.2 s)"
    )
    assert line(Entry(result=violation("x"), expect=Verdict.VIOLATION)) == f"{plain} [as expected]"
    unmet = line(Entry(result=result("x"), expect=Verdict.VIOLATION))
    assert unmet.endswith("[UNEXPECTED: expected VIOLATION]")


def test_the_full_text_names_the_line() -> None:
    entry = Entry(result=violation(), path="audits/a.py", line=12, mechanism_path="app/a.py", mechanism_line=4)
    ending = "\nThe mechanism is defined at app/a.py:4.\nThe audit is defined at audits/a.py:12."
    assert story(entry).endswith(ending)
    assert "defined at" not in story(Entry(result=violation()))


def test_totals() -> None:
    one = Document(entries=(Entry(result=violation()),))
    assert totals(one) == "1 audit: 1 VIOLATION. False-alarm probability spent: 1e-06."
    entries = (*one.entries, Entry(result=result(), expect=Verdict.VIOLATION), Entry(result=inconclusive()))
    text = totals(Document(entries=entries))
    assert text.startswith("3 audits: 1 VIOLATION, 1 NO_VIOLATION_FOUND, 1 INCONCLUSIVE; 0 of 1 expectations met.")
    stream = io.StringIO()
    show_summary(Console(stream), Document(entries=entries))
    assert stream.getvalue().endswith(f"{text}\n")
    assert len(stream.getvalue().splitlines()) == 5


@pytest.mark.parametrize(
    ("variables", "colour"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
    ids=str,
)
def test_colours(variables: dict[str, str], colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    style = Style.for_stream(Console(stream))
    assert style.colour == colour
    show_line(Console(stream), Entry(result=violation()), style)
    assert ("\x1b[31mVIOLATION" in stream.getvalue()) == colour


def test_the_detectable_epsilon_is_stated_for_the_kind_of_claim() -> None:
    pure = str(result(claim=PureDP(1.0)))
    assert "An event of probability m on one data set" in " ".join(pure.split())
    for claim, where in ((ApproxDP(1.0, 1e-5), ""), (GaussianDP(1.0), " at epsilon 0 (0.383)")):
        text = " ".join(str(result(claim=claim)).split())
        assert (
            f"An event of probability m, plus the delta that the claim allows{where}, on one data set and m exp(-epsilon)"
            in text
        )
    for pairs, said in ((1, "no event is promised to be detected"), (20, "if one of the 20 pairs leaks")):
        nothing = result(detectable={0.5: math.inf, 0.1: math.inf}, pairs=pairs)
        assert said in " ".join(str(nothing).split())
        assert "inf" not in str(nothing)
    assert "on its neighbour, on one of the 20 pairs, would have been" in " ".join(str(result(pairs=20)).split())


def test_the_notes_of_an_audit_that_found_nothing_are_printed() -> None:
    stream = io.StringIO()
    show_line(Console(stream), Entry(result=result(messages=("Of 40 pairs only 32 were tried.",))), Style())
    assert stream.getvalue().splitlines()[1:] == ["    Note: Of 40 pairs only 32 were tried."]
    assert green_notes(Entry(result=violation(messages=("This is in its story.",)))) == []


def test_replaying_is_not_mentioned_if_it_is_unknown() -> None:
    assert str(result(reproducible=False, samples=200)).endswith("A rerun with this seed may draw other numbers.")
    assert "rerun" not in str(result(reproducible=True))


def test_a_claim_that_is_all_that_was_refuted_leaves_larger_epsilons() -> None:
    assert "shown epsilon > 1 (" in headline(violation(claim=PureDP(1.0), epsilon_lower=1.0))
    assert "shown epsilon >= 1.2 (" in headline(violation(claim=PureDP(1.0), epsilon_lower=1.2))
    assert "shown epsilon >= 1 (" in headline(result(claim=PureDP(1.0), epsilon_lower=1.0))
    assert "| epsilon &gt; 1 |" in markdown.render(
        Document(entries=(Entry(result=violation(claim=PureDP(1.0), epsilon_lower=1.0)),))
    )
