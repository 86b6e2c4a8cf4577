"""Virtual environments for libraries of other people: made once for a set of requirements, and kept.

Nothing of this repository is installed there: audits run in its own environment, and call functions in the others
(``dpaudit.isolated``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def environment(home: Path, library: str, requires: Sequence[str], alone: Sequence[str] = ()) -> Path:
    """Return an interpreter with everything installed; those ``alone`` without their dependencies."""
    wanted, root = _folder(home, library, requires, alone)
    python = root / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = root / "installed.txt"
    if stamp.is_file():
        return python
    print(f"{library}: making {root}", flush=True)
    try:
        venv.create(root, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        if requires:
            subprocess.run([*pip, *requires], check=True)
        if alone:
            subprocess.run([*pip, "--no-deps", *alone], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    except BaseException:  # Ctrl-C too
        shutil.rmtree(root, ignore_errors=True)
        raise
    return python


def is_made(home: Path, library: str, requires: Sequence[str], alone: Sequence[str] = ()) -> bool:
    """Return whether :func:`environment` has nothing left to do."""
    return (_folder(home, library, requires, alone)[1] / "installed.txt").is_file()


def _folder(home: Path, library: str, requires: Sequence[str], alone: Sequence[str]) -> tuple[str, Path]:
    wanted = "\n".join([*requires, *(f"{name} alone" for name in alone)])
    return wanted, home / f"{library}-{hashlib.blake2b(wanted.encode(), digest_size=6).hexdigest()}"


def home_of(variable: str, folder: str) -> Path:
    """Return the folder of the environments, which a variable may name."""
    return Path(os.environ.get(variable, Path.home() / ".cache" / "dpaudit" / folder))


def dpaudit_python() -> Path:
    """Return the interpreter that has dpaudit: this one, or that of the repository's environment."""
    own = REPOSITORY / ".venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    return Path(sys.executable) if importlib.util.find_spec("dpaudit") is not None or not own.exists() else own
