"""The atlas: its pictures are committed and shown, and its Monte Carlo agrees with exact values."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import atlas
from dpaudit.accuracy.comparison import compare

DOCS = Path(__file__).parents[2] / "docs"


def test_every_picture_is_committed_and_shown():
    shown = set(re.findall(r"\(atlas/(\w+)\.svg\)", (DOCS / "atlas.md").read_text(encoding="utf-8")))
    drawn = {path.stem for path in (DOCS / "atlas").glob("*.svg")}
    assert shown == drawn == set(atlas.FIGURES)
    assert all(path.stat().st_size < 60_000 for path in (DOCS / "atlas").glob("*.svg"))


def test_measured_errors_agree_with_the_comparison():
    point = atlas.Point(100, 10.0)
    for name, contender in (("HistogramMethod", "histogram"), ("inverse sensitivity", "inverse-sensitivity")):
        (row,) = compare(n=[100], epsilon=[10.0], contenders=[contender])
        found = atlas.measured(name, point)
        assert row.error.low - 5 * found.error <= found.mean <= row.error.high + 5 * found.error
        assert found.squared > found.mean


def test_the_control_variate_keeps_the_mean():
    # The error itself as "private" error: what is left after the control variate is its known mean, without any noise.
    point = atlas.Point(50, 1.0)

    def sampling(data, rng):
        off = np.abs(np.sort(data, axis=1)[:, 24] - 0.5)
        return off, off**2

    found = atlas.averaged(point, sampling, draws=100)
    assert found.mean == pytest.approx(atlas.sampling_error(50, 0.5), rel=1e-9)
    assert found.error < 1e-12


def test_a_picture_is_drawn(tmp_path):
    atlas.edges(tmp_path / "edges.svg")
    assert "left (as printed)" in (tmp_path / "edges.svg").read_text()
