"""Run a command line. Each command imports what it needs when it runs, so that ``dpaudit --help`` answers at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NoReturn

from dpaudit._util.messages import described, traceback_text
from dpaudit._util.terminal.console import Console, open_streams
from dpaudit._util.terminal.exit_codes import ExitCode, strongest
from dpaudit.cli import supervisor
from dpaudit.cli.grammar import PACKAGE_COMMANDS, Parser, all_parsers, build_parser, command_parser
from dpaudit.errors import DPAuditError, InvalidArgument
from dpaudit.report import FORMATS

_SETTINGS = (
    "profile", "samples", "seconds", "timeout", "alpha", "seed", "channel", "accumulate", "workers", "executor", "fail_on",
    "max_audits",
)  # fmt: skip


def main(
    argv: Sequence[str] | None = None,
    *,
    stdout: IO[str] | Console | None = None,
    stderr: IO[str] | Console | None = None,
) -> int:
    """Run a command line and return its exit code. No exception is raised: an unexpected error is shown, with exit code 2."""
    out, err = _console(stdout, sys.stdout), _console(stderr, sys.stderr)
    words = list(sys.argv[1:] if argv is None else argv)
    parser, commands = build_parser()
    if not words:
        parser.print_help(out)
        return ExitCode.OK
    try:
        try:
            command, args = _parsed(words, parser, commands)
        except SystemExit as stop:  # argparse ends with SystemExit and a number
            return stop.code if isinstance(stop.code, int) else ExitCode.OK
        _check_folder()
        return int(command(args, out, err))
    except KeyboardInterrupt:
        err.line("dpaudit: interrupted.")
        return ExitCode.INTERRUPTED
    except SystemExit as stop:  # raised by user code: its number must not be taken for a verdict
        err.line(f"dpaudit: code under audit called sys.exit({stop.code!r}), so there is no result.")
    except (DPAuditError, OSError) as error:
        err.block(f"dpaudit: {error}")
    except BaseException as error:
        err.block(f"dpaudit: {described(error)}. This error was not expected, and there may be no result.")
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
        return _package_command(words[0], words[1:])
    args, unknown = parser.parse_known_args(words)
    if unknown or args.command is None:
        commands.get(args.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    return COMMAND_FUNCTIONS[args.command], args


def _package_command(name: str, words: list[str]) -> tuple[Any, argparse.Namespace]:
    command, parser = command_parser(name)
    if not words and any(isinstance(part, argparse._SubParsersAction) and part.required for part in parser._actions):
        words = ["--help"]
    args = parser.parse_args(words)
    return command.run, args


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
    from dpaudit.cli.commands.diagnose import sensitivity_command

    return sensitivity_command(args, _settings(args), Path.cwd(), out, err)


def _diagnose(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.diagnose import diagnose_command

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
    from dpaudit.cli.commands.init import write_scaffold

    for line in write_scaffold(args.folder):
        out.line(line)
    return ExitCode.OK


def _tradeoff(args: argparse.Namespace, out: Console, err: Console) -> int:
    from dpaudit.cli.commands.tradeoff import tradeoff_command

    return tradeoff_command(args, Path.cwd(), out, err)


COMMAND_FUNCTIONS: dict[str, Any] = {
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
