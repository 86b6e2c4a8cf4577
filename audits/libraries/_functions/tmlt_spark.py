"""Measurements of Tumult Core on Spark, which takes a second for a query, however many groups it has.

Every release is one group of a query by group, and every group holds the same rows: a person is in one group, and its noise is
its own.
"""

from __future__ import annotations

import functools
import os
import sys

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from tmlt.core.domains.spark_domains import SparkDataFrameDomain, SparkIntegerColumnDescriptor
from tmlt.core.measurements import aggregations
from tmlt.core.measures import PureDP
from tmlt.core.metrics import SymmetricDifference
from tmlt.core.transformations.spark_transformations.groupby import GroupBy

MOST = 2048  # groups in one query
GEOMETRIC, LAPLACE = aggregations.NoiseMechanism.GEOMETRIC, aggregations.NoiseMechanism.LAPLACE
AGES = {"measure_column": "age", "lower": 0, "upper": 10}
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.ui.showConsoleProgress": "false"}
builder = SparkSession.builder.master("local[1]")
for setting, value in settings.items():
    builder = builder.config(setting, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def table_of(rows, *names):
    schema = StructType([StructField(name, LongType(), False) for name in names])
    return spark.createDataFrame(rows, schema).coalesce(1).cache()


@functools.cache
def measurement(create, groups, options):
    """Return a measurement by group, with epsilon 1 for a person."""
    domain = SparkDataFrameDomain({name: SparkIntegerColumnDescriptor() for name in ("release", "age")})
    keys = table_of([(group,) for group in range(groups)], "release")
    by_group = GroupBy(domain, SymmetricDifference(), use_l2=False, group_keys=keys)
    return create(domain, SymmetricDifference(), PureDP(), 1, groupby_transformation=by_group, **dict(options))


@functools.lru_cache(maxsize=8)
def copies(ages, groups):
    return table_of([(group, age) for group in range(groups) for age in ages], "release", "age")


def releases(name, options, data, size):
    """Release an aggregate of ages, or a pair of them, as often as asked for; the noise has entropy of its own."""
    found = []
    while len(found) < size:
        groups = min(MOST, 1 << (size - len(found) - 1).bit_length())  # few numbers, as each needs a measurement
        made = measurement(getattr(aggregations, name), groups, options)
        rows = made(copies(tuple(data), groups)).collect()
        answers = {
            row["release"]: [float(value) for key, value in row.asDict().items() if key != "release"] for row in rows
        }
        found += [answers[group] for group in range(groups)]
    return found[:size]


def define(name, **options):
    def release(data, size, _):
        return releases(name, tuple(options.items()), data, size)

    return release


spark_count = define("create_count_measurement", noise_mechanism=GEOMETRIC)
spark_distinct = define("create_count_distinct_measurement", noise_mechanism=GEOMETRIC)
spark_total = define("create_sum_measurement", noise_mechanism=GEOMETRIC, **AGES)
spark_average = define("create_average_measurement", noise_mechanism=LAPLACE, **AGES)
spark_variance = define("create_variance_measurement", noise_mechanism=LAPLACE, **AGES)
spark_quantile = define("create_quantile_measurement", quantile=0.5, **AGES)
spark_bounds = define("create_bounds_measurement", measure_column="age", threshold=0.95)


@functools.cache
def selection():
    """Return a selection of partitions with epsilon 1 and delta 1/1000 for a person."""
    domain = SparkDataFrameDomain({"release": SparkIntegerColumnDescriptor()})
    return aggregations.create_partition_selection_measurement(domain, 1, "1/1000", 1)


def spark_kept(people, size, _):
    """Release the noisy count of a partition with so many people, or that it is left out, as often as asked for."""
    found = []
    while len(found) < size:
        groups = min(MOST, size - len(found))
        rows = table_of([(group,) for group in range(groups) for _ in range(people)], "release")
        kept = {row["release"]: row["count"] for row in selection()(rows).collect()}
        found += [kept.get(group) for group in range(groups)]
    return found
