"""Queries of OpenDP's context over Polars frames, of rows (city, age).

For every query OpenDP searches for the noise that a privacy loss allows, which takes nearly a second and depends on no data. Here
a query is resolved to a measurement once, and the compositor of the context is made once; every release gives the
compositor its data and asks it for the measurement, as the context does.
"""

from __future__ import annotations

import functools
import warnings

import opendp.prelude as dp
import polars as pl

warnings.simplefilter("ignore")
dp.enable_features("contrib")
SCHEMA = {"city": pl.String, "age": pl.Int64}
PURE, CONCENTRATED, APPROXIMATE = dp.loss_of(epsilon=1.0), dp.loss_of(rho=0.5), dp.loss_of(epsilon=1.0, delta=1e-3)
TABLE, CITIES = dp.polars.Margin(max_length=100), dp.polars.Margin(by=["city"], max_length=100)
PUBLIC_CITIES = dp.polars.Margin(by=["city"], max_length=100, invariant="keys")
KEYS = pl.LazyFrame({"city": ["Bern", "Chur"]}, schema={"city": pl.String})
AGE = pl.col("age").fill_null(0).dp


def frame_of(rows):
    return pl.LazyFrame(list(rows), schema=SCHEMA, orient="row")


def define(build, loss=PURE, margin=TABLE):
    """Return a function that releases the rows of a query, in an order that says nothing; a person has one row."""

    @functools.cache
    def resolved():
        context = dp.Context.compositor(
            data=frame_of([]),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=loss,
            split_evenly_over=1,
            margins=[margin],
        )
        return context.accountant, build(context.query()).resolve()

    def release(rows):
        compositor, measurement = resolved()
        released = compositor(frame_of(rows))(measurement).collect().rows()
        return sorted(released, key=repr)

    return release


polars_count = define(lambda query: query.select(dp.len()))
polars_total = define(lambda query: query.select(AGE.sum((0, 10))))
polars_total_gaussian = define(lambda query: query.select(AGE.sum((0, 10))), CONCENTRATED)
polars_mean = define(lambda query: query.select(AGE.mean((0, 10))))
polars_median = define(lambda query: query.select(AGE.median([2, 5, 8])))
polars_by_given_city = define(lambda query: query.group_by("city").agg(dp.len()).with_keys(KEYS))
polars_by_public_city = define(lambda query: query.group_by("city").agg(dp.len()), PURE, PUBLIC_CITIES)
polars_by_city = define(lambda query: query.group_by("city").agg(dp.len()), APPROXIMATE, CITIES)
