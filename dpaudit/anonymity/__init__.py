"""Measures of published tables: k-anonymity, l-diversity, t-closeness, (n, epsilon)-closeness.

>>> from dpaudit import anonymity
>>> table = anonymity.lecture_notes().table
>>> print(anonymity.t_closeness(table, exact=True))
t-closeness (tv) of system = 5/9 (0.555556): class 2 (plz=2600-3199, points=35-45), records 4, 5, 6

None of these measures bounds what an observer learns about a person from their presence in the table. Differential privacy
does; it is a property of a mechanism, not of a table.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.anonymity.closeness import n_epsilon_closeness, n_t_closeness, partition_closeness
    from dpaudit.anonymity.distance.distances import (
        Distance,
        KullbackLeibler,
        Norm,
        chi_square,
        hellinger,
        jensen_shannon,
        kullback_leibler,
        l1,
        l2,
        maximum,
        power_sum,
        variational,
    )
    from dpaudit.anonymity.distance.emd import EarthMovers, Equal, Ordered
    from dpaudit.anonymity.full_domain import full_domain
    from dpaudit.anonymity.measure import Measure, MeasureSense
    from dpaudit.anonymity.measures import (
        AlphaK,
        alpha_k_anonymity,
        average_class_size,
        beta_likeness,
        delta_disclosure,
        discernibility,
        k_anonymity,
        l_diversity,
        recursive_diversity,
        recursive_level,
        t_closeness,
    )
    from dpaudit.anonymity.partitioning import Anonymised, mondrian
    from dpaudit.anonymity.release import Mismatch, ReleaseAudit, audit_release
    from dpaudit.anonymity.risk.assessment import Sources, assess
    from dpaudit.anonymity.risk.linkage import Disclosure, Linkage, link_records
    from dpaudit.anonymity.risk.matching import Matches, match_people
    from dpaudit.anonymity.risk.picture import picture
    from dpaudit.anonymity.risk.population import PopulationUniqueness, population_uniqueness
    from dpaudit.anonymity.risk.reidentification import (
        AttackerRisk,
        Presence,
        ReidentificationRisk,
        delta_presence,
        k_map,
        reidentification_risk,
    )
    from dpaudit.anonymity.risk.releases import Differencing, MInvariance, differencing, m_invariance
    from dpaudit.anonymity.risk.report import html_report
    from dpaudit.anonymity.risk.traces import Unicity, unicity
    from dpaudit.anonymity.risk.uniqueness import Uniqueness, uniqueness, uniqueness_by_columns
    from dpaudit.anonymity.tables.cells import MISSING, SUPPRESSED
    from dpaudit.anonymity.tables.examples import lecture_notes
    from dpaudit.anonymity.tables.hierarchy import Hierarchy, Intervals, Prefixes, Suppression, Taxonomy, generalise
    from dpaudit.anonymity.tables.reading import read_frame
    from dpaudit.anonymity.tables.regions import covers
    from dpaudit.anonymity.tables.table import Table, uniform_prior
    from dpaudit.anonymity.utility import (
        InformationLoss,
        Suppressed,
        classification_metric,
        information_loss,
        suppressed,
    )

# Loaded on first use (PEP 562): the command line can name its options without pandas.
_HOME = {
    "tables.cells": ("MISSING", "SUPPRESSED"),
    "closeness": ("n_epsilon_closeness", "n_t_closeness", "partition_closeness"),
    "distance.distances": (
        "Distance",
        "KullbackLeibler",
        "Norm",
        "chi_square",
        "hellinger",
        "jensen_shannon",
        "kullback_leibler",
        "l1",
        "l2",
        "maximum",
        "power_sum",
        "variational",
    ),
    "distance.emd": ("EarthMovers", "Equal", "Ordered"),
    "tables.examples": ("lecture_notes",),
    "tables.hierarchy": ("Hierarchy", "Intervals", "Prefixes", "Suppression", "Taxonomy", "generalise"),
    "measure": ("Measure", "MeasureSense"),
    "measures": (
        "AlphaK",
        "alpha_k_anonymity",
        "average_class_size",
        "beta_likeness",
        "delta_disclosure",
        "discernibility",
        "k_anonymity",
        "l_diversity",
        "recursive_diversity",
        "recursive_level",
        "t_closeness",
    ),
    "partitioning": ("Anonymised", "mondrian"),
    "tables.reading": ("read_frame",),
    "tables.regions": ("covers",),
    "release": ("Mismatch", "ReleaseAudit", "audit_release"),
    "risk.linkage": ("Disclosure", "Linkage", "link_records"),
    "risk.matching": ("Matches", "match_people"),
    "risk.population": ("PopulationUniqueness", "population_uniqueness"),
    "risk.reidentification": (
        "AttackerRisk",
        "Presence",
        "ReidentificationRisk",
        "delta_presence",
        "k_map",
        "reidentification_risk",
    ),
    "risk.releases": ("Differencing", "MInvariance", "differencing", "m_invariance"),
    "risk.traces": ("Unicity", "unicity"),
    "risk.uniqueness": ("Uniqueness", "uniqueness", "uniqueness_by_columns"),
    "full_domain": ("full_domain",),
    "utility": ("InformationLoss", "Suppressed", "classification_metric", "information_loss", "suppressed"),
    "risk.assessment": ("Sources", "assess"),
    "risk.picture": ("picture",),
    "risk.report": ("html_report",),
    "tables.table": ("Table", "uniform_prior"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "MISSING",
    "SUPPRESSED",
    "AlphaK",
    "Anonymised",
    "AttackerRisk",
    "Differencing",
    "Disclosure",
    "Distance",
    "EarthMovers",
    "Equal",
    "Hierarchy",
    "InformationLoss",
    "Intervals",
    "KullbackLeibler",
    "Linkage",
    "MInvariance",
    "Matches",
    "Measure",
    "MeasureSense",
    "Mismatch",
    "Norm",
    "Ordered",
    "PopulationUniqueness",
    "Prefixes",
    "Presence",
    "ReidentificationRisk",
    "ReleaseAudit",
    "Sources",
    "Suppressed",
    "Suppression",
    "Table",
    "Taxonomy",
    "Unicity",
    "Uniqueness",
    "alpha_k_anonymity",
    "assess",
    "audit_release",
    "average_class_size",
    "beta_likeness",
    "chi_square",
    "classification_metric",
    "covers",
    "delta_disclosure",
    "delta_presence",
    "differencing",
    "discernibility",
    "full_domain",
    "generalise",
    "hellinger",
    "html_report",
    "information_loss",
    "jensen_shannon",
    "k_anonymity",
    "k_map",
    "kullback_leibler",
    "l1",
    "l2",
    "l_diversity",
    "lecture_notes",
    "link_records",
    "m_invariance",
    "match_people",
    "maximum",
    "mondrian",
    "n_epsilon_closeness",
    "n_t_closeness",
    "partition_closeness",
    "picture",
    "population_uniqueness",
    "power_sum",
    "read_frame",
    "recursive_diversity",
    "recursive_level",
    "reidentification_risk",
    "suppressed",
    "t_closeness",
    "unicity",
    "uniform_prior",
    "uniqueness",
    "uniqueness_by_columns",
    "variational",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE})
