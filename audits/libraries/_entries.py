"""Libraries that people install, and the calls of theirs that ``make scoreboard`` audits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpaudit import ApproxDP, GaussianDP, PureDP, Relation, ZeroConcentratedDP
from dpaudit.claims import Claim

MUSEUM = "../museum/_released/"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function of ``_functions``, its claim, and the pairs on which it is audited."""

    function: str
    claim: Claim
    pairs: Sequence[tuple[Any, Any]]
    channel: str = "value"
    options: dict[str, Any] = field(default_factory=dict)
    known: str = ""  # where a violation of it was reported, or why it is meant


@dataclass(frozen=True, kw_only=True)
class Library:
    """A distribution, what pip installs for it, and the calls that are audited."""

    name: str
    requires: Sequence[str]
    alone: Sequence[str] = ()
    file: str
    calls: Sequence[Call]


ANSWERS, SUBSTITUTE, ADD_REMOVE = Relation.ANSWERS, Relation.SUBSTITUTE, Relation.ADD_REMOVE
NEXT = [(0.0, 1.0)]
ITEMS = [(0, 1)]
MANY = {"samples": 100_000}
BITS = "the bits of doubles depend on the answer ([Mironov 2012](https://doi.org/10.1145/2382196.2382264))"


def pure(
    function: str, pairs: Sequence[tuple[Any, Any]], epsilon: float = 1.0, relation: Relation = ANSWERS, **more: Any
) -> Call:
    """Return a call that claims pure differential privacy; a little more, because libraries round up."""
    return Call(function=function, claim=PureDP(epsilon * (1.0 + 1e-9), relation), pairs=pairs, **more)


def approximate(
    function: str, pairs: Sequence[tuple[Any, Any]], claim: tuple[float, float], relation: Relation, **more: Any
) -> Call:
    """Return a call that claims approximate differential privacy."""
    return Call(function=function, claim=ApproxDP(*claim, relation), pairs=pairs, **more)


OPENDP = Library(
    name="opendp",
    requires=["opendp"],
    file="opendp.py",
    calls=[
        pure("laplace_float", NEXT),
        pure("laplace_float", NEXT, channel="representation"),
        pure("laplace_integer", ITEMS, 1.0 / 3.0),
        Call(function="gaussian_float", claim=ZeroConcentratedDP(0.5 + 1e-9, ANSWERS), pairs=NEXT),
        Call(function="gaussian_integer", claim=ZeroConcentratedDP(1.0 / 18.0 + 1e-9, ANSWERS), pairs=ITEMS),
        pure("response_bool", [(True, False)], 1.0986122887, SUBSTITUTE),
        pure("response", [("a", "b")], 0.6931471806, SUBSTITUTE),
        pure("bit_vector", [(bytes([1 << bit]), bytes([0])) for bit in range(8)], 0.8026828, SUBSTITUTE),
        pure("count", [([1], [1, 2])], relation=ADD_REMOVE),
        pure("distinct", [([1], [1, 2])], relation=ADD_REMOVE),
        pure("categories", [([0], [0, 1])], 0.5, ADD_REMOVE),
        pure("sum_of_floats", [([], [10.0])], relation=ADD_REMOVE),
        pure("noisy_max", [([0, 1, 0], [1, 0, 1])]),
        pure("top_k", [([0, 1, 0], [1, 0, 1])]),
        approximate("threshold", [({"a": 30}, {"a": 30, "b": 1})], (1.0, 1e-8), ADD_REMOVE),
        pure("tree", [([1, 0, 0, 0], [0, 0, 0, 0])]),
        pure("quantile", [([1.0, 4.0], [1.0, 4.0, 9.0])], relation=ADD_REMOVE),
    ],
)

DIFFPRIVLIB = Library(
    name="diffprivlib",
    requires=["diffprivlib", "scikit-learn<1.6"],
    file="diffprivlib.py",
    calls=[
        pure("laplace", NEXT),
        pure(
            "laplace",
            NEXT,
            channel="representation",
            known="[issue 94](https://github.com/IBM/differential-privacy-library/issues/94)",
        ),
        pure("laplace_bounded", NEXT),
        pure("laplace_folded", NEXT),
        pure("laplace_truncated", NEXT),
        pure("snapping", NEXT),
        pure("staircase", NEXT),
        approximate("uniform", NEXT, (0.0, 0.2), ANSWERS),
        approximate("gaussian", NEXT, (0.9, 1e-3), ANSWERS),
        approximate("gaussian_analytic", NEXT, (1.0, 1e-3), ANSWERS),
        approximate("gaussian_discrete", ITEMS, (1.0, 1e-3), ANSWERS, options={"samples": 4_000}),
        pure("geometric", ITEMS),
        pure("geometric_folded", ITEMS),
        pure("geometric_truncated", ITEMS),
        pure("binary", [("no", "yes")], relation=SUBSTITUTE),
        pure("exponential", [([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])]),
        pure("permute_and_flip", [([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])]),
        pure("mean", [([0.0, 0.0], [0.0, 1.0])], relation=SUBSTITUTE),
        pure("total", [([0.0, 0.0], [0.0, 1.0])], relation=SUBSTITUTE),
        pure("variance", [([0.0, 0.0], [0.0, 1.0])], relation=SUBSTITUTE),
        pure("deviation", [([0.0, 0.0], [0.0, 1.0])], relation=SUBSTITUTE),
        pure("median", [([0.0, 0.5, 0.5], [0.0, 0.5, 1.0])], relation=SUBSTITUTE),
        pure("count_nonzero", [([0, 1], [0, 0])], relation=SUBSTITUTE),
        pure("histogram", [([0.2], [0.2, 0.7])], relation=ADD_REMOVE),
        pure("standard_scaler", [([[0.0], [0.0]], [[0.0], [1.0]])], relation=SUBSTITUTE, options={"samples": 4_000}),
        pure("k_means", [([[0.0], [0.0]], [[0.0], [1.0]])], relation=SUBSTITUTE, options={"samples": 4_000}),
    ],
)

PURE_LDP = Library(
    name="pure-ldp",
    requires=["pure-ldp", "scikit-learn", "statsmodels", "matplotlib", "seaborn"],  # which it imports without saying so
    file="pure_ldp.py",
    calls=[
        *(
            pure(name, ITEMS, relation=SUBSTITUTE)
            for name in (
                "unary", "unary_optimised", "direct", "histogram", "local_hashing", "sketch", "hadamard_sketch", "count_sketch",
                "hadamard_response", "rappor", "hadamard_mechanism", "hadamard_mechanism_values",
            )
        ),
        pure("histogram", ITEMS, relation=SUBSTITUTE, channel="representation", known=BITS),
    ],
)  # fmt: skip

MULTI_FREQ = Library(
    name="multi-freq-ldpy",
    requires=["multi-freq-ldpy", "scipy"],
    file="multi_freq_ldpy.py",
    calls=[
        *(
            pure(name, ITEMS, relation=SUBSTITUTE)
            for name in (
                "grr", "unary", "unary_optimised", "histogram", "subset", "subset_as_set", "local_hashing", "long_grr",
                "long_sue", "long_oue", "long_osue", "long_soue",
            )
        ),
        pure("histogram", ITEMS, relation=SUBSTITUTE, channel="representation", known=BITS),
        pure("record_grr", [(0, 3)], relation=SUBSTITUTE, known="in the museum: one attribute keeps it"),
        pure("record_grr", [(0, 2)], relation=SUBSTITUTE),
        pure("record_unary", [(0, 3)], relation=SUBSTITUTE),
        pure("record_unary", [(0, 2)], relation=SUBSTITUTE),
    ],
)  # fmt: skip

LDP_TOOLBOX = Library(
    name="ldp-toolbox",
    requires=["numpy", "numba", "scipy", "xxhash"],
    alone=["ldp-toolbox"],  # its pages want a web framework
    file="ldp_toolbox.py",
    calls=[
        *(
            pure(name, ITEMS, relation=SUBSTITUTE)
            for name in ("grr", "histogram", "histogram_thresholded", "subset", "unary", "unary_optimised")
        ),
        pure("histogram", ITEMS, relation=SUBSTITUTE, channel="representation", known=BITS),
    ],
)

PYTHON_DP = Library(
    name="python-dp",
    requires=["python-dp"],
    file="python_dp.py",
    calls=[
        pure("count", [([1], [1, 1])], relation=ADD_REMOVE),
        pure("bounded_sum", [([], [1.0])], relation=ADD_REMOVE),
        pure("bounded_mean", [([0.0], [0.0, 1.0])], relation=ADD_REMOVE),
        pure("median", [([0.0, 0.5], [0.0, 0.5, 1.0])], relation=ADD_REMOVE),
        pure("maximum", [([0.0, 0.5], [0.0, 0.5, 1.0])], relation=ADD_REMOVE),
    ],
)

PIPELINE_DP = Library(
    name="pipeline-dp",
    requires=["pipeline-dp"],
    file="pipeline_dp.py",
    calls=[
        *(
            approximate(
                name, [([("a", 0.0)], [("a", 0.0), ("b", 1.0)])], (1.0, 1e-3), ADD_REMOVE, options={"samples": 6_000}
            )
            for name in ("count", "count_gaussian", "total", "mean")
        ),
        approximate(
            "count",
            [([], [("a", 0.0)])],
            (1.0, 1e-3),
            ADD_REMOVE,
            options={"samples": 6_000},
            known="in the museum",
        ),
    ],
)

SMARTNOISE_SQL = Library(
    name="smartnoise-sql",
    requires=["smartnoise-sql"],
    file=f"{MUSEUM}smartnoise_groups.py",
    calls=[
        approximate(
            f"{name}_groups", [(["Bern"] * 40, [*["Bern"] * 40, "Chur"])], (1.0, 1e-6), ADD_REMOVE, options={"samples": 1_000},
            known="in the museum: documented" if name == "open" else "",
        )
        for name in ("open", "censored")
    ],
)  # fmt: skip

DATASYNTHESIZER = Library(
    name="DataSynthesizer",
    requires=["DataSynthesizer"],
    file=f"{MUSEUM}datasynthesizer_describe.py",
    calls=[
        pure(
            "describe", [([20, 30, 40, 50], [20, 30, 40, 60])], relation=SUBSTITUTE, options={"samples": 400},
            known="in the museum",
        ),
    ],
)  # fmt: skip

FLOWER = Library(
    name="flwr",
    requires=["flwr"],
    file=f"{MUSEUM}flower_rounds.py",
    calls=[
        Call(
            function=name, claim=GaussianDP(2.0, SUBSTITUTE), pairs=[([[3.0], [3.0]], [[-3.0], [3.0]])],
            options={"samples": 6_000}, known="" if name == "equal_weights" else "in the museum",
        )
        for name in ("equal_weights", "weighted", "adaptive")
    ],
)  # fmt: skip

LIBRARIES = (
    OPENDP, DIFFPRIVLIB, PURE_LDP, MULTI_FREQ, LDP_TOOLBOX, PYTHON_DP, PIPELINE_DP, SMARTNOISE_SQL, DATASYNTHESIZER,
    FLOWER,
)  # fmt: skip
NOT_RUN = {
    "DiffPriv": "opens a connection to the network when it is imported",
    "tmlt.core": "needs Spark and Java",
    "smartnoise-synth": "needs PyTorch and hours of training; its covariance is in the museum",
    "opacus": "needs PyTorch; `audits/libraries/opacus_audits.py` audits one step of it",
    "jax-privacy": "needs JAX",
    "dp-accounting": "releases nothing; `dpaudit accountant` checks its bounds (docs/accountants.md)",
}
