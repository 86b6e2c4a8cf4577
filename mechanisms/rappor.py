r"""RAPPOR (Erlingsson, Pihur and Korolova 2014; catalogue rows 15 and 16).

A value sets ``hashes`` bits of a Bloom filter. Every bit is replaced by a fair coin with probability ``f`` (the
permanent answer), and, unless the report is one-time, reported as 1 with probability ``q`` where the permanent bit is 1
and ``p`` where it is 0 (the instantaneous answer). Bits are independent given the value, so the log-ratio of two values
is the sum over the bits in which their filters differ, at most ``2 hashes`` of them.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_count, check_open_unit
from dpaudit.claims import PureDP, Relation
from dpaudit.errors import InvalidArgument

from ._common import bernoulli, check_draw, chunks


@dataclass(frozen=True, slots=True)
class Rappor:
    """Report of one value as ``bits`` noisy bits: outputs of shape ``(size, bits)``, 0 or 1.

    ``instantaneous=False`` stops after the permanent answer (one-time RAPPOR). Distinct hash functions are a keyed
    digest, the same on every machine.

    >>> rappor = Rappor()
    >>> round(rappor.bit_epsilon, 6), round(rappor.claim.epsilon, 4)
    (0.05001, 0.4001)
    >>> Rappor(f=0.95, instantaneous=False).claim
    PureDP(epsilon=0.8006..., relation='substitute')
    """

    bits: int = 20
    hashes: int = 4
    f: float = 0.75
    p: float = 0.45
    q: float = 0.55
    instantaneous: bool = True
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # any value for any other

    def __post_init__(self) -> None:
        check_count(bits=self.bits, hashes=self.hashes)
        check_open_unit(f=self.f, p=self.p, q=self.q)
        if self.p == self.q and self.instantaneous:
            raise InvalidArgument(f"p={self.p!r} and q={self.q!r} must differ, or the report says nothing.")

    @property
    def one_rates(self) -> tuple[float, float]:
        """Probability that a bit is reported as 1 when the filter has 0 there, and when it has 1."""
        permanent = (self.f / 2.0, 1.0 - self.f / 2.0)
        if not self.instantaneous:
            return permanent
        return self.p + (self.q - self.p) * permanent[0], self.p + (self.q - self.p) * permanent[1]

    @property
    def bit_epsilon(self) -> float:
        """Largest log-ratio of one reported bit."""
        zero, one = self.one_rates
        return max(abs(math.log(one / zero)), abs(math.log((1.0 - one) / (1.0 - zero))))

    @property
    def claim(self) -> PureDP:
        """``2 hashes`` times the epsilon of a bit, reached by two values that share no bit (if a bit is symmetric)."""
        return PureDP(2 * min(self.hashes, self.bits / 2) * self.bit_epsilon, self.relation)

    def bloom(self, data: Any) -> NDArray[np.int8]:
        """Bloom filter of one value: a whole number or a string."""
        if isinstance(data, bool) or not isinstance(data, int | str | np.integer):
            raise InvalidArgument(f"data={data!r} must be one whole number or string.")
        filled = np.zeros(self.bits, dtype=np.int8)
        for number in range(self.hashes):
            digest = hashlib.blake2b(str(data).encode(), digest_size=8, salt=number.to_bytes(8, "little")).digest()
            filled[int.from_bytes(digest, "little") % self.bits] = 1
        return filled

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Return ``size`` reports, each with a permanent answer of its own, drawn step by step as in the paper."""
        check_draw(size, rng)
        # A fair coin replaces the bit with probability f: it comes out wrong half as often.
        permanent_rates = np.where(self.bloom(data), 1.0 - self.f / 2.0, self.f / 2.0)[:, None]
        reports = np.empty((self.bits, size), dtype=np.int8)
        for rows in chunks(size, -(-self.bits // 2)):  # bytes, not doubles: more of them are small
            shape = reports[:, rows].shape
            bits = bernoulli(permanent_rates, shape, rng)
            if self.instantaneous:
                bits = (bits & bernoulli(self.q, shape, rng)) | (~bits & bernoulli(self.p, shape, rng))
            reports[:, rows] = bits
        return reports.T

    def law(self, data: Any) -> exact.Law:
        """Product of one Bernoulli law a bit."""
        rates = [self.one_rates[bit] for bit in self.bloom(data)]
        return exact.Product([exact.Discrete({0: 1.0 - rate, 1: rate}) for rate in rates])
