"""One assessment of the risk of a table: a plain document from which text, HTML and pictures are made.

The sections follow the three questions of the Article 29 Working Party (Opinion 05/2014 on anonymisation techniques): can a
person be singled out, can records be linked, and can something be inferred about a person?
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.anonymity.risk.linkage import link_records
from dpaudit.anonymity.risk.matching import match_people
from dpaudit.anonymity.risk.population import population_uniqueness
from dpaudit.anonymity.risk.reidentification import (
    THRESHOLD,
    AttackerRisk,
    delta_presence,
    k_map,
    reidentification_risk,
)
from dpaudit.anonymity.risk.releases import differencing, m_invariance
from dpaudit.anonymity.risk.uniqueness import uniqueness, uniqueness_by_columns
from dpaudit.anonymity.tables.cells import as_text
from dpaudit.anonymity.tables.hierarchy import Hierarchy
from dpaudit.anonymity.tables.table import MissingPolicy, Table
from dpaudit.anonymity.utility import classification_metric, information_loss, suppressed
from dpaudit.errors import InvalidArgument

REQUIREMENTS = (
    "max-risk", "average-risk", "journalist-risk", "marketer-risk", "unique", "population-unique", "k-map", "presence",
    "singled-out", "linked-disclosed", "disclosed", "m-invariance", "loss", "suppressed",
)  # fmt: skip
"""Limits that may be set: at most the given value, except of k-map and m-invariance, which must be at least that."""
_AT_LEAST = ("k-map", "m-invariance")
_NEEDS = {
    "journalist-risk": "--population", "marketer-risk": "--population", "k-map": "--population", "presence": "--population",
    "population-unique": "--population-size", "singled-out": "--external", "linked-disclosed": "--external and --sensitive",
    "disclosed": "--earlier and --sensitive", "m-invariance": "--earlier and --sensitive", "loss": "--original",
}  # fmt: skip
_COMBINATIONS = 8
"""Number of combinations of quasi-identifiers in the document."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sources:
    """The tables that an assessment may use beside the release itself."""

    population: pd.DataFrame | None = None  # everybody who could be in the release
    population_size: int | None = None  # or only how many they are
    external: pd.DataFrame | None = None  # people whom the attacker knows by name
    truth: Sequence[int | None] | None = None  # for each of them the position of their record
    everyone: bool = False  # the attacker knows that all of them are in the release
    earlier: Sequence[Table] = ()  # earlier releases, with people as index
    original: pd.DataFrame | None = None  # the table that the release was made from
    released: pd.DataFrame | None = None  # the release as a data frame, for the comparison with the original
    hierarchies: Mapping[Hashable, Hierarchy] = field(default_factory=dict)
    match: str = "position"
    missing: MissingPolicy = "error"


def assess(
    table: Table,
    *,
    name: str = "table",
    sources: Sources | None = None,
    threshold: float = THRESHOLD,
    require: Mapping[str, float | Fraction] | None = None,
) -> dict[str, Any]:
    """Return all measures of the risk of a release, as a document of plain values.

    Parameters
    ----------
    table : Table
        The release.
    name : str
        What the report calls it.
    sources : Sources, optional
        Other tables; what needs one that is not given is left out.
    threshold : float
        The largest acceptable risk of a record.
    require : mapping, optional
        Values that must be met, by the names of ``REQUIREMENTS``.

    Examples
    --------
    >>> release = Table.from_frame({"age": ["20-29"] * 2 + ["30-39"] * 3}, quasi_identifiers="age")
    >>> document = assess(release, require={"max-risk": 0.5})
    >>> document["attackers"][0]["average"], document["met"]
    (0.4, True)
    """
    given = sources or Sources()
    values: dict[str, float] = {}
    document: dict[str, Any] = {
        "schema": "dpaudit.risk/1",
        "table": name,
        "records": table.records,
        "classes": len(table.classes),
        "quasi_identifiers": [str(column.name) for column in table.quasi_identifiers],
        "sensitive": [str(column.name) for column in table.sensitive],
        "threshold": threshold,
        **_singling_out(table, given, threshold, values),
        **_linkage(table, given, values),
        **_inference(table, given, values),
        **_cost(table, given, values),
    }
    document["requirements"] = [_requirement(key, bound, values) for key, bound in (require or {}).items()]
    document["met"] = all(entry["met"] for entry in document["requirements"])
    return document


def _singling_out(table: Table, given: Sources, threshold: float, values: dict[str, float]) -> dict[str, Any]:
    matches = None
    if given.population is not None:
        matches = match_people(table, given.population, hierarchies=given.hierarchies, missing=given.missing)
    risk = reidentification_risk(table, matches, threshold=threshold)
    attackers = [risk.prosecutor] + ([] if matches is None else [risk.journalist, risk.marketer])
    whole = uniqueness(table)
    size, count = np.unique(table.classes.sizes, return_counts=True)
    largest = None if len(table.quasi_identifiers) <= 10 else 2
    values |= {
        "max-risk": float(risk.prosecutor.maximum.value),
        "average-risk": risk.prosecutor.average,
        "unique": whole.share,
    }
    found: dict[str, Any] = {
        "attackers": [_attacker(entry) for entry in attackers],
        "class_sizes": [[int(s), int(c)] for s, c in zip(size, count, strict=True)],
        "uniqueness": {
            "unique": whole.unique,
            "share": whole.share,
            "combinations": [
                {
                    "columns": [str(column) for column in entry.columns],
                    "unique": entry.unique,
                    "share": entry.share,
                    "distinction": entry.distinction,
                    "separation": entry.separation,
                }
                for entry in uniqueness_by_columns(table, largest=largest)[:_COMBINATIONS]
            ],
        },
    }
    if matches is not None:
        values |= {"journalist-risk": float(risk.journalist.maximum.value), "marketer-risk": risk.marketer.average}
        found["population"] = risk.population
        found["k_map"] = int(k_map(table, matches).value)
        values["k-map"] = found["k_map"]
        if (matches.classes_per_group <= 1).all():
            presence = delta_presence(table, matches)
            upper = float(presence.upper.value)
            found["presence"] = {"lower": presence.lower, "upper": upper, "absent": presence.absent}
            values["presence"] = upper
    if given.population_size is not None:
        estimate = population_uniqueness(table, population=given.population_size)
        values["population-unique"] = estimate.share
        found["population_uniqueness"] = {
            "population": estimate.population,
            "model": estimate.model,
            "estimate": estimate.estimate,
            "share": estimate.share,
            "pitman": estimate.pitman,
            "zayatz": estimate.zayatz,
            "snb": estimate.snb,
        }
    return found


def _attacker(risk: AttackerRisk) -> dict[str, Any]:
    table, index = risk.maximum.table, risk.maximum.deciding_class
    return {
        "attacker": risk.attacker,
        "average": risk.average,
        "maximum": float(risk.maximum.value),
        "above": risk.above,
        "class": index + 1,
        "size": int(table.classes.sizes[index]),
        "key": {str(name): as_text(value) for name, value in table.key(index).items()},
    }


def _linkage(table: Table, given: Sources, values: dict[str, float]) -> dict[str, Any]:
    if given.external is None:
        return {}
    attack = link_records(
        table,
        given.external,
        truth=given.truth,
        everyone=given.everyone,
        hierarchies=given.hierarchies,
        missing=given.missing,
    )
    values["singled-out"] = attack.singled_out if attack.right is None else attack.right
    if attack.disclosures:
        values["linked-disclosed"] = max(d.disclosed if d.right is None else d.right for d in attack.disclosures)
    return {
        "linkage": {
            "people": attack.people,
            "linked": attack.linked,
            "singled_out": attack.singled_out,
            "expected": attack.expected,
            "everyone": given.everyone,
            "present": attack.present,
            "right": attack.right,
            "missed": attack.missed,
            "disclosures": [
                {"attribute": str(d.attribute), "disclosed": d.disclosed, "right": d.right, "baseline": d.baseline}
                for d in attack.disclosures
            ],
        }
    }


def _inference(table: Table, given: Sources, values: dict[str, float]) -> dict[str, Any]:
    from dpaudit.anonymity.measures import l_diversity, t_closeness

    found: dict[str, Any] = {"inference": []}
    for column in table.sensitive:
        diversity = l_diversity(table, column.name)
        alone = table.classes.sizes[np.asarray(diversity.per_class) == 1]
        found["inference"].append(
            {
                "attribute": str(column.name),
                "disclosed": int(alone.sum()),
                "share": int(alone.sum()) / table.records,
                "l": int(diversity.value),
                "t": float(t_closeness(table, column.name).value),
            }
        )
    if given.earlier and table.sensitive:
        releases = [*given.earlier, table]
        entries: list[dict[str, Any]] = []
        for column in table.sensitive:
            invariance, attack = m_invariance(releases, column.name), differencing(releases, column.name)
            entries.append(
                {
                    "attribute": str(column.name),
                    "m": invariance.m,
                    "changed": invariance.changed,
                    "repeated": invariance.repeated,
                    "people": attack.people,
                    "alone": list(attack.alone),
                    "disclosed": len(attack.disclosed),
                    "undecided": attack.undecided,
                }
            )
        values["disclosed"] = max(entry["disclosed"] for entry in entries)
        values["m-invariance"] = min(entry["m"] for entry in entries)
        found["releases"] = entries
    return found


def _cost(table: Table, given: Sources, values: dict[str, float]) -> dict[str, Any]:
    withheld = 0 if given.original is None else max(len(given.original) - table.records, 0)
    stars = suppressed(table, withheld=withheld)
    values["suppressed"] = stars.share
    cost: dict[str, Any] = {
        "withheld": withheld,
        "suppressed_records": stars.records,
        "suppressed_share": stars.share,
        "suppressed_cells": stars.cells,
        "classification": {
            str(column.name): classification_metric(table, column.name, withheld=withheld) for column in table.sensitive
        },
    }
    if given.original is not None and given.released is not None:
        loss = information_loss(
            given.original,
            given.released,
            quasi_identifiers=[column.name for column in table.quasi_identifiers],
            hierarchies=given.hierarchies,
            match=given.match,
            missing=given.missing,
        )
        values["loss"] = loss.granularity
        cost["granularity"], cost["entropy"] = loss.granularity, loss.entropy
        cost["granularity_by_column"] = {str(column): lost for column, lost in loss.granularity_by_column.items()}
    return {"cost": cost}


def _requirement(name: str, bound: float | Fraction, values: Mapping[str, float]) -> dict[str, Any]:
    if name not in values:
        reason = (
            f"needs {_NEEDS[name]}" if name != "presence" else "needs --population, and classes that do not overlap"
        )
        raise InvalidArgument(f"--require {name}={float(bound):g}: this {reason}.")
    value, limit = values[name], float(bound)
    if limit < 0 or (name in _AT_LEAST and limit < 1):
        raise InvalidArgument(f"--require {name}={limit:g} must be at least {1 if name in _AT_LEAST else 0}.")
    met = value >= limit - 1e-12 if name in _AT_LEAST else value <= limit + 1e-12
    sense = ">=" if name in _AT_LEAST else "<="
    return {"name": name, "value": value, "sense": sense, "required": limit, "met": bool(met)}
