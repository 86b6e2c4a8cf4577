"""What an audit found, as values that print, pickle, and convert to a versioned dict and back."""

from __future__ import annotations

import enum
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from dpaudit import claims
from dpaudit.claims import Claim, Relation, Verdict
from dpaudit.errors import InvalidArgument

FORMAT = 1


class Channel(enum.Enum):
    """What is watched."""

    VALUE = "value"
    REPRESENTATION = "representation"
    TIMING = "timing"


class StoppedBy(enum.Enum):
    """Why an audit ended."""

    VIOLATION = "violation"
    SAMPLES = "samples"
    SECONDS = "seconds"
    INTERRUPT = "interrupt"
    TIMEOUT = "timeout"
    LOST_WORKER = "lost worker"
    CONTROL = "control"  # timing: calls on D and on a copy of D could be told apart


@cache
def versions() -> dict[str, str]:
    """Versions of what produced a result."""
    found = {"python": platform.python_version()}
    for package in ("dpaudit", "numpy", "scipy", "hypothesis"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequency:
    """How often an event happened on one side, with an exact interval (Clopper-Pearson) for its probability."""

    count: int
    trials: int
    low: float
    high: float

    @property
    def estimate(self) -> float:
        """Observed share."""
        return self.count / self.trials if self.trials else math.nan

    def __str__(self) -> str:
        return f"{self.count} of {self.trials} ({self.estimate:.4g}, between {self.low:.4g} and {self.high:.4g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The smallest pair and event found, with what was counted on fresh outputs."""

    data: str  # Python source where there is one, otherwise the repr
    neighbour: str
    literal: bool  # whether the two are source that makes them again
    event: str
    event_code: str  # a Python expression in `output`, or empty where there is none
    on_data: Frequency
    on_neighbour: Frequency
    epsilon: float  # log-ratio of the observed shares, at the claim's delta
    confirmed: bool  # whether the pair was confirmed on fresh outputs
    shrunk: bool  # whether it is smaller than the pair the audit found
    seed: int
    mechanism: str  # how to import it, or empty
    script_text: str = ""

    def script(self) -> str:
        """A stand-alone Python program that repeats the measurement and prints it."""
        return self.script_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an audit found."""

    name: str
    claim: Claim
    verdict: Verdict
    epsilon_lower: float
    delta: float  # the delta at which epsilon_lower is stated
    parameter_lower: float  # the bound in the claim's own parameter
    alpha: float
    samples: int  # drawn up to the verdict: both sides, all pairs, learning included
    seconds: float
    pairs: int  # pairs of data sets that were sampled
    channel: Channel
    relation: Relation | None
    detectable_epsilon: float  # what would have been caught, by an event of probability 0.1
    detectable: Mapping[float, float]  # the same for other probabilities
    stopped_by: StoppedBy
    reproducible: bool
    seed: int
    witness: Witness | None = None
    messages: tuple[str, ...] = ()
    trajectory: tuple[tuple[int, float], ...] = ()  # (samples, log-wealth against the claim)
    threshold: float = math.inf  # log-wealth at which the claim is refuted
    samples_after: int = 0  # spent on shrinking and confirming
    outputs: Mapping[str, Any] = field(default_factory=dict)  # small summary for pictures
    versions: Mapping[str, str] = field(default_factory=versions)

    def __str__(self) -> str:
        from dpaudit.engine.text import render

        return render(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; infinities are the strings ``"inf"`` and ``"-inf"``."""
        plain: dict[str, Any] = {"format": FORMAT}
        for name in self.__dataclass_fields__:
            plain[name] = as_plain(getattr(self, name))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Result:
        """Read back what :meth:`to_dict` wrote."""
        if plain.get("format") != FORMAT:
            raise InvalidArgument(
                f"format={plain.get('format')!r} of a result must be {FORMAT}; it is from another version."
            )
        fields = {name: plain[name] for name in cls.__dataclass_fields__}
        for name in ("epsilon_lower", "delta", "parameter_lower", "detectable_epsilon", "threshold"):
            fields[name] = float(plain[name])
        fields["claim"] = claim_from_dict(plain["claim"])
        fields["verdict"] = Verdict(plain["verdict"])
        fields["channel"] = Channel(plain["channel"])
        fields["stopped_by"] = StoppedBy(plain["stopped_by"])
        fields["relation"] = None if plain["relation"] is None else Relation(plain["relation"])
        fields["detectable"] = {float(mass): float(value) for mass, value in plain["detectable"].items()}
        fields["messages"] = tuple(plain["messages"])
        fields["trajectory"] = tuple((int(n), float(w)) for n, w in plain["trajectory"])
        if plain["witness"] is not None:
            shown = {**plain["witness"], "epsilon": float(plain["witness"]["epsilon"])}
            for side in ("on_data", "on_neighbour"):
                shown[side] = Frequency(**plain["witness"][side])
            fields["witness"] = Witness(**shown)
        return cls(**fields)


def claim_to_dict(claim: Claim) -> dict[str, Any]:
    """A claim as its kind, parameters and relation."""
    parameters = {
        ("delta" if name == "claimed_delta" else name): as_plain(getattr(claim, name))
        for name in claim.__dataclass_fields__  # type: ignore[attr-defined]  # every claim is a dataclass
        if name != "relation"
    }
    return {
        "kind": type(claim).__name__,
        "parameters": parameters,
        "relation": claim.relation.value if claim.relation else None,
    }


def claim_from_dict(plain: Mapping[str, Any]) -> Claim:
    """Read back what :func:`claim_to_dict` wrote; only the five claims can be named."""
    kinds: dict[str, Any] = {
        kind.__name__: kind
        for kind in (claims.PureDP, claims.ApproxDP, claims.GaussianDP, claims.ZeroConcentratedDP, claims.RenyiDP)
    }
    if plain["kind"] not in kinds:
        raise InvalidArgument(f"kind={plain['kind']!r} must be one of {', '.join(kinds)}.")
    relation = None if plain["relation"] is None else Relation(plain["relation"])
    made: Claim = kinds[plain["kind"]](**plain["parameters"], relation=relation)
    return made


def as_plain(value: Any) -> Any:
    """Anything in a result as plain data for JSON; numbers that are not finite become text."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Witness | Frequency):
        return {name: as_plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [item if type(item) in (int, str) else as_plain(item) for item in value]
    if hasattr(value, "parameter_name"):
        return claim_to_dict(value)
    if hasattr(value, "item"):
        return as_plain(value.item())
    return value
