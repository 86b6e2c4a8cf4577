"""Progress without a terminal: a line every ten seconds inside of commands, silence elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace
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


def test_a_bar_is_as_long_as_the_time_where_time_ends_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 10 samples a second and with 25 seconds left, a million samples will not be drawn."""
    assert progress.in_time(50, 200, 10.0, 25.0) == 200  # samples end it first
    assert progress.in_time(50, 1_000_000, 10.0, 0.0) == 50
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    bar = progress._kind()(total=1_000_000, file=io.StringIO(), initial=0)
    bar.deadline, bar.n, bar.start_t = 1025.0, 50, bar._time() - 5.0
    assert 299 < bar.format_dict["total"] <= 300
    bar.close()
