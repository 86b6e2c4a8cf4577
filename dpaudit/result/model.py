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
    """The output as it is: type, structure, words, numbers."""
    REPRESENTATION = "representation"
    """The low bits and decimals of floating-point numbers."""
    TIMING = "timing"
    """The time that a call takes."""


class StoppedBy(enum.Enum):
    """The reason why an audit ended."""

    VIOLATION = "violation"
    """The claim was refuted."""
    EXACT = "exact"
    """The exact law of the code refuted the claim, without samples."""
    SAMPLES = "samples"
    """All samples were used."""
    SECONDS = "seconds"
    """The time was used up."""
    INTERRUPT = "interrupt"
    """The run was interrupted."""
    TIMEOUT = "timeout"
    """A call took longer than ``timeout``."""
    LOST_WORKER = "lost worker"
    """A worker was lost with outputs that could not be drawn again."""
    CONTROL = "control"
    """Channel timing: calls on the data and on a copy of the data differed."""


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
    """Outputs in the event."""
    trials: int
    """Outputs that were drawn."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""

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

    data: str
    """The data set on which the event is likelier: Python source where there is one, otherwise its repr."""
    neighbour: str
    """The other data set, in the same form."""
    literal: bool
    """True if both are source code that recreates them."""
    event: str
    """The event in words."""
    event_code: str
    """The event as a Python expression in ``output``; empty if there is none."""
    on_data: Frequency
    """The frequency of the event on the data."""
    on_neighbour: Frequency
    """The frequency of the event on the neighbour."""
    observed_log_ratio: float
    """The log-ratio of the observed shares, at the claim's delta. It is an observation, not a bound."""
    confirmed: bool
    """True if the pair was confirmed on fresh outputs."""
    shrunk: bool
    """True if the pair is smaller than the one that the audit found."""
    seed: int
    """The seed with which the event was counted."""
    mechanism: str
    """A Python expression that recreates the mechanism; empty if there is none."""
    script_text: str = ""
    """The program that :meth:`script` returns."""

    def script(self) -> str:
        """Return a stand-alone Python program that repeats the measurement and prints it."""
        return self.script_text


@renamed_fields(threshold="log_threshold")
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of an audit: ``repr`` is one line, ``print`` shows all of it."""

    name: str
    """The name of the mechanism or audit."""
    claim: Claim
    """The claim that was audited."""
    verdict: Verdict
    """The outcome."""
    epsilon_lower: float
    """A lower bound of the true epsilon, wrong with probability at most ``alpha``."""
    delta: float
    """The delta at which ``epsilon_lower`` is stated."""
    parameter_lower: float
    """The same bound in the claim's own parameter, such as rho or mu."""
    alpha: float
    """The probability of a false alarm that was allowed."""
    samples: int
    """Outputs drawn up to the verdict: both sides, all pairs, learning included."""
    seconds: float
    """The time that the audit took."""
    pairs: int
    """Pairs of data sets that were sampled."""
    channel: Channel
    """The part of the output that was audited."""
    relation: Relation | None
    """The relation of the neighbours; None if they name none."""
    detectable_epsilon: float
    """The smallest epsilon that would have been detected, by an event of probability 0.1; infinite if none."""
    detectable: Mapping[float, float] = field(hash=False)
    """The same for events of other probabilities."""
    stopped_by: StoppedBy
    """The reason why the audit ended."""
    reproducible: bool
    """True if the same seed gives the same outputs again."""
    seed: int
    """The seed of the audit, also where none was given."""
    witness: Witness | None = None
    """The example of a violation; None without a violation."""
    messages: tuple[str, ...] = ()
    """Notes about the audit, each a sentence or two."""
    trajectory: tuple[tuple[int, float], ...] = ()
    """The evidence over time: pairs of samples and log-wealth against the claim."""
    log_threshold: float = math.inf
    """The log-wealth at which the claim is refuted."""
    samples_confirming: int = 0
    """Single releases that confirmed a violation found on outputs of larger calls."""
    samples_after: int = 0
    """Outputs spent on finding and measuring a small example."""
    coverage: float = 1.0
    """The share of the outputs that fell where a bet could have been placed."""
    samples_needed: int | None = None
    """About how many samples would decide; None if it is decided, or if no number would."""
    searched: tuple[str, ...] = ()
    """Scores that were tried late, because the usual events gave no evidence."""
    outputs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """A small summary of the outputs on one pair, for pictures."""
    accumulated: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    """The runs whose evidence was kept in a file."""
    versions: Mapping[str, str] = field(default_factory=versions, hash=False)
    """The versions of Python and of the packages that produced the result."""

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
