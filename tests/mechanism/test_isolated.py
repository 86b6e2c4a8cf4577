"""Functions in another interpreter: what is sent, what comes back, and that nothing of ours is needed there."""

from __future__ import annotations

import datetime
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit._util.values import fingerprint
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import interpreter, programs
from dpaudit.mechanism.isolated import Isolated, isolated
from dpaudit.mechanism.outputs import Raised

FUNCTIONS = """
import random

def describe(data):
    print("this must not be taken for an answer")
    return type(data).__name__, repr(data)

def echo(data):
    return data

def refuses(data):
    raise LookupError("row 17")

def sorts(data):
    data.sort()

def noisy_count(data):
    return len(data) + 0.5 * (random.expovariate(1.0) - random.expovariate(1.0))

def reused(data, answer=[0]):
    answer[0] += 1
    return answer

def reads():
    return lambda data: input()

def opaque(data):
    return object()

def ours(data):
    import dpaudit

def laplace(data, size, rng):
    return len(data) + rng.laplace(size=size)

def needs_size(data, size, rng):
    if size > 1:
        raise ValueError("one at a time")
    return [(len(data), rng.random())]
"""


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("isolated")
    (made / "functions.py").write_text(FUNCTIONS)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made / "venv"], check=True)
    return made


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    programs.close_streams()


def bare(folder: Path, name: str, **options: Any) -> Isolated:
    """A function in a virtual environment that has no packages at all."""
    return isolated(folder / "venv", f"{folder / 'functions.py'}:{name}", folder=folder, **options)


def here(folder: Path, name: str, **options: Any) -> Isolated:
    """A function in an interpreter with numpy and pandas."""
    return isolated(sys.executable, f"functions:{name}", path=[folder], **options)


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.dates()
)
hashable = scalars | st.tuples(scalars, scalars) | st.frozensets(st.integers())
values = st.recursive(
    hashable | st.sets(st.integers()) | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | hashable, inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(values)
def test_values_survive_packing(value: Any) -> None:
    again = interpreter.unpack(json.loads(json.dumps(interpreter.pack(value))))
    assert fingerprint(again) == fingerprint(value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6).reshape(2, 3),
        np.array([], dtype="float32"),
        np.float64(0.1),
        np.bool_(True),
        np.array(["a", None], dtype=object),
        np.array(["abc"]),
        pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pd.DataFrame({"a": [1.5]}, index=[7]).iloc[:0],
        pd.Series([1.5, float("nan")], name="s"),
        datetime.datetime(2024, 5, 1, 12, 30),
        {"~": "tuple"},
    ],
    ids=repr,
)
def test_values_of_libraries_survive_packing(value: Any) -> None:
    again = interpreter.unpack(json.loads(json.dumps(interpreter.pack(value))))
    assert type(again) is type(value)
    assert fingerprint(again) == fingerprint(value)


def test_data_and_outputs_arrive_as_what_they_are(folder: Path) -> None:
    assert bare(folder, "describe").sample((1, {2}), 2, rng()) == [("tuple", "(1, {2})")] * 2
    sent = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    (back,) = here(folder, "echo").sample(sent, 1, rng())
    pd.testing.assert_frame_equal(back, sent)


def test_the_other_interpreter_neither_needs_nor_imports_dpaudit(folder: Path) -> None:
    assert bare(folder, "ours").sample([], 1, rng()) == [Raised("ModuleNotFoundError", "No module named '...'")]


def test_exceptions_are_outputs_of_their_release(folder: Path) -> None:
    assert bare(folder, "refuses").sample([], 2, rng()) == [Raised("LookupError", "row #")] * 2


def test_outputs_are_copied_at_once(folder: Path) -> None:
    assert bare(folder, "reused").sample([], 3, rng()) == [[1], [2], [3]]


def test_the_function_cannot_read_the_requests(folder: Path) -> None:
    assert bare(folder, "reads", calls="fresh").sample([], 1, rng()) == [Raised("EOFError", "EOF when reading a line")]


def test_random_numbers_come_from_the_seed(folder: Path) -> None:
    for mechanism in (bare(folder, "noisy_count"), here(folder, "laplace")):
        first, again = (np.array(mechanism.sample([1], 4, rng())) for _ in range(2))
        other = np.array(mechanism.sample([1], 4, np.random.default_rng(1)))
        assert (first == again).all()
        assert not (first == other).any()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("sorts", [2, 1], "changed its input"),
        ("opaque", [], "type builtins.object cannot be sent"),
        ("missing", [], "cannot be loaded by .*no attribute 'missing'"),
        ("laplace", [], "numpy is needed, and cannot be imported"),
        ("echo", np.zeros(1), "numpy is needed, and cannot be imported"),
        ("echo", object(), "type builtins.object cannot be sent"),
    ],
)
def test_failures_that_do_not_depend_on_the_data_are_errors(folder: Path, name: str, data: Any, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        bare(folder, name).sample(data, 1, rng())


@pytest.mark.parametrize(
    ("python", "function", "options", "message"),
    [
        ("python3", "pkg.mod", {}, "must look like"),
        ("python3", 7, {}, "must look like"),
        ("python3", "a:b", {"calls": "batch"}, "Did you mean 'batched'"),
        ("python3", "a:b", {"path": "here"}, "must be a list of folders"),
        ([], "a:b", {}, "python=.* must name a program"),
    ],
)
def test_wrong_arguments_are_named(python: Any, function: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        isolated(python, function, **options)


def test_audits(folder: Path) -> None:
    mechanism = bare(folder, "noisy_count")
    assert eval(repr(pickle.loads(pickle.dumps(mechanism)))) == mechanism
    result = dpaudit.audit(mechanism, dpaudit.PureDP(1.0), [([], [1])], seed=0, shrink=False)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.reproducible
    assert result.name.endswith("functions.py:noisy_count")
    # A call for several outputs raises here, so the audit goes on one release at a time. False alarms: alpha = 1e-6.
    single = dpaudit.audit(here(folder, "needs_size"), dpaudit.PureDP(1.0), [([0], [1])], samples=2000, seed=0)
    assert single.verdict is not dpaudit.Verdict.VIOLATION
    assert any("ValueError: one at a time" in message for message in single.messages)


def test_a_function_that_always_raises_is_an_error_that_shows_how(folder: Path) -> None:
    with pytest.raises(MechanismError, match=r"raised on every call(.|\n)*LookupError: row #"):
        dpaudit.audit(here(folder, "refuses"), dpaudit.PureDP(1.0), [([], [1])], samples=100)
