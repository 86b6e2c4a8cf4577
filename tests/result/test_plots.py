"""Pictures: they show the numbers they claim to, work without a summary of outputs, and are the same on every run."""

from __future__ import annotations

import builtins
import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, Verdict, ZeroConcentratedDP
from dpaudit.engine.witness.shrink import frequency
from dpaudit.errors import MissingDependency
from dpaudit.result import plots
from dpaudit.result.model import Frequency
from dpaudit.result.plots import Summary, delta_lower
from tests.report.report_examples import CATEGORIES, HIDDEN, HOSTILE, NUMBERS, result, violation


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


def test_a_violation_has_three_pictures_and_nothing_found_two() -> None:
    assert [picture.title for picture in plots.pictures(violation())] == [
        "Evidence against the claim",
        "Outputs under both data sets",
        "Claimed profile and lower bounds",
    ]
    assert len(plots.pictures(result())) == 2
    assert plots.pictures(result(trajectory=(), epsilon_lower=math.inf)) == ()


@pytest.mark.parametrize(
    "claim",
    [
        PureDP(1.0),
        PureDP(80.0),
        ApproxDP(0.0, 1e-6),
        ApproxDP(1.0, 1e-5),
        GaussianDP(1.0),
        ZeroConcentratedDP(0.1),
        RenyiDP(4.0, 0.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize("lower", [0.0, 1.3, 60.0])
def test_every_claim_can_be_drawn(claim: Any, lower: float) -> None:
    picture = plots.picture(violation(claim=claim, epsilon_lower=lower, parameter_lower=lower, delta=1e-5), "profile")
    assert picture is not None
    shown = texts(picture.svg)
    assert "claimed" in shown
    assert any(text.startswith("epsilon >=") for text in shown) == (lower > 0.0)


@given(epsilon=st.floats(0.0, 5.0), p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99), slack=st.floats(0.0, 0.01))
def test_the_witness_never_shows_more_than_there_is(epsilon: float, p: float, q: float, slack: float) -> None:
    # The pair that differs in the probability of S and nothing else has the profile max over {S, not S} and both orders.
    factor = math.exp(epsilon)
    truth = max(0.0, p - factor * q, q - factor * p, (1 - p) - factor * (1 - q), (1 - q) - factor * (1 - p))
    sides = [Frequency(count=0, trials=1, low=max(x - slack, 0.0), high=min(x + slack, 1.0)) for x in (p, q)]
    bound = float(delta_lower(np.array([epsilon]), *sides)[0])
    assert bound <= truth + 1e-12
    if slack == 0.0:
        assert bound == pytest.approx(truth, abs=1e-12)


def test_certified_curve_is_above_the_claim_where_it_is_broken() -> None:
    # Laplace noise of scale 1/2 on a count: P(output < 1/2) is 1 - exp(-1)/2 on 0, exp(-1)/2 on 1.
    trials = 100_000
    share = math.exp(-1.0) / 2.0
    on_data, on_neighbour = frequency(round((1 - share) * trials), trials), frequency(round(share * trials), trials)
    assert delta_lower(np.array([1.0]), on_data, on_neighbour)[0] > PureDP(1.0).delta(1.0)
    assert delta_lower(np.array([2.0]), on_data, on_neighbour)[0] <= PureDP(2.0).delta(2.0)


def curve(svg: str, colour: str) -> list[tuple[float, float]]:
    """Points of the longest line of a colour, in the units of the SVG."""
    found = re.findall(rf'<path d="([^"]*)"[^>]*stroke: var\(--{colour},', svg)
    path = max(found, key=len)
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", path)]


def test_evidence_crosses_the_threshold_where_it_did() -> None:
    crossing = plots.picture(violation(), "evidence")
    below = plots.picture(result(), "evidence")
    assert crossing is not None
    assert below is not None
    for picture, crosses in ((crossing, True), (below, False)):
        threshold = curve(picture.svg, "alarm")[0][1]
        highest = min(y for _, y in curve(picture.svg, "data"))  # y grows downwards
        assert (highest <= threshold) == crosses
    assert "; it did. " in crossing.caption
    assert "it did" not in below.caption


def test_a_long_trajectory_is_thinned_and_keeps_its_peak() -> None:
    steps = np.arange(1, 20_001)
    wealth = np.where(steps == 7_777, 14.6, 0.0)
    long = violation(trajectory=tuple(zip(steps.tolist(), wealth.tolist(), strict=True)))
    picture = plots.picture(long, "evidence")
    assert picture is not None
    assert len(picture.svg) < 60_000
    assert min(y for _, y in curve(picture.svg, "data")) <= curve(picture.svg, "alarm")[0][1]


def test_outputs_of_both_forms() -> None:
    numbers = plots.picture(violation(outputs=NUMBERS), "outputs")
    categories = plots.picture(violation(outputs=CATEGORIES), "outputs")
    assert numbers is not None
    assert categories is not None
    for picture in (numbers, categories):
        assert {"data", "neighbour", "event"} <= set(texts(picture.svg))
        assert "var(--event" in picture.svg
    assert "10 % of a side lie outside" in numbers.caption
    assert "outside" not in categories.caption
    assert {"None", "<b>", "raises"} <= set(texts(categories.svg))
    assert "<b>" not in categories.svg


def test_heights_are_shares() -> None:
    found = Summary.read(NUMBERS)
    assert found is not None
    assert [side.tolist() for side in found.shares()] == [[0.5, 0.3, 0.1], [0.1, 0.3, 0.5]]
    assert found.intervals == ((-math.inf, 0.22),)
    uneven = plots.picture(violation(outputs={**NUMBERS, "edges": [0, 1, 2, 10]}), "outputs")
    assert uneven is not None
    assert "density of outputs" in texts(uneven.svg)


def test_many_categories_are_gathered_and_the_event_is_kept() -> None:
    names = [f"value {number}" for number in range(40)]
    counts = [40 - number for number in range(40)]
    made = {"categories": names, "data": counts, "neighbour": counts, "event": [39]}
    picture = plots.picture(violation(outputs=made), "outputs")
    assert picture is not None
    shown = texts(picture.svg)
    assert "value 39" in shown
    assert "others" in shown
    assert "value 20" not in shown


def test_rare_categories_and_what_was_not_listed_are_the_others() -> None:
    made = {
        "categories": ["None", *(f"{number / 7}" for number in range(10))],
        "data": [10, *[1] * 10],
        "neighbour": [900, *[0] * 10],
        "trials": [1000, 1000],
        "event": [0],
    }
    picture = plots.picture(violation(outputs=made), "outputs")
    assert picture is not None
    assert {"None", "others"} <= set(texts(picture.svg))
    assert not any("/" in text or text.startswith("0.1428") for text in texts(picture.svg))
    assert "outside" not in picture.caption


def test_an_exact_value_in_the_event_can_be_seen() -> None:
    for stop in (1.0, math.nextafter(1.0, 2.0)):
        picture = plots.picture(violation(outputs={**NUMBERS, "event": [[1.0, stop]]}), "outputs")
        assert picture is not None
        assert "stroke: var(--event" in picture.svg


def test_a_pair_is_named_where_no_witness_names_it() -> None:
    picture = plots.picture(result(outputs={**NUMBERS, "pair": ["[1]", "[1, 2]"]}), "outputs")
    assert picture is not None
    assert "Data: [1]; neighbour: [1, 2]." in picture.caption


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"data": [1], "neighbour": [1]},
        {**NUMBERS, "edges": [0.0, 0.0, 1.0, 2.0]},
        {**NUMBERS, "edges": [0.0, 1.0, 2.0, "inf"]},
        {**NUMBERS, "edges": [0.0, 1.0]},
        {**NUMBERS, "data": [-1, 2, 3]},
        {**CATEGORIES, "data": [0, 0, 0]},
        {**NUMBERS, "data": "text"},
        {**NUMBERS, "trials": [1, 1]},
        {**NUMBERS, "trials": [1000]},
        {**NUMBERS, "event": [[1]]},
        {**NUMBERS, "event": 7},
        {**CATEGORIES, "categories": ["one"]},
        {**CATEGORIES, "event": ["x"]},
        {**CATEGORIES, "event": None},
        {"categories": None, "data": None, "neighbour": None},
    ],
    ids=repr,
)
def test_a_summary_of_another_form_is_left_out(broken: dict[str, Any]) -> None:
    assert plots.picture(violation(outputs=broken), "outputs") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*NUMBERS, *CATEGORIES, "label", "pair"), json_values)))
def test_no_summary_breaks_the_reading(plain: dict[str, Any]) -> None:
    Summary.read(plain)
    Summary.read({**CATEGORIES, **plain})
    Summary.read({**NUMBERS, **plain})


def test_names_in_pictures_are_text() -> None:
    made = {**CATEGORIES, "categories": [HOSTILE, HIDDEN, "$x_1$"], "label": HOSTILE}
    picture = plots.picture(violation(outputs=made), "outputs")
    assert picture is not None
    root = ElementTree.fromstring(picture.svg)
    tags = {element.tag for element in root.iter()}
    assert tags <= {"svg", "g", "path", "use", "defs", "text", "clipPath", "rect", "pattern", "tspan"}
    assert "$x_1$" in texts(picture.svg)
    assert not any(name[:2] == "on" for element in root.iter() for name in element.attrib)


def test_ids_are_unique_and_references_are_resolved() -> None:
    page = "".join(picture.svg for number in (1, 2) for picture in plots.pictures(violation(), prefix=f"a{number}-"))
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 0
    assert set(re.findall(r"url\(#([^)]*)\)", page)) | set(re.findall(r'href="#([^"]*)"', page)) == set(ids)


def test_colours_come_from_the_page() -> None:
    for picture in (*plots.pictures(violation()), *plots.pictures(violation(outputs=CATEGORIES))):
        left = re.sub(r"var\(--[a-z]+, #[0-9a-f]{6}\)", "", picture.svg)
        assert not re.findall(r"#[0-9a-fA-F]{6}\b", left)
        assert "font-family" not in picture.svg


def test_equal_input_gives_equal_pictures_under_all_settings() -> None:
    import matplotlib

    first = plots.pictures(violation())
    with matplotlib.rc_context({"font.size": 30.0, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert plots.pictures(violation()) == first
        assert matplotlib.rcParams["font.size"] == 30.0  # and theirs are left alone
    assert not any("<metadata" in picture.svg for picture in first)


def test_a_missing_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency, match=re.escape("pip install 'dpaudit[report]'")):
        plots.picture(result(verdict=Verdict.NO_VIOLATION_FOUND), "evidence")
