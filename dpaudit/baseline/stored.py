"""The baseline file: for each audit its claim, the power of the run, and the event that differed most between the sides.

It holds no times and no curves, so an unchanged mechanism gives an unchanged file, and diffs are short.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit._util.files import write_whole
from dpaudit._util.terminal.exit_codes import ExitCode
from dpaudit._util.validation import check_open_unit
from dpaudit.claims import Claim, Verdict
from dpaudit.engine.views.plain_events import read_event
from dpaudit.errors import InvalidArgument
from dpaudit.report.document import Document
from dpaudit.result.model import Channel, Result, claim_from_dict, claim_to_dict, versions
from dpaudit.utility.result import AccuracyResult

BASELINE_FORMAT = 1
STORED_DIGITS = 6
MOST_TRIALS = 2**53  # larger than any count, and exact as a float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leading:
    """The event that differs most between two data sets, and its frequency on each, as (count, trials)."""

    data: str  # Python source where there is one, otherwise the repr
    neighbour: str
    text: str  # the event in words
    event: Mapping[str, Any] | None = None  # see `plain_events`; None where it has no plain form
    on_data: tuple[int, int] | None = None
    on_neighbour: tuple[int, int] | None = None

    def same_question(self, other: Leading) -> bool:
        """Return True if both concern the same event on the same pair. Learned scores have no plain form and are never equal."""
        mine, theirs = (self.data, self.neighbour, self.text), (other.data, other.neighbour, other.text)
        return mine == theirs and self.event is not None and self.event == other.event

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "data": self.data,
            "neighbour": self.neighbour,
            "text": self.text,
            "event": self.event,
            "on_data": None if self.on_data is None else list(self.on_data),
            "on_neighbour": None if self.on_neighbour is None else list(self.on_neighbour),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Leading:
        """Read back what :meth:`to_dict` wrote."""
        event = _with_names(plain.get("event"))
        if event is not None:
            read_event(event)
        return cls(
            data=_text(plain, "data"),
            neighbour=_text(plain, "neighbour"),
            text=_text(plain, "text"),
            event=event,
            on_data=_counts(plain.get("on_data")),
            on_neighbour=_counts(plain.get("on_neighbour")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The part of a result that a baseline keeps."""

    name: str
    path: str
    claim: Claim
    verdict: Verdict
    expect: Verdict | None
    channel: Channel
    alpha: float
    samples: int
    seed: int
    epsilon_lower: float
    delta: float
    detectable_epsilon: float
    leading: Leading | None = None

    def __post_init__(self) -> None:
        check_open_unit(alpha=self.alpha)
        for name in ("epsilon_lower", "delta", "detectable_epsilon"):
            if not getattr(self, name) >= 0.0:
                raise InvalidArgument(
                    f"{name}={getattr(self, name)!r} of the audit {self.name!r} must be zero or positive."
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the name, under which it is stored."""
        return {
            "path": self.path,
            "claim": claim_to_dict(self.claim),
            "verdict": self.verdict.value,
            "expect": None if self.expect is None else self.expect.value,
            "channel": self.channel.value,
            "alpha": self.alpha,
            "samples": self.samples,
            "seed": self.seed,
            "epsilon_lower": _rounded(self.epsilon_lower),
            "delta": self.delta,
            "detectable_epsilon": _rounded(self.detectable_epsilon),
            "leading": None if self.leading is None else self.leading.to_dict(),
        }

    @classmethod
    def from_dict(cls, name: str, plain: Mapping[str, Any]) -> Stored:
        """Read back what :meth:`to_dict` wrote."""
        numbers = {key: float(plain[key]) for key in ("alpha", "epsilon_lower", "delta", "detectable_epsilon")}
        return cls(
            name=name,
            path=_text(plain, "path"),
            claim=claim_from_dict(plain["claim"]),
            verdict=Verdict(plain["verdict"]),
            expect=None if plain["expect"] is None else Verdict(plain["expect"]),
            channel=Channel(plain["channel"]),
            samples=int(plain["samples"]),
            seed=int(plain["seed"]),
            leading=None if plain["leading"] is None else Leading.from_dict(plain["leading"]),
            **numbers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """All audits of a run, by name."""

    audits: Mapping[str, Stored]
    versions: Mapping[str, str] = field(default_factory=versions)
    accuracy: Mapping[str, AccuracyResult] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()  # audits that could not be run; not written to the file
    exit_code: ExitCode = ExitCode.OK  # of the run, where this is one

    @classmethod
    def of(cls, document: Document, measured: Mapping[str, Leading] | None = None) -> Baseline:
        """Return the baseline of a document; ``measured`` are leading events counted on fresh outputs."""
        audits: dict[str, Stored] = {}
        for entry in sorted(document.entries, key=lambda entry: entry.result.name):
            result = entry.result
            audits[result.name] = Stored(
                name=result.name,
                path=entry.path,
                claim=result.claim,
                verdict=result.verdict,
                expect=entry.expect,
                channel=result.channel,
                alpha=result.alpha,
                samples=result.samples,
                seed=result.seed,
                epsilon_lower=result.epsilon_lower,
                delta=result.delta,
                detectable_epsilon=result.detectable_epsilon,
                leading=(measured or {}).get(result.name) or leading_of(result),
            )
        return cls(
            audits=audits,
            accuracy={entry.result.name: entry.result for entry in document.accuracy},
            failed=frozenset(failure.name for failure in document.failures),
            exit_code=document.exit_code(),
        )

    def to_json(self) -> str:
        """The text of the file: sorted keys and one item a line, so that two of them diff well."""
        plain: dict[str, Any] = {
            "tool": "dpaudit",
            "kind": "baseline",
            "format": BASELINE_FORMAT,
            "versions": dict(self.versions),
            "audits": {name: stored.to_dict() for name, stored in self.audits.items()},
        }
        if self.accuracy:
            plain["accuracy"] = {name: result.to_dict() for name, result in self.accuracy.items()}
        return json.dumps(plain, indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, *, origin: str = "the file") -> Baseline:
        """Read a baseline, or the results of a run; anything else is an error that says what is wrong with it."""
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"{origin} is not JSON: {error}.") from None
        is_baseline = isinstance(plain, dict) and plain.get("kind") == "baseline"
        if is_baseline and plain.get("tool") != "dpaudit":
            raise InvalidArgument(f"{origin} was not written by dpaudit.")
        if is_baseline and plain.get("format") != BASELINE_FORMAT:
            raise InvalidArgument(
                f"{origin} has format {plain.get('format')!r}; this version reads format {BASELINE_FORMAT}."
            )
        document = None if is_baseline else Document.from_json(text, origin=origin)
        try:
            if document is not None:
                return cls.of(document)
            audits = {str(name): Stored.from_dict(str(name), item) for name, item in plain["audits"].items()}
            accuracy = {str(n): AccuracyResult.from_dict(item) for n, item in plain.get("accuracy", {}).items()}
            read_versions = {str(name): str(text) for name, text in plain["versions"].items()}
            return cls(audits=audits, versions=read_versions, accuracy=accuracy)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidArgument(f"{origin} is damaged: {type(error).__name__}: {error}.") from None


def leading_of(result: Result) -> Leading | None:
    """The leading event that a result carries: the engine's, or the witness of a violation."""
    plain = result.outputs.get("leading")
    if isinstance(plain, Mapping):
        return Leading.from_dict(plain)
    witness = result.witness
    if witness is None:
        return None
    return Leading(
        data=witness.data,
        neighbour=witness.neighbour,
        text=witness.event,
        on_data=(witness.on_data.count, witness.on_data.trials),
        on_neighbour=(witness.on_neighbour.count, witness.on_neighbour.trials),
    )


def read(path: Path) -> Baseline:
    """Read a baseline from a file. One that cannot be read is an error, never skipped."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{str(path)!r} cannot be read: {error}.") from None
    return Baseline.from_json(text, origin=str(path))


def save(path: Path, baseline: Baseline) -> None:
    """Write a baseline, whole or not at all."""
    write_whole(path, baseline.to_json())


def _rounded(value: float) -> float | str:
    return float(f"{value:.{STORED_DIGITS}g}") if math.isfinite(value) else str(value)


def _with_names(value: Any) -> Any:
    """Infinities as text, which JSON has no number for; ``float`` reads them back."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _with_names(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_names(item) for item in value]
    return value


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = plain[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text")
    return value


def _counts(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    count, trials = value
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in (count, trials))
    if not whole or not 0 <= count <= trials or not 0 < trials < MOST_TRIALS:
        raise ValueError(f"{value!r} is not a count of so many trials")
    return count, trials
