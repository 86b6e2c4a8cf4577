"""Settings of the documentation site: ``make docs`` builds it into docs/_build/html.

The pages are the Markdown files of this folder, whose examples are run by tests/project/test_docs.py; the reference is made of
the docstrings. Nothing is loaded from the network: fonts, scripts and the index of the search are in the built folder.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring

from dpaudit import __version__

project = "dpaudit"
author = "The dpaudit developers"
copyright = author  # noqa: A001 - a name that Sphinx reads
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
nitpicky = True
# What stands as the type of a parameter is often prose ("sequence of numbers") or a type of another library; names of ours are
# written as roles or start with dpaudit, and these have to lead somewhere.
nitpick_ignore_regex = [
    ("py:class", r"(?!dpaudit\.|[A-Z]\w+$).*"),
    ("py:class", r"Fraction|False|True|None|Path|Executor"),
]

OUTSIDE = {
    "../audits/libraries/SCOREBOARD.md": "about/scoreboard.md",
    "../audits/museum/README.md": "about/museum.md",
    "../CONTRIBUTING.md": "about/contributing.md",
}

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures would be wider than a screen; parameters are described in the text

html_theme = "furo"
html_title = f"dpaudit {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it loads pages, which browsers refuse for files that are opened without a server
html_theme_options = {"top_of_page_buttons": []}

_LITERAL = re.compile(r"(``.+?``|`[^`]+`|^\s*>>>.*$)")
_PARAMETERS = Config(napoleon_use_ivar=True, napoleon_use_rtype=False, napoleon_preprocess_types=False)


def setup(app: Any) -> None:
    """Register how docstrings become reStructuredText."""
    app.connect("autodoc-process-docstring", _as_restructured_text)
    app.connect("source-read", _links_inside)
    app.connect("include-read", _paths_of_witnesses)


def _links_inside(app: Any, page: str, source: list[str]) -> None:
    """Lead links to Markdown files outside of this folder to the pages that include them."""
    del app, page
    for path, inside in OUTSIDE.items():
        source[0] = source[0].replace(f"]({path})", f"]({inside})")


def _paths_of_witnesses(app: Any, file: Any, page: str, source: list[str]) -> None:
    """Name the files of the scoreboard's witnesses, which are in the repository and not on the site."""
    del app, file, page
    source[0] = re.sub(r"\[witness\]\(witnesses/([\w.-]+)\)", r"witness: `audits/libraries/witnesses/\1`", source[0])


def _as_restructured_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape mathematics in docstrings (``|x|`` and ``r_``), and turn sections in numpydoc's form into fields.

    Properties have no sections, and napoleon would read a sentence with a colon in it as a type.
    """
    del name, obj, options
    lines[:] = [_escaped(line) for line in lines]
    if what not in ("attribute", "data", "property"):
        lines[:] = NumpyDocstring(lines, _PARAMETERS, app, what).lines()


def _escaped(line: str) -> str:
    parts = _LITERAL.split(line)
    parts[::2] = [re.sub(r"\||(?<=\w)_(?=\W|$)", lambda found: f"\\{found[0]}", part) for part in parts[::2]]
    return "".join(parts)
