"""Suspects: the user's own functions of one output, evaluated on every output and encoded beside it.

A suspect says where a leak may be: "the hash of the answer's seed equals the answer", "the last digit", "the number of
rows above the mean". What it returns is encoded like any output, so everything that can be bet on for an output can be bet
on for a suspect. It is a function of one output, so it depends on nothing else of the batch, and whatever it computes is
post-processing: a bet on it is valid for any function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import shorten
from dpaudit.engine.encoding.batch import Encoded, digest, encode, unwrapped
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Outputs, Raised, kept

TRUTH = {truth: (digest(str(truth)), str(truth)) for truth in (False, True)}
"""Code and label of a truth value, which is a category here: an event reads "is True", not "== 1.0"."""
ALLOWED = "a function of one output, a list of such functions, or a dict of them by name"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A named function of one output that returns a truth value, a number or a category."""

    name: str
    function: Callable[[Any], Any]

    def __call__(self, output: Any) -> Any:
        """Return the value; an exception counts as a value, and one of the mechanism stays what it is."""
        if isinstance(output, Raised):
            return output
        try:
            return kept(self.function(output))
        except Exception as error:  # the user's function may raise anything
            return Raised.from_exception(error)


def as_suspects(given: Any) -> tuple[Suspect, ...]:
    """Return the suspects of an argument ``suspect=``.

    >>> [suspect.name for suspect in as_suspects([abs, lambda output: output > 0])]
    ['abs', 'number 2']
    """
    if given is None:
        return ()
    if callable(given):
        given = [given]
    if isinstance(given, Mapping):
        named = [(name, function) for name, function in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        named = [(_name(function, number), function) for number, function in enumerate(given, 1)]
    else:
        raise InvalidArgument(f"suspect={shorten(given)} must be {ALLOWED}.")
    for name, function in named:
        if not isinstance(name, str) or not callable(function):
            raise InvalidArgument(
                f"suspect={shorten(given)} must be {ALLOWED}, not {shorten(name)}: {shorten(function)}."
            )
    if len({name for name, _ in named}) < len(named):
        raise InvalidArgument(f"suspect={shorten(given)}: names must differ. Give a dict {{name: function}}.")
    return tuple(Suspect(name, function) for name, function in named)


def _name(function: Any, number: int) -> str:
    name = getattr(function, "__name__", "") or ""
    return name if name.isidentifier() else f"number {number}"


def with_suspects(batch: Encoded, blocks: Iterable[Outputs], suspects: Sequence[Suspect]) -> Encoded:
    """Return the encoded outputs of some blocks with the values of all suspects on them."""
    if not suspects:
        return batch
    outputs = list(itertools.chain.from_iterable(map(unwrapped, blocks)))
    return batch.with_suspects(
        tuple(_encoded([suspect(output) for output in outputs], suspect) for suspect in suspects)
    )


def _encoded(values: list[Any], suspect: Suspect) -> Encoded:
    """Encode the values of a suspect: truth values as categories, everything else as outputs."""
    truths = np.array([isinstance(value, bool | np.bool_) for value in values], np.bool_)
    batch = encode([value for value, truth in zip(values, truths, strict=True) if not truth])
    if truths.any():
        codes, numbers = np.empty(len(values), np.uint64), np.full((len(values), batch.width), np.nan)
        codes[truths] = [TRUTH[bool(value)][0] for value, truth in zip(values, truths, strict=True) if truth]
        codes[~truths], numbers[~truths] = batch.codes, batch.values
        batch = Encoded(codes, numbers, {**batch.labels, **dict(TRUTH.values())})
    if batch.width > 1:
        shown = next(value for value in values if encode([value]).width > 1)
        raise InvalidArgument(
            f"suspect={suspect.name}: returned {shorten(shown)}, which holds several numbers. A suspect returns True or False, "
            "one number, or a category such as a word; give one function for each number."
        )
    return batch
