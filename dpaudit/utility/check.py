"""Check an accuracy claim of a mechanism on the worst data set that a search finds.

**Validity.** The search scores many data sets by small pilot samples, which are not used as evidence. Every test, of a
data set with a bad score or of a smaller one while shrinking, draws new releases, and the j-th has the error
probability alpha 6/(pi j)^2. If the claim holds for all data, each is refuted with at most that probability
(:mod:`dpaudit.utility.mean_test`), however its data set was chosen, and any of them with at most alpha. QED
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit._util.validation import check_count, check_open_unit, shorten
from dpaudit._util.values import fingerprint
from dpaudit.accuracy.conditions import Real
from dpaudit.claims import Verdict
from dpaudit.engine.audit import check_name, name_of
from dpaudit.engine.session import current
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import Raised, as_mechanism
from dpaudit.utility.definition import OPTIONS, judge
from dpaudit.utility.error_claim import ERROR_CLAIMS, ErrorClaim
from dpaudit.utility.mean_test import LARGEST_SCORE, MeanTest
from dpaudit.utility.result import AccuracyResult

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

TESTED = 3
"""Number of data sets that are tested in full: those with the worst scores."""
SEARCH_SHARE = 0.3
"""Share of the samples that the search for bad data sets may use."""
SHRINKS = 200
"""Largest number of smaller data sets that are tried."""


@dataclass(frozen=True, slots=True)
class DrawnData:
    """Data that are drawn anew for every release: the claim is then about data of this law, not about all data.

    >>> law = DrawnData(lambda rng: rng.random(100), "100 uniform records")
    >>> law
    100 uniform records
    """

    draw: Callable[[np.random.Generator], Any]
    description: str = ""

    def __repr__(self) -> str:
        return self.description or f"data of the law {name_of(self.draw)}"


def check_accuracy(
    mechanism: Any,
    truth: Any,
    claim: ErrorClaim,
    data: Sequence[Any] | SearchStrategy[Any] | DrawnData,
    *,
    error: Callable[[Any, Any], float] | None = None,
    name: str | None = None,
    samples: int = 100_000,
    seconds: float | None = None,
    alpha: float = 1e-6,
    seed: int = 0,
    examples: int = 100,
) -> AccuracyResult:
    """Look for data on which a mechanism is less accurate than it claims.

    Parameters
    ----------
    mechanism
        As for :func:`dpaudit.audit`: an object with ``sample(data, size, rng)``, a function of the data, or a wrapped one.
    truth
        The right answer: a function of the data, or a fixed value.
    claim
        ``WithinError(error, beta)``, ``MeanError(error)`` or ``RootMeanSquaredError(error)`` of ``dpaudit``.
    data
        A Hypothesis strategy of data sets, of which the worst is searched; a list of data sets; or ``DrawnData(draw)``, data of
        a law, drawn anew for every release.
    error
        Distance of an output from the truth; by default the largest absolute difference of their coordinates. An output that is
        no number, and one that is an exception, has an infinite error.
    name
        The name under which the result is reported; by default that of the mechanism.
    samples, seconds
        Budget of releases and of time.
    alpha
        Probability that a claim that holds for all data is reported as violated.
    seed
        Root of all random numbers.
    examples
        Number of data sets that the search scores.

    Returns
    -------
    AccuracyResult
        ``VIOLATION`` with the data set and the numbers; ``NO_VIOLATION_FOUND`` if the claim holds up to a factor of two on what
        was tried, with the level at which it does; otherwise ``INCONCLUSIVE``.

    Examples
    --------
    >>> import dpaudit
    >>> from dpaudit import MeanError
    >>> noisy = dpaudit.batched(lambda data, size, rng: sum(data) + rng.laplace(scale=2.0, size=size))
    >>> dpaudit.check_accuracy(noisy, sum, MeanError(1.0), [[0, 1]]).verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    check_name(name)
    check_count(samples=samples, examples=examples)
    check_open_unit(alpha=alpha)
    if type(claim) not in ERROR_CLAIMS.values():
        raise InvalidArgument(f"claim={shorten(claim)} must be one of {', '.join(ERROR_CLAIMS)}, from dpaudit.")
    run = _Check(
        subject=Subject(as_mechanism(mechanism), truth, claim, error or largest_difference),
        samples=samples,
        deadline=None if seconds is None else time.monotonic() + seconds,
        alpha=alpha,
        seed=seed,
    )
    return run.result(name or name_of(mechanism), data, examples)


def assert_accurate(
    mechanism: Any,
    truth: Any,
    claim: ErrorClaim,
    data: Any,
    *,
    allow_inconclusive: bool = False,
    name: str | None = None,
    **options: Any,
) -> AccuracyResult:
    """Check, and raise an error if the claim is refuted or nothing could be decided; otherwise return the result.

    The errors are :class:`~dpaudit.errors.AccuracyViolation`, with the data set, and :class:`~dpaudit.errors.Inconclusive`.
    Inside pytest it has a share of the run's alpha unless it names its own.

    Parameters
    ----------
    mechanism, truth, claim, data, name, **options
        As for :func:`check_accuracy`.
    allow_inconclusive : bool
        Return an undecided result instead of raising.
    """
    around = current()
    if around is not None:
        name, given = around.options(name, {k: v for k, v in options.items() if k in OPTIONS})
        options |= {k: v for k, v in given.items() if k in OPTIONS and v is not None}
        allow_inconclusive = allow_inconclusive or around.allows_inconclusive()
    result = check_accuracy(mechanism, truth, claim, data, name=name, **options)
    judge(result, None, allow_inconclusive=allow_inconclusive)
    return result


def largest_difference(output: Any, truth: Any) -> float:
    """Largest absolute difference of the coordinates; infinite for anything that is no finite number of the same shape."""
    if isinstance(output, Raised):
        return math.inf
    try:
        a, b = np.asarray(output, dtype=np.float64), np.asarray(truth, dtype=np.float64)
        off = np.abs(a - b)
    except (TypeError, ValueError):
        return math.inf
    if a.shape != b.shape and b.ndim:
        return math.inf
    worst = float(off.max()) if off.size else 0.0
    return math.inf if math.isnan(worst) else worst


@dataclass(frozen=True, slots=True)
class Subject:
    """A mechanism, the true answer, and the claim."""

    mechanism: Any
    truth: Any
    claim: ErrorClaim
    error: Callable[[Any, Any], float]

    def right(self, data: Any) -> Any:
        """Return the right answer on these data."""
        return self.truth(data) if callable(self.truth) else self.truth

    def scores(self, data: Any, size: int, rng: np.random.Generator) -> Real:
        """Scores of ``size`` new releases."""
        if isinstance(data, DrawnData):
            errors = np.concatenate([self._errors(data.draw(rng), 1, rng) for _ in range(size)])
        else:
            errors = self._errors(data, size, rng)
        return self.claim.score(errors)

    def _errors(self, data: Any, size: int, rng: np.random.Generator) -> Real:
        right = self.right(data)
        outputs = self.mechanism.sample(data, size, rng)
        if len(outputs) != size:
            raise MechanismError(f"The mechanism returned {len(outputs)} outputs where {size} were asked for.")
        array = np.asarray(outputs) if isinstance(outputs, np.ndarray) else None
        if (
            self.error is largest_difference
            and array is not None
            and array.dtype.kind in "fiub"
            and np.ndim(right) == array.ndim - 1
        ):
            off = np.abs(array.astype(np.float64) - np.asarray(right, dtype=np.float64))
            flat = off.reshape(size, -1).max(axis=1) if off.ndim > 1 else off
            return np.where(np.isnan(flat), math.inf, flat)
        return np.array([float(self.error(output, right)) for output in outputs])


@dataclass(slots=True)
class _Check:
    """One check: its budget, its tests, and the data sets with the worst scores."""

    subject: Subject
    samples: int
    deadline: float | None
    alpha: float
    seed: int
    used: int = 0
    tests: int = 0
    looked: dict[Hashable, tuple[float, Any]] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.used >= self.samples or (self.deadline is not None and time.monotonic() > self.deadline)

    def draw(self, data: Any, size: int) -> Real:
        # Every draw has a stream of its own, so the tests are independent of each other.
        rng = np.random.default_rng([self.seed, self.used, size])
        self.used += size
        return self.subject.scores(data, size, rng)

    def test(self, data: Any, budget: int) -> MeanTest:
        """Test a data set on new releases, in growing batches, until it is refuted or the budget is used."""
        self.tests += 1
        test = MeanTest(self.subject.claim.limit, self.alpha * 6.0 / (math.pi * self.tests) ** 2)
        size = min(256, budget)
        while test.count < budget and not test.refuted:
            test.add(self.draw(data, min(size, budget - test.count)))
            size = min(2 * size, 16_384)
            if self.deadline is not None and time.monotonic() > self.deadline:
                break
        return test

    def look(self, data: Any, size: int) -> float:
        """Score a data set with a pilot sample, relative to the limit."""
        key = fingerprint(data)
        if key not in self.looked:
            scores = np.minimum(self.draw(data, size), 1e12)
            self.looked[key] = (float(scores.mean()) / max(self.subject.claim.limit, 1e-12), data)
        return self.looked[key][0]

    def candidates(self, data: Any, examples: int) -> list[Any]:
        """Return the data sets with the worst scores."""
        if isinstance(data, DrawnData):
            self.looked["law"] = (0.0, data)
            return [data]
        pilot = max(20, int(SEARCH_SHARE * self.samples / examples))
        if _is_strategy(data):
            from hypothesis import target

            from dpaudit._util.hypothesis_bridge import explore

            def visit(value: Any) -> bool:
                target(min(self.look(value, pilot), 1e9), label="dpaudit")
                return self.used > SEARCH_SHARE * self.samples or self.over

            explore(data, visit, examples=examples, seed=self.seed, guided=True)
        elif isinstance(data, Iterable) and not isinstance(data, str):
            listed = list(data)
            for value in listed:
                self.look(value, max(20, min(pilot, int(SEARCH_SHARE * self.samples / max(1, len(listed))))))
        else:
            raise InvalidArgument(f"data={shorten(data)} must be a strategy, a list of data sets, or DrawnData(draw).")
        if not self.looked:
            raise InvalidArgument(f"data={shorten(data)} holds no data set.")
        return [value for _, value in sorted(self.looked.values(), key=lambda item: -item[0])[:TESTED]]

    def result(self, name: str, data: Any, examples: int) -> AccuracyResult:
        worst = self.candidates(data, examples)
        tested: list[tuple[Any, MeanTest]] = []
        for number, value in enumerate(worst):
            if tested and self.over:
                break
            budget = max(100, (self.samples - self.used) // (len(worst) - number))
            test = self.test(value, budget)
            tested.append((value, test))
            if test.refuted:
                value, test, shrunk = self.shrink(data, value, test)
                return self.report(name, [(value, test)], Verdict.VIOLATION, shrunk)
        share = self.alpha / len(tested)
        claim = self.subject.claim
        largest = _cut(claim)
        uppers = [test.upper(share, largest) for _, test in tested]
        place = int(np.argmax(uppers))
        decided = uppers[place] <= 2.0 * claim.limit if claim.limit > 0.0 else uppers[place] <= 1e-3
        verdict = Verdict.NO_VIOLATION_FOUND if decided else Verdict.INCONCLUSIVE
        order = [tested[place], *(pair for i, pair in enumerate(tested) if i != place)]
        return self.report(name, order, verdict, False)

    def shrink(self, data: Any, found: Any, test: MeanTest) -> tuple[Any, MeanTest, bool]:
        """Search for a smaller data set that is refuted too, each on new releases."""
        if not _is_strategy(data):
            return found, test, False
        from dpaudit._util.hypothesis_bridge import smallest

        budget, tries = max(512, 2 * test.count), 0
        known: dict[Hashable, MeanTest] = {fingerprint(found): test}

        def refuted(value: Any) -> bool:
            nonlocal tries
            key = fingerprint(value)
            if key not in known:
                tries += 1
                if tries > SHRINKS or (self.deadline is not None and time.monotonic() > self.deadline):
                    return False
                known[key] = self.test(value, budget)
            return known[key].refuted

        value = smallest(data, refuted, examples=SHRINKS, seed=self.seed)
        if value is None or not known[fingerprint(value)].refuted:
            return found, test, False
        return value, known[fingerprint(value)], fingerprint(value) != fingerprint(found)

    def report(self, name: str, tested: list[tuple[Any, MeanTest]], verdict: Verdict, shrunk: bool) -> AccuracyResult:
        data, test = tested[0]
        claim = self.subject.claim
        share = self.alpha / len(tested)
        cut = _cut(claim)
        beyond = 0.0
        if cut < claim.largest_score:
            over = MeanTest(0.5, 0.5)
            over.add(np.asarray(np.concatenate(test.scores) > cut, dtype=np.float64))
            beyond = over.upper(share, 1.0)
        drawn = isinstance(data, DrawnData)
        return AccuracyResult(
            name=name,
            claim=claim,
            verdict=verdict,
            mean_score=test.mean,
            # A refuted claim is exceeded with the error probability of the test that refuted it.
            lower=max(test.lower(test.alpha), claim.limit) if test.refuted else test.lower(share),
            upper=test.upper(share, cut),
            cut=cut,
            beyond_cut=beyond,
            data=repr(data) if drawn else _text(data),
            truth="of each data set" if drawn and callable(self.subject.truth) else _text(self.subject.right(data)),
            samples=self.used,
            data_sets=len(self.looked),
            tested=len(tested),
            alpha=self.alpha,
            seed=self.seed,
            shrunk=shrunk,
        )


def _cut(claim: ErrorClaim) -> float:
    """Return the largest score, or where scores are cut for an upper bound if that is unknown."""
    return claim.largest_score if math.isfinite(claim.largest_score) else LARGEST_SCORE * claim.limit


def _is_strategy(data: Any) -> bool:
    return hasattr(data, "validate") and hasattr(data, "map") and hasattr(data, "filter") and not hasattr(data, "dtype")


def _text(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    text = " ".join(repr(plain).split())
    return text if len(text) <= 400 else f"{text[:400]}..."
