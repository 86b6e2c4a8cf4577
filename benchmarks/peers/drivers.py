"""One driver for each tool: whether the tool refutes the claim with a budget of outputs. It runs in the environment of the tool.

A driver takes a sampler, the most outputs of both data sets together that it may draw (its own training included), and a seed.
It returns the number of outputs that were drawn if the claim of epsilon = 1 was refuted with error probability ``ALPHA``, and
otherwise None. Tools that take a fixed number of outputs draw all of them, split as their own defaults are.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from ten_mechanisms import EPSILON, Sampler

ALPHA = 1e-6
Driver = Callable[[Sampler, int, int], int | None]


class CannotRead(Exception):
    """The tool has no notion of these outputs."""


@dataclass(frozen=True)
class Tool:
    """The installation of a tool, and its driver."""

    driver: Driver
    requirements: tuple[str, ...] = ()
    checkout: str = ""  # the folder of its repository that goes on the path; empty: it is on PyPI
    most: int = 3_000_000  # outputs; tools whose time is not linear in them have less


def _numbers(outputs: np.ndarray) -> np.ndarray:
    if outputs.ndim > 1:
        raise CannotRead("one number only")
    return outputs


def dpaudit(sample: Sampler, budget: int, seed: int) -> int | None:
    import dpaudit as tool

    # One call a release: no other tool looks at outputs of one call that depend on each other, as ours does for `batched`.
    single = tool.per_release(lambda data, rng: sample(data, 1, rng)[0])
    result = tool.audit(
        single,
        tool.PureDP(EPSILON),
        [(0, 1)],
        samples=budget,
        alpha=ALPHA,
        seed=seed,
        shrink=False,
        allow_constant=True,
    )
    return result.samples if result.verdict is tool.Verdict.VIOLATION else None


def statdp(sample: Sampler, budget: int, seed: int) -> int | None:
    from statdp.hypotest import hypothesis_test
    from statdp.selectors import select_event

    rng = np.random.default_rng(seed)
    _numbers(sample(0, 2, rng))

    def algorithm(prng: Any, queries: Any, **unused: Any) -> float:
        del unused
        return float(sample(queries[0], 1, prng)[0])

    event, detect = budget // 12, budget // 2 - budget // 12  # of each side: 100,000 and 500,000 by default
    with ThreadPool(1) as pool:
        first = select_event(algorithm, [([0], [1], {})], EPSILON, event, pool, quiet=True)
        p_value = hypothesis_test(algorithm, *first, EPSILON, detect, pool, report_p2=False)
    return budget if p_value <= ALPHA else None


def dp_sniper(sample: Sampler, budget: int, seed: int) -> int | None:
    import torch
    from dpsniper.attack.dpsniper import DPSniper
    from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory
    from dpsniper.classifiers.torch_optimizer_factory import SGDOptimizerFactory
    from dpsniper.mechanisms.abstract import Mechanism
    from dpsniper.probability.estimators import EpsEstimator, PrEstimator
    from dpsniper.search.ddconfig import DDConfig
    from dpsniper.utils.initialization import initialize_dpsniper

    if budget < 7000:  # each of its seven parts has at least 1,000
        return None
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    logging.getLogger().setLevel(logging.ERROR)

    class Wrapped(Mechanism):  # type: ignore[misc]
        def m(self, a: Any, n_samples: int = 1) -> np.ndarray:
            return sample(int(a[0]), n_samples, rng)

    width = 1 if sample(0, 1, rng).ndim == 1 else 10
    # Two parts for training (one a side), one for the threshold, and the rest for the estimate: two for each side.
    part = max(1000, budget // 7000 * 1000)
    config = DDConfig(n_train=part, n=part, n_check=part, n_final=2 * part, n_processes=1, confidence=1.0 - ALPHA)
    with tempfile.TemporaryDirectory() as folder, initialize_dpsniper(config, out_dir=folder, torch_threads=1):
        factory = LogisticRegressionFactory(in_dimensions=width, optimizer_factory=SGDOptimizerFactory())
        attack = DPSniper(Wrapped(), factory, config).best_attack(np.array([0]), np.array([1]))
        estimator = EpsEstimator(PrEstimator(Wrapped(), config.n_final, config))
        _, lower = estimator.compute_eps_estimate(np.array([0]), np.array([1]), attack)
    return 7 * part if lower > EPSILON else None


def dp_auditorium(sample: Sampler, budget: int, seed: int) -> int | None:
    """Its packages import TensorFlow and Vizier; the histogram tester needs neither."""
    for name in ("dp_auditorium", "dp_auditorium.testers"):
        package = ModuleType(name)
        package.__path__ = [os.path.join(os.environ["PEER_CHECKOUT"], *name.split("."))]
        sys.modules.setdefault(name, package)
    from dp_auditorium.configs.privacy_property import ApproximateDp
    from dp_auditorium.configs.property_tester_config import HistogramPropertyTesterConfig
    from dp_auditorium.testers.histogram_tester import HistogramTester

    rng = np.random.default_rng(seed)
    sides = [_numbers(sample(data, budget // 2, rng)) for data in (0, 1)]
    tester = HistogramTester(
        HistogramPropertyTesterConfig(
            test_discrete_mechanism=False, histogram_size=10, min_value=-3.0, max_value=4.0,
            approximate_dp=ApproximateDp(epsilon=EPSILON, delta=0.0),
        )
    )  # fmt: skip
    lower = max(tester.estimate_lower_bound(a, b, ALPHA / 2.0) for a, b in (sides, sides[::-1]))
    return budget if tester.reject_property(lower) else None


def sequential_mmd(sample: Sampler, budget: int, seed: int) -> int | None:
    """Its code is a notebook, of which the cells that define its utilities and its test are run."""
    notebook = json.loads(
        (Path(os.environ["PEER_CHECKOUT"]) / "numerical_experiments.ipynb").read_text(encoding="utf-8")
    )
    names: dict[str, Any] = {}
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        if "@title Imports" in cell:
            wanted = ("import numpy", "from scipy")
            exec("\n".join(line for line in cell.splitlines() if line.startswith(wanted)), names)
        elif "def rbf_kernel" in cell or "class OneSidedTwoSampleSequentialTest" in cell:
            exec(cell, names)
    rng = np.random.default_rng(seed)
    test = names["OneSidedTwoSampleSequentialTest"](EPSILON, 0.0, bw=1.0)
    sides = [sample(data, budget // 2, rng).reshape(budget // 2, -1) for data in (0, 1)]
    for drawn, (x, y) in enumerate(zip(*sides, strict=True), start=1):
        if test.step(x, y) >= 1.0 / ALPHA:
            return 2 * drawn
    return None


def jax_privacy(sample: Sampler, budget: int, seed: int) -> int | None:
    from jax_privacy.auditing import CanaryScoreAuditor

    rng = np.random.default_rng(seed)
    out, inside = (_numbers(sample(data, budget // 2, rng)) for data in (0, 1))
    auditor = CanaryScoreAuditor(inside, out)
    return budget if auditor.epsilon_clopper_pearson(significance=ALPHA, one_sided=False) > EPSILON else None


TOOLS: dict[str, Tool] = {
    "dpaudit": Tool(dpaudit),
    "StatDP": Tool(statdp, ("numpy", "numba", "tqdm", "scipy"), checkout="."),
    "DP-Sniper": Tool(
        dp_sniper,
        ("numpy", "pandas", "matplotlib", "scikit-learn", "statsmodels", "mmh3", "torch", "tensorboard"),
        checkout=".",
    ),
    "DP-Auditorium": Tool(dp_auditorium, ("numpy", "etils[array-types]", "typing-extensions"), checkout="."),
    "sequential MMD": Tool(sequential_mmd, ("numpy", "scipy"), checkout=".", most=1_000),
    "jax-privacy": Tool(jax_privacy, ("jax-privacy",)),
}
NOT_RUN = {
    "Delta-Siege": "imports OpenDP 0.6, PyDP, Opacus, private-pgm and hdmm of 2022, which install on Python 3.8 only",
    "privacy-meter": "reports attacks on models; it does not test a claim",
}
