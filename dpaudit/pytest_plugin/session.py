"""One pytest run: its settings, the collected audits, their results, and the alpha that they spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit import baseline
from dpaudit._util.files import write_whole
from dpaudit._util.messages import described
from dpaudit._util.validation import check_choice, check_open_unit
from dpaudit.claims import Verdict
from dpaudit.cli.baselines import mechanism_of
from dpaudit.cli.collect import Collected, collect, hidden
from dpaudit.cli.config import Settings, load
from dpaudit.cli.jobs import entry_of
from dpaudit.engine.audit import audit
from dpaudit.engine.options import Options
from dpaudit.errors import AccuracyViolation, DPAuditError, Inconclusive, InvalidArgument, PrivacyViolation
from dpaudit.pytest_plugin import REPORTS, Unmet
from dpaudit.pytest_plugin.surrounding import Node
from dpaudit.report import check_reports, github_summary, write_reports
from dpaudit.report.document import Document, Entry, Failure, sorted_entries
from dpaudit.report.origin import origin_of
from dpaudit.report.terminal import green_notes, line, totals
from dpaudit.result.model import Result, StoppedBy
from dpaudit.utility.definition import judge as judge_accuracy
from dpaudit.utility.result import AccuracyResult

ENTRIES = pytest.StashKey[list[Entry]]()
COUNT = pytest.StashKey[int]()  # audits of the test so far
ACCEPTED = pytest.StashKey[list[Result]]()  # violations that pytest.raises expected
TEST_ENDED = pytest.StashKey[bool]()  # the test has ended
REGRESSIONS = pytest.StashKey[list[str]]()
SWALLOWED = (
    "A violation was found, but its exception did not reach pytest: it was raised in a thread, or caught, or the test skipped "
    "itself. If it is expected, say so with pytest.raises(dpaudit.PrivacyViolation), or with expect= of the fixture "
    "dpaudit_audit."
)
EXACT = 1.0 + 1e-9  # shares of alpha add up to alpha, but for rounding
WHOLE_SESSION = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)  # every test that was collected has run
URGENCY = {Verdict.VIOLATION: 0, Verdict.INCONCLUSIVE: 1, Verdict.NO_VIOLATION_FOUND: 2}


class Session:
    """State of the run, in the process that runs tests and, with pytest-xdist, in the controller too."""

    def __init__(self, config: pytest.Config, flags: Mapping[str, Any], reports: Sequence[Path]) -> None:
        self.config = config
        self.reports = reports
        for path in reports:
            check_reports({REPORTS[path.suffix]: config.invocation_params.dir / path})
        self.flags = {name: flags[name] for name in ("samples", "seed") if flags[name] is not None}
        self.settings: Settings = load(config.rootpath, overrides={**flags, "baseline": None})
        self.targets = [_resolved(target, self.settings.root) for target in self.settings.audits]
        self.violations: dict[str, str] = {}
        self.charged = 0.0
        self.entries: list[Entry] = []
        self.failures: list[Failure] = []  # audits that could not be run
        self.late: list[Entry] = []  # found outside of tests: by threads that outlived theirs, or during an import
        self.spent = 0.0
        self.notes: list[str] = []
        self.stored: baseline.Baseline | None = None
        if flags["baseline"] is not None:
            self.stored = baseline.read(config.invocation_params.dir / flags["baseline"])
        elif self.settings.baseline is not None:
            self.stored = baseline.read(self.settings.root / self.settings.baseline)

    @property
    def alpha_each(self) -> float:
        """The alpha of an audit; a comparison with a baseline has a share of it."""
        return self.settings.alpha_each * (1.0 if self.stored is None else baseline.VERDICT_SHARE)

    def headline(self) -> str:
        """The line of pytest's header."""
        settings = self.settings
        parts = [f"alpha {settings.alpha:g} for the run, {self.alpha_each:.3g} an audit"]
        if settings.profile:
            parts.append(f"profile {settings.profile}")
        if self.stored is not None:
            parts.append(f"baseline of {len(self.stored.audits)} audits")
        return ", ".join(parts)

    # Collection

    def widen_collection(self) -> None:
        """Collect the audit files too if pytest was given no path."""
        if self.config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        here = self.config.invocation_params.dir
        known = [(here / argument).resolve() for argument in self.config.args]
        for path, _ in self.targets:
            if not any(path.is_relative_to(folder) for folder in known):
                self.config.args.append(str(path))

    def collector(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """The audits of a file, if the configuration names it."""
        attributes: list[str] = []
        for target, attribute in self.targets:
            if path == target or (target in path.parents and not hidden(path, target)):
                attributes.append(attribute)
        if not attributes:
            return None
        file: AuditFile = AuditFile.from_parent(parent, path=path)
        file.attributes = tuple(attributes) if all(attributes) else ()
        file.root = self.settings.root
        return file

    def check_names(self, items: Iterable[pytest.Item]) -> None:
        """Baselines and reports go by the names of audits."""
        seen: dict[str, AuditItem] = {}
        for item in items:
            if isinstance(item, AuditItem):
                other = seen.setdefault(item.name, item)
                if other is not item and other.path != item.path:
                    raise pytest.UsageError(
                        f"Two audits are called {item.name!r}: in {other.path} and in {item.path}. Names must differ."
                    )

    # Running

    def prepare(self, item: Node, name: str | None, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The name and the options of an audit in a test, after its alpha was charged to the run.

        Flags win over the marker, the marker over the settings, and the settings over the test or audit file.
        """
        options = {**given, **self.settings.overrides(), **self.marked(item), **self.flags}
        options.setdefault("alpha", self.alpha_each)
        options.setdefault("progress", False)
        check_open_unit(alpha=options["alpha"])
        if self.charged + options["alpha"] > self.settings.alpha * EXACT:
            raise InvalidArgument(
                f"The false-alarm probability of the run is spent: alpha={self.settings.alpha:g}, of which "
                f"{self.charged:.3g} went to earlier audits, and this one asks for {options['alpha']:.3g}. "
                "Raise alpha or max_audits in [tool.dpaudit], or give audits no alpha of their own."
            )
        self.charged += options["alpha"]
        return self._name(item, name), options

    def _name(self, item: Node, name: str | None) -> str:
        if isinstance(item, AuditItem):
            return item.name
        if name is not None:
            return f"{item.nodeid}::{name}"
        number = item.stash[COUNT] = item.stash.get(COUNT, 0) + 1
        return item.nodeid if number == 1 else f"{item.nodeid} #{number}"

    def marked(self, item: Node) -> dict[str, Any]:
        """Options of the markers, the closest last."""
        found: dict[str, Any] = {}
        for marker in reversed(list(item.iter_markers("dpaudit"))):
            if marker.args:
                raise InvalidArgument("The marker dpaudit takes options by name, such as dpaudit(samples=20_000).")
            found.update(marker.kwargs)
        for option in found:
            check_choice([*Options.__dataclass_fields__, "allow_inconclusive"], option=option)
        found.pop("allow_inconclusive", None)
        return found

    def allows_inconclusive(self, item: Node) -> bool:
        """Return True if an undecided audit is no failure here."""
        marker = item.get_closest_marker("dpaudit")
        if marker is not None and "allow_inconclusive" in marker.kwargs:
            return bool(marker.kwargs["allow_inconclusive"])
        return self.settings.fail_on != "inconclusive"

    def record(
        self,
        item: Node,
        result: Result,
        collected: Collected | None = None,
        expect: Verdict | None = None,
    ) -> None:
        """Keep a result for the report of its test, with what is worse than in the baseline."""
        if collected is None:
            path = _relative(item.path, self.settings.root)
            entry = Entry(result=result, expect=expect, path=path, line=_line(item))
        else:
            entry = entry_of(collected, result, self.settings.root)
        if item.stash.get(TEST_ENDED, False):
            self.late.append(entry)
            return
        item.stash.setdefault(ENTRIES, []).append(entry)
        if isinstance(item, pytest.Item):
            item.user_properties.append(
                (f"dpaudit {result.name}", f"{result.verdict}, epsilon >= {result.epsilon_lower:.4g}")
            )
        item.stash.setdefault(REGRESSIONS, []).extend(self._regressions(entry, collected))
        if result.stopped_by is StoppedBy.INTERRUPT:
            raise KeyboardInterrupt  # the engine returned the results so far; the run ends nevertheless

    def _regressions(self, entry: Entry, collected: Collected | None) -> list[str]:
        name = entry.result.name
        before = None if self.stored is None else self.stored.audits.get(name)
        if before is None:
            return []
        measured: dict[str, baseline.Leading] = {}
        leading = before.leading
        if collected is not None and leading is not None and leading.on_data is not None:
            try:
                measured[name] = baseline.measure(
                    mechanism_of(collected.audit), leading, seed=entry.result.seed, trials=leading.on_data[1]
                )
            except DPAuditError as error:
                self.notes.append(f"The leading event of {name!r} was not counted again: {error}")
        found = baseline.regressions(
            baseline.Baseline(audits={name: before}),
            baseline.Baseline.of(Document(entries=(entry,))),
            measured=measured,
        )
        return [str(regression) for regression in found]

    def auditor(self, item: pytest.Item) -> Callable[..., Result]:
        """The value of the fixture ``dpaudit_audit``."""

        def run(
            mechanism: Any,
            claim: Any,
            neighbours: Any,
            *,
            expect: Verdict | str | None = None,
            allow_inconclusive: bool | None = None,
            name: str | None = None,
            **options: Any,
        ) -> Result:
            chosen, prepared = self.prepare(item, name, options)
            if expect is not None:
                check_choice([verdict.value for verdict in Verdict], expect=str(expect))
            result = audit(mechanism, claim, neighbours, name=chosen, **prepared)
            self.record(item, result, expect=None if expect is None else Verdict(str(expect)))
            allowed = self.allows_inconclusive(item) if allow_inconclusive is None else allow_inconclusive
            self.judge(result, expect, allow_inconclusive=allowed)
            return result

        return run

    def judge(self, result: Result, expect: Verdict | str | None, *, allow_inconclusive: bool) -> None:
        """Raise where the verdict is not the one that was expected."""
        if self.settings.fail_on == "never":
            return
        if expect is not None:
            if result.verdict is not Verdict(str(expect)):
                raise Unmet(f"Expected {expect}, but:\n\n{result}")
        elif result.verdict is Verdict.VIOLATION:
            raise PrivacyViolation(str(result), result)
        elif result.verdict is Verdict.INCONCLUSIVE and not allow_inconclusive:
            raise Inconclusive(str(result), result)

    def accept(self, item: Node, error: BaseException | None) -> None:
        """Record a violation that ``pytest.raises`` expected."""
        if isinstance(error, PrivacyViolation):
            item.stash.setdefault(ACCEPTED, []).append(error.result)

    def fail_on_swallowed(self, item: pytest.Item) -> None:
        """Fail a test that found a violation and went on: in a thread, or where its exception was caught."""
        unmet = [entry for entry in item.stash.get(ENTRIES, []) if self._swallowed(item, entry)]
        if unmet:
            self.violations[item.nodeid] = str(unmet[0].result)
            pytest.fail(_swallowed_text(unmet), pytrace=False)

    def _swallowed(self, item: Node, entry: Entry) -> bool:
        if self.settings.fail_on == "never" or entry.met or entry.result.verdict is not Verdict.VIOLATION:
            return False
        return not any(entry.result is result for result in item.stash.get(ACCEPTED, []))

    def leave(self, item: Node) -> None:
        """Record that a test has ended; its threads may still run."""
        item.stash[TEST_ENDED] = True

    def imported(self, collector: pytest.Collector, report: pytest.CollectReport) -> None:
        """Keep the results of audits at the top level of a test file. A violation that did not end the import fails the run."""
        self.leave(collector)
        entries = collector.stash.get(ENTRIES, [])
        if report.failed:
            self.entries += entries
            self.spent += sum(entry.result.alpha for entry in entries)
            return
        for entry in entries:
            expected = not entry.met and not self._swallowed(collector, entry)
            self.late.append(replace(entry, expect=entry.result.verdict) if expected else entry)

    def gather_late(self, plain: Iterable[Mapping[str, Any]]) -> None:
        """Add the results that threads of another process found."""
        self.late += [Entry.from_dict(entry) for entry in plain]

    def fail_on_regressions(self, item: pytest.Item) -> None:
        """A test that found nothing still fails if it is worse than the baseline."""
        worse = item.stash.get(REGRESSIONS, [])
        item.stash[REGRESSIONS] = []
        if worse and self.settings.fail_on != "never":
            pytest.fail("Worse than the baseline:\n\n" + "\n".join(worse), pytrace=False)

    # Reporting

    def attach(self, item: pytest.Item, report: pytest.TestReport, error: BaseException | None) -> None:
        """Put the results of a test on its report, as plain data that crosses processes.

        A violation in a test that did not fail was expected, by ``pytest.raises`` or as an expected failure. A test that skips
        itself after a violation fails.
        """
        entries = item.stash.get(ENTRIES, [])
        item.stash[ENTRIES] = []
        unmet = [entry for entry in entries if self._swallowed(item, entry)]
        if unmet and report.skipped and not hasattr(report, "wasxfail"):
            report.outcome, report.longrepr = "failed", _swallowed_text(unmet)
        if not report.failed and self.settings.fail_on != "never":
            entries = [entry if entry.met else replace(entry, expect=entry.result.verdict) for entry in entries]
        if entries:
            report.dpaudit = [entry.to_dict() for entry in entries]  # type: ignore[attr-defined]
        # An audit that could not be run. Other errors of ordinary tests do not concern an audit.
        verdict = isinstance(error, PrivacyViolation | Inconclusive | Unmet | pytest.fail.Exception)
        expected = Exception if isinstance(item, AuditItem) else DPAuditError
        if report.failed and not verdict and isinstance(error, expected):
            name = item.name if isinstance(item, AuditItem) else item.nodeid
            path = _relative(item.path, self.settings.root)
            failure = Failure(name=name, reason=described(error), path=path, line=_line(item))
            report.dpaudit_failure = failure.to_dict()  # type: ignore[attr-defined]

    def gather(self, report: pytest.TestReport) -> None:
        """Take the results off a report."""
        if (failure := getattr(report, "dpaudit_failure", None)) is not None:
            self.failures.append(Failure.from_dict(failure))
        for plain in getattr(report, "dpaudit", []):
            entry = Entry.from_dict(plain)
            self.spent += entry.result.alpha
            self.entries.append(entry)

    def finish(self, session: pytest.Session) -> None:
        """Add up, look for audits that vanished, write the reports."""
        whole = session.exitstatus in WHOLE_SESSION
        failures = [f"{SWALLOWED} {line(entry)}" for entry in self.late if not entry.met]
        self.entries += self.late
        self.spent += sum(entry.result.alpha for entry in self.late)
        if session.exitstatus not in (*WHOLE_SESSION, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.NO_TESTS_COLLECTED):
            self.failures.append(Failure(name="pytest", reason=f"The run ended with exit status {session.exitstatus}."))
        document = self.document(interrupted=session.exitstatus == pytest.ExitCode.INTERRUPTED)
        if self.spent > self.settings.alpha * EXACT:
            failures.append(
                f"The audits spent a false-alarm probability of {self.spent:.3g}, more than alpha={self.settings.alpha:g}."
            )
        if self.stored is not None and whole and self._is_whole_suite():
            names = {entry.result.name for entry in self.entries}
            failures += [f"REGRESSION  {name}: the audit is gone." for name in self.stored.audits if name not in names]
        try:
            for path in self.reports:
                self._write(document, path)
        except DPAuditError as error:
            failures.append(str(error))
        self.notes += failures
        self._summarise_for_github(document)
        if failures and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def document(self, *, interrupted: bool = False) -> Document:
        """All results; for an audit that ran more than once, the worst one."""
        worst: dict[str, Entry] = {}
        for entry in sorted(self.entries, key=lambda entry: (entry.met, URGENCY[entry.result.verdict])):
            worst.setdefault(entry.result.name, entry)
        return Document(
            entries=sorted_entries(list(worst.values())),
            interrupted=interrupted,
            failures=tuple(self.failures),
            fail_on=self.settings.fail_on,
        )

    def _write(self, document: Document, path: Path) -> None:
        target = self.config.invocation_params.dir / path
        document = replace(document, origin=origin_of(self.config.rootpath))
        kind = REPORTS[path.suffix]
        if kind == "json":
            write_whole(target, document.to_json())
        else:
            for _ in write_reports(document, {kind: target}):
                pass
        self.notes.append(f"wrote {path}")

    def _summarise_for_github(self, document: Document) -> None:
        try:
            if document.entries:
                github_summary(document)
        except DPAuditError as error:
            self.notes.append(f"Note: {error}")

    def _is_whole_suite(self) -> bool:
        """Return True if every audit should have run, because no tests were selected by hand."""
        option = self.config.option
        picked = any(getattr(option, name, None) for name in ("keyword", "markexpr", "deselect", "lf", "stepwise"))
        return self.config.args_source is not pytest.Config.ArgsSource.ARGS and not picked

    def summarise(self, reporter: Any) -> None:
        """The section at the end of pytest's output."""
        if not self.entries and not self.notes:
            return
        document = self.document()
        reporter.section("dpaudit")
        for entry in document.entries:
            notes = green_notes(entry)
            if notes or not entry.met or (entry.expect is None and entry.result.verdict is Verdict.INCONCLUSIVE):
                reporter.line(line(entry))
            for note in notes:
                reporter.line(note)
        if self.entries:
            again = len(self.entries) - len(document.entries)
            tries = f" With {again} repeated it spent {self.spent:.3g}." if again else ""
            reporter.line(f"{totals(document)} The run may spend {self.settings.alpha:g}.{tries}")
        for note in self.notes:
            reporter.line(note)


def _swallowed_text(unmet: Sequence[Entry]) -> str:
    return "\n\n".join([SWALLOWED, *(str(entry.result) for entry in unmet)])


class AuditFile(pytest.File):
    """A file that defines audits."""

    attributes: tuple[str, ...] = ()  # those to collect; empty: all
    root: Path

    def collect(self) -> Iterable[pytest.Item]:
        """Import the file and yield its audits."""
        try:
            items = collect(
                [f"{self.path}:{attribute}" for attribute in self.attributes] or [str(self.path)], root=self.root
            )
        except DPAuditError as error:
            raise self.CollectError(str(error)) from None
        for item in items:
            yield AuditItem.from_parent(self, name=item.audit.name, collected=item)


class AuditItem(pytest.Item):
    """One audit as a test."""

    def __init__(self, *, collected: Collected, **options: Any) -> None:
        super().__init__(**options)
        self.collected = collected
        self.add_marker("dpaudit")

    def runtest(self) -> None:
        """Audit, and fail where the verdict is not the one that was expected."""
        from dpaudit.pytest_plugin import HOOKS

        session = self.config.stash[HOOKS].session
        definition = self.collected.audit
        _, options = session.prepare(self, definition.name, definition.options)
        result = definition.run(**options)
        if isinstance(result, AccuracyResult):
            expect = definition.expect if session.settings.fail_on != "never" else result.verdict
            judge_accuracy(result, expect, allow_inconclusive=session.allows_inconclusive(self))
            return
        session.record(self, result, self.collected)
        session.judge(result, definition.expect, allow_inconclusive=session.allows_inconclusive(self))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the witness or the error; with a traceback only for unexpected errors."""
        if isinstance(excinfo.value, PrivacyViolation | AccuracyViolation | Inconclusive | Unmet | DPAuditError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file and line at which the audit is defined."""
        return self.path, self.collected.line - 1, f"audit {self.name}"


def _resolved(target: str, root: Path) -> tuple[Path, str]:
    """A target of the configuration as a path, and the attribute to collect from it, if it names one."""
    place, colon, attribute = target.rpartition(":")
    if not colon or len(place) == 1:
        place, attribute = target, ""
    path = root / place
    if not path.exists() and not place.endswith(".py"):
        path = (root / Path(*place.split("."))).with_suffix(".py")
    if not path.exists():
        raise InvalidArgument(f"audits={target!r} of [tool.dpaudit] does not exist; it must be a folder or a file.")
    return path.resolve(), attribute


def _relative(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _line(item: Node) -> int:
    return (item.reportinfo()[1] or 0) + 1 if isinstance(item, pytest.Item) else 1
