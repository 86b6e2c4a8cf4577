"""Every mistake a user can make at the front door: the message names the argument and its value, and says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import dpaudit
from dpaudit import ApproxDP, InvalidArgument, PureDP, Relation, neighbours
from dpaudit.errors import MechanismError, RelationMismatch

PAIR = [([], [1])]


def fine(data: Any, size: int, rng: np.random.Generator) -> Any:
    return len(data) + rng.laplace(size=size)


MECHANISM = dpaudit.batched(fine)


def run(mechanism: Any = MECHANISM, claim: Any = None, where: Any = PAIR, **options: Any) -> Any:
    return dpaudit.audit(mechanism, PureDP(1.0) if claim is None else claim, where, **{"samples": 600, **options})


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "alpha 0": ({"alpha": 0}, r"alpha=0 .*between 0 and 1"),
    "alpha 1": ({"alpha": 1.0}, r"alpha=1.0 .*between 0 and 1"),
    "alpha NaN": ({"alpha": float("nan")}, r"alpha=nan .*between 0 and 1"),
    "alpha as text": ({"alpha": "1e-6"}, r"alpha='1e-6' must be a number"),
    "alpha as bool": ({"alpha": True}, r"alpha=True must be a number"),
    "samples -1": ({"samples": -1}, r"samples=-1 .*at least 2"),
    "samples 0": ({"samples": 0}, r"samples=0 .*at least 2"),
    "samples as float": ({"samples": 1e6}, r"samples=1000000.0 must be a whole number"),
    "samples as text": ({"samples": "many"}, r"samples='many' must be a whole number"),
    "seconds 0": ({"seconds": 0}, r"seconds=0 must be positive"),
    "seconds infinite": ({"seconds": float("inf")}, r"seconds=inf must be positive and finite"),
    "timeout negative": ({"timeout": -1.0}, r"timeout=-1.0 must be positive"),
    "seed negative": ({"seed": -1}, r"seed=-1 .*at least 0"),
    "seed as text": ({"seed": "today"}, r"seed='today' must be a whole number"),
    "pairs 0": ({"pairs": 0}, r"pairs=0 .*at least 1"),
    "detect_factor 1": ({"detect_factor": 1.0}, r"detect_factor=1.0 must exceed 1"),
    "until": ({"until": "forever"}, r"until='forever' must be one of 'violation', 'budget'"),
    "channel misspelt": ({"channel": "values"}, r"channel='values' must be one of .*Did you mean 'value'"),
    "channel of another type": ({"channel": 3}, r"channel=3 must be one of 'value', 'representation', 'timing'\."),
    "executor by name": ({"executor": "threads"}, r"executor='threads' must"),
    "executor by number": ({"executor": 4}, r"executor=4 must"),
    "executor as class": ({"executor": ThreadPoolExecutor}, r"executor=.* is a class; .*ThreadPoolExecutor\(2\)"),
    "on_event as number": ({"on_event": 3}, r"on_event=3 must be a function of one event"),
    "name as number": ({"name": 3}, r"name=3 must be text"),
    "shrink as text": ({"shrink": "no"}, r"shrink='no' must be"),
    "boosted as text": ({"boosted": "no"}, r"boosted='no' must be"),
    "progress as text": ({"progress": "yes"}, r"progress='yes' must be"),
    "workers": ({"workers": 2}, r"workers=2 is not an option here. Give executor="),
    "expect": ({"expect": "VIOLATION"}, r"expect='VIOLATION' is not .*dpaudit.Audit\(\.\.\., expect="),
    "delta": ({"delta": 1e-5}, r"delta=1e-05 is not .*ApproxDP\(epsilon, delta\)"),
    "misspelt option": ({"sample": 10}, r"option='sample' must be one of .*Did you mean 'samples'"),
    "unknown option": ({"frobnicate": 10}, r"option='frobnicate' must be one of .*'alpha'"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    options, message = OPTIONS[name]
    with pytest.raises(InvalidArgument, match=message):
        run(**options)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "claim as number": (lambda: run(claim=1.0), r"claim=1.0 must be a claim such as dpaudit.PureDP"),
    "claim as class": (lambda: run(claim=PureDP), r"claim=.*PureDP.* must be a claim"),
    "claim as text": (lambda: run(claim="pure"), r"claim='pure' must be a claim"),
    "swapped arguments": (lambda: dpaudit.audit(PureDP(1.0), MECHANISM, PAIR), r"mechanism=PureDP.* are swapped"),
    "claim and neighbours swapped": (
        lambda: dpaudit.audit(MECHANISM, PAIR, PureDP(1.0)),
        r"claim=\[\(\[\], \[1\]\)\], neighbours=PureDP.* order audit\(mechanism, claim, neighbours\)",
    ),
    "an Audit without a name": (
        lambda: dpaudit.Audit(name=3, mechanism=MECHANISM, claim=PureDP(1.0), neighbours=PAIR),
        r"name=3 must be text",
    ),
    "epsilon as text": (lambda: PureDP("1"), r"epsilon='1' must be a number"),
    "epsilon negative": (lambda: PureDP(-1.0), r"epsilon=-1.0 .*did you mean PureDP\(1.0\)"),
    "epsilon zero": (lambda: PureDP(0), r"epsilon=0 must be positive"),
    "delta zero": (lambda: ApproxDP(1.0, 0.0), r"delta=0.0 .*Use PureDP"),
    "delta above one": (lambda: ApproxDP(1.0, 1.5), r"delta=1.5 must lie strictly between 0 and 1"),
    "relation as text": (lambda: PureDP(1.0, "substitution"), r"relation='substitution' must be None or one of"),
    "no pairs": (lambda: run(where=[]), r"pairs=\[\] is empty; at least one pair"),
    "one pair without a list": (
        lambda: run(where=([], [1])),
        r"neighbours=\(\[\], \[1\]\) must be a list of pairs; did you mean",
    ),
    "only itself for a neighbour": (
        lambda: run(where=[([], [])]),
        r"neighbours=\[\(\[\], \[\]\)\]: both data sets are the same",
    ),
    "a time-out of threads": (
        lambda: run(timeout=1.0, executor=ThreadPoolExecutor(1)),
        r"timeout=1.0 needs workers that are processes.*threads cannot be interrupted",
    ),
    "triples": (lambda: run(where=[(1, 2, 3)]), r"pairs\[0\]=\(1, 2, 3\) must be a pair"),
    "a strategy": (lambda: run(where=st.integers()), r"neighbours=integers\(\) must come from dpaudit.neighbours"),
    "nothing": (lambda: run(where=None), r"neighbours=None must come from dpaudit.neighbours"),
    "mechanism None": (lambda: run(mechanism=None), r"mechanism=None must have a method sample"),
    "mechanism as class": (lambda: run(mechanism=type("M", (), {"sample": fine})), r"is a class; pass an instance"),
    "name without colon": (lambda: run(mechanism="laplace"), r"mechanism='laplace' must look like"),
    "unknown module": (lambda: run(mechanism="no_such:make"), r"mechanism='no_such:make': cannot import"),
    "misspelt factory": (lambda: run(mechanism="math:sqr"), r"math has no 'sqr'.*Did you mean 'sqrt'"),
    "the mechanism's own name": (
        lambda: run(mechanism=f"{__name__}:fine"),
        r"mechanism='.*:fine': fine\(\) raised TypeError: .*without arguments that makes the mechanism, .*return fine",
    ),
    "a factory that leaves": (lambda: run(mechanism="sys:exit"), r"mechanism='sys:exit': exit\(\) raised SystemExit"),
    "expectation": (
        lambda: dpaudit.Audit(name="a", mechanism=MECHANISM, claim=PureDP(1.0), neighbours=PAIR, expect="VIOLATED"),
        r"expect='VIOLATED' must be one of .*Did you mean 'VIOLATION'",
    ),
    "options of an Audit": (
        lambda: dpaudit.Audit(
            name="a", mechanism=MECHANISM, claim=PureDP(1.0), neighbours=PAIR, options={"sample": 3}
        ).run(),
        r"option='sample' must be one of .*Did you mean 'samples'",
    ),
    "assert_private": (
        lambda: dpaudit.assert_private(MECHANISM, PureDP(1.0), PAIR, allow_inconclusiv=True),
        r"option='allow_inconclusiv' must be one of",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(InvalidArgument, match=message):
        call()


def test_some_pairs_of_a_data_set_and_itself_are_reported() -> None:
    messages = run(where=[([], []), ([], [1])]).messages
    assert any("1 of 2 pairs, such as ([], []), are a data set and itself" in message for message in messages)
    assert not any("itself" in message for message in run().messages)


WRONG_CALLS: dict[str, tuple[Any, str]] = {
    "(data, rng), bare": (
        lambda data, rng: 0,
        r"called as f\(data\)\. Is it f\(data, rng\)\? Then wrap it: dpaudit\.per_release\(",
    ),
    "(data, size, rng), bare": (fine, r"Is it f\(data, size, rng\)\? Then wrap it: dpaudit\.batched\(fine\)"),
    "(), bare": (lambda: fine, r"It takes no arguments: if it makes the mechanism, wrap it: dpaudit\.fresh\("),
    "(data), batched": (
        dpaudit.batched(len),
        r"called as f\(data, size, rng\)\. Is it f\(data\)\? Then pass it as it is",
    ),
    "(data, size, rng), per release": (
        dpaudit.per_release(fine),
        r"called as f\(data, rng\)\. .*dpaudit\.batched\(fine\)",
    ),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
@pytest.mark.parametrize("samples", [600, 6000])
def test_functions_that_want_other_arguments(name: str, samples: int) -> None:
    mechanism, message = WRONG_CALLS[name]
    with pytest.raises(MechanismError, match=message):
        run(mechanism, samples=samples)


def test_a_type_error_of_the_mechanism_is_not_taken_for_a_wrong_call() -> None:
    with pytest.raises(MechanismError, match="can only concatenate") as caught:
        run(lambda data: data + 1)
    assert "called as" not in str(caught.value)


def test_a_claim_for_another_relation() -> None:
    where = neighbours.add_remove(st.integers(0, 3), max_size=2)
    with pytest.raises(RelationMismatch, match=r"'substitute'.*'add-remove'") as caught:
        run(claim=PureDP(1.0, Relation.SUBSTITUTE), where=where)
    assert re.search("neighbours=add_remove", str(caught.value))


@pytest.mark.parametrize(
    "function", [lambda: 1, lambda data, rng: 1, lambda data, size, rng: 1], ids=["none", "two", "three"]
)
def test_functions_of_the_wrong_shape(function: Callable[..., Any]) -> None:
    """They raise on every call; the traceback says which argument is missing."""
    with pytest.raises(dpaudit.MechanismError, match="positional argument"):
        run(mechanism=function)


def test_numbers_of_numpy_are_numbers() -> None:
    result = run(seed=np.int64(3), samples=np.int32(600), alpha=np.float64(0.1), detect_factor=np.float32(3.0))
    assert result.seed == 3
    assert result.samples <= 600
    assert result.to_dict()["alpha"] == 0.1


def test_misspelt_names() -> None:
    with pytest.raises(AttributeError, match="Did you mean 'audit'"):
        dpaudit.audti  # noqa: B018


def test_claims_at_the_ends_of_the_floats() -> None:
    for claim in (PureDP(1e-300), PureDP(800.0), ApproxDP(0.0, 0.5), ApproxDP(1.0, 1.0 - 1e-16), dpaudit.GaussianDP(60.0),
                  dpaudit.GaussianDP(1e-6), dpaudit.ZeroConcentratedDP(500.0), dpaudit.RenyiDP(1.0 + 1e-9, 30.0)):  # fmt: skip
        result = run(claim=claim)
        assert 0.0 <= result.epsilon_lower < float("inf")
        assert str(result)
        assert dpaudit.Result.from_dict(result.to_dict()) == result


def test_a_fixed_seed_is_refused_though_the_first_pairs_do_not_show_it() -> None:
    """Far from its threshold the mechanism answers the same whatever it draws, so equal sequences show nothing there."""

    def same_seed_in_every_call(answers: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        noisy = answers + np.random.default_rng(7).laplace(size=(size, answers.size))
        return np.where((noisy > 0.0).any(axis=1), (noisy > 0.0).argmax(axis=1), -1)

    with pytest.raises(MechanismError, match="different seeds"):
        dpaudit.audit(
            dpaudit.batched(same_seed_in_every_call),
            PureDP(1.0),
            neighbours.answers(6, -30, 30),
            samples=100_000,
            seed=0,
        )


def test_a_delta_in_a_pure_claim_suggests_the_other_claim() -> None:
    with pytest.raises(InvalidArgument, match=r"relation=1e-05 .*ApproxDP\(epsilon, 1e-05\)"):
        PureDP(1.0, 1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", [None, *Relation])
def test_the_repr_of_a_claim_can_be_pasted(relation: Relation | None) -> None:
    claims = (PureDP(1.0, relation), ApproxDP(1.0, 1e-5, relation), dpaudit.GaussianDP(0.5, relation))
    for claim in (*claims, dpaudit.ZeroConcentratedDP(0.1, relation), dpaudit.RenyiDP(2.0, 1.0, relation)):
        assert eval(repr(claim), vars(dpaudit)) == claim
    with pytest.raises(InvalidArgument, match="Did you mean 'add-remove'"):
        PureDP(1.0, "add_remove")  # type: ignore[arg-type]


class Query:
    def release(self, data: Any) -> float:
        return float(len(data))


def mean_of_array(data: Any) -> Any:
    return data.mean()


def column_of_table(data: Any) -> Any:
    return data["age"]


@pytest.mark.parametrize(
    ("mechanism", "hint"),
    [
        (Query.release, r"Query.release is a method without its object"),
        (mean_of_array, r"The data sets are lists\. For arrays pass container=np\.ndarray"),
        (column_of_table, r"for data frames container=neighbours\.frame"),
    ],
    ids=["method", "array", "frame"],
)
def test_calls_that_always_fail_say_what_is_missing(mechanism: Any, hint: str) -> None:
    with pytest.raises(MechanismError, match=hint):
        run(mechanism, samples=2_000)


def test_one_noise_value_for_a_whole_batch_is_named() -> None:
    def once(data: Any, size: int, rng: np.random.Generator) -> Any:
        return np.full(size, len(data) + rng.laplace())

    result = run(dpaudit.batched(once), samples=20_000)
    assert any("one noise value is drawn for the whole batch" in message for message in result.messages)
