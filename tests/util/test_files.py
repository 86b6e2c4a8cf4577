"""Files are replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpaudit._util.files import replace_file


def test_a_failure_while_writing_keeps_the_old_file_and_removes_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(handle: int) -> None:
        raise OSError("no space left")

    path = tmp_path / "report.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        replace_file(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.txt"]
