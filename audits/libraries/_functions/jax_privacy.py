"""JAX Privacy: one step of its clipping and noise, and its accountants."""

from __future__ import annotations

import functools
import logging

import jax
import jax_privacy
import numpy as np
from jax import numpy as jnp
from jax_privacy import accounting, noise_addition

logging.getLogger("absl").setLevel(logging.ERROR)
EXAMPLES = 2**40  # only the ratio of batch size and examples counts


def squared_error(parameters, features, targets):
    return jnp.mean((features @ parameters["weight"] + parameters["bias"] - targets) ** 2)


REGRESSION = jax_privacy.clipped_grad(squared_error, l2_clip_norm=1.0, batch_argnums=(1, 2))
START = {"weight": jnp.zeros(2), "bias": jnp.zeros(())}


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None, None))
def regression(key, features, targets):
    privatizer = noise_addition.gaussian_privatizer(stddev=REGRESSION.sensitivity(), prng_key=key)
    noisy, _ = privatizer.update(REGRESSION(START, features, targets), privatizer.init(START))
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(noisy)])


def keys(size, rng):
    """Return at least as many keys: a power of two, because each number is compiled."""
    return jax.random.split(jax.random.key(int(rng.integers(2**31))), 1 << max(size - 1, 0).bit_length())


def step(data, size, rng):
    """Release noisy gradients of linear regression on rows with the target last."""
    rows = np.asarray(data, dtype=np.float32)
    return np.asarray(regression(keys(size, rng), rows[:, :2], rows[:, 2]), dtype=float)[:size]


MANY = jax_privacy.clipped_grad(
    lambda parameters, rows: sum(parameter * rows[0] for parameter in parameters), l2_clip_norm=1.0
)


@functools.lru_cache
def clipped(rows):
    """Return the sum of clipped gradients of 1,024 parameters of 16 bits, projected on their common direction."""
    start = [jnp.zeros((), jnp.bfloat16)] * 1024
    return sum(float(leaf) for leaf in MANY(start, jnp.asarray(rows, dtype=jnp.bfloat16))) / 32.0


def half_precision(data, size, rng):
    """Release that with Gaussian noise whose deviation is the stated sensitivity."""
    return rng.normal(clipped(tuple(data)), MANY.sensitivity(), size)


def account(config, composition):
    """Return the epsilon of DP-SGD at a delta."""
    ((noise, rate, steps, _),), delta = composition
    parameters = accounting.DpParams(
        noise_multipliers=noise, num_samples=EXAMPLES, delta=delta, batch_size=round(rate * EXAMPLES)
    )
    return float(accounting.DpsgdTrainingAccountant(config).compute_epsilon(steps, parameters))


losses = functools.partial(account, accounting.PldAccountantConfig())
renyi = functools.partial(account, accounting.RdpAccountantConfig())
