"""dpmm: pipelines that make synthetic tables, with the domain given."""

from __future__ import annotations

import functools
import logging
import warnings

import pandas
from dpmm.models.base.mechanisms import cdp2adp
from dpmm.pipelines import PrivBayesPipeline

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
cdp2adp.cdp_delta = functools.cache(cdp2adp.cdp_delta)  # it takes nine tenths of the time, and depends on no data
DOMAIN = {"city": ["a", "b"], "sex": ["f", "m"]}


def cities(rows):
    """Release how many of twenty synthetic people live in each city."""
    table = pandas.DataFrame(list(rows), columns=["city", "sex"])
    pipeline = PrivBayesPipeline(epsilon=1.0, delta=1e-5, gen_kwargs={"n_iters": 5}, n_jobs=1)
    pipeline.fit(table, domain={name: {"categories": list(values)} for name, values in DOMAIN.items()})
    counts = pipeline.generate(n_records=20)["city"].value_counts()
    return [int(counts.get(city, 0)) for city in DOMAIN["city"]]
