"""PipelineDP's count in one public partition on the local backend."""

from __future__ import annotations

import pipeline_dp


def count(people):
    """Release a count of people, one row each."""
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=[pipeline_dp.Metrics.COUNT],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda person: person,
        partition_extractor=lambda _: "all",
        value_extractor=lambda _: 0,
    )
    result = engine.aggregate(list(people), parameters, extractors, public_partitions=["all"])
    accountant.compute_budgets()
    ((_, metrics),) = result
    return float(metrics.count)
