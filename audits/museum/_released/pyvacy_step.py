"""One step of pyvacy's DPSGD on a linear model: the gradient of a batch of rows, as the step leaves it."""

from __future__ import annotations

import torch
from pyvacy.optim import DPSGD

torch.set_num_threads(1)
BATCH = 16


def step(rows):
    """Release the parameter after a step of size one from zero; the loss of a row is minus the row times the parameter."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = DPSGD(l2_norm_clip=1.0, noise_multiplier=8.0, batch_size=BATCH, params=[weight], lr=1.0)
    optimiser.zero_grad()
    (-(torch.tensor(rows, dtype=torch.float32) * weight).sum() / BATCH).backward()
    optimiser.step()
    return float(weight.detach()[0])
