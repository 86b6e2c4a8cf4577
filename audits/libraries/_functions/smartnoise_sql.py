"""smartnoise-sql's odometers as accountants of Laplace noise."""

from __future__ import annotations

import functools
import logging
import math
import warnings

from snsql import Privacy
from snsql.sql.odometer import Odometer, OdometerHeterogeneous

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


DELTAS = [10.0 ** (-exponent / 8.0) for exponent in range(1, 80)]


def odometer(make, composition):
    """Return the least epsilon that the odometer reports with at most this delta, over the deltas of one query.

    Laplace noise of scale b on an answer of sensitivity 1 is (1 / b + 2 log(1 - delta), delta)-private for every delta.
    """
    parts, delta = composition
    if any(rate < 1.0 or noise != "laplace" for _, rate, _, noise in parts):
        raise ValueError("queries without sampling, with Laplace noise")
    found = [sum(steps / scale for scale, _, steps, _ in parts)]
    for each in DELTAS:
        costs = [(max(1.0 / scale + 2.0 * math.log1p(-each), 0.0), each, steps) for scale, _, steps, _ in parts]
        epsilon, total_delta = make(costs)
        if total_delta <= delta:
            found.append(float(epsilon))
    return min(found)


def homogeneous(costs):
    ((epsilon, delta, steps),) = costs
    meter = Odometer(Privacy(epsilon=epsilon, delta=delta))
    meter.spend(steps)
    return meter.spent


def heterogeneous(costs):
    meter = OdometerHeterogeneous(Privacy(epsilon=costs[0][0], delta=costs[0][1]))
    for epsilon, delta, steps in costs:
        for _ in range(steps):
            meter.spend(Privacy(epsilon=epsilon, delta=delta))
    return meter.spent


odometer_homogeneous = functools.partial(odometer, homogeneous)
odometer_heterogeneous = functools.partial(odometer, heterogeneous)
