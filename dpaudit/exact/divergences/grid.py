"""Suprema and sums over two laws on a common grid."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpaudit.errors import LawError
from dpaudit.exact.divergences.pair import FAR, Kernel, largest, log_ratio
from dpaudit.exact.form import Array, Form, Integers, Lattice, log_sum, same

_NEGLIGIBLE = 46.0
"""Sums end where the rest is below exp(-46) = 1e-20 of the total."""
_MOST_POINTS = 1 << 26
"""Largest number of grid points that are summed."""
_CHUNK = 1 << 18
"""Number of grid points that are computed at once."""


@dataclass(frozen=True, slots=True)
class GridPair:
    """Two lattices of one step, without the points that are atoms of either law (those are compared as atoms)."""

    P: Lattice | None
    Q: Lattice | None
    skipped: Integers

    @classmethod
    def of(cls, P: Form, Q: Form) -> GridPair | None:
        """The lattice parts of two forms on a common grid, or None where there are none."""
        mine, theirs = P.lattice, Q.lattice
        if mine is None and theirs is None:
            return None
        points: set[Hashable] = {*P.atoms, *Q.atoms}
        factors = (1, 1) if mine is None or theirs is None else _common_grid(mine.step, theirs.step)
        grids = [(part, factor) for part, factor in zip((mine, theirs), factors, strict=True) if part is not None]
        found = {k * factor for part, factor in grids for k in map(part.index, points) if k is not None}
        return cls(
            mine and _refined(mine, factors[0]),
            theirs and _refined(theirs, factors[1]),
            np.array(sorted(found), dtype=np.int64),
        )

    def at(self, k: Integers) -> tuple[Array, Array]:
        """Log-masses of grid points under both laws, minus infinity at the skipped ones."""
        p, q = (np.full(k.shape, -np.inf) if part is None else part.log_mass(k) for part in (self.P, self.Q))
        if not self.skipped.size:
            return p, q
        seen = ~np.isin(k, self.skipped)
        return np.where(seen, p, -np.inf), np.where(seen, q, -np.inf)

    def _parts(self) -> list[Lattice]:
        return [part for part in (self.P, self.Q) if part is not None]

    def _window(self) -> tuple[int, int]:
        """The grid points outside which both are smooth and, where geometric, straight lines."""
        marks = [k for part in self._parts() for k in (*part.kinks, *part.landmarks)] + self.skipped.tolist()
        return min(marks) - 2, max(marks) + 2

    def singular(self) -> bool:
        """Return True if ``P`` has mass at a grid point where ``Q`` has none."""
        if self.P is None:
            return False
        if self.Q is None or any(self.P.unbounded(end) and not self.Q.unbounded(end) for end in (0, 1)):
            return True
        low, high = self._window()
        p, q = self.at(np.arange(low, min(high, low + _MOST_POINTS) + 1))
        return bool(((p > -np.inf) & (q == -np.inf)).any())

    def supremum(self) -> float:
        """The supremum of the log-ratio over the grid."""
        low, high = self._window()
        best = self._scan(low, high)
        for end, start in ((0, low), (1, high)):
            if self.P is None or not self.P.unbounded(end):
                continue
            reach, sign = 64, (-1, 1)[end]
            # The difference of two straight lines is largest at an end of the window or in the limit: no search.
            straight = all(part.geometric for part in self._parts())
            while best < math.inf and reach < 1 << 60 and not straight:
                far = start + sign * reach
                best = max(best, self._scan(*sorted((start, far))))
                if self.at(np.array([far]))[0][0] < -FAR:
                    break
                start, reach = far, 2 * reach
            best = max(best, self._limit(end) if best < math.inf else best)
        return best

    def _limit(self, end: int) -> float:
        assert self.P is not None
        if self.Q is None or not self.Q.unbounded(end):
            return math.inf
        mine, theirs = self.P.tails[end], self.Q.tails[end]
        if mine is None or theirs is None:
            raise LawError("The tails of a law on a grid are not known; round a law with known tails, or truncate it.")
        return mine.log_ratio_limit(theirs)

    def _scan(self, low: int, high: int) -> float:
        """Largest log-ratio between two grid points: over all of them, or over samples refined around the largest."""
        while high - low >= _CHUNK:
            k = np.unique(np.linspace(low, high, 4097).astype(np.int64))
            ratio = log_ratio(*self.at(k))
            best = int(np.argmax(ratio))
            if ratio[best] == np.inf:
                return math.inf
            low, high = int(k[max(best - 1, 0)]), int(k[min(best + 1, k.size - 1)])
        return largest(*self.at(np.arange(low, high + 1)))

    def log_sum(self, kernel: Kernel) -> float:
        """Log of the sum of the kernel over the grid."""
        low, high = self._window()
        if high - low > _MOST_POINTS:
            raise LawError(f"The grid has {high - low} points where the laws have mass; use a coarser step.")
        total = self._block(kernel, low, high)[0]
        for end in (0, 1):
            if any(part.unbounded(end) for part in self._parts()):
                total = self._tail_sum(kernel, end, (low, high)[end], total)
        return total

    def finite_losses(self, most: int) -> tuple[Array, Array] | None:
        """Log-masses of all points, each tail of constant loss as one; None where there are more than ``most``."""
        low, high = self._window()
        ends = [end for end in (0, 1) if any(part.unbounded(end) for part in self._parts())]
        rates = [self._common_rate(end) for end in ends]
        if high - low > most or None in rates:
            return None
        p, q = self.at(np.arange(low, high + 1))
        for end, rate in zip(ends, rates, strict=True):
            mine, theirs = self.at(np.array([low - 1 if end == 0 else high + 1]))
            gain = -math.log(-math.expm1(-rate)) if rate else 0.0
            p, q = np.append(p, mine + gain), np.append(q, theirs + gain)
        return p, q

    def _block(self, kernel: Kernel, low: int, high: int) -> tuple[float, float]:
        """Log-sum over low..high, and the largest log-mass of either law there."""
        total = densest = -math.inf
        for start in range(low, high + 1, _CHUNK):
            p, q = self.at(np.arange(start, min(start + _CHUNK, high + 1)))
            total = float(np.logaddexp(total, log_sum(kernel(p, q))))
            densest = max(densest, float(p.max()), float(q.max()))
        return total, densest

    def _tail_sum(self, kernel: Kernel, end: int, edge: int, total: float) -> float:
        sign = (-1, 1)[end]
        rate = self._common_rate(end)
        if rate is not None:
            # Both fall by the same factor from point to point, so the log-ratio is constant and the sum geometric.
            p, q = self.at(np.array([edge + sign]))
            return float(np.logaddexp(total, kernel(p, q)[0] - math.log(-math.expm1(-rate))))
        previous, size, seen = math.inf, 1024, 0
        while seen < _MOST_POINTS:
            ends = sorted((edge + sign, edge + sign * size))
            value, densest = self._block(kernel, ends[0], ends[1])
            total = float(np.logaddexp(total, value))
            spent = value <= previous and not value > total - _NEGLIGIBLE
            if spent and densest < max(-FAR, total - _NEGLIGIBLE):
                return total
            edge, seen, size, previous = edge + sign * size, seen + size, 2 * size, value
        raise LawError(f"More than {_MOST_POINTS} grid points have mass that matters; use a coarser step.")

    def _common_rate(self, end: int) -> float | None:
        """The decay per grid point, where all parts that reach this infinity are geometric with the same one."""
        reaching = [part for part in self._parts() if part.unbounded(end)]
        tails = [part.tails[end] for part in reaching]
        rates = [tail.linear * part.step for part, tail in zip(reaching, tails, strict=True) if tail is not None]
        if len(rates) < len(reaching) or not all(part.geometric for part in reaching):
            return None
        return rates[0] if all(same(rates[0], rate) for rate in rates) else None


def _common_grid(step: float, other: float) -> tuple[int, int]:
    """Return the factors by which each step is a multiple of the coarsest common grid's step."""
    quotient = Fraction(step) / Fraction(other)
    if max(quotient.numerator, quotient.denominator) > 1000:
        raise LawError(
            f"Grids of steps {step!r} and {other!r} have no common refinement; round both laws to the same step."
        )
    return quotient.numerator, quotient.denominator


def _refined(part: Lattice, factor: int) -> Lattice:
    if factor == 1:
        return part

    def log_mass(k: Integers) -> Array:
        return np.where(k % factor == 0, part.log_mass(k // factor), -np.inf)

    def log_range(first: float, last: float) -> float:
        low = first if math.isinf(first) else math.ceil(first / factor)
        high = last if math.isinf(last) else math.floor(last / factor)
        return part.log_range(low, high) if low <= high else -math.inf

    return Lattice(
        part.step / factor,
        log_mass,
        log_range,
        None if part.first is None else part.first * factor,
        None if part.last is None else part.last * factor,
        tuple(k * factor for k in part.kinks),
        tuple(k * factor for k in part.landmarks),
        part.tails,
        geometric=False,
    )
