"""Find the fewest outputs with which one tool refutes each claim: ``python ladder.py TOOL SECONDS [MECHANISM ...]``.

It runs in the environment of the tool. SECONDS is the processor time after which a larger budget is not tried any more.

The budgets are 100, 300, 1,000, ... outputs of both data sets together. A budget suffices if the claim is refuted with it for two
of three seeds. Prints one line of JSON for each mechanism.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import warnings

from drivers import TOOLS, CannotRead
from ten_mechanisms import MECHANISMS

SEEDS = (1, 2, 3)


def climb(tool: str, mechanism: str, seconds: float) -> dict[str, object]:
    """Return the fewest outputs (the median over seeds), or why there is no such number."""
    kind, sample = TOOLS[tool], MECHANISMS[mechanism]
    began = time.process_time()
    budget = 0
    for power in itertools.count(4):
        tried, budget = budget, 10 ** (power // 2) * (3 if power % 2 else 1)
        if budget > kind.most:
            return {"outputs": None, "why": f"not with {tried:,}"}
        try:
            drawn = [kind.driver(sample, budget, seed) for seed in SEEDS]
        except CannotRead as error:
            return {"outputs": None, "why": str(error)}
        except Exception as error:
            return {"outputs": None, "why": f"{type(error).__name__}: {error}"[:80]}
        enough = sorted(number for number in drawn if number is not None)
        if len(enough) >= 2:
            return {"outputs": enough[1], "why": ""}
        if time.process_time() - began > seconds:
            return {"outputs": None, "why": f"not with {budget:,} ({seconds:g} s)"}
    raise AssertionError("the ladder has no end")


def main() -> None:
    tool, seconds = sys.argv[1], float(sys.argv[2])
    warnings.simplefilter("ignore")
    for mechanism in sys.argv[3:] or MECHANISMS:
        began = time.process_time()
        row = {"tool": tool, "mechanism": mechanism, **climb(tool, mechanism, seconds)}
        print(json.dumps({**row, "cpu_seconds": round(time.process_time() - began, 1)}), flush=True)


if __name__ == "__main__":
    main()
