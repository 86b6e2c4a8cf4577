"""JAX Privacy: one step of its clipping and noise as a mechanism, claims of execution plans, and its accountant.

The data are rows of features with the target last, or a pair (features, targets). What is released is a vector: the sum of
clipped gradients with noise, all parameters one after the other.

All outputs of a call are computed at once, by ``vmap`` over keys of their own, and compiled once for each number of rows and
each power of two of outputs. So audits are fast, and repeat from their seed.

A row that is not in the Poisson batch of an output is passed as a padding example, as the library does it where compiled code
needs batches of one size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_positive, check_unit, shorten
from dpaudit.adapters import accounting
from dpaudit.adapters._loading import load, quiet
from dpaudit.adapters.estimators import split
from dpaudit.claims import Claim, Relation
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import Batched

EXAMPLES = 2**40  # of an accountant
LARGEST_SEED = 2**31  # JAX makes keys of 32 bits unless it is configured for 64


@dataclass(frozen=True, slots=True)
class GradientStep:
    """Many independent sums of clipped gradients with noise."""

    make: Callable[[Any], Any]
    sampling_rate: float = 1.0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Release the noisy sums, one in a row."""
        jax = load("jax", extra="jax")
        features, targets = split(data, target=None if isinstance(data, tuple) else True)
        if targets is None:
            raise InvalidArgument(
                f"data={shorten(data)} must be rows whose last column is the target, or (features, targets)."
            )
        padded = 1 << max(size - 1, 0).bit_length()
        keys = jax.random.split(jax.random.key(int(rng.integers(LARGEST_SEED))), padded)
        left_out = rng.random((padded, len(features))) >= self.sampling_rate
        released = _compiled(self.make)(keys, left_out, np.asarray(features), np.asarray(targets))
        return np.asarray(released, dtype=np.float64)[:size]


def step(make: Callable[[Any], Any], *, sampling_rate: float = 1.0) -> Batched:
    """Return one step as a mechanism, for the white box.

    Parameters
    ----------
    make
        ``make(key)`` returns ``(parameters, clipped_grad, privatizer)``: what ``clipped_grad`` differentiates with respect to,
        the same in every call; a function made by ``jax_privacy.clipped_grad``, which is called with the parameters, features
        and targets; and a privatizer with ``prng_key=key``, such as ``noise_addition.gaussian_privatizer``. It is traced, so
        it may not depend on the value of the key.
    sampling_rate
        Rate of the Poisson batch; 1 takes all rows.
    """
    if not callable(make):
        raise InvalidArgument(f"make={shorten(make)} must be a function of a key.")
    check_positive(sampling_rate=sampling_rate)
    check_unit(sampling_rate=sampling_rate)
    return Batched(GradientStep(make, sampling_rate))


def claim(plan: Any, delta: float | None = None, *, relation: Relation = Relation.ZERO_OUT) -> Claim:
    """Return what all steps of an execution plan promise together, by dp-accounting.

    Parameters
    ----------
    plan
        A ``DPExecutionPlan``, or anything with a ``dp_event``.
    delta
        Where to state epsilon; needed where the event has no claim in closed form.
    relation
        That of the plan's accountant; the library's default is that one row becomes a special one, ``ZERO_OUT``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> class GaussianDpEvent:
    ...     noise_multiplier = 2.0
    >>> claim(SimpleNamespace(dp_event=GaussianDpEvent()))
    GaussianDP(mu=0.5, relation='zero-out')
    """
    event = getattr(plan, "dp_event", None)
    if event is None:
        raise InvalidArgument(f"plan={shorten(plan)} must have a dp_event, as a DPExecutionPlan has.")
    return accounting.claim(event, relation, delta=delta)


def accountant(kind: str = "pld") -> Callable[[float, float, int, float], float]:
    """Return the library's accountant of DP-SGD (``"pld"`` or ``"rdp"``) for :func:`dpaudit.check_accountant`.

    Its relation is add-remove, its noise Gaussian and its batches Poisson samples; compositions have one part.
    """
    if kind not in ("pld", "rdp"):
        raise InvalidArgument(f"kind={kind!r} must be 'pld' or 'rdp'.")

    def epsilon(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
        library = load("jax_privacy.accounting", extra="jax")
        config = library.PldAccountantConfig() if kind == "pld" else library.RdpAccountantConfig()
        parameters = library.DpParams(
            noise_multipliers=noise_multiplier,
            num_samples=EXAMPLES,  # only the ratio to the batch size counts, which has to be whole
            delta=delta,
            batch_size=round(sampling_rate * EXAMPLES),
        )
        with quiet("absl"):  # it logs every order that did not converge
            return float(library.DpsgdTrainingAccountant(config).compute_epsilon(steps, parameters))

    epsilon.__name__ = f"jax_privacy_{kind}"
    return epsilon


@functools.lru_cache(maxsize=16)
def _compiled(make: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a compiled function of keys, left-out rows, features and targets: one noisy sum for each key."""
    jax = load("jax", extra="jax")
    numpy = load("jax.numpy", extra="jax")

    def release(key: Any, left_out: Any, features: Any, targets: Any) -> Any:
        made = make(key)
        if not isinstance(made, tuple) or len(made) != 3:
            raise MechanismError(
                f"make returned {shorten(made)}; it must return (parameters, clipped_grad, privatizer)."
            )
        parameters, clipped_grad, privatizer = made
        clipped = clipped_grad(parameters, features, targets, is_padding_example=left_out)
        noisy, _ = privatizer.update(clipped, privatizer.init(parameters))
        return numpy.concatenate([numpy.ravel(leaf) for leaf in jax.tree.leaves(noisy)])

    return jax.jit(jax.vmap(release, in_axes=(0, 0, None, None)))  # type: ignore[no-any-return]
