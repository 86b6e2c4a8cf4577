"""Imports go downwards through the layers that CONTRIBUTING.md lists."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A package may import packages with a smaller number, and itself. Packages with the same number do not import each other.
LAYER = {
    "errors": 0,
    "_util": 0.5,
    "claims": 1,
    "mechanism": 1,
    "neighbours": 1.5,
    "result": 1.5,
    "exact": 2,
    "engine": 3,
    "replay": 3.5,
    "sensitivity": 3,
    "accuracy": 3,
    "anonymity": 3,
    "adapters": 3,
    "accountant": 3.5,
    "symbolic": 3.2,
    "assertion": 3.3,
    "diagnosis": 3.5,
    "training": 3.5,
    "mechanisms": 3,
    "statements": 3.5,
    "utility": 3.5,
    "report": 4,
    "baseline": 4.5,
    "cli": 5,
    "pytest_plugin": 5.5,
    "__main__": 6,
}
# The same inside `engine`, whose parts are packages and modules.
ENGINE_LAYER = {
    "encoding": 0,
    "evidence": 0,
    "session": 0,
    "events": 0,
    "options": 0.5,
    "progress": 0.5,
    "views": 1,
    "sampling": 2,
    "search": 3,
    "request": 3.5,
    "witness": 4,
    "membership": 4,
    "timing": 5,
    "conclude": 5,
    "pairs": 5,
    "single_releases": 5,
    "run": 6,
    "accumulate": 6.5,
    "audit": 7,
}
FOR_MECHANISMS = {"errors", "_util", "claims", "mechanism", "neighbours", "exact", "accuracy"}


def part_of(module: str, package: str) -> str | None:
    """Return the part of a package that a dotted module name belongs to, or None if it is outside the package."""
    head, inside, rest = module.partition(f"{package}.")
    return rest.split(".")[0] if inside and not head else None


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports when it runs (imports for type checking alone are free)."""
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
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_parts(path: Path, package: str) -> set[str]:
    """Return the parts of a package that a module imports."""
    return {part for name in imported_modules(path) if (part := part_of(name, package)) is not None}


MODULES = sorted(path for path in (ROOT / "dpaudit").rglob("*.py") if path != ROOT / "dpaudit" / "__init__.py")


def check_layers(path: Path, folder: Path, package: str, layers: dict[str, float]) -> None:
    own = path.relative_to(folder).parts[0].removesuffix(".py")
    assert own in layers, f"{own} has no layer; add it to the picture in CONTRIBUTING.md and here"
    for other in imported_parts(path, package) & layers.keys() - {own}:
        assert layers[other] < layers[own], f"{package}.{own} may not import {package}.{other}"


def own_part(path: Path) -> str:
    return path.relative_to(ROOT / "dpaudit").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path: Path) -> None:
    check_layers(path, ROOT / "dpaudit", "dpaudit", LAYER)
    engine = ROOT / "dpaudit" / "engine"
    if engine in path.parents and path.name != "__init__.py":
        check_layers(path, engine, "dpaudit.engine", ENGINE_LAYER)
    assert not any(name.split(".")[0] == "mechanisms" for name in imported_modules(path)), (
        "dpaudit never imports the top-level mechanisms: the wheel has them as dpaudit.mechanisms"
    )
    assert own_part(path) == "statements" or "mechanisms" not in imported_parts(path, "dpaudit")


def test_no_folder_holds_more_than_a_dozen_modules() -> None:
    folders = [folder for folder in (ROOT / "dpaudit").rglob("*") if folder.is_dir()]
    modules = {
        str(folder): len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) for folder in folders
    }
    assert {folder: number for folder, number in modules.items() if number > 12} == {}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "mechanisms").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_mechanisms_import_only_the_vocabulary(path: Path) -> None:
    assert imported_parts(path, "dpaudit") <= FOR_MECHANISMS
    assert not any(name.split(".")[0] == "mechanisms" for name in imported_modules(path)), (
        "mechanisms import each other by relative names, so that the wheel can ship them as dpaudit.mechanisms"
    )


def test_reference_mechanisms_import_under_the_name_that_is_installed() -> None:
    # A fresh process outside the repository, as in an installation of the wheel.
    program = "from dpaudit.mechanisms import registry; print(registry.find('laplace-half-scale').truth)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout.strip() == "2.0"


def test_the_wheel_has_the_reference_mechanisms() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {
        "packages": ["dpaudit"],
        "exclude": ["dpaudit/mechanisms"],
        "force-include": {"mechanisms": "dpaudit/mechanisms"},
    }


def test_import_is_light() -> None:
    heavy = ["scipy.stats", "statsmodels", "hypothesis", "pandas", "matplotlib", "sklearn", "dp_accounting"]
    program = f"import sys, dpaudit; print([name for name in {heavy!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("epsilon", "verdict"), [(1.0, "INCONCLUSIVE"), (0.1, "VIOLATION")], ids=["undecided", "violation"]
)
def test_an_audit_of_a_pair_loads_only_what_it_needs(epsilon: float, verdict: str) -> None:
    # A violation is shrunk, counted with its intervals and printed: nothing on that way may need statsmodels.
    heavy = ["scipy.stats", "scipy.optimize", "statsmodels", "pandas", "matplotlib", "sklearn", "dp_accounting"]
    program = (
        "import sys, dpaudit\n"
        "laplace = dpaudit.batched(lambda data, size, rng: data + rng.laplace(size=size))\n"
        f"result = dpaudit.audit(laplace, dpaudit.ApproxDP({epsilon}, 1e-5), [(0.0, 1.0)], samples=2000)\n"
        "assert (result.witness is None) == (result.verdict is not dpaudit.Verdict.VIOLATION)\n"
        "str(result), result.to_dict()\n"
        f"print(result.verdict, [name for name in {heavy!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == f"{verdict} []"


def test_every_public_name_resolves() -> None:
    import dpaudit

    for name in dpaudit.__all__:
        assert getattr(dpaudit, name) is not None
    with pytest.raises(AttributeError, match="Did you mean 'assert_private'"):
        dpaudit.assert_privat  # noqa: B018
