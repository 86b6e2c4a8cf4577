"""Anonymity measures against pyCANON, row by row, on 150 random tables.

Values are compared measure by measure, and processor time in total; where pyCANON is known to differ, the last column says how.
Where it is not installed, nothing is compared: `python -m benchmarks.anonymity_libraries --make-environment FOLDER` makes an
environment that has it. anonypy and anjana anonymise rather than measure: releases of theirs are in
`tests/anonymity/test_other_libraries_oracle.py`. ARX is a Java program, and is compared by its documentation in
`docs/anonymity.md`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import Column, Row, Table, show_all
from dpaudit import anonymity

LIBRARIES = ("pycanon==1.3.5",)
TABLES = 150
QUASI_IDENTIFIERS = ["age", "plz"]

# measure: ours, the function of pyCANON, and why it may differ
MEASURES: dict[str, tuple[Callable[[anonymity.Table], float], str, str]] = {
    "k": (lambda t: anonymity.k_anonymity(t).value, "k_anonymity", ""),
    "alpha of (alpha, k)": (lambda t: anonymity.alpha_k_anonymity(t).alpha.value, "alpha_k_anonymity", ""),
    "distinct l": (lambda t: anonymity.l_diversity(t).value, "l_diversity", ""),
    "entropy l": (
        lambda t: anonymity.l_diversity(t, kind="entropy").value,
        "entropy_l_diversity",
        "rounded down to a whole number, sometimes to the one below it",
    ),
    "t, total variation": (lambda t: anonymity.t_closeness(t).value, "t_closeness", ""),
    "basic beta": (lambda t: anonymity.beta_likeness(t).value, "basic_beta_likeness", ""),
    "enhanced beta": (
        lambda t: anonymity.beta_likeness(t, enhanced=True).value,
        "enhanced_beta_likeness",
        "a gain above -ln p, which no beta allows, is cut off there",
    ),
    "delta-disclosure": (
        lambda t: anonymity.delta_disclosure(t).value,
        "delta_disclosure",
        "values that a class lacks are left out; their log-ratio is infinite",
    ),
}


def table(number: int) -> pd.DataFrame:
    """One random table; the same number gives the same table."""
    rng = np.random.default_rng(number)
    records = int(rng.integers(6, 80))
    return pd.DataFrame(
        {
            "age": rng.choice(["20-39", "40-59", "60+"], records),
            "plz": rng.choice(["32**", "26**"], records),
            "disease": rng.choice(["flu", "cancer", "none"], records, p=[0.3, 0.2, 0.5]),
        }
    )


def theirs(module: Any, function: str, frame: pd.DataFrame) -> float:
    """The value of pyCANON: k needs no sensitive column, and (alpha, k)-anonymity gives both numbers."""
    sensitive = [] if function == "k_anonymity" else [["disease"]]
    value = getattr(module, function)(frame, QUASI_IDENTIFIERS, *sensitive)
    return float(value[0] if isinstance(value, tuple) else value)


def compared(module: Any) -> Iterator[Row]:
    """One row for each measure: on how many tables both agree, and the time of each."""
    frames = [table(number) for number in range(TABLES)]
    for name, (ours, function, difference) in MEASURES.items():
        agree = 0
        seconds = [0.0, 0.0]
        for frame in frames:
            start = time.process_time()
            mine = ours(anonymity.Table.from_frame(frame, quasi_identifiers=QUASI_IDENTIFIERS, sensitive="disease"))
            middle = time.process_time()
            other = theirs(module, function, frame)
            seconds[0] += middle - start
            seconds[1] += time.process_time() - middle
            agree += math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-12)
        row: Row = {"what": name, "agree": agree, "ours": seconds[0], "theirs": seconds[1], "difference": difference}
        if agree < TABLES and not difference:
            row["fault"] = f"{name}: {TABLES - agree} of {TABLES} tables differ without a known reason."
        yield row


def run(*, quick: bool = False) -> Iterator[Table]:  # noqa: ARG001 - as every benchmark
    """The comparison with what is installed."""
    try:
        module = importlib.import_module("pycanon.anonymity")
    except ImportError:
        print("pyCANON is not installed, so there is nothing to compare with: --make-environment FOLDER makes one.")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Table(
            title=f"Anonymity measures on {TABLES} random tables, beside pyCANON",
            columns=(
                Column("what", "measure", "<22"),
                Column("agree", f"agree, of {TABLES}", ">14"),
                Column("ours", "ours, CPU s", ">11.2f"),
                Column("theirs", "theirs", ">8.2f"),
                Column("difference", "known difference", "<76"),
            ),
            rows=compared(module),
        )


def make_environment(folder: Path) -> None:
    """Make a virtual environment with the libraries and this package, and run the comparison in it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *LIBRARIES, "-e", "."], check=True)
    subprocess.run([python, "-m", "benchmarks.anonymity_libraries"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make-environment", type=Path, metavar="FOLDER", help="make one with the libraries, and run")
    folder = parser.parse_args().make_environment
    if folder is not None:
        make_environment(folder)
        return 0
    return 1 if show_all(run(), print)["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
