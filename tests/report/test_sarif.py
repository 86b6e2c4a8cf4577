"""SARIF: it keeps to the schema, points at the right line, and its fingerprints mean the problem, not the run.

The schema beside this file has the objects and properties that dpaudit writes, each required, typed and closed as in the
schema that OASIS publishes for 2.1.0; it leaves out what dpaudit never writes (code flows, graphs, fixes, taxonomies, ...),
so what keeps to it keeps to the published one.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.claims import Verdict
from dpaudit.report import sarif
from dpaudit.report.document import Document, Entry
from tests.report.report_examples import HOSTILE, document, inconclusive, outcomes, result, violation

SCHEMA = json.loads((Path(__file__).parent / "test_sarif_schema.json").read_text(encoding="utf-8"))
TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def errors(value: Any, schema: Any, where: str = "$") -> Iterator[str]:
    """Return the violations of the schema; knows the keywords that the schema above uses, and refuses others."""
    assert set(schema) <= {
        "title", "definitions", "$ref", "type", "required", "properties", "additionalProperties", "items",
        "enum", "pattern", "minimum", "uniqueItems",
    }  # fmt: skip
    if "$ref" in schema:
        yield from errors(value, SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]], where)
        return
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{where} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is none of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where} does not match {schema['pattern']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{where} is below {schema['minimum']}"
    if isinstance(value, list):
        texts = [json.dumps(item, sort_keys=True) for item in value]
        if schema.get("uniqueItems") and len(set(texts)) < len(texts):
            yield f"{where} has an item twice"
        for index, item in enumerate(value):
            yield from errors(item, schema.get("items", {}), f"{where}[{index}]")
    if isinstance(value, dict):
        yield from (f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value)
        others = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in schema.get("properties", {}):
                yield from errors(item, schema["properties"][name], f"{where}.{name}")
            elif others is False:
                yield f"{where} has {name}"
            elif others is not True:
                yield from errors(item, others, f"{where}.{name}")


def rendered(made: Document) -> Any:
    return json.loads(sarif.render(made))


def alerts(made: Document) -> list[Any]:
    found: list[Any] = rendered(made)["runs"][0]["results"]
    return found


@pytest.mark.parametrize("complete", [True, False])
def test_keeps_to_the_schema(complete: bool) -> None:
    log = rendered(document(interrupted=not complete))
    assert list(errors(log, SCHEMA)) == []
    assert log["runs"][0]["invocations"] == [{"executionSuccessful": complete}]
    assert list(errors(rendered(Document(entries=())), SCHEMA)) == []


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("version", "2.0.0"),
        ("runs/0/tool", {}),
        ("runs/0/tool/driver/name", None),
        ("runs/0/results/0/level", "fatal"),
        ("runs/0/results/0/message", {"markdown": "x"}),
        ("runs/0/results/0/ruleIndex", -2),
        ("runs/0/results/0/locations/0/physicalLocation/region/startLine", 0),
        ("runs/0/results/0/locations/0/physicalLocation/region", {}),
        ("runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri", "a b<c>"),
        ("runs/0/results/0/partialFingerprints/dpauditAudit~v1", 7),
        ("runs/0/results/0/unknown", 1),
        ("runs/0/tool/driver/rules", [{"id": "a"}, {"id": "a"}]),
    ],
)
def test_the_schema_can_fail(where: str, value: Any) -> None:
    log = copy.deepcopy(rendered(document()))
    *path, last = (int(key) if key.isdigit() else key.replace("~", "/") for key in where.split("/"))
    inner = log
    for key in path:
        inner = inner[key]
    inner[last] = value
    assert list(errors(log, SCHEMA))


def test_alerts_are_the_entries_that_need_action() -> None:
    found = [(alert["properties"]["audit"], alert["ruleId"], alert["level"]) for alert in alerts(outcomes())]
    assert found == [
        ("leak", "privacy-violation", "error"),
        ("no longer found", "unmet-expectation", "error"),
        ("too few", "inconclusive", "warning"),
    ]
    rules = rendered(outcomes())["runs"][0]["tool"]["driver"]["rules"]
    assert all(rules[alert["ruleIndex"]]["id"] == alert["ruleId"] for alert in alerts(outcomes()))


def place(location: Any) -> tuple[str, int]:
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_points_at_the_mechanism_and_mentions_the_audit() -> None:
    both = Entry(
        result=violation(), path="audits/a.py", line=12, mechanism_path="app/noisy counts.py", mechanism_line=4
    )
    (alert,) = alerts(Document(entries=(both,)))
    assert place(alert["locations"][0]) == ("app/noisy%20counts.py", 4)
    assert place(alert["relatedLocations"][0]) == ("audits/a.py", 12)
    (alert,) = alerts(Document(entries=(replace(both, mechanism_path=""),)))
    assert place(alert["locations"][0]) == ("audits/a.py", 12)
    assert "relatedLocations" not in alert
    (alert,) = alerts(Document(entries=(Entry(result=violation()),)))
    assert "locations" not in alert


@pytest.mark.parametrize(
    ("path", "uri", "relative"),
    [
        ("audits\\a.py", "audits/a.py", True),
        ("/home/me/a b.py", "file:///home/me/a%20b.py", False),
        ("C:\\me\\a.py", "file:///C:/me/a.py", False),
        ("100%/a.py", "100%25/a.py", True),
    ],
)
def test_paths_become_uris(path: str, uri: str, relative: bool) -> None:
    (alert,) = alerts(Document(entries=(Entry(result=violation(), path=path, line=0),)))
    artifact = alert["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact["uri"] == uri
    assert ("uriBaseId" in artifact) == relative
    assert place(alert["locations"][0])[1] == 1  # SARIF counts lines from 1


def prints(*entries: Entry) -> list[str]:
    return [alert["partialFingerprints"]["primaryLocationLineHash"] for alert in alerts(Document(entries=entries))]


def test_fingerprints_survive_edits_and_reruns_and_distinguish_problems() -> None:
    entry = Entry(result=violation(), path="audits/a.py", line=12)
    rerun = violation(seed=7, samples=9, epsilon_lower=1.3, witness=None, trajectory=(), seconds=9.0)
    moved = Entry(result=rerun, path="audits\\a.py", line=99, mechanism_path="app/x.py", mechanism_line=3)
    assert prints(entry) == prints(moved)
    others = [
        replace(entry, path="audits/b.py"),
        replace(entry, result=violation("another")),
        replace(entry, result=inconclusive(violation().name)),
        Entry(result=result(violation().name), path="audits/a.py", expect=Verdict.VIOLATION),
    ]
    marks = prints(entry, entry, *others)
    assert len(set(marks)) == len(marks) == 6
    # Known value: a change of the recipe makes every alert of every user a new one.
    assert prints(entry) == ["9d630b6dbe35ef9fc3d9d31e8ae309df:1"]


def test_names_are_text_and_never_links() -> None:
    name = "see [here](http://example.org) and [1](2)"
    (alert,) = alerts(Document(entries=(Entry(result=violation(name)),)))
    assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", alert["message"]["text"])
    assert "http://example.org" in alert["message"]["text"]
    assert any(alert["properties"]["audit"] == HOSTILE for alert in alerts(document()))


def test_equal_documents_give_equal_files() -> None:
    assert sarif.render(document()) == sarif.render(document())
