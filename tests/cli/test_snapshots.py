"""The printed text, word for word. Numbers that the engine finds are replaced by #."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest


def blanked(text: str) -> str:
    """Numbers found while running; those of the claim and of the data stay."""
    kept = re.compile(
        r"epsilon=\d\.\d|\[\d\]|some\.py:\d+|probability (?:about )?[\d.e-]+|False-alarm probability spent: [\d.e-]+|99 %"
    )
    found = kept.findall(text)
    text = re.sub(r"-?\d[\d,]*(\.\d+)?(e-?\d+)?", "#", kept.sub("\0", text))
    return re.sub(r" +$", "", re.sub("\0", lambda _: found.pop(0), text), flags=re.MULTILINE)


def unwrapped(text: str) -> str:
    """Paragraphs on one line each: where they break depends on the width of numbers."""
    return re.sub(r"(?<=\S)\n(?=[a-z#]|Rarer)", " ", text)


def test_violation(project: Any) -> None:
    project.audits(project.audit("bad", "half"))
    assert (
        blanked(project.run("run")[1])
        == """\
VIOLATION           bad: claimed PureDP(epsilon=1.0), shown epsilon >= # (# samples, # s)

VIOLATION  bad

The claim is false, or an event of probability 1e-09 has happened. Claimed: PureDP(epsilon=1.0). Shown:
epsilon >= #. Refuted again on # releases drawn one call each; the bound assumes that outputs of one
call are independent.

Pair:
  data:      []
  neighbour: [1]
Event:
  output < #
Counted on fresh outputs (with 99 % intervals):
  on data:      # of # (#, between # and #)
  on neighbour: # of # (#, between # and #)
  log-ratio of the shares: #

result.witness.script() is a program that repeats this measurement.

Seed #; stopped at the violation; # pair(s) tried.
The mechanism is defined at audits/some.py:6.
The audit is defined at audits/some.py:10.

# audit: # VIOLATION. False-alarm probability spent: 1e-09.
With --html FILE there is a report that holds a program to repeat each measurement.
"""
    )


def test_nothing_found(project: Any) -> None:
    project.audits(project.audit("good"), project.audit("other", "half", more='expect="VIOLATION"'))
    assert (
        blanked(project.run("run")[1])
        == """\
NO_VIOLATION_FOUND  good: claimed PureDP(epsilon=1.0), shown epsilon >= #, would have caught # (# samples, # s)
VIOLATION           other: claimed PureDP(epsilon=1.0), shown epsilon >= # (# samples, # s) [as expected]

# audits: # VIOLATION, # NO_VIOLATION_FOUND; # of # expectations met. False-alarm probability spent: 2e-09.
"""
    )


def test_nothing_found_by_check(project: Any) -> None:
    project.audits()
    words = ("--epsilon", "1", "--rows", "integers(0, 1)", "--relation", "add-remove", "--calls", "batched")
    shown = blanked(project.run("check", "audits/some.py:noisy", *words, "--max-size", "1", "--samples", "60000")[1])
    assert (
        unwrapped(shown)
        == """\
NO_VIOLATION_FOUND  audits/some.py:noisy: claimed PureDP(epsilon=1.0), shown epsilon >= # (# samples, # s)

This is not a proof of privacy. An event of probability m on one data set and m exp(-epsilon) on its neighbour, on one of the \
# pairs, would have been caught, with probability about 0.9, from epsilon #
(m=#), # (m=#) on. Among numbers it is an end of the range, or of one coordinate's: an interval inside takes \
about twice the samples, and a rare \
one is missed. Among words it is made of the frequent ones. Rarer leaks, and leaks on data that were not tried, need more.

Note: Exact, over the reals, from the code: # pairs of data sets keep the claim.

Seed #; all samples used; # pair(s) tried.
The mechanism is defined at audits/some.py:3.
"""
    )


def test_inconclusive(project: Any) -> None:
    project.audits(project.audit("weak", samples=1000))
    assert (
        blanked(project.run("run")[1])
        == """\
INCONCLUSIVE        weak: claimed PureDP(epsilon=1.0), shown epsilon >= # (# samples, # s)

INCONCLUSIVE  weak

The audit could not decide; this is not a sign of privacy.

Note: Too few samples: an event of probability 0.1 would not be detected at any epsilon, but detect_factor=#
asks for epsilon #. Give more samples, or a larger detect_factor=. About # samples would decide.

Seed #; all samples used; # pair(s) tried.
The mechanism is defined at audits/some.py:3.
The audit is defined at audits/some.py:10.

# audit: # INCONCLUSIVE. False-alarm probability spent: 1e-09.
"""
    )


def test_trouble(project: Any) -> None:
    project.audits("def wrong(data, size, rng):\n    return 7\n", project.audit("broken", "wrong"))
    assert (
        blanked(project.run("run")[1])
        == """\
ERROR  broken: The mechanism returned # for size=#; it must return # outputs, as an array whose first axis has that \
length or as a sequence. Wrap a function of one release in dpaudit.per_release.

# audits: none. False-alarm probability spent: 0.
# of # audits could not be run.
"""
    )


AUDIT = "import dpaudit\nx = dpaudit.Audit(name='n', mechanism=len, claim=dpaudit.PureDP(1.0), neighbours=[])\n"
MISTAKES = {
    "no audits": (
        ["run"],
        {},
        (
            "dpaudit: There is no folder audits/ here. An audit file defines dpaudit.Audit objects at its top level; "
            "`dpaudit init` writes a first one.\n"
        ),
    ),
    "an empty file": (
        ["run", "empty.py"],
        {"empty.py": ""},
        (
            "dpaudit: No audits found in empty.py. An audit file defines dpaudit.Audit objects at its top level; "
            "`dpaudit init` writes a first one.\n"
        ),
    ),
    "a file that raises": (
        ["run"],
        {"audits/a.py": "import math\nmath.sqrt(-1)\n"},
        "dpaudit: audits/a.py cannot be imported: ValueError: math domain error ({root}/audits/a.py:2).\n",
    ),
    "a file that is not Python": (
        ["run"],
        {"audits/a.py": "x = = 1\n"},
        "dpaudit: audits/a.py cannot be imported: SyntaxError: invalid syntax (a.py, line 1) ({root}/audits/a.py:1).\n",
    ),
    "a file that exits": (
        ["run"],
        {"audits/a.py": "raise SystemExit(0)\n"},
        "dpaudit: audits/a.py cannot be imported: SystemExit: 0 ({root}/audits/a.py:1).\n",
    ),
    "a missing dependency": (
        ["run"],
        {"audits/a.py": "import no_such_package\n"},
        (
            "dpaudit: audits/a.py cannot be imported: ModuleNotFoundError: No module named 'no_such_package' "
            "({root}/audits/a.py:1).\n"
        ),
    ),
    "two of one name": (
        ["run"],
        {
            "audits/a.py": "import dpaudit\nx = dpaudit.Audit(name='n', mechanism=len, claim=dpaudit.PureDP(1.0), "
            "neighbours=[])\ny = dpaudit.Audit(name='n', mechanism=len, claim=dpaudit.PureDP(1.0), neighbours=[])\n"
        },
        (
            "dpaudit: Two audits are called 'n': at audits/a.py:2 and at audits/a.py:3. Names must differ, because baselines "
            "and reports go by them.\n"
        ),
    ),
    "an unknown setting": (
        ["run"],
        {"pyproject.toml": "[tool.dpaudit]\nalhpa = 1\n"},
        "dpaudit: 'alhpa' in [tool.dpaudit] of pyproject.toml is not a setting of dpaudit. Did you mean 'alpha'?\n",
    ),
    "a setting out of range": (
        ["run"],
        {"pyproject.toml": "[tool.dpaudit]\nalpha = 1\n"},
        "dpaudit: alpha=1 must lie strictly between 0 and 1. (from [tool.dpaudit] of pyproject.toml)\n",
    ),
    "broken TOML": (
        ["list"],
        {"pyproject.toml": "[tool.dpaudit\n"},
        (
            "dpaudit: {root}/pyproject.toml is not valid TOML: Expected ']' at the end of a table declaration (at line 1, "
            "column 14).\n"
        ),
    ),
    "a baseline that is not there": (
        ["run", "--baseline", "base.json"],
        {},
        "dpaudit: 'base.json' cannot be read: [Errno 2] No such file or directory: 'base.json'.\n",
    ),
    "a baseline of something else": (
        ["run", "--baseline", "base.json"],
        {"base.json": "[]"},
        "dpaudit: base.json was not written by dpaudit.\n",
    ),
    "a claim that is none": (
        ["check", "m.py:f", "--epsilon", "-1", "--rows", "none()", "--relation", "substitute"],
        {"m.py": "f = len\n"},
        (
            "dpaudit: epsilon=-1.0 must be positive and finite. A claim of epsilon-DP needs epsilon > 0; did you mean "
            "PureDP(1.0)?\n"
        ),
    ),
    "rows that are no strategy": (
        ["check", "m.py:f", "--epsilon", "1", "--rows", "integer(0, 10)", "--relation", "substitute"],
        {"m.py": "f = len\n"},
        (
            "dpaudit: rows='integer(0, 10)': 'integer' is not a strategy here; use integers, floats, booleans, text, binary, "
            "none, just, sampled_from, one_of, tuples, lists, fixed_dictionaries, dates. Did you mean 'integers'?\n"
        ),
    ),
    "a function that is no audit": (
        ["run", "m.py:f"],
        {"m.py": "f = len\n"},
        (
            "dpaudit: f=<built-in function len> of m.py is not an Audit. To audit a function without an Audit, use "
            "`dpaudit check`.\n"
        ),
    ),
    "an audit that is no function": (
        ["check", "a.py:x", "--epsilon", "1", "--rows", "none()", "--relation", "substitute"],
        {"a.py": AUDIT},
        "dpaudit: a.py:x is an Audit, with a claim and neighbours: `dpaudit run a.py:x`.\n",
    ),
    "a target that is not there": (
        ["run", "nowhere"],
        {},
        "dpaudit: 'nowhere' is neither a path nor a module that can be imported from here.\n",
    ),
    "a selection of nothing": (
        ["run", "a.py", "--select", "median"],
        {"a.py": AUDIT},
        "dpaudit: No audit is called 'median'. There are: 'n'.\n",
    ),
    "more alpha than there is": (
        ["run", "a.py", "--alpha", "1e-9"],
        {"a.py": AUDIT.replace("neighbours=[]", "neighbours=[], options={'alpha': 0.5}")},
        (
            "dpaudit: 1 audits ask for a false-alarm probability of 0.5, but the run has alpha=1e-09. Leave alpha out of "
            "their options (each then gets alpha / max_audits = 1e-12), or raise alpha or max_audits.\n"
        ),
    ),
    "two ways to spread out": (
        ["run", "a.py", "-j", "2", "--workers", "2"],
        {"a.py": AUDIT},
        "dpaudit: --jobs runs audits side by side, --workers and --executor spread out each: choose one.\n",
    ),
    "no jobs": (["run", "a.py", "-j", "0"], {"a.py": AUDIT}, "dpaudit: jobs=0 must be a whole number of at least 1.\n"),
    "an executor that is none": (
        ["run", "a.py", "--executor", "ray:8786"],
        {"a.py": AUDIT},
        "dpaudit: executor='ray:8786' must look like dask:tcp://host:8786.\n",
    ),
    "a report where none can be": (
        ["run", "a.py", "--html", "a.py/report.html"],
        {"a.py": AUDIT},
        "dpaudit: 'a.py/report.html' cannot be written: Not a directory.\n",
    ),
    "results of another version": (
        ["report", "r.json"],
        {"r.json": '{"tool": "dpaudit", "format": 9}'},
        "dpaudit: r.json has format 9; this version reads format 1.\n",
    ),
    "an option that is missing": (
        ["check", "m.py:f"],
        {},
        ("dpaudit check: the following arguments are required: --rows, --relation\nTry 'dpaudit check --help'.\n"),
    ),
    "an unknown command": (
        ["chekc"],
        {},
        (
            "dpaudit: argument COMMAND: invalid choice: 'chekc' (choose from 'run', 'check', 'verify', 'sensitivity', "
            "'diagnose', 'list', 'report', "
            "'compare', 'init', 'accountant', 'tradeoff', 'completion', 'accuracy', 'anonymity', 'anonymise', 'risk', "
            "'statements'). Did you mean 'check'?\nTry 'dpaudit --help'.\n"
        ),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(project: Any, capsys: pytest.CaptureFixture[str], name: str) -> None:
    words, files, expected = MISTAKES[name]
    for path, text in files.items():
        project.write(path, text)
    assert project.run(*words) == (2, "")
    assert capsys.readouterr().err == expected.replace("{root}", str(Path.cwd()))
