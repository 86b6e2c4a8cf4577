r"""The joint law of draws that were compared with each other on one path.

On a path the draws are independent, each restricted to a region, and pairs of them obey linear constraints
(``answer + x_1 > threshold + x_0``). If the pairs form a tree, every probability is a chain of one-dimensional integrals:
with the tree hung up at any draw ``r``,

.. math:: P(\text{path}) = \int f_r(x) \prod_{c} m_c(x)\,dx, \qquad
          m_c(x) = \int f_c(y)\, 1[\text{constraints}(x, y)] \prod_{d} m_d(y)\,dy,

over the children ``c`` of ``r``, and ``d`` of ``c``. For a child without children of its own, ``m_c`` is the mass of an
interval under its law, in closed form: one shared threshold against many answers (AboveThreshold), and the largest of many
noisy scores, are single integrals. Deeper trees use a table of the inner integral (:class:`Cumulative`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from dpaudit.exact.form import Array, Continuous, Form, Tail
from dpaudit.exact.quadrature import log_integral, log_integrals, resolved
from dpaudit.symbolic.draws import rounding
from dpaudit.symbolic.draws.sources import Source
from dpaudit.symbolic.laws import shared_draw
from dpaudit.symbolic.laws.tables import Cumulative
from dpaudit.symbolic.values import forms
from dpaudit.symbolic.values.paths import Constraint, Stop, Trace
from dpaudit.symbolic.values.regions import FULL, Region

INTEGRAL_ERROR = 1e-11
"""Relative error allowed for one integral over closed forms; measured errors are below 1e-12."""
TABLE_ERROR = 1e-9
"""Relative error allowed for an integral over a table of another."""


@dataclass(frozen=True, slots=True)
class Joint:
    """The law of the draws on a path: independent ones with a region each, and trees of dependent ones."""

    trace: Trace
    regions: dict[int, Region]
    edges: dict[int, dict[int, list[Constraint]]]
    components: list[list[int]]
    nodes: dict[int, Node] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace) -> Joint:
        """Sort the constraints of a finished run."""
        regions = dict(trace.regions)
        edges: dict[int, dict[int, list[Constraint]]] = defaultdict(dict)
        for constraint in trace.constraints:
            if len(constraint.terms) == 1:
                ((index, factor),) = constraint.terms
                cut = -constraint.constant / factor
                closed = not constraint.strict
                side = Region.above(cut, closed=closed) if factor > 0 else Region.below(cut, closed=closed)
                regions[index] = regions[index].meet(side)
            elif len(constraint.terms) == 2:
                (a, _), (b, _) = constraint.terms
                edges[a].setdefault(b, []).append(constraint)
                edges[b].setdefault(a, []).append(constraint)
            else:
                raise Stop(f"A comparison of {len(constraint.terms)} random draws with each other is not followed")
        return cls(trace, regions, edges, _components(edges))

    def dependent(self, index: int) -> list[int] | None:
        """The draws that a draw was compared with, directly or not, itself among them."""
        return next((component for component in self.components if index in component), None)

    def density(self, root: int) -> Node:
        """The tree of a draw, hung up at that draw."""
        return self._node(root, None)

    def positive(self, root: int) -> bool:
        """Return True if the density of a draw is positive wherever its own law is: no other draw can be ruled out."""
        component = self.dependent(root) or [root]
        ends = [self.trace.draws[index].source.support() for index in component if index != root]
        return (
            all(math.isinf(low) and math.isinf(high) for low, high in ends)
            and all(self.regions[index] is FULL for index in component if index != root)
            and all(len(constraints) == 1 for index in component for constraints in self.edges[index].values())
        )

    def density_error(self, root: int) -> float:
        """Error of the log-density of a draw, from the masses that its tree leaves of the other draws."""
        others = [index for index in self.dependent(root) or [] if index != root]
        slopes = [
            abs(c.constant / f) for index in others for cs in self.edges[index].values() for c in cs for _, f in c.terms
        ]
        sources = [self.trace.draws[index].source for index in others]
        return math.fsum(2.0 * rounding.density_error(source, 1.0, float(max(slopes, default=0))) for source in sources)

    def _node(self, index: int, parent: int | None) -> Node:
        children = [
            (self._node(other, index), constraints)
            for other, constraints in self.edges.get(index, {}).items()
            if other != parent
        ]
        source = self.trace.draws[index].source
        if children and parent is not None and source.integer:
            raise Stop("A comparison of several whole random numbers in a chain is not followed")
        form = source.form if source.shares is None else Form({x: math.log(share) for x, share in source.shares})
        region = self.regions[index]
        whole = source if region is FULL else None
        messages = [Message(*child, index, source.integer) for child in children]
        return Node(
            index,
            form if region is FULL else forms.restricted(form, region),
            messages,
            whole if not children else None,
            source=whole if parent is None else None,
        )

    def hung_up(self, component: list[int]) -> Node:
        """The tree of a component, hung up at the draw that was compared most."""
        root = max(component, key=lambda index: len(self.edges[index]))
        if root not in self.nodes:
            self.nodes[root] = self.density(root)
        return self.nodes[root]

    def log_mass(self, component: list[int]) -> tuple[float, float]:
        """Log-probability of a component, and its relative error."""
        node = self.hung_up(component)
        return node.log_total(), node.error()


def _components(edges: dict[int, dict[int, list[Constraint]]]) -> list[list[int]]:
    found: list[list[int]] = []
    left = set(edges)
    while left:
        waiting, component = [left.pop()], []
        links = 0
        while waiting:
            index = waiting.pop()
            component.append(index)
            links += len(edges[index])
            for other in edges[index]:
                if other in left:
                    left.discard(other)
                    waiting.append(other)
        if links // 2 != len(component) - 1:
            raise Stop(
                "Random draws are compared with each other in a circle (more than a tree of comparisons), which is not "
                "followed"
            )
        found.append(sorted(component))
    return found


@dataclass(eq=False)
class Node:
    """A draw with the messages of its children: an unnormalised law. ``whole`` is its source if nothing restricts it."""

    index: int
    form: Form
    messages: list[Message]
    whole: Source | None = None
    table: Cumulative | None = field(default=None)
    source: Source | None = None
    quick: tuple[float, float] | None = field(default=None, init=False)
    """Log of the total, and its relative error, where a bound of it is proved."""

    def __post_init__(self) -> None:
        factors = [message.factor() for message in self.messages]
        if factors and self.source is not None and self.source.name == "laplace" and None not in factors:
            self.quick = shared_draw.log_integral(factor for factor in factors if factor is not None)

    @property
    def is_star(self) -> bool:
        """True if each child is a whole draw of a symmetric law with one bound."""
        wholes = [message.child.whole for message in self.messages if len(message.constraints) == 1]
        symmetric = sum(whole is not None and whole.name in ("laplace", "normal") for whole in wholes)
        return 0 < len(self.messages) == symmetric

    def error(self) -> float:
        """Relative error of its total."""
        if self.quick is not None:
            return self.quick[1]
        deep = any(message.child.messages for message in self.messages)
        return TABLE_ERROR if deep else INTEGRAL_ERROR

    def log_density(self, x: Array, side: int = 1) -> Array:
        """Log of the law's density (or of its masses) times the messages."""
        assert self.form.continuous is not None
        total: Array = self.form.continuous.log_density(x, side)
        for message in self.messages:
            total = total + message.log_value(x)
        return total

    def points(self) -> list[float]:
        """Kinks and landmarks, in increasing order."""
        assert self.form.continuous is not None
        part = self.form.continuous
        low, high = part.support
        marks = {*part.kinks, *part.landmarks, *(x for m in self.messages for x in m.points())}
        return sorted(x for x in marks if low < x < high and math.isfinite(x))

    def log_total(self) -> float:
        """Log of the total mass."""
        if self.quick is not None:
            return self.quick[0]
        atoms = [
            value + sum(float(m.log_value(np.array([x]))[0]) for m in self.messages)
            for x, value in self.form.atoms.items()
        ]
        terms = [value for value in atoms if value > -math.inf]
        if self.form.lattice is not None:
            k = _support(self.form)
            values = self.form.lattice.log_mass(k) + sum(m.log_value(k.astype(np.float64)) for m in self.messages)
            terms.append(float(np.logaddexp.reduce(values)))
        if self.form.continuous is not None and self.error() == TABLE_ERROR:
            terms.append(float(self.cumulative().below[-1]))
        elif self.form.continuous is not None:
            low, high = self.form.continuous.support
            inner = self.points() or [_between(low, high)]
            terms.append(log_integral(self.log_density, [low, *inner, high]))
        return float(np.logaddexp.reduce(terms)) if terms else -math.inf

    def continuous(self) -> Continuous:
        """The density with all that a divergence needs."""
        assert self.form.continuous is not None
        part = self.form.continuous
        points = self.points()
        _, marks = resolved(
            self.log_density, [part.support[0], *(points or [_between(*part.support)]), part.support[1]]
        )
        inside = tuple(x for x in marks if part.support[0] < x < part.support[1])
        return Continuous(
            self.log_density,
            lambda low, high: log_integrals(self.log_density, low, high, tuple(points), inside),
            part.support,
            tuple(sorted({*points, *(x for x in part.support if math.isfinite(x))})),
            tuple(sorted({*inside, *points, *(x for x in part.support if math.isfinite(x))})),
            (self._tail(0), self._tail(1)),
        )

    def _tail(self, end: int) -> Tail | None:
        assert self.form.continuous is not None
        tail = self.form.continuous.tails[end]
        for message in self.messages:
            other = message.tail(end)
            if tail is None or other is None:
                return None
            tail = Tail(
                tail.quadratic + other.quadratic,
                tail.linear + other.linear,
                tail.power + other.power,
                tail.constant + other.constant,
            )
        return tail

    def cumulative(self) -> Cumulative:
        """A table of the distribution function."""
        if self.table is None:
            assert self.form.continuous is not None
            slopes = [abs(slope) for message in self.messages for slope, *_ in message.bounds()]
            width = 0.5 * min([1.0, *(1.0 / slope for slope in slopes if slope > 0.0)])
            self.table = Cumulative.of(self.log_density, self.form.continuous.support, self.points(), width)
        return self.table


def _between(low: float, high: float) -> float:
    """A number inside an interval of which an end may be infinite."""
    if math.isfinite(low):
        return 0.5 * (low + high) if math.isfinite(high) else low + 1.0
    return high - 1.0 if math.isfinite(high) else 0.0


def _support(form: Form) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The points of a lattice outside which less than 1e-20 of its mass lies."""
    assert form.lattice is not None
    first, last, reach = min(form.lattice.landmarks), max(form.lattice.landmarks), 64
    total = form.lattice.log_total()
    while form.lattice.unbounded(0) and form.lattice.log_range(-math.inf, first - 1) > total - 46.0:
        first, reach = first - reach, 2 * reach
    while form.lattice.unbounded(1) and form.lattice.log_range(last + 1, math.inf) > total - 46.0:
        last, reach = last + reach, 2 * reach
    if last - first > 1 << 20:
        raise Stop("A whole random number with too many values was compared with another draw")
    return np.arange(first, last + 1)


@dataclass(eq=False)
class Message:
    """The mass of a child's draw that the constraints with its parent leave, as a function of the parent's value."""

    child: Node
    constraints: list[Constraint]
    parent: int
    whole_parent: bool
    lines: list[tuple[float, float, bool, bool]] | None = field(default=None, init=False)

    def factor(self) -> shared_draw.Factor | None:
        """The message as a mass above or below one line of a whole Laplace draw; None if it is something else."""
        if self.child.whole is None or self.child.whole.name != "laplace" or len(self.constraints) != 1:
            return None
        ((slope, shift, below, _),) = self.bounds()
        return slope, shift, below

    def bounds(self) -> list[tuple[float, float, bool, bool]]:
        """Each constraint as a bound ``slope * x + shift`` on the child: whether it is from below, and strict."""
        if self.lines is not None:
            return self.lines
        found = []
        for constraint in self.constraints:
            factors = dict(constraint.terms)
            own, other = factors[self.child.index], factors[self.parent]
            found.append((float(-other / own), float(-constraint.constant / own), own > 0, constraint.strict))
        self.lines = found
        return found

    def _interval(self, x: Array) -> tuple[Array, Array]:
        low, high = np.full(x.shape, -np.inf), np.full(x.shape, np.inf)
        for slope, shift, below, _ in self.bounds():
            line = slope * x + shift
            low, high = (np.maximum(low, line), high) if below else (low, np.minimum(high, line))
        return low, high

    def log_value(self, x: Array) -> Array:
        """Log of the message at several values of the parent."""
        x = np.asarray(x, dtype=np.float64)
        bounds = self.bounds()
        source = self.child.whole
        if len(bounds) == 1 and source is not None:
            slope, shift, below, _ = bounds[0]
            tail = source.log_above if below else source.log_below
            if tail is not None:
                return tail(slope * x + shift)
        low, high = self._interval(x)
        part = self.child.form.continuous
        if part is not None and self.child.messages:
            return self.child.cumulative().log_mass(low, high)
        if part is not None:
            return np.where(low < high, part.log_mass(low, np.maximum(low, high)), -np.inf)
        return self._discrete(x)

    def _discrete(self, x: Array) -> Array:
        form = self.child.form
        if form.lattice is not None:
            k = _support(form)
            values, masses = k.astype(np.float64), form.lattice.log_mass(k)
        else:
            values = np.array(list(form.atoms), dtype=np.float64)
            masses = np.array(list(form.atoms.values()), dtype=np.float64)
        allowed = np.ones((x.size, values.size), dtype=bool)
        flat = x.ravel()[:, None]
        for constraint in self.constraints:
            factors = dict(constraint.terms)
            own, other = float(factors[self.child.index]), float(factors[self.parent])
            value = own * values + other * flat + float(constraint.constant)
            if self.whole_parent and ((value != 0.0) & (np.abs(value) <= 1e-9 * (1.0 + np.abs(own * values)))).any():
                raise Stop("A comparison of whole random numbers with each other that the rounding of floats decides")
            allowed &= value > 0.0 if constraint.strict else value >= 0.0
        table = np.where(allowed, masses, -np.inf)
        with np.errstate(divide="ignore"):
            top = np.maximum(table.max(axis=1), -1e300)
            return (top + np.log(np.exp(table - top[:, None]).sum(axis=1))).reshape(x.shape)  # type: ignore[no-any-return]

    def points(self) -> list[float]:
        """Values of the parent at which the message is not smooth, or changes on the scale of the child."""
        form = self.child.form
        if form.continuous is None:
            marks = [float(x) for x in form.atoms] if form.lattice is None else []  # type: ignore[arg-type]
            if form.lattice is not None:
                marks = [float(k) for k in _support(form)[:4096]]
        else:
            part = form.continuous
            inner = self.child.points() if self.child.messages else [*part.kinks, *part.landmarks]
            marks = [*inner, *(x for x in part.support if math.isfinite(x))]
        lines = self.bounds()
        found = [(mark - shift) / slope for slope, shift, _, _ in lines for mark in marks]
        for place, (slope, shift, _, _) in enumerate(lines):
            for other, moved, _, _ in lines[:place]:
                if other != slope:
                    found.append((shift - moved) / (other - slope))
        return found

    def tail(self, end: int) -> Tail | None:
        """The log of the message towards an infinity of the parent, for one bound on a child with a simple tail."""
        part = self.child.form.continuous
        bounds = self.bounds()
        if part is None or self.child.messages or len(bounds) != 1:
            return None
        slope, shift, below, _ = bounds[0]
        direction = (1.0 if end else -1.0) * math.copysign(1.0, slope)  # where the bound goes
        total = float(part.log_mass(np.array(-np.inf), np.array(np.inf)))
        if (direction > 0.0) != below:
            return Tail(constant=total)  # the bound runs away, and all of the child is left
        tail = part.tails[1 if direction > 0.0 else 0]
        if tail is None or tail.quadratic or tail.power or tail.linear <= 0.0:
            return None
        # The mass beyond y is exp(constant - linear |y|) / linear, at y = slope x + shift with |y| = direction y.
        size = tail.linear * abs(slope)
        return Tail(linear=size, constant=tail.constant - math.log(tail.linear) - tail.linear * direction * shift)
