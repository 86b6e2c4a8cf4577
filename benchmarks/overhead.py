"""What the engine costs on top of the sampling: CPU seconds of an audit against those of the bare draws, in one run."""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import numpy as np

import dpaudit


def laplace(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(size=size)


def gaussian(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.normal(scale=4.0, size=size)


def laplace_10(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(scale=10.0, size=(size, 10))


CASES = {
    "laplace": (laplace, dpaudit.PureDP(1.0)),
    "gaussian": (gaussian, dpaudit.ApproxDP(1.0, 1e-5)),
    "laplace, 10 coordinates": (laplace_10, dpaudit.PureDP(1.0)),
}


def measure(samples: int) -> list[dict[str, Any]]:
    """Bare draws and audit of each case, one after the other."""
    rows = []
    for name, (mechanism, claim) in CASES.items():
        rng = np.random.default_rng(0)
        begin = time.process_time()
        for _ in range(samples // 65_536):
            mechanism(0.0, 65_536, rng)
        bare = time.process_time() - begin
        begin = time.process_time()
        result = dpaudit.audit(dpaudit.batched(mechanism), claim, [(0.0, 1.0)], samples=samples, seed=0)
        audit = time.process_time() - begin
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append({"case": name, "samples": result.samples, "bare": bare, "engine": audit - bare, "memory": memory})
        print(
            f"{name:<24} {samples:>11,} samples: draws {bare:6.2f} s, engine {audit - bare:6.2f} s "
            f"({(audit - bare) / bare:5.2f} of the draws), peak memory {memory:.0f} MB",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    measure(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000)
