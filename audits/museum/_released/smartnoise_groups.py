"""smartnoise-sql's noisy counts by group, with and without the censoring of rare groups."""

from __future__ import annotations

import functools
import logging

import pandas
from snsql import Privacy, from_df

logging.disable(logging.WARNING)
QUERY = "SELECT city, COUNT(*) AS n FROM db.people GROUP BY city"


def counts(censored, cities):
    """Release the noisy number of people in each city."""
    columns = {"id": {"type": "int", "private_id": True}, "city": {"type": "string"}}
    table = {"row_privacy": False, "censor_dims": censored, "max_ids": 1, **columns}
    frame = pandas.DataFrame({"id": range(len(cities)), "city": pandas.Series(list(cities), dtype=object)})
    reader = from_df(frame, metadata={"": {"db": {"people": table}}}, privacy=Privacy(epsilon=1.0, delta=1e-6))
    return sorted((str(city), float(n)) for city, n in reader.execute(QUERY)[1:])


open_groups = functools.partial(counts, False)
censored_groups = functools.partial(counts, True)
