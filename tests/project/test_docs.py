"""Every example of README.md and docs/*.md is run, in the order of the page, in a folder of its own.

What is run depends on the fence (with ``needs=NAME`` only where that library or program is installed):

``python file=NAME``   (or any language with file=) is written to that file
``python``             with >>> is a doctest; otherwise it is executed (functions test_...() are called), and a block ``text``
                       after it is what it prints
``console``            lines ``$ command`` are run, and what follows is what they print; ``# exit code N`` after a command is
                       the code it ends with (otherwise 0)
``sh``, and code in a  a command of dpaudit must be one that its parser knows
line of text

What is printed may differ from what is shown (except in doctests) in numbers, in how lines are broken, and in which of several
witnesses was found: that depends on versions, and on how fast the machine is. ``...`` stands for anything.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import importlib.util
import io
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from urllib.parse import urlsplit

import matplotlib.pyplot as plt
import pytest

import dpaudit
from dpaudit.cli import grammar
from dpaudit.cli import main as cli
from dpaudit.cli.commands.init import WORKFLOW
from tests import preloaded  # noqa: F401 - before the inner runs of pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
MAY_DIFFER = (
    (r"(Smallest pair found|Pair):\n.*?(?=(E +)?Counted on fresh)", "Pair: "),
    (r"(?<![\w.])-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#"),
    (r"epsilon >=? #", "epsilon >= #"),
    (r"={3,}|_{3,}", "=="),
)
EXIT = re.compile(r"\s+# exit code (\d+)$")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    options: dict[str, str]
    body: str
    line: int

    @property
    def missing(self) -> str:
        """The library or program that it needs and that is not installed, if there is one."""
        wanted = self.options.get("needs", "")
        there = not wanted or importlib.util.find_spec(wanted) is not None or shutil.which(wanted) is not None
        return "" if there else wanted


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, *words = match["info"].split() or [""]
        options = dict(word.partition("=")[::2] for word in words)
        found.append(Block(language, options, match["body"], text.count("\n", 0, match.start()) + 1))
    return found


@dataclass
class Reader:
    """Runs the examples of a page in order."""

    page: Path
    pytester: pytest.Pytester
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    skipped: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        return self.pytester.path

    def read(self) -> None:
        all_blocks = blocks(self.page)
        for block, after in itertools.zip_longest(all_blocks, all_blocks[1:]):
            where = f"{self.page.name}:{block.line}"
            if block.missing:
                self.skipped.add(block.missing)
            elif "file" in block.options:
                path = self.folder / block.options["file"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.body, encoding="utf-8")
            elif block.language in ("python", "pycon") and ">>> " in block.body:
                self.doctest(block, where)
            elif block.language == "python":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed), fresh_modules(self.folder), warnings.catch_warnings():
                    if "needs" in block.options:  # a library may warn of what it does itself
                        warnings.simplefilter("ignore")
                    exec(compile(block.body, where, "exec"), self.names)
                    for name in re.findall(r"^def (test_\w+)\(\)", block.body, flags=re.MULTILINE):
                        self.names[name]()
                if after is not None and after.language == "text" and "file" not in after.options:
                    same(printed.getvalue(), after.body, where)
            elif block.language == "console":
                self.console(block, where)

    def doctest(self, block: Block, where: str) -> None:
        examples = doctest.DocTestParser().get_doctest(block.body, self.names, where, self.page.name, block.line)
        report = io.StringIO()
        with fresh_modules(self.folder):
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            runner.run(examples, out=report.write, clear_globs=False)
        self.names.update(examples.globs)
        assert runner.summarize(verbose=False).failed == 0, report.getvalue()

    def console(self, block: Block, where: str) -> None:
        for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
            command, _, wanted = part.partition("\n")
            code = int(found[1]) if (found := EXIT.search(command)) else 0
            done, printed = run(EXIT.sub("", command), self.pytester)
            assert done == code, f"{where}: {command} ended with {done}:\n{printed}"
            if wanted.strip():
                same(printed, wanted, f"{where}: {command}")


def run(command: str, pytester: pytest.Pytester) -> tuple[int, str]:
    """A command, in this process where it is one of ours or pytest: a new one takes a second to import everything."""
    words = shlex.split(command)
    if words[0] == "dpaudit":
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed), fresh_modules(pytester.path):
            return cli.main(words[1:], stdout=printed), printed.getvalue()
    if words[0] == "pytest":
        with fresh_modules(pytester.path):
            result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *words[1:])
        return int(result.ret), "\n".join([*result.outlines, *result.errlines])
    assert words[0] == "python", f"{words[0]} is not run by the tests; use a block `sh` for it"
    environment = {**os.environ, "PYTHONPATH": str(pytester.path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=pytester.path,
        env=environment,
        capture_output=True,
        text=True,
    )
    # What a library logs as it closes (Dask does, on a slow machine) is no part of an example that went well.
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


@contextlib.contextmanager
def fresh_modules(folder: Path) -> Iterator[None]:
    """Forget modules imported from the folder inside, as a new process would."""
    path = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
            if str(place).startswith(str(folder)):
                del sys.modules[name]


def same(printed: str, shown: str, where: str) -> None:
    """Equal but for what may differ."""
    if not doctest.OutputChecker().check_output(f"{form(shown)}\n", f"{form(printed)}\n", FLAGS):
        raise AssertionError(f"{where} prints\n\n{printed}\nwhere the page has\n\n{shown}")


def form(text: str) -> str:
    """A text without numbers, rules as wide as a terminal, line ends, and which witness it was."""
    for pattern, instead in MAY_DIFFER:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_STEP_SUMMARY", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    reader = Reader(page, pytester)
    reader.read()
    if reader.skipped:
        pytest.skip(f"ran all but what needs {', '.join(sorted(reader.skipped))}, which is not installed")


def commands(page: Path) -> Iterator[str]:
    """Commands of dpaudit that are shown and not run."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.language in ("sh", "yaml"):
            for line in block.body.splitlines():
                if found := re.match(r"\s*(?:- )?(?:run: |entry: )?(dpaudit [^#]*)", line):
                    yield found[1].strip()
    for span in re.findall(r"`(dpaudit [a-z][^`]*)`", FENCE.sub("", text)):
        yield " ".join(span.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    parser, known = grammar.build_parser()
    for command in commands(page):
        words = shlex.split(command)[1:]
        if words[0] in grammar.PACKAGE_COMMANDS:
            command = importlib.import_module(grammar.command_module(words[0]))
            parser = grammar.Parser(prog=f"dpaudit {words[0]}")
            command.add_arguments(parser)
            if len(words) > 1:
                parser.parse_args(words[1:])
            continue
        if len(words) > 1:
            _, unknown = grammar.build_parser()[0].parse_known_args(words)
            assert unknown == [], command
        assert words[0] in known, command


ALL_PAGES = [*PAGES, *ROOT.glob("[A-Z]*.md"), *(ROOT / "audits").rglob("*.md"), *(ROOT / ".github").rglob("*.md"),
             *(ROOT / folder / "README.md" for folder in ("tests", "benchmarks"))]  # fmt: skip


def headings(page: Path) -> set[str]:
    """Anchors of a page, as GitHub and the site make them."""
    lines = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", sorted(set(ALL_PAGES)), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Inside the repository to a file and a heading that exist. Others are checked by their form: tests use no network."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#]*?)(?:#([^)]*))?\)", text):
        if "://" in target:
            parts = urlsplit(target)
            assert parts.scheme == "https", target
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), target
            assert not re.search(r"\s|[.,;]$", target), target
        elif target or anchor:
            place = page.parent / target if target else page
            assert place.exists(), target
            assert not anchor or place.suffix != ".md" or anchor in headings(place), f"{target}#{anchor}"


def test_every_page_is_reached_from_the_readme() -> None:
    assert "](docs/index.md)" in PAGES[0].read_text(encoding="utf-8")
    index = ROOT / "docs" / "index.md"
    linked = set(re.findall(r"\]\((\w+\.md)[)#]", index.read_text(encoding="utf-8")))
    assert {page.name for page in PAGES[1:] if page != index} == linked


def test_the_readme_fits_a_screen_and_a_half() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 90


def test_the_reference_has_every_public_name() -> None:
    def key(value: Any) -> tuple[str, str]:  # tests that forget modules make classes twice
        return ("", value.__name__) if isinstance(value, ModuleType) else (value.__module__, value.__qualname__)

    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    single = re.findall(r"auto(?:function|class):: dpaudit\.(\w+)$", text, re.MULTILINE)
    documented = {key(getattr(dpaudit, name)) for name in single}
    for name in re.findall(r"automodule:: ([\w.]+)", text):
        module = importlib.import_module(name)
        held = [*vars(module).values(), *(getattr(module, name) for name in getattr(module, "__all__", ()))]
        documented |= {key(module), *(key(value) for value in held if isinstance(value, type | FunctionType))}
    assert [name for name in dpaudit.__all__ if key(getattr(dpaudit, name)) not in documented] == []


def test_the_tutorial_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells in their order, as a kernel runs them: the value of the last expression of a cell is shown."""
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    notebook = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "outputs of the notebook are not kept: they would become out of date"
                tree = ast.parse("".join(cell["source"]))
                last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, f"cell {number}", "exec"), names)
                if last is not None:
                    shown.append(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    plt.close("all")
    verdicts = [str(value.verdict) for value in shown if hasattr(value, "_repr_html_") and value._repr_html_()]
    assert verdicts == ["VIOLATION", "NO_VIOLATION_FOUND", "VIOLATION", "NO_VIOLATION_FOUND"]
    assert "Event: output" in printed.getvalue()


def test_the_workflow_to_paste_is_the_one_that_init_writes() -> None:
    shown = [
        block.body for block in blocks(ROOT / "docs" / "ci.md") if block.options.get("file", "").endswith("dpaudit.yml")
    ]
    assert shown == [WORKFLOW]


def test_examples_can_fail(pytester: pytest.Pytester) -> None:
    for text in (
        "```python\nassert False\n```\n",
        "```python\nprint('a 1')\n```\n\n```text\nb 1\n```\n",
        "```pycon\n>>> 1 + 1\n3\n\n```\n",
        "```console\n$ dpaudit --version\nanother tool\n```\n",
        "```console\n$ dpaudit rnu\n```\n",
        "```console\n$ dpaudit --version # exit code 1\n```\n",
        "```python file=test_a.py\ndef test_a():\n    assert False\n```\n\n```console\n$ pytest test_a.py\n```\n",
    ):
        page = pytester.path / "page.md"
        page.write_text(text)
        with pytest.raises((AssertionError, SystemExit)):
            Reader(page, pytester).read()
    page.write_text(
        "```python\nprint('a 1')\n```\n\n```text\na 2\n```\n\n```console\n$ dpaudit --version\ndpaudit ...\n```\n"
    )
    Reader(page, pytester).read()
