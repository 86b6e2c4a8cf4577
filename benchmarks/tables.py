"""Helpers of all benchmarks: tables that print as their rows come in, JSON that is never half-written, and workers.

A benchmark is a module with ``run(*, quick) -> Iterator[Table]``. A row is a dict; its key ``fault`` says in words which
requirement it does not meet. Tables print as Markdown, so that what is printed can be shown as it is.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

FORMAT = 1
WORKERS = 2

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: the key of its values, its heading, and how a value is written (``>8.3f``; text is only aligned)."""

    key: str
    heading: str
    form: str = ">8"

    @property
    def align(self) -> str:
        return self.form[0]

    @property
    def width(self) -> int:
        stated = re.search(r"\d+", self.form.split(".")[0])
        return max(int(stated[0]) if stated else 0, len(self.heading))

    def cell(self, row: Row) -> str:
        """The value as text; what is missing is blank, what is infinite is said in words."""
        value = row.get(self.key)
        if value is None:
            text = ""
        elif isinstance(value, str):
            text = value
        elif isinstance(value, float) and math.isinf(value):
            text = "infinite" if value > 0 else "-infinite"
        else:
            text = format(value, self.form).strip()
        return f"{text:{self.align}{self.width}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A title, columns, and rows that may still have to be measured: an iterator is printed as it yields."""

    title: str
    columns: tuple[Column, ...]
    rows: Iterable[Row]
    note: str = ""

    def show(self, write: Callable[[str], Any]) -> dict[str, Any]:
        """Print, and return what was printed as plain data."""
        write(f"### {self.title}\n")
        if self.note:
            write(f"{self.note}\n")
        write("| " + " | ".join(f"{c.heading:{c.align}{c.width}}" for c in self.columns) + " |")
        write("|" + "|".join("-" * (c.width + 1) + (":" if c.align == ">" else "-") for c in self.columns) + "|")
        rows = []
        for row in self.rows:
            rows.append(row)
            write("| " + " | ".join(column.cell(row) for column in self.columns) + " |")
        write("")
        for row in rows:
            if row.get("fault"):
                write(f"NOT MET: {row['fault']}\n")
        return {"title": self.title, "note": self.note, "rows": [plain(row) for row in rows]}


def show_all(tables: Iterable[Table], write: Callable[[str], Any]) -> dict[str, Any]:
    """Print every table of a benchmark; return them with the processor time and the number of unmet requirements."""
    begin, clock = _cpu_seconds(), time.perf_counter()
    shown = [table.show(write) for table in tables]
    faults = [row["fault"] for table in shown for row in table["rows"] if row.get("fault")]
    return {
        "tables": shown,
        "faults": faults,
        "cpu_seconds": _cpu_seconds() - begin,
        "wall_seconds": time.perf_counter() - clock,
    }


def plain(value: Any) -> Any:
    """Anything in a row as plain data for JSON; numbers that are not finite become text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def unwritable(path: Path) -> str:
    """Return why figures cannot be saved there, or nothing: it is checked before hours of measuring."""
    if path.is_dir():
        return "it is a folder"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return ""
    except OSError as error:
        return f"cannot be written ({error})"


def save(path: Path, document: dict[str, Any]) -> None:
    """Write JSON beside its place and move it there: a reader finds the old file or the new one, never a half."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False, encoding="utf-8") as draft:
        draft.write(text)
    os.replace(draft.name, path)


@contextmanager
def mapper(workers: int, *, fresh: bool = False) -> Iterator[Callable[..., Iterator[Any]]]:
    """A ``map`` over that many processes, in order; with 0 the plain one. ``fresh`` gives every task its own process."""
    if not workers:
        yield map
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1 if fresh else None) as pool:
        yield pool.map


def _cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
