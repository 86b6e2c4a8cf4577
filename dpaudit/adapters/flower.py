"""Flower's strategies with central differential privacy as mechanisms: one round of aggregation.

The data are the clients' updates, one client a row, around a global model of zeros. A round clips every update to norm C,
averages, and adds noise of standard deviation ``z C / m``; with adaptive clipping it also moves C, which the clients are
sent and is therefore part of the output. How many examples a client has, by which Flower weights its update, is public
here, the same on both sides.

Flower states a noise multiplier, no epsilon. The claim is what it means in the papers that Flower cites: one of ``m``
equally weighted clients moves the average by ``C / m`` when it is zeroed out, by ``2 C / m`` when it is replaced, and
each time by so many standard deviations as the noise has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_choice, check_count, finite_array, shorten
from dpaudit.adapters._loading import load, quiet
from dpaudit.claims import GaussianDP, Relation
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import Plain

CLIENT_RELATIONS = (Relation.ZERO_OUT, Relation.SUBSTITUTE)


@dataclass(frozen=True, slots=True)
class Reply:
    """The part of a message that a strategy reads; Flower's own can only be made inside a run."""

    content: Any

    def has_error(self) -> bool:
        """Clients do not fail here."""
        return False


@dataclass(frozen=True, slots=True)
class TrainingRound:
    """One ``aggregate_train`` of a new strategy, on replies that hold the clients' updates."""

    make: Callable[[], Any]
    examples: tuple[int, ...] | None = None

    def __call__(self, data: Any) -> NDArray[np.float64] | None:
        """Release the noisy average, and the next clipping norm where it adapts."""
        strategy = self.make()
        _check_strategy(strategy)
        updates = finite_array("data", data, ndim=2, empty=False)
        examples = (1,) * len(updates) if self.examples is None else self.examples
        if len(examples) != len(updates):
            raise InvalidArgument(f"data has {len(updates)} clients, but examples={examples!r} names {len(examples)}.")
        app = load("flwr.app", extra="libraries")
        strategy.current_arrays = _record(app, np.zeros(updates.shape[1]))
        key = getattr(strategy.strategy, "weighted_by_key", "num-examples")
        replies = [
            Reply(app.RecordDict({"arrays": _record(app, update), "metrics": app.MetricRecord({key: int(count)})}))
            for update, count in zip(updates, examples, strict=True)
        ]
        with quiet("flwr"):  # it logs every round what it clipped
            arrays, _ = strategy.aggregate_train(1, replies)
        if arrays is None:
            return None
        (average,) = arrays.to_numpy_ndarrays()
        return np.append(average, strategy.clipping_norm) if _adapts(strategy) else np.asarray(average)


def mechanism(make: Callable[[], Any], *, examples: Sequence[int] | None = None) -> Plain:
    """Return a strategy with server-side clipping as a mechanism on tables of updates.

    Parameters
    ----------
    make
        Makes a new strategy, for instance ``lambda: DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 4)``
        of ``flwr.serverapp.strategy``; one that has aggregated remembers its clipping norm.
    examples
        How many examples each client has; by default all have one, so that they weigh the same.
    """
    if not callable(make):
        raise InvalidArgument(
            f"make={shorten(make)} must be a function that makes a new strategy: lambda: {type(make).__name__}(...)."
        )
    if examples is not None:
        for count in examples:
            check_count(examples=count)
    return Plain(TrainingRound(make, None if examples is None else tuple(examples)))


def claim(strategy: Any, relation: Relation = Relation.SUBSTITUTE) -> GaussianDP:
    r"""Return what the strategy's noise multiplier promises for one round with equal weights.

    For fixed clipping ``mu = 1/z`` where a client is zeroed out and ``2/z`` where it is replaced. Adaptive clipping keeps
    the multiplier of the updates, ``z_delta``, and the noise of the count, ``sigma_b``. Replacing a client moves the sum
    of the updates by 2 C and the count by one, so ``mu^2 = 4/z_delta^2 + 1/sigma_b^2``, which is ``(2/z)^2`` for the
    multiplier z that was asked for; zeroing out has ``mu^2 = 1/z_delta^2 + 1/sigma_b^2``.

    >>> from types import SimpleNamespace
    >>> claim(SimpleNamespace(noise_multiplier=2.0))
    GaussianDP(mu=1.0, relation='substitute')
    """
    check_choice(CLIENT_RELATIONS, relation=relation)
    multiplier = getattr(strategy, "noise_multiplier", None)
    if multiplier is None:
        raise InvalidArgument(f"strategy={shorten(strategy)} states no noise_multiplier; state the claim yourself.")
    count_std = strategy.clipped_count_stddev if _adapts(strategy) else math.inf
    if not (multiplier > 0.0 and count_std > 0.0):
        raise InvalidArgument(
            f"strategy={shorten(strategy)} promises nothing: noise_multiplier={multiplier!r}, "
            f"clipped_count_stddev={count_std!r}; both must be positive."
        )
    moved = 2.0 if relation is Relation.SUBSTITUTE else 1.0
    return GaussianDP(math.hypot(moved / multiplier, 1.0 / count_std), relation)


def _check_strategy(strategy: Any) -> None:
    if not (callable(getattr(strategy, "aggregate_train", None)) and hasattr(strategy, "current_arrays")):
        raise InvalidArgument(
            f"make() returned {shorten(strategy)}, which is no strategy of flwr.serverapp.strategy that clips on the server; "
            "use DifferentialPrivacyServerSideFixedClipping or DifferentialPrivacyServerSideAdaptiveClipping."
        )


def _adapts(strategy: Any) -> bool:
    return getattr(strategy, "clipped_count_stddev", None) is not None


def _record(app: Any, values: NDArray[np.float64]) -> Any:
    return app.ArrayRecord({"update": app.Array(np.array(values))})
