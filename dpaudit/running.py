"""Running collected audits: one after the other or side by side, with one line each and the story of what was found."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dpaudit.claims import ApproxDP, Claim, PureDP, Verdict
from dpaudit.collect import Collected, collect, load_target
from dpaudit.config import Settings
from dpaudit.engine.audit import Audit
from dpaudit.engine.result import Result
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import batched, per_release
from dpaudit.report import write_reports
from dpaudit.report.document import Document, Entry, sorted_entries, write_whole
from dpaudit.report.terminal import Style, line, story, totals
from dpaudit.validation import check_count


def run_command(args: argparse.Namespace, targets: Sequence[str], settings: Settings, root: Path, out: IO[str]) -> int:
    """``dpaudit run``."""
    items = _selected(collect(targets, root=root), args.select)
    if not items:
        raise InvalidArgument(
            f"No audits found in {', '.join(targets)}. An audit file defines dpaudit.Audit objects at its top level; "
            "`dpaudit init` writes a first one."
        )
    console = sys.stderr if args.json else out
    style = Style.for_stream(console)
    jobs = args.jobs or 1
    check_count(jobs=jobs)
    overrides = {**settings.overrides(), "alpha": settings.alpha}
    entries: list[Entry] = []
    complete = True
    try:
        results = (
            _side_by_side(items, targets, root, overrides, jobs) if jobs > 1 else _in_turn(items, overrides, settings)
        )
        for entry in results:
            entries.append(entry)
            print(line(entry, style), file=console, flush=True)
    except KeyboardInterrupt:
        complete = False
        print(f"Interrupted: {len(entries)} of {len(items)} audits are done; their results are kept.", file=sys.stderr)
    document = Document(entries=sorted_entries(entries), complete=complete)
    for entry in document.entries:
        if entry.result.verdict is Verdict.VIOLATION and entry.expect is not Verdict.VIOLATION:
            print(f"\n{story(entry, style)}", file=console)
    print(f"\n{totals(document)}", file=console)
    code = document.exit_code(settings.fail_on)
    code = max(code, _baselines(args, settings, document, console), key=(0, 3, 1, 2).index)
    kinds = {kind: getattr(args, kind) for kind in ("html", "junit", "sarif", "markdown")}
    for path in write_reports(document, kinds):
        print(f"wrote {path}", file=console)
    if args.output is not None:
        write_whole(args.output, document.to_json())
    if args.json:
        out.write(document.to_json())
    return code if complete else 130


def _selected(items: list[Collected], names: Sequence[str] | None) -> list[Collected]:
    return [item for item in items if not names or any(name in item.audit.name for name in names)]


def _in_turn(items: Sequence[Collected], overrides: dict[str, Any], settings: Settings) -> Iterator[Entry]:
    with executor_for(settings) as executor:
        for item in items:
            yield _entry(item, item.audit.run(**overrides, executor=executor))


def _entry(item: Collected, result: Result) -> Entry:
    expect = item.audit.expect if isinstance(item.audit.expect, Verdict) else None
    return Entry(result=result, expect=expect, path=item.path, line=item.line)


@contextlib.contextmanager
def executor_for(settings: Settings) -> Iterator[Executor | None]:
    """The executor that the settings name: a local pool of spawned processes, a Dask cluster, or none."""
    if settings.executor is not None:
        kind, _, address = settings.executor.partition(":")
        if kind != "dask" or not address:
            raise InvalidArgument(f"executor={settings.executor!r} must look like dask:tcp://host:8786.")
        try:
            from distributed import Client
        except ImportError as error:
            raise InvalidArgument(
                f"executor={settings.executor!r} needs Dask: pip install 'dpaudit[dask]' ({error})."
            ) from None
        with Client(address) as client:  # type: ignore[no-untyped-call]  # distributed has no types
            yield client.get_executor()
    elif settings.workers > 1:
        with process_pool(settings.workers) as pool:
            yield pool
    else:
        yield None


def process_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of spawned processes: forked ones would copy random state."""
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


@dataclass(frozen=True, slots=True)
class _Job:
    targets: tuple[str, ...]
    root: Path
    name: str
    overrides: dict[str, Any]


def _run_job(job: _Job) -> Result:
    """In a worker process: find the audit again by its name, and run it."""
    found = {item.audit.name: item.audit for item in collect(job.targets, root=job.root)}
    return found[job.name].run(**job.overrides, progress=False)


def _side_by_side(
    items: Sequence[Collected], targets: Sequence[str], root: Path, overrides: dict[str, Any], jobs: int
) -> Iterator[Entry]:
    with process_pool(min(jobs, len(items))) as pool:
        futures = {
            pool.submit(_run_job, _Job(tuple(targets), root, item.audit.name, overrides)): item for item in items
        }
        try:
            for future in as_completed(futures):
                yield _entry(futures[future], future.result())
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _baselines(args: argparse.Namespace, settings: Settings, document: Document, console: IO[str]) -> int:
    from dpaudit import baseline

    code = 0
    path = args.baseline or (Path(settings.baseline) if settings.baseline else None)
    if path is not None:
        regressions = baseline.regressions(baseline.read(path), document)
        for regression in regressions:
            print(f"REGRESSION  {regression}", file=console)
        code = 1 if regressions else 0
    if args.save_baseline is not None:
        baseline.save(args.save_baseline, document)
        print(f"wrote {args.save_baseline}", file=console)
    return code


def check_command(args: argparse.Namespace, settings: Settings, root: Path, out: IO[str]) -> int:
    """``dpaudit check``."""
    from dpaudit import neighbours
    from dpaudit.rows import parse_rows

    function = load_target(args.target, root)
    wraps: dict[str, Callable[[Any], Any]] = {"data": lambda f: f, "data-rng": per_release, "batched": batched}
    mechanism = function if hasattr(function, "sample") else wraps[args.calls](function)
    claim: Claim = PureDP(args.epsilon) if args.delta == 0.0 else ApproxDP(args.epsilon, args.delta)
    rows = parse_rows(args.rows)
    smallest = args.min_size if args.min_size is not None else (0 if args.relation == "add-remove" else 1)
    make = neighbours.add_remove if args.relation == "add-remove" else neighbours.substitute
    audit = Audit(
        name=args.target,
        mechanism=mechanism,
        claim=claim,
        neighbours=make(rows, min_size=smallest, max_size=args.max_size),
    )
    with executor_for(settings) as executor:
        result = audit.run(**settings.overrides(), alpha=settings.alpha, executor=executor)
    document = Document(entries=(Entry(result=result, path=args.target.rpartition(":")[0]),))
    if args.json:
        out.write(document.to_json())
    else:
        print(story(document.entries[0], Style.for_stream(out)), file=out)
    return document.exit_code(settings.fail_on)
