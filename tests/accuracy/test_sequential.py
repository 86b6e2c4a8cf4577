"""The confidence sequence keeps its error probability at all times together."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.accuracy.truths.sequential import MeanConfidence


@pytest.mark.parametrize(("name", "mean"), [("bernoulli", 0.05), ("skewed", 1 / 11)])
def test_the_interval_covers_the_mean_at_all_sample_sizes(name, mean):
    """At alpha = 0.2 misses are Bin(60, <= 0.2); more than 33 have probability below 2e-8 (Chernoff: exp(-60 KL(.55, .2)))."""
    rng = np.random.default_rng(20_260)
    missed = 0
    for _ in range(60):
        confidence = MeanConfidence(alpha=0.2)
        outside = False
        for _ in range(5):
            x = rng.random(40) < mean if name == "bernoulli" else rng.beta(0.1, 1.0, 40)
            confidence.update(x)
            outside |= not confidence.lower <= mean <= confidence.upper
        missed += outside
    assert missed <= 33
    # The interval is also informative: far from [0, 1].
    assert confidence.upper - confidence.lower < 0.3
