"""Risk of re-identification of the three attackers of El Emam: prosecutor, journalist and marketer.

With f the number of released records of a class, and F the number of people of the population who fit it
(El Emam, Guide to the De-Identification of Personal Health Information, 2013, chapter 16):

* the *prosecutor* knows that the target is in the release, and picks one of the f records: 1 / f;
* the *journalist* looks for any person, and knows only the population: 1 / F;
* the *marketer* links as many records as possible: of the f records of a class f / F are expected to be right.

Without a population table, the release is taken to be the population (F = f), and the three agree.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit._util.validation import check_open_unit
from dpaudit.anonymity.measure import Measure, MeasureSense, decided
from dpaudit.anonymity.risk.matching import Matches, match_people
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.table import MissingPolicy, Table, describe
from dpaudit.errors import InvalidArgument

THRESHOLD = 1 / 11
"""The largest risk that the European Medicines Agency (Policy 0070) and Health Canada accept; usually written 0.09."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttackerRisk:
    """The risk that one kind of attacker poses.

    ``maximum`` is the risk of the record that is easiest to find, with its class; ``average`` the expected share of records
    that are found; ``above`` the share of records whose risk exceeds ``threshold``.
    """

    attacker: str
    average: float
    maximum: Measure
    above: float
    threshold: float

    def __str__(self) -> str:
        return (
            f"{self.attacker}: average {self.average:.4g}, maximum {self.maximum.value:.4g}, "
            f"{100 * self.above:.4g} % of the records above {self.threshold:.3g}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReidentificationRisk:
    """The result of :func:`reidentification_risk`."""

    prosecutor: AttackerRisk
    journalist: AttackerRisk
    marketer: AttackerRisk
    population: int | None  # the number of people of the population table

    def __str__(self) -> str:
        return "\n".join(map(str, (self.prosecutor, self.journalist, self.marketer)))


def reidentification_risk(
    table: Table,
    population: pd.DataFrame | Matches | None = None,
    *,
    threshold: float = THRESHOLD,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    missing: MissingPolicy = "error",
) -> ReidentificationRisk:
    """Return the risk of each attacker, on average and for the worst record.

    The average is n_classes / n for the prosecutor, the mean of f / F over classes weighted by records (1/n sum f/F) for the
    marketer, and the larger of that and n_classes / sum F for the journalist, who may also start from the population.

    Parameters
    ----------
    table : Table
        The release.
    population : pandas.DataFrame, optional
        Everybody who could be in the release, with the columns of its quasi-identifiers; or their :class:`Matches`.
    threshold : float
        The largest acceptable risk of a record.
    hierarchies, missing
        As for :func:`~dpaudit.anonymity.match_people`.

    Examples
    --------
    >>> release = Table.from_frame({"age": ["20-29"] * 2 + ["30-39"] * 3}, quasi_identifiers="age")
    >>> print(reidentification_risk(release).prosecutor)
    prosecutor: average 0.4, maximum 0.5, 100 % of the records above 0.0909
    >>> everybody = pd.DataFrame({"age": [20, 21, 22, 23, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39]})
    >>> risk = reidentification_risk(release, everybody)
    >>> risk.journalist.maximum.value, round(risk.marketer.average, 6)
    (0.25, 0.16)
    """
    check_open_unit(threshold=threshold)
    sizes = table.classes.sizes
    fitting, people = sizes, None
    if population is not None:
        matches = _matched(table, population, hierarchies, missing)
        fitting, people = people_per_class(matches), matches.people.records
    marketer = math.fsum(sizes / fitting) / table.records
    journalist = max(marketer, len(sizes) / int(fitting.sum()))
    return ReidentificationRisk(
        prosecutor=_risk("prosecutor", table, sizes, len(sizes) / table.records, threshold),
        journalist=_risk("journalist", table, fitting, journalist, threshold),
        marketer=_risk("marketer", table, fitting, marketer, threshold),
        population=people,
    )


def k_map(
    table: Table,
    population: pd.DataFrame | Matches,
    *,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    missing: MissingPolicy = "error",
) -> Measure:
    """Return the smallest number of people of the population who fit a class of the release (Sweeney 2001).

    Parameters
    ----------
    table, population, hierarchies, missing
        As for :func:`reidentification_risk`.

    Examples
    --------
    >>> release = Table.from_frame({"age": ["20-29", "30-39"]}, quasi_identifiers="age")
    >>> k_map(release, pd.DataFrame({"age": [20, 21, 22, 35, 36]})).value
    2
    """
    matches = _matched(table, population, hierarchies, missing)
    return decided("k-map", MeasureSense.AT_LEAST, table, people_per_class(matches))


@dataclass(frozen=True, slots=True, eq=False)
class Presence:
    """The probabilities of delta-presence: of a person of the population, to be in the release.

    ``upper`` is the largest, with the class that decides it. ``lower`` is the smallest; it is 0 if some people fit no class,
    because the observer then knows that they are absent. ``absent`` is the number of these people.
    """

    lower: float
    upper: Measure
    absent: int

    def meets(self, lower: float, upper: float) -> bool:
        """Return True if every probability lies in [lower, upper]."""
        return self.lower >= lower - 1e-12 and self.upper.meets(upper)

    def __str__(self) -> str:
        return f"presence between {self.lower:.4g} and {self.upper.value:.4g} ({self.absent} people certainly absent)"


def delta_presence(
    table: Table,
    population: pd.DataFrame | Matches,
    *,
    hierarchies: Mapping[Hashable, Hierarchy] | None = None,
    missing: MissingPolicy = "error",
) -> Presence:
    """Return how surely an observer knows that a person is in the release, or is not (Nergiz, Atzori and Clifton 2007).

    A person who fits one class is in the release with probability f / F. If a person fits several classes, the classes overlap
    and this is not the probability: then the function refuses.

    Parameters
    ----------
    table, population, hierarchies, missing
        As for :func:`reidentification_risk`.

    Examples
    --------
    >>> release = Table.from_frame({"age": ["20-29", "20-29", "30-39"]}, quasi_identifiers="age")
    >>> print(delta_presence(release, pd.DataFrame({"age": [20, 21, 22, 23, 35, 36, 37, 50]})))
    presence between 0 and 0.5 (1 people certainly absent)
    """
    matches = _matched(table, population, hierarchies, missing)
    fitting = people_per_class(matches)
    several = matches.classes_per_group > 1
    if several.any():
        group = int(several.argmax())
        first, second = matches.class_[matches.group == group][:2].tolist()
        raise InvalidArgument(
            f"delta_presence: people with {describe(matches.people.key(group))} fit class {first + 1} and class {second + 1} of "
            "the release; presence is defined for classes that do not overlap."
        )
    shares = table.classes.sizes / fitting
    alone = matches.classes_per_group == 0
    absent = int(matches.people.classes.sizes[alone].sum())
    upper = decided("delta-presence", MeasureSense.AT_MOST, table, shares)
    return Presence(0.0 if absent else float(shares.min()), upper, absent)


def people_per_class(matches: Matches) -> NDArray[np.int64]:
    """Return how many people fit each class, after checking that the population contains everybody in the release."""
    fitting, sizes = matches.people_per_class, matches.table.classes.sizes
    short = fitting < sizes
    if short.any():
        index = int(short.argmax())
        raise InvalidArgument(
            f"population: class {index + 1} of the release ({describe(matches.table.key(index))}) has {sizes[index]} records, "
            f"but {fitting[index]} people of the population fit it. The population must contain everybody in the release; "
            "audit_release finds cells that do not contain their original value."
        )
    return fitting


def _matched(
    table: Table,
    population: pd.DataFrame | Matches,
    hierarchies: Mapping[Hashable, Hierarchy] | None,
    missing: MissingPolicy,
) -> Matches:
    if isinstance(population, Matches):
        return population
    return match_people(table, population, hierarchies=hierarchies, missing=missing)


def _risk(attacker: str, table: Table, fitting: NDArray[np.int64], average: float, threshold: float) -> AttackerRisk:
    risks = 1.0 / fitting
    above = int(table.classes.sizes[risks > threshold + 1e-12].sum()) / table.records
    maximum = decided(f"{attacker} risk", MeasureSense.AT_MOST, table, risks)
    return AttackerRisk(attacker=attacker, average=average, maximum=maximum, above=above, threshold=threshold)
