"""Models with hand-written gradients of every example: linear and logistic regression, and a small network.

An example is a row of numbers, its features and then its target. Parameters come as one vector per training, so that many
trainings run at once: every method takes ``parameters`` of shape ``(trainings, dimension)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from dpaudit._util.validation import check_count

from .._common import Floats


class Model(Protocol):
    """The methods that a training needs of a model."""

    @property
    def features(self) -> int:
        """Number of features of an example."""

    @property
    def dimension(self) -> int:
        """Number of parameters."""

    def losses(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Return the loss of each example, shape ``(trainings, examples)``."""

    def gradients(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Return the gradient of each example's loss, shape ``(trainings, examples, dimension)``."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Linear regression, loss ``(w x + b - y)^2 / 2``; the parameters are w, then b.

    >>> LinearModel(1).gradients(np.array([[2.0, 1.0]]), np.array([[3.0]]), np.array([5.0]))
    array([[[6., 2.]]])
    """

    features: int

    def __post_init__(self) -> None:
        check_count(features=self.features)

    @property
    def dimension(self) -> int:
        """One weight per feature, and the intercept."""
        return self.features + 1

    def losses(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Half the squared residuals."""
        return 0.5 * (_affine(parameters, features) - targets) ** 2

    def gradients(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Residual times ``(x, 1)``."""
        return (_affine(parameters, features) - targets)[..., None] * _with_one(features)


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """Logistic regression with targets 0 and 1; the parameters are w, then b.

    >>> LogisticModel(1).gradients(np.zeros((1, 2)), np.array([[3.0]]), np.array([1.0]))
    array([[[-1.5, -0.5]]])
    """

    features: int

    def __post_init__(self) -> None:
        check_count(features=self.features)

    @property
    def dimension(self) -> int:
        """One weight per feature, and the intercept."""
        return self.features + 1

    def losses(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """``log(1 + exp(z)) - y z`` where ``z = w x + b``."""
        score = _affine(parameters, features)
        return np.asarray(np.logaddexp(0.0, score) - targets * score)

    def gradients(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """``(p - y) (x, 1)`` where p is the predicted probability of 1."""
        return (expit(_affine(parameters, features)) - targets)[..., None] * _with_one(features)


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """A network with one hidden layer of tanh units and a logistic output; targets are 0 and 1.

    The parameters are the hidden weights (unit by unit), the hidden biases, the output weights and the output bias.

    >>> NetworkModel(2, 3).dimension
    13
    """

    features: int
    hidden: int

    def __post_init__(self) -> None:
        check_count(features=self.features, hidden=self.hidden)

    @property
    def dimension(self) -> int:
        """``hidden (features + 1)`` of the hidden layer and ``hidden + 1`` of the output."""
        return self.hidden * (self.features + 2) + 1

    def _forward(self, parameters: Floats, features: Floats) -> tuple[Floats, Floats, Floats]:
        """Activations of the hidden units, the output weights, and the score of the output."""
        cut = self.hidden * self.features
        weights = parameters[:, :cut].reshape(-1, self.hidden, self.features)
        bias = parameters[:, cut : cut + self.hidden]
        output = parameters[:, cut + self.hidden : -1]
        active = np.tanh(np.einsum("khf,nf->knh", weights, features) + bias[:, None, :])
        return active, output, np.einsum("knh,kh->kn", active, output) + parameters[:, -1:]

    def losses(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Cross-entropy of the output."""
        score = self._forward(parameters, features)[2]
        return np.asarray(np.logaddexp(0.0, score) - targets * score)

    def gradients(self, parameters: Floats, features: Floats, targets: Floats) -> Floats:
        """Backpropagation: ``r = p - y`` at the output, ``r v (1 - a^2)`` at a hidden unit with output weight v."""
        active, output, score = self._forward(parameters, features)
        residual = expit(score) - targets
        hidden = residual[..., None] * output[:, None, :] * (1.0 - active**2)
        weights = hidden[..., None] * features[None, :, None, :]
        trainings, examples = residual.shape
        return np.concatenate(
            [
                weights.reshape(trainings, examples, self.hidden * self.features),
                hidden,
                residual[..., None] * active,
                residual[..., None],
            ],
            axis=-1,
        )


def _affine(parameters: Floats, features: Floats) -> Floats:
    # Not by a matrix product: its rounding depends on the other trainings of the batch.
    return np.asarray(np.einsum("kf,nf->kn", parameters[:, :-1], features) + parameters[:, -1:])


def _with_one(features: Floats) -> Floats:
    return np.hstack([features, np.ones((len(features), 1))])
