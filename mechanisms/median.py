r"""The naive Laplace median (slides, "L'echec de la methode naive").

The median of numbers in [low, high] plus Laplace noise for its sensitivity. It is private and useless: one substitution
can move the median from one end to the other, so the noise is as wide as the range, and the expected error is ``(high -
low) / epsilon`` whatever the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import array_within, check_choice, check_interval, check_positive
from dpaudit.claims import PureDP, Relation

from ._common import Floats, check_draw
from .laplace import add_laplace


@dataclass(frozen=True, slots=True)
class LaplaceMedian:
    """Median plus Laplace noise, the number of rows being public.

    For an odd number of rows the median is an order statistic, of sensitivity ``high - low``. For an even number
    ``even="average"`` takes the mean of the two middle ones, of half that sensitivity (docs/theory.md R24), and
    ``even="lower"`` the lower one, of the full one. ``clip=True`` forces the output into [low, high], which costs
    nothing: the median lies there.

    >>> import numpy as np
    >>> median = LaplaceMedian(epsilon=1.0, low=0.0, high=1.0, clip=True)
    >>> round(median.expected_error([0.2, 0.5, 0.9]), 6)
    0.393469
    """

    epsilon: float
    low: float
    high: float
    even: str = "average"
    clip: bool = False
    relation: ClassVar[Relation] = Relation.SUBSTITUTE  # whether the number of rows is odd decides the scale

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon)
        check_interval(low=self.low, high=self.high)
        check_choice(("average", "lower"), even=self.even)

    @property
    def claim(self) -> PureDP:
        """epsilon-DP, exactly reached when the data sit at both ends."""
        return PureDP(self.epsilon, self.relation)

    def sensitivity(self, rows: int) -> float:
        """Largest move of the median of that many rows."""
        width = self.high - self.low
        return width / 2.0 if rows % 2 == 0 and self.even == "average" else width

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` noisy medians."""
        check_draw(size, rng)
        median, scale = self._median(data)
        outputs = add_laplace(np.asarray(median), scale, size, rng)
        return np.clip(outputs, self.low, self.high, out=outputs) if self.clip else outputs

    def law(self, data: Any) -> exact.Law:
        """Laplace at the median, pushed into the range if ``clip``."""
        law = exact.Laplace(*self._median(data))
        return exact.Clipped(law, self.low, self.high) if self.clip else law

    def expected_error(self, data: Any) -> float:
        """Expected distance of the output from the median: the scale, or less when clipped.

        ``E min(|Lap(b)|, d on its side) = b (2 - exp(-left/b) - exp(-right/b)) / 2`` for a median ``left`` above
        ``low`` and ``right`` below ``high``.
        """
        median, scale = self._median(data)
        if not self.clip:
            return scale
        return -scale * (math.expm1(-(median - self.low) / scale) + math.expm1(-(self.high - median) / scale)) / 2.0

    def _median(self, data: Any) -> tuple[float, float]:
        rows = np.sort(array_within("data", data, self.low, self.high, empty=False))
        lower, upper = rows[(rows.size - 1) // 2], rows[rows.size // 2]
        median = lower if self.even == "lower" else lower + (upper - lower) / 2.0
        return float(median), self.sensitivity(rows.size) / self.epsilon
