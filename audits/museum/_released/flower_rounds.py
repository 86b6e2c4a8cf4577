"""One round of Flower's central differential privacy: updates of two clients around a global model of zeros."""

from __future__ import annotations

import functools
import logging

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from flwr.serverapp import strategy as strategies

logging.getLogger("flwr").setLevel(logging.ERROR)  # it logs every round what it clipped
FIXED = {"clipping_norm": 1.0}
ADAPTIVE = {"initial_clipping_norm": 1.0, "clip_norm_lr": 1.0, "clipped_count_stddev": 1.0}


class Reply:
    """What a strategy reads of a message; Flower's own can only be made inside a run."""

    def __init__(self, content):
        self.content = content

    def has_error(self):
        return False


def record(values):
    return ArrayRecord({"update": Array(np.array(values))})


def train(kind, arguments, examples, updates):
    """Release the noisy average, and the next clipping norm where it adapts."""
    wrapper = getattr(strategies, f"DifferentialPrivacyServerSide{kind}Clipping")
    strategy = wrapper(strategies.FedAvg(), noise_multiplier=1.0, num_sampled_clients=2, **arguments)
    strategy.current_arrays = record(np.zeros(updates.shape[1]))
    replies = [
        Reply(RecordDict({"arrays": record(update), "metrics": MetricRecord({"num-examples": count})}))
        for update, count in zip(updates, examples, strict=True)
    ]
    arrays, _ = strategy.aggregate_train(1, replies)
    (average,) = arrays.to_numpy_ndarrays()
    return np.append(average, strategy.clipping_norm) if kind == "Adaptive" else np.asarray(average)


equal_weights = functools.partial(train, "Fixed", FIXED, (1, 1))
weighted = functools.partial(train, "Fixed", FIXED, (3, 1))
adaptive = functools.partial(train, "Adaptive", ADAPTIVE, (1, 1))
