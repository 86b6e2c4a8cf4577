"""The command line. Each subcommand imports what it needs when it runs, so that ``dpaudit --help`` answers at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from dpaudit import __version__
from dpaudit.errors import DPAuditError
from dpaudit.validation import did_you_mean

OK, FAILED, USAGE, UNDECIDED = 0, 1, 2, 3
EXIT_CODES = "exit codes: 0 nothing found, 1 violation or unmet expectation, 2 usage, 3 inconclusive"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors suggest what was meant."""

    def error(self, message: str) -> NoReturn:
        """Print one line and how to get help, and leave with 2."""
        words = message.split("'")
        if "invalid choice" in message and len(words) > 2:
            known = [word for word in words[3:] if word.strip(", ()")]
            message += did_you_mean(words[1], known)
        self.exit(USAGE, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def build_parser() -> Parser:
    """The whole grammar of the command line."""
    parser = Parser(
        prog="dpaudit",
        description="Find out whether code that claims to be differentially private really is.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"dpaudit {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    run = commands.add_parser("run", help="run audits from files, folders or modules", epilog=EXIT_CODES)
    run.add_argument(
        "targets", nargs="*", metavar="TARGET", help="folder, file.py, file.py:name, pkg.mod or pkg.mod:name"
    )
    _options(run)
    run.add_argument("--select", action="append", metavar="NAME", help="only audits whose name contains this")
    run.add_argument("-j", "--jobs", type=int, metavar="N", help="audits side by side, in so many processes")
    run.add_argument("--output", type=Path, metavar="FILE", help="write the results as JSON to a file")
    run.add_argument("--html", type=Path, metavar="FILE", help="write an HTML report")
    run.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    run.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0")
    run.add_argument("--markdown", type=Path, metavar="FILE", help="write Markdown")
    run.add_argument("--baseline", type=Path, metavar="FILE", help="compare with this baseline")
    run.add_argument("--save-baseline", type=Path, metavar="FILE", help="write a baseline")
    run.add_argument("--resume", action="store_true", help="reuse results of an interrupted run that match exactly")

    check = commands.add_parser("check", help="audit one function, without an audit file", epilog=EXIT_CODES)
    check.add_argument("target", metavar="TARGET", help="function or mechanism: file.py:name or pkg.mod:name")
    check.add_argument("--epsilon", type=float, required=True, help="claimed epsilon")
    check.add_argument("--delta", type=float, default=0.0, help="claimed delta (default 0)")
    check.add_argument("--rows", required=True, metavar="ROWS", help="what a row is, e.g. 'integers(0, 10)'")
    check.add_argument("--relation", choices=("add-remove", "substitute"), required=True, help="who are neighbours")
    check.add_argument("--min-size", type=int, default=None, metavar="N", help="fewest rows")
    check.add_argument("--max-size", type=int, default=6, metavar="N", help="most rows (default 6)")
    check.add_argument(
        "--calls",
        choices=("data", "data-rng", "batched"),
        default="data",
        help="how the function is called (default data)",
    )
    _options(check)

    listing = commands.add_parser("list", help="list audits without running them")
    listing.add_argument("targets", nargs="*", metavar="TARGET")

    report = commands.add_parser("report", help="turn saved results into reports")
    report.add_argument("results", type=Path, metavar="RESULTS.json")
    for kind in ("html", "junit", "sarif", "markdown"):
        report.add_argument(f"--{kind}", type=Path, metavar="FILE")

    compare = commands.add_parser("compare", help="compare two sets of results")
    compare.add_argument("old", type=Path, metavar="OLD.json")
    compare.add_argument("new", type=Path, metavar="NEW.json")

    init = commands.add_parser("init", help="write a first audit file and a CI workflow (never overwrites)")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER")

    for name, text in (
        ("accuracy", "accuracy theorems: list, show, verify, compare"),
        ("anonymity", "k-anonymity, l-diversity, t-closeness of a table"),
    ):
        commands.add_parser(name, help=text, add_help=False)
    return parser


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=_count, metavar="N", help="budget of samples per audit, e.g. 1e6")
    parser.add_argument("--seconds", type=float, metavar="S", help="budget of time per audit")
    parser.add_argument("--alpha", type=float, metavar="A", help="false-alarm probability of each audit (default 1e-6)")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--channel", choices=("value", "representation", "timing"))
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes inside each audit")
    parser.add_argument("--executor", metavar="dask:ADDRESS", help="use a cluster: dask:tcp://host:8786")
    parser.add_argument("--fail-on", choices=("violation", "inconclusive", "never"))
    parser.add_argument("--json", action="store_true", help="results as JSON on stdout, everything else on stderr")


def _count(text: str) -> int:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def main(argv: Sequence[str] | None = None, *, stdout: IO[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    out = sys.stdout if stdout is None else stdout
    words = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser()
    if not words:
        parser.print_help(out)
        return OK
    try:
        if words[0] in ("accuracy", "anonymity"):
            return _room(words[0], words[1:], out)
        args = parser.parse_args(words)
        return int(_COMMANDS[args.command](args, out))
    except DPAuditError as error:
        print(f"dpaudit: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("dpaudit: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; do not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _room(name: str, words: list[str], out: IO[str]) -> int:
    import importlib

    command = importlib.import_module(f"dpaudit.{name}.command")
    parser = Parser(prog=f"dpaudit {name}")
    command.add_arguments(parser)
    return int(command.run(parser.parse_args(words), out))


def _run(args: argparse.Namespace, out: IO[str]) -> int:
    from dpaudit import running
    from dpaudit.config import load

    root = Path.cwd()
    named = ("samples", "seconds", "alpha", "seed", "channel", "workers", "executor", "fail_on")
    settings = load(root, overrides={name: getattr(args, name) for name in named})
    targets = args.targets or list(settings.audits) or ["audits"]
    return running.run_command(args, targets, settings, root, out)


def _check(args: argparse.Namespace, out: IO[str]) -> int:
    from dpaudit import running
    from dpaudit.config import load

    named = ("samples", "seconds", "alpha", "seed", "channel", "workers", "executor", "fail_on")
    settings = load(Path.cwd(), overrides={name: getattr(args, name) for name in named})
    return running.check_command(args, settings, Path.cwd(), out)


def _list(args: argparse.Namespace, out: IO[str]) -> int:
    from dpaudit.collect import collect
    from dpaudit.config import load

    root = Path.cwd()
    targets = args.targets or list(load(root).audits) or ["audits"]
    for item in collect(targets, root=root):
        expect = f"  (expects {item.audit.expect})" if item.audit.expect else ""
        print(f"{item.audit.name}  {item.audit.claim!r}  {item.path}:{item.line}{expect}", file=out)
    return OK


def _report(args: argparse.Namespace, out: IO[str]) -> int:
    from dpaudit.report import write_reports
    from dpaudit.report.document import read_document

    document = read_document(args.results)
    kinds = {kind: getattr(args, kind) for kind in ("html", "junit", "sarif", "markdown")}
    if not any(kinds.values()):
        from dpaudit.report.terminal import summary

        print(summary(document), file=out)
    for path in write_reports(document, kinds):
        print(f"wrote {path}", file=out)
    return OK


def _compare(args: argparse.Namespace, out: IO[str]) -> int:
    from dpaudit.baseline import compare
    from dpaudit.report.document import read_document

    differences = compare(read_document(args.old), read_document(args.new))
    for difference in differences:
        print(difference, file=out)
    if not differences:
        print("No regression.", file=out)
    return FAILED if differences else OK


def _init(args: argparse.Namespace, out: IO[str]) -> int:
    from dpaudit.scaffold import write_scaffold

    for line in write_scaffold(args.folder):
        print(line, file=out)
    return OK


_COMMANDS: dict[str, Any] = {
    "run": _run,
    "check": _check,
    "list": _list,
    "report": _report,
    "compare": _compare,
    "init": _init,
}


def entry() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(main())
