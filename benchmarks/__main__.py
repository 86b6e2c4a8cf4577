"""``python -m benchmarks NAME... [--quick] [--json FILE]``; without a name, the list."""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.tables import FORMAT, save, show_all, unwritable
from dpaudit._util.validation import did_you_mean

NAMES = {
    "overhead": "cost of the engine on top of the draws, from 1e5 to 1e8 samples; fixed cost; memory",
    "bounds": "lower bounds beside the best that a test of one event shows, on ten mechanisms",
    "catalogue": "bounds on the twenty published mechanisms",
    "detection": "samples to detect, over all broken mechanisms",
    "leaks": "samples to detect leaks in collections, text, bytes and combinations; sound twins",
    "soundness": "false alarms and bounds above the truth on tight mechanisms",
    "presentations": "false alarms on sound mechanisms that present their outputs differently",
    "accumulated": "false alarms and leaks found where evidence grows over many runs",
    "promises": "leaks at exactly the detectable epsilon, and how many are found",
    "mutation": "mutants of the reference mechanisms, and how many are found",
    "scaling": "throughput over workers",
    "samplers": "samplers of the reference mechanisms against the bare draws",
    "accuracy": "verification of all accuracy theorems",
    "anonymity_libraries": "anonymity measures and algorithms beside pyCANON, anonypy and anjana, where they are installed",
    "extraction": "which mechanisms of the registry are followed from their code, and what is extracted",
    "soak": "hostile runs of the command line: exit codes, whole files, no process left",
    "anonymity": "Mondrian and measures on 100,000 rows",
}
EXAMPLE = "python -m benchmarks all --quick --json figures.json"


def parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<10} {text}" for name, text in NAMES.items())
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"benchmarks:\n{listed}\n  {'all':<10} all of them\n\nfor example: {EXAMPLE}",
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="which to run; see below")
    made.add_argument("--quick", action="store_true", help="smaller sizes: each in about a minute on two cores")
    made.add_argument("--samples", type=_samples, help="samples of each audit, where the benchmark has such a size")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, after each benchmark")
    return made


def _samples(text: str) -> int:
    """A whole number of at least 2, which may be written 1e6."""
    value = float(text)
    if not (2.0 <= value < math.inf and value == int(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 2")
    return int(value)


def versions() -> dict[str, str]:
    packages = ("dpaudit", "numpy", "scipy")
    return {"python": platform.python_version(), **{package: metadata.version(package) for package in packages}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for: 0 if every requirement is met, 1 if not, 2 for usage."""
    options = parser().parse_args(arguments)
    if not options.names:
        parser().print_help()
        return 0
    for name in options.names:
        if name not in NAMES and name != "all":
            print(f"benchmark={name!r} is not one of them.{did_you_mean(name, [*NAMES, 'all'])}", file=sys.stderr)
            print(f"Known: {', '.join([*NAMES, 'all'])}.", file=sys.stderr)
            return 2
    names = list(NAMES) if "all" in options.names else list(dict.fromkeys(options.names))
    runs = {name: importlib.import_module(f"benchmarks.{name}").run for name in names}
    sizes = {} if options.samples is None else {"samples": options.samples}
    for name, run in runs.items():
        if not sizes.keys() <= inspect.signature(run).parameters.keys():
            print(f"--samples={options.samples:g}: {name} has no such size; leave it out.", file=sys.stderr)
            return 2
    if options.json is not None and (fault := unwritable(options.json)):
        print(f"--json={options.json}: {fault}.", file=sys.stderr)
        return 2
    size = "" if options.samples is None else f" --samples {options.samples:g}"
    document: dict[str, Any] = {
        "format": FORMAT,
        "quick": options.quick,
        "versions": versions(),
        "cpus": os.cpu_count(),
        "benchmarks": {},
    }
    for name, run in runs.items():
        print(f"## `python -m benchmarks {name}{' --quick' * options.quick}{size}`\n", flush=True)
        done = show_all(run(quick=options.quick, **sizes), lambda line: print(line, flush=True))
        print(
            f"{name}: {done['cpu_seconds']:.0f} CPU seconds, {done['wall_seconds']:.0f} s by the clock.\n", flush=True
        )
        document["benchmarks"][name] = done
        if options.json is not None:
            save(options.json, document)
    faults = sum(len(done["faults"]) for done in document["benchmarks"].values())
    print(f"{faults} requirement(s) not met." if faults else "Every requirement is met.")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Interrupted; --json has the benchmarks that ended before.", file=sys.stderr)
        sys.exit(130)
