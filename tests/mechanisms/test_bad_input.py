"""Every mechanism of the registry refuses bad data and bad parameters, and says which argument is bad."""

import copy
import dataclasses
import math

import numpy as np
import pytest

from dpaudit.errors import InvalidArgument
from mechanisms import registry


def one_of_each() -> list[registry.Entry]:
    """The first entry of every class; of a class with a query of its own and without, one each."""
    found = {}
    for entry in registry.entries():
        mechanism = entry.make()
        found.setdefault((type(mechanism), getattr(mechanism, "query", None) is None), entry)
    return list(found.values())


ENTRIES = one_of_each()
PARAMETERS = {
    "epsilon": (0.0, -1.0, math.nan, math.inf, "1"),
    "delta": (-1e-9, 1.0, 1.5, math.nan, "1"),
    "sensitivity": (0, -1, math.nan, "1"),
    "noise_multiplier": (0.0, -1.0, math.nan),
    "clipping_norm": (0, -1, math.nan),
    "probability": (-0.1, 1.1, math.nan),
}
# What these are given is no bad input to them: an empty table has counts, and any value has a Bloom filter.
COUNTS_ROWS = {"laplace-count", "noisy-histogram"}
TRAINED_ON_ROWS = "dp-sgd-", "synthesis-"
ANY_VALUE = {"catalogue-rappor", "laplace-count"}


def some_data(entry):
    pair = entry.neighbours().corners()[0]
    return pair.data if np.size(pair.data) else pair.neighbour


def with_entry(data, value):
    """The data with the first entry replaced."""
    if isinstance(data, list):
        return [value, *data[1:]]
    changed = np.array(data, dtype=float)
    changed.flat[0] = value
    return changed


def refused(mechanism, data):
    """Both the sampler and the law refuse the data by name."""
    with pytest.raises(InvalidArgument, match="data"):
        mechanism.sample(data, 3, np.random.default_rng(0))
    if hasattr(mechanism, "law"):
        with pytest.raises(InvalidArgument, match=r"data|no law object"):
            mechanism.law(data)


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_bad_data_is_refused_by_name(entry):
    mechanism, data = entry.make(), some_data(entry)
    if not isinstance(data, np.ndarray | np.number | list | int | float):  # a secret has a law and nothing to spoil
        refused(mechanism, [1.0])
        refused(mechanism, None)
        return
    if entry.name not in COUNTS_ROWS and not entry.name.startswith(TRAINED_ON_ROWS):
        refused(mechanism, [])
    if entry.name not in ANY_VALUE:
        refused(mechanism, with_entry(data, math.nan))
        refused(mechanism, with_entry(data, math.inf))
        refused(mechanism, [[[1.0, 2.0]], [[3.0, 4.0]]])
        refused(mechanism, ["no such category"])
        refused(mechanism, None)
    high = getattr(mechanism, "high", None)
    if high is not None:
        refused(mechanism, with_entry(data, high + 1.0))


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_bad_parameters_are_refused_by_name(entry):
    mechanism = entry.make()
    data = copy.deepcopy(some_data(entry))
    for size in (-1, 1.5, None):
        with pytest.raises(InvalidArgument, match=f"size={size}"):
            mechanism.sample(data, size, np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match="rng=0"):
        mechanism.sample(data, 1, 0)
    settable = {field.name for field in dataclasses.fields(mechanism) if field.init}
    for name in settable & PARAMETERS.keys():
        for value in PARAMETERS[name]:
            with pytest.raises(InvalidArgument, match=f"{name}="):
                dataclasses.replace(mechanism, **{name: value})
