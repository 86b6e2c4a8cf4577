r"""Report noisy max: the index of the largest noisy answer (Dwork and Roth 2014, section 3.3; Ding et al. 2018).

Every answer moves by at most the sensitivity between neighbours. Noise of scale ``2 sensitivity / epsilon``, Laplace or
one-sided exponential, makes the index epsilon-DP whatever the number of answers: fix the noise of all others; index
``i`` wins when its own noise exceeds a bound that moves by at most twice the sensitivity, and the tail of the noise at
the moved bound is at least ``exp(-epsilon)`` times what it was. Only the index may leave: releasing the maximum's value
is another mechanism (see ``mechanisms.broken.noisy_max``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import exact
from dpaudit._util.validation import check_choice, check_positive
from dpaudit.claims import PureDP, Relation

from ._common import FEW_CELLS, Floats, answers_of, check_draw, chunks, laplace_noise
from ._quadrature import integrate, log_laplace_cdf, log_laplace_density, panels

NOISES = ("laplace", "exponential", "gumbel")


@dataclass(frozen=True, slots=True)
class ReportNoisyMax:
    """Index of the largest of the answers after noise, from 0.

    ``noise="exponential"`` is permute-and-flip (Ding et al. 2021) and ``"gumbel"`` the exponential mechanism on the
    answers; all three are epsilon-DP at scale ``2 sensitivity / epsilon``. With ``monotone=True`` (all answers move the
    same way) half that scale is enough.

    >>> import numpy as np
    >>> best = ReportNoisyMax(epsilon=1.0)
    >>> np.exp(best.law([0.0, 0.0]).log_prob([0, 1])).round(12)
    array([0.5, 0.5])
    """

    epsilon: float
    noise: str = "laplace"
    sensitivity: float = 1.0
    monotone: bool = False
    relation: ClassVar[Relation] = Relation.ANSWERS

    def __post_init__(self) -> None:
        check_positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_choice(NOISES, noise=self.noise)

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return (1.0 if self.monotone else 2.0) * self.sensitivity / self.epsilon

    @property
    def claim(self) -> PureDP:
        """epsilon-DP; approached as the answers that lose are far below."""
        return PureDP(self.epsilon, self.relation)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return ``size`` indices."""
        check_draw(size, rng)
        answers = answers_of(data)
        winners = np.empty(size, dtype=np.intp)
        for rows in chunks(size, answers.size):
            winners[rows] = _largest(noisy(answers, self.noise, self.scale, rows.stop - rows.start, rng))
        return winners

    def law(self, data: Any) -> exact.Law:
        """Probability of every index: ``integral of f(x - a_i) prod_{j != i} F(x - a_j) dx``, exact to rounding."""
        answers = answers_of(data)
        if self.noise == "gumbel":
            log_probabilities = answers / self.scale - np.logaddexp.reduce(answers / self.scale)
        else:
            log_probabilities = _winning(answers, self.noise, self.scale)
        return exact.Discrete.from_log(range(answers.size), log_probabilities)


def noisy(answers: Floats, noise: str, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """Return ``size`` columns of answers with fresh noise on every one: a row an answer."""
    shape = (answers.size, size)
    if noise == "laplace":
        values = laplace_noise(scale, shape, rng)
    elif noise == "exponential":
        values = rng.standard_exponential(shape)
        values *= scale
    else:
        values = rng.gumbel(0.0, scale, shape)
    values += answers[:, None]
    return values


def _largest(values: Floats) -> NDArray[Any]:
    """Return the row of every column's first maximum; row by row, because numpy's ``argmax`` goes number by number."""
    rows, columns = values.shape
    winner: NDArray[Any]
    if columns < FEW_CELLS:
        winner = values.argmax(axis=0)
        return winner
    best = values[0].copy()
    winner = np.zeros(columns, dtype=np.min_scalar_type(rows))
    for row in range(1, rows):
        np.maximum(winner, (values[row] > best) * winner.dtype.type(row), out=winner)
        np.maximum(best, values[row], out=best)
    return winner


def _winning(answers: Floats, noise: str, scale: float) -> Floats:
    """Log-probability that each answer is the largest after noise."""
    fastest = scale / answers.size
    if noise == "laplace":
        nodes, weights = panels(answers, fastest, scale)
        gaps = nodes[:, None] - answers
        log_cdf, log_density = log_laplace_cdf(gaps, scale), log_laplace_density(gaps, scale)
    else:
        nodes, weights = panels(answers, fastest, scale)
        inside = nodes > answers.max()
        nodes, weights = nodes[inside], weights[inside]
        gaps = nodes[:, None] - answers
        log_cdf, log_density = np.log(-np.expm1(-gaps / scale)), -gaps / scale - np.log(scale)
    others = log_cdf.sum(axis=1, keepdims=True) - log_cdf
    log_probabilities = integrate(log_density + others, weights)
    normalised: Floats = log_probabilities - np.logaddexp.reduce(log_probabilities)
    return normalised
