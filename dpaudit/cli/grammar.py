"""The grammar of the command line: every command with its options, and a parser whose errors suggest what was meant."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from dpaudit import __version__
from dpaudit._util.terminal.console import Console
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit.cli.claim_options import BUDGETS, add_claim_options
from dpaudit.report import FORMATS

EXIT_CODES = (
    "exit codes: 0 nothing found and every expectation met; 1 violation, regression or unmet expectation; "
    "2 usage, configuration, unreadable baseline, or an audit that could not be run; 3 inconclusive; 130 interrupted"
)
TARGET_HELP = "folder, file.py, file.py:name, pkg.mod or pkg.mod:name"
PACKAGE_COMMANDS = {
    "accuracy": "accuracy theorems: list, show, verify, compare",
    "anonymity": "k-anonymity, l-diversity, t-closeness of a table",
    "anonymise": "make a table k-anonymous: Mondrian, or one level for each column",
    "risk": "risk of re-identification of a table: attackers, linkage, several releases",
    "statements": "the ledger of printed statements: list, show (run) a row, verify all",
}
TABLE_COMMANDS = ("anonymity", "anonymise", "risk")
_CHOICES = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)$", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors suggest what was meant. Options are never abbreviated: scripts would break."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print through a console, because messages repeat the command line."""
        if message:
            (file if isinstance(file, Console) else Console(sys.stderr if file is None else file)).write(message)

    def error(self, message: str) -> NoReturn:
        """Print one line and how to get help, and leave with 2."""
        from dpaudit._util.validation import did_you_mean

        choices = _CHOICES.search(message)
        if choices is not None:
            message += "." + did_you_mean(choices[1], [word.strip(" '\"") for word in choices[2].split(",")])
        elif message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split(" ")[0].partition("=")[0]
            if word.startswith("-"):
                message += "." + did_you_mean(word, self._option_string_actions)
        self.exit(ExitCode.ERROR, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of the whole command line, and those of the commands by name."""
    parser = Parser(
        prog="dpaudit",
        description="Find out whether code that claims to be differentially private really is.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"dpaudit {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for add in (
        _add_run,
        _add_check,
        _add_verify,
        _add_sensitivity,
        _add_diagnose,
        _add_list,
        _add_report,
        _add_compare,
        _add_init,
        _add_accountant,
        _add_tradeoff,
        _add_completion,
    ):
        add(commands)
    known = dict(commands.choices)
    for name, text in PACKAGE_COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser, known


def command_module(name: str) -> str:
    """Return the module that declares and runs a command of ``PACKAGE_COMMANDS``."""
    return f"dpaudit.anonymity.commands.{name}" if name in TABLE_COMMANDS else f"dpaudit.{name}.command"


def command_parser(name: str) -> tuple[Any, Parser]:
    """Return the module of a command of ``PACKAGE_COMMANDS``, and its parser."""
    command = importlib.import_module(command_module(name))
    parser = Parser(
        prog=f"dpaudit {name}", description=PACKAGE_COMMANDS[name][0].upper() + PACKAGE_COMMANDS[name][1:] + "."
    )
    command.add_arguments(parser)
    return command, parser


def all_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command, and of dpaudit itself under the empty name."""
    parser, known = build_parser()
    return {"": parser, **known, **{name: command_parser(name)[1] for name in PACKAGE_COMMANDS}}


def _add_run(commands: argparse._SubParsersAction[Parser]) -> None:
    run = commands.add_parser(
        "run", help="run audits from files, folders or modules", description="Run audits.", epilog=EXIT_CODES
    )
    run.add_argument("targets", nargs="*", metavar="TARGET", help=f"{TARGET_HELP} (default: as configured, or audits/)")
    _options(run)
    _reports(run)
    run.add_argument("--select", action="append", metavar="NAME", help="only audits whose name contains this")
    run.add_argument("-j", "--jobs", type=int, metavar="N", help="audits side by side, in so many processes")
    run.add_argument("--max-audits", type=_count, metavar="N", help="each audit gets alpha / N (default 1000)")
    run.add_argument("--baseline", type=Path, metavar="FILE", help="compare with this baseline")
    run.add_argument("--save-baseline", type=Path, metavar="FILE", help="write a baseline")
    run.add_argument("--resume", action="store_true", help="reuse results of an interrupted run that match exactly")


def _add_check(commands: argparse._SubParsersAction[Parser]) -> None:
    check = commands.add_parser(
        "check",
        help="audit one function or program, without an audit file",
        description="Audit one function, or one program in any language.",
        epilog=EXIT_CODES,
    )
    _one_function(check, required=False, has_budget=True)
    check.add_argument(
        "--command", dest="program", metavar="COMMAND", help="a program instead, e.g. './count --epsilon 1'"
    )
    check.add_argument(
        "--mode",
        choices=("once", "stream"),
        help="a process for every release, or one that answers requests line by line (default once)",
    )
    check.add_argument("--data-as", choices=("json", "csv", "lines"), help="what the program reads (default json)")
    check.add_argument(
        "--output-as", choices=("json", "text", "lines", "numbers"), help="what the program writes (default json)"
    )
    check.add_argument(
        "--samples-only", action="store_true", help="leave out the look at the exact law of the code before the audit"
    )
    check.set_defaults(profile=None)
    _options(check, has_claim=True)
    _reports(check)


def _add_verify(commands: argparse._SubParsersAction[Parser]) -> None:
    proof = commands.add_parser(
        "verify",
        help="verify one function by its exact law, without samples",
        description="Extract the exact output law of one function from its code, and compare it with the claim.",
        epilog=EXIT_CODES,
    )
    _one_function(proof)
    _examples(proof)
    proof.add_argument(
        "--seconds", type=float, default=60.0, help="time after which no more pairs are tried (default 60)"
    )
    _search_seed(proof)
    proof.add_argument("--law", action="store_true", help="print the laws on the pair that is shown")


def _add_sensitivity(commands: argparse._SubParsersAction[Parser]) -> None:
    sensitivity = commands.add_parser(
        "sensitivity",
        help="check the sensitivity of a query, without noise and without samples",
        description="Search for neighbours on which a deterministic query changes by more than it should.",
        epilog=EXIT_CODES,
    )
    sensitivity.add_argument("target", metavar="QUERY", help="a function of the data: file.py:name or pkg.mod:name")
    _query(sensitivity, bound="--bound")
    _data_sets(sensitivity)
    _examples(sensitivity)


def _add_diagnose(commands: argparse._SubParsersAction[Parser]) -> None:
    diagnosis = commands.add_parser(
        "diagnose",
        help="find the faulty part of query plus noise, in four stages",
        description="Check the sensitivity of the query, the noise, its calibration, and the mechanism end to end.",
        epilog=EXIT_CODES,
    )
    _one_function(diagnosis)
    diagnosis.add_argument("--query", required=True, metavar="QUERY", help="the query without noise: file.py:name")
    diagnosis.add_argument(
        "--noise",
        required=True,
        metavar="LAW",
        help="the law of the noise: 'laplace(SCALE)', 'gaussian(SIGMA)' or 'discrete-laplace(SCALE)'",
    )
    _query(diagnosis, bound="--sensitivity")
    diagnosis.add_argument(
        "--samples", type=_count, default=200_000, metavar="N", help="budget of the last stage (default 2e5)"
    )
    diagnosis.add_argument(
        "--alpha", type=float, default=1e-6, metavar="A", help="false-alarm probability (default 1e-6)"
    )


def _add_list(commands: argparse._SubParsersAction[Parser]) -> None:
    listing = commands.add_parser("list", help="list audits without running them")
    listing.add_argument("targets", nargs="*", metavar="TARGET", help=TARGET_HELP)
    listing.add_argument("--json", action="store_true", help="as JSON")


def _add_report(commands: argparse._SubParsersAction[Parser]) -> None:
    report = commands.add_parser("report", help="turn saved results into reports")
    report.add_argument(
        "results",
        type=Path,
        nargs="+",
        metavar="RESULTS.json",
        help="results of a run; with several, oldest first, the HTML report of the last shows the trend",
    )
    for kind, (text, _) in FORMATS.items():
        report.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"write {text}")


def _add_compare(commands: argparse._SubParsersAction[Parser]) -> None:
    compare = commands.add_parser(
        "compare",
        help="compare two sets of results",
        description="Compare two baselines, results of `run --output`, or outputs of `accuracy compare --json`.",
        epilog=EXIT_CODES,
    )
    compare.add_argument("old", type=Path, metavar="OLD.json")
    compare.add_argument("new", type=Path, metavar="NEW.json")


def _add_init(commands: argparse._SubParsersAction[Parser]) -> None:
    init = commands.add_parser("init", help="write a first audit file and a CI workflow (never overwrites)")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER")


def _add_accountant(commands: argparse._SubParsersAction[Parser]) -> None:
    accountant = commands.add_parser(
        "accountant",
        help="search for a composition on which a privacy accountant is wrong",
        description="Check accountant(composition, delta), or a function of noise_multiplier, sampling_rate, steps, delta.",
        epilog=EXIT_CODES,
    )
    accountant.add_argument("target", metavar="TARGET", help="the accountant: file.py:name or pkg.mod:name")
    accountant.add_argument(
        "--relation",
        choices=("add-remove", "substitute", "zero-out"),
        default="add-remove",
        help="which data sets are neighbours",
    )
    accountant.add_argument(
        "--noise", action="append", metavar="KIND", help="gaussian (default) or laplace; repeatable"
    )
    accountant.add_argument("--parts", type=int, default=2, metavar="N", help="most kinds of steps (default 2)")
    accountant.add_argument(
        "--max-steps", type=_count, default=1000, metavar="N", help="most steps of a kind (default 1000)"
    )
    accountant.add_argument("--unsampled", action="store_true", help="only steps without sampling")
    accountant.add_argument(
        "--examples", type=_count, default=100, metavar="N", help="compositions to try (default 100)"
    )
    accountant.add_argument("--seconds", type=float, metavar="S", help="budget of time")
    _search_seed(accountant)
    accountant.add_argument("--json", action="store_true", help="as JSON")


def _add_tradeoff(commands: argparse._SubParsersAction[Parser]) -> None:
    tradeoff = commands.add_parser(
        "tradeoff",
        help="draw error against shown epsilon for one mechanism over its parameter",
        description="Measure a dpaudit.Tradeoff: the mean error, and the epsilon that is shown, for every value of a parameter.",
    )
    tradeoff.add_argument("target", metavar="TARGET", help="a dpaudit.Tradeoff: file.py:name or pkg.mod:name")
    tradeoff.add_argument("--samples", type=_count, metavar="N", help="releases per audit (default 1e5)")
    tradeoff.add_argument("--alpha", type=float, metavar="A", help="error probability of all bounds (default 1e-6)")
    tradeoff.add_argument("--seed", type=int, metavar="N", help="root of all random numbers")
    tradeoff.add_argument("--plot", type=Path, metavar="FILE.svg", help="write a picture")
    tradeoff.add_argument("--json", action="store_true", help="as JSON")


def _add_completion(commands: argparse._SubParsersAction[Parser]) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description='Print a completion script: eval "$(dpaudit completion bash)" in ~/.bashrc; zsh and fish alike.',
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _one_function(parser: argparse.ArgumentParser, *, required: bool = True, has_budget: bool = False) -> None:
    parser.add_argument(
        "target",
        nargs=None if required else "?",
        metavar="TARGET",
        help="function or mechanism: file.py:name or pkg.mod:name",
    )
    add_claim_options(parser, has_budget=has_budget)
    _data_sets(parser)
    parser.add_argument(
        "--calls",
        choices=("data", "data-rng", "batched"),
        help="how it is called: f(data), f(data, rng) or f(data, size, rng) (default: by the names of its parameters)",
    )


def _data_sets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, metavar="ROWS", help="what a row is, e.g. 'integers(0, 10)'")
    parser.add_argument(
        "--relation", choices=("add-remove", "substitute"), required=True, help="which data sets are neighbours"
    )
    parser.add_argument("--min-size", type=int, default=None, metavar="N", help="fewest rows")
    parser.add_argument("--max-size", type=int, default=6, metavar="N", help="most rows (default 6)")


def _query(parser: argparse.ArgumentParser, *, bound: str) -> None:
    parser.add_argument(bound, type=float, required=True, metavar="S", help="claimed sensitivity of the query")
    parser.add_argument(
        "--norm", choices=("l1", "l2", "linf", "hamming"), default="l1", help="how a change is measured (default l1)"
    )
    _search_seed(parser)


def _examples(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=_count, default=300, metavar="N", help="pairs to generate (default 300)")


def _search_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the search (default 0)")


def _options(parser: argparse.ArgumentParser, *, has_claim: bool = False) -> None:
    parser.add_argument("--samples", type=_count, metavar="N", help="budget of samples per audit, e.g. 1e6")
    parser.add_argument("--seconds", type=float, metavar="S", help="budget of time per audit")
    parser.add_argument("--timeout", type=float, metavar="S", help="time that one call of a mechanism may take")
    if not has_claim:  # where there is a claim, ``--profile`` is its option, and takes these words too
        parser.add_argument("--profile", choices=BUDGETS, help="budget per audit: ci is about 5 seconds")
    parser.add_argument("--alpha", type=float, metavar="A", help="false-alarm probability of the run (default 1e-6)")
    parser.add_argument("--seed", type=int, metavar="N", help="root of all random numbers")
    parser.add_argument(
        "--accumulate",
        metavar="FILE",
        help="go on with the evidence that earlier runs left in this file, and add to it",
    )
    parser.add_argument(
        "--channel",
        choices=("value", "representation", "timing"),
        help="what is watched: the output, the bits of floats, or the duration of calls (data sets of equal sizes, one process, "
        "a control against a copy of the data; outside the promises on alpha and reproducibility)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes inside each audit")
    parser.add_argument("--executor", metavar="dask:ADDRESS", help="use a cluster: dask:tcp://host:8786")
    parser.add_argument(
        "--fail-on",
        choices=("violation", "inconclusive", "never"),
        help="least that makes the exit code non-zero (default inconclusive)",
    )
    parser.add_argument("--json", action="store_true", help="results as JSON on stdout, everything else on stderr")


def _reports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the results as JSON")
    for kind, (text, _) in FORMATS.items():
        parser.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"write {text}")


def _count(text: str) -> int:
    """A whole number, which may be written 1e6."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
        if value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
