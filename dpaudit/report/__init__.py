"""Reports: all of them functions of one canonical, versioned document."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.report.document import Document

KINDS = ("html", "junit", "sarif", "markdown")


def write_reports(document: Document, paths: Mapping[str, Path | None]) -> Iterator[Path]:
    """Write each report that a path is given for, whole or not at all, and yield the paths."""
    from dpaudit.report.document import write_whole

    for kind in KINDS:
        path = paths.get(kind)
        if path is not None:
            module = importlib.import_module(f"dpaudit.report.{kind}")
            write_whole(path, module.render(document))
            yield path
