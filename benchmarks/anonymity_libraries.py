"""Anonymity measures and algorithms beside pyCANON, anonypy and anjana, row by row, on random tables.

Measures are compared with pyCANON and with the decisions of anonypy on 150 tables, value by value; where a library is known to
differ, the last column says how. anonypy's Mondrian and anjana's generalisation are compared on 30 tables by what their releases
keep and lose. Processor time is a total over the tables. A library that is not installed is left out:
`python -m benchmarks.anonymity_libraries --make-environment FOLDER` makes an environment that has all three. ARX is a Java
program, and is compared by its source in `docs/anonymity.md`.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import Column, Row, Table, show_all
from dpaudit import anonymity

LIBRARIES = ("pycanon==1.3.5", "anonypy==0.2.1", "anjana==1.2.3")
TABLES = 150  # for measures
RELEASES = 30  # tables that are anonymised
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
            mine, seconds[0] = timed(ours_on, ours, frame, before=seconds[0])
            other, seconds[1] = timed(theirs, module, function, frame, before=seconds[1])
            agree += math.isclose(mine, other, rel_tol=1e-9, abs_tol=1e-12)
        yield measure_row("pyCANON", name, agree, seconds, difference)


def as_table(frame: pd.DataFrame) -> anonymity.Table:
    return anonymity.Table.from_frame(frame, quasi_identifiers=QUASI_IDENTIFIERS, sensitive="disease")


def ours_on(call: Callable[[anonymity.Table], Any], frame: pd.DataFrame) -> Any:
    return call(as_table(frame))


def timed(call: Callable[..., Any], *arguments: Any, before: float = 0.0) -> tuple[Any, float]:
    """Return the result of a call, and the time before plus its processor time."""
    start = time.process_time()
    value = call(*arguments)
    return value, before + time.process_time() - start


def measure_row(library: str, name: str, agree: int, seconds: list[float], difference: str) -> Row:
    row: Row = {"library": library, "what": name, "agree": agree, "ours": seconds[0], "theirs": seconds[1]}
    row["difference"] = difference
    if agree < TABLES and not difference:
        row["fault"] = f"{library}, {name}: {TABLES - agree} of {TABLES} tables differ without a known reason."
    return row


# The decisions of anonypy about the classes of a table: ours, a level that about half of the tables reach, and its function.
DECISIONS: dict[str, tuple[Callable[[anonymity.Table], bool], Callable[[Any, pd.DataFrame, Any], bool], str]] = {
    "k >= 4": (
        lambda t: anonymity.k_anonymity(t).meets(4),
        lambda module, _, classes: all(module.is_k_anonymous(rows, 4) for rows in classes),
        "",
    ),
    "distinct l >= 3": (
        lambda t: anonymity.l_diversity(t).meets(3),
        lambda module, frame, classes: all(module.is_l_diverse(frame, rows, "disease", 3) for rows in classes),
        "",
    ),
    "t <= 0.3, total variation": (
        lambda t: anonymity.t_closeness(t).meets(0.3),
        lambda module, frame, classes: all(
            module.is_t_close(frame, rows, "disease", module.get_global_freq(frame, "disease"), 0.3) for rows in classes
        ),
        "overwrites the threshold with the share of the last value, compares the largest difference of a value",
    ),
}


def decided(module: Any) -> Iterator[Row]:
    """One row for each decision of anonypy."""
    frames = [table(number) for number in range(TABLES)]
    for name, (ours, other, difference) in DECISIONS.items():
        agree = 0
        seconds = [0.0, 0.0]
        for frame in frames:
            classes = list(frame.groupby(QUASI_IDENTIFIERS).groups.values())
            mine, seconds[0] = timed(ours_on, ours, frame, before=seconds[0])
            answer, seconds[1] = timed(other, module, frame, classes, before=seconds[1])
            agree += mine == answer
        yield measure_row("anonypy", name, agree, seconds, difference)


def raw_table(number: int) -> pd.DataFrame:
    """A random table before it is anonymised."""
    rng = np.random.default_rng([number, 1])
    records = int(rng.integers(40, 120))
    return pd.DataFrame(
        {
            "age": rng.integers(0, 40, records),
            "plz": [f"1{a}{b}" for a, b in rng.integers(0, 2, (records, 2))],
            "disease": rng.choice(["flu", "cancer", "none"], records, p=[0.3, 0.2, 0.5]),
        }
    )


def by_anonypy(module: Any) -> Row:
    """Mondrian with k = 4 on two numbers: sizes of the classes, and discernibility."""
    k, losses, kept, seconds = 4, [], [0, 0], [0.0, 0.0]
    for number in range(RELEASES):
        frame = raw_table(number).assign(plz=lambda table: table["plz"].astype(int))
        ours, seconds[0] = timed(ours_on, functools.partial(anonymity.mondrian, k=k), frame, before=seconds[0])
        other = module.Mondrian(frame, QUASI_IDENTIFIERS, "disease")
        parts, seconds[1] = timed(other.partition, k, before=seconds[1])
        sizes = [len(part) for part in parts]
        kept[0] += anonymity.k_anonymity(ours.table).meets(k)
        kept[1] += min(sizes) >= k
        losses.append((float(anonymity.discernibility(ours.table)), float(sum(size**2 for size in sizes))))
    return release_row("Mondrian, k = 4", "anonypy", "discernibility", losses, kept, seconds)


def by_anjana(module: Any) -> Row:
    """Levels of two hierarchies with k = 5, and at most 5 % of the records withheld: granularity."""
    k, losses, kept, seconds = 5, [], [0, 0], [0.0, 0.0]
    widths = (5, 10, 20)
    ages = anonymity.Intervals([list(range(0, 41, width)) for width in widths])
    levels = {"age": ages, "plz": anonymity.Prefixes(3)}
    generalise = functools.partial(anonymity.full_domain, k=k, hierarchies=levels, suppression=0.05)
    for number in range(RELEASES):
        frame = raw_table(number)
        old = frame["age"].to_numpy()
        hierarchies: dict[str, Any] = {
            "age": {
                0: old,
                **{i: [f"{a // w * w}-{a // w * w + w - 1}" for a in old] for i, w in enumerate(widths, 1)},
            },
            "plz": {i: [code[: 3 - i] + "*" * i for code in frame["plz"]] for i in range(4)},
        }
        ours, seconds[0] = timed(ours_on, generalise, frame, before=seconds[0])
        with redirect_stdout(StringIO()):  # it prints what it cannot do
            # An identifier of the record says which ones are left.
            theirs, seconds[1] = timed(
                module.k_anonymity, frame.assign(row=frame.index), [], QUASI_IDENTIFIERS, k, 5, hierarchies,
                before=seconds[1],
            )  # fmt: skip
        released = theirs.set_index("row")[[*QUASI_IDENTIFIERS, "disease"]]
        kept[0] += anonymity.k_anonymity(ours.table).meets(k)
        kept[1] += anonymity.k_anonymity(as_table(released)).meets(k)
        loss = [
            anonymity.information_loss(frame, made, quasi_identifiers=QUASI_IDENTIFIERS, match="index").granularity
            for made in (ours.frame, released)
        ]
        losses.append((loss[0], loss[1]))
    return release_row("levels, k = 5", "anjana", "granularity", losses, kept, seconds)


def release_row(
    what: str, library: str, loss: str, losses: list[tuple[float, float]], kept: list[int], seconds: list[float]
) -> Row:
    means = np.mean(losses, axis=0)
    row: Row = {
        "what": what,
        "library": library,
        "kept": f"{kept[0]} / {kept[1]}",
        "loss": loss,
        "means": f"{means[0]:.3g} / {means[1]:.3g}",
        "lower": f"{sum(a < b for a, b in losses)} / {sum(b < a for a, b in losses)}",
        "ours": seconds[0],
        "theirs": seconds[1],
    }
    if kept[0] < RELEASES:
        row["fault"] = f"{what}: {RELEASES - kept[0]} of {RELEASES} releases of ours are not k-anonymous."
    return row


def present(*names: str) -> list[Any]:
    """The modules that are installed; those that are not are named."""
    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            print(
                f"{name.partition('.')[0]} is not installed, and is left out: --make-environment FOLDER makes one that has it."
            )
    return found


def run(*, quick: bool = False) -> Iterator[Table]:  # noqa: ARG001 - as every benchmark
    """The comparison with what is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measures = [row for module in present("pycanon.anonymity") for row in compared(module)]
        measures += [row for module in present("anonypy.anonymity") for row in decided(module)]
        releases = [by_anonypy(module) for module in present("anonypy.mondrian")]
        releases += [by_anjana(module) for module in present("anjana.anonymity")]
    if measures:
        yield Table(
            title=f"Anonymity measures on {TABLES} random tables, beside pyCANON and anonypy",
            columns=(
                Column("library", "library", "<8"),
                Column("what", "measure or decision", "<25"),
                Column("agree", f"agree, of {TABLES}", ">14"),
                Column("ours", "ours, CPU s", ">11.2f"),
                Column("theirs", "theirs", ">8.2f"),
                Column("difference", "known difference", "<76"),
            ),
            rows=measures,
        )
    if releases:
        yield Table(
            title=f"Releases of {RELEASES} random tables; pairs of figures are ours / theirs",
            columns=(
                Column("what", "algorithm", "<16"),
                Column("library", "library", "<8"),
                Column("kept", f"k kept, of {RELEASES}", "<15"),
                Column("loss", "loss", "<15"),
                Column("means", "mean loss", "<15"),
                Column("lower", "tables with the lower loss", "<26"),
                Column("ours", "ours, CPU s", ">11.2f"),
                Column("theirs", "theirs", ">8.2f"),
            ),
            rows=releases,
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
