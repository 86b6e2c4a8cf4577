"""Running collected audits: one after the other or side by side, with one line each and the story of what was found."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import math
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed, wait
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from dpaudit import baseline
from dpaudit._util.files import write_whole
from dpaudit._util.validation import check_count, check_open_unit, did_you_mean
from dpaudit.baseline import Baseline, Leading, Stored
from dpaudit.claims import ApproxDP, Claim, PureDP, Verdict
from dpaudit.cli.accuracy_checks import run_accuracy, tell_accuracy
from dpaudit.cli.collect import Collected, collect, load_target
from dpaudit.cli.config import Settings
from dpaudit.cli.journal import FOLDER, Journal, audit_key, sources_digest
from dpaudit.engine.audit import Audit
from dpaudit.engine.events import Event, RoundSettled
from dpaudit.engine.progress import Board, relay_to, relayed
from dpaudit.engine.sampling.executor import CannotBeSent
from dpaudit.engine.sampling.processes import Workers
from dpaudit.errors import CannotFollow, DPAuditError, InvalidArgument
from dpaudit.mechanism import batched, per_release
from dpaudit.mechanism.programs import program
from dpaudit.report import KINDS, check_reports, github_summary, write_reports
from dpaudit.report.document import FAILED, OK, UNDECIDED, AccuracyEntry, Document, Entry, sorted_entries
from dpaudit.report.source import source_of
from dpaudit.report.terminal import Style, line, story, totals
from dpaudit.result.model import Result, StoppedBy
from dpaudit.utility.definition import AccuracyAudit

INTERRUPTED = 130
FROM_WEAK_TO_STRONG = (0, 3, 1, 2)  # exit codes
MOST_NAMED = 10  # audits in a message
KNOCK = 3.0  # seconds in which whoever listens at a port answers
GRACE = 5.0  # seconds that audits under way in other processes get to end after Ctrl-C
UNTOLD = 2.0  # of these, after which they are taken not to have heard of it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one audit: an entry, or trouble."""

    name: str
    entry: Entry | None = None
    trouble: str = ""
    reused: bool = False
    closing: bool = False  # after Ctrl-C, which has been noticed: there may be more


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Audits to run, each with the options of this run and the key under which the journal keeps it."""

    items: tuple[Collected, ...]
    options: Mapping[str, dict[str, Any]]
    keys: Mapping[str, str]
    targets: tuple[str, ...]  # as given on the command line
    here: Path
    root: Path
    journal: Journal
    earlier: Mapping[str, Entry]  # what the journal of an interrupted run holds, by key
    accuracy: tuple[Collected, ...] = ()  # checks of accuracy, which are run one after the other

    def todo(self) -> list[Collected]:
        """Audits whose results the journal does not have."""
        return [item for item in self.items if self.keys[item.audit.name] not in self.earlier]


def run_command(args: argparse.Namespace, settings: Settings, here: Path, out: IO[str]) -> int:
    """``dpaudit run``."""
    console = sys.stderr if args.json else out
    say = partial(print, file=console, flush=True)
    jobs = 1 if args.jobs is None else args.jobs
    check_count(jobs=jobs)
    if jobs > 1 and (settings.workers > 1 or settings.executor):
        raise InvalidArgument("--jobs runs audits side by side, --workers and --executor spread out each: choose one.")
    stored_at = args.baseline or (settings.root / settings.baseline if settings.baseline else None)
    stored = None if stored_at is None else baseline.read(stored_at)
    check_reports({name: getattr(args, name) for name in ("output", "save_baseline", *KINDS)})
    with contextlib.redirect_stdout(console):  # what audit files and mechanisms print
        plan = _plan(args, settings, here, say)
        style = Style.for_stream(console)
        accuracy, failed = run_accuracy(plan.accuracy, plan.options, say, style)
        results = _side_by_side(plan, jobs) if jobs > 1 else _in_turn(plan, settings)
        document, troubles, interrupted = _run_all(plan, results, say, style, accuracy)
        troubles += failed
        codes = [document.exit_code(settings.fail_on), 2 if troubles else 0]
        if stored is not None and not interrupted:
            worse = _regressions(stored, plan, document, bool(args.select), say)
            codes.append(1 if worse and settings.fail_on != "never" else 0)
        if args.save_baseline is not None:
            _save_baseline(args.save_baseline, plan, document, say)
        _deliver(args, document, say)
        if args.html is None and any(entry.result.witness and not entry.met for entry in document.entries):
            say("With --html FILE there is a report that holds a program to repeat each measurement.")
    if not interrupted:
        plan.journal.end()
    if args.json:
        out.write(document.to_json())
    return INTERRUPTED if interrupted else max(codes, key=FROM_WEAK_TO_STRONG.index)


def collected(targets: Sequence[str], settings: Settings, here: Path) -> list[Collected]:
    """The audits that the targets name; without targets those of the configuration, or of the folder ``audits``."""
    wanted = list(targets) or list(settings.audits) or ["audits"]
    nowhere = not targets and not settings.audits and not (settings.root / "audits").is_dir()
    items = [] if nowhere else collect(wanted, root=settings.root, here=here if targets else settings.root)
    if not items:
        missing = "There is no folder audits/ here" if nowhere else f"No audits found in {', '.join(wanted)}"
        raise InvalidArgument(
            f"{missing}. An audit file defines dpaudit.Audit objects at its top level; `dpaudit init` writes a first one."
        )
    return items


def _plan(args: argparse.Namespace, settings: Settings, here: Path, say: Callable[[str], None]) -> RunPlan:
    """Give every audit its options, and its part of the run's alpha."""
    items = _selected(collected(args.targets, settings, here), args.select)
    options: dict[str, dict[str, Any]] = {}
    for item in items:
        alpha = item.audit.options.get("alpha", settings.alpha_each)
        check_open_unit(hint=f"It is an option of the audit {item.audit.name!r}.", alpha=alpha)
        options[item.audit.name] = {**settings.overrides(), "alpha": alpha}
    asked = math.fsum(chosen["alpha"] for chosen in options.values())
    if asked > settings.alpha * (1.0 + 1e-9):
        raise InvalidArgument(
            f"{len(items)} audits ask for a false-alarm probability of {asked:.3g}, but the run has alpha={settings.alpha:g}. "
            f"Leave alpha out of their options (each then gets alpha / max_audits = {settings.alpha_each:.3g}), or raise "
            "alpha or max_audits."
        )
    accuracy = tuple(item for item in items if isinstance(item.audit, AccuracyAudit))
    items = [item for item in items if not isinstance(item.audit, AccuracyAudit)]
    sources = sources_digest(settings.root)
    keys = {item.audit.name: audit_key(item.audit, options[item.audit.name], sources) for item in items}
    journal = Journal.start(settings.root / FOLDER, resume=args.resume, say=say)
    earlier = {key: entry for key in keys.values() if (entry := _earlier(journal, key, say)) is not None}
    return RunPlan(tuple(items), options, keys, tuple(args.targets), here, settings.root, journal, earlier, accuracy)


def _earlier(journal: Journal, key: str, say: Callable[[str], None]) -> Entry | None:
    plain = journal.earlier.get(key)
    try:
        return None if plain is None else Entry.from_dict(plain)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        say(f"A result in the journal is damaged and ignored ({type(error).__name__}: {error}).")
        return None


def _selected(items: list[Collected], names: Sequence[str] | None) -> list[Collected]:
    if not names:
        return items
    chosen = [item for item in items if any(name in item.audit.name for name in names)]
    if not chosen:
        known = [item.audit.name for item in items]
        hint = (
            did_you_mean(names[0], known)
            or f" There are: {', '.join(map(repr, known[:MOST_NAMED]))}{', ...' * (len(known) > MOST_NAMED)}."
        )
        raise InvalidArgument(f"No audit is called {' or '.join(map(repr, names))}.{hint}")
    return chosen


def _run_all(
    plan: RunPlan,
    results: Iterator[Outcome],
    say: Callable[[str], None],
    style: Style,
    accuracy: tuple[AccuracyEntry, ...] = (),
) -> tuple[Document, int, bool]:
    """Run everything and tell it: the document, how many audits could not be run, and whether it was interrupted."""
    entries: list[Entry] = []
    troubles = 0
    interrupted = False
    asked: list[int] = []

    def stop(number: int, frame: Any) -> None:
        # Python drops an exception that is raised inside a callback of its own: then we stop after the audit.
        asked.append(number)
        signal.default_int_handler(number, frame)

    try:
        with _interrupts(stop):
            for outcome in _with_earlier(plan, results):
                if outcome.entry is None:
                    troubles += 1
                    say(f"ERROR  {outcome.name}: {outcome.trouble}")
                else:
                    entries.append(outcome.entry)
                    say(line(outcome.entry, style) + (" [from the journal]" if outcome.reused else ""))
                if asked and not outcome.closing:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
        print(_after_interrupt(len(entries), len(plan.items)), file=sys.stderr)
    document = Document(entries=sorted_entries(entries), complete=not (interrupted or troubles), accuracy=accuracy)
    tell_accuracy(document, say, style)
    for entry in document.entries:
        if not entry.met or (entry.expect is None and entry.result.verdict is Verdict.INCONCLUSIVE):
            say(f"\n{story(entry, style)}")
    say(f"\n{totals(document)}")
    if troubles:
        say(f"{troubles} of {len(plan.items)} audits could not be run.")
    return document, troubles, interrupted


def _after_interrupt(results: int, audits: int) -> str:
    if not results:
        return f"Interrupted before any of {audits} audits had a result." if audits > 1 else "Interrupted: no result."
    kept = f"Interrupted: {results} of {audits} audits have results, which are kept"
    return f"{kept}." if results == audits else f"{kept}; `dpaudit run --resume` runs those that were not finished."


def _with_earlier(plan: RunPlan, results: Iterator[Outcome]) -> Iterator[Outcome]:
    for item in plan.items:
        key = plan.keys[item.audit.name]
        entry = plan.earlier.get(key)
        if entry is not None:
            plan.journal.finished(key, entry.to_dict())  # so that this run can be resumed too
            yield Outcome(item.audit.name, entry, reused=True)
    yield from results


def _in_turn(plan: RunPlan, settings: Settings) -> Iterator[Outcome]:
    with executor_for(settings) as executor:
        for item in plan.todo():
            name, key = item.audit.name, plan.keys[item.audit.name]
            plan.journal.began(key, name)
            try:
                result = item.audit.run(**plan.options[name], executor=executor, **_hooks(plan.journal, key))
            except (Exception, SystemExit) as error:  # a factory may leave as well
                yield Outcome(name, trouble=_trouble(error))
            else:
                yield _finished(plan, item, result)
                if result.stopped_by is StoppedBy.INTERRUPT:
                    raise KeyboardInterrupt


def _hooks(journal: Journal, key: str) -> dict[str, Any]:
    def write_round(event: Event) -> None:
        if isinstance(event, RoundSettled):
            journal.round(key, event.samples, event.log_wealth)

    return {"on_event": write_round}


def _finished(plan: RunPlan, item: Collected, result: Result) -> Outcome:
    entry = entry_of(item, result, plan.root)
    if result.stopped_by is not StoppedBy.INTERRUPT:
        plan.journal.finished(plan.keys[item.audit.name], entry.to_dict())
    return Outcome(item.audit.name, entry)


def entry_of(item: Collected, result: Result, root: Path) -> Entry:
    """A result with where its audit and its mechanism are written."""
    expect = item.audit.expect if isinstance(item.audit.expect, Verdict) else None
    path, number = source_of(item.audit.mechanism, root)
    return Entry(
        result=result, expect=expect, path=item.path, line=item.line, mechanism_path=path, mechanism_line=number
    )


def _trouble(error: BaseException) -> str:
    """What went wrong, in a line; what nobody foresaw also with its traceback, on stderr."""
    if isinstance(error, CannotBeSent):
        return f"{error} On the command line, -j N sends no mechanism and --executor dask:ADDRESS sends lambdas too."
    if isinstance(error, DPAuditError):
        return str(error)
    if isinstance(error, BrokenExecutor):
        return f"its process died: {error}."
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def executor_for(settings: Settings) -> Iterator[Executor | None]:
    """The executor that the settings name: a local pool of spawned processes, a Dask cluster, or none."""
    if settings.executor is not None:
        kind, _, address = settings.executor.partition(":")
        if kind != "dask" or not address:
            raise InvalidArgument(f"executor={settings.executor!r} must look like dask:tcp://host:8786.")
        try:
            distributed = importlib.import_module("distributed")
        except ImportError as error:
            raise InvalidArgument(
                f"executor={settings.executor!r} needs Dask: pip install 'dpaudit[dask]' ({error})."
            ) from None
        try:
            _knock(address)
            client = distributed.Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                f"executor={settings.executor!r} cannot be reached ({error}): is a scheduler running there?"
            ) from None
        with client:
            yield client.get_executor(pure=False)
    elif settings.workers > 1:
        with Workers(settings.workers, initializer=_in_worker) as workers:
            yield workers
    else:
        yield None


def _knock(address: str) -> None:
    """Raise OSError where nobody listens: Dask tries again for half a minute before it says so."""
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    if place.scheme in ("tcp", "tls") and place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), timeout=KNOCK).close()


def _in_worker(pipe: Connection | None = None) -> None:
    """In a worker: stdout may be where JSON goes, and progress is shown by the parent."""
    sys.stdout = sys.stderr
    relay_to(pipe)


@contextlib.contextmanager
def _interrupts(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True)
class _Job:
    targets: tuple[str, ...]
    root: Path
    here: Path
    name: str
    options: dict[str, Any]
    journal: Path | None
    key: str


def _run_job(job: _Job) -> Result:
    """In a worker process: find the audit again by its name, and run it."""
    found = {item.audit.name: item.audit for item in collect(job.targets, root=job.root, here=job.here)}
    with _interrupts(signal.default_int_handler):  # now there is something to keep
        result: Result = found[job.name].run(
            **job.options, progress=None if relayed() else False, **_hooks(Journal(job.journal), job.key)
        )
        return result


def _side_by_side(plan: RunPlan, jobs: int) -> Iterator[Outcome]:
    todo = plan.todo()
    files = plan.targets or tuple(dict.fromkeys(item.path for item in todo))
    here = plan.here if plan.targets else plan.root
    count = max(1, min(jobs, len(todo)))
    with Board() as board, Workers(count, initializer=_in_worker, initargs=(board.pipe,)) as workers:
        futures: dict[Future[Result], Collected] = {}
        for item in todo:
            name, key = item.audit.name, plan.keys[item.audit.name]
            plan.journal.began(key, name)
            job = _Job(files, plan.root, here, name, plan.options[name], plan.journal.path, key)
            futures[workers.submit(_run_job, job)] = item
        told: set[Future[Result]] = set()
        try:
            for future in as_completed(futures):
                told.add(future)
                board.ended(futures[future].audit.name)
                with board.aside():
                    yield _settled(plan, futures[future], future)
        except KeyboardInterrupt:
            for future in futures:
                future.cancel()
            # Ctrl-C reached the workers too: they end with what they have, or are ended.
            running = sum(not future.done() for future in futures)
            if running:
                with board.aside():
                    print(
                        f"Interrupted; waiting up to {GRACE:.0f} s for {running} audit{'s' * (running > 1)} "
                        "(Ctrl-C again to stop now).",
                        file=sys.stderr,
                        flush=True,
                    )
            wait(futures, timeout=UNTOLD)
            workers.interrupt()  # an interrupt from a program, such as the runner of a CI, reaches the parent alone
            wait(futures, timeout=GRACE - UNTOLD)
            for future in futures.keys() - told:
                if future.done() and not future.cancelled() and future.exception() is None:
                    yield replace(_settled(plan, futures[future], future), closing=True)
            raise
        finally:
            for future in futures:
                future.cancel()


def _settled(plan: RunPlan, item: Collected, future: Future[Result]) -> Outcome:
    try:
        return _finished(plan, item, future.result())
    except (Exception, SystemExit) as error:
        return Outcome(item.audit.name, trouble=_trouble(error))


def _regressions(
    stored: Baseline, plan: RunPlan, document: Document, selected: bool, say: Callable[[str], None]
) -> list[baseline.Regression]:
    leadings = {name: audit.leading for name, audit in stored.audits.items() if audit.leading is not None}
    comparable = {name: leading for name, leading in leadings.items() if leading.on_data is not None}
    ran = Baseline.of(document)
    known = {item.audit.name for item in plan.items}

    def expected(audit: Stored) -> bool:
        """Whether this run should have had the audit: it was not left out by hand, and did not fail to run."""
        if selected or audit.name in known:
            return False
        paths = [_relative(plan.here / target, plan.root) for target in plan.targets]
        return not paths or any(audit.path == path or audit.path.startswith(f"{path}/") for path in paths)

    found = baseline.regressions(
        stored, ran, measured=_measured(plan, comparable, document, say, again=True), expected=expected
    )
    for regression in found:
        say(f"REGRESSION  {regression}")
    if not found:
        say("No regression against the baseline.")
    return found


def _relative(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _measured(
    plan: RunPlan, leadings: Mapping[str, Leading], document: Document, say: Callable[[str], None], *, again: bool
) -> dict[str, Leading]:
    """The leading events that can be counted on fresh outputs of today's mechanisms; ``again``, as often as before."""
    samples = {entry.result.name: entry.result.samples for entry in document.entries}
    seeds = {entry.result.name: entry.result.seed for entry in document.entries}
    found: dict[str, Leading] = {}
    for item in plan.items:
        name = item.audit.name
        leading = leadings.get(name)
        if leading is None or name not in samples:
            continue
        trials = leading.on_data[1] if again and leading.on_data else baseline.trials_for(samples[name])
        try:
            found[name] = baseline.measure(mechanism_of(item.audit), leading, seed=seeds[name], trials=trials)
        except DPAuditError as error:
            say(f"Note: the leading event of {name!r} was not counted again: {error}")
    return found


def mechanism_of(audit: Audit) -> Any:
    """What an audit is about, made if it is to be made."""
    return audit.mechanism() if audit.mechanism_is_factory else audit.mechanism


def _save_baseline(path: Path, plan: RunPlan, document: Document, say: Callable[[str], None]) -> None:
    if not document.complete:
        say(f"{path} was not written, because the run is not complete.")
        return
    found = {entry.result.name: baseline.leading_of(entry.result) for entry in document.entries}
    leadings = {name: leading for name, leading in found.items() if leading is not None}
    baseline.save(path, Baseline.of(document, _measured(plan, leadings, document, say, again=False)))
    say(f"wrote {path}")


def _deliver(args: argparse.Namespace, document: Document, say: Callable[[str], None]) -> None:
    """Write what was asked for, the plain results first: a report that fails must not lose them."""
    if args.output is not None:
        write_whole(args.output, document.to_json())
        say(f"wrote {args.output}")
    for path in write_reports(document, {kind: getattr(args, kind) for kind in KINDS}):
        say(f"wrote {path}")
    try:
        github_summary(document)
    except DPAuditError as error:  # nobody asked for it, so it does not change the exit code
        say(f"Note: {error}")


def calls_of(function: Any) -> str:
    """How a function is called, by the names of its parameters: ``(data, rng)``, ``(data, size, rng)`` or the data alone.

    >>> calls_of(lambda rows, size, rng: None), calls_of(lambda rows, rng: None), calls_of(lambda rows, scale=1.0: None)
    ('batched', 'data-rng', 'data')
    """
    try:
        _, *names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return "data"
    if names[:2] == ["size", "rng"]:
        return "batched"
    return "data-rng" if names[:1] == ["rng"] else "data"


def _checked_mechanism(args: argparse.Namespace, settings: Settings, here: Path) -> Any:
    """Return the function that ``dpaudit check`` or ``verify`` is about, or the program."""
    of_program = {name: getattr(args, name, None) for name in ("mode", "data_as", "output_as")}
    given = {name: value for name, value in of_program.items() if value is not None}
    if getattr(args, "program", None) is not None:
        if args.target is not None or args.calls is not None:
            raise InvalidArgument(
                f"--command={args.program!r} is the program that is audited: leave out TARGET and --calls."
            )
        return program(args.program, folder=here, **given)
    if given:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InvalidArgument(f"{named} is for programs: name one with --command.")
    if args.target is None:
        raise InvalidArgument("Name a function (file.py:name or pkg.mod:name), or a program with --command.")
    function = load_target(args.target, root=settings.root, here=here)
    if isinstance(function, Audit):
        raise InvalidArgument(f"{args.target} is an Audit, with a claim and neighbours: `dpaudit run {args.target}`.")
    wraps: dict[str, Callable[[Any], Any]] = {"data": lambda f: f, "data-rng": per_release, "batched": batched}
    return function if hasattr(function, "sample") else wraps[args.calls or calls_of(function)](function)


def check_command(args: argparse.Namespace, settings: Settings, here: Path, out: IO[str]) -> int:
    """``dpaudit check``: the one audit has the alpha of the whole run."""
    console = sys.stderr if args.json else out
    say = partial(print, file=console, flush=True)
    check_reports({name: getattr(args, name) for name in ("output", *KINDS)})
    with contextlib.redirect_stdout(console):
        audit = _audit_of_function(args, settings, here)
        with executor_for(settings) as executor:
            result = audit.run(**settings.overrides(), alpha=settings.alpha, executor=executor)
        interrupted = result.stopped_by is StoppedBy.INTERRUPT
        document = Document(entries=(entry_of(Collected(audit, ""), result, settings.root),), complete=not interrupted)
        say(story(document.entries[0], Style.for_stream(console)))
        _deliver(args, document, say)
    if args.json:
        out.write(document.to_json())
    return INTERRUPTED if interrupted else document.exit_code(settings.fail_on)


def _audit_of_function(args: argparse.Namespace, settings: Settings, here: Path) -> Audit:
    """Make the audit that the options of ``check`` and ``verify`` describe."""
    from dpaudit import neighbours
    from dpaudit.cli.rows import parse_rows

    claim: Claim = PureDP(args.epsilon) if args.delta == 0.0 else ApproxDP(args.epsilon, args.delta)
    rows = parse_rows(args.rows)
    smallest = args.min_size if args.min_size is not None else (0 if args.relation == "add-remove" else 1)
    make = neighbours.add_remove if args.relation == "add-remove" else neighbours.substitute
    return Audit(
        name=getattr(args, "program", None) or args.target or "",
        mechanism=_checked_mechanism(args, settings, here),
        claim=claim,
        neighbours=make(rows, min_size=smallest, max_size=args.max_size),
    )


def verify_command(args: argparse.Namespace, settings: Settings, here: Path, out: IO[str]) -> int:
    """``dpaudit verify``: the exact law of the code; inconclusive if it cannot be followed."""
    from dpaudit.symbolic.verification import verify_code

    with contextlib.redirect_stdout(sys.stderr):
        audit = _audit_of_function(args, settings, here)
        try:
            found = verify_code(
                audit.mechanism,
                audit.claim,
                audit.neighbours,
                examples=args.examples,
                seed=args.seed,
                seconds=args.seconds,
            )
        except CannotFollow as error:
            print(f"INCONCLUSIVE: the code cannot be followed. {error}", file=out)
            print(f"Audit it by samples: dpaudit check {args.target} ...", file=out)
            return UNDECIDED
    print(found, file=out)
    if args.law:
        print(f"law on the data:\n{found.law}\nlaw on the neighbour:\n{found.neighbour_law}", file=out)
    return {Verdict.VIOLATION: FAILED, Verdict.INCONCLUSIVE: UNDECIDED}.get(found.verdict, OK)
