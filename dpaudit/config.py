"""Settings: command line before environment before ``[tool.dpaudit]`` of the user's pyproject.toml.

An unknown key is an error with a suggestion, never ignored: a misspelt ``alhpa`` must not silently loosen a check.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpaudit.errors import InvalidArgument
from dpaudit.validation import check_choice, check_count, check_open_unit, check_positive, did_you_mean

FAIL_ON = ("violation", "inconclusive", "never")
PREFIX = "DPAUDIT_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is told; None means: as each audit says, or the default."""

    audits: tuple[str, ...] = ()  # where audit files are; empty: none are collected unasked
    samples: int | None = None
    seconds: float | None = None
    alpha: float = 1e-6  # of a whole run
    max_audits: int = 1000  # each audit gets alpha / max_audits in pytest
    seed: int | None = None
    channel: str | None = None
    workers: int = 1
    executor: str | None = None
    baseline: str | None = None
    fail_on: str = "inconclusive"

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_count(samples=self.samples)
        if self.seconds is not None:
            check_positive(seconds=self.seconds)
        if self.seed is not None:
            check_count(minimum=0, seed=self.seed)
        if self.channel is not None:
            check_choice(("value", "representation", "timing"), channel=self.channel)
        check_open_unit(alpha=self.alpha)
        check_count(max_audits=self.max_audits, workers=self.workers)
        check_choice(FAIL_ON, fail_on=self.fail_on)

    def overrides(self) -> dict[str, Any]:
        """Options for every audit that were set."""
        named = ("samples", "seconds", "seed", "channel")
        return {name: getattr(self, name) for name in named if getattr(self, name) is not None}


def load(
    start: Path, *, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Settings for a run started in ``start``: the nearest pyproject.toml upwards, the environment, then ``overrides``."""
    settings = Settings()
    path = find_pyproject(start)
    if path is not None:
        settings = _merged(settings, read_table(path), f"[tool.dpaudit] of {path.name}")
    settings = _merged(settings, _from_environment(os.environ if environ is None else environ), "the environment")
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    return _merged(settings, given, "the command line")


def find_pyproject(start: Path) -> Path | None:
    """The nearest pyproject.toml in ``start`` or above."""
    for folder in (start, *start.parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file():
            return candidate
    return None


def read_table(path: Path) -> dict[str, Any]:
    """The table ``[tool.dpaudit]``, empty where there is none."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not valid TOML: {error}.") from None
    tool = document.get("tool", {})
    table = tool.get("dpaudit", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise InvalidArgument(f"tool.dpaudit={table!r} of {path.name} must be a table: [tool.dpaudit].")
    return table


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {field.name for field in fields(Settings)}
    found: dict[str, Any] = {}
    for name, text in environ.items():
        if name.startswith(PREFIX) and text:
            key = name.removeprefix(PREFIX).lower()
            if key in known:
                found[key] = _parsed(key, text)
    return found


def _parsed(key: str, text: str) -> Any:
    """A setting from its text in the environment."""
    if key == "audits":
        return tuple(text.split(os.pathsep))
    kinds: dict[str, type] = {"samples": int, "max_audits": int, "seed": int, "workers": int, "seconds": float}
    kinds["alpha"] = float
    kind = kinds.get(key, str)
    try:
        return kind(text)
    except ValueError:
        raise InvalidArgument(f"{PREFIX}{key.upper()}={text!r} must be a {kind.__name__}.") from None


def _merged(settings: Settings, values: Mapping[str, Any], origin: str) -> Settings:
    known = [field.name for field in fields(Settings)]
    clean: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            raise InvalidArgument(f"{key!r} in {origin} is not a setting of dpaudit.{did_you_mean(name, known)}")
        clean[name] = _checked(name, value, origin)
    try:
        return replace(settings, **clean)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error} (from {origin})") from None


def _checked(name: str, value: Any, origin: str) -> Any:
    if name == "audits":
        if isinstance(value, str) or not all(isinstance(item, str) for item in value):
            raise InvalidArgument(f"audits={value!r} in {origin} must be a list of paths.")
        return tuple(value)
    if name in ("channel", "executor", "baseline", "fail_on") and not isinstance(value, str):
        raise InvalidArgument(f"{name}={value!r} in {origin} must be a string.")
    return value
