"""``dpaudit init``: a first audit file and a CI workflow, beside existing files."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

from dpaudit.errors import InvalidArgument

AUDIT = '''"""Audits of this repository: `dpaudit run` runs them, and so does pytest (see [tool.dpaudit] in pyproject.toml).

Replace the example by mechanisms of your own. To see a violation, halve the scale of the noise and run again.
"""

from hypothesis import strategies as st

import dpaudit
from dpaudit import neighbours

EPSILON = 1.0


def noisy_count(data, size, rng):
    """`size` releases of the number of rows, which one person changes by at most 1."""
    return len(data) + rng.laplace(scale=1.0 / EPSILON, size=size)


count = dpaudit.Audit(
    name="noisy count",
    mechanism=dpaudit.batched(noisy_count),
    claim=dpaudit.PureDP(EPSILON),
    neighbours=neighbours.add_remove(st.integers(0, 10), max_size=4),
    options={"samples": 200_000},
)
'''

WORKFLOW = """name: privacy
on:
  push:
  pull_request:
permissions:
  contents: read
jobs:
  dpaudit:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install "dpaudit[report]"
      # What the audited code needs goes here: pip install .
      - run: dpaudit run audits --output dpaudit.json --html dpaudit.html
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: dpaudit
          path: |
            dpaudit.json
            dpaudit.html
"""

FILES = {"audits/first_audit.py": AUDIT, ".github/workflows/dpaudit.yml": WORKFLOW}


def requirement(direct_url: str | None) -> str | None:
    """Return what pip installs this dpaudit from; None if that is a folder or file of this machine.

    ``direct_url`` is the text of ``direct_url.json`` (PEP 610), which pip writes unless a package came from an index.

    >>> requirement('{"url": "https://host/dpaudit.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b2c"}}')
    'dpaudit[report] @ git+https://host/dpaudit.git@0a1b2c'
    >>> requirement('{"url": "file:///home/me/dpaudit", "dir_info": {"editable": true}}') is None
    True
    """
    if direct_url is None:
        return "dpaudit[report]"
    found = json.loads(direct_url)
    url = str(found.get("url", ""))
    if url.startswith("file:") or not url:
        return None
    if "vcs_info" in found:
        url = f"{found['vcs_info']['vcs']}+{url}@{found['vcs_info']['commit_id']}"
    return f"dpaudit[report] @ {url}"


def write_scaffold(folder: Path) -> list[str]:
    """Write the missing files below ``folder``, and return a message for each. No file is overwritten."""
    if not folder.is_dir():
        raise InvalidArgument(f"folder={str(folder)!r} is not a folder; make it first.")
    lines = []
    wanted = requirement(_direct_url())
    for name, text in FILES.items():
        text = text if wanted is None else text.replace("dpaudit[report]", wanted)
        path = folder / name
        try:
            if not path.parent.is_dir():
                path.parent.mkdir(parents=True)
        except OSError as error:
            raise InvalidArgument(f"{str(path.parent)!r} cannot be made: {error.strerror or error}.") from None
        try:
            # "x": a file that another process creates in the meantime is not overwritten either.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            lines.append(f"wrote {path}")
        except FileExistsError:
            lines.append(f"kept {path}, which was there already")
        except OSError as error:
            raise InvalidArgument(f"{str(path)!r} cannot be written: {error.strerror or error}.") from None
    if wanted is None:
        lines.append(
            "This dpaudit was installed from a folder, which CI cannot reach: write into the workflow where to install it from."
        )
    where = "" if folder == Path() else f"cd {folder} && "
    return [
        *lines,
        "",
        "Next:",
        f"  {where}dpaudit run                  # runs audits/; it finds nothing",
        "  halve the scale in audits/first_audit.py and run it again: a violation, with its witness",
        "  dpaudit run --html report.html   # the same as a page",
        "To let pytest run the audits too, add to pyproject.toml:",
        "  [tool.dpaudit]",
        '  audits = ["audits"]',
    ]


def _direct_url() -> str | None:
    try:
        return metadata.distribution("dpaudit").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
