"""Conversations: how they are held, which pairs are searched, and that their bugs are found."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import neighbours
from dpaudit._util.values import fingerprint
from dpaudit.claims import Relation
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism.conversations import MOST_QUESTIONS, interactive
from dpaudit.mechanism.outputs import Raised
from tests.mechanism import sessions

ROWS = neighbours.add_remove(st.integers(0, 9), max_size=2)
NUMBERS = st.integers(0, 9)
OPPOSITE = [([1.0, 0.0], [0.0, 1.0])]


def answers(begin: Any, data: Any, questions: Any, seed: int = 0) -> Any:
    (output,) = interactive(begin).sample({"data": data, "questions": questions}, 1, np.random.default_rng(seed))
    return output


# --- how a conversation is held ---------------------------------------------------------------------------------------


class Session:
    """Keeps a log, and refuses odd questions."""

    closed = 0

    def __init__(self, data: list[int]) -> None:
        self.log = list(data)

    def ask(self, question: int) -> list[int]:
        if question % 2:
            raise ValueError(f"question {question} is odd")
        self.log.append(question)
        return self.log

    def close(self) -> None:
        Session.closed += 1


def test_answers_are_copied_and_refusals_are_answers() -> None:
    before = Session.closed
    refused = Raised("ValueError", "question # is odd")
    assert answers(Session, [7], [2, 3, 4]) == [[7, 2], refused, [7, 2, 4]]
    assert Session.closed == before + 1


def test_each_release_is_a_session_of_its_own() -> None:
    made = interactive(Session).sample({"data": [], "questions": [2]}, 3, np.random.default_rng(0))
    assert made == [[[2]]] * 3


def test_a_session_that_cannot_begin_is_an_output() -> None:
    assert answers(lambda data: 1 // len(data), [], [1]) == Raised(
        "ZeroDivisionError", "integer division or modulo by zero"
    )


def test_an_analyst_chooses_by_the_answers_so_far() -> None:
    def bisect(transcript: list[tuple[float, bool]]) -> float | None:
        low, high = 0.0, 8.0
        for question, above in transcript:
            low, high = (question, high) if above else (low, question)
        return None if high - low <= 1.0 else (low + high) / 2

    assert answers(lambda data: lambda question: data >= question, 5, bisect) == [True, False, True]


def test_random_numbers_come_from_the_seed() -> None:
    def legacy(data: Any) -> Any:
        return lambda question: (random.random(), np.random.random())  # noqa: NPY002

    def modern(data: Any, rng: np.random.Generator) -> Any:
        return lambda question: rng.random()

    for begin in (legacy, modern):
        assert answers(begin, [], [1, 2]) == answers(begin, [], [1, 2])
        assert answers(begin, [], [1, 2]) != answers(begin, [], [1, 2], seed=1)


@pytest.mark.parametrize(
    ("begin", "data", "message"),
    [
        (Session, [1, 2], "come without questions. Audit a conversation with neighbours.asking"),
        (len, {"data": [1], "questions": [1]}, "begin returned 1, which cannot be asked"),
        (Session, {"data": [], "questions": lambda transcript: 2}, f"asked more than {MOST_QUESTIONS} questions"),
    ],
)
def test_misuse_is_an_error(begin: Any, data: Any, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        interactive(begin).sample(data, 1, np.random.default_rng(0))


def test_begin_must_be_callable() -> None:
    with pytest.raises(InvalidArgument, match="must be a function of the data that starts a session"):
        interactive(Session([]))  # type: ignore[arg-type]


# --- pairs with questions ---------------------------------------------------------------------------------------------


def test_both_sides_are_asked_the_same_and_share_nothing() -> None:
    space = neighbours.asking(ROWS, NUMBERS, max_questions=3)
    assert space.relation is Relation.ADD_REMOVE
    for pair in space.pool(40, seed=1):
        assert pair.data["questions"] == pair.neighbour["questions"]
        assert pair.data["questions"] is not pair.neighbour["questions"]
        assert 1 <= len(pair.data["questions"]) <= 3
        assert abs(len(pair.data["data"]) - len(pair.neighbour["data"])) == 1
        assert space.satisfies(*pair)
    repeated = [pair.data["questions"] for pair in space.corners() if len(set(pair.data["questions"])) == 1]
    assert [0, 0, 0] in repeated
    assert [9] in repeated


def test_edits_change_the_data_or_the_script_and_stay_in_the_space() -> None:
    space = neighbours.asking(ROWS, NUMBERS, max_questions=3)
    pair = neighbours.Pair({"data": [1], "questions": [4, 5]}, {"data": [], "questions": [4, 5]})
    edits = space.edits(pair, np.random.default_rng(0), 12)
    assert all(space.satisfies(*edit) for edit in edits)
    scripts = {tuple(edit.data["questions"]) for edit in edits}
    assert {(4,), (5,)} & scripts
    assert any(len(script) == 3 for script in scripts)
    assert any(edit.data["questions"] == [4, 5] for edit in edits)


def test_simpler_pairs_leave_out_one_question() -> None:
    space = neighbours.asking(ROWS, NUMBERS, min_questions=1)
    pair = neighbours.Pair({"data": [], "questions": [4, 5]}, {"data": [1], "questions": [4, 5]})
    assert space.simpler is not None
    assert [simple.data["questions"] for simple in space.simpler(pair)] == [[5], [4]]
    (only, *_) = space.simpler(pair)
    assert list(space.simpler(only)) == []


@pytest.mark.parametrize("questions", [[3, 4], sessions.one_more_time])
def test_a_script_or_an_analyst_is_the_same_for_all_pairs(questions: Any) -> None:
    space = neighbours.asking(ROWS, questions)
    for pair in [*space.pool(6), *space.edits(space.corners()[0], np.random.default_rng(0), 3)]:
        assert fingerprint(pair.data["questions"]) == fingerprint(questions) == fingerprint(pair.neighbour["questions"])
        assert space.satisfies(*pair)
    named = neighbours.asking([([], [1])], questions)
    assert named.named
    assert len(named.pool(5)) == 1


def test_wrong_arguments_are_named() -> None:
    secret = neighbours.Secret("a", lambda rng: [1]), neighbours.Secret("b", lambda rng: [2])
    for wrong, message in (
        (lambda: neighbours.asking(ROWS, 7), "must be a strategy of one question"),  # type: ignore[arg-type]
        (lambda: neighbours.asking(ROWS, "abc"), "must be a strategy of one question"),
        (lambda: neighbours.asking(ROWS, NUMBERS, min_questions=5), "must not exceed max_questions=4"),
        (lambda: neighbours.asking(neighbours.secrets([secret]), NUMBERS), "are secrets"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            wrong()


# --- audits -----------------------------------------------------------------------------------------------------------


def audited(begin: Any, claim: float, where: Any, **options: Any) -> dpaudit.Result:
    return dpaudit.audit(interactive(begin), dpaudit.PureDP(claim), where, **{"seed": 0, "samples": 60_000, **options})


def questions_of(result: dpaudit.Result) -> Any:
    assert result.witness is not None
    return eval(result.witness.data)["questions"]


@pytest.mark.parametrize(
    ("begin", "claim", "where"),
    [
        (sessions.forgets_to_stop, sessions.SVT_EPSILON, neighbours.asking(OPPOSITE, [0, 1] * 5)),
        (sessions.reuses_threshold_noise, 4.0, neighbours.asking(OPPOSITE, [0, 1])),
        (sessions.charges_the_difference, sessions.BUDGET, neighbours.asking([([1], [])], sessions.one_more_time)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_bugs_are_found(begin: Any, claim: float, where: Any) -> None:
    result = audited(begin, claim, where, shrink=False)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.name == begin.__name__


@pytest.mark.parametrize(
    ("begin", "claim", "where"),
    [
        (sessions.sparse_vector, sessions.SVT_EPSILON, neighbours.asking(OPPOSITE, [0, 1] * 3)),
        (sessions.numeric_sparse_vector, 4.0, neighbours.asking(OPPOSITE, [0, 1] * 2)),
        (sessions.filter_by_sum, sessions.BUDGET, neighbours.asking([([1], [])], sessions.one_more_time)),
        (sessions.cache, sessions.BUDGET, neighbours.asking([([1], [])], [0, 0, 0])),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_sound_sessions_are_not_accused(begin: Any, claim: float, where: Any) -> None:
    # False-alarm probability of each: alpha = 1e-6.
    assert audited(begin, claim, where, samples=10_000).verdict is not dpaudit.Verdict.VIOLATION


def test_the_witness_is_the_shortest_conversation_and_its_script_runs(tmp_path: Path) -> None:
    result = audited(sessions.draws_again, sessions.BUDGET, neighbours.asking(ROWS, NUMBERS, max_questions=4))
    assert result.verdict is dpaudit.Verdict.VIOLATION
    # One question is within the budget, and two different ones are refused.
    first, second = questions_of(result)
    assert first == second
    assert result.witness is not None
    script = tmp_path / "witness.py"
    script.write_text(result.witness.script())
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env={"PYTHONPATH": str(Path(__file__).parents[2])}
    )
    assert done.returncode == 0, done.stderr
    assert f"event on data:      {result.witness.on_data.count} of {result.witness.on_data.trials}" in done.stdout or (
        "log-ratio" in done.stdout
    )
