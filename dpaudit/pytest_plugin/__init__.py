"""The pytest plugin: audits as tests, and audits inside tests, under one false-alarm probability for the whole run.

Large libraries are imported only when an audit is collected or run, so a suite that does not use dpaudit loads this
file alone.

* Files named by ``[tool.dpaudit] audits = [...]`` are collected; a folder is not collected because its name is audits.
* The fixture ``dpaudit_audit`` and the function ``dpaudit.assert_private`` audit inside ordinary tests.
* ``@pytest.mark.dpaudit(samples=..., allow_inconclusive=True)`` overrides options, for one test or a module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit import __version__
from dpaudit.errors import DPAuditError, Inconclusive, PrivacyViolation
from dpaudit.report import FORMATS

if TYPE_CHECKING:
    from dpaudit.pytest_plugin.session import Session

MARKER = (
    "dpaudit(**options): options of the audits in this test, such as samples=20_000, seed=1 or allow_inconclusive=True; "
    "audits that were collected from audit files have this marker too"
)
REPORTS = {".json": "json", **{suffix: kind for kind, (_, suffix) in reversed(FORMATS.items())}}
PACKAGE = str(Path(__file__).resolve().parents[1])
HOOKS = pytest.StashKey["Hooks"]()


class Unmet(AssertionError):
    """The verdict is not the one that was expected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the flags."""
    group = parser.getgroup("dpaudit", "audits of differential privacy")
    group.addoption("--dpaudit-samples", type=_whole, metavar="N", help="budget of samples of every audit, e.g. 1e5")
    group.addoption("--dpaudit-alpha", type=float, metavar="A", help="false-alarm probability of the run (1e-6)")
    group.addoption("--dpaudit-seed", type=int, metavar="N", help="seed of every audit")
    group.addoption("--dpaudit-profile", choices=("ci", "deep"), help="budget: ci is about 5 seconds an audit")
    group.addoption("--dpaudit-baseline", metavar="FILE", help="fail where an audit is worse than in this baseline")
    group.addoption(
        "--dpaudit-report",
        action="append",
        default=[],
        metavar="FILE",
        help=f"write a report, by its suffix: {', '.join(REPORTS)} (may be repeated)",
    )


def _whole(text: str) -> int:
    value = float(text.replace("_", ""))
    if value != int(value):
        raise ValueError(text)
    return int(value)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the hooks that need the configuration."""
    config.addinivalue_line("markers", MARKER)
    hooks = Hooks(config)
    config.stash[HOOKS] = hooks
    config.pluginmanager.register(hooks, "dpaudit-hooks")
    if hooks.wanted:
        hooks.session.widen_collection()


@pytest.fixture
def dpaudit_audit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``dpaudit.audit`` with the options of this run, and fail the test if the result is not the expected one.

    ``dpaudit_audit(mechanism, claim, neighbours, *, expect=None, allow_inconclusive=False, name=None, **options)`` returns
    the result. Without ``expect``, a violation fails, and so does too little power.
    """
    return request.config.stash[HOOKS].session.auditor(request.node)


class Hooks:
    """The hooks of the plugin that run during a session."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.flags = {
            name: config.getoption(f"dpaudit_{name}") for name in ("samples", "alpha", "seed", "profile", "baseline")
        }
        self.reports = [Path(name) for name in config.getoption("dpaudit_report")]
        for path in self.reports:
            if path.suffix not in REPORTS:
                raise pytest.UsageError(f"--dpaudit-report {path}: the suffix must be one of {', '.join(REPORTS)}.")
        # Making the session loads large modules: do it only if dpaudit was asked for, or at the first audit.
        self.wanted = (
            bool(self.reports)
            or any(value is not None for value in self.flags.values())
            or any(name.startswith("DPAUDIT_") for name in os.environ)
            or _has_table(config.rootpath)
        )
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The run's settings, results and what it has spent."""
        if self._session is None:
            from dpaudit.pytest_plugin.session import Session

            try:
                self._session = Session(self.config, self.flags, self.reports)
            except DPAuditError as error:
                raise pytest.UsageError(f"dpaudit: {error}") from None
        return self._session

    def pytest_report_header(self) -> str | None:
        """One line, where dpaudit is used."""
        return f"dpaudit {__version__}: {self.session.headline()}" if self.wanted else None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the audit files that the configuration names."""
        if not self.wanted or file_path.suffix != ".py":
            return None
        return self.session.collector(file_path, parent)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse two audits of one name."""
        if self.wanted:
            self.session.check_names(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Give audits at the top level of a test file the run's options, and store their results."""
        from dpaudit.pytest_plugin.surrounding import assertions_of

        with assertions_of(collector, lambda: self.session):
            report = yield
        if self._session is not None:
            self._session.imported(collector, report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Give the audits of a test and of its fixtures the run's options, and store their results."""
        from dpaudit.pytest_plugin.surrounding import assertions_of

        with assertions_of(item, lambda: self.session):
            outcome = yield
        if self._session is not None:
            self._session.leave(item)
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail if a fixture found a violation."""
        return (yield from self._phase(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail if the test found a violation, in this try or an earlier one."""
        if self._session is not None and item.nodeid in self._session.violations:
            # Repeating a test until it passes by chance would void alpha.
            pytest.fail(
                "An earlier try of this test found a violation; a second try does not undo it.\n\n"
                + self._session.violations[item.nodeid],
                pytrace=False,
            )
        return (yield from self._phase(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail if a fixture found a violation during its teardown."""
        return (yield from self._phase(item))

    def _phase(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            outcome = yield
        except (PrivacyViolation, Inconclusive, Unmet, DPAuditError) as error:
            _cut_our_frames(error)
            if isinstance(error, PrivacyViolation):
                self.session.violations[item.nodeid] = str(error)
            raise
        if self._session is not None:
            self._session.fail_on_swallowed(item)
            self._session.fail_on_regressions(item)
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach results to the report, which is what travels from a worker of pytest-xdist to the controller."""
        report = yield
        if self._session is not None:
            self._session.attach(item, report, None if call.excinfo is None else call.excinfo.value)
        if call.excinfo is not None and isinstance(call.excinfo.value, PrivacyViolation):
            _summarise(report, call.excinfo.value.result)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the results of this process and of the workers."""
        if (getattr(report, "dpaudit", None) or getattr(report, "dpaudit_failure", None)) and not hasattr(
            self.config, "workerinput"
        ):
            self.session.gather(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the results that threads of a worker of pytest-xdist found after their tests had ended."""
        late = getattr(node, "workeroutput", {}).get("dpaudit", [])
        if late:
            self.session.gather_late(late)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Add up, compare with the baseline, write the reports."""
        if self._session is not None and hasattr(self.config, "workeroutput"):
            self.config.workeroutput["dpaudit"] = [entry.to_dict() for entry in self._session.late]
        if (self._session is not None or self.wanted) and not hasattr(self.config, "workerinput"):
            self.session.finish(session)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the results of the audits, and the alpha that was spent."""
        if self._session is not None and not hasattr(self.config, "workerinput"):
            self._session.summarise(terminalreporter)


def _has_table(folder: Path) -> bool:
    """Return True if the nearest pyproject.toml has a table [tool.dpaudit]. A damaged file is reported when it is read."""
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if path.is_file():
            try:
                text = path.read_text(encoding="utf-8")
                if "dpaudit" not in text:
                    return False
                import tomllib

                return "dpaudit" in tomllib.loads(text).get("tool", {})
            except (OSError, ValueError, TypeError, AttributeError, RecursionError):
                return False
    return False


def _summarise(report: pytest.TestReport, result: Any) -> None:
    """Begin the line of pytest's short summary, which is cut at the width of the terminal, with the numbers."""
    from dpaudit.result.model import Result

    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and isinstance(result, Result):
        from dpaudit.result.text import shown

        crash.message = f"{shown(result)}, claimed {result.claim!r}: {result.name}"


def _cut_our_frames(error: BaseException) -> None:
    """End the traceback at the last line of user code; the frames after it belong to dpaudit, and do not explain the error."""
    frames = []
    entry = error.__traceback__
    while entry is not None:
        frames.append(entry)
        entry = entry.tb_next
    for entry in reversed(frames):
        name = entry.tb_frame.f_code.co_filename
        if not name.startswith(PACKAGE) and "site-packages" not in name and not name.startswith("<"):
            entry.tb_next = None
            return
