"""Estimate from a sample how many people are unique in the population: Pitman, Zayatz, and slide negative binomial.

A record that is unique in a sample need not be unique in the population. Each model describes the class sizes of the
population, is fitted to those of the sample, and gives the expected number of classes of size one. All need the size N of the
population, and assume a simple random sample; none is a bound. With s_j the number of sample classes of size j, u their number
and n the number of records:

* *Pitman* (Hoshino 2001): classes form as in the Pitman sampling formula with parameters theta and alpha, fitted by maximum
  likelihood. It fits well where the sampling fraction is small;
* *Zayatz* (1991): the class sizes of the population are distributed as those of the sample;
* *SNB* (Chen and Keller-McNulty 1998): class sizes of the population are one plus a negative binomial variable, fitted by
  maximum likelihood with the mean class size tied to N.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import digamma, expit, gammaln

from dpaudit._util.validation import check_count
from dpaudit.anonymity.tables.table import Table
from dpaudit.errors import InvalidArgument

_SMALL_FRACTION = 0.1
"""Sampling fraction up to which Pitman's model is preferred (Dankar, El Emam, Neisa and Roffey 2012)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationUniqueness:
    """Estimated numbers of people who are unique in the population, one for each model.

    ``estimate`` is that of ``model``, chosen by the rule of Dankar et al. (2012): Pitman's for samples of at most a tenth of the
    population, otherwise the smaller of Zayatz's and SNB's.
    """

    population: int
    sample: int
    sample_uniques: int
    pitman: float
    zayatz: float
    snb: float

    @property
    def model(self) -> str:
        """The model that the rule chooses."""
        if self.sample <= _SMALL_FRACTION * self.population:
            return "pitman"
        return "zayatz" if self.zayatz < self.snb else "snb"

    @property
    def estimate(self) -> float:
        """The estimated number of people who are unique in the population."""
        return float(getattr(self, self.model))

    @property
    def share(self) -> float:
        """The estimated share of the population that is unique."""
        return self.estimate / self.population

    def __str__(self) -> str:
        return (
            f"about {self.estimate:.4g} of {self.population} people ({100 * self.share:.3g} %) are unique in the population "
            f"by the model of {self.model} (pitman {self.pitman:.4g}, zayatz {self.zayatz:.4g}, snb {self.snb:.4g}); "
            f"{self.sample_uniques} of {self.sample} records are unique in the sample"
        )


def population_uniqueness(table: Table, *, population: int) -> PopulationUniqueness:
    """Estimate how many people are unique in the population from which the table is a random sample.

    Parameters
    ----------
    table : Table
        The sample.
    population : int
        The number of people in the population.

    Examples
    --------
    >>> sample = Table.from_frame({"q": [1, 1, 2, 2, 3, 4, 5, 5, 6, 7]}, quasi_identifiers="q")
    >>> print(round(population_uniqueness(sample, population=20).zayatz, 2))
    4.47
    """
    sizes = table.classes.sizes
    check_count(population=population)
    if population < table.records:
        raise InvalidArgument(
            f"population={population!r} must be at least the number of records of the table, {table.records}."
        )
    uniques = int((sizes == 1).sum())
    known = {"population": population, "sample": table.records, "sample_uniques": uniques}
    if uniques == 0 or population == table.records:  # no record can be unique, or the sample is the population
        return PopulationUniqueness(**known, pitman=float(uniques), zayatz=float(uniques), snb=float(uniques))
    size, count = np.unique(sizes, return_counts=True)
    return PopulationUniqueness(
        **known,
        pitman=pitman_uniques(size, count, population),
        zayatz=zayatz_uniques(size, count, population),
        snb=snb_uniques(size, count, population),
    )


Integers = NDArray[np.int64]


def pitman_uniques(size: Integers, count: Integers, population: int) -> float:
    """Return the expected number of population uniques under the fitted Pitman model.

    With theta and alpha the expectation is exactly N (theta + alpha)_(N-1) / (theta + 1)_(N-1) in rising factorials, which
    Hoshino approximates by Gamma(theta + 1) / Gamma(theta + alpha) N^alpha.

    Parameters
    ----------
    size, count : array
        The class sizes of the sample, and the number of classes of each size.
    population : int
        N.
    """
    if size.max() == 1:  # the likelihood grows towards alpha = 1, where everybody is unique
        return float(population)
    theta, alpha = fit_pitman(size, count)
    return pitman_expected(theta, alpha, population)


def pitman_expected(theta: float, alpha: float, people: int) -> float:
    """Return the expected number of classes of size one among ``people`` under the Pitman sampling formula."""
    logs = gammaln(theta + alpha + people - 1) - gammaln(theta + people) + gammaln(theta + 1) - gammaln(theta + alpha)
    return float(people * np.exp(logs))


def fit_pitman(size: Integers, count: Integers) -> tuple[float, float]:
    """Return the maximum likelihood estimates (theta, alpha) of Pitman's model, 0 <= alpha < 1 and theta > -alpha."""
    score = functools.partial(_pitman_score, size, count)
    # In these coordinates the constraints hold everywhere: alpha = expit(a), theta + alpha = exp(t).
    first = scipy.optimize.minimize(score, np.array([math.log(float(count.sum())), 0.0]), jac=True, method="BFGS")
    polished = scipy.optimize.root(functools.partial(_pitman_gradient, size, count), first.x, tol=1e-12)
    best = polished.x if polished.success and score(polished.x)[0] <= first.fun + 1e-6 else first.x
    alpha = float(expit(best[1]))
    return float(math.exp(best[0]) - alpha), alpha


def _pitman_score(size: Integers, count: Integers, x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return minus the log-likelihood of the Pitman sampling formula, and its gradient, at (log(theta + alpha), logit alpha)."""
    records, classes = float((size * count).sum()), int(count.sum())
    alpha, shifted = float(expit(x[1])), math.exp(min(x[0], 700.0))
    theta = shifted - alpha
    steps = np.arange(1, classes)
    factors = shifted + (steps - 1) * alpha  # theta + i alpha, without cancellation
    value = np.log(factors).sum() - gammaln(theta + records) + gammaln(theta + 1)
    value += (count * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
    by_theta = (1 / factors).sum() - digamma(theta + records) + digamma(theta + 1)
    by_alpha = (steps / factors).sum() - (count * (digamma(size - alpha) - digamma(1 - alpha))).sum()
    slope = alpha * (1 - alpha)
    return -float(value), -np.array([by_theta * shifted, (by_alpha - by_theta) * slope])


def _pitman_gradient(size: Integers, count: Integers, x: NDArray[np.float64]) -> NDArray[np.float64]:
    return _pitman_score(size, count, x)[1]


def zayatz_uniques(size: Integers, count: Integers, population: int) -> float:
    """Return s_1 P(population unique | sample unique) / (n / N), where class sizes are distributed as in the sample.

    A class of j people has exactly one of them in the sample with the hypergeometric probability h(j); hence
    P(population unique | sample unique) = s_1 h(1) / sum_j s_j h(j).

    Parameters
    ----------
    size, count, population
        As for :func:`pitman_uniques`.
    """
    records = int((size * count).sum())
    rest = gammaln(population - size + 1) - gammaln(records) - gammaln(population - size - records + 2)
    whole = gammaln(population + 1) - gammaln(records + 1) - gammaln(population - records + 1)
    possible = population - size >= records - 1
    once = np.where(possible, size * np.exp(rest - whole), 0.0)
    uniques = float(count[size == 1].sum())
    return uniques * uniques * float(once[size == 1].sum()) / float((count * once).sum()) * population / records


def snb_uniques(size: Integers, count: Integers, population: int) -> float:
    """Return the expected number of population uniques under the fitted slide negative binomial model.

    Parameters
    ----------
    size, count, population
        As for :func:`pitman_uniques`.
    """
    shape, chance = fit_snb(size, count, population)
    return float(snb_classes(shape, chance, population) * chance**shape)


def snb_classes(shape: float, chance: float, population: int) -> float:
    """Return the number of classes K for which K classes of mean size 1 + shape (1 - chance) / chance hold everybody."""
    return population / (1 + shape * (1 - chance) / chance)


def fit_snb(size: Integers, count: Integers, population: int) -> tuple[float, float]:
    """Return the maximum likelihood estimates (shape, chance) of the negative binomial part.

    A class of 1 + X people, X ~ NB(shape, chance), of which each is sampled with probability p = n / N, has
    B + Y people in the sample: B ~ Bernoulli(p), and Y ~ NB(shape, chance / (chance + p (1 - chance))), a thinned X. Of the
    K = N / E(1 + X) classes, those without anybody in the sample are not seen; hence the multinomial likelihood
    K! / (K - u)! P(0)^(K - u) prod_m P(m)^s_m.
    """
    fraction = float((size * count).sum()) / population
    loss = functools.partial(_snb_loss, size, count, population, fraction)
    grid = [(a, b) for a in np.linspace(-8.0, 5.0, 27) for b in np.linspace(-10.0, 6.0, 33)]
    start = min(grid, key=loss)
    options: Any = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000}
    found = scipy.optimize.minimize(loss, np.array(start), method="Nelder-Mead", options=options)
    return math.exp(found.x[0]), float(expit(found.x[1]))


def _snb_loss(size: Integers, count: Integers, population: int, fraction: float, x: NDArray[np.float64]) -> float:
    """Return minus the log-likelihood at (log shape, logit chance)."""
    if abs(x[0]) > 30 or abs(x[1]) > 30:
        return math.inf
    shape, chance = math.exp(x[0]), float(expit(x[1]))
    classes, seen = snb_classes(shape, chance, population), int(count.sum())
    if classes < seen:
        return math.inf
    log_of = _log_negative_binomial(shape, chance / (chance + fraction * (1 - chance)))
    unseen = math.log1p(-fraction) + float(log_of(np.zeros(1))[0])
    log_p = np.logaddexp(math.log1p(-fraction) + log_of(size), math.log(fraction) + log_of(size - 1))
    value = gammaln(classes + 1) - gammaln(classes - seen + 1) + (classes - seen) * unseen + (count * log_p).sum()
    return -float(value)


def _log_negative_binomial(shape: float, chance: float) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    def log_of(m: NDArray[Any]) -> NDArray[np.float64]:
        logs = gammaln(m + shape) - gammaln(m + 1) - gammaln(shape) + shape * math.log(chance) + m * math.log1p(-chance)
        return np.asarray(logs)

    return log_of
