"""Noisy counts by group in SQLite and, where it is installed, DuckDB: groups read off the data, and groups known before."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import random
import sqlite3
from typing import Any

from dpaudit import Audit, PureDP, Relation, Verdict, neighbours
from dpaudit.adapters import sql

INSTALLED = importlib.util.find_spec("duckdb") is not None

PAIRS = [([("north",)], [("north",), ("north",)]), ([("north",)], [("north",), ("west",)])]
PRESENT = "SELECT region, COUNT(*) + laplace() FROM people GROUP BY region ORDER BY region"
KNOWN = (
    "SELECT g.region, COUNT(p.region) + laplace() FROM (SELECT 'north' AS region UNION SELECT 'west') AS g "
    "LEFT JOIN people AS p ON p.region = g.region GROUP BY g.region ORDER BY g.region"
)


def laplace() -> float:
    return random.expovariate(1.0) - random.expovariate(1.0)


def sqlite() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.create_function("laplace", 0, laplace)
    return connection


def duckdb() -> Any:
    library: Any = importlib.import_module("duckdb")
    connection = library.connect(":memory:")
    connection.create_function("laplace", laplace, [], "DOUBLE", side_effects=True)
    return connection


def define(connect: Any, name: str, query: str, expect: Verdict, samples: int) -> Audit:
    return Audit(
        name=f"sql-{connect.__name__}-{name}",
        mechanism=sql.mechanism(
            connect, query, table="people", columns=["region"], create="CREATE TABLE people (region TEXT)"
        ),
        claim=PureDP(1.0, Relation.ADD_REMOVE),
        neighbours=functools.partial(neighbours.fixed, PAIRS, relation=Relation.ADD_REMOVE),
        options={"samples": samples, "shrink": False},
        expect=expect,
    )


AUDITS = [
    define(sqlite, "groups-present", PRESENT, Verdict.VIOLATION, 40_000),
    define(sqlite, "groups-known", KNOWN, Verdict.NO_VIOLATION_FOUND, 40_000),
]
if INSTALLED:  # a transaction takes some ten milliseconds, so only what is found early
    AUDITS.append(define(duckdb, "groups-present", PRESENT, Verdict.VIOLATION, 4_000))
