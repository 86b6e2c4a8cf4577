"""The HTML page: whole, self-contained, the same on every run, and nothing in it is markup from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

import dpaudit
from dpaudit.errors import MissingDependency
from dpaudit.report import check_reports, html, write_reports
from dpaudit.report.document import Document, Entry
from tests.report.report_examples import HOSTILE, MARKUP, document, result, violation

VOID = {"meta", "br", "img", "link", "input", "hr"}
OURS = {
    "html", "head", "meta", "title", "style", "script", "body", "header", "main", "footer", "h1", "h2", "h3", "p", "br", "a",
    "b", "strong", "span", "code", "pre", "div", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "details",
    "summary", "button", "figure", "figcaption", "svg", "g", "path", "use", "defs", "clippath", "rect", "text", "tspan",
    "pattern",
}  # fmt: skip


class Page(HTMLParser):
    """Tags, attributes and text of a page; refuses tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open[-1:] == ["script"] else self.texts).append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]


@cache
def rendered() -> str:
    return html.render(document())


@cache
def page() -> Page:
    return Page(rendered())


def test_tags_match_and_are_ours() -> None:
    assert set(page().tags) <= OURS
    assert page().tags.count("script") == 1
    assert rendered().startswith("<!DOCTYPE html>")


def test_names_are_text() -> None:
    for name in (HOSTILE, MARKUP):
        assert name in page().texts  # the heading, as it was written: neither markup nor a template
    assert not [name for _, name, _ in page().attributes if name.startswith("on")]


def test_nothing_is_loaded_and_nothing_else_may_run() -> None:
    assert "src" not in {name for _, name, _ in page().attributes}
    assert all(value.startswith("#") for value in page().values("href"))
    assert not re.search(r"@import|url\((?!#)", rendered())
    policy = next(value for value in page().values("content") if "default-src" in value)
    digest = base64.b64encode(hashlib.sha256("".join(page().scripts).encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_every_link_and_label_has_exactly_one_target() -> None:
    ids = page().values("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in page().values("href")} <= set(ids)
    assert set(page().values("data-copy")) <= set(ids)
    assert len(page().values("data-copy")) == sum(entry.result.witness is not None for entry in document().entries)


def test_an_audit_has_all_its_parts() -> None:
    text = html.render(Document(entries=(Entry(result=violation(), mechanism_path="app/a.py", mechanism_line=4),)))
    shown = " ".join(" ".join(Page(text).texts).split())
    for part in (
        "VIOLATION",
        "PureDP(epsilon=1.0) No set of outputs is more than exp(1) = 2.718 times",
        "epsilon >= 1.045 , wrong with probability at most 1e-06",
        "one row more or less; 24 pair(s) tried",
        "app/a.py:4",
        "What would have been detected",
        "0.1 1.35",
        "not with these samples",
        "Data [] Neighbour [0]",
        "output < 0.22",
        "688 1,000 0.688 0.6489 to 0.7253",
        "1.806",
        'print("1 < 2 & 3")',
        "Evidence against the claim",
        "Outputs under both data sets",
        "Claimed profile and lower bounds",
    ):
        assert part in shown
    assert Page(text).tags.count("svg") == 3


def test_audits_that_need_attention_are_first_and_open() -> None:
    summaries = re.findall(
        r'<details class="audit" id="audit-\d+"( open)?>\s*<summary><span[^>]*>(\w+)</span><h2>(.*?)</h2>', rendered()
    )
    assert len(summaries) == len(document().entries)
    opened = [bool(is_open) for is_open, _, _ in summaries]
    assert opened == sorted(opened, reverse=True)
    closed = {name for is_open, _, name in summaries if not is_open}
    assert closed == {"count", "histogram keys"}
    assert summaries[-3][1] == "INCONCLUSIVE"


def test_dark_and_light_have_the_same_colours_to_fill() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", rendered(), re.DOTALL)
    names = re.compile(r"--([a-z-]+):")
    assert set(names.findall(light)) == set(names.findall(dark))
    used = set(re.findall(r"var\(--([a-z-]+)", rendered()))
    assert used <= set(names.findall(light))


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_can_be_read_in_light_and_dark() -> None:
    # WCAG 2.1, success criterion 1.4.3: a contrast of 4.5 for text.
    for scheme in re.findall(r":root \{(.*?)\}", rendered(), re.DOTALL):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        pairs = [(ink, back) for ink in ("ink", "muted", "link") for back in ("page", "card")]
        pairs += [("ink", "code"), ("ink", "unsure-back")]
        pairs += [(name, f"{name}-back") for name in ("alarm", "fine", "unsure")]
        for ink, back in pairs:
            high, low = sorted((luminance(colours[ink]), luminance(colours[back])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, back)


def test_an_interrupted_or_empty_run_is_marked() -> None:
    assert "The run was interrupted." in html.render(Document(entries=(), interrupted=True))
    assert "The run was interrupted." not in rendered()
    assert "No audits." in html.render(Document(entries=()))


def test_pictures_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_WITH_PICTURES", 1)
    text = html.render(Document(entries=(Entry(result=result("a")), Entry(result=result("b")))))
    assert Page(text).tags.count("svg") == 2
    assert text.count("Pictures are drawn for the first 1 audits") == 1


def test_equal_documents_give_equal_pages_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("font.size: 30\n")
    path = tmp_path / "results.json"
    made = Document(entries=document().entries[:2])
    path.write_text(made.to_json(), encoding="utf-8")
    program = (
        "import sys; from pathlib import Path\n"
        "from dpaudit.report import html; from dpaudit.report.document import read_document\n"
        "sys.stdout.reconfigure(encoding='utf-8'); sys.stdout.write(html.render(read_document(Path('results.json'))))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True, check=True,
    )  # fmt: skip
    assert shown.stdout.decode() == html.render(made)


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_a_missing_library_is_named_before_the_audit_and_spares_the_other_reports(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # import raises ImportError
    paths = {"html": tmp_path / "r.html", "junit": tmp_path / "r.xml"}
    with pytest.raises(MissingDependency, match=re.escape("pip install 'dpaudit[report]'")):
        check_reports(paths)
    check_reports({"junit": tmp_path / "r.xml", "html": None})
    with pytest.raises(MissingDependency, match=re.escape("pip install 'dpaudit[report]'")):
        list(write_reports(document(), paths))
    assert os.listdir(tmp_path) == ["r.xml"]


def test_a_real_audit_is_reported(tmp_path: Path) -> None:
    leaky = dpaudit.batched(lambda data, size, rng: len(data) + rng.laplace(scale=0.25, size=size))
    found = dpaudit.audit(leaky, dpaudit.PureDP(1.0), [([], [1])], samples=20_000, seed=0, name="leaky", progress=False)
    made = Document(entries=(Entry(result=found, path="audits/a.py", line=3),))
    paths = {kind: tmp_path / f"report.{kind}" for kind in ("html", "junit", "sarif", "markdown")}
    assert len(list(write_reports(made, paths))) == 4
    again = Document.from_json(made.to_json())
    for kind, path in paths.items():
        text = path.read_text(encoding="utf-8")
        assert "VIOLATION" in text
        assert "leaky" in text
        if kind != "html":
            continue
        assert html.render(again) == text  # a report of a saved result is the report of the run
        assert Page(text).tags.count("svg") >= 2
    assert replace(again.entries[0]).result.name == "leaky"
