"""Progress without a terminal: a line every ten seconds inside of commands, silence elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
from dpaudit.engine import progress


def audited(**options: Any) -> None:
    noisy = dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(size=size))
    dpaudit.audit(noisy, dpaudit.PureDP(1.0), [([], [1])], samples=20_000, **options)


class Clock:
    """A clock on which every look takes two seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 2.0
        return self.now


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "watched", lambda: False)
    monkeypatch.setattr(progress.time, "monotonic", Clock())


def test_inside_of_a_command_there_is_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    line = progress._LogLine("name\n::error::forged", 1_000)
    line.set_postfix_str("evidence 1.0 of 13.8", refresh=False)
    for _ in range(11):
        line.update(10)
    shown = capsys.readouterr().err.splitlines()
    assert shown == [
        r"dpaudit: name\n::error::forged: 50 of 1,000 samples, evidence 1.0 of 13.8, 10 s",
        r"dpaudit: name\n::error::forged: 100 of 1,000 samples, evidence 1.0 of 13.8, 20 s",
    ]


def test_audits_log_inside_of_commands_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 1.0)
    audited()
    assert capsys.readouterr().err == ""
    with progress.logged():
        audited()
        audited(progress=False)
    shown = capsys.readouterr().err.splitlines()
    assert shown
    assert all(line.startswith("dpaudit: ") and "of 20,000 samples" in line for line in shown)
    audited()
    assert capsys.readouterr().err == ""
