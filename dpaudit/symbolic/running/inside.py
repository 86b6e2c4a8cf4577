"""Plain values of the draws of one run that follow its path, on which the run is repeated without symbols."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpaudit.symbolic.laws.joint import Joint, Node
from dpaudit.symbolic.values.paths import Stop, Trace
from dpaudit.symbolic.values.regions import Region
from dpaudit.symbolic.values.symbols import Steps, is_symbol

_SAMPLES = 64
_MOST_REPLAYS = 64


def aims_of(trace: Trace, numbers: list[Any], joint: Joint, more: int) -> list[dict[int, Region]]:
    """Return where the draws should lie, for each replay of a path that ends; ``more`` replays than the output asks for."""
    more = more if trace.draws else 0
    return [_aimed(numbers, joint, turn) for turn in range(_replays(numbers) + more)] + doubtful(trace, joint)


def _replays(numbers: list[Any]) -> int:
    """Number of replays of a path: every value of a finite function of a draw at least once, as long as they are few."""
    cells = [len(number.cells) for number in numbers if type(number) is Steps]
    return min(_MOST_REPLAYS, max([1 if not any(map(is_symbol, numbers)) else 2, *cells]))


def _aimed(numbers: list[Any], joint: Joint, turn: int) -> dict[int, Region]:
    """The cell of every finite function in the output that a replay should hit."""
    aims: dict[int, Region] = {}
    for number in numbers:
        if type(number) is Steps and number.drawn.index not in aims and joint.dependent(number.drawn.index) is None:
            source, known = number.drawn.source, joint.regions[number.drawn.index]
            cells = [known.meet(region) for region, _ in number.cells]
            cells = [cell for cell in cells if source.log_mass(cell) > -math.inf]
            aims[number.drawn.index] = cells[turn % len(cells)]
    return aims


def doubtful(trace: Trace, joint: Joint) -> list[dict[int, Region]]:
    """One replay for each value of this path at which the rounding of floats decided a comparison."""
    aims = []
    for index, region in dict.fromkeys(trace.doubts):
        inside = joint.regions[index].meet(region)
        if trace.draws[index].source.log_mass(inside) > -math.inf:
            if joint.dependent(index) is not None or any(index in group for group in trace.derived.values()):
                raise Stop("A comparison of whole random numbers that the rounding of floats decides")
            aims.append({index: inside})
    return aims


def inside(trace: Trace, joint: Joint, aims: dict[int, Region], turn: int) -> dict[int, float]:
    """Values of the draws that follow the path, the same ones every time."""
    rng = np.random.Generator(np.random.PCG64(len(trace.made) + 1000 * turn))
    values: dict[int, float] = {}
    for component in joint.components:
        values |= _inside_tree(joint, component, rng)
    parents = {index for group in trace.derived.values() for index in group}
    for drawn in trace.draws:
        if drawn.index not in values and drawn.index not in trace.derived and drawn.index not in parents:
            region = aims.get(drawn.index, joint.regions[drawn.index])
            values[drawn.index] = float(drawn.source.sample(region, 1, rng)[0])
    for derived, group in trace.derived.items():
        values |= _inside_sum(trace, joint, derived, group, rng)
    return values


def _inside_tree(joint: Joint, component: list[int], rng: np.random.Generator) -> dict[int, float]:
    """Values of draws that were compared with each other: plain rejection, then one after the other along the tree."""
    trace = joint.trace
    node = joint.hung_up(component)
    if node.is_star and node.source is not None and node.source.quantile is not None:
        return _around_shared(node, rng)
    drawn = {
        index: np.asarray(trace.draws[index].source.sample(joint.regions[index], _SAMPLES, rng)) for index in component
    }
    good = np.ones(_SAMPLES, dtype=bool)
    for constraint in trace.constraints:
        if constraint.terms[0][0] in drawn and len(constraint.terms) == 2:
            value = sum(float(f) * drawn[index] for index, f in constraint.terms) + float(constraint.constant)
            good &= value > 0.0 if constraint.strict else value >= 0.0
    if good.any():
        place = int(np.flatnonzero(good)[0])
        return {index: float(sample[place]) for index, sample in drawn.items()}
    return _along_tree(node, rng)


def _around_shared(node: Node, rng: np.random.Generator) -> dict[int, float]:
    """Values of a draw, and of others with symmetric laws that were compared with it alone."""
    assert node.source is not None
    assert node.source.quantile is not None
    shared = node.source.quantile(0.01 + 0.98 * rng.random(_SAMPLES))
    likely = np.sum([message.log_value(shared) for message in node.messages], axis=0)
    weights = np.exp(likely - np.max(likely))
    values = {node.index: float(rng.choice(shared, p=weights / weights.sum()))}
    x = np.array([values[node.index]])
    for message in node.messages:
        ((_, _, above, _),) = message.bounds()
        source = message.child.whole
        assert source is not None
        assert source.quantile is not None
        tail = math.exp(float(message.log_value(x)[0]))
        end = float(source.quantile(tail * (0.05 + 0.9 * rng.random())))
        values[message.child.index] = -end if above else end
    return values if all(map(math.isfinite, values.values())) else _along_tree(node, rng)


def _along_tree(node: Node, rng: np.random.Generator) -> dict[int, float]:
    from dpaudit.exact.laws.sampling import sample_density

    if node.form.continuous is None:
        raise Stop("No values were found that follow an unlikely path")
    values = {node.index: float(sample_density(node.continuous(), 1, rng)[0])}
    waiting = [node]
    while waiting:
        parent = waiting.pop()
        for message in parent.messages:
            low, high = message._interval(np.array([values[parent.index]]))
            part = message.child.continuous() if message.child.messages else message.child.form.continuous
            inside = part.restricted(float(low[0]), float(high[0])) if part is not None else None
            if inside is None:
                raise Stop("No values were found that follow an unlikely path")
            values[message.child.index] = float(sample_density(inside, 1, rng)[0])
            waiting.append(message.child)
    return values


def _inside_sum(
    trace: Trace, joint: Joint, derived: int, group: tuple[int, ...], rng: np.random.Generator
) -> dict[int, float]:
    """Values of draws whose sum, as one draw, must lie in its region."""
    key = next(key for key, drawn in trace.merged.items() if drawn.index == derived)
    factors = {index: float(factor) for index, factor in key}
    normal = trace.draws[derived].source.name == "normal"
    unit = math.sqrt(math.fsum(f * f for f in factors.values())) if normal else abs(float(key[0][1]))
    for size in (256, 65536):
        samples = {index: trace.draws[index].source.sample(joint.regions[index], size, rng) for index in group}
        value = np.sum([factors[index] * samples[index] for index in group], axis=0) / unit
        region = joint.regions[derived]
        good = [k for k, x in enumerate(value.tolist()) if x in region]
        if good:
            k = good[0]
            return {**{index: float(sample[k]) for index, sample in samples.items()}, derived: float(value[k])}
    raise Stop("No values were found that follow an unlikely path")
