"""What is true of a mutant: its exact epsilon on a pool of pairs, and the samples that the best event there needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.mutation.best_event import BestEvent, best_event, cells
from benchmarks.mutation.mutants import POOL_SEED, Mutant, described
from benchmarks.mutation.subjects import Subject
from dpaudit import exact
from dpaudit.claims import Claim
from dpaudit.errors import LawError
from dpaudit.exact.verify import ROUNDING_FLOOR
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
    that needs the fewest samples against the claim, over all events and pairs of the pool, and ``pair`` where.
    """

    epsilon: float
    harmful: bool
    event: BestEvent | None
    pair: Pair

    @property
    def samples(self) -> float:
        return math.inf if self.event is None else self.event.samples


def judge(mutant: Mutant, claim: Claim, subject: Subject, pool: tuple[Pair, ...]) -> Judgement:
    """Compare the laws of a mutant on every pair of the pool, and on edits of the best one."""
    level, delta = float(claim.parameter), float(getattr(claim, "claimed_delta", 0.0))
    known: dict[str, tuple[float, tuple[float, float]]] = {}
    seen: list[tuple[tuple[float, float], float, Pair]] = []

    def look(pair: Pair) -> None:
        laws = mutant.mechanism.law(pair.data), mutant.mechanism.law(pair.neighbour)
        mark = repr(described(laws))
        if mark not in known:
            # Where the claim holds, the pair nearest to breaking it is where to climb from.
            rough = (_rough(*laws, level, delta), 0.0)
            rough = rough if rough[0] < math.inf else (math.inf, _rough(*laws, NEARLY * level, delta))
            known[mark] = epsilon_at(*laws, delta, precise=False), rough
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
            except Exception:  # a mutant may fail on data that its mechanism would take
                continue
        vain = vain + 1 if min(seen, key=lambda one: one[:2])[:2] == best[:2] else 0
        if vain == PATIENCE:
            break
    pair = min(seen, key=lambda one: one[:2])[2]
    worst = min(seen, key=lambda one: one[1])[2]
    epsilon = epsilon_at(mutant.mechanism.law(worst.data), mutant.mechanism.law(worst.neighbour), delta)
    event = best_event(mutant.mechanism.law(pair.data), mutant.mechanism.law(pair.neighbour), level, delta)
    return Judgement(epsilon, epsilon > level * (1.0 + HARMLESS), event, pair)


def _rough(P: Any, Q: Any, level: float, delta: float) -> float:
    event = best_event(P, Q, level, delta, precise=False)
    return math.inf if event is None else event.samples


def epsilon_at(P: Any, Q: Any, delta: float, *, precise: bool = True) -> float:
    """The exact epsilon of a pair; with a delta, the smallest epsilon at which the pair keeps it.

    Without ``precise``, or where a product of densities leaves no other way, that delta is summed over cells, which are as
    good as they are narrow.
    """
    if delta == 0.0:
        return exact.epsilon(P, Q)
    divergence = _delta(P, Q, precise)
    if divergence(0.0) <= delta:
        return 0.0
    allowed = delta * (1.0 + TOLERANCE) + ROUNDING_FLOOR
    low, high = 0.0, 1.0
    while divergence(high) > allowed:
        low, high = high, 2.0 * high
        if high > 64.0:
            return math.inf
    while high - low > 1e-7:
        middle = (low + high) / 2.0
        low, high = (middle, high) if divergence(middle) > allowed else (low, middle)
    return high


def _delta(P: Any, Q: Any, precise: bool) -> Callable[[float], float]:
    try:
        if precise:
            exact.delta(P, Q, 1.0)
            return lambda e: exact.delta(P, Q, e)
    except LawError:
        pass
    p, q = cells(P, Q)
    return lambda e: float(max(np.maximum(p - np.exp(e) * q, 0.0).sum(), np.maximum(q - np.exp(e) * p, 0.0).sum()))
