"""Measurements of Tumult Core on Spark, which takes seconds for a query, however many groups it has.

A release is the answer for one group of a query by group, in which every group holds the same rows: a person is in one group,
whose noise is its own. The answers of a query are handed out one by one, each of them once.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType
from tmlt.core.domains.spark_domains import SparkDataFrameDomain, SparkIntegerColumnDescriptor
from tmlt.core.measurements import aggregations
from tmlt.core.measures import PureDP
from tmlt.core.metrics import SymmetricDifference
from tmlt.core.transformations.spark_transformations.groupby import GroupBy

GROUPS = 1024  # of one query
PARTITIONS = SparkDataFrameDomain({"release": SparkIntegerColumnDescriptor()})
DOMAIN = SparkDataFrameDomain({column: SparkIntegerColumnDescriptor() for column in ("release", "age")})
GEOMETRIC, LAPLACE = aggregations.NoiseMechanism.GEOMETRIC, aggregations.NoiseMechanism.LAPLACE
AGES = {"measure_column": "age", "lower": 0, "upper": 10}
warehouse = tempfile.TemporaryDirectory()
settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.warehouse.dir": warehouse.name,
}
builder = SparkSession.builder.master("local[1]")
for setting, value in settings.items():
    builder = builder.config(setting, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def table_of(rows, *names):
    schema = StructType([StructField(name, LongType(), False) for name in names])
    return spark.createDataFrame(rows, schema).coalesce(1)


@functools.cache
def grouping():
    keys = table_of([(group,) for group in range(GROUPS)], "release")
    return GroupBy(DOMAIN, SymmetricDifference(), use_l2=False, group_keys=keys)


def one_by_one(query):
    """Return a function that releases one answer of a query, and asks it again when all of them were handed out."""
    left = {}

    def release(data):
        key = repr(data)
        if not left.get(key):
            left[key] = query(data)
        return left[key].pop()

    return release


def define(name, **options):
    """Return a function that releases an aggregate of ages with epsilon 1 for a person."""

    @functools.cache
    def measurement():
        create = getattr(aggregations, f"create_{name}_measurement")
        return create(DOMAIN, SymmetricDifference(), PureDP(), 1, groupby_transformation=grouping(), **options)

    def query(ages):
        rows = table_of([(group, age) for group in range(GROUPS) for age in ages], "release", "age")
        answers = [row.asDict() for row in measurement()(rows).collect()]
        return [[float(value) for key, value in row.items() if key != "release"] for row in answers]

    return one_by_one(query)


spark_count = define("count", noise_mechanism=GEOMETRIC)
spark_distinct = define("count_distinct", noise_mechanism=GEOMETRIC)
spark_total = define("sum", noise_mechanism=GEOMETRIC, **AGES)
spark_average = define("average", noise_mechanism=LAPLACE, **AGES)
spark_variance = define("variance", noise_mechanism=LAPLACE, **AGES)
spark_quantile = define("quantile", quantile=0.5, **AGES)
spark_bounds = define("bounds", measure_column="age", threshold=0.95)


def select(people):
    """Return the noisy counts of partitions with so many people, or None where one is left out."""
    selection = aggregations.create_partition_selection_measurement(PARTITIONS, 1, "1/1000", 1)
    rows = table_of([(group,) for group in range(GROUPS) for _ in range(people)], "release")
    kept = {row["release"]: row["count"] for row in selection(rows).collect()}
    return [kept.get(group) for group in range(GROUPS)]


spark_kept = one_by_one(select)
