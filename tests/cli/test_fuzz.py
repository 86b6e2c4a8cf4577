"""Whatever is on the command line or in the configuration, it ends in an exit code, never in a traceback."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit.cli import main as cli
from dpaudit.cli.config import SETTINGS

CODES = {0, 1, 2, 3}
QUICK = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def options() -> list[str]:
    parser, commands = cli.build_parser()
    return sorted({name for one in [parser, *commands.values()] for name in one._option_string_actions})


# Neither workers nor clusters are started a hundred times.
OPTIONS = [name for name in options() if name not in ("--workers", "--executor", "-j", "--jobs")]
VALUES = st.one_of(
    st.sampled_from(
        ["0", "1", "-1", "3", "1e-9", "0.5", "inf", "nan", "1e99", "value", "deep", "ci", "never", "audits"]
    ),
    st.sampled_from(
        ["audits/some.py:good", "r.json", "b.json", "junk.json", "good.py:f", "good.py", "json:dumps", "a.b:c"]
    ),
    st.sampled_from(
        ["integers(0, 1)", "none()", "substitute", "add-remove", "batched", "run", "check", "good", "new/x"]
    ),
    st.text(max_size=6),
)
WORDS = st.lists(
    st.one_of(st.tuples(st.sampled_from(OPTIONS), VALUES), VALUES.map(lambda word: (word,))), max_size=4
).map(lambda groups: [word for group in groups for word in group])
CHECK = ["good.py:f", "--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "substitute"]
STARTS = st.sampled_from(
    [
        [],
        ["run"],
        ["check"],
        ["check", *CHECK],
        ["list"],
        ["report", "r.json"],
        ["compare", "b.json"],
        ["anonymity", "r.json"],
    ]
)


@pytest.fixture
def filled(project: Any) -> Any:
    project.audits(project.audit("good", samples=200))
    project.write("good.py", "def f(data):\n    return 0\n")
    project.write("junk.json", '{"tool": "dpaudit", "format": 1, "audits": [{}]}')
    project.run("run", "--output", "r.json", "--save-baseline", "b.json")
    # A mechanism is run two hundred times at most, whatever is asked for.
    project.write("pyproject.toml", "[tool.dpaudit]\nseconds = 0.05\n")
    return project


@settings(QUICK, max_examples=300)
@given(start=STARTS, words=WORDS)
def test_command_lines(filled: Any, capsys: pytest.CaptureFixture[str], start: list[str], words: list[str]) -> None:
    # A folder such as "/" would be searched for audits.
    line = [word for word in (*start, *words) if not word.startswith(("/", ".", "~"))]
    assert cli.main(line, stdout=io.StringIO()) in CODES
    assert "Traceback" not in capsys.readouterr().err


TOML_VALUES = st.recursive(
    st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=3,
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return (
        json.dumps(value, ensure_ascii=True).replace("\\ud", "\\\\ud") if isinstance(value, str) else str(value).lower()
    )


@QUICK
@given(table=st.dictionaries(st.sampled_from([*SETTINGS, "alhpa", "fail-on"]), TOML_VALUES, max_size=3))
def test_configuration_tables(filled: Any, capsys: pytest.CaptureFixture[str], table: dict[str, Any]) -> None:
    text = "[tool.dpaudit]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in table.items())
    Path("pyproject.toml").write_text(text, encoding="utf-8")
    assert cli.main(["list"], stdout=io.StringIO()) in CODES
    assert "Traceback" not in capsys.readouterr().err


@QUICK
@given(text=st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode), st.just(b"a = " + b"[" * 5000)))
def test_configuration_files(filled: Any, capsys: pytest.CaptureFixture[str], text: bytes) -> None:
    Path("pyproject.toml").write_bytes(text)
    assert cli.main(["list"], stdout=io.StringIO()) in CODES
    assert "Traceback" not in capsys.readouterr().err


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@QUICK
@given(name=st.sampled_from([*SETTINGS, "alhpa", ""]), value=TEXT)
def test_environments(filled: Any, capsys: pytest.CaptureFixture[str], name: str, value: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"DPAUDIT_{name.upper()}", value)
        assert cli.main(["list"], stdout=io.StringIO()) in CODES
    assert "Traceback" not in capsys.readouterr().err


def mutated(text: str) -> st.SearchStrategy[str]:
    """Documents with one value replaced."""
    plain = json.loads(text)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            if isinstance(item, dict | list):
                walk(item)

    walk(plain)
    new = st.sampled_from([None, -1, 0.5, "nan", "inf", "x", [], {}, [1, 2], True, 10**400, "VIOLATION"])

    def put(choice: tuple[int, Any]) -> str:
        holder, key = places[choice[0]]
        old, holder[key] = holder[key], choice[1]
        shown = json.dumps(plain)
        holder[key] = old
        return shown

    return st.tuples(st.integers(0, len(places) - 1), new).map(put)


@settings(QUICK, max_examples=60)
@given(data=st.data())
def test_damaged_results_and_baselines(filled: Any, capsys: pytest.CaptureFixture[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["r.json", "b.json"]))
    Path("damaged.json").write_text(data.draw(mutated(Path(name).read_text())))
    assert cli.main(["compare", "damaged.json", name], stdout=io.StringIO()) in CODES
    assert cli.main(["compare", name, "damaged.json"], stdout=io.StringIO()) in CODES
    assert "Traceback" not in capsys.readouterr().err
