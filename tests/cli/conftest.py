"""A project of a user in a folder of its own, and the command line run inside it."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpaudit.cli.main import main

HEAD = """import dpaudit

def noisy(data, size, rng):
    return len(data) + rng.laplace(scale=1.0, size=size)

def half(data, size, rng):
    return len(data) + rng.laplace(scale=0.5, size=size)

PAIR = [([], [1])]
"""


@dataclass
class Project:
    """A folder, and what a command line run in it gives."""

    root: Path

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def audit(
        self, name: str, mechanism: str = "noisy", samples: int = 20_000, more: str = "", options: str = ""
    ) -> str:
        return (
            f'{name} = dpaudit.Audit(name="{name}", mechanism=dpaudit.batched({mechanism}), claim=dpaudit.PureDP(1.0), '
            f'neighbours=PAIR, options={{"samples": {samples}, {options}}}, {more})\n'
        )

    def audits(self, *definitions: str, name: str = "audits/some.py") -> Path:
        return self.write(name, HEAD + "".join(definitions))

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and stdout; stderr is for capsys."""
        out = io.StringIO()
        code = main(words, stdout=out)
        return code, out.getvalue()

    def fresh(self) -> None:
        """Forget what was imported from here, as a new process would."""
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(self.root)):
                del sys.modules[name]
        sys.modules.pop("audits", None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    path = list(sys.path)
    made = Project(tmp_path)
    made.fresh()
    yield made
    made.fresh()
    sys.path[:] = path
