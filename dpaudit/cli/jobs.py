"""Run the audits of a plan, in this process or in others; an exception of an audit ends that audit alone.

``in_turn`` runs audits in this process, on a cluster if one is named. ``side_by_side`` runs each in a process that can be
ended: with ``-j N`` several at once, with ``--workers N`` one at a time, whose outputs N further processes draw. Then
no mechanism runs in the parent process, so a call that hangs, blocks the interpreter or kills its process ends one
audit only.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, replace
from multiprocessing import util
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from dpaudit._util.messages import described, traceback_text
from dpaudit._util.terminal.console import Console
from dpaudit.claims import Verdict
from dpaudit.cli.collect import BrokenFiles, Collected, collect
from dpaudit.cli.config import Settings
from dpaudit.cli.journal import Journal
from dpaudit.cli.plan import RunPlan
from dpaudit.engine.events import Event, RoundSettled
from dpaudit.engine.progress import Board, relay_to, relayed
from dpaudit.engine.request import result_without_draws
from dpaudit.engine.sampling.executor import CannotBeSent, LostWorker, TaskRunner
from dpaudit.engine.sampling.processes import HeldInterpreter, Workers
from dpaudit.errors import DPAuditError, InvalidArgument
from dpaudit.report.document import AccuracyEntry, AnyEntry, Entry, Failure
from dpaudit.report.source import source_of
from dpaudit.result.model import Result, StoppedBy
from dpaudit.utility.definition import AccuracyAudit
from dpaudit.utility.result import AccuracyResult

KNOCK = 3.0  # seconds to wait for a connection to the scheduler's port
GRACE = 5.0  # seconds that running audits in other processes have after Ctrl-C to end
REACTION = 2.0  # seconds of these after which a process that still runs is sent the interrupt again
OVERDUE_FACTOR = 1.5  # an audit in a process of its own is ended after this multiple of its `seconds`
NO_WORKERS = "The cluster has lost all of its workers: start some and run this audit again."
OVERDUE_GRACE = 10.0  # seconds added to that, for the start of the process and its imports


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one audit: an entry, or the reason why there is none."""

    name: str
    entry: AnyEntry | None = None
    failure: Failure | None = None
    reused: bool = False
    closing: bool = False  # it ended after Ctrl-C, which has been handled


class Interrupts:
    """Inside the block SIGINT raises KeyboardInterrupt, and ``asked`` becomes true.

    A KeyboardInterrupt without a signal was raised by the code under audit, and interrupts nothing else.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None
        self._watches = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        if self._watches:
            self._before = signal.signal(signal.SIGINT, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._watches:
            signal.signal(signal.SIGINT, self._before)

    @property
    def possible(self) -> bool:
        """False if it is certain that no interrupt was sent."""
        return self.asked or not self._watches

    def _stop(self, number: int, frame: Any) -> None:
        # Python drops an exception that is raised inside a callback of its own: then the run stops after the audit.
        self.asked = True
        signal.default_int_handler(number, frame)


def attempt(item: Collected, options: dict[str, Any], root: Path, interrupts: Interrupts) -> Outcome:
    """Run one audit. Anything that it raises, SystemExit included, becomes the reason why it has no result."""
    name = item.audit.name
    try:
        result = item.audit.run(**options)
        if isinstance(result, AccuracyResult):
            return Outcome(name, AccuracyEntry(result=result, expect=_expected(item), path=item.path, line=item.line))
        entry = entry_of(item, result, root)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and interrupts.possible:
            raise
        return Outcome(name, failure=failure_of(item, error))
    if result.stopped_by is StoppedBy.INTERRUPT and not interrupts.possible:
        return Outcome(name, failure=failure_of(item, KeyboardInterrupt("no interrupt was sent to the run")))
    return Outcome(name, entry)


def _interrupted(entry: AnyEntry | None) -> bool:
    """Return True for the result of an audit that was interrupted; a check of accuracy then has none."""
    return isinstance(entry, Entry) and entry.result.stopped_by is StoppedBy.INTERRUPT


def entry_of(item: Collected, result: Result, root: Path) -> Entry:
    """A result with where its audit and its mechanism are written."""
    path, number = source_of(item.audit.mechanism, root)
    return Entry(
        result=result,
        expect=_expected(item),
        path=item.path,
        line=item.line,
        mechanism_path=path,
        mechanism_line=number,
    )


def _expected(item: Collected) -> Verdict | None:
    return item.audit.expect if isinstance(item.audit.expect, Verdict) else None


def failure_of(item: Collected, error: BaseException) -> Failure:
    """Return the failure of an audit that raised."""
    return Failure(name=item.audit.name, reason=_reason(error), path=item.path, line=item.line)


def _reason(error: BaseException) -> str:
    """Return the reason in a line, or with the traceback for an unexpected exception."""
    if isinstance(error, CannotBeSent):
        return f"{error} On the command line, -j N sends no mechanism and --executor dask:ADDRESS sends lambdas too."
    if isinstance(error, DPAuditError):
        return str(error)
    if isinstance(error, BrokenExecutor):
        return f"its process died: {error}."
    return f"{described(error)}\n{traceback_text(error)}"


def in_turn(plan: RunPlan, settings: Settings, interrupts: Interrupts) -> Iterator[Outcome]:
    """Run audits one after the other in this process."""
    with executor_for(settings) as executor:
        lost = False
        for item in plan.todo():
            name, key = item.audit.name, plan.keys[item.audit.name]
            if lost and _without_workers(executor):  # not a minute for each of the others
                yield Outcome(name, failure=failure_of(item, InvalidArgument(NO_WORKERS)))
                continue
            plan.journal.began(key, name)
            options = {**plan.options[name], "executor": executor, **_hooks(plan.journal, key)}
            outcome = attempt(item, options, plan.root, interrupts)
            _remember(plan, outcome)
            yield outcome
            stopped_by = outcome.entry.result.stopped_by if isinstance(outcome.entry, Entry) else None
            if stopped_by is StoppedBy.INTERRUPT:
                raise KeyboardInterrupt
            lost = stopped_by is StoppedBy.LOST_WORKER


def _without_workers(executor: Executor | None) -> bool:
    """Return True if the executor is a cluster that has no workers or does not answer."""
    try:
        return executor is not None and TaskRunner(executor).size == 0
    except LostWorker:
        return True


def _hooks(journal: Journal, key: str) -> dict[str, Any]:
    def write_round(event: Event) -> None:
        if isinstance(event, RoundSettled):
            journal.round(key, event.samples, event.log_wealth)

    return {"on_event": write_round}


def _remember(plan: RunPlan, outcome: Outcome) -> None:
    """Write a result to the journal, unless the audit was interrupted and will be run again."""
    if outcome.entry is not None and not _interrupted(outcome.entry):
        plan.journal.finished(plan.keys[outcome.name], outcome.entry.to_dict())


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
    """Raise OSError if no scheduler listens at the address; Dask itself would retry for half a minute."""
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    if place.scheme in ("tcp", "tls") and place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), timeout=KNOCK).close()


def _in_worker(pipe: Connection | None = None) -> None:
    """Prepare a worker: its output goes to standard error (standard output may carry JSON), its progress to the parent."""
    sys.stdout = sys.stderr
    relay_to(pipe)


@dataclass(frozen=True, slots=True)
class _Job:
    targets: tuple[str, ...]
    root: Path
    here: Path
    name: str
    options: dict[str, Any]
    journal: Path | None
    key: str
    workers: int  # number of processes that draw the outputs; 1: only the process of the job


_pools: dict[int, Workers] = {}  # in the process of a job: the workers of its audits, by their number


def _run_job(job: _Job) -> Outcome:
    """In a worker process: find the audit again by its name, and run it."""
    broken = BrokenFiles(interrupted=lambda: False)  # workers ignore interrupts until an audit runs
    found = {item.audit.name: item for item in collect(job.targets, root=job.root, here=job.here, broken=broken)}
    options = {**job.options, "progress": None if relayed() else False, **_hooks(Journal(job.journal), job.key)}
    if job.workers > 1:
        if job.workers not in _pools:
            _pools[job.workers] = pool = Workers(job.workers, initializer=_in_worker)
            util.Finalize(None, pool.shutdown, exitpriority=10)  # before this process waits for its children
        options["executor"] = _pools[job.workers]
    with Interrupts() as interrupts:  # from here on there is a result to keep
        return attempt(found[job.name], options, job.root, interrupts)


def side_by_side(plan: RunPlan, jobs: int, *, workers: int, err: Console) -> Iterator[Outcome]:
    """Run audits in processes of their own, ``jobs`` at a time, each with ``workers`` worker processes."""
    todo = plan.todo()
    files = plan.targets or tuple(dict.fromkeys(item.path for item in todo))
    here = plan.here if plan.targets else plan.root
    count = max(1, min(jobs, len(todo)))
    with Board() as board, Workers(count, initializer=_in_worker, initargs=(board.pipe,)) as pool:
        futures: dict[Future[Outcome], Collected] = {}
        for item in todo:
            name, key = item.audit.name, plan.keys[item.audit.name]
            plan.journal.began(key, name)
            job = _Job(files, plan.root, here, name, plan.options[name], plan.journal.path, key, workers)
            futures[pool.submit(_run_job, job)] = item
        clock = _Clock(plan, futures, pool)
        try:
            while clock.waiting:
                for future in clock.next_done():
                    board.ended(futures[future].audit.name)
                    with board.aside():
                        yield _settled(plan, futures[future], future, clock)
        except KeyboardInterrupt:
            for future in futures:
                future.cancel()
            # Ctrl-C reached the workers too: they end with what they have, or are ended.
            running = sum(not future.done() for future in futures)
            if running:
                with board.aside():
                    err.line(
                        f"Interrupted; waiting up to {GRACE:.0f} s for {running} audit{'s' * (running > 1)} "
                        "(Ctrl-C again to stop now)."
                    )
            wait(futures, timeout=REACTION)
            pool.interrupt()  # an interrupt from a program, such as the runner of a CI, reaches the parent alone
            wait(futures, timeout=GRACE - REACTION)
            for future in clock.waiting:
                if future.done() and not future.cancelled() and future.exception() is None:
                    yield replace(_settled(plan, futures[future], future, clock), closing=True)
            raise
        finally:
            for future in futures:
                future.cancel()


class _Clock:
    """Wait for jobs, and end the process of one that takes much longer than its ``seconds``."""

    def __init__(self, plan: RunPlan, futures: dict[Future[Outcome], Collected], pool: Workers) -> None:
        self.waiting = set(futures)
        self.overdue: dict[Future[Outcome], float] = {}  # jobs that were ended, and their seconds
        self._pool = pool
        self._start = time.monotonic()
        self._began: dict[Future[Outcome], float] = {}
        self._limits = {}
        for future, item in futures.items():
            seconds = {**item.audit.options, **plan.options[item.audit.name]}.get("seconds")
            if isinstance(seconds, int | float):
                self._limits[future] = OVERDUE_FACTOR * seconds + OVERDUE_GRACE

    def next_done(self) -> set[Future[Outcome]]:
        """Wait for the next jobs that end."""
        done: set[Future[Outcome]] = set()
        while not done:
            done, _ = wait(self.waiting, timeout=0.5 if self._limits else None, return_when=FIRST_COMPLETED)
            self._end_overdue(time.monotonic())
        self.waiting -= done
        return done

    def elapsed(self, future: Future[Outcome]) -> float:
        """Return the seconds since a job was submitted, or since it was first seen running."""
        return time.monotonic() - self._began.get(future, self._start)

    def _end_overdue(self, now: float) -> None:
        for future in self._limits.keys() & self.waiting:
            if future.running() and future not in self.overdue:
                elapsed = now - self._began.setdefault(future, now)
                if elapsed > self._limits[future]:
                    self.overdue[future] = elapsed
                    self._pool.end(future)


def _settled(plan: RunPlan, item: Collected, future: Future[Outcome], clock: _Clock) -> Outcome:
    try:
        outcome = future.result()
    except BaseException as error:  # its process ended, or its exception could not be sent
        overdue = clock.overdue.get(future)
        if overdue is None and not isinstance(error, HeldInterpreter):
            return Outcome(item.audit.name, failure=failure_of(item, error))
        if isinstance(item.audit, AccuracyAudit):
            text = str(error) if overdue is None else f"had not ended after {overdue:.0f} s, so its process was ended"
            return Outcome(item.audit.name, failure=failure_of(item, TimeoutError(text)))
        result = _ended_result(
            item, plan.options[item.audit.name], clock.elapsed(future), None if overdue else str(error)
        )
        return Outcome(item.audit.name, entry_of(item, result, plan.root))
    _remember(plan, outcome)
    return outcome


def _ended_result(item: Collected, options: dict[str, Any], elapsed: float, held: str | None) -> Result:
    """Return the result of an audit whose process was ended: it was overdue, or ``held`` says why. Its samples are unknown."""
    audit = item.audit
    chosen = {**audit.options, **options}
    claim = audit.claim
    if held is None:
        message = (
            f"The audit had not ended {elapsed:.0f} s after it began, with seconds={chosen['seconds']:g}, so its process was "
            "ended, and nothing that it drew is known: a call of the mechanism hangs, or holds the interpreter. Whether it "
            "does may depend on the data: timeout= ends the audit there, timeout_is_output=True makes it an output."
        )
    else:
        message = f"With timeout={chosen['timeout']:g}: {held}. Nothing that the audit drew is known."
    return result_without_draws(
        audit.name,
        claim,
        verdict=Verdict.INCONCLUSIVE,
        options=chosen,
        relation=claim.relation,
        stopped_by=StoppedBy.SECONDS if held is None else StoppedBy.TIMEOUT,
        seconds=elapsed,
        messages=(message,),
    )
