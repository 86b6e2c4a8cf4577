"""A suite of a user, run by a pytest inside pytest."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator

import pytest

from tests import preloaded  # noqa: F401 - before the inner runs

INSTALLED = any(point.name == "dpaudit" for point in importlib.metadata.entry_points(group="pytest11"))
PLUGIN = [] if INSTALLED else ["-p", "dpaudit.pytest_plugin"]

MECHANISMS = """
import dpaudit
import pytest

def noisy(data, size, rng):
    return len(data) + rng.laplace(scale=1.0, size=size)

def half(data, size, rng):
    return len(data) + rng.laplace(scale=0.5, size=size)

PAIR = [([], [1])]
ONE = dpaudit.PureDP(1.0)
"""


class Suite:
    """Files of a user, and what pytest makes of them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def tests(self, text: str, name: str = "test_privacy") -> None:
        self.pytester.makepyfile(**{name: MECHANISMS + text})

    def audits(self, text: str, name: str = "audits/some.py", configured: str = 'audits = ["audits"]') -> None:
        path = self.pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MECHANISMS + text)
        self.pytester.makepyprojecttoml(f"[tool.dpaudit]\n{configured}\n")

    def audit(self, name: str, mechanism: str = "noisy", samples: int = 20_000, more: str = "") -> str:
        return (
            f'{name} = dpaudit.Audit(name="{name}", mechanism=dpaudit.batched({mechanism}), claim=ONE, neighbours=PAIR, '
            f'options={{"samples": {samples}}}, {more})\n'
        )

    def run(self, *words: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", *words)

    def run_apart(self, *words: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", *words)

    def interrupted(self, *words: str) -> pytest.HookRecorder:
        """A run that ends by Ctrl-C, which is not passed on to the run outside."""
        return self.pytester.inline_run(*PLUGIN, "-p", "no:cacheprovider", *words, no_reraise_ctrlc=True)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    for name in ("PYTEST_ADDOPTS", "DPAUDIT_SAMPLES"):
        monkeypatch.delenv(name, raising=False)
    path = list(sys.path)
    yield Suite(pytester)
    sys.path[:] = path
