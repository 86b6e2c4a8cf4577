"""Who may import whom: the one-page picture in CONTRIBUTING.md, held."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A module may import rooms of a lower layer, and its own room. Beside each other means: same number, no imports.
LAYER = {
    "errors": 0,
    "validation": 0,
    "values": 0,
    "_hypothesis": 0,
    "claims": 1,
    "mechanism": 1,
    "neighbours": 1,
    "exact": 2,
    "engine": 3,
    "sensitivity": 3,
    "accuracy": 3,
    "anonymity": 3,
    "adapters": 3,
    "diagnosis": 3.5,
    "report": 4,
    "baseline": 4,
    "config": 4,
    "collect": 4,
    "rows": 4,
    "journal": 4,
    "running": 4.5,
    "scaffold": 4,
    "cli": 5,
    "__main__": 6,
    "pytest_plugin": 5,
}
# Inside one layer these may be used by the others of the layer.
BELOW_ITS_LAYER = {
    ("validation", "errors"),
    ("_hypothesis", "errors"),
    ("neighbours", "claims"),
    ("report", "config"),
    ("baseline", "report"),
    ("collect", "config"),
}
FOR_MECHANISMS = {"errors", "validation", "claims", "mechanism", "neighbours", "exact", "accuracy"}


def room(path: Path) -> str:
    """The first folder below the package, or the module's own name."""
    return path.relative_to(ROOT / "dpaudit").parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[str]:
    """Rooms of dpaudit that a module imports when it runs (imports for type checking alone are free)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            parts = node.module.split(".")
            if parts[0] == "mechanisms":
                yield "mechanisms"
            if parts == ["dpaudit"]:
                yield from (alias.name for alias in node.names)
            elif parts[0] == "dpaudit":
                yield parts[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "mechanisms":
                    yield "mechanisms"
                if parts[0] == "dpaudit" and len(parts) > 1:
                    yield parts[1]


MODULES = sorted(path for path in (ROOT / "dpaudit").rglob("*.py") if path != ROOT / "dpaudit" / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    own = room(path)
    assert own in LAYER, f"{own} has no layer; add it to the picture in CONTRIBUTING.md and here"
    for other in imported_rooms(path):
        assert other != "mechanisms", "dpaudit never imports mechanisms"
        if other == own or other not in LAYER:
            continue
        assert LAYER[other] < LAYER[own] or (own, other) in BELOW_ITS_LAYER, f"{own} may not import {other}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "mechanisms").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_mechanisms_import_only_the_vocabulary(path: Path) -> None:
    assert set(imported_rooms(path)) - {"mechanisms"} <= FOR_MECHANISMS


def test_import_is_light() -> None:
    heavy = ["scipy.stats", "statsmodels", "hypothesis", "pandas", "matplotlib", "sklearn", "dp_accounting"]
    program = f"import sys, dpaudit; print([name for name in {heavy!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_an_audit_of_a_pair_loads_what_it_needs() -> None:
    heavy = ["scipy.stats", "scipy.optimize", "statsmodels", "pandas", "matplotlib", "sklearn", "dp_accounting"]
    program = (
        "import sys, dpaudit\n"
        "laplace = dpaudit.batched(lambda data, size, rng: data + rng.laplace(size=size))\n"
        "dpaudit.audit(laplace, dpaudit.ApproxDP(1.0, 1e-5), [(0.0, 1.0)], samples=2000)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_every_public_name_resolves() -> None:
    import dpaudit

    for name in dpaudit.__all__:
        assert getattr(dpaudit, name) is not None
    with pytest.raises(AttributeError, match="Did you mean 'assert_private'"):
        dpaudit.assert_privat  # noqa: B018
