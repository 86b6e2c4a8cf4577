"""Conversations: mechanisms that answer one question after another, where the answers together are the output.

A session is started on the data, and then asked: by a script of questions, or by an analyst, a function that chooses
the next question from the answers so far. The output of the release is the list of answers. A refusal (an exception) is
an answer like any other, and the conversation continues after it, because an analyst may continue.

The script or the analyst is the same on both data sets (``neighbours.asking`` makes such pairs). The transcript of an
analyst who is a deterministic function of the answers is determined by the answers, so nothing is lost by leaving the
questions out. For an analyst who draws random numbers, the answers are a part of the transcript, and a part of a
private output is private.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism.functions import PerRelease, one_release, seeded_globals

DATA, QUESTIONS = "data", "questions"
"""Keys of the dict that holds a data set with its questions."""
MOST_QUESTIONS = 1000
"""Largest number of questions of one analyst; more are an error."""


def interactive(begin: Callable[..., Any]) -> PerRelease:
    """Return a mechanism whose release is a whole conversation.

    Parameters
    ----------
    begin : callable
        ``begin(data)`` or ``begin(data, rng)``, by the name of its second parameter, starts a session: a function of one
        question, or an object with a method ``ask``. A method ``close``, if there is one, is called at the end. If it takes no
        ``rng``, ``random`` and ``numpy.random`` are seeded for the conversation.

    Notes
    -----
    The neighbours say what is asked: see ``dpaudit.neighbours.asking``.

    Examples
    --------
    >>> import numpy as np
    >>> def begin(data, rng):
    ...     return lambda question: sum(row > question for row in data)
    >>> interactive(begin).sample({"data": [1, 5, 7], "questions": [0, 6]}, 1, np.random.default_rng(0))
    [[3, 1]]
    """
    if not callable(begin):
        raise InvalidArgument(
            f"begin={shorten(begin)} must be a function of the data that starts a session, such as begin(data, rng)."
        )
    return PerRelease(Conversation(begin))


@dataclass(frozen=True, slots=True)
class Conversation:
    """Start a session on the data, ask its questions, and return the answers; see :func:`interactive`."""

    begin: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return getattr(self.begin, "__qualname__", type(self.begin).__name__)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.begin

    def __call__(self, data: Any, rng: np.random.Generator) -> list[Any]:
        """Hold one conversation."""
        if not isinstance(data, dict) or set(data) != {DATA, QUESTIONS}:
            raise MechanismError(
                f"data={shorten(data)} come without questions. Audit a conversation with neighbours.asking(pairs, questions), "
                'or with data {"data": ..., "questions": [...]}.'
            )
        if _takes_rng(self.begin):
            return self._answers(self.begin(data[DATA], rng), data[QUESTIONS])
        with seeded_globals(rng):
            return self._answers(self.begin(data[DATA]), data[QUESTIONS])

    def _answers(self, session: Any, questions: Any) -> list[Any]:
        ask = session if callable(session) else getattr(session, "ask", None)
        if not callable(ask):
            raise MechanismError(
                f"begin returned {shorten(session)}, which cannot be asked: return a function of one question, or an object "
                "with a method ask."
            )
        transcript: list[tuple[Any, Any]] = []
        try:
            for question in _questions(questions, transcript):
                answer = one_release(ask, question)
                transcript.append((question, answer))
        finally:
            if callable(close := getattr(session, "close", None)):
                close()
        return [answer for _, answer in transcript]


def _questions(asked: Any, transcript: list[tuple[Any, Any]]) -> Iterator[Any]:
    """Yield the questions of a script, or those that an analyst chooses by the transcript so far."""
    if not callable(asked):
        yield from asked
        return
    while (question := asked(list(transcript))) is not None:
        if len(transcript) >= MOST_QUESTIONS:
            raise MechanismError(
                f"next_question={shorten(asked)} asked more than {MOST_QUESTIONS} questions; it must return None at the end."
            )
        yield question


@functools.lru_cache(maxsize=256)
def _takes_rng(begin: Callable[..., Any]) -> bool:
    try:
        return list(inspect.signature(begin).parameters)[1:2] == ["rng"]
    except (TypeError, ValueError):
        return False
