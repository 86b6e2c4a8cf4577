"""The journal: what it survives, and that only exact matches are reused."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit import neighbours
from dpaudit.cli.journal import KEPT_JOURNALS, Journal, audit_key, read_lines, sources_digest
from dpaudit.engine.accumulate.identity import describe
from dpaudit.engine.audit import Audit


def started(folder: Path, *, resume: bool = False) -> tuple[Journal, list[str]]:
    messages: list[str] = []
    return Journal.start(folder, resume=resume, say=messages.append), messages


def lines(journal: Journal) -> list[dict[str, Any]]:
    assert journal.path is not None
    return [json.loads(line) for line in journal.path.read_text().splitlines()]


def test_every_line_is_there_at_once(tmp_path: Path) -> None:
    journal, messages = started(tmp_path / "j")
    journal.began("k", "name")
    journal.round("k", np.int64(100), np.float64(1.23456789))  # type: ignore[arg-type]
    journal.finished("k", {"result": 1})
    assert [record["kind"] for record in lines(journal)] == ["run", "began", "round", "result"]
    assert lines(journal)[2] == {"kind": "round", "key": "k", "samples": 100, "log_wealth": 1.234568}
    assert (tmp_path / "j" / ".gitignore").read_text() == "*\n"
    assert messages == []


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    journal, _ = started(tmp_path)
    journal.finished("one", {"result": 1})
    again, messages = started(tmp_path, resume=True)
    assert again.earlier == {"one": {"result": 1}}
    assert messages == []
    assert again.path != journal.path  # two runs never write to one file


def test_a_run_that_ended_is_not(tmp_path: Path) -> None:
    journal, _ = started(tmp_path)
    journal.finished("one", {"result": 1})
    journal.end()
    again, messages = started(tmp_path, resume=True)
    assert again.earlier == {}
    assert messages == ["The last run was completed, so there is nothing to resume, and everything is run."]


def test_without_resume_nothing_is_taken_over(tmp_path: Path) -> None:
    journal, _ = started(tmp_path)
    journal.finished("one", {"result": 1})
    assert started(tmp_path)[0].earlier == {}


def test_results_of_all_interrupted_runs_are_merged(tmp_path: Path) -> None:
    first, _ = started(tmp_path)
    first.finished("one", {"result": 1})
    first.finished("two", {"result": 2})
    second, _ = started(tmp_path, resume=True)  # killed before it could take over anything but one
    second.finished("two", {"result": 3})
    other, _ = started(tmp_path)  # of other audits, and it ended
    other.finished("three", {"result": 4})
    other.end()
    assert started(tmp_path, resume=True)[0].earlier == {"one": {"result": 1}, "two": {"result": 3}}


def test_results_of_a_later_complete_run_are_not_resumed(tmp_path: Path) -> None:
    first, _ = started(tmp_path)
    first.finished("one", {"result": 1})
    second, _ = started(tmp_path)
    second.finished("one", {"result": 1})
    second.end()
    again, messages = started(tmp_path, resume=True)
    assert again.earlier == {}
    assert messages == ["The last run was completed, so there is nothing to resume, and everything is run."]


def test_a_journal_is_removed_only_if_a_newer_one_has_its_results(tmp_path: Path) -> None:
    interrupted, _ = started(tmp_path)
    interrupted.finished("one", {"result": 1})
    for _ in range(KEPT_JOURNALS + 2):
        started(tmp_path)[0].end()
    assert interrupted.path is not None
    assert interrupted.path.exists()
    taken_over, _ = started(tmp_path, resume=True)
    assert taken_over.earlier == {"one": {"result": 1}}
    taken_over.finished("one", {"result": 1})
    started(tmp_path)
    assert not interrupted.path.exists()
    assert len(list(tmp_path.glob("run-*.jsonl"))) == KEPT_JOURNALS


def test_other_files_are_neither_deleted_nor_written_through_a_link(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    files = [theirs / f"run-{number}.jsonl" for number in range(KEPT_JOURNALS + 5)]
    for file in files:
        file.write_text("precious")
    (tmp_path / ".dpaudit").symlink_to(theirs)
    journal, messages = started(tmp_path / ".dpaudit", resume=True)
    assert journal.path is None
    assert "is a symbolic link" in messages[0]
    assert sorted(theirs.iterdir()) == sorted(files)
    # Files of others in a folder of ours: a link is not followed, and what is no journal stays.
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / ".gitignore").symlink_to(tmp_path / "elsewhere")
    for number in range(KEPT_JOURNALS + 5):
        (ours / f"run-{number}.jsonl").write_text("precious")
    os.mkfifo(ours / "run-fifo.jsonl")  # reading it would wait for a writer
    assert started(ours, resume=True)[0].path is not None
    assert not (tmp_path / "elsewhere").exists()
    assert len([file for file in ours.glob("run-*.jsonl") if file.is_file() and file.read_text() == "precious"]) == 15


def test_a_full_disk_ends_the_journal_after_its_last_whole_line(tmp_path: Path, monkeypatch: Any) -> None:
    journal, _ = started(tmp_path)
    path, write = journal.path, os.write
    assert path is not None
    monkeypatch.setattr(os, "write", lambda handle, content: write(handle, content[:5]))
    journal.finished("one", {"result": 1})
    monkeypatch.undo()
    journal.finished("two", {"result": 2})  # after half a line it would be lost too, and take the next one along
    assert path.read_text().count("\n") == 1


def test_nothing_to_resume(tmp_path: Path) -> None:
    assert "Nothing to resume" in started(tmp_path / "none", resume=True)[1][0]


@pytest.mark.parametrize("tail", [b'{"kind": "result", "key": "two", "en', b'{"kind": "result"}', b"\xff", b"{"])
def test_an_incomplete_last_line_is_ignored_and_reported(tmp_path: Path, tail: bytes) -> None:
    journal, _ = started(tmp_path)
    journal.finished("one", {"result": 1})
    assert journal.path is not None
    with journal.path.open("ab") as file:
        file.write(tail)
    again, messages = started(tmp_path, resume=True)
    assert again.earlier == {"one": {"result": 1}}
    assert messages == [f"{journal.path}: the last line is incomplete, as after a kill, and ignored."]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(cut=st.integers(0, 400))
def test_a_kill_at_any_byte_keeps_all_whole_lines(cut: int) -> None:
    text = b"".join(json.dumps({"kind": "result", "key": str(k)}).encode() + b"\n" for k in range(10))
    messages: list[str] = []
    found = list(read_lines(text[:cut], messages.append))
    assert [record["key"] for record in found] == [str(k) for k in range(text[:cut].count(b"\n"))]
    assert len(messages) == (not text[:cut].endswith(b"\n") and cut > 0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(junk=st.binary(max_size=30))
def test_damage_in_the_middle_loses_that_line_alone(junk: bytes) -> None:
    good = b'{"kind": "a"}\n'
    found = list(read_lines(good + junk.replace(b"\n", b"") + b"\n" + good, lambda _: None))
    assert [record for record in found if record == {"kind": "a"}][:2] == [{"kind": "a"}] * 2


@pytest.mark.parametrize("text", [b"", b"junk\n", b'{"kind": "run", "format": 99}\n', b"[1]\n"])
def test_a_file_that_is_no_journal(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "run-20200101T000000.000000-1.jsonl").write_bytes(text)
    journal, messages = started(tmp_path, resume=True)
    assert journal.earlier == {}
    assert "is not a journal of this version, and is ignored." in messages[-2]
    assert messages[-1].startswith("Nothing to resume")


def test_old_journals_go(tmp_path: Path) -> None:
    for _ in range(KEPT_JOURNALS + 5):
        started(tmp_path)
    assert len(list(tmp_path.glob("run-*.jsonl"))) == KEPT_JOURNALS


def test_a_run_continues_if_no_journal_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    journal, messages = started(blocked / "j")
    journal.began("k", "name")
    assert "No journal is kept" in messages[0]
    assert journal.path is None


def test_a_journal_that_is_removed_while_running(tmp_path: Path) -> None:
    journal, _ = started(tmp_path)
    assert journal.path is not None
    os.unlink(journal.path)
    journal.began("k", "name")
    journal.end()
    assert not list(tmp_path.glob("*.jsonl"))


# Keys


def noisy(data: Any, size: int, rng: np.random.Generator, scale: float = 1.0) -> Any:
    return len(data) + rng.laplace(scale=scale, size=size)


def scaled(scale: float) -> Any:
    def draw(data: Any, size: int, rng: np.random.Generator) -> Any:
        return noisy(data, size, rng, scale)

    return draw


@dataclass(frozen=True)
class Held:
    scale: float

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        return noisy(data, size, rng, self.scale)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


BASE = Audit(
    name="base",
    mechanism=dpaudit.batched(functools.partial(noisy, scale=1.0)),
    claim=dpaudit.PureDP(1.0),
    neighbours=[([], [1])],
    options={"samples": 100},
)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"mechanism": dpaudit.batched(functools.partial(noisy, scale=2.0))},
        {"mechanism": dpaudit.batched(noisy)},
        {"mechanism": dpaudit.batched(scaled(1.0))},
        {"mechanism": dpaudit.per_release(lambda data, rng: 0)},
        {"mechanism": Held(1.0)},
        {"mechanism": "pkg.mod:make"},
        {"claim": dpaudit.PureDP(1.5)},
        {"claim": dpaudit.PureDP(1.0, relation=dpaudit.Relation.ADD_REMOVE)},
        {"neighbours": [([], [2])]},
        {"neighbours": neighbours.add_remove(st.integers(0, 1), max_size=2)},
        {"neighbours": neighbours.add_remove(st.integers(0, 2), max_size=2)},
        {"options": {"samples": 101}},
        {"options": {"samples": 100, "seed": 1}},
        {"expect": "VIOLATION"},
        {"mechanism_is_factory": True},
    ],
)
def test_every_change_that_can_change_the_result_changes_the_key(change: dict[str, Any]) -> None:
    other = replace(BASE, **change)
    assert audit_key(other, {}, "s") != audit_key(BASE, {}, "s")
    assert audit_key(other, {}, "s") == audit_key(replace(other), {}, "s")


def test_keys_see_options_sources_and_nothing_else() -> None:
    key = audit_key(BASE, {}, "s")
    assert audit_key(BASE, {"samples": 100}, "s") == key
    assert audit_key(BASE, {"executor": object(), "progress": False, "on_event": print}, "s") == key
    assert audit_key(BASE, {"seed": 7}, "s") != key
    assert audit_key(BASE, {}, "t") != key


def test_an_audit_whose_repr_raises_matches_no_key() -> None:
    odd = replace(BASE, mechanism=Unprintable())
    assert audit_key(odd, {}, "s") != audit_key(odd, {}, "s")


def test_descriptions_do_not_depend_on_addresses_and_see_closures() -> None:
    assert describe(scaled(1.0)) == describe(scaled(1.0))
    assert describe(scaled(1.0)) != describe(scaled(2.0))
    assert describe(Held(1.0).sample) != describe(Held(2.0).sample)
    assert describe(np.arange(3)) != describe(np.arange(4))
    assert "0x" not in json.dumps([describe(object()), describe(BASE.mechanism), describe(len), describe(np)])


def test_sources_of_the_project(tmp_path: Path) -> None:
    module = ModuleType("mine")
    path = tmp_path / "mine.py"
    module.__file__ = str(path)
    path.write_text("x = 1\n")
    first = sources_digest(tmp_path, [module])
    assert sources_digest(tmp_path, [module, None, np]) == first  # installed packages are covered by their versions
    path.write_text("x = 2\n")
    assert sources_digest(tmp_path, [module]) != first
