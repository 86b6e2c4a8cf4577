"""Opacus: one step of its optimizer and whole trainings as mechanisms, claims and accountants.

The data are rows of features with the target last, or a pair (features, targets). What is released is a vector: the noisy
gradient of a step (``p.grad`` after ``pre_step``, all parameters one after the other), or the parameters after training.
Torch's global generator is seeded for every release, so that audits can be replayed; in ``secure_mode`` they cannot.

Neighbours. Opacus' accountants are for Poisson sampling with one example added or removed, ``Relation.ADD_REMOVE``. Its
engine divides by ``int(len(dataset) / len(data_loader))`` and takes ``len(data_loader)`` steps per epoch. Both change with
the number of examples, which the claim leaves out. Fix ``expected_batch_size`` in ``make`` to audit a step without it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._util.validation import check_count, check_open_unit, check_positive, check_unit, shorten
from dpaudit.adapters._loading import load, quiet
from dpaudit.adapters.estimators import split
from dpaudit.claims import ApproxDP, Relation
from dpaudit.errors import InvalidArgument, MechanismError
from dpaudit.mechanism import PerRelease

EXTRA = "opacus"


@dataclass(frozen=True, slots=True)
class Step:
    """One clipped and noisy gradient of a new module and optimizer."""

    make: Callable[[], Any]
    sampling_rate: float = 1.0
    labels: bool = False

    def __call__(self, data: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Release the gradient that the optimizer would apply."""
        torch = load("torch", extra=EXTRA)
        torch.manual_seed(_seed(rng))
        module, optimizer, criterion = _parts(self.make(), "module, optimizer, criterion")
        _check_optimizer(optimizer)
        features, targets = tensors(torch, data, labels=self.labels)
        if self.sampling_rate < 1.0:
            batch = torch.as_tensor(np.flatnonzero(rng.random(len(features)) < self.sampling_rate))
            features, targets = features[batch], targets[batch]
        optimizer.zero_grad()
        criterion(module(features), targets).backward()
        if optimizer.pre_step() is False:
            raise MechanismError(
                "DPOptimizer.pre_step() skipped the step; give it an optimizer that is not accumulating."
            )
        return _flat(parameter.grad for parameter in optimizer.params)


@dataclass(frozen=True, slots=True)
class Training:
    """All epochs of a training that was made private."""

    make: Callable[[Any, Any], Any]
    epochs: int = 1
    labels: bool = False

    def __call__(self, data: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """Train, and release the parameters."""
        torch = load("torch", extra=EXTRA)
        torch.manual_seed(_seed(rng))
        with quiet("opacus"):  # it logs every empty batch
            made = self.make(*tensors(torch, data, labels=self.labels))
            module, optimizer, criterion, loader = _parts(made, "module, optimizer, criterion, data_loader")
            _check_optimizer(optimizer)
            for _ in range(self.epochs):
                for features, targets in loader:
                    optimizer.zero_grad()
                    criterion(module(features), targets).backward()
                    optimizer.step()
        return _flat(module.parameters())


def step(make: Callable[[], Any], *, sampling_rate: float = 1.0, labels: bool = False) -> PerRelease:
    """Return one step of a ``DPOptimizer`` as a mechanism, for the white box.

    Parameters
    ----------
    make
        Returns ``(module, optimizer, criterion)``: a ``GradSampleModule``, a ``DPOptimizer`` of its parameters with its
        ``expected_batch_size``, and a loss. They must start from the same parameters every time.
    sampling_rate
        Rate of the Poisson batch; 1 takes all rows.
    labels
        Targets are class labels (``torch.long``), not numbers.
    """
    _check_make(make)
    check_positive(sampling_rate=sampling_rate)
    check_unit(sampling_rate=sampling_rate)
    return PerRelease(Step(make, sampling_rate, labels))


def training(make: Callable[[Any, Any], Any], *, epochs: int = 1, labels: bool = False) -> PerRelease:
    """Return a whole training as a mechanism that releases the parameters.

    Parameters
    ----------
    make
        ``make(features, targets)`` builds a data loader of the two tensors, calls ``PrivacyEngine.make_private``, and returns
        ``(module, optimizer, criterion, data_loader)``.
    epochs
        Passes over the data loader.
    labels
        As for :func:`step`.
    """
    _check_make(make)
    check_count(epochs=epochs)
    return PerRelease(Training(make, epochs, labels))


def claim(engine: Any, delta: float) -> ApproxDP:
    """Return what the engine's accountant says was spent, for one example added or removed.

    Call it after a training: before it nothing is spent.

    >>> from types import SimpleNamespace
    >>> claim(SimpleNamespace(get_epsilon=lambda delta: 2.0), 1e-5)
    ApproxDP(epsilon=2.0, delta=1e-05, relation='add-remove')
    """
    check_open_unit(delta=delta)
    epsilon = float(engine.get_epsilon(delta))
    if not math.isfinite(epsilon):
        raise InvalidArgument(f"engine={shorten(engine)} promises nothing at delta={delta!r}: epsilon is {epsilon}.")
    return ApproxDP(max(epsilon, 0.0), delta, Relation.ADD_REMOVE)


def accountant(mechanism: str = "prv") -> Callable[[Any, float], float]:
    """Return an accountant of Opacus (``"rdp"``, ``"gdp"`` or ``"prv"``) for :func:`dpaudit.check_accountant`.

    Its relation is add-remove, its noise Gaussian and its batches Poisson samples.
    """

    def epsilon(composition: Any, delta: float) -> float:
        accountants = load("opacus.accountants", extra=EXTRA)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "gdp" warns that it underestimates, "rdp" of its orders
            account = accountants.create_accountant(mechanism)
            account.history = [(part.noise_multiplier, part.sampling_rate, part.steps) for part in composition]
            if mechanism == "gdp" and len(account.history) > 1:
                raise ValueError("GaussianAccountant reads the last part of its history only.")
            return float(account.get_epsilon(delta=delta))

    epsilon.__name__ = f"opacus_{mechanism}"
    return epsilon


def tensors(torch: Any, data: Any, *, labels: bool) -> tuple[Any, Any]:
    """Return features and targets of the data as tensors.

    Parameters
    ----------
    torch : module
        The library.
    data : object
        Rows whose last column is the target, or (features, targets).
    labels : bool
        Targets are whole numbers; otherwise they have torch's default type, as the features have.
    """
    features, targets = split(data, target=None if isinstance(data, tuple) else True)
    if targets is None:
        raise InvalidArgument(
            f"data={shorten(data)} must be rows whose last column is the target, or (features, targets)."
        )
    kind = torch.get_default_dtype()
    return torch.as_tensor(features, dtype=kind), torch.as_tensor(targets, dtype=torch.long if labels else kind)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 2**63))


def _parts(made: Any, names: str) -> Any:
    if not isinstance(made, tuple) or len(made) != names.count(",") + 1:
        raise MechanismError(f"make returned {shorten(made)}; it must return ({names}).")
    return made


def _check_optimizer(optimizer: Any) -> None:
    if not callable(getattr(optimizer, "pre_step", None)):
        raise MechanismError(
            f"make returned the optimizer {shorten(optimizer)}, which is no DPOptimizer: it has no pre_step, so it neither clips "
            "nor adds noise."
        )


def _check_make(make: Any) -> None:
    if not callable(make):
        raise InvalidArgument(f"make={shorten(make)} must be a function that builds a new module and optimizer.")


def _flat(arrays: Iterable[Any]) -> NDArray[np.float64]:
    return np.concatenate([np.asarray(array.detach().cpu().numpy(), dtype=np.float64).ravel() for array in arrays])
