"""JUnit XML: one test case for each audit; violations fail, what was not decided is an error, and the witness is there."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from dpaudit.report import junit
from dpaudit.report.document import Document, Entry
from tests.report.report_examples import HOSTILE, document, outcomes, violation


def parsed(made: Document) -> Element:
    return ElementTree.fromstring(junit.render(made))


def test_outcomes() -> None:
    root = parsed(outcomes())
    kinds = {"failure", "error", "skipped", "system-out"}
    found = {case.get("name"): [child.tag for child in case if child.tag in kinds] for case in root.iter("testcase")}
    assert found == {
        "fine": [],
        "leak": ["failure"],
        "known leak": ["system-out"],
        "no longer found": ["failure"],
        "too few": ["error"],
        "known to be undecided": [],
    }
    for element in (root, root[0]):
        counts = [element.get(name) for name in ("tests", "failures", "errors", "skipped")]
        assert counts == ["6", "2", "1", "0"]
    types = [child.get("type") for child in root.iter() if child.tag in ("failure", "error")]
    assert types == ["VIOLATION", "UNMET_EXPECTATION", "INCONCLUSIVE"]


def test_a_failure_shows_the_witness_and_its_script() -> None:
    entry = Entry(result=violation(), path="audits/a.py", line=12, mechanism_path="app/a.py", mechanism_line=4)
    case = next(parsed(Document(entries=(entry,))).iter("testcase"))
    assert (case.get("classname"), case.get("file"), case.get("line")) == ("audits.a", "audits/a.py", "12")
    failure = case.find("failure")
    assert failure is not None
    text = failure.text or ""
    for part in ("neighbour: [0]", "output < 0.22", "688 of 1000", "app/a.py:4", 'print("1 < 2 & 3")'):
        assert part in text
    assert failure.get("message") == "VIOLATION: claimed PureDP(epsilon=1.0), shown epsilon >= 1.045"


def test_an_interrupted_run_is_marked() -> None:
    assert parsed(document()).find("testsuite/system-err") is None
    errors = parsed(document(interrupted=True)).find("testsuite/system-err")
    assert errors is not None
    assert "Interrupted" in (errors.text or "")


def test_names_survive_as_text() -> None:
    names = [case.get("name") for case in parsed(document()).iter("testcase")]
    assert HOSTILE in names
    assert len(names) == len(document().entries)
    assert {child.tag for child in parsed(document()).iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "system-out",
    }  # fmt: skip


def test_empty_and_equal() -> None:
    assert parsed(Document(entries=())).get("tests") == "0"
    assert junit.render(document()) == junit.render(document())
