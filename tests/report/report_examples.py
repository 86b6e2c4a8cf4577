"""Documents that the tests of the reports share: one audit of each kind, with names that would like to be obeyed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dpaudit.claims import ApproxDP, PureDP, Relation, Verdict, ZeroConcentratedDP
from dpaudit.report.document import Document, Entry
from dpaudit.result.model import Channel, Frequency, Result, StoppedBy, Witness

HOSTILE = """<script>document.title = "owned"</script><img src=x onerror='document.title="owned"'>"""
# Terminal escape, forged log line, reversed reading order, NUL, a lone surrogate, a noncharacter, line separator.
HIDDEN = "red \x1b[31m, \n::error::forged, \u202ereversed, \x00, \ud800, \uffff, \u2028"
MARKUP = "a | b `c` ```d``` [link](http://example.org) {{ 7 * 7 }} ${x} ]]> &amp; --> \\"

FIELDS: dict[str, Any] = {
    "epsilon_lower": 0.9,
    "delta": 0.0,
    "parameter_lower": 0.9,
    "alpha": 1e-6,
    "samples": 200_000,
    "seconds": 1.25,
    "pairs": 24,
    "channel": Channel.VALUE,
    "relation": Relation.ADD_REMOVE,
    "detectable_epsilon": 1.35,
    "detectable": {0.5: 1.13, 0.1: 1.35, 0.01: 2.58, 0.001: math.inf},
    "stopped_by": StoppedBy.SAMPLES,
    "reproducible": True,
    "seed": 0,
    "trajectory": tuple((1000 * step, -0.1 * step) for step in range(1, 9)),
    "log_threshold": math.log(2e6),
    "versions": {"dpaudit": "0.1.0", "python": "3.11.7"},
}

WITNESS = Witness(
    data="[]",
    neighbour="[0]",
    literal=True,
    event="output < 0.22",
    event_code="output < 0.22",
    on_data=Frequency(count=688, trials=1000, low=0.6489, high=0.7253),
    on_neighbour=Frequency(count=113, trials=1000, low=0.08861, high=0.1412),
    observed_log_ratio=1.806,
    confirmed=True,
    shrunk=True,
    seed=0,
    mechanism="counts.noisy",
    script_text='"""Repeats a measurement."""\n\nprint("1 < 2 & 3")\n',
)
NUMBERS = {
    "edges": [-1.0, 0.0, 1.0, 2.0],
    "data": [500, 300, 100],
    "neighbour": [100, 300, 500],
    "trials": [1000, 1000],
    "event": [["-inf", 0.22]],
}
CATEGORIES = {"categories": ["None", "<b>", "raises"], "data": [9, 1, 0], "neighbour": [0, 9, 1], "event": [0]}


def result(name: str = "count", **fields: Any) -> Result:
    """A result in which nothing was found, with some of its fields replaced."""
    given: dict[str, Any] = {
        **FIELDS, "name": name, "claim": PureDP(1.0), "verdict": Verdict.NO_VIOLATION_FOUND, **fields
    }  # fmt: skip
    return Result(**given)


def violation(name: str = "half noise", **fields: Any) -> Result:
    """A result with a witness."""
    given: dict[str, Any] = {
        "verdict": Verdict.VIOLATION,
        "epsilon_lower": 1.045,
        "parameter_lower": 1.045,
        "stopped_by": StoppedBy.VIOLATION,
        "witness": WITNESS,
        "samples": 5568,
        "samples_after": 3428,
        "trajectory": tuple((500 * step, 2.0 * step) for step in range(1, 9)),
        "outputs": NUMBERS,
        **fields,
    }
    return result(name, **given)


def inconclusive(name: str = "too few") -> Result:
    """A result that decided nothing."""
    return result(name, verdict=Verdict.INCONCLUSIVE, samples=600, messages=("Too few samples: give more.",))


def outcomes() -> Document:
    """One audit of each outcome, with names that say which."""
    return Document(
        entries=(
            Entry(result=result("fine")),
            Entry(result=violation("leak")),
            Entry(result=violation("known leak"), expect=Verdict.VIOLATION),
            Entry(result=result("no longer found"), expect=Verdict.VIOLATION),
            Entry(result=inconclusive("too few")),
            Entry(result=inconclusive("known to be undecided"), expect=Verdict.INCONCLUSIVE),
        )
    )


def document(*, interrupted: bool = False) -> Document:
    """One audit of each kind."""
    hostile = replace(
        WITNESS, data=repr([HOSTILE]), event=f"output == {HOSTILE!r}", script_text=f"data = {HOSTILE!r}\n"
    )
    entries = (
        Entry(result=result(), path="audits/counts.py", line=20),
        Entry(
            result=violation(),
            path="audits/counts.py",
            line=12,
            mechanism_path="app/noisy counts.py",
            mechanism_line=4,
        ),
        Entry(result=inconclusive(), path="audits/counts.py", line=28),
        Entry(
            result=violation("histogram keys", claim=ApproxDP(1.0, 1e-5), delta=1e-5, outputs=CATEGORIES),
            expect=Verdict.VIOLATION,
        ),
        Entry(result=result("no longer found"), expect=Verdict.VIOLATION, path="audits/known.py", line=3),
        Entry(result=violation(HOSTILE, witness=hostile, messages=(HOSTILE,)), path=f"audits/{HOSTILE}.py"),
        Entry(result=violation(HIDDEN, messages=(HIDDEN,), outputs={**CATEGORIES, "label": HIDDEN})),
        Entry(result=violation(MARKUP, messages=(MARKUP,))),
        Entry(
            result=violation("sum", claim=ZeroConcentratedDP(0.5), delta=1e-5, epsilon_lower=1.4, parameter_lower=0.6),
        ),
    )
    return Document(entries=entries, interrupted=interrupted)
