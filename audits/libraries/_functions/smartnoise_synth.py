"""smartnoise-synth: MWEM on tables of whole numbers from 0 on, which need no transformer."""

from __future__ import annotations

import warnings

import numpy as np
from snsynth.mwem import MWEMSynthesizer
from snsynth.transform.table import NoTransformer

warnings.simplefilter("ignore")


def largest(rows):
    """Release the largest value in the first column of twenty synthetic rows."""
    synthesizer = MWEMSynthesizer(epsilon=1.0, iterations=2, q_count=4)
    synthesizer.fit(np.asarray(rows), transformer=NoTransformer())
    return int(max(row[0] for row in synthesizer.sample(20)))


def mean(rows):
    """Release the mean of the second column."""
    synthesizer = MWEMSynthesizer(epsilon=1.0, iterations=2, q_count=4)
    synthesizer.fit(np.asarray(rows), transformer=NoTransformer())
    return float(np.mean([row[1] for row in synthesizer.sample(20)]))
