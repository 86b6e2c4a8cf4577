"""Every citation of docs/theory.md and docs/mechanisms.md in the code names a section that exists."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("dpaudit", "mechanisms", "benchmarks", "audits")
# A citation may name several sections ("R7 to R11", "R4, R7", "R19c") and may be broken over two lines.
THEORY = re.compile(r"\btheory(?:\.md)?[\s#]+([RE]\d+[a-z]?(?:(?:, | to | and )[RE]\d+[a-z]?)*)")
MECHANISMS = re.compile(r"\bmechanisms(?:\.md|,)[\s#]+sections? (\d+(?:(?:, | to | and )(?:section )?\d+)*)")
SHORT = re.compile(r"(?<!docs/)\btheory(?:\.md)?[\s#]+[RE]\d|(?<!docs/)\bmechanisms(?:\.md|,)[\s#]+sections? \d")


def headings(page: str, pattern: str) -> set[str]:
    return set(re.findall(pattern, (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.MULTILINE))


def cited(match: re.Match[str]) -> Iterator[str]:
    """The sections that a citation names, those inside a range included."""
    found = re.findall(r"( to )?(?:section )?([RE]?)(\d+)", match[1])
    last = 0
    for through, letter, number in found:
        first = last + 1 if through else int(number)
        last = int(number)
        yield from (f"{letter}{n}" for n in range(first, last + 1))


def sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def unresolved(text: str) -> list[str]:
    known = headings("theory.md", r"^### ([RE]\d+)\. ")
    sections = headings("mechanisms.md", r"^## Section (\d+)\. ")
    missing = [name for match in THEORY.finditer(text) for name in cited(match) if name not in known]
    return missing + [name for match in MECHANISMS.finditer(text) for name in cited(match) if name not in sections]


def test_citations_resolve():
    texts = {path: path.read_text(encoding="utf-8") for path in sources()}
    assert sum(len(THEORY.findall(text)) for text in texts.values()) > 50
    assert {str(path): missing for path, text in texts.items() if (missing := unresolved(text))} == {}


def test_comments_and_docstrings_name_the_page_in_full():
    short = []
    for path in sources():
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        prose = (t for t in tokens if t.type == tokenize.COMMENT or (t.type == tokenize.STRING and '"""' in t.string))
        short += [f"{path}:{token.start[0]}" for token in prose if SHORT.search(token.string)]
    assert short == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("(docs/theory.md R7 to R11, R19c)", []),
        ("as in docs/theory.md\n    # R4", []),
        ("docs/theory.md R27 to R29", ["R29"]),
        ("theory R99", ["R99"]),
        ("docs/mechanisms.md section 1, section 8", ["8"]),
    ],
)
def test_a_missing_section_is_noticed(text, missing):
    assert unresolved(text) == missing
