"""The HTML of a result in a notebook: the witness beside the picture of both histograms with the event."""

from __future__ import annotations

import hashlib

from dpaudit._util.notebook import card
from dpaudit.errors import MissingDependency
from dpaudit.result.model import Result
from dpaudit.result.text import detectable_rows, render, shown


def as_html(result: Result) -> str:
    """Return the HTML of a result; without matplotlib it has no picture."""
    facts = [("claimed", repr(result.claim)), ("shown", shown(result))]
    witness = result.witness
    if witness is not None:
        facts += [
            ("data", witness.data),
            ("neighbour", witness.neighbour),
            ("event", witness.event),
            ("on data", str(witness.on_data)),
            ("on neighbour", str(witness.on_neighbour)),
        ]
    else:
        caught = ", ".join(f"{epsilon} (m={mass})" for mass, epsilon in detectable_rows(result))
        facts.append(("would have been caught from epsilon", caught))
    facts.append(("cost", f"{result.samples:,} samples, {result.seconds:.1f} s, seed {result.seed}"))
    return card(result.verdict, result.name, facts, text=render(result), svg=picture(result))


def picture(result: Result) -> str:
    """Return the picture of the outputs on both data sets as SVG, or nothing if there is none."""
    from dpaudit.result import plots

    # Ids in a notebook are shared by all of its outputs.
    prefix = f"dpaudit-{hashlib.sha256(repr(result.to_dict()).encode()).hexdigest()[:12]}-"
    try:
        drawn = plots.picture(result, "outputs", prefix=prefix)
    except MissingDependency:
        return ""
    return "" if drawn is None else drawn.svg
