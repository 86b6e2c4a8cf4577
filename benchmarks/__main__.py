"""``python -m benchmarks NAME [arguments]``; without a name, the list."""

from __future__ import annotations

import runpy
import sys

NAMES = {
    "catalogue": "bounds on the twenty published mechanisms [samples, default 2e7]",
    "overhead": "cost of the engine on top of the draws [samples, default 1e7]",
    "samplers": "samplers of the reference mechanisms against the bare draws",
    "accuracy": "verification of all accuracy theorems",
    "anonymity": "Mondrian and measures on 100,000 rows",
}

if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
    for name, text in NAMES.items():
        print(f"python -m benchmarks {name:<10} {text}")
    sys.exit(0 if len(sys.argv) < 2 else 2)
sys.argv = sys.argv[1:]
runpy.run_module(f"benchmarks.{sys.argv[0]}", run_name="__main__")
