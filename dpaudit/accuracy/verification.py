"""Compare theorems with the truth over grids of parameters, and search for counterexamples."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit._util.validation import check_count, check_open_unit
from dpaudit.accuracy.bound import Bound, Status, Truth, Variant, excess, judge
from dpaudit.accuracy.regions import Point, Range, grid_points, region_strategy, rounder
from dpaudit.accuracy.theorems import Effort, Theorem, TheoremForm, find_theorem
from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Progress = Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """Bound and truth at one point. The truth is not computed if the bound is vacuous or does not apply."""

    point: Mapping[str, Any]
    bound: Bound
    truth: Truth | None
    status: Status

    @property
    def excess(self) -> float:
        """The least amount by which the truth violates the bound; NaN if no truth was computed."""
        return math.nan if self.truth is None else excess(self.bound, self.truth)

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            "point": {name: list(v) if isinstance(v, tuple) else v for name, v in self.point.items()},
            "bound": self.bound.as_json(),
            "truth": None if self.truth is None else self.truth.as_json(),
            "status": str(self.status),
        }


@dataclass(frozen=True, slots=True)
class TheoremVerification:
    """One form of a theorem over many points; ``counterexample`` is the roundest violation found.

    ``error_probability`` bounds the probability that any violation reported here is false because of Monte Carlo error; it is
    zero if all truths are exact or certified.
    """

    theorem: Theorem
    form: TheoremForm
    rows: tuple[Row, ...]
    counterexample: Row | None
    error_probability: float
    seconds: float
    seed: int

    @property
    def counts(self) -> dict[Status, int]:
        """Number of points with each status."""
        tally = Counter(row.status for row in self.rows)
        return {status: tally[status] for status in Status if tally[status]}

    @property
    def status(self) -> Status:
        """The first of VIOLATED, HOLDS, UNDECIDED and VACUOUS that some point has, otherwise NOT_APPLICABLE."""
        counts = self.counts
        for status in (Status.VIOLATED, Status.HOLDS, Status.UNDECIDED, Status.VACUOUS):
            if counts.get(status):
                return status
        return Status.NOT_APPLICABLE

    @property
    def worst(self) -> Row | None:
        """The point with the largest excess over the bound."""
        violated = [row for row in self.rows if row.status is Status.VIOLATED]
        return max(violated, key=lambda row: row.excess, default=None)

    @property
    def broken(self) -> bool:
        """True if the form is violated and that is not expected."""
        return self.form.expected is not Status.VIOLATED and self.status is Status.VIOLATED

    @property
    def missed(self) -> bool:
        """True if a counterexample is expected, and none of the points is one."""
        return self.form.expected is Status.VIOLATED and self.status is not Status.VIOLATED

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            "theorem": self.theorem.name,
            "source": self.theorem.source,
            "variant": str(self.form.variant),
            "expected": str(self.form.expected),
            "status": str(self.status),
            "broken": self.broken,
            "missed": self.missed,
            "points": {str(status): count for status, count in self.counts.items()},
            "counterexample": None if self.counterexample is None else self.counterexample.as_json(),
            "worst": None if self.worst is None else self.worst.as_json(),
            "error_probability": self.error_probability,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
        }


@dataclass(slots=True)
class _Run:
    """Evaluates each point once, allocates the error probability, and keeps the rows."""

    theorem: Theorem
    form: TheoremForm
    error_probability: float
    seed: int
    deadline: float
    progress: Progress | None
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    monte_carlo: int = 0
    spent: float = 0.0

    @property
    def expired(self) -> bool:
        """True if the time is up."""
        return time.monotonic() > self.deadline

    def row(self, point: Mapping[str, Any]) -> Row | None:
        """Return the row of a point, evaluated once; ``None`` after the time limit."""
        complete = self.theorem.complete(point)
        key = tuple(complete[name] for name in self.theorem.parameters)
        if key in self.rows:
            return self.rows[key]
        if self.expired:
            return None
        bound = self.form.bound(**complete)
        silent = not bound.applies or bound.vacuous or math.isnan(bound.value)
        truth = None if silent else self.form.truth(bound, self._effort(), **complete)
        if truth is not None and truth.error_probability:
            self.spent += truth.error_probability
        status = judge(bound, truth) if truth is not None else _silent_status(bound)
        row = self.rows[key] = Row(complete, bound, truth, status)
        if self.progress is not None:
            self.progress(1)
        return row

    def _effort(self) -> Effort:
        # The j-th Monte Carlo truth may err with probability alpha 6/(pi j)^2; all of them together with alpha.
        j = self.monte_carlo + 1
        if self.form.monte_carlo:
            self.monte_carlo = j
        rng = np.random.default_rng([self.seed, j])
        return Effort(alpha=self.error_probability * 6.0 / (math.pi * j) ** 2, rng=rng)


def _silent_status(bound: Bound) -> Status:
    return Status.VACUOUS if bound.applies and bound.vacuous else Status.NOT_APPLICABLE


def verify(
    theorem: str | Theorem,
    where: Mapping[str, Any] | Iterable[Mapping[str, Any]] | SearchStrategy[Point] | None = None,
    *,
    variants: Sequence[Variant | str] | None = None,
    points: int = 100,
    seconds: float = 600.0,
    error_probability: float = 1e-6,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[TheoremVerification, ...]:
    """Compare a theorem with the truth, and search for a counterexample.

    Parameters
    ----------
    theorem
        A name from ``dpaudit.accuracy.theorems.names``, or a :class:`Theorem` of your own.
    where
        ``None`` for the theorem's own region; a mapping from parameters to lists of values (a grid: all combinations
        are evaluated) or to :class:`Range` (a region: Hypothesis searches it); an iterable of points; or a Hypothesis
        strategy of points. Parameters left out keep their defaults.
    variants
        The forms to verify; all by default.
    points, seconds
        Number of examples of a search, without those of the shrinking, and its time limit.
    error_probability
        Bound on the probability that any reported violation is false because of Monte Carlo error.
    seed
        Seed of the search and of the Monte Carlo draws.
    progress
        Called with 1 after each point.

    Returns
    -------
    One :class:`TheoremVerification` for each form, with every point evaluated and, if any is violated, a counterexample that
    is shrunk by Hypothesis and then rounded to few digits.

    >>> literal, *_, sharp = verify("histogram-uniform", {"n": [100], "steps": [4], "epsilon": [50.0], "gamma": [0.1]})
    >>> literal.status, sharp.status
    (<Status.VACUOUS: 'vacuous'>, <Status.HOLDS: 'holds'>)
    """
    subject = find_theorem(theorem) if isinstance(theorem, str) else theorem
    check_open_unit(error_probability=error_probability)
    check_count(points=points)
    forms = subject.select(variants)
    return tuple(
        _verify_form(subject, form, where, points, seconds, error_probability, seed, progress) for form in forms
    )


def _verify_form(
    theorem: Theorem,
    form: TheoremForm,
    where: Any,
    points: int,
    seconds: float,
    error_probability: float,
    seed: int,
    progress: Progress | None,
) -> TheoremVerification:
    started = time.monotonic()
    run = _Run(theorem, form, error_probability, seed, started + seconds, progress)
    region = form.region if where is None else where
    found: Row | None = None
    strategy = _as_strategy(theorem, region)
    if strategy is None:
        chosen = grid_points(_axes(theorem, region)) if isinstance(region, Mapping) else region
        for point in chosen:
            run.row(point)
        violated = [row for row in run.rows.values() if row.status is Status.VIOLATED]
        found = max(violated, key=lambda row: row.excess, default=None)
    else:
        found = _search(run, strategy, points, seed)
        if found is not None:
            found = _round_off(run, found)
    rows = tuple(run.rows.values())
    return TheoremVerification(
        theorem, form, rows, found, min(run.spent, error_probability), time.monotonic() - started, seed
    )


def _axes(theorem: Theorem, region: Mapping[str, Any]) -> dict[str, Any]:
    theorem.complete(dict.fromkeys(region), checked=False)  # refuses unknown names
    return {
        name: axis if isinstance(axis, Range | list | tuple | range | np.ndarray) else [axis]
        for name, axis in region.items()
    }


def _as_strategy(theorem: Theorem, region: Any) -> SearchStrategy[Point] | None:
    """Return a strategy for a region to search, and None for plain lists of points."""
    if isinstance(region, Mapping):
        axes = _axes(theorem, region)
        return region_strategy(axes) if any(isinstance(axis, Range) for axis in axes.values()) else None
    from hypothesis.strategies import SearchStrategy

    if isinstance(region, SearchStrategy):
        return region
    if isinstance(region, Iterable):
        return None
    raise InvalidArgument(f"where={region!r} must be a grid, a region, points, or a Hypothesis strategy of points.")


class _TimeUp(Exception):
    """Ends a search at the time limit if it has found no violation; otherwise the violation is still rounded."""


def _search(run: _Run, strategy: SearchStrategy[Point], points: int, seed: int) -> Row | None:
    """Search for a violation with Hypothesis, guided by how close each point is to one, and shrink it."""
    import hypothesis

    from dpaudit._util.hypothesis_bridge import smallest

    first: list[Point] = []
    seen: set[Status] = set()

    def violated(point: Point) -> bool:
        if not first:
            first.append(point)
        if run.expired and Status.VIOLATED not in seen:
            raise _TimeUp
        row = None if not run.expired and run.form.hopeless(run.theorem.complete(point)) else run.row(point)
        if row is None or row.status is Status.NOT_APPLICABLE:
            # A point without a truth does not count as an example, but Hypothesis needs at least one example.
            if point != first[0]:
                hypothesis.reject()
            return False
        if row.truth is not None and math.isfinite(row.excess):
            hypothesis.target(row.excess)
        seen.add(row.status)
        return row.status is Status.VIOLATED

    try:
        found = smallest(strategy, violated, examples=points, seed=seed, guided=True)
    except _TimeUp:
        return None
    return None if found is None else run.row(found)


def _round_off(run: _Run, found: Row) -> Row:
    """Round each parameter to as few digits as the violation allows."""
    best = found
    for name in run.theorem.parameters:
        for candidate in rounder(best.point[name]):
            if candidate == best.point[name]:
                break
            try:
                row = run.row({**best.point, name: candidate})
            except InvalidArgument:  # the rounded value is outside the range of the parameter
                continue
            if row is not None and row.status is Status.VIOLATED:
                best = row
                break
    return best
