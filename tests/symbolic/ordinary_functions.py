"""Fifteen mechanisms in the ways that people write them; test_ordinary_functions.py says what extraction makes of each.

They were written before extraction was run on any of them, and have not been changed to suit it.
"""

from __future__ import annotations

import math
import random
import secrets
from collections import Counter, defaultdict

import numpy as np
import pandas as pd


def noisy_counts_loop(data, rng):
    """A dictionary of counts, built in a loop, with noise added key by key."""
    counts = {"a": 0, "b": 0, "c": 0}
    for row in data:
        counts[row] += 1
    noisy = {}
    for key in counts:
        noisy[key] = counts[key] + rng.laplace(0, 1.0)
    return noisy


def noisy_counts_comprehension(data, rng):
    """The same as a comprehension over a Counter, rounded and clamped at zero."""
    counts = Counter(data)
    return {key: max(0, round(counts[key] + rng.laplace(scale=1.0))) for key in ("a", "b", "c")}


def clipped_mean(data, rng):
    """A mean of clipped values with noise for its sensitivity, returned as a Python float."""
    values = np.clip(np.asarray(data, dtype=float), 0.0, 10.0)
    if len(values) == 0:
        return 0.0
    return float(values.mean() + rng.laplace(0.0, 10.0 / (len(values) * 1.0)))


def histogram_array(data, rng):
    """numpy's histogram with an array of noise."""
    counts, _ = np.histogram(data, bins=4, range=(0, 4))
    return counts + rng.laplace(0.0, 1.0, size=counts.shape)


def pandas_group_by(data, rng):
    """Means by group with pandas, then noise on each."""
    frame = pd.DataFrame({"group": ["x", "y"] * 3, "value": data})
    totals = frame.groupby("group")["value"].sum()
    noisy = {}
    for group, total in totals.items():
        noisy[group] = total + rng.normal(0.0, 2.0)
    return noisy


def gauss_count(data):
    """The standard library's Gaussian on a count."""
    return len(data) + random.gauss(0, 1.5)


def coin_flip_survey(data):
    """Randomised response with secrets: heads the truth, tails another coin."""
    answers = []
    for row in data:
        if secrets.randbelow(2) == 0:
            answers.append(row)
        else:
            answers.append(secrets.randbelow(2))
    return answers


def randomised_sum(data, rng):
    """The number of yes after every row is flipped with probability one quarter."""
    flips = rng.random(len(data)) < 0.25
    return int(np.sum(np.where(flips, 1 - np.array(data), data)))


def best_candidate(data, rng):
    """The exponential mechanism by normalised weights and rng.choice."""
    candidates = ["red", "green", "blue"]
    scores = np.array([sum(1 for row in data if row == c) for c in candidates])
    weights = np.exp(1.0 * scores / 2)
    return rng.choice(candidates, p=weights / weights.sum())


def noisy_argmax(data, rng):
    """Report noisy max with np.argmax."""
    counts = np.bincount(data, minlength=3)
    return int(np.argmax(counts + rng.laplace(scale=2.0, size=3)))


def first_above(data, rng):
    """AboveThreshold as in the book."""
    threshold = 2 + rng.laplace(scale=2.0)
    for i, answer in enumerate(data):
        if answer + rng.laplace(scale=4.0) >= threshold:
            return i
    return None


def thresholded_release(data, rng):
    """Counts by key, of which only those above a threshold after noise are released."""
    counts = defaultdict(int)
    for row in data:
        counts[row] += 1
    released = {}
    for key, count in sorted(counts.items()):
        noisy = count + rng.laplace(scale=1.0)
        if noisy > 3.0:
            released[key] = noisy
    return released


def report_text(data, rng):
    """A sentence with a rounded number in it."""
    value = round(len(data) + rng.laplace(scale=1.0), 1)
    return f"about {value:.1f} people"


def geometric_count(data, rng):
    """Two-sided geometric noise as the difference of two one-sided draws."""
    p = 1 - math.exp(-1.0)
    return len(data) + int(rng.geometric(p)) - int(rng.geometric(p))


def subsampled_sum(data, rng):
    """Poisson subsampling, then a noisy sum of the sampled rows."""
    chosen = [row for row in data if rng.random() < 0.5]
    total = sum(min(max(row, 0), 1) for row in chosen)
    return total + rng.normal(0, 1.0)
