"""The pinned audits: short, seeded, and without a budget of time, so that each gives the same result everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

import dpaudit
from dpaudit import ApproxDP, Claim, GaussianDP, PureDP, Relation, RenyiDP, ZeroConcentratedDP, neighbours
from dpaudit import batched as many
from dpaudit import per_release as single
from dpaudit.engine import conclude
from dpaudit.engine.sampling.processes import Workers
from mechanisms import registry
from mechanisms.laplace import LaplaceMechanism
from mechanisms.registry.float_bits import zero_and_one
from tests.golden import audited

ONE_ROW = [([], [1])]
THREE_PAIRS = [([], [1]), ([1], [1, 2]), ([1, 2, 3], [1, 2, 3, 4])]
ROWS = st.integers(0, 5)
ADD_REMOVE = neighbours.add_remove(ROWS, max_size=4)
SUBSTITUTE = neighbours.substitute(ROWS, max_size=3)
AGES = neighbours.add_remove(
    st.fixed_dictionaries({"age": st.integers(0, 100)}), max_size=3, container=neighbours.frame(["age"], ["int64"])
)


@dataclass(frozen=True, slots=True)
class Case:
    """A named audit. ``made`` returns its result."""

    name: str
    made: Callable[[], Any]

    def run(self) -> Any:
        """Return the result; no call counts as slow, which would depend on what else the machine does."""
        with mock.patch.object(conclude, "SHRINK", replace(conclude.SHRINK, slow=math.inf)):
            return self.made()


class Counting(Workers):
    """Worker processes that count what is sent to them."""

    sent = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sent += 1
        return super().submit(fn, *args, **kwargs)


def audit(name: str, mechanism: Any, claim: Claim, where: Any, *, workers: int = 0, **options: Any) -> Case:
    """Return a case of ``dpaudit.audit``, in so many worker processes."""
    return Case(name, partial(_audit, mechanism, claim, where, workers, {"samples": 10_000, "seed": 1, **options}))


def registered(name: str, **options: Any) -> Case:
    """Return a case that audits an entry of ``mechanisms``."""
    return Case(f"registry {name}", partial(_registered, name, {"samples": 20_000, "seed": 2, **options}))


def scores(name: str, claim: Claim, *, shift: float, runs: int = 400, **options: Any) -> Case:
    """Return a case of ``dpaudit.audit_scores``, on normal scores that the canary shifts."""
    return Case(name, partial(_scores, claim, shift, runs, options))


def one_run(name: str, claim: Claim, *, noise: float, canaries: int = 500, **options: Any) -> Case:
    """Return a case of ``dpaudit.one_run_bound``, on membership with normal noise."""
    return Case(name, partial(_one_run, claim, noise, canaries, options))


def _audit(mechanism: Any, claim: Claim, where: Any, workers: int, options: dict[str, Any]) -> Any:
    if not workers:
        return dpaudit.audit(mechanism, claim, where, **options)
    executor = processes(workers)
    before = executor.sent
    result = dpaudit.audit(mechanism, claim, where, executor=executor, **options)
    assert executor.sent > before, "nothing was sent to the workers: the case shows nothing about them"
    return result


@cache
def processes(workers: int) -> Counting:
    """Return worker processes that all cases use, because each takes a second of processor time to start."""
    return Counting(workers)


def _registered(name: str, options: dict[str, Any]) -> Any:
    entry = registry.find(name)
    return dpaudit.audit(entry.make(), entry.claim, entry.neighbours(), name=name, **options)


def _scores(claim: Claim, shift: float, runs: int, options: dict[str, Any]) -> Any:
    rng = np.random.default_rng(3)
    return dpaudit.audit_scores(rng.normal(shift, size=runs), rng.normal(size=runs), claim, **options)


def _one_run(claim: Claim, noise: float, canaries: int, options: dict[str, Any]) -> Any:
    rng = np.random.default_rng(4)
    members = rng.random(canaries) < 0.5
    return dpaudit.one_run_bound(members + rng.normal(scale=noise, size=canaries), members, claim, **options)


NUMBERS = [
    audit("laplace kept", many(audited.count_laplace), PureDP(1.0), ONE_ROW, samples=60_000),
    audit("laplace kept, to the budget", many(audited.count_laplace), PureDP(1.0), ONE_ROW, until="budget"),
    audit("laplace inconclusive", many(audited.count_laplace), PureDP(1.0), ONE_ROW, samples=300),
    audit("laplace half noise", many(audited.count_half_noise), PureDP(1.0), ONE_ROW),
    audit("laplace half noise, to the budget", many(audited.count_half_noise), PureDP(1.0), ONE_ROW, until="budget"),
    audit("laplace half noise, alpha", many(audited.count_half_noise), PureDP(1.0), ONE_ROW, alpha=0.01, shrink=False),
    audit("laplace half noise, three pairs", many(audited.count_half_noise), PureDP(1.0), THREE_PAIRS),
    audit("equal pair among others", many(audited.count_half_noise), PureDP(1.0), [([], []), ([], [1])]),
    audit("geometric numbers", many(audited.count_geometric), PureDP(0.5), ONE_ROW, samples=20_000),
    audit("nan tells", many(audited.rarely_nan), PureDP(1.0), ONE_ROW),
]
CLAIMS = [
    audit("approximate kept", many(audited.count_laplace), ApproxDP(1.0, 0.05), ONE_ROW, samples=60_000),
    audit("approximate broken", many(audited.count_narrow_gaussian), ApproxDP(1.0, 0.01), ONE_ROW),
    audit("gaussian kept", many(audited.count_gaussian), GaussianDP(1.0), ONE_ROW, samples=60_000, detect_factor=3.0),
    audit("gaussian broken", many(audited.count_narrow_gaussian), GaussianDP(1.0), ONE_ROW),
    audit("concentrated kept", many(audited.count_gaussian), ZeroConcentratedDP(0.5), ONE_ROW, samples=20_000),
    audit("concentrated broken", many(audited.count_narrow_gaussian), ZeroConcentratedDP(0.5), ONE_ROW),
    audit("renyi kept", many(audited.count_gaussian), RenyiDP(2.0, 1.0), ONE_ROW, samples=20_000),
    audit(
        "renyi broken, to the budget", many(audited.count_narrow_gaussian), RenyiDP(2.0, 1.0), ONE_ROW, until="budget"
    ),
]
VECTORS = [
    audit("vector kept", many(audited.vector_laplace), PureDP(1.0), ONE_ROW, samples=20_000),
    audit("vector, last leaks", many(audited.vector_last_leaks), PureDP(1.0), ONE_ROW),
    audit("vector, shared noise", many(audited.vector_shared_noise), PureDP(0.5), ONE_ROW, samples=30_000),
    audit(
        "vector, same sign, boosted", many(audited.vector_same_sign), PureDP(0.3), ONE_ROW, boosted=True, samples=40_000
    ),
    audit("matrix", many(audited.matrix_noise), ApproxDP(1.0, 1e-3), ONE_ROW),
    audit("list of some length", single(audited.list_of_some_length), PureDP(0.5), ONE_ROW),
]
CATEGORIES = [
    audit("words kept", many(audited.words), PureDP(0.5), ONE_ROW, samples=40_000),
    audit("words that tell", many(audited.words_that_tell), PureDP(1.0), ONE_ROW),
    audit("words that tell, to the budget", many(audited.words_that_tell), PureDP(1.0), ONE_ROW, until="budget"),
    audit("sentence", single(audited.sentence), PureDP(0.3), ONE_ROW, samples=20_000),
    audit("number as text", single(audited.number_as_text), PureDP(1.0), ONE_ROW),
    audit("coin", single(audited.coin), PureDP(0.5), ONE_ROW),
    audit("bytes", single(audited.bytes_of), PureDP(0.5), ONE_ROW),
    audit("set of words", single(audited.set_of_words), PureDP(1.0), ONE_ROW),
]
MIXED = [
    audit("mixed kept", single(audited.mixed), PureDP(1.0), ONE_ROW),
    audit("mixed that tells", single(audited.mixed_that_tells), PureDP(1.0), ONE_ROW),
    audit("tuple that tells", single(audited.tuple_that_tells), PureDP(1.0), ONE_ROW),
    audit("tuple that tells, searched", single(audited.tuple_that_tells), PureDP(1.0), ADD_REMOVE, samples=8000),
]
EXCEPTIONS = [
    audit("raises sometimes", single(audited.raises_sometimes), PureDP(1.0), ONE_ROW),
    audit("raises alike", single(audited.raises_alike), PureDP(1.0), ONE_ROW),
    audit("batch raises", many(audited.batch_raises), PureDP(1.0), ONE_ROW),
    audit("batch rarely raises", many(audited.batch_rarely_raises), PureDP(1.0), ONE_ROW, seed=3),
    audit("batch rarely raises, half noise", many(audited.batch_rarely_raises_half_noise), PureDP(1.0), ONE_ROW),
    audit("mean of no rows", many(audited.mean_of_rows), PureDP(1.0), [([1], []), ([1], [2])]),
]
SEARCHED = [
    audit("add or remove kept", many(audited.count_laplace), PureDP(1.0), ADD_REMOVE, samples=30_000),
    audit("add or remove broken", many(audited.sum_half_noise), PureDP(1.0), ADD_REMOVE, pairs=8),
    audit("add or remove, to the budget", many(audited.sum_half_noise), PureDP(3.0), ADD_REMOVE, until="budget"),
    audit("substitute broken", many(audited.sum_half_noise), PureDP(2.0), SUBSTITUTE),
    audit("substitute, few samples", many(audited.sum_half_noise), PureDP(2.0), SUBSTITUTE, samples=2000, pairs=4),
    audit("frame of ages", many(audited.table_noise), PureDP(1.0), AGES),
    audit(
        "answers",
        many(audited.sum_half_noise),
        PureDP(2.0, Relation.ANSWERS),
        neighbours.answers(3, 0, 10),
        samples=20_000,
    ),
    audit("secrets", many(audited.secret_noise), PureDP(1.0), neighbours.secrets([(audited.ILL, audited.WELL)])),
    audit("secrets, many", many(audited.secret_noise), PureDP(0.5), neighbours.secrets([(audited.MANY, audited.FEW)])),
    audit("batch raises, searched", many(audited.batch_raises), PureDP(1.0), ADD_REMOVE, samples=8000),
]
PLAIN = [
    audit("exact count", audited.exact_count, PureDP(1.0), ADD_REMOVE, samples=6000),
    audit("constant", audited.parity_of_nothing, PureDP(1.0), ONE_ROW, samples=6000),
    audit("plain noise", audited.plain_noise, PureDP(1.0), ONE_ROW),
    audit("fresh mechanism", dpaudit.fresh(audited.Remembers), PureDP(0.5), ONE_ROW, samples=6000),
    audit("fresh function", dpaudit.fresh(audited.Budgeted), PureDP(1.0), ONE_ROW, samples=6000),
    audit("by name", "tests.golden.audited:make_half_noise", PureDP(1.0), ONE_ROW),
]
BITS = [
    audit(
        "representation broken",
        LaplaceMechanism(1.0, method="inverse-cdf"),
        PureDP(1.0, Relation.ANSWERS),
        zero_and_one(),
        channel="representation",
        samples=40_000,
    ),
    audit(
        "representation, half noise",
        many(audited.count_half_noise),
        PureDP(1.0),
        ONE_ROW,
        channel="representation",
    ),
    registered("laplace-snapping", channel="representation"),
]
# Each of these twice: in this process, and in two others.
SLOW = [
    case
    for workers in (0, 2)
    for case in (
        audit(
            f"slow half noise, workers {workers}",
            many(audited.slow_half_noise),
            PureDP(1.0),
            ONE_ROW,
            until="budget",
            workers=workers,
        ),
        audit(
            f"slow mixed, workers {workers}",
            single(audited.slow_mixed),
            PureDP(1.0),
            ONE_ROW,
            until="budget",
            samples=6000,
            workers=workers,
        ),
        audit(
            f"slow batch raises, workers {workers}",
            many(audited.slow_batch_raises),
            PureDP(1.0),
            ONE_ROW,
            seed=3,
            workers=workers,
        ),
        audit(
            f"slow noisy maximum, workers {workers}",
            audited.SlowNoisyMax(),
            PureDP(1.0, Relation.ANSWERS),
            neighbours.answers(3, 0, 4),
            workers=workers,
        ),
    )
]
REGISTERED = [
    registered("laplace-half-scale"),
    registered("laplace-sensitivity-from-data"),
    registered("discrete-laplace", samples=40_000),
    registered("gaussian-variance-halved", until="budget"),
    registered("noisy-max-laplace"),
    registered("noisy-max-value"),
    registered("svt-without-query-noise"),
    registered("randomised-response-k-ary"),
    registered("randomised-response-repeated"),
    registered("catalogue-noisy-hist-2"),
    registered("pufferfish-mean-distance"),
    registered("federated-zero-norm-raises"),
    registered("noisy-histogram-charged-once"),
]
MEMBERSHIP = [
    scores("scores broken", PureDP(0.5), shift=3.0),
    scores("scores kept", GaussianDP(1.0), shift=0.5, runs=2000, detect_factor=6.0),
    scores("scores inconclusive", ApproxDP(1.0, 1e-5), shift=1.0, runs=50, seed=5),
    one_run("one run broken", ApproxDP(1.0, 1e-5), noise=0.4),
    one_run("one run inconclusive", PureDP(4.0), noise=1.0, guesses=[100, 200]),
    one_run("one run, gaussian", GaussianDP(0.5), noise=0.4),
]
CASES = [
    *NUMBERS,
    *CLAIMS,
    *VECTORS,
    *CATEGORIES,
    *MIXED,
    *EXCEPTIONS,
    *SEARCHED,
    *PLAIN,
    *BITS,
    *SLOW,
    *REGISTERED,
    *MEMBERSHIP,
]
