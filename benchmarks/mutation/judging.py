"""The truth about a mutant: its exact epsilon on a pool of pairs, and the samples that the best event there needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize

from benchmarks.mutation import branches
from benchmarks.mutation.behaviours import FAILS, certain
from benchmarks.mutation.best_event import Array, BestEvent, best_event, best_union, cells
from benchmarks.mutation.extracted import disagreement, epsilon_from_code
from benchmarks.mutation.mutants import POOL_SEED, Mutant, described
from benchmarks.mutation.subjects import Subject
from dpaudit import exact
from dpaudit.claims import Claim
from dpaudit.errors import LawError
from dpaudit.exact.verification import ROUNDING_FLOOR
from dpaudit.neighbours import Pair

TOLERANCE = 1e-9  # relative, as in dpaudit.verify
HARMLESS = 1e-6  # an epsilon above the claim by less than this share of it keeps the claim
EDITS = 10  # pairs tried in a round of hill climbing
PATIENCE = 2  # rounds in a row that do not help
NEARLY = 0.7


@dataclass(frozen=True, slots=True)
class Judgement:
    """The truth about a mutant.

    ``epsilon`` is the largest over the pool (for claims with a delta: the epsilon kept at that delta), ``event`` the one
    that needs the fewest samples against the claim, over all events and pairs of the pool, and ``pair`` where. ``worst`` is
    the pair of ``epsilon``. ``from_code`` is True if that epsilon was extracted from the mutant's code
    (:func:`with_code`), and ``contradicted`` the declared law's epsilon if the code has another one.
    """

    epsilon: float
    harmful: bool
    event: BestEvent | None
    pair: Pair
    worst: Pair
    from_code: bool = False
    contradicted: float | None = None

    @property
    def samples(self) -> float:
        return math.inf if self.event is None else self.event.samples


def judge(mutant: Mutant, claim: Claim, subject: Subject, pool: tuple[Pair, ...]) -> Judgement:
    """Compare the laws of a mutant on every pair of the pool, and on edits of the best one."""
    level, delta = float(claim.parameter), float(getattr(claim, "delta_claimed", 0.0))
    known: dict[str, tuple[float, tuple[float, float]]] = {}
    seen: list[tuple[tuple[float, float], float, Pair]] = []

    def laws_on(pair: Pair) -> tuple[Any, Any]:
        first, second = mutant.mechanism.law(pair.data), mutant.mechanism.law(pair.neighbour)
        if (first is FAILS) != (second is FAILS):  # one output distinguishes them, whatever the other law is
            return FAILS, certain("does not")
        return first, second

    def look(pair: Pair) -> None:
        laws = laws_on(pair)
        mark = repr(described(laws))
        if mark not in known:
            masses = cells(*laws)
            # Where the claim holds, the pair nearest to breaking it is where to climb from.
            rough = (_rough(masses, level, delta), 0.0)
            rough = rough if rough[0] < math.inf else (math.inf, _rough(masses, NEARLY * level, delta))
            known[mark] = branches.epsilon(*laws) if delta == 0.0 else _kept(_excess(*masses), delta), rough
        epsilon, rough = known[mark]
        seen.append((rough, -epsilon, pair))

    for pair in pool:
        look(pair)
    rng = np.random.default_rng(POOL_SEED)
    vain = 0
    neighbours = subject.neighbours()
    for _ in range(subject.climbs):
        best = min(seen, key=lambda one: one[:2])
        for pair in neighbours.edits(best[2], rng, EDITS):
            try:
                look(pair)
            except Exception:  # the exact law of a mutant may not be known there
                continue
        vain = vain + 1 if min(seen, key=lambda one: one[:2])[:2] == best[:2] else 0
        if vain == PATIENCE:
            break
    pair = min(seen, key=lambda one: one[:2])[2]
    worst = min(seen, key=lambda one: one[1])[2]
    epsilon = epsilon_at(*laws_on(worst), delta)
    event = best_event(*laws_on(pair), level, delta)
    return Judgement(epsilon, epsilon > level * (1.0 + HARMLESS), event, pair, worst)


def with_code(truth: Judgement, mutant: Mutant, claim: Claim) -> Judgement:
    """Take the epsilon from the mutant's code in place of its declared law, where the code can be followed."""
    found = epsilon_from_code(mutant.mechanism, truth.worst, float(getattr(claim, "delta_claimed", 0.0)))
    if found is None:
        return truth
    return replace(
        truth,
        epsilon=found,
        harmful=found > float(claim.parameter) * (1.0 + HARMLESS),
        from_code=True,
        contradicted=truth.epsilon if disagreement(truth.epsilon, found) else None,
    )


def _rough(masses: tuple[Array, Array], level: float, delta: float) -> float:
    event = best_union(*masses, level, delta, precise=False)
    return math.inf if event is None else event.samples


def epsilon_at(P: Any, Q: Any, delta: float) -> float:
    """The exact epsilon of a pair; with a delta, the smallest epsilon at which the pair keeps it.

    Where a product of densities leaves no other way, that delta is summed over cells, which are as good as they are narrow.
    """
    if delta == 0.0:
        return branches.epsilon(P, Q)
    try:
        exact.delta(P, Q, 1.0)
    except LawError:
        return _kept(_excess(*cells(P, Q)), delta)
    return _kept(lambda epsilon: exact.delta(P, Q, epsilon), delta)


def _excess(p: Array, q: Array) -> Callable[[float], float]:
    """The delta of every epsilon, summed over cells."""
    return lambda e: float(max(np.maximum(p - np.exp(e) * q, 0.0).sum(), np.maximum(q - np.exp(e) * p, 0.0).sum()))


def _kept(divergence: Callable[[float], float], delta: float) -> float:
    """The smallest epsilon at which the divergence, which falls with it, is no larger than ``delta``."""
    allowed = delta * (1.0 + TOLERANCE) + ROUNDING_FLOOR
    if divergence(0.0) <= allowed:
        return 0.0
    high = 1.0
    while divergence(high) > allowed:
        high *= 2.0
        if high > 64.0:
            return math.inf
    found: float = optimize.brentq(lambda e: divergence(e) - allowed, 0.0, high, xtol=1e-9)
    return found
