"""Measures and releases of pyCANON, anonypy and anjana, computed once (tests/anonymity/data), with the known differences."""

import json
import math
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from dpaudit.anonymity import (
    Intervals,
    Prefixes,
    Table,
    alpha_k_anonymity,
    audit_release,
    average_class_size,
    beta_likeness,
    classification_metric,
    delta_disclosure,
    discernibility,
    full_domain,
    information_loss,
    k_anonymity,
    l_diversity,
    mondrian,
    recursive_diversity,
    reidentification_risk,
    t_closeness,
)

DATA = json.loads((Path(__file__).parent / "data" / "other_libraries.json").read_text())


def frame_of(rows):
    return pd.DataFrame(rows, columns=["a", "s", "num"])


@pytest.mark.parametrize("number", range(6))
def test_pycanon(number):
    entry = DATA["pycanon"][number]
    frame, theirs = frame_of(entry["rows"]), entry["values"]
    table = Table.from_frame(frame, quasi_identifiers="a", sensitive="s")
    ordered = t_closeness(Table.from_frame(frame, quasi_identifiers="a", sensitive="num"), distance="ordered")
    risk = reidentification_risk(table).prosecutor
    ours = {
        "k": k_anonymity(table).value,
        "alpha": alpha_k_anonymity(table).alpha.value,
        "l": l_diversity(table).value,
        "t": t_closeness(table).value,
        "t_ordered": ordered.value,
        "beta": beta_likeness(table).value,
        "average_class_size": average_class_size(table, int(k_anonymity(table).value)),
        "discernibility": discernibility(table),
        "maximum_risk": risk.maximum.value,
    }
    assert ours == pytest.approx({name: theirs[name] for name in ours}, rel=1e-9)
    counts = [Counter(group["s"]) for _, group in frame.groupby("a", sort=False)]
    # Known differences. Each expected value is what the other library's formula gives, so that the cause is pinned too.
    effective = l_diversity(table, kind="entropy").value  # rounded down, whole numbers sometimes to the one below
    assert theirs["entropy_l"] in (math.floor(effective), math.floor(effective) - 1)
    level = int(theirs["recursive_l"])
    ascending = [sorted(c.values()) for c in counts]  # so that the rarest value is compared, not the most frequent one
    assert theirs["recursive_c"] == max(math.floor(c[0] / sum(c[level - 1 :]) + 1) for c in ascending)
    assert recursive_diversity(table, level=level).value == max(c[-1] / sum(c[: len(c) - level + 1]) for c in ascending)
    enhanced = beta_likeness(table, enhanced=True).value
    assert theirs["enhanced_beta"] == pytest.approx(enhanced) or enhanced == math.inf  # a gain above -ln q is cut off
    lacking = any(len(c) < frame["s"].nunique() for c in counts)
    assert (delta_disclosure(table).value == math.inf) == lacking  # a value that a class lacks is left out
    assert lacking or theirs["delta"] == pytest.approx(delta_disclosure(table).value)
    tied = sum(max(c.values()) * (list(c.values()).count(max(c.values())) - 1) for c in counts)  # ties are not counted
    assert theirs["classification"] == pytest.approx(classification_metric(table) - tied / len(frame))
    assert theirs["average_risk"] == pytest.approx(sum(1 / c.total() for c in counts) / len(counts))  # over classes
    assert risk.average == len(counts) / len(frame)


def test_the_recorded_tables_show_every_difference():
    tables = [
        Table.from_frame(frame_of(entry["rows"]), quasi_identifiers="a", sensitive="s") for entry in DATA["pycanon"]
    ]
    values = [entry["values"] for entry in DATA["pycanon"]]
    pairs = list(zip(tables, values, strict=True))
    assert any(
        theirs["recursive_c"] <= recursive_diversity(t, level=int(theirs["recursive_l"])).value for t, theirs in pairs
    )  # the definition needs a larger c
    assert any(theirs["classification"] != pytest.approx(classification_metric(t)) for t, theirs in pairs)
    assert any(
        theirs["average_risk"] != pytest.approx(reidentification_risk(t).prosecutor.average) for t, theirs in pairs
    )
    assert {delta_disclosure(table).value == math.inf for table in tables} == {True, False}


def test_anonypy_and_mondrian_both_keep_k():
    """The cuts differ (anonypy puts the median to the right, dpaudit where the parts are more equal), the promise does not."""
    entry = DATA["anonypy"]
    frame = pd.DataFrame(entry["original"], columns=["x", "y", "s"])
    ours = mondrian(Table.from_frame(frame, quasi_identifiers=["x", "y"], sensitive="s"), k=entry["k"])
    assert min(entry["class_sizes"]) >= entry["k"]
    assert sum(entry["class_sizes"]) == len(frame)
    assert k_anonymity(ours.table).value >= entry["k"]


def test_anjana_loses_more_than_the_best_levels():
    entry = DATA["anjana"]
    names = ["age", "plz"]
    original = pd.DataFrame(entry["original"], columns=[*names, "s"])
    theirs = pd.DataFrame(entry["released"], columns=[*names, "s"], index=entry["index"])
    assert audit_release(original, theirs, quasi_identifiers=names, sensitive="s", match="index")
    assert k_anonymity(Table.from_frame(theirs, quasi_identifiers=names)).value >= entry["k"]
    edges = [list(range(0, 41, width)) for width in (5, 10, 20)]
    hierarchies = {"age": Intervals(edges), "plz": Prefixes(3)}
    table = Table.from_frame(original, quasi_identifiers=names, sensitive="s")
    ours = full_domain(table, k=entry["k"], hierarchies=hierarchies, suppression=entry["suppression"])
    losses = [
        information_loss(original, frame, quasi_identifiers=names, match="index").granularity
        for frame in (ours.frame, theirs)
    ]
    assert losses[0] <= losses[1]
