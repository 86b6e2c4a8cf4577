"""Finding audits, and importing the files of users."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.cli.collect import collect, load_file, load_target
from dpaudit.errors import InvalidArgument

AUDIT = "dpaudit.Audit(name={!r}, mechanism=len, claim=dpaudit.PureDP(1.0), neighbours=[([], [1])])"


@pytest.fixture(autouse=True)
def _imports_are_undone(tmp_path: Path) -> Iterator[None]:
    path, modules = list(sys.path), dict(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    importlib.invalidate_caches()


def write(root: Path, name: str, *audits: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"audit{number} = {AUDIT.format(audit)}" for number, audit in enumerate(audits)]
    path.write_text("import dpaudit\n" + "\n".join(lines) + "\n" + text)
    return path


def names(root: Path, *targets: str) -> list[str]:
    return [item.audit.name for item in collect(targets, root=root)]


def test_folders_files_and_names(tmp_path: Path) -> None:
    write(tmp_path, "checks_a/b.py", "b1", "b2")
    write(tmp_path, "checks_a/a.py", "a1")
    write(tmp_path, "checks_a/deep/c.py", "c1")
    assert names(tmp_path, "checks_a") == ["a1", "b1", "b2", "c1"]
    assert names(tmp_path, "checks_a/b.py") == ["b1", "b2"]
    assert names(tmp_path, "checks_a/b.py:audit1") == ["b2"]
    assert names(tmp_path, "checks_a.b:audit0") == ["b1"]
    assert names(tmp_path, "checks_a.b") == ["b1", "b2"]
    assert names(tmp_path, "checks_a", "checks_a/b.py") == ["a1", "b1", "b2", "c1"]  # once each


def test_private_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("_helper.py", ".hidden/x.py", "__pycache__/y.py", "conftest.py", "_private/z.py"):
        write(tmp_path, f"checks_b/{name}", name, text="raise SystemExit('executed')\n")
    write(tmp_path, "checks_b/open.py", "open", text=f"_private = {AUDIT.format('private')}\n")
    assert names(tmp_path, "checks_b") == ["open"]


def test_lists_and_lines(tmp_path: Path) -> None:
    text = f"many = [\n    {AUDIT.format('first')},\n    {AUDIT.format('second')},\n]\nlong = (\n    {AUDIT.format('third')}\n)\n"
    write(tmp_path, "checks_c.py", "zero", text=text)
    found = collect(["checks_c.py"], root=tmp_path)
    assert [(item.audit.name, item.path, item.line) for item in found] == [
        ("zero", "checks_c.py", 2),
        ("first", "checks_c.py", 4),
        ("second", "checks_c.py", 5),
        ("third", "checks_c.py", 7),
    ]


def test_relative_to_where_we_are_then_to_the_root(tmp_path: Path) -> None:
    write(tmp_path, "checks_d/x.py", "at the root")
    write(tmp_path, "inner/checks_d/x.py", "inside")
    here = tmp_path / "inner"
    assert [item.audit.name for item in collect(["checks_d/x.py"], root=tmp_path, here=here)] == ["inside"]
    assert [item.path for item in collect(["checks_d/x.py"], root=tmp_path, here=here)] == ["inner/checks_d/x.py"]
    assert [item.audit.name for item in collect(["checks_d"], root=tmp_path, here=tmp_path / "elsewhere")] == [
        "at the root"
    ]


def test_two_of_one_name(tmp_path: Path) -> None:
    write(tmp_path, "checks_e/a.py", "same")
    write(tmp_path, "checks_e/b.py", "same")
    with pytest.raises(
        InvalidArgument, match=r"Two audits are called 'same': at checks_e/a.py:2 and at checks_e/b.py:2"
    ):
        collect(["checks_e"], root=tmp_path)


def test_an_audit_imported_elsewhere_counts_once(tmp_path: Path) -> None:
    write(tmp_path, "checks_f/a.py", "shared")
    write(tmp_path, "checks_f/b.py", text="from checks_f.a import audit0\n")
    assert names(tmp_path, "checks_f") == ["shared"]


def test_modules_have_names_that_a_worker_can_import(tmp_path: Path) -> None:
    below = write(tmp_path, "checks_g/m.py", text="def f(data):\n    return 0\n")
    module = load_file(below, tmp_path)
    assert module.__name__ == "checks_g.m"
    assert pickle.loads(pickle.dumps(module.f)) is module.f
    outside = write(tmp_path, "out/other_module_g.py", text="def f(data):\n    return 0\n")
    assert load_file(outside, tmp_path / "checks_g").__name__ == "other_module_g"


def test_a_name_that_is_taken_is_not_mistaken(tmp_path: Path) -> None:
    for name in ("json.py", "not-a-name.py", "collections/abc.py"):
        module = load_file(write(tmp_path, name, text=f"WHERE = {name!r}\n"), tmp_path)
        assert name == module.WHERE
        assert load_file(tmp_path / name, tmp_path) is module
    import json

    assert hasattr(json, "dumps")


def test_a_file_of_the_same_name_in_another_project(tmp_path: Path) -> None:
    for place in ("one", "two"):
        write(tmp_path, f"{place}/checks_h/same.py", place)
        assert names(tmp_path / place, "checks_h") == [place]


def test_packages(tmp_path: Path) -> None:
    write(tmp_path, "checks_i/__init__.py", text="SCALE = 2\n")
    write(
        tmp_path, "checks_i/m.py", text="from . import SCALE\nassert SCALE == 2\n" + f"x = {AUDIT.format('inside')}\n"
    )
    assert names(tmp_path, "checks_i") == ["inside"]
    write(tmp_path, "checks_j/__init__.py", text="1 / 0\n")
    write(tmp_path, "checks_j/m.py", "never")
    with pytest.raises(InvalidArgument, match=r"checks_j/m.py cannot be imported: ZeroDivisionError.*__init__.py:3"):
        collect(["checks_j"], root=tmp_path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "names nothing"),
        (":x", "names nothing"),
        ("a\0b", "names nothing"),
        ("chekcs_k", "neither a path nor a module.*Did you mean 'checks_k'?"),
        ("checks_k/mm.py", "does not exist. Did you mean 'm.py'?"),
        ("checks_k/m.py:audit1", "checks_k/m.py has no 'audit1'. Did you mean 'audit0'?"),
        ("checks_k/m.py:dpaudit", "is not an Audit"),
        ("checks_k:audit0", "checks_k is a folder; name a file"),
        ("checks_k/data.txt", "not a Python file"),
        ("..x", "does not exist"),
        ("a b", "does not exist"),
        ("checks_k.broken", "ZeroDivisionError"),
        (
            "checks_k/broken.py",
            "checks_k/broken.py cannot be imported: ZeroDivisionError: division by zero .*broken.py:3",
        ),
    ],
)
def test_invalid_targets_are_refused(tmp_path: Path, target: str, message: str) -> None:
    write(tmp_path, "checks_k/m.py", "good")
    write(tmp_path, "checks_k/broken.py", text="1 / 0\n")
    (tmp_path / "checks_k" / "data.txt").write_text("")
    with pytest.raises(InvalidArgument, match=message):
        collect([target], root=tmp_path)


def test_targets(tmp_path: Path) -> None:
    write(tmp_path, "checks_l.py", text="class Holder:\n    value = 3\n")
    assert load_target("checks_l.py:Holder.value", root=tmp_path) == 3
    assert load_target("math:sqrt", root=tmp_path)(4.0) == 2.0
    for target, message in (
        ("checks_l.py:Holder.valeu", "there is no 'valeu'. Did you mean 'value'?"),
        ("checks_l.py", "must look like file.py:name"),
        ("missing.py:f", "does not exist"),
        ("no_such_module:f", "neither a path nor a module"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            load_target(target, root=tmp_path)
