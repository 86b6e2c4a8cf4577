"""Check the claimed sensitivity of a deterministic query by searching for neighbours on which it changes by more."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.notebook import card
from dpaudit._util.validation import check_choice, check_count, check_non_negative, shorten
from dpaudit._util.values import fingerprint, is_frame, is_series, source
from dpaudit.claims import Relation, Verdict
from dpaudit.errors import InvalidArgument, MechanismError

if TYPE_CHECKING:
    from dpaudit._util.hypothesis_bridge import Search
    from dpaudit.neighbours import Neighbours, Pair

Norm: TypeAlias = Literal["l1", "l2", "linf", "hamming"] | Callable[[Any, Any], float]

Path: TypeAlias = tuple[tuple[str, Any], ...]
"""The keys and positions that lead to one entry of a nested answer."""

_NORMS = ("l1", "l2", "linf", "hamming")
_REAL = (bool, int, float, Decimal, Fraction, np.integer, np.floating, np.bool_)
_MISSING = object()
"""Stands for an entry that only the other answer has; it differs from everything."""
_NAN = object()
"""Stands for NaN in keys, because NaN is not equal to itself."""
_LENGTH = ("length", None)
"""The step under which the length of a sequence is an entry of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityEstimate:
    """A lower bound on the sensitivity: the largest change found, and the pair on which it occurs."""

    query: str
    norm: str
    sensitivity: float
    pair: Pair
    answers: tuple[Any, Any]
    pairs: int
    seed: int

    def __str__(self) -> str:
        return "\n".join(
            [
                f"The {self.norm} sensitivity of {self.query} is at least {self.sensitivity:.12g}, on",
                *_pair_lines(self.pair),
                _answer_line(self.answers),
                f"  {self.pairs} pairs tried, seed={self.seed}",
            ]
        )

    def _repr_html_(self) -> str:
        facts = [*_pair_facts(self.pair, self.answers), ("pairs tried", str(self.pairs))]
        title = f"{self.norm} sensitivity of {self.query} at least {self.sensitivity:.12g}"
        return card("", title, facts, text=str(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityCheck:
    """The result of :func:`check_sensitivity`.

    ``largest`` is the largest change over all pairs tried, and ``worst`` its pair. ``witness`` is the smallest pair whose
    change, ``witness_change``, is above the bound. ``answers`` are the query's answers on the witness, or on ``worst`` if
    there is none.
    """

    query: str
    norm: str
    bound: float
    verdict: Verdict
    largest: float
    worst: Pair
    witness: Pair | None
    witness_change: float | None
    answers: tuple[Any, Any]
    pairs: int
    examples: int
    seed: int
    tolerance: float

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.norm} sensitivity {self.bound:.12g} of {self.query}"]
        if self.witness is None:
            lines += [f"  largest change found: {self.largest:.12g}, on", *_pair_lines(self.worst)]
        else:
            lines += [f"  the answer changes by {self.witness_change:.12g}, on", *_pair_lines(self.witness)]
            lines += [_answer_line(self.answers)]
            lines += [f"  largest change over all pairs tried: {self.largest:.12g}"]
        lines.append(f"  {self.pairs} pairs tried, seed={self.seed}, rounding allowance {self.tolerance:g} relative")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        change = self.largest if self.witness_change is None else self.witness_change
        facts = [
            ("claimed", f"{self.bound:.12g}"),
            ("largest change found" if self.witness is None else "the answer changes by", f"{change:.12g}"),
            *_pair_facts(self.worst if self.witness is None else self.witness, self.answers),
            ("pairs tried", str(self.pairs)),
        ]
        return card(self.verdict, f"{self.norm} sensitivity of {self.query}", facts, text=str(self))


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer of a query that raised: the exception's type and text."""

    type: str
    message: str

    def __str__(self) -> str:
        return f"raises {self.type}: {self.message}"


def check_sensitivity(
    query: Callable[[Any], Any],
    bound: float,
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    norm: Norm = "l1",
    *,
    examples: int = 300,
    seed: int = 0,
    tolerance: float = 1e-9,
) -> SensitivityCheck:
    """Search for neighbours on which a deterministic query changes by more than ``bound``.

    The sensitivity of f is the supremum of ``d(f(D), f(D'))`` over all neighbours D, D'. A pair with a larger change than
    the bound refutes it with certainty. Answers may be numbers, arrays, sequences, dicts, sets, pandas Series and
    DataFrames, nested in each other:

    * Entries of dicts, sets, Series and DataFrames are matched by their keys, and a missing entry counts as 0 (or zeros), as
      in a histogram. Sequences and arrays of different shapes are infinitely far apart.
    * NaN, infinities, None, text, masked entries and other values that are not numbers: no change if both sides have the
      same one, otherwise an infinite change.
    * An exception on one side only, or of another type on the other side, is an infinite change.

    Parameters
    ----------
    query : callable
        ``f(data)``; it receives a copy, so it may change its argument.
    bound : float
        The claimed sensitivity.
    neighbours : Neighbours, or a list of pairs
        The pairs to search.
    norm : {"l1", "l2", "linf", "hamming"} or callable
        ``"hamming"`` counts the entries that differ. A callable ``norm(answer, answer2)`` is a metric of your own; it is
        not called with exceptions, and if it returns NaN, different answers are infinitely far apart.
    examples, seed : int
        Size and seed of the search.
    tolerance : float
        Relative rounding allowance on the bound, at least 0 and below 1.

    Returns
    -------
    SensitivityCheck
        VIOLATION with a witness, or NO_VIOLATION_FOUND.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> from dpaudit import neighbours
    >>> found = check_sensitivity(sum, 1, neighbours.add_remove(st.integers(0, 10)))
    >>> found.verdict.value, found.largest, found.witness
    ('VIOLATION', 10.0, Pair(data=[], neighbour=[2]))
    """
    check_non_negative(bound=bound, tolerance=tolerance)
    if tolerance >= 1.0:
        raise InvalidArgument(
            f"tolerance={tolerance!r} must be below 1: it is the share of the bound that rounding may add."
        )
    allowed = float(bound) * (1.0 + tolerance)
    search, change = _search(query, neighbours, norm, lambda value: value > allowed, examples, seed)
    first, second = search.witness or search.worst
    return SensitivityCheck(
        query=_name(query),
        norm=_name(norm),
        bound=float(bound),
        verdict=Verdict.NO_VIOLATION_FOUND if search.witness is None else Verdict.VIOLATION,
        largest=search.largest,
        worst=search.worst,
        witness=search.witness,
        witness_change=None if search.witness is None else change(search.witness),
        answers=(_answer(query, first), _answer(query, second)),
        pairs=search.pairs,
        examples=examples,
        seed=seed,
        tolerance=tolerance,
    )


def estimate_sensitivity(
    query: Callable[[Any], Any],
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    norm: Norm = "l1",
    *,
    examples: int = 300,
    seed: int = 0,
) -> SensitivityEstimate:
    """Return the largest change of the query that a search finds: a lower bound on its sensitivity.

    The estimate is infinite if the query raises, or returns something that is not a number, on one side only; the field
    ``answers`` shows it.

    Parameters
    ----------
    query, neighbours, norm, examples, seed
        As for :func:`check_sensitivity`.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> from dpaudit import neighbours
    >>> estimate_sensitivity(max, neighbours.substitute(st.integers(0, 10))).sensitivity
    10.0
    """
    search, _ = _search(query, neighbours, norm, lambda _: False, examples, seed)
    return SensitivityEstimate(
        query=_name(query),
        norm=_name(norm),
        sensitivity=search.largest,
        pair=search.worst,
        answers=(_answer(query, search.worst.data), _answer(query, search.worst.neighbour)),
        pairs=search.pairs,
        seed=seed,
    )


def distance(first: Any, second: Any, norm: Norm = "l1") -> float:
    """Return the distance of two answers, by the rules of :func:`check_sensitivity`.

    Parameters
    ----------
    first, second
        Answers of a query.
    norm : {"l1", "l2", "linf", "hamming"} or callable
        The norm of their difference.

    Examples
    --------
    >>> distance({"a": 3, "b": 1}, {"a": 1}), distance([0, 0], [3, 4], "l2"), distance(1.0, float("nan"))
    (3.0, 5.0, inf)
    """
    if isinstance(first, Failed) or isinstance(second, Failed):
        same = isinstance(first, Failed) and isinstance(second, Failed) and first.type == second.type
        return 0.0 if same else math.inf
    if callable(norm):
        return _by_metric(norm, first, second)
    first, second = _plain(first), _plain(second)
    arrays = all(isinstance(answer, np.ndarray) and answer.dtype.kind == "f" for answer in (first, second))
    if arrays and first.shape == second.shape:
        gaps = _array_gaps(first, second)
    else:
        left, right = dict(_entries(first)), dict(_entries(second))
        # In a fixed order, because the sum of the gaps must not depend on the hash of the keys.
        paths = [path for path in dict.fromkeys([*left, *right]) if norm != "hamming" or path[-1:] != (_LENGTH,)]
        known_left, known_right = _keys(left), _keys(right)
        gaps = np.array(
            [
                _gap(
                    left[path] if path in left else _absent(path, right[path], known_left),
                    right[path] if path in right else _absent(path, left[path], known_right),
                )
                for path in paths
            ]
        )
    match norm:
        case "hamming":
            return float(np.count_nonzero(gaps))
        case "l1":
            return math.inf if np.isinf(gaps).any() else math.fsum(gaps)
        case "linf":
            return float(gaps.max(initial=0.0))
    largest = float(gaps.max(initial=0.0))
    if largest == 0.0 or math.isinf(largest):
        return largest
    return largest * math.sqrt(math.fsum((gaps / largest) ** 2))  # scaled, so that squares do not over- or underflow


def _by_metric(metric: Callable[[Any, Any], float], first: Any, second: Any) -> float:
    try:
        value = float(metric(first, second))
    except Exception as error:
        raise InvalidArgument(
            f"norm={_name(metric)} gave no number for the answers {shorten(first)} and {shorten(second)}: "
            f"{type(error).__name__}: {error}. A metric must take any two answers of the query."
        ) from error
    if value < 0.0:
        raise InvalidArgument(
            f"norm={_name(metric)} gave {value!r} for the answers {shorten(first)} and {shorten(second)}; a distance is "
            "never negative."
        )
    if math.isnan(value):  # for example after infinity minus infinity
        return math.inf if distance(first, second, "hamming") else 0.0
    return value


def _search(
    query: Callable[[Any], Any],
    neighbours: Neighbours | Sequence[tuple[Any, Any]],
    norm: Norm,
    exceeds: Callable[[float], bool],
    examples: int,
    seed: int,
) -> tuple[Search, Callable[[Pair], float]]:
    from dpaudit._util.hypothesis_bridge import maximise
    from dpaudit.neighbours import Neighbours, fixed

    if not callable(query):
        raise InvalidArgument(f"query={shorten(query)} must be a function of one data set.")
    if not callable(norm):
        check_choice(_NORMS, norm=norm)
    check_count(examples=examples)
    check_count(minimum=0, seed=seed)
    if isinstance(neighbours, list | tuple):
        neighbours = fixed(list(neighbours))
    if not isinstance(neighbours, Neighbours):
        raise InvalidArgument(
            f"neighbours={shorten(neighbours)} must come from dpaudit.neighbours, or be a list of pairs (data, neighbour)."
        )
    if neighbours.relation is Relation.SECRETS:
        raise InvalidArgument(
            f"neighbours={neighbours!r} are secrets, whose data are drawn at random; sensitivity is defined for fixed data."
        )
    answered = False
    last_failure: Any = None

    def change(pair: Pair) -> float:
        nonlocal answered, last_failure
        first, again, second = (_answer(query, data) for data in (pair.data, pair.data, pair.neighbour))
        if distance(first, again, "hamming") > 0.0:
            raise MechanismError(
                f"query={_name(query)} is not deterministic: on data={shorten(pair.data)} it returned {shorten(first)} "
                f"and then {shorten(again)}. Check it before noise is added; audit noisy code with dpaudit.audit."
            )
        answered = answered or not (isinstance(first, Failed) and isinstance(second, Failed))
        last_failure = first
        return distance(first, second, norm)

    search = maximise(neighbours, change, exceeds=exceeds, examples=examples, seed=seed)
    if not answered:
        raise MechanismError(
            f"query={_name(query)} raised on every data set tried, so nothing was measured. It {last_failure}"
        )
    return search, change


def _answer(query: Callable[[Any], Any], data: Any) -> Any:
    # A copy, because a query may sort its argument in place.
    try:
        answer = query(copy.deepcopy(data))
        return list(answer) if isinstance(answer, Iterator | ValuesView) else answer
    except Exception as error:
        kind = type(error)
        return Failed(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."), str(error))


def _entries(answer: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the numbers and other leaves of an answer, each with its path."""
    answer = _plain(answer)
    if is_frame(answer):
        rows = _labels(answer.index)
        for place, column in enumerate(_labels(answer.columns)):
            for row, cell in zip(rows, answer.iloc[:, place].tolist(), strict=True):
                yield from _entries(cell, (*path, ("key", (row, column))))
    elif is_series(answer):
        for label, cell in zip(_labels(answer.index), answer.tolist(), strict=True):
            yield from _entries(cell, (*path, ("key", label)))
    elif isinstance(answer, Mapping):
        for key, entry in answer.items():
            yield from _entries(entry, (*path, ("key", _label(key))))
    elif isinstance(answer, AbstractSet):
        for element in answer:
            yield (*path, ("key", _label(element))), 1
    elif (isinstance(answer, Sequence) and not isinstance(answer, str | bytes | bytearray)) or (
        isinstance(answer, np.ndarray) and answer.ndim
    ):
        yield (*path, _LENGTH), str(len(answer))  # as text, so that different lengths are infinitely far apart
        for place, entry in enumerate(answer):
            yield from _entries(entry, (*path, ("place", place)))
    else:
        yield path, answer.item() if isinstance(answer, np.ndarray) else answer


def _plain(answer: Any) -> Any:
    """Return sparse, masked and foreign arrays as numpy arrays (masked entries as None), and records as dicts."""
    if isinstance(answer, (*_REAL, str)):
        return answer
    if isinstance(answer, np.ma.MaskedArray):
        return np.ma.filled(answer.astype(object), None)
    if hasattr(answer, "toarray"):
        return np.asarray(answer.toarray())
    if isinstance(answer, np.void) and answer.dtype.names:
        return {name: answer[name] for name in answer.dtype.names}
    if hasattr(answer, "__array__") and not (isinstance(answer, np.generic) or is_frame(answer) or is_series(answer)):
        return np.asarray(answer)
    return answer


def _label(key: Any) -> Any:
    """Return a key that is equal to itself: NaN is replaced by a constant."""
    if isinstance(key, tuple):
        return tuple(map(_label, key))
    return _NAN if isinstance(key, float | np.floating) and key != key else key


def _labels(index: Any) -> list[Any]:
    """Return the labels of a pandas index, each with its occurrence number, so that all are different."""
    counts: dict[Any, int] = {}
    labels = []
    for label in map(_label, index):
        counts[label] = counts.get(label, 0) + 1
        labels.append((label, counts[label]))
    return labels


def _keys(entries: Mapping[Path, Any]) -> set[Path]:
    """Return all paths, and beginnings of paths, that end in a key."""
    return {path[: place + 1] for path in entries for place, step in enumerate(path) if step[0] == "key"}


def _absent(path: Path, there: Any, known: AbstractSet[Path]) -> Any:
    """Return the value of an entry that only the other answer has: 0 below a missing key, otherwise ``_MISSING``."""
    below_a_missing_key = any(step[0] == "key" and path[: place + 1] not in known for place, step in enumerate(path))
    if not below_a_missing_key:
        return _MISSING
    return there if path[-1] == _LENGTH else 0


def _gap(first: Any, second: Any) -> float:
    if fingerprint(first) == fingerprint(second):
        return 0.0
    if not all(_is_real(entry) or isinstance(entry, complex | np.complexfloating) for entry in (first, second)):
        return math.inf
    try:
        if first == second or (first != first and second != second):  # the same infinity, or NaN on both sides
            return 0.0
        if _is_real(first) and _is_real(second):
            # Exact: differences of large integers and decimals are lost in floats, and unsigned integers wrap around.
            return float(abs(_fraction(first) - _fraction(second)))
        gap = abs(complex(first) - complex(second))
    except (ArithmeticError, ValueError):  # infinities and NaN are not fractions
        return math.inf
    return gap if math.isfinite(gap) else math.inf


def _is_real(entry: Any) -> bool:
    return isinstance(entry, _REAL) and not isinstance(entry, np.timedelta64)  # a subclass of np.integer


def _fraction(number: Any) -> Fraction:
    if isinstance(number, np.floating):  # includes long doubles, which have more digits than floats
        return Fraction(*number.as_integer_ratio())
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def _array_gaps(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return the absolute differences of the numbers of two arrays of the same shape."""
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(np.asarray(first, dtype=float) - np.asarray(second, dtype=float)).ravel()
    same = ((first == second) | (np.isnan(first) & np.isnan(second))).ravel()
    return np.where(same, 0.0, np.where(np.isfinite(gaps), gaps, math.inf))


def _name(function: Any) -> str:
    return function if isinstance(function, str) else getattr(function, "__qualname__", None) or shorten(function)


def _answer_line(answers: tuple[Any, Any]) -> str:
    return f"    answers   : {_answers_in_words(answers)}"


def _answers_in_words(answers: tuple[Any, Any]) -> str:
    first, second = (str(answer) if isinstance(answer, Failed) else shorten(answer) for answer in answers)
    return " ".join(f"{first} and {second}".split())  # arrays and frames print several lines


def _pair_facts(pair: Pair, answers: tuple[Any, Any]) -> list[tuple[str, str]]:
    return [
        ("data", source(pair.data)),
        ("neighbour", source(pair.neighbour)),
        ("answers", _answers_in_words(answers)),
    ]


def _pair_lines(pair: Pair) -> list[str]:
    return [f"    data      = {source(pair.data)}", f"    neighbour = {source(pair.neighbour)}"]
