"""CONTRIBUTING.md names what there is: the architecture lists every package, and a path that it gives exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ARCHITECTURE, PARTS, PLACES = re.search(
    r"```\ndpaudit/\n(.*?)```\n(.*?)\nWhere to add something:\n(.*?)\nWho may import whom", TEXT, flags=re.DOTALL
).groups()


def modules(folder: Path) -> set[str]:
    """The names of the packages and public modules in a folder."""
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {
        "__init__",
        "__main__",
    }


def test_the_architecture_lists_every_package():
    listed = set(re.findall(r"^  ([a-z]\w*)[/.]", ARCHITECTURE.split("\nmechanisms/")[0], flags=re.MULTILINE)) | {
        "_util"
    }
    assert listed == modules(ROOT / "dpaudit")


def test_the_table_lists_every_part_of_the_engine():
    rows = [line.split("|")[1] for line in PARTS.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)/?`", row)} == modules(ROOT / "dpaudit" / "engine")


def test_every_path_exists():
    named = set(re.findall(r"`([\w/]+(?:\.py|\.md|\.toml|/))`", PLACES))
    assert len(named) > 25
    assert {name for name in named if not any((root / name).exists() for root in (ROOT, ROOT / "dpaudit"))} == set()
