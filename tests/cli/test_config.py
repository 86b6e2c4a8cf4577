"""Settings: where they come from, which wins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.cli.config import PROFILES, Settings, find_pyproject, load, read_table
from dpaudit.errors import InvalidArgument


def written(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_command_line_before_environment_before_file(tmp_path: Path) -> None:
    written(tmp_path, "[tool.dpaudit]\nsamples = 10\nseed = 1\nalpha = 0.1\n")
    settings = load(
        tmp_path, environ={"DPAUDIT_SEED": "2", "DPAUDIT_ALPHA": "0.2"}, overrides={"alpha": 0.3, "seed": None}
    )
    assert (settings.samples, settings.seed, settings.alpha) == (10, 2, 0.3)


def test_without_a_file(tmp_path: Path) -> None:
    assert load(tmp_path, environ={}) == Settings(root=tmp_path)


def test_the_nearest_file_upwards_is_read_and_is_the_root(tmp_path: Path) -> None:
    written(tmp_path, '[tool.dpaudit]\naudits = ["privacy"]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    settings = load(inner, environ={})
    assert settings.audits == ("privacy",)
    assert settings.root == tmp_path
    assert find_pyproject(inner) == tmp_path / "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alhpa = 1", "'alhpa' in .* is not a setting of dpaudit. Did you mean 'alpha'?"),
        ("root = 'x'", "'root' in .* is not a setting"),
        ("audits = 'audits'", "must be a list of paths"),
        ("audits = 3", "must be a list of paths"),
        ("audits = [1]", "must be a list of paths"),
        ("channel = 'vaule'", "Did you mean 'value'?"),
        ("channel = 1", "channel=1 in .* must be a string"),
        ("fail_on = 'always'", "fail_on='always' must be one of"),
        ("fail-on = 'never'\nfail_on = 'never'", "'fail_on' is set twice"),
        ("profile = 'fast'", "profile='fast' must be one of 'ci', 'deep'"),
        ("samples = 1.5", "samples=1.5 must be a whole number"),
        ("samples = 1", "at least 2"),
        ("samples = true", "samples=True"),
        ("seconds = -1", "seconds=-1 must be positive"),
        ("seconds = inf", "must be positive and finite"),
        ("seed = -1", "seed=-1"),
        ("alpha = 0", "alpha=0 must lie strictly between 0 and 1. .from .tool.dpaudit. of pyproject.toml"),
        ("max_audits = 0", "max_audits=0"),
        ("workers = 'two'", "workers='two' must be a whole number"),
    ],
)
def test_invalid_settings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        load(written(tmp_path, f"[tool.dpaudit]\n{text}\n"), environ={})


@pytest.mark.parametrize(
    "text", ["tool = 3", "[tool]\ndpaudit = 3", "[tool.dpaudit", "a = " + "[" * 3000, '[[tool.dpaudit]]\nalpha = "x"']
)
def test_damaged_files(tmp_path: Path, text: str) -> None:
    written(tmp_path, text)
    if text == "tool = 3":
        assert read_table(tmp_path / "pyproject.toml") == {}
    else:
        with pytest.raises(InvalidArgument, match=r"TOML|must be a table"):
            load(tmp_path, environ={})


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="not valid TOML"):
        load(tmp_path, environ={})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "DPAUDIT_ALHPA",
            "1",
            "DPAUDIT_ALHPA in the environment is not a setting of dpaudit. Did you mean 'DPAUDIT_ALPHA'?",
        ),
        ("DPAUDIT_SEED", "x", "DPAUDIT_SEED='x' must be a number"),
        ("DPAUDIT_SEED", "1.5", "seed=1.5 must be a whole number"),
        ("DPAUDIT_CHANNEL", "vaule", "from the environment"),
    ],
)
def test_environments_that_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        load(tmp_path, environ={name: text})


def test_numbers_may_be_written_with_an_exponent(tmp_path: Path) -> None:
    assert load(tmp_path, environ={"DPAUDIT_SAMPLES": "1e5"}).samples == 100_000
    assert load(written(tmp_path, "[tool.dpaudit]\nsamples = 1e6\n"), environ={}).samples == 1_000_000


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, environ={"DPAUDIT_SEED": ""}).seed is None


def test_a_share_of_alpha() -> None:
    assert Settings().alpha_each == pytest.approx(1e-9)
    assert Settings(alpha=0.5, max_audits=5).alpha_each == 0.1
    with pytest.raises(InvalidArgument, match="leaves no alpha"):
        Settings(max_audits=10**400)


def test_a_setting_wins_over_the_profile() -> None:
    assert Settings().overrides() == {}
    assert Settings(profile="ci").overrides() == {"seconds": 5.0} == PROFILES["ci"]
    assert Settings(profile="ci", seconds=1.0, seed=3).overrides() == {"seconds": 1.0, "seed": 3}
