"""Reports of a run. Each is a function of one canonical, versioned document."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.report.document import Document

FORMATS = {
    "junit": ("JUnit XML", ".xml"),
    "sarif": ("SARIF 2.1.0", ".sarif"),
    "markdown": ("Markdown", ".md"),
    "html": ("one HTML file", ".html"),
}
"""The reports, each written by the function ``render`` of the module of its name: a description, and the suffix of its files.

HTML comes last: it is the only one that needs libraries, and where they are missing the others are written all the same.
"""


def check_reports(paths: Mapping[str, Path | None]) -> None:
    """Raise before an audit starts, not after hours of sampling, if a report file cannot be written.

    ``paths`` may also name other files that will be written, such as the results.
    """
    from dpaudit._util.files import check_writable
    from dpaudit.errors import InvalidArgument

    taken: dict[Path, str] = {}
    for kind, path in paths.items():
        if path is None:
            continue
        check_writable(path)
        other = taken.setdefault(path.absolute(), kind)
        if other != kind:
            raise InvalidArgument(f"{str(path)!r} is wanted for {other} and for {kind}; give each a file of its own.")
    if paths.get("html") is not None:
        from dpaudit.report.html import check_available

        check_available()


def write_reports(
    document: Document, paths: Mapping[str, Path | None], earlier: Sequence[Document] = ()
) -> Iterator[Path]:
    """Write each report for which a path is given, completely or not at all, and yield the paths.

    Parameters
    ----------
    document : Document
        The run.
    paths : mapping
        A path, or None, for each of ``FORMATS``.
    earlier : sequence of Document
        Earlier runs, from which the HTML report draws trends.
    """
    from dpaudit._util.files import write_whole

    for kind in FORMATS:
        path = paths.get(kind)
        if path is not None:
            module = importlib.import_module(f"dpaudit.report.{kind}")
            write_whole(path, module.render(document, earlier) if kind == "html" else module.render(document))
            yield path


def github_summary(document: Document) -> Path | None:
    """Append the Markdown report to the job summary where ``GITHUB_STEP_SUMMARY`` names one."""
    from dpaudit.report import markdown

    return markdown.github_summary(document)
