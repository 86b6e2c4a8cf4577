"""PipelineDP on the local backend, with public partitions."""

from __future__ import annotations

import functools

import pipeline_dp

Metrics, Noise = pipeline_dp.Metrics, pipeline_dp.NoiseKind


def aggregate(metrics, noise, rows):
    """Release metrics of rows (person, value)."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-3)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        noise_kind=noise,
        metrics=metrics,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=0.0,
        max_value=1.0,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda _: "all",
        value_extractor=lambda row: row[1],
    )
    result = engine.aggregate(list(rows), parameters, extractors, public_partitions=["all"])
    accountant.compute_budgets()
    ((_, released),) = result
    return [float(value) for value in released]


count = functools.partial(aggregate, [Metrics.COUNT], Noise.LAPLACE)
count_gaussian = functools.partial(aggregate, [Metrics.COUNT], Noise.GAUSSIAN)
total = functools.partial(aggregate, [Metrics.SUM], Noise.LAPLACE)
mean = functools.partial(aggregate, [Metrics.MEAN], Noise.LAPLACE)
