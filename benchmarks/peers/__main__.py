"""Run the ladder of every tool and print one table: ``python -m benchmarks.peers --checkout TOOL=PATH ...``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # the modules that run in the environments of the tools import each other by plain names

from drivers import ALPHA, NOT_RUN, TOOLS  # noqa: E402
from ten_mechanisms import MECHANISMS  # noqa: E402


def environment(tool: str, folder: Path) -> Path:
    """Return the Python of the environment of a tool, made if it is not there yet."""
    if tool == "dpaudit":
        return Path(sys.executable)
    place = folder / tool.replace(" ", "-")
    python = place / "bin" / "python"
    done = place / ".installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *TOOLS[tool].requirements], check=True)
        done.touch()
    return python


def measured(tool: str, python: Path, checkout: Path | None, seconds: float) -> Iterator[dict[str, Any]]:
    """Run the ladder of one tool, and yield its rows."""
    path = [str(HERE), *([str(checkout)] if checkout else []), *([str(HERE.parents[1])] if tool == "dpaudit" else [])]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PEER_CHECKOUT": str(checkout or "")}
    command = [str(python), str(HERE / "ladder.py"), tool, str(seconds)]
    with subprocess.Popen(
        command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("{"):
                yield json.loads(line)


def main() -> int:
    """Run every tool that is there, and print a table for docs/comparison.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    needing = [tool for tool, kind in TOOLS.items() if kind.checkout]
    parser.add_argument(
        "--checkout", action="append", default=[], metavar="TOOL=PATH", help=f"of {', '.join(needing)}; repeatable"
    )
    parser.add_argument("--only", action="append", choices=sorted(TOOLS), metavar="TOOL", help="leave out the others")
    parser.add_argument("--environments", type=Path, default=Path("build/peers"), metavar="DIR")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of processor time for one tool and mechanism (default 60)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    options = parser.parse_args()
    checkouts = dict(part.partition("=")[::2] for part in options.checkout)
    if unknown := checkouts.keys() - set(needing):
        parser.error(f"--checkout: {sorted(unknown)} is not one of {needing}")
    rows: list[dict[str, Any]] = []
    for tool, kind in TOOLS.items():
        if options.only and tool not in options.only:
            continue
        if kind.checkout and tool not in checkouts:
            print(f"{tool}: not run; point at a checkout with --checkout '{tool}=PATH'", file=sys.stderr)
            continue
        checkout = Path(checkouts[tool]).resolve() if kind.checkout else None
        for row in measured(tool, environment(tool, options.environments), checkout, options.seconds):
            print(
                f"{tool}: {row['mechanism']}: {row['outputs'] or row['why']} ({row['cpu_seconds']} s)", file=sys.stderr
            )
            rows.append(row)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    for tool, why in NOT_RUN.items():
        print(f"\n{tool} is not run: {why}.")
    return 0


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table, a column for each tool."""
    tools = list(dict.fromkeys(row["tool"] for row in rows))
    cells = {(row["tool"], row["mechanism"]): f"{row['outputs']:,}" if row["outputs"] else row["why"] for row in rows}
    lines = [f"| outputs to refute epsilon = 1 at {ALPHA:g} | {' | '.join(tools)} |", "|---|" + "---:|" * len(tools)]
    lines += [f"| {name} | {' | '.join(cells.get((tool, name), '') for tool in tools)} |" for name in MECHANISMS]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
