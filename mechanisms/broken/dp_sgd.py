r"""DP-SGD with one of its parts wrong, each with the epsilon that it really has.

Every one claims what :class:`mechanisms.dp_sgd.DPSGD` with the same numbers claims; ``truth`` is the epsilon at the claimed
delta that it keeps, as a number or a bracket. The brackets are for Poisson batches and all sums released: then the pair
of laws is N(0, s^2) against (1 - q) N(0, s^2) + q N(1, s^2), T times, with the noise s that there really is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dpaudit._util.validation import check_count, check_open_unit
from dpaudit.claims import Claim, Relation

from .._common import Floats, gaussian_epsilon
from ..dp_sgd import DPSGD, Masks, Parts, clipped_sum, epsilon_bracket, fresh_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongDPSGD:
    """A training with a bug.

    ``right`` makes the claim, ``wrong`` is what runs, ``truth`` the epsilon that it keeps at the claimed delta.
    """

    right: DPSGD
    wrong: DPSGD
    truth: float | tuple[float, float]

    @property
    def claim(self) -> Claim:
        """The claim of the correct training."""
        return self.right.claim

    @property
    def relation(self) -> Relation:
        """The relation of the correct training."""
        return self.right.relation

    def sample(self, data: ArrayLike, size: int, rng: np.random.Generator) -> Floats:
        """Return ``size`` trainings with the bug."""
        return self.wrong.sample(data, size, rng)


def clipped_per_batch(right: DPSGD) -> WrongDPSGD:
    """The mean gradient of the batch is clipped, not that of every example (as in pyvacy 0.0.32).

    The noise on the mean is z C / L, for a mean that moves by C / L. It moves by 2 C where one example turns it round,
    so one step with the whole data has ``mu = 2 L / z``. The truth is that of full batches.
    """

    def total(training: DPSGD, gradients: Floats, batch: Masks) -> Floats:
        mean = np.einsum("kn,knd->kd", batch.astype(np.float64), gradients) / training.divisor
        one = np.ones((len(mean), 1), dtype=np.bool_)
        return training.divisor * clipped_sum(training, mean[:, None, :], one)

    mu = 2.0 * right.divisor * math.sqrt(right.steps) / right.noise_multiplier
    full = right.sampling_rate == 1.0
    return _replaced(right, Parts(total=total), gaussian_epsilon(mu, right.delta) if full else (0.0, math.inf))


def noise_by_root_of_batch(right: DPSGD) -> WrongDPSGD:
    """The noise on the sum is divided by the square root of the expected batch, L.

    It averages noise that is added once per batch as though it were added once per example.
    """
    return _with_noise(right, 1.0 / math.sqrt(right.divisor))


def noise_without_norm(right: DPSGD) -> WrongDPSGD:
    """The noise has standard deviation z, whatever the clipping norm is; wrong where C is above 1."""
    return _with_noise(right, 1.0 / right.clipping_norm)


def bias_not_clipped(right: DPSGD) -> WrongDPSGD:
    """The norm is that of the weights alone, and the gradient of the last parameter (the bias) is left as it is.

    For linear regression that gradient is the residual, which has no bound: no epsilon holds.
    """

    def total(training: DPSGD, gradients: Floats, batch: Masks) -> Floats:
        weights = clipped_sum(training, gradients[..., :-1], batch)
        bias = np.einsum("kn,kn->k", batch.astype(np.float64), gradients[..., -1])
        return np.column_stack([weights, bias])

    return _replaced(right, Parts(total=total), math.inf)


def smaller_rate_accounted(right: DPSGD, factor: float = 0.25) -> WrongDPSGD:
    """The accountant is given ``factor`` times the sampling rate (the batch size over a wrong number of examples)."""
    check_open_unit(factor=factor)
    rate = _rate(right)
    accounted = replace(right, sampling_rate=factor * rate)
    return WrongDPSGD(
        right=accounted, wrong=right, truth=epsilon_bracket(right.noise_multiplier, rate, right.steps, right.delta)
    )


def fixed_batches(right: DPSGD) -> WrongDPSGD:
    """Batches are the rows in their order, 1/q of them per epoch, while the claim is for Poisson sampling.

    Example i is in batch i modulo 1/q of every epoch, with certainty: the last row, whose addition or removal moves no
    other row, has ``mu = sqrt(epochs) / z``. A row in the middle moves those after it to other batches, so this is a
    lower bound.
    """
    period = max(1, round(1.0 / _rate(right)))

    def batches(training: DPSGD, shape: tuple[int, int], rng: np.random.Generator) -> Iterator[Masks]:
        del training, rng
        step = 0
        while True:
            yield np.broadcast_to(np.arange(shape[1]) % period == step % period, shape)
            step += 1

    epochs = right.steps // period
    known = gaussian_epsilon(math.sqrt(epochs) / right.noise_multiplier, right.delta) if epochs else 0.0
    return _replaced(right, Parts(batches=batches), (known, math.inf))


def one_seed_per_epoch(right: DPSGD, epoch: int = 2) -> WrongDPSGD:
    """The noise generator is seeded anew in every epoch of ``epoch`` steps, always with the same seed.

    Where all sums are released, those of two epochs differ by what their batches differ in, without noise. No epsilon holds
    below the probability, 2 q (1 - q) or more, that an example was in the one and not in the other.
    """
    check_count(epoch=epoch)

    def noise(training: DPSGD, shape: tuple[int, int], rng: np.random.Generator) -> Iterator[Floats]:
        fresh = fresh_noise(training, shape, rng)
        seeded = [next(fresh) for _ in range(epoch)]
        while True:
            yield from seeded

    return _replaced(right, Parts(noise=noise), math.inf if right.steps > epoch else (0.0, math.inf))


VARIANTS: dict[str, Callable[[DPSGD], WrongDPSGD]] = {
    "clipped-per-batch": clipped_per_batch,
    "noise-by-root-of-batch": noise_by_root_of_batch,
    "noise-without-norm": noise_without_norm,
    "bias-not-clipped": bias_not_clipped,
    "smaller-rate-accounted": smaller_rate_accounted,
    "fixed-batches": fixed_batches,
    "one-seed-per-epoch": one_seed_per_epoch,
}


def _with_noise(right: DPSGD, factor: float) -> WrongDPSGD:
    """The right training with ``factor`` times its noise: what runs is the right one with another noise multiplier."""
    wrong = replace(right, noise_multiplier=factor * right.noise_multiplier)
    truth = epsilon_bracket(wrong.noise_multiplier, _rate(right), right.steps, right.delta)
    return WrongDPSGD(right=right, wrong=wrong, truth=truth)


def _replaced(right: DPSGD, parts: Parts, truth: float | tuple[float, float]) -> WrongDPSGD:
    return WrongDPSGD(right=right, wrong=replace(right, parts=parts), truth=truth)


def _rate(right: DPSGD) -> float:
    """The sampling rate of Poisson batches, for which these variants are made."""
    return 1.0 if right.sampling_rate is None else right.sampling_rate
