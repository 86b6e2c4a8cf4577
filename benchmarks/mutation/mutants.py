"""All mutants of a reference mechanism, without those that cannot run, change nothing, or are the same as another."""

from __future__ import annotations

import functools
import hashlib
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.mutation import behaviours as b
from benchmarks.mutation.branches import epsilon
from benchmarks.mutation.rewriting import rewritten, truncated
from benchmarks.mutation.subjects import Subject
from dpaudit import exact
from dpaudit._util.values import fingerprint
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair

POOL_SEED = 1  # not that of the audit: the pool of the judge is not the auditor's
REWRITTEN = 8  # at most so many mutants by rewriting, spread over the code
COMPARED = 5  # pairs on which two mutants must differ to be two

FACTORS = (0.5, 0.8, 0.9, 1.1, 2.0)
LEAKS = (0.1, 0.01, 0.001)
CLAMPS = (2.0, 6.0)
_FAR = 1000.0  # beyond all noise that is ever drawn; clamping at infinity is not known to laws on a grid


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong, or harmlessly different, version of a mechanism. ``refused``: the engine is to refuse its randomness."""

    subject: str
    name: str
    mechanism: Any
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Litter:
    """The mutants of one subject, and how many were left out: they did not run, or their law was known already."""

    subject: Subject
    claim: Claim
    mutants: tuple[Mutant, ...]
    stillborn: int
    equivalent: int


def claim_of(subject: Subject) -> Claim:
    """The claim of the reference, with an epsilon of exactly 1."""
    claim = subject.scaled(1.0).claim
    assert abs(claim.parameter - 1.0) < 1e-9
    made: Claim = type(claim)(1.0, *([claim.delta_claimed] if hasattr(claim, "delta_claimed") else []), claim.relation)
    return made


@functools.cache
def pool_of(subject: Subject) -> tuple[Pair, ...]:
    """The pairs on which mutants are judged: all corners, pairs of a seeded run, and the corners at other levels."""
    where = subject.neighbours()
    pairs = where.pool(subject.pool, seed=POOL_SEED)
    for pair in where.corners() if subject.levels else ():
        for level in subject.levels:
            moved = Pair(*(side + level - max(map(max, pair)) for side in pair))
            pairs += [moved] if where.satisfies(*moved) else []
    return tuple({fingerprint(tuple(pair)): pair for pair in pairs}.values())


def litter(subject: Subject) -> Litter:
    """Make the mutants of one reference mechanism."""
    pairs = pool_of(subject)
    seen = {_fingerprint(subject.scaled(1.0), pairs)}
    kept: list[Mutant] = []
    stillborn = equivalent = 0

    def offer(name: str, make: Callable[[], Any], *, refused: bool = False, compared: int = COMPARED) -> bool:
        nonlocal stillborn, equivalent
        try:
            mechanism = b.published(b.remembered(make()), subject.shown)
            mark = _fingerprint(mechanism, pairs, compared)
        except Exception:  # a mutant that cannot run, or has no law, is none
            stillborn += 1
            return False
        if mark in seen and not refused:
            equivalent += 1
            return False
        seen.add(mark)
        again = sum(
            one.name == name or one.name.startswith(f"{name}, place ") for one in kept
        )  # code that occurs twice
        kept.append(Mutant(subject.name, f"{name}, place {again + 1}" if again else name, mechanism, refused))
        return True

    for name, make in _by_behaviour(subject, pairs):
        offer(name, make)
    offer("same seed in every call", lambda: b.same_seed(subject.scaled(1.0)), refused=True)
    for name, make in subject.others:
        offer(name, make)
    variants = [(text, partial(build, made)) for target, build in subject.targets for text, made in rewritten(target)]
    # Taken from all over the code: every k-th first, then those between.
    stride = max(1, len(variants) // REWRITTEN)
    taken = 0
    for start in range(stride):
        for text, make in variants[start::stride]:
            if taken < REWRITTEN:
                taken += offer(f"code, {text}", make)
    # Apart from the others, and after them: integer truncation is asked for by name, wherever it changes something. What
    # is cut may be 0 for some data only, where scales have no law, so it is looked at on all pairs.
    for target, build in subject.targets:
        for text, made in truncated(target):
            offer(f"code, {text}", partial(build, made), compared=len(pairs))
    return Litter(subject, claim_of(subject), tuple(kept), stillborn, equivalent)


def _by_behaviour(subject: Subject, pairs: tuple[Pair, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All general mutations; those that do not fit the mechanism fail to run, and are dropped by who asks."""
    whole, unit = b.remembered(subject.scaled(1.0)), subject.unit
    product = isinstance(whole.law(pairs[0].data), exact.Product)
    real = unit is not None and np.asarray(whole.sample(pairs[0].data, 1, np.random.default_rng(0))).dtype.kind == "f"
    for factor in FACTORS:
        yield f"noise x {factor:g}", partial(subject.scaled, factor)
    yield "released twice", partial(b.twice, whole)
    for rate in (0.5, 0.1):
        yield (
            f"noise x 0.25 once in {1 / rate:g}",
            partial(b.sometimes, whole, subject.scaled(0.25), rate, product=product),
        )
    publicly = [("output rounded", b.rounded(0.5))] if real else []
    if subject.public is not None:
        publicly.append(("output clamped to a public range", b.clamped_to(*subject.public)))
    raw = subject.raw
    for name, change in publicly:
        yield name, partial(b.changed, whole, raw or (lambda _data: None), change, "all" if product else None)
    if raw is not None:
        yield from _by_truth(subject, whole, raw, pairs, product, real)
    if subject.rows:
        yield "first row twice", partial(b.on_data, whole, lambda data: [*data[:1], *data])
        yield "first row left out", partial(b.on_data, whole, lambda data: list(data)[1:] or list(data))
        yield "all rows twice", partial(b.on_data, whole, lambda data: [*data, *data])
        yield (
            "noise over the number of rows",
            partial(b.chosen_by_data, lambda data: subject.scaled(1.0 / max(1, len(data)))),
        )
    elif raw is not None:
        for text, by in (("doubled", 2), ("x 1.1", 1.1), ("halved", 0.5)):
            yield f"answers {text}", partial(b.on_data, whole, partial(operator.mul, by))


def _by_truth(
    subject: Subject, whole: Any, raw: Callable[[Any], Any], pairs: tuple[Pair, ...], product: bool, real: bool
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Mutations that know what the output is without noise."""
    unit = subject.unit
    special = raw(pairs[0].data)
    special = special[0] if product else special

    def changed(change: b.Change, where: b.Where = "all") -> Callable[[], Any]:
        return partial(b.changed, whole, raw, change, where if product else None)

    def is_special(truth: Any) -> bool:
        return bool(truth == special)

    for rate in LEAKS:
        yield f"raw once in {1 / rate:g}", changed(b.leak(rate), "first")
    yield f"raw where the truth is {special}", changed(b.bare_where(is_special), "first")
    if product:
        yield "last coordinate raw", changed(b.bare(), "last")
        if unit is not None:
            yield "one noise for all coordinates", partial(b.same_noise, whole, raw)
    if real:
        yield f"NaN where the truth is {special}", changed(b.bare_where(is_special, lambda _truth: math.nan), "first")
    if unit is not None:
        for width in CLAMPS:
            yield f"noise clamped at {width:g} scales", changed(_near(width * unit))
        yield "negative noise set to 0", changed(b.clamped(lambda at: at.truth, lambda _at: _FAR), "first")
        yield (
            "noise grows with the answer",
            partial(
                b.chosen_by_data,
                lambda data: subject.scaled(1.0 + 0.2 * min(abs(float(np.ravel(raw(data))[0])), 10.0)),
            ),
        )
    if subject.symmetric:
        yield "noise one-sided", changed(b.one_sided(), "first")
        yield "noise cut to an integer", changed(b.noise_truncated())
    if subject.rows and unit is not None and not product:
        ends = b.clamped(lambda at: float(min(at.data, default=0.0)), lambda at: float(max(at.data, default=0.0)))
        yield "output clamped to the data's range", changed(ends)


def _near(width: float) -> b.Change:
    return b.clamped(lambda at: at.truth - width, lambda at: at.truth + width)


def _fingerprint(mechanism: Any, pairs: tuple[Pair, ...], compared: int = COMPARED) -> str:
    """Of its laws on a few pairs. Also runs its sampler once on each, so that what cannot run is found out here.

    Laws on the other pairs up to ``compared`` have to exist.
    """
    epsilon(*map(mechanism.law, pairs[0]))  # laws that cannot be compared show here
    digest = hashlib.sha256()
    rng = np.random.default_rng(0)
    for pair in pairs[:COMPARED]:
        for data in pair:
            digest.update(repr(described(mechanism.law(data))).encode())
            mechanism.sample(data, 2, rng)
    for pair in pairs[COMPARED:compared]:
        for data in pair:
            mechanism.law(data)
    return digest.hexdigest()


def described(law: Any) -> Any:
    """A law as plain values, numbers to nine digits: equal for laws that no audit could distinguish."""
    match law:
        case exact.Discrete():
            return [*zip(map(str, law.outcomes), described(law.log_probabilities), strict=True)]
        case bool() | int() | float() | np.number():
            return f"{float(law):.9g}"
        case list() | tuple() | np.ndarray():
            return [described(item) for item in law]
    if is_dataclass(law):
        return type(law).__name__, *(described(getattr(law, field.name)) for field in fields(law))
    return repr(law)
