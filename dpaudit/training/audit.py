r"""Audit a training with canaries in one call: one step in the white box, many runs, one run.

A canary is an example that the auditor puts into the training data, or leaves out; a private training hides which of
the two happened. Let the claim hold for the relation that this is:

- add-remove: the data are the examples with the canary, or without it. Right for Poisson batches
- substitution or zero-out: the data have the canary, or the example ``null`` in its place, so that their number is public.
  Right for shuffled batches, whose number and sizes depend on the number of examples

There are three ways to audit, each with its own test:

**One step.** ``step`` returns the release of one step (a noisy gradient); it costs little, so it is drawn many times on
the two data sets and audited by :func:`dpaudit.audit` against ``step_claim``, a claim for one step. Where ``direction``
is given, what is audited is the release's scalar product with it: post-processing, because the vector is fixed before
anything is drawn. It refutes the claim of the step, from which that of the training is composed.

**Many runs.** ``runs`` trainings with the first canary and as many without it give one score each. Scores of different
runs are independent draws of two laws that the claim bounds, by post-processing: the setting of
:func:`dpaudit.audit_scores`.

**One run.** Every canary is in the data by its own fair coin; one training, and a score for every canary from its one release:
the setting of :func:`dpaudit.one_run_bound`, whose theorem asks just that flipping one coin changes the release within the
claim.

Error probability. Each of the k ways that are used has alpha / k: the probability that any of them reports a violation of
a claim that is kept, or a bound above the truth, is at most alpha (union bound), however they depend on each other. Hence
``epsilon_lower``, the larger of the bounds of many runs and of one run, holds with probability 1 - alpha.

A run that raises, and a score that is NaN, count as a score of minus infinity. That is a function of the release like any other;
to leave such runs out would be selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.deprecation import checked_keywords
from dpaudit._util.validation import check_choice, check_count, check_open_unit, finite_array, shorten
from dpaudit.claims import Claim, Relation, Verdict, claim_delta
from dpaudit.engine.audit import audit
from dpaudit.engine.membership import SCORES, OneRunBound, audit_scores, one_run_bound
from dpaudit.engine.progress import Progress
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Batched, Mechanism, Outputs, Raised, as_mechanism, checked_outputs
from dpaudit.neighbours import fixed
from dpaudit.result.model import Result

Score: TypeAlias = Callable[[Any, Any], float]

STEP, RUNS, ONE_RUN = "step", "runs", "one run"
BATCHES_OF_RUNS = 50
"""Approximate number of calls of a mechanism that trains several times in one call, so that progress can be shown."""
REPLACING = (Relation.SUBSTITUTE, Relation.ZERO_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """The result of :func:`audit_training`; a way that was not used is None.

    ``step`` is about ``step_claim``, ``runs`` and ``one_run`` about ``claim``. Each has alpha divided by the number of ways used.
    ``trainings`` is the number of complete trainings that were run.
    """

    claim: Claim
    alpha: float
    trainings: int
    step: Result | None
    runs: Result | None
    one_run: OneRunBound | None

    @property
    def verdict(self) -> Verdict:
        """VIOLATION if any of them is one; else the verdict of the many runs, or of the step where there are none.

        One run alone is INCONCLUSIVE where it refutes nothing.
        """
        found = [part.verdict for part in (self.step, self.runs, self.one_run) if part is not None]
        if Verdict.VIOLATION in found:
            return Verdict.VIOLATION
        powered = self.step if self.runs is None else self.runs
        return Verdict.INCONCLUSIVE if powered is None else powered.verdict

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on the training's epsilon at the claim's delta, right with probability 1 - alpha."""
        return max((part.epsilon_lower for part in (self.runs, self.one_run) if part is not None), default=0.0)

    def __str__(self) -> str:
        at = f" at delta {delta:g}" if (delta := claim_delta(self.claim)) else ""
        head = (
            f"{self.verdict}  training: claimed {self.claim!r}, shown epsilon >= {self.epsilon_lower:.4g}{at} "
            f"({self.trainings:,} trainings, alpha {self.alpha:g})"
        )
        parts = [str(part).splitlines()[0] for part in (self.step, self.runs, self.one_run) if part is not None]
        return "\n  ".join([head, *parts])


@checked_keywords()
def audit_training(
    train: Any,
    claim: Claim,
    examples: Any,
    canaries: Any,
    score: Score,
    *,
    null: Any = None,
    runs: int | None = 200,
    one_run: bool = True,
    guesses: int | Sequence[int] | None = None,
    step: Any = None,
    step_claim: Claim | None = None,
    direction: ArrayLike | None = None,
    step_samples: int = 100_000,
    alpha: float = 1e-3,
    seed: int = 0,
    detect_factor: float = 2.0,
    progress: bool | None = None,
) -> TrainingAudit:
    """Put canaries into the training data, train, and bound epsilon from below.

    Parameters
    ----------
    train
        The training as a mechanism: ``sample(data, size, rng)``, a function of the data, or what ``dpaudit.per_release`` makes of
        ``f(data, rng)``. It returns what is released: parameters, all noisy gradients, predictions. Every run must have
        randomness of its own.
    claim
        What is claimed of the whole training. Its relation (add-remove by default) defines how a canary is left out.
    examples
        The data without canaries: an array of rows, or a list of anything.
    canaries
        Rows or list entries of the same kind; see :mod:`dpaudit.training`. The first one is used for the step and for many
        runs, all of them for one run.
    score
        ``score(release, canary)`` is large where the release looks as if the canary had been in: minus a loss, or a scalar
        product with the canary's gradient. It may use the release and public things only.
    null
        The example in place of a canary that is left out, if the claim is about substitution or zero-out.
    runs
        Trainings with the canary, and as many without it; None: no such runs.
    one_run
        Train once with all canaries by coins (at least 10 canaries are needed for it to be of use).
    guesses
        As in :func:`dpaudit.one_run_bound`.
    step, step_claim
        A mechanism that releases what one step releases, and what is claimed of it; None: no such audit.
    direction
        A vector: the release of the step is multiplied with it first. The canary's gradient is the best one. None: the
        release as it is; the audit then learns the direction itself.
    step_samples
        Releases of the step, both sides.
    alpha
        Probability that a training that keeps its claims is reported, or that a bound is above the truth, in all ways
        together.
    seed
        Root of all random numbers.
    detect_factor
        As in :func:`dpaudit.audit`, of the step and the many runs.
    progress
        Show progress on standard error; None: if that is a terminal.

    Returns
    -------
    TrainingAudit
        With the result of each way, ``verdict`` and ``epsilon_lower``.

    Examples
    --------
    >>> import dpaudit
    >>> def train(data, rng):                              # a noisy sum, with a tenth of the noise that it needs
    ...     return np.clip(data, -1.0, 1.0).sum(axis=0) + 0.1 * rng.standard_normal(2)
    >>> found = audit_training(
    ...     dpaudit.per_release(train), dpaudit.GaussianDP(1.0), np.zeros((3, 2)), np.eye(2),
    ...     lambda release, canary: float(release @ canary), runs=50, one_run=False)
    >>> found.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    check_open_unit(alpha=alpha)
    check_count(minimum=0, seed=seed)
    _check_claim(claim, null)
    if (step is None) != (step_claim is None):
        raise InvalidArgument("step and step_claim belong together: give both, or neither.")
    ways = [way for way, used in ((STEP, step is not None), (RUNS, runs is not None), (ONE_RUN, one_run)) if used]
    if not ways:
        raise InvalidArgument("runs=None and one_run=False without step= leave nothing to do.")
    known = list(canaries)
    if not known:
        raise InvalidArgument(
            "canaries is empty; at least one is needed. dpaudit.training has functions that make them."
        )
    share = alpha / len(ways)
    work = _Work(as_mechanism(train), examples, known, score, null, np.random.SeedSequence(seed))
    stepped = many = single = None
    if step is not None and step_claim is not None:
        _check_claim(step_claim, null, name="step_claim")
        pair = fixed([(work.data([False]), work.data([True]))], relation=step_claim.relation)
        stepped = audit(
            _Projected.of(as_mechanism(step), direction),
            step_claim,
            pair,
            name="one step",
            samples=step_samples,
            alpha=share,
            seed=seed,
            detect_factor=detect_factor,
            shrink=False,
            progress=progress,
        )
    total = (0 if runs is None else 2 * runs) + one_run
    with Progress("trainings", total, math.log(1.0 / share), wanted=progress) as shown:
        if runs is not None:
            check_count(minimum=SCORES.fewest, runs=runs)
            inside, outside = (work.scores(member, runs, shown) for member in (True, False))
            many = audit_scores(
                inside, outside, claim, alpha=share, detect_factor=detect_factor, seed=seed, name="many runs"
            )
        if one_run:
            scores, members = work.one_run(shown)
            single = one_run_bound(scores, members, claim, alpha=share, guesses=guesses)
    return TrainingAudit(claim=claim, alpha=alpha, trainings=total, step=stepped, runs=many, one_run=single)


@dataclass(frozen=True, slots=True)
class _Work:
    """Data sets with and without canaries, and trainings on them, each kind with random numbers of its own."""

    train: Mechanism
    examples: Any
    canaries: list[Any]
    score: Score
    null: Any
    seed: np.random.SeedSequence

    def data(self, members: Sequence[bool] | NDArray[np.bool_]) -> Any:
        """Return the examples with the canaries that are members, and the null example for each of the others."""
        chosen = [
            canary if inside else self.null
            for canary, inside in zip(self.canaries, members, strict=False)
            if inside or self.null is not None
        ]
        if isinstance(self.examples, np.ndarray):
            return np.concatenate([self.examples, np.array(chosen).reshape(-1, *self.examples.shape[1:])])
        return [*self.examples, *chosen]

    def scores(self, member: bool, runs: int, shown: Progress) -> NDArray[np.float64]:
        """Scores of the first canary in runs of their own."""
        rng = self._generator(int(member))
        data, canary = self.data([member]), self.canaries[0]
        found: list[float] = []
        while len(found) < runs:
            size = min(max(1, runs // BATCHES_OF_RUNS), runs - len(found))
            found += [self._score(release, canary) for release in self._releases(data, size, rng)]
            shown.advance(size)
        return np.array(found)

    def one_run(self, shown: Progress) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Toss a coin for every canary, train once, and score all of them."""
        members = self._generator(2).random(len(self.canaries)) < 0.5
        (release,) = self._releases(self.data(members), 1, self._generator(3))
        shown.advance(1)
        return np.array([self._score(release, canary) for canary in self.canaries]), members

    def _generator(self, number: int) -> np.random.Generator:
        root = self.seed
        return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, number)))

    def _releases(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        return checked_outputs(self.train.sample(data, size, rng), size)

    def _score(self, release: Any, canary: Any) -> float:
        if isinstance(release, Raised):
            return -math.inf
        value = self.score(release, canary)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InvalidArgument(f"score(release, canary) returned {shorten(value)}; it must be a number.") from None
        return -math.inf if math.isnan(number) else number


@dataclass(frozen=True, slots=True)
class _Projected:
    """A mechanism that releases vectors, as their scalar products with one direction."""

    mechanism: Mechanism
    direction: NDArray[np.float64]

    @classmethod
    def of(cls, mechanism: Mechanism, direction: ArrayLike | None) -> Mechanism:
        if direction is None:
            return mechanism
        return Batched(cls(mechanism, finite_array("direction", direction, ndim=1, empty=False)))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        outputs = checked_outputs(self.mechanism.sample(data, size, rng), size)
        if not isinstance(outputs, np.ndarray):
            return [output if isinstance(output, Raised) else self._product(output) for output in outputs]
        # Not by a matrix product: its rounding depends on the other releases of the batch.
        return np.asarray((outputs.reshape(size, -1) * self._like(outputs[0])).sum(axis=1)) if size else outputs

    def _product(self, output: Any) -> float:
        return float((np.ravel(output) * self._like(output)).sum())

    def _like(self, output: Any) -> NDArray[np.float64]:
        if np.size(output) != self.direction.size:
            raise InvalidArgument(
                f"direction has {self.direction.size} numbers, but a release of the step has {np.size(output)}."
            )
        return self.direction


def _check_claim(claim: Any, null: Any, name: str = "claim") -> None:
    if isinstance(claim, type) or not isinstance(claim, Claim):
        raise InvalidArgument(f"{name}={shorten(claim)} must be a claim such as dpaudit.ApproxDP(1.0, 1e-5).")
    relation = claim.relation
    if relation is None:
        return
    check_choice((Relation.ADD_REMOVE, *REPLACING), **{f"{name}.relation": relation})
    if (relation in REPLACING) != (null is not None):
        raise InvalidArgument(
            f"{name}={claim!r} is about {relation.value}, and null={shorten(null)}: give null=, the example that stands in "
            "place of a canary that is left out, for substitution and zero-out, and for these only."
        )
