"""Hostile runs of the command line, one after the other, for a minute or half an hour.

Each case is a project with a few random audits (private, leaking, raising, crashing, hanging, printing), a way of running them,
and a disturbance: a kill and a resume, an interrupt, a closed pipe, a disk that is full. Every run must end with the right exit
code, leave whole files and no process, and print neither a traceback of ours nor an escape of theirs. Cases follow from the
seed; when a signal arrives does not.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.tables import Column, Row, Table
from dpaudit._util.terminal.exit_codes import ExitCode, strongest

SECONDS = {True: 60.0, False: 1800.0}  # quick, and in full
LONGEST_RUN = 180.0  # seconds after which a run counts as hanging
ENDING = 10.0  # seconds in which all processes of a run have to be gone
SMALL_FILE = 1500  # bytes that a file may have where the disk is full
HOSTILE_NAME = "audit\n::error::forged\x1b[2J"

HEAD = f"""
import asyncio, os, sys, threading, time
import numpy as np
import dpaudit

class Panic(BaseException):
    def __str__(self):
        raise RuntimeError

class Hostile:
    def __deepcopy__(self, memo):
        raise asyncio.CancelledError
    def __repr__(self):
        return {HOSTILE_NAME!r}

def audit(name, mechanism, claim=dpaudit.PureDP(1.0), **options):
    return dpaudit.Audit(name=name + {HOSTILE_NAME!r}, mechanism=mechanism, claim=claim, neighbours=[([], [1])], options=options)
"""

# What an audit of each kind is, and how a run of it alone ends. Samples are filled in.
BATCHED = "dpaudit.batched(lambda data, size, rng: {})"
KINDS: dict[str, tuple[str, ExitCode]] = {
    "private": (BATCHED.format("len(data) + rng.laplace(size=size)"), ExitCode.OK),
    "integers": (BATCHED.format("len(data) + rng.geometric(0.6, size) - rng.geometric(0.6, size)"), ExitCode.OK),
    "words": ("lambda data: 'yes' if np.random.random() < 0.5 else None", ExitCode.OK),
    "leaking": (BATCHED.format("len(data) + rng.laplace(scale=0.4, size=size)"), ExitCode.FAILED),
    "telling": ("lambda data: (len(data), {'x': np.random.random()})", ExitCode.FAILED),
    "cancelled": ("lambda data: (_ for _ in ()).throw(asyncio.CancelledError())", ExitCode.ERROR),
    "panic": ("lambda data: (_ for _ in ()).throw(Panic())", ExitCode.ERROR),
    "interrupting": ("lambda data: (_ for _ in ()).throw(KeyboardInterrupt())", ExitCode.ERROR),
    "exiting": ("lambda data: sys.exit(0)", ExitCode.ERROR),
    "hostile output": ("lambda data: Hostile()", ExitCode.ERROR),
    "wrong size": (BATCHED.format("[1]"), ExitCode.ERROR),
    "leaving": ("lambda data: os._exit(0)", ExitCode.ERROR),
    "crashing": ("lambda data: os.kill(os.getpid(), 11)", ExitCode.ERROR),
    "closing": ("lambda data: (sys.stdout.close(), float(np.random.laplace()) + len(data))[1]", ExitCode.OK),
    "strict numpy": (
        "lambda data: (np.seterr(all='raise'), os.chdir('/'), float(np.random.laplace()) + len(data))[2]",
        ExitCode.OK,
    ),
    "hanging": ("lambda data: time.sleep(3600)", ExitCode.UNDECIDED),
}
FATAL = ("leaving", "crashing")  # end the process of a serial run, which loses the other audits
MODES = {"serial": [], "-j 2": ["-j", "2"], "--workers 2": ["--workers", "2"]}
DISTURBANCES = ("none", "none", "kill and resume", "interrupt", "terminate", "closed pipe", "full disk", "broken file")


@dataclass
class Tally:
    """The outcomes of the runs of one mode and disturbance."""

    runs: int = 0
    seconds: float = 0.0
    codes: collections.Counter[int] = field(default_factory=collections.Counter)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Case:
    """One project and how it is run."""

    seed: int
    kinds: tuple[str, ...]
    mode: str
    disturbance: str

    @classmethod
    def of(cls, seed: int) -> Case:
        chance = random.Random(seed)
        kinds = tuple(chance.choice(list(KINDS)) for _ in range(chance.randint(1, 3)))
        return cls(seed, kinds, chance.choice(list(MODES)), chance.choice(DISTURBANCES))

    def write(self, folder: Path) -> None:
        chance = random.Random(-1 - self.seed)
        (folder / "audits").mkdir()
        lines = [HEAD]
        for number, kind in enumerate(self.kinds):
            samples = 20_000 if KINDS[kind][1] is not ExitCode.FAILED else chance.choice([20_000, 40_000])
            # Functions, not lambdas: workers import them by their names.
            lines.append(f"made{number} = {KINDS[kind][0]}")
            lines.append(
                f"def call{number}(data, *more):\n    return getattr(made{number}, 'function', made{number})(data, *more)"
            )
            call = f"dpaudit.batched(call{number})" if "batched" in KINDS[kind][0] else f"call{number}"
            lines.append(f"a{number} = audit('{kind} {number}', {call}, samples={samples})")
        (folder / "audits" / "some.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if self.disturbance == "broken file":
            (folder / "audits" / "broken.py").write_text(f"raise BaseException({HOSTILE_NAME!r})\n", encoding="utf-8")

    def codes(self) -> set[int]:
        """The exit codes that a run which was left alone may have."""
        codes = [KINDS[kind][1] for kind in self.kinds]
        if self.disturbance in ("broken file", "full disk"):
            codes.append(ExitCode.ERROR)
        if self.mode == "serial" and any(kind in FATAL for kind in self.kinds):
            return {int(ExitCode.ERROR)}
        return {int(strongest(codes))}

    def command(self, *more: str) -> list[str]:
        timeout = ["--timeout", "1"] if "hanging" in self.kinds else []
        reports = ["--output", "o.json", "--junit", "j.xml", "--sarif", "s.json"]
        return [sys.executable, "-m", "dpaudit", "run", *MODES[self.mode], *timeout, *reports, *more]


def run_case(case: Case, folder: Path) -> tuple[int, list[str]]:
    """Run a case; return its exit code and what was wrong."""
    case.write(folder)
    chance = random.Random(case.seed)
    allowed = case.codes()
    full = case.disturbance == "full disk"
    # A session of its own: a signal to the group reaches no other process.
    process = subprocess.Popen(
        case.command(),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=functools.partial(_prepare, small_files=full),
    )
    faults: list[str] = []
    wait = chance.uniform(0.3, 5.0)
    if case.disturbance == "closed pipe":
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
    number = {"kill and resume": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}.get(
        case.disturbance
    )
    if number is not None:
        allowed |= {-number, int(ExitCode.INTERRUPTED)} if number == signal.SIGINT else {-number}
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            if number == signal.SIGINT and chance.random() < 0.5:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
    try:
        out, err = process.communicate(timeout=LONGEST_RUN)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return -1, [f"did not end within {LONGEST_RUN:.0f} s"]
    code = process.returncode
    if code not in allowed:
        faults.append(f"exit code {code} instead of {sorted(allowed)}: {(err or b'')[-300:]!r}")
    faults += _faults_of(folder, out or b"", err or b"")
    if case.disturbance == "kill and resume":
        again = subprocess.run(
            case.command("--resume"),
            cwd=folder,
            capture_output=True,
            timeout=LONGEST_RUN,
            start_new_session=True,
            check=False,
        )
        if again.returncode not in case.codes():
            faults.append(f"resumed with exit code {again.returncode} instead of {sorted(case.codes())}")
        faults += _faults_of(folder, again.stdout, again.stderr)
        if not (folder / "o.json").exists() and not set(case.kinds) & set(FATAL):
            faults.append("the resumed run wrote no results")
    return code, faults


def _prepare(*, small_files: bool) -> None:
    """Let interrupts arrive, which a shell switches off for what it starts in the background, and limit the size of files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if small_files:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_FILE, SMALL_FILE))


def _faults_of(folder: Path, out: bytes, err: bytes) -> list[str]:
    faults = []
    if b"not foreseen" in err:
        faults.append(f"an unexpected error: {err[-300:]!r}")
    if any(mark in text for mark in (b"\x1b", b"\n::") for text in (out, err)):
        faults.append("text of others reached the terminal as it was")
    try:
        for name in ("o.json", "s.json"):
            if (folder / name).exists():
                json.loads((folder / name).read_text(encoding="utf-8"), parse_constant=_refuse)
        if (folder / "j.xml").exists():
            ElementTree.parse(folder / "j.xml")
    except (ValueError, ElementTree.ParseError) as error:
        faults.append(f"a file that is not whole: {error}")
    if left := _left_behind(folder):
        faults.append(f"{len(left)} process(es) left")
        for process in left:
            os.kill(process, signal.SIGKILL)
    return faults


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} in JSON")


def _left_behind(folder: Path) -> list[int]:
    """Processes that were started in the folder and still run, after the time that they have to end."""
    until = time.monotonic() + ENDING
    while True:
        left = []
        for entry in Path("/proc").iterdir() if sys.platform == "linux" else ():
            try:
                if (
                    entry.name.isdigit()
                    and int(entry.name) != os.getpid()
                    and f"TMPDIR={folder}\0" in _environment(entry)
                ):
                    left.append(int(entry.name))
            except OSError:
                continue
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.1)


def _environment(entry: Path) -> str:
    return (entry / "environ").read_bytes().decode(errors="replace")


def rows(seconds: float, seed: int, least: int) -> Iterator[Row]:
    """Cases until the time is over, but so many at least; then a row for each mode and disturbance."""
    tallies: dict[tuple[str, str], Tally] = {}
    begin = time.monotonic()
    number = 0
    before = os.environ.get("TMPDIR")
    try:
        while number < least or time.monotonic() - begin < seconds:
            case = Case.of(seed + number)
            number += 1
            tally = tallies.setdefault((case.mode, case.disturbance), Tally())
            since = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="soak-") as name:
                os.environ["TMPDIR"] = name  # marks every process of the run
                code, faults = run_case(case, Path(name))
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before
            tally.runs += 1
            tally.seconds += time.monotonic() - since
            tally.codes[code] += 1
            tally.faults += [
                f"case {case.seed} ({', '.join(case.kinds)}; {case.mode}; {case.disturbance}): {f}" for f in faults
            ]
    finally:
        if before is not None:
            os.environ["TMPDIR"] = before
    for (mode, disturbance), tally in sorted(tallies.items()):
        row: Row = {
            "mode": mode,
            "disturbance": disturbance,
            "runs": tally.runs,
            "seconds": tally.seconds / tally.runs,
            "codes": ", ".join(f"{code}: {count}" for code, count in sorted(tally.codes.items())),
            "faults": len(tally.faults),
        }
        if tally.faults:
            row["fault"] = "; ".join(tally.faults[:5])
        yield row
    yield {
        "mode": "all",
        "runs": number,
        "seconds": (time.monotonic() - begin) / number,
        "faults": sum(len(t.faults) for t in tallies.values()),
    }


def run(*, quick: bool, seconds: float | None = None, seed: int = 0, least: int = 1) -> Iterator[Table]:
    """The soak; ``SOAK_SECONDS`` in the environment sets its length."""
    length = seconds if seconds is not None else float(os.environ.get("SOAK_SECONDS", SECONDS[quick]))
    yield Table(
        title=f"Hostile runs for {length:.0f} seconds, from seed {seed}",
        columns=(
            Column("mode", "mode", "<11"),
            Column("disturbance", "disturbance", "<15"),
            Column("runs", "runs", ">5d"),
            Column("seconds", "seconds each", ">8.1f"),
            Column("codes", "exit codes: runs", "<30"),
            Column("faults", "faults", ">6d"),
        ),
        rows=rows(length, seed, least),
    )
