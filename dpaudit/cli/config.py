"""Settings of a run. The command line wins over the environment, and that over ``[tool.dpaudit]`` of the user's
pyproject.toml.

An unknown key is an error with a suggestion, never ignored: a misspelt ``alhpa`` must not silently loosen a check.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpaudit._util.validation import check_choice, check_count, check_open_unit, check_positive, did_you_mean, shorten
from dpaudit.errors import InvalidArgument
from dpaudit.report.document import FAIL_ON

CHANNELS = ("value", "representation", "timing")
PREFIX = "DPAUDIT_"
# Budgets by name; a value that is set itself (samples, seconds) wins over the budget's.
PROFILES: dict[str, dict[str, Any]] = {
    "ci": {"seconds": 5.0},
    "deep": {"samples": 30_000_000, "seconds": 600.0},
}
_WHOLE = ("samples", "max_audits", "seed", "workers")
_REAL = ("seconds", "timeout", "alpha")
_TEXT = ("channel", "accumulate", "executor", "baseline", "fail_on", "profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a run; None means: as each audit says, or the default."""

    audits: tuple[str, ...] = ()  # folders and files of audits; empty: none are collected by default
    profile: str | None = None
    samples: int | None = None
    seconds: float | None = None
    timeout: float | None = None  # time limit of one call of a mechanism
    alpha: float = 1e-6  # of a whole run
    max_audits: int = 1000  # each audit gets alpha / max_audits, regardless of how many are selected
    seed: int | None = None
    channel: str | None = None
    accumulate: str | None = None  # the file in which evidence is kept from run to run
    workers: int = 1
    executor: str | None = None
    baseline: str | None = None
    fail_on: str = "inconclusive"
    root: Path = Path()  # the folder that paths in the file are relative to; not a setting

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_count(minimum=2, samples=self.samples)
        if self.seconds is not None:
            check_positive(seconds=self.seconds)
        if self.timeout is not None:
            check_positive(timeout=self.timeout)
        if self.seed is not None:
            check_count(minimum=0, seed=self.seed)
        if self.channel is not None:
            check_choice(CHANNELS, channel=self.channel)
        if self.profile is not None:
            check_choice(PROFILES, profile=self.profile)
        check_open_unit(alpha=self.alpha)
        check_count(max_audits=self.max_audits, workers=self.workers)
        if not self.alpha_each > 0.0:
            raise InvalidArgument(f"max_audits={self.max_audits!r} leaves no alpha for an audit.")
        check_choice(FAIL_ON, fail_on=self.fail_on)

    @property
    def alpha_each(self) -> float:
        """Share of alpha of each audit, fixed so that selecting or sharding audits changes nothing."""
        try:
            return self.alpha / self.max_audits
        except OverflowError:
            return 0.0

    def overrides(self) -> dict[str, Any]:
        """Options for every audit that were set, here or by the profile."""
        named = ("samples", "seconds", "timeout", "seed", "channel", "accumulate")
        own = {name: getattr(self, name) for name in named if getattr(self, name) is not None}
        return {**(PROFILES[self.profile] if self.profile else {}), **own}


SETTINGS = tuple(field.name for field in fields(Settings) if field.name != "root")


def load(
    start: Path, *, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Settings for a run started in ``start``: the nearest pyproject.toml upwards, the environment, then ``overrides``."""
    path = find_pyproject(start)
    settings = Settings(root=start if path is None else path.parent)
    if path is not None:
        settings = merged(settings, read_table(path), f"[tool.dpaudit] of {path.name}")
    settings = merged(settings, _from_environment(os.environ if environ is None else environ), "the environment")
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    return merged(settings, given, "the command line")


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgument(f"{path} is not valid TOML: {error or type(error).__name__}.") from None
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror or error}.") from None
    tool = document.get("tool", {})
    table = tool.get("dpaudit", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise InvalidArgument(f"tool.dpaudit={shorten(table)} of {path.name} must be a table: [tool.dpaudit].")
    return table


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in environ.items():
        if name.startswith(PREFIX) and text:
            key = name.removeprefix(PREFIX).lower()
            if key not in SETTINGS:
                known = [f"{PREFIX}{setting.upper()}" for setting in SETTINGS]
                raise InvalidArgument(
                    f"{name} in the environment is not a setting of dpaudit.{did_you_mean(name, known)}"
                )
            found[key] = _parsed(key, text)
    return found


def _parsed(key: str, text: str) -> Any:
    """A setting from its text in the environment."""
    if key == "audits":
        return tuple(part for part in text.split(os.pathsep) if part)
    if key not in _WHOLE + _REAL:
        return text
    try:
        return int(text) if key in _WHOLE and text.strip("+-").isdigit() else float(text)
    except ValueError:
        raise InvalidArgument(f"{PREFIX}{key.upper()}={shorten(text)} must be a number.") from None


def merged(settings: Settings, values: Mapping[str, Any], origin: str) -> Settings:
    """The settings with these values in place of theirs; ``origin`` says in messages where they came from."""
    clean: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in SETTINGS:
            raise InvalidArgument(f"{key!r} in {origin} is not a setting of dpaudit.{did_you_mean(name, SETTINGS)}")
        if name in clean:
            raise InvalidArgument(f"{name!r} is set twice in {origin}.")
        clean[name] = _checked(name, value, origin)
    try:
        return replace(settings, **clean)
    except InvalidArgument as error:
        raise InvalidArgument(f"{error} (from {origin})") from None


def _checked(name: str, value: Any, origin: str) -> Any:
    if name == "audits":
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):
            raise InvalidArgument(f"audits={shorten(value)} in {origin} must be a list of paths.")
        return tuple(value)
    if name in _TEXT and not isinstance(value, str):
        raise InvalidArgument(f"{name}={shorten(value)} in {origin} must be a string.")
    if name in _WHOLE and isinstance(value, float) and value.is_integer():
        return int(value)  # 1e6 is a float in TOML, and allowed as a whole number
    return value
