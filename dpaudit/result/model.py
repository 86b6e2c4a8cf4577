"""Results of audits: values that print, pickle, and convert to a versioned dict and back."""

from __future__ import annotations

import enum
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from dpaudit._util.deprecation import renamed_fields
from dpaudit.claims import CLAIM_KINDS, Claim, Relation, Verdict
from dpaudit.errors import InvalidArgument

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESULT_FORMAT = 2
# Format 1 is read too: it has other names for these entries of a result and of its witness.
ADDED: Mapping[str, Any] = {"samples_confirming": 0, "coverage": 1.0}  # entries that results of format 1 lack
# Entries that results of format 2 may lack.
ADDED_LATER: Mapping[str, Any] = {"searched": [], "samples_needed": None, "accumulated": []}
OLD_RESULT_NAMES = {"log_threshold": "threshold"}
OLD_WITNESS_NAMES = {"observed_log_ratio": "epsilon"}


class Channel(enum.Enum):
    """The part of a release that is audited."""

    VALUE = "value"
    REPRESENTATION = "representation"
    TIMING = "timing"


class StoppedBy(enum.Enum):
    """The reason why an audit ended."""

    VIOLATION = "violation"
    EXACT = "exact"  # the exact law of the code refuted the claim, without samples
    SAMPLES = "samples"
    SECONDS = "seconds"
    INTERRUPT = "interrupt"
    TIMEOUT = "timeout"
    LOST_WORKER = "lost worker"
    CONTROL = "control"  # timing: calls on D and on a copy of D differed


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that produced a result."""
    found = {"python": platform.python_version()}
    for package in ("dpaudit", "numpy", "scipy", "hypothesis"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequency:
    """The frequency of an event on one side, with an exact interval (Clopper-Pearson) for its probability."""

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


@renamed_fields(epsilon="observed_log_ratio")
@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The smallest pair and event found, with their counts on fresh outputs."""

    data: str  # Python source where there is one, otherwise the repr
    neighbour: str
    literal: bool  # True if both are source code that recreates them
    event: str
    event_code: str  # a Python expression in `output`, or empty where there is none
    on_data: Frequency
    on_neighbour: Frequency
    observed_log_ratio: float  # of the observed shares, at the claim's delta
    confirmed: bool  # True if the pair was confirmed on fresh outputs
    shrunk: bool  # True if it is smaller than the pair that the audit found
    seed: int
    mechanism: str  # an expression that recreates the mechanism, or empty
    script_text: str = ""

    def script(self) -> str:
        """Return a stand-alone Python program that repeats the measurement and prints it."""
        return self.script_text


@renamed_fields(threshold="log_threshold")
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of an audit: ``repr`` is one line, ``print`` shows all of it."""

    name: str
    claim: Claim
    verdict: Verdict
    epsilon_lower: float
    delta: float  # the delta at which epsilon_lower is stated
    parameter_lower: float  # the bound in the claim's own parameter
    alpha: float
    samples: int  # outputs drawn up to the verdict: both sides, all pairs, learning included
    seconds: float
    pairs: int  # pairs of data sets that were sampled
    channel: Channel
    relation: Relation | None
    detectable_epsilon: float  # smallest epsilon that would have been detected, by an event of probability 0.1
    detectable: Mapping[float, float] = field(hash=False)  # the same for other probabilities
    stopped_by: StoppedBy
    reproducible: bool
    seed: int
    witness: Witness | None = None
    messages: tuple[str, ...] = ()
    trajectory: tuple[tuple[int, float], ...] = ()  # (samples, log-wealth against the claim)
    log_threshold: float = math.inf  # log-wealth at which the claim is refuted
    samples_confirming: int = 0  # single releases that confirmed a violation found on outputs of larger calls
    samples_after: int = 0  # spent on finding and measuring a small example
    coverage: float = 1.0  # share of the outputs that fell where a bet could have been placed
    samples_needed: int | None = None  # about how many would decide; None: decided, or no number would
    searched: tuple[str, ...] = ()  # scores that were tried late, because the usual events gave no evidence
    outputs: Mapping[str, Any] = field(default_factory=dict, hash=False)  # small summary for pictures
    accumulated: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)  # the runs whose evidence was kept
    versions: Mapping[str, str] = field(default_factory=versions, hash=False)

    def __str__(self) -> str:
        from dpaudit.result.text import render

        return render(self)

    def __repr__(self) -> str:
        from dpaudit.result.text import headline

        one_line = " ".join(headline(self).split())
        return f"<Result {one_line}>"

    def __bool__(self) -> bool:
        # `assert dpaudit.audit(...)` would otherwise pass on a violation too.
        raise TypeError(
            "The truth value of a Result is ambiguous. Compare result.verdict with a dpaudit.Verdict, or use "
            "dpaudit.assert_private(...) in a test."
        )

    def _repr_html_(self) -> str:
        from dpaudit.result.notebook import as_html

        return as_html(self)

    def plot(
        self, kind: Literal["outputs", "evidence", "profile", "runs"] = "outputs", *, axes: Axes | None = None
    ) -> Axes:
        """Draw a picture of the result with matplotlib.

        Parameters
        ----------
        kind : {"outputs", "evidence", "profile", "runs"}
            Outputs on both data sets with the event; evidence against the number of samples; the claimed privacy profile
            with the lower bounds; or evidence and bound over the runs whose evidence was kept (``accumulate=``).
        axes : matplotlib.axes.Axes, optional
            Where to draw; None: on a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, whose ``figure.savefig(...)`` writes a file.
        """
        from dpaudit.result.plots import plot

        return plot(self, kind, axes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; infinities are the strings ``"inf"`` and ``"-inf"``."""
        plain: dict[str, Any] = {"format": RESULT_FORMAT}
        for name in self.__dataclass_fields__:
            plain[name] = as_plain(getattr(self, name))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Result:
        """Read back what :meth:`to_dict` wrote."""
        if plain.get("format") not in (1, RESULT_FORMAT):
            raise InvalidArgument(
                f"format={plain.get('format')!r} of a result must be 1 or {RESULT_FORMAT}; it is from another version."
            )
        old = plain["format"] == 1
        present = {**ADDED_LATER, **(ADDED if old else {}), **plain}
        fields = _fields(cls, present, OLD_RESULT_NAMES if old else {})
        for name in ("epsilon_lower", "delta", "parameter_lower", "detectable_epsilon", "log_threshold"):
            fields[name] = float(fields[name])
        fields["claim"] = claim_from_dict(plain["claim"])
        fields["verdict"] = Verdict(plain["verdict"])
        fields["channel"] = Channel(plain["channel"])
        fields["stopped_by"] = StoppedBy(plain["stopped_by"])
        fields["relation"] = None if plain["relation"] is None else Relation(plain["relation"])
        fields["detectable"] = {float(mass): float(value) for mass, value in plain["detectable"].items()}
        fields["messages"] = tuple(plain["messages"])
        fields["searched"], fields["accumulated"] = tuple(fields["searched"]), tuple(fields["accumulated"])
        fields["trajectory"] = tuple((int(n), float(w)) for n, w in plain["trajectory"])
        if plain["witness"] is not None:
            shown = _fields(Witness, plain["witness"], OLD_WITNESS_NAMES if old else {})
            shown["observed_log_ratio"] = float(shown["observed_log_ratio"])
            for side in ("on_data", "on_neighbour"):
                shown[side] = Frequency(**plain["witness"][side])
            fields["witness"] = Witness(**shown)
        return cls(**fields)


def with_note(result: Result, note: str) -> Result:
    """Return the result with one more message, if there is one."""
    return replace(result, messages=(*result.messages, note)) if note else result


def _fields(cls: type[Any], plain: Mapping[str, Any], old_names: Mapping[str, str]) -> dict[str, Any]:
    """Return the entries of a dict that are fields of a dataclass, some of them under older names."""
    return {name: plain[old_names.get(name, name)] for name in cls.__dataclass_fields__}


def claim_to_dict(claim: Claim) -> dict[str, Any]:
    """Return a claim as its kind, parameters and relation."""
    parameters = {
        ("delta" if name == "delta_claimed" else name): as_plain(getattr(claim, name))
        for name, field in claim.__dataclass_fields__.items()  # type: ignore[attr-defined]  # every claim is a dataclass
        if name != "relation" and field.compare
    }
    return {
        "kind": type(claim).__name__,
        "parameters": parameters,
        "relation": claim.relation.value if claim.relation else None,
    }


def claim_from_dict(plain: Mapping[str, Any]) -> Claim:
    """Read back what :func:`claim_to_dict` wrote; only the claims of this package can be named."""
    if plain["kind"] not in CLAIM_KINDS:
        raise InvalidArgument(f"kind={plain['kind']!r} must be one of {', '.join(CLAIM_KINDS)}.")
    relation = None if plain["relation"] is None else Relation(plain["relation"])
    made: Claim = CLAIM_KINDS[plain["kind"]](**plain["parameters"], relation=relation)
    return made


def as_plain(value: Any) -> Any:
    """Return any part of a result as plain data for JSON; numbers that are not finite become text."""
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
