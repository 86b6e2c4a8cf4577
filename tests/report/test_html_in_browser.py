"""The HTML report in a real browser: it draws, its one script runs, nothing complains, and names stay text."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpaudit.report import html
from dpaudit.report.document import Document
from tests.report.report_examples import HOSTILE, document

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for path in map(shutil.which, BROWSERS) if path), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--enable-logging=stderr", "--hide-scrollbars",
    "--virtual-time-budget=2000",
)  # fmt: skip

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser: none of {', '.join(BROWSERS)} is on the PATH")


def browse(page: Path, profile: Path, *more: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    return subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", *more, page.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip


def complaints(shown: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in shown.stderr.splitlines() if "CONSOLE" in line]


class Texts(HTMLParser):
    """Title, headings, hidden buttons and the number of scripts in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inside = ""
        self.title = ""
        self.headings: list[str] = []
        self.scripts = self.images = self.buttons = self.hidden = self.svgs = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.scripts += tag == "script"
        self.images += tag == "img"
        self.svgs += tag == "svg"
        self.buttons += tag == "button"
        self.hidden += tag == "button" and any(name == "hidden" for name, _ in attrs)
        if tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "title":
            self.title += data
        if self.inside == "h2":
            self.headings[-1] += data


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html.render(document()), encoding="utf-8")
    return path


def test_the_console_is_heard(tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text("<!DOCTYPE html><title>x</title><script>undefinedName();</script>", encoding="utf-8")
    assert complaints(browse(broken, tmp_path / "profile", "--dump-dom"))


def test_no_complaints_and_names_are_text(page: Path, tmp_path: Path) -> None:
    shown = browse(page, tmp_path / "profile", "--dump-dom")
    assert complaints(shown) == []
    seen = Texts(shown.stdout)
    assert seen.title == "dpaudit report"  # what is in the name would have changed it
    assert HOSTILE in seen.headings
    assert len(seen.headings) == len(document().entries)
    assert (seen.scripts, seen.images) == (1, 0)
    assert seen.svgs >= 2 * len(document().entries)
    assert seen.buttons > 0
    assert seen.hidden == 0  # our script ran, policy and all, and showed them


def test_a_foreign_script_does_not_run(page: Path, tmp_path: Path) -> None:
    forced = tmp_path / "forced.html"
    text = page.read_text(encoding="utf-8").replace("</main>", "<script>document.title = 'owned'</script></main>", 1)
    forced.write_text(text, encoding="utf-8")
    shown = browse(forced, tmp_path / "profile", "--dump-dom")
    assert Texts(shown.stdout).title == "dpaudit report"
    assert any("Content Security Policy" in line for line in complaints(shown))


def test_light_and_dark_are_drawn(page: Path, tmp_path: Path) -> None:
    corners = []
    for number, flags in enumerate([(), ("--force-dark-mode",)]):
        picture = tmp_path / f"{number}.png"
        shown = browse(page, tmp_path / f"profile{number}", f"--screenshot={picture}", "--window-size=900,600", *flags)
        assert complaints(shown) == []
        corners.append(_corner(picture))
    light, dark = corners
    assert min(light) > 230
    assert max(dark) < 50


def _corner(picture: Path) -> tuple[int, ...]:
    """Colour of the lower right corner, 0 to 255: the page's background."""
    from matplotlib.image import imread

    pixel = imread(picture)[-2, -2, :3]
    return tuple(round(255 * float(channel)) for channel in pixel)


CLICK = {
    "clipboard": "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { document.title = text; }}});",
    "selection": (
        "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
        "document.execCommand = () => { document.title = getSelection().toString(); return true; };"
    ),
}


@pytest.mark.parametrize("way", CLICK)
def test_the_button_copies_the_script(way: str, tmp_path: Path) -> None:
    entry = next(entry for entry in document().entries if entry.result.witness is not None)
    assert entry.result.witness is not None
    text = html.render(Document(entries=(entry,)))
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)  # so that the test may click
    click = f"<script>{CLICK[way]} document.querySelector('button[data-copy]').click();</script></body>"
    (tmp_path / "page.html").write_text(text.replace("</body>", click), encoding="utf-8")
    shown = Texts(browse(tmp_path / "page.html", tmp_path / "profile", "--dump-dom").stdout)
    assert shown.title.split() == entry.result.witness.script_text.split()
