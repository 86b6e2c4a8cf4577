"""The canonical document: it survives a round trip, refuses what it did not write, and files are whole."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit._util.files import write_whole
from dpaudit.claims import Verdict
from dpaudit.errors import InvalidArgument
from dpaudit.report import junit, markdown, sarif, write_reports
from dpaudit.report.document import Document, Entry, read_document
from tests.report.report_examples import document, inconclusive, result, violation


def test_round_trip() -> None:
    again = Document.from_json(document().to_json())
    assert again.to_json() == document().to_json()
    assert again.entries[1].mechanism_path == "app/noisy counts.py"
    assert again.entries[1].mechanism_line == 4
    assert again.entries[0].result.detectable[0.001] == math.inf


@pytest.mark.parametrize(
    ("entries", "code", "on_violation"),
    [
        ([Entry(result=result())], 0, 0),
        ([Entry(result=violation())], 1, 1),
        ([Entry(result=inconclusive())], 3, 0),
        ([Entry(result=inconclusive()), Entry(result=violation())], 1, 1),
        ([Entry(result=violation(), expect=Verdict.VIOLATION)], 0, 0),
        ([Entry(result=result(), expect=Verdict.VIOLATION)], 1, 1),
    ],
)
def test_exit_codes(entries: list[Entry], code: int, on_violation: int) -> None:
    made = Document(entries=tuple(entries))
    assert made.exit_code() == code
    assert replace(made, fail_on="violation").exit_code() == on_violation
    assert replace(made, fail_on="never").exit_code() == 0


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("audits", 3),
        ("audits/0", None),
        ("audits/0/path", 3),
        ("audits/0/line", "3"),
        ("audits/0/result", []),
        ("audits/0/result/samples", "<script>"),
        ("audits/0/result/samples", True),
        ("audits/0/result/seed", 0.5),
        ("audits/0/result/name", ["x"]),
        ("audits/0/result/messages", [{}]),
        ("audits/0/result/messages", "text"),
        ("audits/0/result/versions", {"python": 3}),
        ("audits/0/result/detectable", [1]),
        ("audits/0/result/trajectory", [[1]]),
        ("audits/0/result/trajectory", [[10**400, 1.0], ["inf", 0.0]]),
        ("audits/0/result/epsilon_lower", "large"),
        ("audits/0/result/claim/kind", "exec"),
        ("audits/0/result/claim/parameters", {"epsilon": -1.0}),
        ("audits/0/result/outputs", []),
        ("audits/1/result/witness", 7),
        ("audits/1/result/witness/script_text", None),
        ("audits/1/result/witness/on_data/count", "many"),
        ("format", 99),
        ("tool", "another"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_damage_is_an_error_that_names_the_file(where: str, value: Any) -> None:
    plain = json.loads(document().to_json())
    *path, last = (int(key) if key.isdigit() else key for key in where.split("/"))
    inner = plain
    for key in path:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(InvalidArgument, match=r"results\.json"):
        Document.from_json(json.dumps(plain), origin="results.json")


DAMAGE: list[Any] = [None, -1, 0.5, "nan", "inf", "x", [], {}, [1, 2], [{}], True, 10**400]


@pytest.mark.parametrize("number", [0, 1])
def test_a_result_with_any_damaged_field_is_refused_or_can_be_reported(number: int) -> None:
    plain = json.loads(document().to_json())
    result = plain["audits"][number]["result"]
    for name, before in result.items():
        for result[name] in DAMAGE:
            try:
                read = Document.from_json(json.dumps(plain))
            except InvalidArgument:
                continue
            assert str(read.entries[number].result)
            assert read.to_json()
            for report in (junit, markdown, sarif):
                assert report.render(read)
        result[name] = before


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", '{"tool": NaN}', "[" * 100_000, "[]", "null"], ids=lambda value: repr(value)[:40]
)
def test_a_file_that_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="the file"):
        Document.from_json(text)


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "missing.json", tmp_path / "binary.json", tmp_path):
        with pytest.raises(InvalidArgument, match="cannot be read"):
            read_document(path)


def test_write_makes_folders_and_obeys_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    mask = os.umask(0o027)
    try:
        write_whole(path, "new")
    finally:
        os.umask(mask)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["b.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")  # cannot be encoded
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.txt"]


def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "below.txt"):
        with pytest.raises(InvalidArgument, match="cannot be written"):
            write_whole(path, "text")
    assert sorted(os.listdir(tmp_path)) == ["file"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(path, "text")
        assert os.read(reader, 100) == b"text"
        assert path.is_fifo()
    finally:
        os.close(reader)


def test_each_report_that_has_a_path_is_written(tmp_path: Path) -> None:
    paths = {"junit": tmp_path / "j.xml", "sarif": tmp_path / "s.sarif", "markdown": None, "html": None}
    assert list(write_reports(document(), paths)) == [tmp_path / "j.xml", tmp_path / "s.sarif"]
    assert sorted(os.listdir(tmp_path)) == ["j.xml", "s.sarif"]
