"""The command line. Each subcommand imports what it needs when it runs, so that ``dpaudit --help`` answers at once."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NoReturn

from dpaudit import __version__
from dpaudit._util.messages import described, traceback_text
from dpaudit._util.terminal.console import Console, open_streams
from dpaudit._util.terminal.exit_codes import ExitCode, strongest
from dpaudit.cli import supervisor
from dpaudit.errors import DPAuditError, InvalidArgument
from dpaudit.report import FORMATS

EXIT_CODES = (
    "exit codes: 0 nothing found and every expectation met; 1 violation, regression or unmet expectation; "
    "2 usage, configuration, unreadable baseline, or an audit that could not be run; 3 inconclusive; 130 interrupted"
)
BUDGETS = ("ci", "deep")
TARGET_HELP = "folder, file.py, file.py:name, pkg.mod or pkg.mod:name"
PACKAGE_COMMANDS = {
    "accuracy": "accuracy theorems: list, show, verify, compare",
    "anonymity": "k-anonymity, l-diversity, t-closeness of a table",
    "anonymise": "make a table k-anonymous: Mondrian, or one level for each column",
    "risk": "risk of re-identification of a table: attackers, linkage, several releases",
    "statements": "the ledger of printed statements: list, show (run) a row, verify all",
}
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
            message += did_you_mean(choices[1], [word.strip(" '\"") for word in choices[2].split(",")])
        elif message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split(" ")[0].partition("=")[0]
            if word.startswith("-"):
                message += "." + did_you_mean(word, self._option_string_actions)
        self.exit(ExitCode.ERROR, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """The whole grammar of the command line: its parser, and those of the subcommands."""
    parser = Parser(
        prog="dpaudit",
        description="Find out whether code that claims to be differentially private really is.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"dpaudit {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    known: dict[str, Parser] = {}

    run = known["run"] = commands.add_parser(
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

    check = known["check"] = commands.add_parser(
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
    check.set_defaults(profile=None)
    _options(check, has_claim=True)
    _reports(check)

    proof = known["verify"] = commands.add_parser(
        "verify",
        help="verify one function by its exact law, without samples",
        description="Extract the exact output law of one function from its code, and compare it with the claim.",
        epilog=EXIT_CODES,
    )
    _one_function(proof)
    proof.add_argument("--examples", type=_count, default=300, metavar="N", help="pairs to generate (default 300)")
    proof.add_argument(
        "--seconds", type=float, default=60.0, help="time after which no more pairs are tried (default 60)"
    )
    proof.add_argument("--seed", type=int, default=0, help="seed of the search (default 0)")
    proof.add_argument("--law", action="store_true", help="print the laws on the pair that is shown")

    sensitivity = known["sensitivity"] = commands.add_parser(
        "sensitivity",
        help="check the sensitivity of a query, without noise and without samples",
        description="Search for neighbours on which a deterministic query changes by more than it should.",
        epilog=EXIT_CODES,
    )
    sensitivity.add_argument("target", metavar="QUERY", help="a function of the data: file.py:name or pkg.mod:name")
    _query(sensitivity, bound="--bound")
    _data_sets(sensitivity)
    sensitivity.add_argument(
        "--examples", type=_count, default=300, metavar="N", help="pairs to generate (default 300)"
    )

    diagnosis = known["diagnose"] = commands.add_parser(
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

    listing = known["list"] = commands.add_parser("list", help="list audits without running them")
    listing.add_argument("targets", nargs="*", metavar="TARGET", help=TARGET_HELP)
    listing.add_argument("--json", action="store_true", help="as JSON")

    report = known["report"] = commands.add_parser("report", help="turn saved results into reports")
    report.add_argument(
        "results",
        type=Path,
        nargs="+",
        metavar="RESULTS.json",
        help="results of a run; with several, oldest first, the HTML report of the last shows the trend",
    )
    for kind, (text, _) in FORMATS.items():
        report.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"write {text}")

    compare = known["compare"] = commands.add_parser(
        "compare",
        help="compare two sets of results",
        description="Compare two baselines, results of `run --output`, or outputs of `accuracy compare --json`.",
        epilog=EXIT_CODES,
    )
    compare.add_argument("old", type=Path, metavar="OLD.json")
    compare.add_argument("new", type=Path, metavar="NEW.json")

    init = known["init"] = commands.add_parser(
        "init", help="write a first audit file and a CI workflow (never overwrites)"
    )
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER")

    accountant = known["accountant"] = commands.add_parser(
        "accountant",
        help="search for a composition on which a privacy accountant is wrong",
        description="Check accountant(composition, delta), or a function of noise_multiplier, sampling_rate, steps, delta.",
        epilog=EXIT_CODES,
    )
    accountant.add_argument("target", metavar="TARGET", help="the accountant: file.py:name or pkg.mod:name")
    accountant.add_argument(
        "--relation", choices=("add-remove", "substitute", "zero-out"), default="add-remove", help="who are neighbours"
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
    accountant.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the search")
    accountant.add_argument("--json", action="store_true", help="as JSON")
    tradeoff = known["tradeoff"] = commands.add_parser(
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

    completion = known["completion"] = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description='Print a completion script: eval "$(dpaudit completion bash)" in ~/.bashrc; zsh and fish alike.',
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))

    for name, text in PACKAGE_COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser, known


_SETTINGS = (
    "profile", "samples", "seconds", "timeout", "alpha", "seed", "channel", "accumulate", "workers", "executor", "fail_on",
    "max_audits",
)  # fmt: skip


class _Profile(argparse.Action):
    """Store the points of a claimed profile; the name of a budget is what ``--profile`` means on ``dpaudit run``."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del parser, option_string
        is_budget = values in BUDGETS and hasattr(namespace, "profile")
        setattr(namespace, "profile" if is_budget else self.dest, values)


def _one_function(parser: argparse.ArgumentParser, *, required: bool = True, has_budget: bool = False) -> None:
    parser.add_argument(
        "target",
        nargs=None if required else "?",
        metavar="TARGET",
        help="function or mechanism: file.py:name or pkg.mod:name",
    )
    claim = parser.add_argument_group("claim", "what is claimed; one of these")
    claim.add_argument("--epsilon", type=float, help="epsilon of pure DP, or of approximate DP with --delta")
    claim.add_argument("--delta", type=float, default=0.0, help="claimed delta (default 0)")
    claim.add_argument("--mu", type=float, help="mu of Gaussian DP")
    claim.add_argument("--rho", type=float, help="rho of zero-concentrated DP")
    claim.add_argument("--renyi", metavar="ORDER:EPSILON", help="Renyi DP of one order, e.g. 8:0.5")
    claim.add_argument(
        "--profile",
        "--curve",
        dest="curve",
        action=_Profile,
        metavar="POINTS",
        help="a privacy profile by points EPSILON:DELTA, e.g. 0:0.38,1:0.13,3:1e-3"
        + (" (or a budget: ci, about 5 seconds, or deep)" if has_budget else ""),
    )
    claim.add_argument("--bounded-range", type=float, metavar="EPSILON", help="epsilon of bounded range")
    _data_sets(parser)
    parser.add_argument(
        "--calls",
        choices=("data", "data-rng", "batched"),
        help="how it is called: f(data), f(data, rng) or f(data, size, rng) (default: by the names of its parameters)",
    )


def _data_sets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, metavar="ROWS", help="what a row is, e.g. 'integers(0, 10)'")
    parser.add_argument("--relation", choices=("add-remove", "substitute"), required=True, help="who are neighbours")
    parser.add_argument("--min-size", type=int, default=None, metavar="N", help="fewest rows")
    parser.add_argument("--max-size", type=int, default=6, metavar="N", help="most rows (default 6)")


def _query(parser: argparse.ArgumentParser, *, bound: str) -> None:
    parser.add_argument(bound, type=float, required=True, metavar="S", help="claimed sensitivity of the query")
    parser.add_argument(
        "--norm", choices=("l1", "l2", "linf", "hamming"), default="l1", help="how a change is measured (default l1)"
    )
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


def main(
    argv: Sequence[str] | None = None,
    *,
    stdout: IO[str] | Console | None = None,
    stderr: IO[str] | Console | None = None,
) -> int:
    """Run a command line and return its exit code. Nothing is raised: an error that nobody foresaw is shown, and is 2."""
    out, err = _console(stdout, sys.stdout), _console(stderr, sys.stderr)
    words = list(sys.argv[1:] if argv is None else argv)
    parser, commands = build_parser()
    if not words:
        parser.print_help(out)
        return ExitCode.OK
    try:
        try:
            command, args = _parsed(words, parser, commands)
        except SystemExit as stop:  # argparse leaves this way, with a number
            return stop.code if isinstance(stop.code, int) else ExitCode.OK
        _check_folder()
        return int(command(args, out, err))
    except KeyboardInterrupt:
        err.line("dpaudit: interrupted.")
        return ExitCode.INTERRUPTED
    except SystemExit as stop:  # code that was run: its number would pass for a verdict
        err.line(f"dpaudit: code under audit called sys.exit({stop.code!r}), so there is no result.")
    except (DPAuditError, OSError) as error:
        err.block(f"dpaudit: {error}")
    except BaseException as error:
        err.block(f"dpaudit: {described(error)}. This was not foreseen, and there may be no result.")
        err.block(traceback_text(error))
    return ExitCode.ERROR


def _check_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InvalidArgument("The current folder was removed; change to another one.") from None


def _console(given: IO[str] | Console | None, default: IO[str] | None) -> Console:
    return given if isinstance(given, Console) else Console(default if given is None else given)


def _parsed(words: list[str], parser: Parser, commands: dict[str, Parser]) -> tuple[Any, argparse.Namespace]:
    """Return the function to run, and its arguments."""
    if any("\0" in word for word in words):
        parser.error("arguments cannot hold NUL characters.")
    if words[0] in PACKAGE_COMMANDS:
        return _room(words[0], words[1:])
    args, unknown = parser.parse_known_args(words)
    if unknown or args.command is None:
        commands.get(args.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    return _COMMANDS[args.command], args


def command_module(name: str) -> str:
    """Return the module that declares and runs a command of ``PACKAGE_COMMANDS``."""
    return f"dpaudit.anonymity.commands.{name}" if name in ("anonymise", "risk") else f"dpaudit.{name}.command"


def _room(name: str, words: list[str]) -> tuple[Any, argparse.Namespace]:
    command, parser = _command_parser(name)
    if not words and any(isinstance(part, argparse._SubParsersAction) and part.required for part in parser._actions):
        words = ["--help"]
    args = parser.parse_args(words)
    return command.run, args


def _command_parser(name: str) -> tuple[Any, Parser]:
    import importlib

    command = importlib.import_module(command_module(name))
    parser = Parser(
        prog=f"dpaudit {name}", description=PACKAGE_COMMANDS[name][0].upper() + PACKAGE_COMMANDS[name][1:] + "."
    )
    command.add_arguments(parser)
    return command, parser


def all_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command, and of dpaudit itself under the empty name."""
    parser, known = build_parser()
    return {"": parser, **known, **{name: _command_parser(name)[1] for name in PACKAGE_COMMANDS}}


def _settings(args: argparse.Namespace) -> Any:
    from dpaudit.cli.config import load

    return load(Path.cwd(), overrides={name: getattr(args, name, None) for name in _SETTINGS})


def _progress_without_terminal() -> AbstractContextManager[None]:
    from dpaudit.engine.progress import logged

    return logged()


def _run(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.run import run_command

    with _progress_without_terminal():
        return run_command(args, _settings(args), Path.cwd(), out, err)


def _check(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.check import check_command

    with _progress_without_terminal():
        return check_command(args, _settings(args), Path.cwd(), out, err)


def _accountant(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.accountant import accountant_command

    return accountant_command(args, Path.cwd(), out, err)


def _verify(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.check import verify_command

    return verify_command(args, _settings(args), Path.cwd(), out, err)


def _sensitivity(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.stages import sensitivity_command

    return sensitivity_command(args, _settings(args), Path.cwd(), out, err)


def _diagnose(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.stages import diagnose_command

    with _progress_without_terminal():
        return diagnose_command(args, _settings(args), Path.cwd(), out, err)


def _completion(args: argparse.Namespace, out: Console, err: Console) -> int:
    del err
    from dpaudit.cli.commands.completion import completion_script

    out.block(completion_script(args.shell, all_parsers()))
    return ExitCode.OK


def _list(args: argparse.Namespace, out: Console, err: Console) -> int:
    import contextlib

    from dpaudit._util.terminal.console import Unbroken
    from dpaudit.cli.plan import collected

    with contextlib.redirect_stdout(Unbroken(err.stream)):  # what audit files print
        items = collected(args.targets, _settings(args), Path.cwd())
    if args.json:
        import json

        plain = [
            {
                "name": item.audit.name,
                "claim": repr(item.audit.claim),
                "expect": None if item.audit.expect is None else str(item.audit.expect),
                "path": item.path,
                "line": item.line,
            }
            for item in items
        ]
        out.json(json.dumps(plain, indent=1, allow_nan=False) + "\n")
        return ExitCode.OK
    for item in items:
        expect = f"  (expects {item.audit.expect})" if item.audit.expect else ""
        out.line(f"{item.audit.name}  {item.audit.claim!r}  {item.path}:{item.line}{expect}")
    return ExitCode.OK


def _report(args: argparse.Namespace, out: Console, err: Console) -> int:
    del err
    from dpaudit.report import check_reports, write_reports
    from dpaudit.report.document import read_document

    *earlier, document = [read_document(path) for path in args.results]
    kinds = {kind: getattr(args, kind) for kind in FORMATS}
    check_reports(kinds)
    if not any(kinds.values()):
        from dpaudit.report.terminal import show_summary

        show_summary(out, document)
    for path in write_reports(document, kinds, earlier):
        out.line(f"wrote {path}")
    return document.exit_code()


def _compare(args: argparse.Namespace, out: Console, err: Console) -> int:
    del err
    from dpaudit.baseline import compare_files, exit_code_of_run

    differences, code = compare_files(args.old, args.new), exit_code_of_run(args.new)
    for difference in differences:
        out.line(f"REGRESSION  {difference}")
    if not differences:
        out.line("No regression.")
    if code:
        out.line(f"The run of {args.new} itself ended with exit code {int(code)}.")
    return strongest([code, ExitCode.FAILED if differences else ExitCode.OK])


def _init(args: argparse.Namespace, out: Console, err: Console) -> int:
    del err
    from dpaudit.cli.commands.scaffold import write_scaffold

    for line in write_scaffold(args.folder):
        out.line(line)
    return ExitCode.OK


def _tradeoff(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.tradeoff import tradeoff_command

    return tradeoff_command(args, Path.cwd(), out, err)


_COMMANDS: dict[str, Any] = {
    "run": _run,
    "check": _check,
    "accountant": _accountant,
    "verify": _verify,
    "sensitivity": _sensitivity,
    "diagnose": _diagnose,
    "completion": _completion,
    "list": _list,
    "report": _report,
    "compare": _compare,
    "init": _init,
    "tradeoff": _tradeoff,
}


_RUN_CODE_OF_OTHERS = ("run", "check", "list", "verify", "sensitivity", "diagnose", "accountant", "tradeoff")


def entry() -> NoReturn:
    """Entry point of the console script."""
    out, err = open_streams()
    if sys.argv[1:2] and sys.argv[1] in _RUN_CODE_OF_OTHERS:
        supervisor.start(err)
    supervisor.leave(main(stdout=out, stderr=err))
