r"""Epsilon and delta between two extracted laws, as intervals that hold for certain (up to the stated rounding).

An extracted law is a sum over leaves of ``weight * product of coordinate laws``. Leaves of different skeletons do not
overlap, so epsilon is the largest over the skeletons, and delta the sum. Inside one skeleton,

- leaves that agree in all coordinates but one are added up in that one, which leaves a single product in most cases; then
  epsilon is the sum over the coordinates plus the log-ratio of the weights, and delta is that of the product;
- otherwise, with the leaves ``w_i P_i`` and ``v_i Q_i`` matched in any way,
  ``epsilon(sum w_i P_i, sum v_i Q_i) <= max_i log(w_i / v_i) + epsilon(P_i, Q_i)`` is an upper end (the max divergence is
  jointly quasi-convex), and the marginal law of each coordinate gives a lower end (forgetting the others is
  post-processing).

Laws of single numbers are compared in :mod:`~dpaudit.symbolic.single`, with ends that are rounded outwards.

Errors of the weights: if all are within a factor ``exp(r)`` of the truth, the log-ratio of two densities moves by at most
``r_P + r_Q`` at every output, so epsilon moves by no more, and ``exp(-r_P) delta(e + r) <= true delta <= exp(r_P) delta(e -
r)`` with ``r = r_P + r_Q``. An unknown part of probability ``s`` of either law adds at most ``s_P`` to delta, takes at most
``exp(e) s_Q`` away from it, and leaves no finite upper end for epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.errors import CannotFollow, LawError
from dpaudit.exact.form import canonical, form_of
from dpaudit.exact.laws.mixture import add
from dpaudit.symbolic import single
from dpaudit.symbolic.draws.rounding import ELEMENTARY, LARGEST_LOG
from dpaudit.symbolic.laws.outputs import OutputCoordinate
from dpaudit.symbolic.running.extraction import Extraction
from dpaudit.symbolic.values import forms

Interval = tuple[float, float]

LEAST_MASS = 1e-12
"""The least probability by which something must exceed a claim without delta to be a violation.

Numbers in the code are rounded: a cumulative sum of probabilities may end at 1 - 2^-52, and so leave an outcome of
probability 2e-16 that was not intended. Sums of thousands of such errors are below this."""


_LEAST_DELTA = 1e-10
"""A delta that is clear of rounding: what shows an epsilon for densities whose ratios are not searched."""


_LARGEST_EXPONENT = 700.0
"""Beyond it exp overflows; times a mass it exceeds every probability, but for masses below 1e-304."""


_FEW_BLOCKS = 8
"""Number of structures of an output up to which the lower end is searched in each with densities that may vanish."""


@dataclass(frozen=True, slots=True)
class Term:
    """A weight and independent laws, one for each number of the output."""

    weight: float
    laws: tuple[OutputCoordinate, ...]


Block = tuple[list[Term], list[Term]]
"""The terms of both laws with one structure of the output."""


def epsilon(P: Extraction, Q: Extraction) -> Interval:
    """Lower and upper end of the larger of ``epsilon(P, Q)`` and ``epsilon(Q, P)``."""
    forward, backward = _one_way(P, Q), _one_way(Q, P)
    return max(forward[0], backward[0]), max(forward[1], backward[1])


def log_ratio_range(P: Extraction, Q: Extraction) -> Interval:
    """Lower and upper end of the range of the log-ratio, the sum of both epsilons."""
    forward, backward = _one_way(P, Q), _one_way(Q, P)
    return forward[0] + backward[0], forward[1] + backward[1]


def epsilon_above_floor(P: Extraction, Q: Extraction) -> float:
    """Largest epsilon, in steps of about a ten-thousandth, at which delta is certain to be above ``LEAST_MASS``."""
    return _shown_by_delta(lambda level: delta(P, Q, level)[0] - LEAST_MASS)


def delta(P: Extraction, Q: Extraction, level: float) -> Interval:
    """Lower and upper end of the larger of both deltas at epsilon ``level``."""
    ends = [_delta(first, second, level) for first, second in ((P, Q), (Q, P))]
    return max(low for low, _ in ends), min(1.0, max(high for _, high in ends))


def _one_way(P: Extraction, Q: Extraction) -> Interval:
    low = high = 0.0
    error = P.error + Q.error
    blocks = _skeletons(P, Q)
    for terms, others in blocks:
        if not terms:
            continue
        if not others:
            low, high = (math.inf if Q.rest == 0.0 else low), math.inf
            continue
        # The structure of the output is an event itself.
        whole = math.log(_weight(terms) / _weight(others))
        inner_low, inner_high = _block_epsilon(terms, others, thorough=len(blocks) <= _FEW_BLOCKS)
        low, high = max(low, whole, inner_low), max(high, whole, inner_high)
    slack = error + ELEMENTARY * (4.0 + (low if math.isfinite(low) else 0.0))
    if P.rest > 0.0:
        high = math.inf
    if Q.rest > 0.0:
        # The unknown part of Q may lie where P is large: only a delta that survives it shows anything.
        return _epsilon_with_rest(P, Q), math.inf
    return max(0.0, low - slack), high + slack


def _epsilon_with_rest(P: Extraction, Q: Extraction) -> float:
    """Largest epsilon at which delta stays positive whatever the unknown part of ``Q`` is."""
    blocks = _skeletons(P, Q)
    return _shown_by_delta(lambda level: _delta(P, Q, level, blocks)[0])


def _shown_by_delta(excess: Callable[[float], float]) -> float:
    """Largest epsilon at which a lower end of delta is positive, by bisection; infinite if it is at 700."""
    try:
        if excess(0.0) <= 0.0:
            return 0.0
        if excess(700.0) > 0.0:
            return math.inf
        low, high = 0.0, 1.0
        while high < 64.0 and excess(high) > 0.0:
            low, high = high, 2.0 * high
        for _ in range(14):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    except LawError:
        return 0.0
    return low


def _delta(P: Extraction, Q: Extraction, level: float, blocks: list[Block] | None = None) -> Interval:
    error = P.error + Q.error
    low = high = 0.0
    for terms, others in blocks if blocks is not None else _skeletons(P, Q):
        if not terms:
            continue
        if not others:
            mass = math.fsum(term.weight for term in terms)
            low, high = low + mass, high + mass
            continue
        inner_low = _block_delta(terms, others, level + error)[0]
        inner_high = _block_delta(terms, others, level - error)[1]
        low, high = low + inner_low, high + inner_high
    low = low * math.exp(-P.error) * (1.0 - ELEMENTARY) - _raised(Q.rest, level)
    return max(0.0, low), min(1.0, high * math.exp(P.error) * (1.0 + ELEMENTARY) + P.rest)


def _skeletons(P: Extraction, Q: Extraction) -> list[Block]:
    """The terms of both laws for every skeleton, merged; skeletons of ``P`` first."""
    blocks: dict[Hashable, tuple[list[Term], list[Term]]] = {}
    for side, law in enumerate((P, Q)):
        for leaf in law.leaves:
            blocks.setdefault(leaf.skeleton, ([], []))[side].append(Term(leaf.weight, leaf.coordinates))
    _check_offsets(list(blocks))
    return [(_collected(terms), _collected(others)) for terms, others in blocks.values()]


def _collected(terms: list[Term]) -> list[Term]:
    """Add up equal outcomes if all outputs are certain, which a table compares; otherwise whatever can be."""
    return _added_points(terms) if all(law.value is not None for term in terms for law in term.laws) else _merged(terms)


def _check_offsets(skeletons: list[Any]) -> None:
    """Refuse grids whose offsets differ by so little that it may be rounding, and sums of draws that cannot be compared."""
    plain: dict[Hashable, list[Any]] = defaultdict(list)
    for skeleton in skeletons:
        plain[skeleton[:2]].append(skeleton[2])
    for group in plain.values():
        for first, second in itertools.combinations(group, 2):
            for one, other in zip(first, second, strict=True):
                if _is_offset(one) and _is_offset(other) and 0.0 < abs(one[1] - other[1]) < 1e-6:
                    raise CannotFollow("Two grids of outputs have offsets that differ by rounding only")
                if one != other and not ((one is None or _is_offset(one)) and (other is None or _is_offset(other))):
                    raise CannotFollow("Releases of different linear combinations of draws are not compared")


def _is_offset(tag: Any) -> bool:
    return isinstance(tag, tuple) and len(tag) == 2 and tag[0] == "offset"


def _merged(terms: list[Term]) -> list[Term]:
    """Add up certain outputs first, then terms that differ in one coordinate only, until none do."""
    found = _added_points(terms)
    width = len(found[0].laws) if found else 0
    changed = True
    while changed and len(found) > 1 and width > 0:
        changed = False
        for place in range(width):
            groups: dict[Hashable, list[Term]] = defaultdict(list)
            for term in found:
                groups[tuple(_key(law) for k, law in enumerate(term.laws) if k != place)].append(term)
            if len(groups) < len(found):
                found = [_mixed(group, place) for group in groups.values()]
                changed = True
    return found


def _added_points(terms: list[Term]) -> list[Term]:
    points: dict[Hashable, list[Term]] = defaultdict(list)
    others = []
    for term in terms:
        if all(law.value is not None for law in term.laws):
            points[tuple(canonical(law.value) for law in term.laws)].append(term)
        else:
            others.append(term)
    added = [Term(math.fsum(term.weight for term in group), group[0].laws) for group in points.values()]
    return added + others


def _key(coordinate: OutputCoordinate) -> Hashable:
    """Equal for coordinates with equal laws; laws without a name only equal themselves."""
    if coordinate.value is not None:
        return canonical(coordinate.value)
    law = coordinate.law
    if coordinate.key is not None:
        return coordinate.key
    if isinstance(law, forms.PartLaw):
        form = law.inner
        if form.lattice is None and form.continuous is None:
            return tuple(sorted(form.atoms.items()))
        return id(law)
    return law  # type: ignore[no-any-return]


def _mixed(group: list[Term], place: int) -> Term:
    if len(group) == 1:
        return group[0]
    weight = math.fsum(term.weight for term in group)
    same: dict[Hashable, list[Term]] = defaultdict(list)
    for term in group:
        same[_key(term.laws[place])].append(term)
    if len(same) == 1:
        return Term(weight, group[0].laws)
    group = [Term(math.fsum(term.weight for term in equal), equal[0].laws) for equal in same.values()]
    parts = [form_of(term.laws[place].law).scaled(math.log(term.weight / weight)) for term in group]
    law = OutputCoordinate(
        forms.PartLaw(add(parts)),
        certified=all(term.laws[place].certified for term in group),
        error=max(term.laws[place].error for term in group) + ELEMENTARY * LARGEST_LOG,
    )
    return Term(weight, (*group[0].laws[:place], law, *group[0].laws[place + 1 :]))


def _weight(terms: list[Term]) -> float:
    return math.fsum(term.weight for term in terms)


def _block_epsilon(terms: list[Term], others: list[Term], *, thorough: bool) -> Interval:
    """Epsilon inside one skeleton, one way."""
    if not _certified(terms, others):
        return (_uncertified(terms, others) if thorough else 0.0), math.inf
    if not terms[0].laws:
        ratio = math.log(terms[0].weight / others[0].weight)
        return ratio, ratio
    if len(terms) == 1 and len(others) == 1:
        return _if_bounded(lambda: _term_epsilon(terms[0], others[0]))
    if len(terms[0].laws) == 1:
        return _if_bounded(lambda: _term_epsilon(_mixed(terms, 0), _mixed(others, 0)))
    points = _points_epsilon(terms, others)
    if points is not None:
        slack = _law_error(terms) + _law_error(others) + ELEMENTARY * LARGEST_LOG
        return points - slack, points + slack
    low = max(_marginal_epsilon(terms, others, place) for place in range(len(terms[0].laws)))
    return low, max(low, _matched_epsilon(terms, others))


def _uncertified(terms: list[Term], others: list[Term]) -> float:
    """A lower end from delta, for densities that may vanish: integrals are not misled by single points."""
    if len(terms[0].laws) > 1:
        return _shown_by_delta(lambda level: _block_delta(terms, others, level)[0] - _LEAST_DELTA)
    first, second = _mixed(terms, 0), _mixed(others, 0)
    moved = math.log(second.weight / first.weight)
    curve = single.delta_curve(first.laws, second.laws)
    return _shown_by_delta(lambda level: first.weight * curve(level + moved)[0] - _LEAST_DELTA)


def _if_bounded(compute: Callable[[], Interval]) -> Interval:
    """Return an interval, or the widest one if the ratio cannot be bounded, for instance in a tail that is not known."""
    try:
        return compute()
    except LawError:
        return 0.0, math.inf


def _term_epsilon(first: Term, second: Term) -> Interval:
    """Epsilon of two products with weights: the sum over the coordinates and of the log-ratio of the weights."""
    ends = [single.epsilon(a, b) for a, b in zip(first.laws, second.laws, strict=True)]
    whole = math.log(first.weight / second.weight)
    return whole + math.fsum(low for low, _ in ends), whole + math.fsum(high for _, high in ends)


def _law_error(terms: Sequence[Term]) -> float:
    """Largest error of the log-density of a product, weights left out."""
    return max(math.fsum(law.error for law in term.laws) for term in terms)


def _certified(terms: list[Term], others: list[Term]) -> bool:
    return all(law.certified for side in (terms, others) for term in side for law in term.laws)


def _points_epsilon(terms: Sequence[Term], others: Sequence[Term]) -> float | None:
    """Epsilon of laws on finitely many points, if both are."""
    tables = [_table(side) for side in (terms, others)]
    if tables[0] is None or tables[1] is None:
        return None
    worst = -math.inf
    for point, mass in tables[0].items():
        other = tables[1].get(point, 0.0)
        if mass > 0.0:
            worst = max(worst, math.log(mass / other) if other > 0.0 else math.inf)
    return worst


def _table(terms: Sequence[Term], most: int = 1 << 17) -> dict[tuple[Any, ...], float] | None:
    """All outcomes and their probabilities, if there are finitely many."""
    found: dict[tuple[Any, ...], float] = {}
    for term in terms:
        listed = [form_of(law.law) for law in term.laws]
        if any(form.lattice or form.continuous for form in listed):
            return None
        if math.prod(len(form.atoms) for form in listed) + len(found) > most:
            return None
        for row in itertools.product(*(form.atoms.items() for form in listed)):
            point = tuple(canonical(value) for value, _ in row)
            mass = term.weight * math.exp(math.fsum(value for _, value in row))
            found[point] = found.get(point, 0.0) + mass
    return found


def _marginal_epsilon(terms: list[Term], others: list[Term], place: int) -> float:
    try:
        return _term_epsilon(_only(terms, place), _only(others, place))[0]
    except LawError:
        return 0.0


def _only(terms: list[Term], place: int) -> Term:
    return _mixed([Term(term.weight, (term.laws[place],)) for term in terms], 0)


def _matched_epsilon(terms: list[Term], others: list[Term]) -> float:
    """An upper end: each term against the one of the other law that fits it best, none of them used twice."""
    free = list(range(len(others)))
    worst = -math.inf
    for term in terms:
        options = []
        for k in free:
            try:
                options.append((_term_epsilon(term, others[k])[1], k))
            except LawError:
                continue
        if not options or min(options)[0] == math.inf:
            return math.inf
        value, k = min(options)
        free.remove(k)
        worst = max(worst, value)
    return worst


def _raised(mass: float, level: float) -> float:
    """Return a mass times exp(level), infinite where that is too large for a number."""
    if mass == 0.0:
        return 0.0
    return mass * math.exp(level) if level < _LARGEST_EXPONENT else math.inf


def _block_delta(terms: list[Term], others: list[Term], level: float) -> Interval:
    """Delta inside one skeleton, one way, of parts whose mass is below one; ``level`` may be negative."""
    if not terms[0].laws:
        value = max(0.0, terms[0].weight - _raised(others[0].weight, level))
        return value, value
    if (len(terms) == 1 and len(others) == 1) or len(terms[0].laws) == 1:
        first, second = (
            (terms[0], others[0]) if len(terms) == 1 and len(others) == 1 else (_mixed(terms, 0), _mixed(others, 0))
        )
        # w (P - e^(level) v/w Q)+ : the divergence of the laws at a shifted epsilon.
        moved = level + math.log(second.weight / first.weight)
        try:
            low, high = single.delta_curve(first.laws, second.laws)(moved)
        except LawError:  # several coordinates with a density
            return _product_delta(first, second, moved)
        return first.weight * low, first.weight * high
    tables = [_table(side) for side in (terms, others)]
    if tables[0] is not None and tables[1] is not None:
        mine, theirs = _law_error(terms) + ELEMENTARY, _law_error(others) + ELEMENTARY
        ends = [
            math.exp(sign * mine)
            * math.fsum(
                max(0.0, mass - _raised(tables[1].get(point, 0.0), level - sign * (mine + theirs)))
                for point, mass in tables[0].items()
            )
            for sign in (-1.0, 1.0)
        ]
        return ends[0], ends[1]
    low = 0.0
    for place in range(len(terms[0].laws)):
        try:
            low = max(low, _block_delta([_only(terms, place)], [_only(others, place)], level)[0])
        except LawError:
            continue
    return low, max(low, _matched_delta(terms, others, level))


def _product_delta(first: Term, second: Term, level: float) -> Interval:
    """Delta of a product that is not composed exactly: zero where epsilon says so, and at least that of one coordinate."""
    low = 0.0
    for a, b in zip(first.laws, second.laws, strict=True):
        low = max(low, first.weight * single.delta_curve((a,), (b,))(level)[0])
    epsilons = _if_bounded(lambda: _term_epsilon(Term(1.0, first.laws), Term(1.0, second.laws)))
    return low, (low if epsilons[1] <= level else first.weight)


def _matched_delta(terms: list[Term], others: list[Term], level: float) -> float:
    """An upper end: the hockey-stick divergence of a sum is at most the sum over any matching of the parts."""
    free = list(range(len(others)))
    total = 0.0
    for term in terms:
        options = []
        for k in free:
            try:
                options.append((_block_delta([term], [others[k]], level)[1], k))
            except LawError:
                continue
        if not options:
            total += term.weight
            continue
        value, k = min(options)
        free.remove(k)
        total += min(value, term.weight)
    return total
