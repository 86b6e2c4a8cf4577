"""Estimators of population uniqueness against published values, brute force and simulated populations."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from dpaudit.anonymity import Table, population_uniqueness
from dpaudit.anonymity.risk.population import (
    _log_negative_binomial,
    _pitman_score,
    _snb_loss,
    fit_pitman,
    fit_snb,
    pitman_expected,
    pitman_uniques,
    snb_classes,
    snb_uniques,
    zayatz_uniques,
)
from dpaudit.errors import InvalidArgument

# Classes of each size in data/adult.csv of ARX (github.com/arx-deidentifier/arx, commit aacd487), which is the training part of
# the UCI data set Adult without incomplete rows; quasi-identifiers are all nine columns, as in ARX's TestRiskMetrics.java.
ADULT = {
    1: 15512, 2: 2098, 3: 754, 4: 375, 5: 189, 6: 155, 7: 97, 8: 73, 9: 39, 10: 37, 11: 29, 12: 18, 13: 23, 14: 14, 15: 15,
    16: 9, 17: 11, 18: 10, 19: 10, 20: 5, 21: 3, 22: 4, 23: 3, 24: 2, 25: 1, 26: 3, 27: 5, 29: 1, 30: 2, 32: 1, 34: 1, 35: 1,
    36: 1, 45: 1,
}  # fmt: skip
SIZE, COUNT = (np.array(part) for part in (list(ADULT), list(ADULT.values())))
RECORDS = 30162


def adult():
    of_record = np.repeat(np.arange(COUNT.sum()), np.repeat(SIZE, COUNT))
    return Table.from_frame({"q": of_record}, quasi_identifiers="q")


@pytest.mark.parametrize(("population", "published"), [(301_620, 0.27684993883653597), (3_016_200, 0.1446083531167384)])
def test_pitman_equals_the_published_value(population, published):
    """ARX's TestRiskMetrics.testDecisionRule2. ARX uses Hoshino's approximation of the expectation, which differs by 0.3 %."""
    theta, alpha = fit_pitman(SIZE, COUNT)
    approximate = math.exp(math.lgamma(theta + 1) - math.lgamma(theta + alpha)) * population**alpha
    assert approximate / population == pytest.approx(published, rel=1e-9)
    assert pitman_uniques(SIZE, COUNT, population) / population == pytest.approx(published, rel=4e-3)


@pytest.mark.parametrize(("population", "published"), [(301_620, 0.3207402393466189), (150_810, 0.3577099234829125)])
def test_zayatz_equals_the_published_value(population, published):
    assert zayatz_uniques(SIZE, COUNT, population) / population == pytest.approx(published, rel=1e-9)


def test_the_rule_of_dankar_chooses_as_arx():
    table = adult()
    assert table.records == RECORDS
    assert len(table.classes) / table.records == pytest.approx(0.6465751607983555, rel=1e-15)  # ARX: average risk
    tenth, fifth = (population_uniqueness(table, population=n) for n in (301_620, 150_810))
    assert (tenth.model, fifth.model) == ("pitman", "zayatz")
    assert fifth.share == pytest.approx(0.3577099234829125, rel=1e-9)
    assert "by the model of pitman" in str(tenth)
    whole = population_uniqueness(table, population=RECORDS)
    assert whole.pitman == whole.zayatz == whole.snb == 15512


def test_zayatz_with_the_hypergeometric_distribution_of_scipy():
    size, count, population = np.array([1, 2, 5]), np.array([6, 3, 1]), 40
    once = scipy.stats.hypergeom(population, size, 17).pmf(1)
    expected = 6 * (6 * once[0] / (count * once).sum()) * population / 17
    assert zayatz_uniques(size, count, population) == pytest.approx(expected, rel=1e-12)


def set_partitions(people):
    """All partitions of the people into classes, as lists of class sizes."""
    if people == 0:
        yield []
        return
    for part in set_partitions(people - 1):
        for index in range(len(part)):
            yield [*part[:index], part[index] + 1, *part[index + 1 :]]
        yield [*part, 1]


def pitman_probability(sizes, theta, alpha):
    """The Pitman sampling formula for one set partition, with Fractions."""
    p = Fraction(1)
    for index in range(1, len(sizes)):
        p *= theta + index * alpha
    for i in range(1, sum(sizes)):
        p /= theta + i
    for size in sizes:
        for i in range(1, size):
            p *= i - alpha
    return p


@pytest.mark.parametrize(("theta", "alpha"), [(Fraction(2), Fraction(1, 3)), (Fraction(-1, 4), Fraction(3, 4))])
def test_expected_uniques_of_pitman_by_enumeration(theta, alpha):
    people = 7
    partitions = list(set_partitions(people))
    assert sum(pitman_probability(sizes, theta, alpha) for sizes in partitions) == 1
    expected = sum(pitman_probability(sizes, theta, alpha) * sizes.count(1) for sizes in partitions)
    assert pitman_expected(float(theta), float(alpha), people) == pytest.approx(float(expected), rel=1e-12)


def test_pitman_likelihood_by_enumeration_and_its_maximum_on_a_grid():
    sizes = [1, 1, 1, 1, 2, 2, 4]
    size, count = np.array([1, 2, 4]), np.array([4, 2, 1])

    def loss(theta, alpha):
        return _pitman_score(size, count, np.array([math.log(theta + alpha), math.log(alpha / (1 - alpha))]))

    for theta, alpha in ((2.0, 0.25), (0.5, 0.75), (-0.25, 0.5)):
        expected = pitman_probability(sizes, Fraction(theta), Fraction(alpha))
        assert -loss(theta, alpha)[0] == pytest.approx(math.log(expected), rel=1e-12)
        x = np.array([math.log(theta + alpha), math.log(alpha / (1 - alpha))])
        for axis in (0, 1):
            step = np.eye(2)[axis] * 1e-6
            slope = (_pitman_score(size, count, x + step)[0] - _pitman_score(size, count, x - step)[0]) / 2e-6
            assert slope == pytest.approx(loss(theta, alpha)[1][axis], rel=1e-5, abs=1e-7)
    best = loss(*fit_pitman(size, count))[0]
    grid = itertools.product(np.geomspace(0.01, 50, 60), np.linspace(0.01, 0.99, 60))
    assert best <= min(loss(theta, alpha)[0] for theta, alpha in grid) + 1e-9


def test_thinning_of_the_negative_binomial():
    """P(m) of the sample by summing over the population sizes, with scipy's distributions."""
    shape, chance, fraction = 0.7, 0.3, 0.4
    sizes = np.arange(1, 400)
    weights = scipy.stats.nbinom(shape, chance).pmf(sizes - 1)
    log_of = _log_negative_binomial(shape, chance / (chance + fraction * (1 - chance)))
    for m in range(6):
        expected = (weights * scipy.stats.binom(sizes, fraction).pmf(m)).sum()
        direct = (1 - fraction) * math.exp(log_of(np.array([m]))[0])
        direct += fraction * math.exp(log_of(np.array([m - 1]))[0]) if m else 0.0
        assert direct == pytest.approx(expected, rel=1e-10)


def test_snb_finds_the_parameters_of_its_own_expectations():
    """Counts equal to their expectations (up to rounding) have their maximum at the parameters."""
    shape, chance, population, fraction = 0.5, 0.2, 3_000_000, 0.3
    classes = snb_classes(shape, chance, population)
    sizes = np.arange(1, 2000)
    weights = scipy.stats.nbinom(shape, chance).pmf(sizes - 1)
    size = np.arange(1, 60)
    count = np.rint([classes * (weights * scipy.stats.binom(sizes, fraction).pmf(m)).sum() for m in size]).astype(int)
    size, count = size[count > 0], count[count > 0]
    found = fit_snb(size, count, population)
    assert found == pytest.approx((shape, chance), rel=1e-2)
    assert snb_uniques(size, count, population) == pytest.approx(classes * chance**shape, rel=2e-3)
    grid = itertools.product(np.linspace(-2, 1, 25), np.linspace(-3, 0, 25))
    p = float((size * count).sum()) / population
    best = _snb_loss(size, count, population, p, np.array([math.log(found[0]), math.log(found[1] / (1 - found[1]))]))
    assert best <= min(_snb_loss(size, count, population, p, np.array(x)) for x in grid) + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_a_population_of_the_slide_negative_binomial_model(seed):
    rng = np.random.default_rng(seed)
    sizes = 1 + rng.negative_binomial(0.6, 0.25, 40_000)
    people = np.repeat(np.arange(len(sizes)), sizes)
    truth = int((sizes == 1).sum())
    sample = rng.choice(people, len(people) // 4, replace=False)
    found = population_uniqueness(Table.from_frame({"q": sample}, quasi_identifiers="q"), population=len(people))
    assert found.snb == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_a_population_of_pitmans_model(seed):
    """Simulated as the Chinese restaurant process: a newcomer opens a class, or joins one, with the model's probabilities."""
    rng = np.random.default_rng(seed)
    theta, alpha, people = 100.0, 0.6, 40_000
    class_of, sizes = [0], [1]
    for i in range(1, people):
        if rng.random() < (theta + alpha * len(sizes)) / (theta + i):
            class_of.append(len(sizes))
            sizes.append(1)
            continue
        # A class is joined in proportion to its size less alpha: propose in proportion to the size, and reject.
        while True:
            proposed = class_of[int(rng.integers(i))]
            if rng.random() < 1 - alpha / sizes[proposed]:
                break
        class_of.append(proposed)
        sizes[proposed] += 1
    truth = sizes.count(1)
    sample = rng.choice(class_of, people // 20, replace=False)
    found = population_uniqueness(Table.from_frame({"q": sample}, quasi_identifiers="q"), population=people)
    assert found.model == "pitman"
    assert found.estimate == pytest.approx(truth, rel=0.25)


def test_edges():
    unique = Table.from_frame({"q": range(10)}, quasi_identifiers="q")
    assert population_uniqueness(unique, population=100).pitman == 100
    pairs = Table.from_frame({"q": [1, 1, 2, 2]}, quasi_identifiers="q")
    assert population_uniqueness(pairs, population=100).estimate == 0
    with pytest.raises(InvalidArgument, match="population=3 must be at least"):
        population_uniqueness(pairs, population=3)
