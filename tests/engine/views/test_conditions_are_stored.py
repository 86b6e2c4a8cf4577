"""Every condition and quantity that has a JSON form is read back as what it was. A new one fails here until it is listed."""

import importlib
import pkgutil

import numpy as np
import pytest

from dpaudit.engine import views
from dpaudit.engine.encoding.batch import encode, record_keys
from dpaudit.engine.encoding.feature_table import table_of_blocks
from dpaudit.engine.encoding.float_grid import NO_BIT
from dpaudit.engine.views.condition import (
    AllOf,
    AnyOf,
    Bits,
    Interval,
    Number,
    OtherStructure,
    Records,
    Structure,
    Values,
)
from dpaudit.engine.views.feature import Feature
from dpaudit.engine.views.late.derived import Remainder
from dpaudit.engine.views.plain_events import read_event
from dpaudit.engine.views.scores import Coordinate, LinearScore

OUTPUTS = [[1.0, 2.5], [1.0, 2.5], [float("nan"), 0.0], [7.0, -1.0], "no", [3.0], None]
BATCH = encode(OUTPUTS).with_features(table_of_blocks([OUTPUTS]))
HALF = (Interval(-np.inf, 2.0), Interval(6.0, None))
STRUCTURE = int(BATCH.codes[0])
STORED = [
    Number(Coordinate(1), HALF, nan=True),
    Number(LinearScore(np.array([1.0, -2.0]), (0, 1), 0.5), HALF),
    Number(Remainder(0, 2.0), HALF),
    Number(Feature("size of output"), (Interval(2.0, None),)),
    Values(Coordinate(0), (1.0, 7.0)),
    Structure(STRUCTURE, "a list"),
    OtherStructure((STRUCTURE,)),
    Records(tuple(int(key) for key in record_keys(BATCH)[:3])),
    Bits(Number(Coordinate(0), (Interval(-np.inf, None),), nan=True), (NO_BIT, -1), others=True),
    AllOf((Structure(STRUCTURE, "a list"), Number(Coordinate(0), HALF))),
    AllOf((Number(Coordinate(0), HALF), Number(Coordinate(1), HALF))),
]
NEVER_STORED = {"NaiveBayes", "Boosted", "Network", "FeatureScore", "Decimals", "DistanceToValues", "Difference"} | {
    "VectorSummary", "OfSuspect", "SuspectNumber", "AnyOf", "Interval", "Condition", "Quantity",
}  # fmt: skip


def test_every_kind_is_listed():
    for module in pkgutil.walk_packages(views.__path__, "dpaudit.engine.views."):
        importlib.import_module(module.name)
    kinds = {
        name
        for module in pkgutil.walk_packages(views.__path__, "dpaudit.engine.views.")
        for name, kind in vars(importlib.import_module(module.name)).items()
        if isinstance(kind, type) and hasattr(kind, "plain") and kind.__module__ == module.name
    }
    shown = {type(condition).__name__ for condition in STORED}
    shown |= {type(condition.of).__name__ for condition in STORED if isinstance(condition, Number | Values)}
    assert kinds == shown | NEVER_STORED


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("place", range(len(STORED)))
def test_a_stored_condition_holds_for_the_same_outputs(place, negated):
    event = AnyOf((STORED[place],), negated)
    inside = event.contains(BATCH)
    assert 0 < inside.sum() < len(BATCH)
    assert read_event(event.plain()).contains(BATCH).tolist() == inside.tolist()
