"""Opacus: one step of its optimizer, and a whole training by its engine."""

from __future__ import annotations

import functools
import logging
import random
import warnings

import numpy as np
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import create_accountant
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import (
    AdaClipDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    DPPerLayerOptimizer,
)
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)


def linear():
    model = torch.nn.Linear(2, 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    return model


def tensors(rows):
    table = torch.as_tensor(np.asarray(rows, dtype=np.float32))
    return table[:, :2], table[:, 2]


def seeded():
    torch.manual_seed(random.getrandbits(31))  # the generator of `random` is seeded for every release


def step(make, rows):
    """Release the noisy gradient of a step on all rows."""
    seeded()
    model = GradSampleModule(linear())
    optimizer = make(torch.optim.SGD(model.parameters(), lr=0.1), expected_batch_size=4)
    features, targets = tensors(rows)
    torch.nn.functional.mse_loss(model(features)[:, 0], targets).backward()
    optimizer.pre_step()
    return np.concatenate([parameter.grad.numpy().ravel() for parameter in optimizer.params])


def ghost_step(shape, rows):
    """Release the noisy gradient of a step that never holds the gradients of single rows."""
    seeded()
    model = GradSampleModuleFastGradientClipping(linear(), max_grad_norm=1.0, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=4
    )
    criterion = DPLossFastGradientClipping(model, optimizer, torch.nn.MSELoss())
    features, targets = tensors(rows)
    criterion(model(features).reshape(shape), targets.reshape(shape)).backward()
    optimizer.pre_step()
    return np.concatenate([parameter.grad.numpy().ravel() for parameter in optimizer.params])


ghost, ghost_column = (functools.partial(ghost_step, shape) for shape in ((-1,), (-1, 1)))  # of outputs and targets


def adaptive(rows):
    """Release the step of an optimizer that adapts its clipping norm, and the norm of the next step."""
    seeded()
    model = GradSampleModule(linear())
    optimizer = AdaClipDPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=4,
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=1.0,
        max_clipbound=10.0,
        min_clipbound=0.1,
        unclipped_num_std=1.0,
    )
    features, targets = tensors(rows)
    torch.nn.functional.mse_loss(model(features)[:, 0], targets).backward()
    optimizer.pre_step()
    return np.concatenate([*(p.grad.numpy().ravel() for p in optimizer.params), [float(optimizer.max_grad_norm)]])


flat = functools.partial(step, functools.partial(DPOptimizer, noise_multiplier=1.0, max_grad_norm=1.0))
per_layer = functools.partial(
    step, functools.partial(DPPerLayerOptimizer, noise_multiplier=1.0, max_grad_norm=[0.6, 0.8])
)


def training(rows):
    """Release the parameters after an epoch of a training that the engine made private."""
    seeded()
    features, targets = tensors(rows)
    model = linear()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(features, targets), batch_size=4)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=loader,
        noise_multiplier=4.0,
        max_grad_norm=1.0,
    )
    for some, wanted in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(some)[:, 0], wanted).backward()
        optimizer.step()
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in model.parameters()])


def account(name, composition):
    """Return the epsilon of steps (noise multiplier, sampling rate, number), at a delta."""
    parts, delta = composition
    accountant = create_accountant(name)
    accountant.history = [(noise, rate, steps) for noise, rate, steps, _ in parts]
    if name == "gdp" and len(parts) > 1:
        raise ValueError("GaussianAccountant reads the last part of its history only.")
    return float(accountant.get_epsilon(delta=delta))


rdp, gdp, prv = (functools.partial(account, name) for name in ("rdp", "gdp", "prv"))
