"""Measurements of OpenDP."""

from __future__ import annotations

import opendp.prelude as dp

dp.enable_features("contrib", "floating-point")
FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
INTEGER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
BOUNDED = dp.vector_domain(dp.atom_domain(T=float, bounds=(0.0, 10.0), nan=False)), dp.symmetric_distance()
SCORES = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
COUNTS = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l01inf_distance(dp.absolute_distance(T=int))

laplace_float = dp.m.make_laplace(*FLOAT, scale=1.0)
laplace_integer = dp.m.make_laplace(*INTEGER, scale=3.0)
gaussian_float = dp.m.make_gaussian(*FLOAT, scale=1.0)
gaussian_integer = dp.m.make_gaussian(*INTEGER, scale=3.0)
response_bool = dp.m.make_randomized_response_bool(prob=0.75)
response = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.5)
bit_vector = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=2), dp.discrete_distance(), f=0.9)
count = ROWS >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
distinct = ROWS >> dp.t.then_count_distinct() >> dp.m.then_laplace(scale=1.0)
categories = ROWS >> dp.t.then_count_by_categories(categories=[0, 1]) >> dp.m.then_laplace(scale=2.0)
sum_of_floats = BOUNDED >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)
noisy_max = dp.m.make_noisy_max(*SCORES, dp.max_divergence(), scale=2.0)
top_k = dp.m.make_noisy_top_k(*SCORES, dp.max_divergence(), k=2, scale=4.0)
threshold = dp.m.make_laplace_threshold(*COUNTS, scale=1.0, threshold=20)
SPREAD = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l02inf_distance(dp.absolute_distance(T=int))
SMALL = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="u32")), dp.l01inf_distance(dp.absolute_distance(T="u32"))
threshold_gaussian = dp.m.make_gaussian_threshold(*SPREAD, scale=2.0, threshold=12)
canonical = dp.m.make_canonical_noise(*FLOAT, d_in=1.0, d_out=(1.0, 1e-2))
noisy_max_gaussian = dp.m.make_noisy_max(*SCORES, dp.zero_concentrated_divergence(), scale=2.0)
projected = dp.m.make_alp_queryable(*SMALL, scale=1.0, total_limit=50, value_limit=10, size_factor=10)


def projection(counts):
    """Release the counts of two keys that a new sketch of the data answers."""
    answers = projected(counts)
    return [answers(key) for key in ("a", "b")]


tree = (
    (dp.vector_domain(dp.atom_domain(T=int), size=4), dp.l1_distance(T=int))
    >> dp.t.then_b_ary_tree(leaf_count=4, branching_factor=2)
    >> dp.m.then_laplace(scale=3.0)
)
quantile = BOUNDED >> dp.m.then_private_quantile(dp.max_divergence(), [2.5, 5.0, 7.5], alpha=0.5, scale=2.0)
