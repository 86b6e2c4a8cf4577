"""Queries as mechanisms: rows come and go with their release."""

from __future__ import annotations

import functools
import importlib.util
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from audits.libraries import sql_audits
from dpaudit.adapters import sql
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism.outputs import Raised

MEMORY = functools.partial(sqlite3.connect, ":memory:")
TABLE: dict[str, Any] = {
    "table": "people",
    "columns": ("age", "city"),
    "create": "CREATE TABLE people (age INTEGER, city TEXT)",
}
ALL = "SELECT age, city FROM people ORDER BY age"


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    sql.close_connections()
    assert not sql._connections


def released(data: Any, query: Any = ALL, connect: Any = MEMORY, **options: Any) -> Any:
    (output,) = sql.mechanism(connect, query, **{**TABLE, **options}).sample(data, 1, np.random.default_rng(0))
    return output


@pytest.mark.parametrize(
    "data",
    [
        [(3, "a"), (5, "b")],
        [{"city": "a", "age": 3}, {"age": 5, "city": "b"}],
        pd.DataFrame({"age": [3, 5], "city": ["a", "b"]}),
        [(np.int64(3), np.str_("a")), [5, "b"]],
    ],
    ids=["tuples", "dicts", "frame", "numpy"],
)
def test_rows_of_any_kind_are_loaded_and_names_and_rows_are_the_output(data: Any) -> None:
    assert released(data) == {"columns": ("age", "city"), "rows": [(3, "a"), (5, "b")]}


def test_no_rows_and_rows_of_one_value() -> None:
    assert released([])["rows"] == []
    one = {"columns": ["age"], "create": "CREATE TABLE people (age INTEGER)"}
    assert released([4, 2], "SELECT SUM(age) AS s FROM people", **one) == {"columns": ("s",), "rows": [(6,)]}


def test_several_statements_and_functions() -> None:
    statements = ["CREATE TEMP TABLE t AS SELECT COUNT(*) AS n FROM people", "SELECT n FROM t"]
    mechanism = sql.mechanism(MEMORY, statements, **TABLE)
    for _ in range(2):  # the temporary table is rolled back too
        assert mechanism.sample([(1, "a")], 1, np.random.default_rng(0))[0]["rows"] == [(1,)]
    assert released([(1, "a")], lambda connection: connection.execute("SELECT 7").fetchone()) == (7,)
    assert released([(1, "a")], "DELETE FROM people") == {"columns": (), "rows": []}


@pytest.mark.parametrize("options", [{}, {"isolation_level": None}], ids=["implicit", "autocommit"])
def test_data_of_two_releases_never_mix(tmp_path: Path, options: dict[str, Any]) -> None:
    connect = functools.partial(sqlite3.connect, tmp_path / "data.db", **options)
    mechanism = sql.mechanism(connect, "SELECT COUNT(*) FROM people", **TABLE)
    for size in (3, 0, 2):
        (output,) = mechanism.sample([(1, "a")] * size, 1, np.random.default_rng(0))
        assert output["rows"] == [(size,)]


def test_a_query_that_commits_ends_the_audit() -> None:
    mechanism = sql.mechanism(MEMORY, ["SELECT 1", "COMMIT"], **TABLE)
    mechanism.sample([(1, "a")], 1, np.random.default_rng(0))
    with pytest.raises(MechanismError, match="holds 1 rows before the data are loaded"):
        mechanism.sample([(1, "a")], 1, np.random.default_rng(0))


def test_errors_of_the_database_are_outputs_and_leave_nothing_behind() -> None:
    mechanism = sql.mechanism(MEMORY, "SELECT age / missing FROM people", **TABLE)
    failed = Raised("sqlite3.OperationalError", "no such column: missing")
    assert mechanism.sample([(1, "a")], 2, np.random.default_rng(0)) == [failed, failed]
    strict = sql.mechanism(
        MEMORY, ALL, **{**TABLE, "create": "CREATE TABLE people (age INTEGER CHECK (age < 9), city TEXT)"}
    )
    (output,) = strict.sample([(1, "a"), (10, "b")], 1, np.random.default_rng(0))
    assert output.type == "sqlite3.IntegrityError"
    assert strict.sample([(1, "a")], 1, np.random.default_rng(0))[0]["rows"] == [(1, "a")]


def test_a_lost_connection_is_replaced_for_the_next_release() -> None:
    mechanism = sql.mechanism(MEMORY, lambda connection: connection.close(), **TABLE)
    assert mechanism.sample([(1, "a")], 2, np.random.default_rng(0)) == [None, None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"connect": sqlite3.connect(":memory:")}, "must be a function that makes a connection"),
        ({"query": 7}, "must be a statement"),
        ({"query": []}, "must be a statement"),
        ({"columns": "age"}, "must be a list of names"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    given = {"connect": MEMORY, "query": ALL, **TABLE, **options}
    with pytest.raises(InvalidArgument, match=message):
        sql.mechanism(given.pop("connect"), given.pop("query"), **given)
    if "connect" in options:
        options["connect"].close()


def test_a_row_of_another_width_is_an_error() -> None:
    with pytest.raises(MechanismError, match="has 3 values"):
        released([(1, 2, 3)])


@pytest.mark.parametrize("audit", sql_audits.AUDITS[:2], ids=lambda audit: audit.name)
def test_groups_that_are_read_off_the_data_are_found(audit: dpaudit.Audit) -> None:
    # False-alarm probability of the sound ones: alpha = 1e-6.
    assert pickle.loads(pickle.dumps(audit.mechanism)) == audit.mechanism
    result = audit.run(seed=0, samples=3000)
    assert (result.verdict is dpaudit.Verdict.VIOLATION) == (audit.expect is dpaudit.Verdict.VIOLATION)


@pytest.mark.skipif(importlib.util.find_spec("duckdb") is None, reason="duckdb is not installed")
def test_data_of_two_releases_never_mix_in_duckdb() -> None:
    mechanism = sql.mechanism(sql_audits.duckdb, "SELECT COUNT(*) AS n FROM people", **TABLE)
    for size in (3, 0, 2):
        (output,) = mechanism.sample([(1, "a")] * size, 1, np.random.default_rng(0))
        assert output == {"columns": ("n",), "rows": [(size,)]}
