"""Pictures of extracted laws."""

import numpy as np
import pytest

from dpaudit import PureDP, verify
from dpaudit.errors import LawError
from dpaudit.symbolic import law_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


FUNCTIONS = {
    "density": (lambda data, rng: data + rng.normal(), "density"),
    "both": (lambda data, rng: min(max(data + rng.laplace(), 0.0), 2.0), "density and probability"),
    "grid": (lambda data, rng: round(data + rng.laplace(scale=3.0)), "probability"),
    "counts": (lambda data, rng: int(rng.poisson(30.0 + data)), "probability"),
    "coin": (lambda data, rng: int(rng.random() < 0.3), "probability"),
    "words": (lambda data, rng: "yes" if rng.random() < 0.3 else None, "probability"),
    "certain": (lambda data, rng: data, "probability"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_law_is_drawn(name):
    function, label = FUNCTIONS[name]
    axes = law_of(function, 1).plot()
    assert axes.get_ylabel() == label
    axes.figure.canvas.draw()


def test_the_curve_is_the_density():
    axes = law_of(lambda data, rng: 5.0 + rng.laplace(scale=2.0), 0).plot()
    x, y = axes.lines[0].get_data()
    assert min(x) < -8.0
    assert max(x) > 18.0
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=1e-3)


def test_both_laws_of_a_verification_are_drawn():
    axes = verify(lambda data, rng: data + rng.laplace(scale=0.5), PureDP(1.0), [(0, 1)]).plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["data", "neighbour"]
    first, second = (line.get_ydata().argmax() for line in axes.lines)
    assert first != second


def test_a_law_of_several_densities_is_not_drawn():
    with pytest.raises(LawError, match="one number"):
        law_of(lambda data, rng: (rng.laplace(), rng.laplace()), 0).plot()
