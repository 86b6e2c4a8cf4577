"""Functions as mechanisms: batched, single and fresh calls, exceptions as outputs, and refusals."""

import functools
import itertools
import pickle
import random
import sys
import types

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpaudit
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import (
    Batched,
    Mechanism,
    Named,
    Raised,
    as_mechanism,
    batched,
    checked_outputs,
    fresh,
    per_release,
    seeded_globals,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def noisy_count(data, size, rng):
    return len(data) + rng.laplace(size=size)


class Budget:
    """Answers twice, then refuses; a new instance has a new state."""

    def __init__(self):
        self.left = 2

    def __call__(self, data):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("budget spent")
        return len(data)


class Sampler:
    def sample(self, data, size, rng):
        return rng.random(size)


# --- wrappers ---------------------------------------------------------------------------------------------------------


def test_batched_passes_its_arguments_to_the_function():
    mechanism = batched(noisy_count)
    outputs = mechanism.sample([1, 2], 5, rng())
    assert outputs.tolist() == (2 + rng().laplace(size=5)).tolist()
    assert isinstance(mechanism, Mechanism)
    assert mechanism.__wrapped__ is noisy_count


@pytest.mark.parametrize(
    "returned",
    [
        [1, 2],
        [],
        3.0,
        None,
        np.array(3.0),
        "abc",
        b"abc",
        {1: 1, 2: 2, 3: 3},
        {1, 2, 3},
        iter([1, 2, 3]),
        np.zeros((2, 3)),
    ],
    ids=itertools.count(),
)
def test_a_batch_has_exactly_as_many_outputs_as_asked_for(returned):
    with pytest.raises(MechanismError, match="for size=3"):
        batched(lambda data, size, rng: returned).sample([], 3, rng())


@pytest.mark.parametrize(
    "returned", [[1, 2, 3], (1, None, "x"), np.zeros((3, 2)), np.zeros(3), ["ab", "c", ""], range(3)]
)
def test_outputs_may_be_anything(returned):
    assert checked_outputs(returned, 3) is returned


def test_per_release_turns_exceptions_into_outputs():
    def release(data, rng):
        if rng.random() < 0.5:
            raise ValueError(f"row {rng.integers(100)} is bad")
        return len(data)

    outputs = per_release(release).sample([1, 2], 50, rng())
    assert set(outputs) == {2, Raised("ValueError", "row # is bad")}
    assert per_release(release).sample([], 0, rng()) == []


def test_interrupts_are_not_outputs():
    def release(data, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        per_release(release).sample([], 1, rng())


def leaves(data, *more):
    sys.exit(0)


def yields_then_leaves(data):
    yield 1
    sys.exit()


@pytest.mark.parametrize(
    ("mechanism", "call"),
    [
        (as_mechanism(leaves), r"sys\.exit\(0\)"),
        (per_release(leaves), r"sys\.exit\(0\)"),
        (fresh(lambda: leaves), r"sys\.exit\(0\)"),
        (as_mechanism(lambda data: yields_then_leaves(data)), r"sys\.exit\(\)"),
    ],
)
def test_calling_sys_exit_is_an_error(mechanism, call):
    with pytest.raises(MechanismError, match=rf"called {call}.*raise an exception"):
        mechanism.sample([], 1, rng())


def test_fresh_makes_a_new_instance_for_every_release():
    assert fresh(Budget).sample([1, 2, 3], 5, rng()) == [3] * 5
    stale = Budget()
    assert as_mechanism(stale).sample([1], 3, rng()) == [1, 1, Raised("RuntimeError", "budget spent")]
    outputs = fresh(Sampler).sample([], 4, rng())
    assert len(set(outputs)) == 4


def test_fresh_refuses_an_object_that_is_not_a_mechanism():
    # A TypeError on both sides would look like a private mechanism that always raises.
    with pytest.raises(MechanismError, match="neither a mechanism nor callable"):
        fresh(lambda: 3).sample([], 1, rng())


def test_protocol_errors_are_not_outputs():
    with pytest.raises(MechanismError, match="for size=1"):
        fresh(lambda: batched(lambda data, size, rng: [1, 2])).sample([], 1, rng())


@pytest.mark.parametrize("wrap", [per_release, fresh, batched])
def test_wrappers_check_their_arguments(wrap):
    with pytest.raises(InvalidArgument, match="function=3 must be callable"):
        wrap(3)
    mechanism = wrap(
        {per_release: lambda data, rng: 1, fresh: Budget, batched: lambda data, size, rng: [1] * size}[wrap]
    )
    with pytest.raises(InvalidArgument, match=r"default_rng\(seed\)"):
        mechanism.sample([], 1, np.random)
    with pytest.raises((InvalidArgument, MechanismError)):
        mechanism.sample([], -1, rng())


# --- plain functions and global random state --------------------------------------------------------------------------


def from_random(data):
    return random.random()


def from_numpy(data):
    return np.random.random()  # noqa: NPY002 - this is the code that is audited


@pytest.mark.parametrize("function", [from_random, from_numpy])
def test_global_random_state_is_seeded_and_restored(function):
    mechanism = as_mechanism(function)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    generator = rng(5)
    first, second = mechanism.sample([], 3, generator), mechanism.sample([], 3, generator)
    assert len({*first, *second}) == 6
    assert mechanism.sample([], 3, rng(5)) == first
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


def test_global_random_state_is_restored_after_an_error():
    before = random.getstate()
    with pytest.raises(KeyError), seeded_globals(rng()):
        raise KeyError
    assert random.getstate() == before


# --- finding mechanisms -----------------------------------------------------------------------------------------------


def test_as_mechanism_accepts_objects_and_functions():
    sampler = Sampler()
    assert as_mechanism(sampler) is sampler
    assert as_mechanism(len).sample([1, 2], 2, rng()) == [2, 2]


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType("mechanisms_for_this_test")
    made.calls = 0

    def make():
        made.calls += 1
        return Sampler()

    made.make = make
    made.ready = Sampler()
    made.kind = Sampler
    made.text = "text"
    made.makes_text = lambda: "os:path"
    made.makes_nothing = lambda: None
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_names_make_a_mechanism_once(module):
    name = f"{module.__name__}:make"
    mechanism = as_mechanism(name)
    assert mechanism == Named(name)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    first = mechanism.sample([], 3, rng())
    assert first.tolist() == mechanism.sample([], 3, rng()).tolist()
    assert module.calls == 1
    assert as_mechanism(f"{module.__name__}:ready").resolve() is module.ready
    assert isinstance(as_mechanism(f"{module.__name__}:kind").resolve(), Sampler)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nothing", "must look like 'package.module:factory'"),
        (":make", "must look like"),
        ("mechanisms_for_this_test:", "must look like"),
        ("no.such.module:make", "cannot import 'no.such.module'"),
        ("mechanisms_for_this_test:maek", "Did you mean 'make'"),
        ("mechanisms_for_this_test:text", "neither a mechanism nor makes one"),
        ("mechanisms_for_this_test:makes_text", "must make a mechanism, not the string 'os:path'"),
        ("mechanisms_for_this_test:makes_nothing", "mechanism=None"),
        (Sampler, r"is a class; pass an instance, or dpaudit\.fresh\(Sampler\)"),
        (3, "mechanism=3 must have a method sample"),
        (None, "mechanism=None"),
    ],
    ids=itertools.count(),
)
@pytest.mark.usefixtures("module")
def test_objects_that_are_not_mechanisms_are_refused(source, message):
    with pytest.raises(InvalidArgument, match=message):
        as_mechanism(source)


@pytest.mark.parametrize(
    "mechanism", [Batched(noisy_count), per_release(from_random), fresh(Budget), as_mechanism(from_random)]
)
def test_mechanisms_pickle(mechanism):
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


# --- exceptions as outputs --------------------------------------------------------------------------------------------


def test_an_exception_whose_message_raises_is_an_output_too() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no message")

    assert "cannot be read" in Raised.from_exception(Unreadable()).template


def test_a_new_instance_may_return_a_data_frame() -> None:
    class Framed:
        def sample(self, data: float, size: int, rng: np.random.Generator) -> pd.DataFrame:
            return pd.DataFrame({"a": data + rng.normal(size=size)})

    (output,) = dpaudit.fresh(Framed).sample(3.0, 1, np.random.default_rng(0))
    assert output.shape == (1,)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("row 17 has age 212.5"), Raised("ValueError", "row # has age #")),
        (ValueError("value -1.5e-7, .5, 0xFF, nan and inf"), Raised("ValueError", "value #, #, #, # and #")),
        (KeyError("Alice"), Raised("KeyError", "'...'")),
        (ValueError('bad name "Bob"'), Raised("ValueError", "bad name '...'")),
        (ZeroDivisionError(), Raised("ZeroDivisionError", "")),
        (MechanismError("x"), Raised("dpaudit.errors.MechanismError", "x")),
    ],
    ids=itertools.count(),
)
def test_an_exception_is_summarised_by_type_and_template(error, raised):
    assert Raised.from_exception(error) == raised


def test_the_text_of_an_exception_as_output():
    assert str(Raised("ValueError", "row # is bad")) == "raises ValueError: row # is bad"
    assert str(Raised("ValueError")) == "raises ValueError"
    assert len(Raised.from_exception(ValueError("x" * 1000)).template) == 120


@given(st.integers(), st.floats(), st.text(st.characters(exclude_characters="'\"")))
def test_numbers_and_quoted_text_never_reach_the_template(number, real, text):
    first = Raised.from_exception(ValueError(f"row {number}: {real!r} is not '{text}'"))
    assert first == Raised("ValueError", "row #: # is not '...'")


async def _release_later(_data, rng):
    return rng.laplace()


class _AsyncObject:
    async def __call__(self, _data):
        return 1.0


@pytest.mark.parametrize(
    "function",
    [_release_later, functools.partial(_release_later, rng=None), _AsyncObject()],
    ids=["async", "partial", "object"],
)
def test_async_functions_are_refused(function):
    """Their outputs are coroutines, of which only the type is seen."""
    for wrap in (dpaudit.per_release, dpaudit.batched, dpaudit.fresh):
        with pytest.raises(InvalidArgument, match=r"asyncio\.run"):
            wrap(function)
    with pytest.raises(InvalidArgument, match=r"asyncio\.run"):
        dpaudit.audit(function, dpaudit.PureDP(1.0), [([], [1])])


class _Yields:
    def __call__(self, data, _rng=None):
        yield from data


@pytest.mark.parametrize(
    "function",
    [yields_then_leaves, functools.partial(yields_then_leaves), _Yields()],
    ids=["function", "partial", "object"],
)
def test_generator_functions_are_refused(function):
    for wrap in (dpaudit.per_release, dpaudit.batched, as_mechanism):
        with pytest.raises(InvalidArgument, match=r"generator function.*list\(f\(data\)\).*dpaudit\.batched"):
            wrap(function)


def test_classes_are_refused_where_a_call_is_a_release():
    for wrap in (dpaudit.per_release, dpaudit.batched):
        with pytest.raises(InvalidArgument, match=r"is a class.*dpaudit\.fresh\(Budget\)"):
            wrap(Budget)
    with pytest.raises(InvalidArgument, match=r"is a class.*dpaudit\.fresh\(Budget\)"):
        as_mechanism(Budget)
    assert dpaudit.fresh(Budget).sample([1], 1, rng()) == [1]


def test_a_forgotten_return_is_inconclusive():
    def forgot(_data, rng):
        rng.laplace()

    result = dpaudit.audit(dpaudit.per_release(forgot), dpaudit.PureDP(1.0), [([], [1])], samples=20_000)
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert "forgotten return" in result.messages[0]
