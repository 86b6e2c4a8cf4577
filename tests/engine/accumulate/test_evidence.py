"""Evidence that grows from run to run: what goes on, what starts again, and what a killed run leaves."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.engine.accumulate.ledger import Ledger
from dpaudit.errors import InvalidArgument
from dpaudit.result.model import Result

PAIR = [([], [1])]
GENERATOR = np.random.default_rng(5)


@dpaudit.per_release
def noisy(data: list[int], rng: np.random.Generator) -> float:
    return len(data) + float(rng.laplace(scale=0.7))


@dpaudit.per_release
def with_own_entropy(data: list[int], rng: np.random.Generator) -> float:
    del rng
    return len(data) + float(GENERATOR.laplace())


def run(file: Path, mechanism: Any = noisy, **options: Any) -> Result:
    chosen = {"samples": 1000, "name": "noisy", "accumulate": file, **options}
    return dpaudit.audit(mechanism, dpaudit.PureDP(1.0), PAIR, **chosen)


def lines(file: Path, kind: str | None = None) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return [line for line in found if kind in (None, line["kind"])]


def test_a_leak_too_weak_for_one_run_is_found_by_several(tmp_path: Path) -> None:
    file = tmp_path / "evidence.jsonl"
    results = [run(file)]
    while results[-1].verdict is not dpaudit.Verdict.VIOLATION and len(results) < 12:
        results.append(run(file))
    assert 1 < len(results) < 12
    assert results[-1].epsilon_lower >= 1.0
    witness = results[-1].witness
    assert witness is not None
    assert witness.observed_log_ratio > 1.0
    assert "output" in witness.event
    compile(witness.script(), "witness", "exec")
    for before, after in itertools.pairwise(results):  # nothing is lost or settled again
        assert after.trajectory[: len(before.trajectory)] == before.trajectory
        assert after.accumulated[: len(before.accumulated)] == before.accumulated
    assert results[-1].samples == sum(entry["samples"] for entry in results[-1].accumulated)
    assert Result.from_dict(json.loads(json.dumps(results[-1].to_dict()))) == results[-1]


def test_rounds_have_seeds_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "evidence.jsonl"
    first, second = run(file, samples=300), run(file, samples=300)
    assert first.seed != second.seed
    numbers = [line["round"] for line in lines(file, "round")]
    assert numbers == list(range(1, len(numbers) + 1))
    counts = [json.dumps(line["counts"]) for line in lines(file, "round")]
    assert len(set(counts)) == len(counts)


def test_the_same_file_gives_the_same_run_again(tmp_path: Path) -> None:
    """Putting an older copy back is no second chance: the same rounds are drawn again."""
    for name in ("first", "second"):
        run(tmp_path / name, samples=300)
        run(tmp_path / name, samples=300)
    first, second = (lines(tmp_path / name, "round") for name in ("first", "second"))
    assert [line["counts"] for line in first] == [line["counts"] for line in second]


def test_a_refuted_claim_stays_refuted_and_nothing_more_is_drawn(tmp_path: Path) -> None:
    calls = 0

    @dpaudit.per_release
    def half(data: list[int], rng: np.random.Generator) -> float:
        nonlocal calls
        calls += 1
        return len(data) + float(rng.laplace(scale=0.3))

    first = run(tmp_path / "file", half, samples=10_000)
    assert first.verdict is dpaudit.Verdict.VIOLATION
    calls = 0
    again = run(tmp_path / "file", half, samples=10_000)
    assert calls == 0
    assert again.verdict is dpaudit.Verdict.VIOLATION
    assert again.witness == first.witness
    assert "earlier run" in again.messages[-1]


def test_a_bound_grows_and_stays_below_the_truth(tmp_path: Path) -> None:
    bounds = [run(tmp_path / "file", samples=1500, until="budget").epsilon_lower for _ in range(4)]
    assert bounds == sorted(bounds)
    assert 0.8 < bounds[-1] < 1.25


def scaled(scale: float) -> Any:
    def mechanism(data: list[int], rng: np.random.Generator) -> float:
        return len(data) + float(rng.laplace(scale=scale))

    return dpaudit.per_release(mechanism)


def test_a_changed_audit_starts_anew_and_the_old_one_can_be_continued(tmp_path: Path) -> None:
    file = tmp_path / "file"
    first = run(file, scaled(1.0), samples=300)
    other = run(file, scaled(2.0), samples=300)
    assert any("mechanism changed" in text and "starts afresh" in text for text in other.messages)
    assert len(other.accumulated) == 1
    weaker = run(file, scaled(1.0), samples=300, alpha=0.1)
    assert any("option alpha 1e-06 became 0.1" in text for text in weaker.messages)
    back = run(file, scaled(1.0), samples=300)
    assert any("goes on where it had stopped" in text for text in back.messages)
    assert back.trajectory[: len(first.trajectory)] == first.trajectory
    assert len(back.accumulated) == 2


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    append = Ledger.append

    def arrange(place: int, *, before: bool) -> None:
        left = place

        def appended(self: Ledger, kind: str, **content: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0 and before:
                raise Killed
            append(self, kind, **content)
            if left == 0:
                raise Killed

        monkeypatch.setattr(Ledger, "append", appended)

    return arrange


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("place", [3, 4, 7])
def test_a_run_killed_at_any_line_loses_nothing_and_settles_nothing_twice(
    tmp_path: Path, killed_at: Any, monkeypatch: pytest.MonkeyPatch, place: int, *, before: bool
) -> None:
    file = tmp_path / "file"
    killed_at(place, before=before)
    with pytest.raises(Killed):
        run(file, samples=200)
    left = lines(file)
    monkeypatch.undo()
    result = run(file, samples=200)
    assert lines(file)[: len(left)] == left
    settled = lines(file, "round")
    assert [line["round"] for line in settled] == list(range(1, len(settled) + 1))
    announced = {line["round"]: line for line in lines(file, "drawing")}
    for line in settled:
        assert line["nominee"] == announced[line["round"]]["nominee"]
        assert all(sum(side) == announced[line["round"]]["size"] for side in line["counts"][0])
    assert len(result.trajectory) == len(settled)
    # A round that was announced twice would have been drawn from other bets.
    assert len(announced) == len(lines(file, "drawing"))


def test_a_lost_round_of_a_mechanism_with_its_own_entropy_costs_alpha(
    tmp_path: Path, killed_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    before = run(file, with_own_entropy, samples=300)
    killed_at(
        3, before=False
    )  # within the first round: after the lines of the run, the nominee and the round that begins
    with pytest.raises(Killed):
        run(file, with_own_entropy, samples=300)
    assert lines(file)[-1]["kind"] == "drawing"
    monkeypatch.undo()
    result = run(file, with_own_entropy, samples=300)
    assert len(lines(file, "given up")) == 1
    assert result.log_threshold == pytest.approx(before.log_threshold + np.log(0.9 / 0.05))
    assert result.trajectory[0] != before.trajectory[0]
    assert any("starts again" in text for text in result.messages)
    numbers = [line["round"] for line in lines(file, "round")]
    assert len(set(numbers)) == len(numbers)


PROGRAM = """
import os, signal, sys
import dpaudit

calls = 0

@dpaudit.per_release
def noisy(data, rng):
    global calls
    calls += 1
    if calls == int(os.environ.get("KILL_AT", "-1")):
        os.kill(os.getpid(), signal.SIGKILL)
    return len(data) + rng.laplace()

result = dpaudit.audit(noisy, dpaudit.PureDP(1.0), [([], [1])], samples=400, accumulate=sys.argv[1], name="noisy")
print(len(result.trajectory))
"""


def test_a_killed_process(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "file")]
    killed = subprocess.run(command, env={**os.environ, "KILL_AT": "250"}, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert lines(tmp_path / "file")[-1]["kind"] == "drawing"
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    settled = [line["round"] for line in lines(tmp_path / "file", "round")]
    assert settled == list(range(1, len(settled) + 1))
    assert int(done.stdout) == len(settled)


def test_a_torn_line_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "file"
    before = run(file, samples=300)
    with file.open("a") as stream:
        stream.write('{"audit": "noisy", "line": 99, "kind": "rou')
    after = run(file, samples=300)
    assert after.trajectory[: len(before.trajectory)] == before.trajectory
    run(file, samples=300)


@pytest.mark.parametrize("change", ["edited", "removed", "inserted", "cut"])
def test_a_changed_file_is_refused(tmp_path: Path, change: str) -> None:
    file = tmp_path / "file"
    run(file, samples=300)
    text = file.read_text().splitlines(keepends=True)
    place = next(number for number, line in enumerate(text) if '"round"' in line and '"counts"' in line)
    match change:
        case "edited":
            text[place] = text[place].replace('"counts": [[[', '"counts": [[[1')
        case "removed":
            del text[place]
        case "inserted":
            text.insert(place, text[place])
        case "cut":
            text = text[:-2]
    file.write_text("".join(text))
    with pytest.raises(InvalidArgument, match=r"accumulate='.*file'.*(does not follow|is not the file)"):
        run(file, samples=300)


def test_audits_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    run(file, samples=300)
    run(file, samples=300, name="other")
    assert len(run(file, samples=300).accumulated) == 2
    assert len(run(file, samples=300, name="other").accumulated) == 2


def test_two_runs_at_once_are_noticed(tmp_path: Path) -> None:
    first, second = Ledger(tmp_path / "file", "a"), Ledger(tmp_path / "file", "a")
    first.append("run", epoch=1)
    with pytest.raises(InvalidArgument, match="another run"):
        second.append("run", epoch=1)


@pytest.mark.parametrize("options", [{"channel": "timing"}, {"claim": dpaudit.MetricDP(1.0, lambda a, b: 1.0)}])
def test_audits_that_cannot_be_accumulated_are_errors(tmp_path: Path, options: dict[str, Any]) -> None:
    claim = options.pop("claim", dpaudit.PureDP(1.0))
    with pytest.raises(InvalidArgument, match="is not possible with"):
        dpaudit.audit(noisy, claim, PAIR, accumulate=tmp_path / "file", **options)
