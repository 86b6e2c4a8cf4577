"""The document as JUnit XML: one test case for each audit.

A violation, and a verdict other than the expected one, is a ``failure`` with the witness and its script as text. An audit that
could not decide, or could not run, is an ``error``, not ``skipped``: a skipped test counts as a success, and nothing
was shown. An expected violation is a passed test case, with the full text of its result in ``system-out``.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from dpaudit.claims import Verdict
from dpaudit.report.document import AccuracyEntry, Document, Entry, Failure
from dpaudit.report.escape import clean
from dpaudit.report.words import needs_attention, outcome
from dpaudit.result.text import claim_text, shown
from dpaudit.result.text import render as story
from dpaudit.utility.result import headline as accuracy_headline


def render(document: Document) -> str:
    """JUnit XML; without time stamps or host names, so that equal documents give equal files."""
    document = clean(document)
    cases = [*map(_case, document.entries), *map(_accuracy_case, document.accuracy), *map(_failure, document.failures)]
    totals = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": "0",
        "time": f"{sum(entry.result.seconds for entry in document.entries):.3f}",
    }
    root = Element("testsuites", {"name": "dpaudit", **totals})
    suite = SubElement(root, "testsuite", {"name": "dpaudit", **totals})
    _properties(suite, {"alpha_spent": f"{document.alpha_spent:.3g}", "complete": str(document.complete).lower()})
    suite.extend(cases)
    errors = [f"REGRESSION  {regression}" for regression in document.regressions]
    if document.interrupted:
        errors.append("Interrupted: these are the results so far.")
    if errors:
        SubElement(suite, "system-err").text = "\n".join(errors)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(entry: Entry) -> Element:
    result = entry.result
    case = _new_case(entry, result.name, result.seconds)
    _properties(
        case,
        {
            "verdict": str(result.verdict),
            "expected": str(entry.expect or ""),
            "claim": repr(result.claim),
            "epsilon_lower": f"{result.epsilon_lower:.6g}",
            "delta": f"{result.delta:g}",
            "detectable_epsilon": f"{result.detectable_epsilon:.6g}",
            "alpha": f"{result.alpha:g}",
            "samples": str(result.samples),
            "channel": result.channel.value,
            "seed": str(result.seed),
        },
    )
    if needs_attention(entry):
        failed = not entry.met
        kind = str(result.verdict) if entry.expect is None else "UNMET_EXPECTATION"
        message = f"{result.verdict}: claimed {claim_text(result.claim)}, shown {shown(result)}"
        if entry.expect is not None:
            message += f" ({outcome(entry)})"
        SubElement(case, "failure" if failed else "error", {"type": kind, "message": message}).text = _text(entry)
    elif result.verdict is Verdict.VIOLATION:
        SubElement(case, "system-out").text = _text(entry)
    return case


def _accuracy_case(entry: AccuracyEntry) -> Element:
    result = entry.result
    case = _new_case(entry, result.name)
    _properties(
        case,
        {
            "verdict": str(result.verdict),
            "expected": str(entry.expect or ""),
            "claim": repr(result.claim),
            "alpha": f"{result.alpha:g}",
            "samples": str(result.samples),
            "seed": str(result.seed),
        },
    )
    undecided = entry.expect is None and result.verdict is Verdict.INCONCLUSIVE
    if not entry.met or undecided:
        kind = str(result.verdict) if entry.expect is None else "UNMET_EXPECTATION"
        element = SubElement(
            case, "error" if undecided else "failure", {"type": kind, "message": accuracy_headline(result)}
        )
        element.text = str(result)
    elif result.verdict is Verdict.VIOLATION:
        SubElement(case, "system-out").text = str(result)
    return case


def _failure(failure: Failure) -> Element:
    case = _new_case(failure, failure.name)
    message = failure.reason.partition("\n")[0]
    SubElement(case, "error", {"type": "COULD_NOT_RUN", "message": message}).text = failure.reason
    return case


def _new_case(source: Entry | AccuracyEntry | Failure, name: str, seconds: float = 0.0) -> Element:
    """Return a test case with its name, duration and place."""
    case = Element("testcase", {"classname": _classname(source.path), "name": name, "time": f"{seconds:.3f}"})
    if source.path:
        case.set("file", source.path)
        case.set("line", str(source.line))
    return case


def _text(entry: Entry) -> str:
    lines = [story(entry.result)]
    if entry.mechanism_path:
        lines.append(f"The mechanism is defined at {entry.mechanism_path}:{entry.mechanism_line}.")
    if entry.path:
        lines.append(f"The audit is defined at {entry.path}:{entry.line}.")
    if entry.result.witness is not None and entry.result.witness.script_text:
        lines.append(f"\nThe program that repeats this measurement:\n\n{entry.result.witness.script_text}")
    return "\n".join(lines)


def _classname(path: str) -> str:
    """Return the path with dots, as test runners write it, so that viewers can group by folder."""
    return path.removesuffix(".py").replace("\\", "/").strip("./").replace("/", ".") or "dpaudit"


def _properties(parent: Element, values: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in values.items():
        SubElement(properties, "property", {"name": name, "value": value})
