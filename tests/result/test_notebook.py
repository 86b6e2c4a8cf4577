"""Results in notebooks: the HTML shows what the text shows, is safe, and the pictures are those of the report."""

from __future__ import annotations

import sys
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import neighbours
from dpaudit.errors import InvalidArgument
from dpaudit.exact import Laplace
from tests.report.report_examples import HOSTILE, NUMBERS, result, violation

PEOPLE = neighbours.add_remove(st.integers(0, 10), max_size=4)


class DeclaredLaplace:
    def law(self, data: list[int]) -> Laplace:
        return Laplace(len(data), 0.5)


def count(data: list[int], rng: Any) -> float:
    return len(data) + rng.laplace(scale=0.5)


def all_kinds() -> list[Any]:
    law = Laplace(0.0, 0.5)
    return [
        violation(outputs=NUMBERS),
        result(),
        dpaudit.check_sensitivity(sum, 1.0, PEOPLE, examples=20),
        dpaudit.check_sensitivity(len, 1.0, PEOPLE, examples=20),
        dpaudit.estimate_sensitivity(sum, PEOPLE, examples=20),
        dpaudit.verify(DeclaredLaplace(), dpaudit.PureDP(1.0), PEOPLE, examples=10),
        dpaudit.verify(dpaudit.per_release(count), dpaudit.PureDP(1.0), PEOPLE, examples=10),
        dpaudit.diagnose(
            dpaudit.per_release(count),
            dpaudit.PureDP(1.0),
            PEOPLE,
            query=len,
            sensitivity=1.0,
            noise=law,
            samples=4_000,
            residuals=1_000,
        ),
        dpaudit.check_accuracy(dpaudit.per_release(count), len, dpaudit.MeanError(0.1), [[1, 2]], samples=1_000),
    ]


def test_every_kind_of_result_is_well_formed_html_with_its_verdict_and_text() -> None:
    for shown in all_kinds():
        page = shown._repr_html_()
        tree = ElementTree.fromstring(page)
        words = " ".join("".join(tree.itertext()).split())
        assert " ".join(str(shown).split()) in words, type(shown)
        assert "script" not in {element.tag for element in tree.iter()}
        if hasattr(shown, "verdict"):
            assert next(tree.iter("span")).text == str(shown.verdict)


def test_a_violation_shows_pair_event_counts_and_the_picture_of_both_histograms() -> None:
    found = violation(outputs=NUMBERS)
    tree = ElementTree.fromstring(found._repr_html_())
    cells = ["".join(cell.itertext()) for cell in tree.iter("td")]
    witness = found.witness
    assert witness is not None
    assert {witness.data, witness.neighbour, witness.event, str(witness.on_data), repr(found.claim)} <= set(cells)
    assert [picture.get("aria-label") for picture in tree.iter("svg")] == ["Outputs under both data sets"]


def test_text_of_user_code_is_escaped() -> None:
    page = violation(name=HOSTILE)._repr_html_()
    assert "<script" not in page
    ElementTree.fromstring(page)


def test_two_results_on_one_page_share_no_ids() -> None:
    ids = [
        element.get("id")
        for seed in (0, 1)
        for element in ElementTree.fromstring(violation(outputs=NUMBERS, seed=seed)._repr_html_()).iter()
        if element.get("id")
    ]
    assert ids
    assert len(ids) == len(set(ids))


def test_without_matplotlib_there_is_html_without_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = violation(outputs=NUMBERS)._repr_html_()
    assert "VIOLATION" in page
    assert "<svg" not in page


@pytest.mark.parametrize("kind", ["outputs", "evidence", "profile"])
def test_plot_draws_on_given_axes(kind: Any) -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert violation(outputs=NUMBERS).plot(kind, axes=axes) is axes
    assert axes.get_lines() or axes.patches
    assert axes.get_xlabel()


def test_plot_makes_a_figure_and_refuses_what_it_does_not_have() -> None:
    import matplotlib.pyplot as plt

    axes = violation(outputs=NUMBERS).plot()
    assert axes.get_title() == "Outputs under both data sets"
    plt.close(axes.figure)
    with pytest.raises(InvalidArgument, match="kind='outputs': this result lacks the numbers"):
        result().plot()
    with pytest.raises(InvalidArgument, match=r"kind='output' .*outputs"):
        violation().plot("output")  # type: ignore[arg-type]
