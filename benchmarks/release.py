"""``python -m benchmarks.release``: build wheel and sdist, install each in a clean environment, and use it (about 3 minutes)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = "def noisy(data, rng):\n    return len(data) + rng.laplace(scale=0.5)\n"
CHECK = ("check", "code.py:noisy", "--epsilon", "1", "--rows", "integers(0, 9)", "--relation", "add-remove")


def main() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", "dist", "."], ROOT)
    built = sorted((ROOT / "dist").iterdir())
    assert [path.name for path in built] == [f"dpaudit-{version}-py3-none-any.whl", f"dpaudit-{version}.tar.gz"], built
    for path in built:
        with tempfile.TemporaryDirectory() as name:
            use(path, Path(name), version)
        print(f"{path.name}: installed and used in a clean environment")


def use(built: Path, folder: Path, version: str) -> None:
    """Install a distribution and do with it what a new user does, away from the repository."""
    run([sys.executable, "-m", "venv", "venv"], folder)
    command = folder / "venv" / "bin" / "dpaudit"
    pip = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "-c", str(ROOT / "constraints.txt"), f"{built}[report]"], folder)
    assert run([str(command), "--version"], folder) == f"dpaudit {version}\n"
    (folder / "code.py").write_text(CODE)
    shown = run([str(command), *CHECK, "--html", "report.html"], folder, code=1)
    assert shown.startswith("VIOLATION"), shown
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    assert "VERIFIED" in run([str(command), "verify", *CHECK[1:3], "2", *CHECK[4:]], folder)
    run([str(command), "init"], folder)
    assert "1 NO_VIOLATION_FOUND" in run([str(command), "run"], folder)
    typed = folder / "venv" / "bin" / "python"
    run(
        [str(typed), "-c", "from dpaudit.mechanisms.laplace import LaplaceMechanism; import dpaudit.statements"], folder
    )


def run(words: list[str], folder: Path, *, code: int = 0) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True)
    assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
