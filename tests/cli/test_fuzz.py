"""Any command line, configuration or file ends in an exit code, never in a traceback.

``FUZZ_EXAMPLES=10000 pytest tests/cli/test_fuzz.py`` runs this many cases of each, different ones every time.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpaudit.cli import main as cli
from dpaudit.cli.config import SETTINGS
from dpaudit.cli.grammar import build_parser
from dpaudit.cli.rows import NAMES, parse_rows
from dpaudit.errors import InvalidArgument

CODES = {0, 1, 2, 3}
DEEP = int(os.environ.get("FUZZ_EXAMPLES", "0"))


def examples(count: int) -> int:
    return DEEP or count


QUICK = settings(
    max_examples=examples(120),
    deadline=None,
    derandomize=not DEEP,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def options() -> list[str]:
    parser, commands = build_parser()
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
    accurate = (
        'accurate = dpaudit.AccuracyAudit(name="accurate", mechanism=dpaudit.batched(noisy), truth=len, '
        'claim=dpaudit.MeanError(1.5), data=[[1]], options={"samples": 500})\n'
    )
    project.audits(project.audit("good", samples=200), project.audit("bad", "half", samples=2000), accurate)
    project.write("good.py", "def f(data):\n    return 0\n")
    project.write("junk.json", '{"tool": "dpaudit", "format": 1, "audits": [{}]}')
    project.run("run", "--output", "r.json", "--save-baseline", "b.json")
    # A mechanism is run two hundred times at most, whatever is asked for.
    project.write("pyproject.toml", "[tool.dpaudit]\nseconds = 0.05\n")
    return project


@settings(QUICK, max_examples=examples(300))
@given(start=STARTS, words=WORDS)
def test_command_lines(filled: Any, capsys: pytest.CaptureFixture[str], start: list[str], words: list[str]) -> None:
    # A folder such as "/" would be searched for audits.
    line = [word for word in (*start, *words) if not word.startswith(("/", ".", "~"))]
    ends_well(line, capsys)


def ends_well(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(line, stdout=io.StringIO())
    assert code in CODES or (code == 130 and line[0] in ("report", "compare"))  # results that say "interrupted"
    err = capsys.readouterr().err
    # A frame of a traceback. Hypothesis tries constants of this file too, so no plain text will do.
    assert not re.search(r'^  File "[^"]+", line \d+', err, re.MULTILINE)


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
    ends_well(["list"], capsys)


@QUICK
@given(text=st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode), st.just(b"a = " + b"[" * 5000)))
def test_configuration_files(filled: Any, capsys: pytest.CaptureFixture[str], text: bytes) -> None:
    Path("pyproject.toml").write_bytes(text)
    ends_well(["list"], capsys)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@QUICK
@given(name=st.sampled_from([*SETTINGS, "alhpa", ""]), value=TEXT)
def test_environments(filled: Any, capsys: pytest.CaptureFixture[str], name: str, value: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"DPAUDIT_{name.upper()}", value)
        ends_well(["list"], capsys)


DAMAGE: list[Any] = [None, -1, 0.5, "nan", "inf", "x", [], {}, [1, 2], True, 10**400, "VIOLATION"]


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
    new = st.sampled_from(DAMAGE)

    def put(choice: tuple[int, Any]) -> str:
        holder, key = places[choice[0]]
        old, holder[key] = holder[key], choice[1]
        shown = json.dumps(plain)
        holder[key] = old
        return shown

    return st.tuples(st.integers(0, len(places) - 1), new).map(put)


def test_every_damage_of_an_accuracy_check(filled: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plain = json.loads(Path("r.json").read_text())
    (check,) = plain["accuracy"]
    for holder in (check, check["result"], check["result"]["claim"]):
        for key, before in list(holder.items()):
            for holder[key] in DAMAGE:
                Path("damaged.json").write_text(json.dumps({**plain, "audits": []}))
                ends_well(["report", "damaged.json", "--junit", "d.xml", "--sarif", "d.json"], capsys)
            holder[key] = before


@settings(QUICK, max_examples=examples(60))
@given(data=st.data())
def test_damaged_results_and_baselines(filled: Any, capsys: pytest.CaptureFixture[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["r.json", "b.json"]))
    Path("damaged.json").write_text(data.draw(mutated(Path(name).read_text())))
    ends_well(["compare", "damaged.json", name], capsys)
    ends_well(["compare", name, "damaged.json"], capsys)
    ends_well(["report", "damaged.json"], capsys)
    ends_well(["report", "damaged.json", "--junit", "d.xml", "--sarif", "d.json", "--markdown", "d.md"], capsys)


@settings(QUICK, max_examples=examples(8))  # drawing takes a while
@given(data=st.data())
def test_damaged_pictures(filled: Any, capsys: pytest.CaptureFixture[str], data: st.DataObject) -> None:
    Path("damaged.json").write_text(data.draw(mutated(Path("r.json").read_text())))
    ends_well(["report", "damaged.json", "--html", "d.html"], capsys)


CELLS = st.one_of(
    st.text(max_size=4), st.sampled_from(["", "1", "2", "[1, 2]", "*", "nan", "a,b", '"', "'", "\0", "1e999"])
)
TABLES = st.one_of(
    st.binary(max_size=60),
    st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=5).map(
        lambda rows: "\n".join(",".join(row) for row in [["a", "b"], *rows]).encode("utf-8", "surrogatepass")
    ),
)
TABLE_OPTIONS = st.lists(
    st.sampled_from(
        ["-s b", "--n 2", "--n 0", "--require k=2", "--require t=1/0", "--distance emd", "--distance kl", "--json", "--worst 1",
         "--missing value", "--missing suppressed", "--encoding utf-16", "--encoding latin-1", "--delimiter ;", "--partition",
         "--original t.csv", "--level 0", "--order 1,2", "--ground equal"]
    ),
    max_size=4,
)  # fmt: skip


@QUICK
@given(table=TABLES, options=TABLE_OPTIONS)
def test_tables(filled: Any, capsys: pytest.CaptureFixture[str], table: bytes, options: list[str]) -> None:
    Path("t.csv").write_bytes(table)
    ends_well(["anonymity", "t.csv", "-q", "a", *(word for option in options for word in option.split(" "))], capsys)
    ends_well(["anonymise", "t.csv", "-q", "a", "--k", "2"], capsys)
    ends_well(["risk", "t.csv", "-q", "a", "-s", "b"], capsys)


ATOMS = st.one_of(
    st.integers().map(str),
    st.sampled_from(
        ["inf", "-1", "nan", "None", "True", "'x'", "b'x'", "1e999", "10**9", "[]", "{}", "()", f"{10**320}"]
    ),
)
ROWS = st.recursive(
    ATOMS,
    lambda inner: st.tuples(
        st.sampled_from([*NAMES, "integers", "lists", "__import__", "min_size", "Integers"]),
        st.lists(
            st.one_of(
                inner,
                st.tuples(st.sampled_from(["min_size", "max_size", "min_value", "max_value", "allow_nan"]), inner).map(
                    "=".join
                ),
            ),
            max_size=3,
        ),
    ).map(lambda call: f"{call[0]}({', '.join(call[1])})"),
    max_leaves=6,
)


@QUICK
@given(text=st.one_of(ROWS, ROWS, st.text(max_size=20)))
def test_rows(text: str) -> None:
    with contextlib.suppress(InvalidArgument):
        parse_rows(text)
