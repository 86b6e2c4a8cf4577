"""``python -m benchmarks.pictures [FOLDER]``: draw the picture of README.md and docs/index.md, in a second.

It is what the README's own example finds: the outputs on the two data sets of the witness with the event, the evidence
over the samples, and the claimed privacy profile with what the witness shows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
from hypothesis import strategies as st
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

import dpaudit
from dpaudit import neighbours

KINDS = ("outputs", "evidence", "profile")


def noisy_count(data: list[int], size: int, rng: Any) -> Any:
    return len(data) + rng.laplace(scale=0.5, size=size)


def main(folder: Path) -> Path:
    people = neighbours.add_remove(st.integers(0, 10), max_size=6)
    result = dpaudit.audit(dpaudit.batched(noisy_count), dpaudit.PureDP(1.0), people, seed=0)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "witness.svg"
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpaudit", "font.family": "sans-serif"}):
        figure = Figure(figsize=(13.0, 4.0), layout="constrained")
        for kind, axes in zip(KINDS, figure.subplots(1, 3), strict=True):
            result.plot(kind, axes=axes)
        FigureCanvasSVG(figure).print_svg(path, metadata={"Date": None})
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")))
