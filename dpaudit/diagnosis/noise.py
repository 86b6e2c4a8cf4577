"""Test the residuals, outputs minus query answers, against the declared law of the noise."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit._util.validation import check_count, check_open_unit, shorten
from dpaudit._util.values import fingerprint, is_frame, is_series, source
from dpaudit.claims import Verdict
from dpaudit.diagnosis.residuals import FitTest, Floats, detectable_scale, fit_tests, tails
from dpaudit.engine.sampling.blocks import BatchRaised, Sampler
from dpaudit.engine.sampling.seeds import SeedKey, seed_child
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Raised, as_mechanism
from dpaudit.neighbours import Neighbours, Pair

DATA_SETS = 8
"""Largest number of data sets on which residuals are drawn."""
POOL = 32
"""Number of pairs from which the data sets are chosen."""
NOTICED = 0.1
"""Relative error of a scale that the tests must be able to detect; otherwise the verdict is INCONCLUSIVE."""
RESIDUALS = 40_000
"""Default number of residuals."""
FAILURE_MEANINGS = {
    "law": "the residuals have another distribution than declared",
    "scale": "the residuals have another spread than declared",
    "repetition": "noise is repeated in a later release",
    "negation": "noise is repeated in a later release with its sign changed",
    "sharing": "coordinates of one release share their noise",
    "opposition": "coordinates of one release share their noise with its sign changed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCheck:
    """The result of :func:`check_noise`.

    ``p_value`` is that of all tests together; at most ``alpha`` refutes the declared law. ``detectable`` is the relative error of
    a Laplace scale that would have been detected with probability about 0.98. If it is above 0.1 and nothing was refuted, there
    were too few residuals, and the verdict is INCONCLUSIVE.
    """

    noise: str
    verdict: Verdict
    alpha: float
    residuals: int
    data_sets: int
    width: int  # numbers in the longest answer
    p_value: float
    tests: tuple[FitTest, ...]
    spread: float  # interquartile range of the residuals over that of the declared noise; NaN if it is not known
    detectable: float = math.nan
    mismatch: str = ""  # describes an output that is not the query's answer plus a number

    @property
    def strongest(self) -> FitTest | None:
        """The test with the smallest p-value."""
        return min(self.tests, key=lambda test: test.p_value, default=None)

    def __str__(self) -> str:
        if self.mismatch:
            return f"{self.verdict}: noise {self.noise}\n  {self.mismatch}"
        lines = [f"{self.verdict}: noise {self.noise}"]
        strongest = self.strongest
        if self.verdict is Verdict.VIOLATION and strongest is not None:
            where = f" on data = {strongest.data}" if strongest.data else ""
            lag = f" ({strongest.lag} later)" if strongest.lag else ""
            lines.append(
                f"  {FAILURE_MEANINGS[strongest.name]}{lag}{where} (p-value {self.p_value:.2g}, alpha {self.alpha:g})"
            )
            if math.isfinite(self.spread) and strongest.name in ("law", "scale"):
                lines.append(f"  their spread is {self.spread:.3g} times the declared one")
        else:
            lines.append(
                f"  smallest p-value of {len(self.tests)} tests together: {self.p_value:.2g} (alpha {self.alpha:g})"
            )
            lines.append(f"  a Laplace scale off by {100.0 * self.detectable:.3g} % would have been detected")
        if self.verdict is Verdict.INCONCLUSIVE:
            needed = math.ceil(1.01 * self.residuals * (self.detectable / NOTICED) ** 2)  # 1 % more, for rounding
            lines.append(
                f"  too few residuals to detect a scale off by {100.0 * NOTICED:g} %: pass residuals={needed} or more"
            )
        lines.append(f"  {self.residuals} residuals on {self.data_sets} data set(s)")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Vector:
    """An answer as finite numbers in a fixed order, with its keys if it has any."""

    numbers: Floats
    keys: tuple[Any, ...] = ()


def check_noise(
    mechanism: Any,
    query: Callable[[Any], Any],
    noise: Any,
    neighbours: Neighbours,
    *,
    alpha: float = 1e-6,
    residuals: int = RESIDUALS,
    seed: int = 0,
) -> NoiseCheck:
    """Test whether outputs minus the query's answers follow the declared law, and whether they are independent.

    Residuals are drawn on up to eight data sets of the pool: the first pair, and others of all sizes. The tests run on all
    together and on each data set alone. The verdict is INCONCLUSIVE if there are too few residuals for the tests to reject a
    scale that is off by 10 %. :mod:`dpaudit.diagnosis.residuals` describes the tests, and what they cannot detect.

    Parameters
    ----------
    mechanism, neighbours, alpha, seed
        As for :func:`dpaudit.audit`.
    query : callable
        The deterministic query.
    noise
        The declared law of the noise, as for :func:`dpaudit.diagnose`.
    residuals : int
        Approximate number of residuals, one for each number of each release.

    Examples
    --------
    >>> import dpaudit
    >>> from dpaudit import exact, neighbours
    >>> close = neighbours.fixed([([1], [2]), ([3], [4])])
    >>> noisy_sum = dpaudit.batched(lambda data, size, rng: sum(data) + rng.laplace(scale=0.9, size=size))
    >>> check_noise(noisy_sum, sum, exact.Laplace(0.0, 1.0), close).verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    check_open_unit(alpha=alpha)
    check_count(residuals=residuals, minimum=2)
    check_count(minimum=0, seed=seed)
    sampler = Sampler(as_mechanism(mechanism))
    rng = np.random.Generator(np.random.PCG64(seed_child(seed, SeedKey.DIAGNOSIS)))
    answers = _answers(query, neighbours, seed)
    width = max(answer.numbers.size for _, answer in answers)
    values: dict[str, Floats] = {}
    uniform: dict[str, tuple[Floats, Floats]] = {}
    for number, (data, answer) in enumerate(answers, start=1):
        text = source(data)
        each = max(2, residuals // (len(answers) * answer.numbers.size))
        matched = _matched(_draw(sampler, data, each, seed_child(seed, SeedKey.DIAGNOSIS, number)), answer)
        if isinstance(matched, str):
            shown = shorten(answer.numbers.tolist())
            return NoiseCheck(
                noise=_named(noise),
                verdict=Verdict.VIOLATION,
                alpha=alpha,
                residuals=sum(one.size for one in values.values()),
                data_sets=number,
                width=width,
                p_value=0.0,
                tests=(),
                spread=math.nan,
                mismatch=f"on data = {text} the output {matched} is not the query's answer {shown} plus noise",
            )
        values[text] = matched - answer.numbers
        uniform[text] = tails(noise, values[text], np.abs(matched) + np.abs(answer.numbers), rng)
    tests = [test for text, (u, rest) in uniform.items() for test in fit_tests(u, rest, rng, data=text)]
    for width in sorted({u.shape[1] for u, _ in uniform.values()} if len(uniform) > 1 else ()):
        alike = [pair for pair in uniform.values() if pair[0].shape[1] == width]
        tests += fit_tests(np.concatenate([u for u, _ in alike]), np.concatenate([rest for _, rest in alike]), rng)
    strongest = min(tests, key=lambda test: test.p_value)
    p_value = min(1.0, len(tests) * strongest.p_value)
    detectable = detectable_scale(max(test.residuals for test in tests), alpha / len(tests))
    missed = Verdict.INCONCLUSIVE if detectable > NOTICED else Verdict.NO_VIOLATION_FOUND
    pooled = np.concatenate([one.ravel() for one in values.values()])
    return NoiseCheck(
        noise=_named(noise),
        verdict=Verdict.VIOLATION if p_value <= alpha else missed,
        alpha=alpha,
        residuals=pooled.size,
        data_sets=len(values),
        width=width,
        p_value=p_value,
        tests=tuple(tests),
        spread=_spread(noise, values[strongest.data].ravel() if strongest.data else pooled, rng),
        detectable=detectable,
    )


def _answers(query: Callable[[Any], Any], neighbours: Neighbours, seed: int) -> list[tuple[Any, Vector]]:
    """Return distinct data sets of the pool on which the query's answer is finite numbers, with these answers."""
    found: dict[Hashable, tuple[Any, Vector]] = {}
    tried: set[Hashable] = set()
    for data in _by_sizes(neighbours.pool(POOL, seed=seed)):
        if len(found) == DATA_SETS:
            break
        if fingerprint(data) in tried:
            continue
        tried.add(fingerprint(data))
        try:
            answer = vector_of(query(copy.deepcopy(data)))
        except Exception:  # the audit end to end finds out if the mechanism raises too
            continue
        if answer is not None and answer.numbers.size:
            found[fingerprint(data)] = (data, answer)
    if not found:
        raise InvalidArgument(
            f"query={_named(query)} gave finite numbers on none of the data sets tried, so there is nothing to add noise to."
        )
    return list(found.values())


def _by_sizes(pairs: Sequence[Pair]) -> Iterator[Any]:
    """Yield the data sets of the first pair, then one of each size in turn, because a pool begins with the smallest ones.

    If there are many sizes, those spaced evenly between the smallest and the largest come first.
    """
    yield from pairs[0]
    alike: dict[int, list[Any]] = {}
    for data in itertools.chain.from_iterable(pairs):
        alike.setdefault(len(data) if hasattr(data, "__len__") else 0, []).append(data)
    sizes = sorted(alike)
    even = {sizes[int(place)] for place in np.linspace(0, len(sizes) - 1, DATA_SETS - 2).round()}
    order = sorted(sizes, key=lambda size: size not in even)
    for turn in range(max(map(len, alike.values()))):
        for size in order:
            yield from alike[size][turn : turn + 1]


def _draw(sampler: Sampler, data: Any, size: int, seed: np.random.SeedSequence) -> Any:
    data = copy.deepcopy(data)
    try:
        return sampler.draw(data, size, seed)
    except BatchRaised:
        return replace(sampler, one_by_one=True).draw(data, size, seed)


def _matched(outputs: Any, answer: Vector) -> Floats | str:
    """Return the outputs as rows of numbers in the shape of the answer, or the text of the first output of another shape."""
    width = answer.numbers.size
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "iuf" and not answer.keys:
        flat = outputs.reshape(len(outputs), -1).astype(np.float64)
        if flat.shape[1] == width and np.isfinite(flat).all():
            return flat
    rows = np.empty((len(outputs), width))
    for row, output in enumerate(outputs):
        found = vector_of(output)
        if found is None or found.keys != answer.keys or found.numbers.size != width:
            return str(output) if isinstance(output, Raised) else shorten(output)
        rows[row] = found.numbers
    return rows


def vector_of(value: Any) -> Vector | None:
    """Return a number, or a list, array, dict, Series or DataFrame of numbers, as a vector; None for anything else."""
    keys: tuple[Any, ...] = ()
    if is_frame(value) or is_series(value):
        keys, value = tuple(tuple(axis) for axis in value.axes), value.to_numpy()
    elif isinstance(value, Mapping):
        keys = tuple(sorted(value, key=repr))
        value = [value[key] for key in keys]
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":  # numpy would parse text as numbers
            return None
        numbers = array.astype(np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        return None
    return Vector(numbers, keys) if np.isfinite(numbers).all() else None


def _spread(noise: Any, residuals: Floats, rng: np.random.Generator) -> float:
    """Return the interquartile range of the residuals over that of the declared noise."""
    if hasattr(noise, "form"):
        drawn = noise.sample(residuals.size, rng)
    elif hasattr(noise, "rvs"):
        drawn = noise.rvs(size=residuals.size, random_state=rng)
    elif callable(noise):
        drawn = noise(residuals.size, rng)
    else:
        return math.nan
    seen, declared = (np.subtract(*np.quantile(values, [0.75, 0.25])) for values in (residuals, np.asarray(drawn)))
    return float(seen / declared) if declared > 0.0 else math.nan


def _named(noise: Any) -> str:
    return getattr(noise, "__qualname__", None) or shorten(noise)
