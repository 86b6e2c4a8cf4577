r"""Largest probability of many right guesses in one run, under a whole privacy curve at once.

The setting is that of ``membership``: m canaries, each in the data by its own fair coin; r of them are guessed, from the one
output; N guesses are right. ``membership`` bounds P(N >= v) under one point (epsilon, delta) of the claim. Here all points are
used together, by the recursion of Mahloujifar, Melis and Chaudhuri ("Auditing f-differential privacy in one run", ICML 2025).

The claim enters as F(x), the largest probability that an event can have on one side if it has probability x on the other, and
as its inverse G(y) = inf {x : F(x) >= y}. F = 1 - f for a trade-off function f, so F rises and is concave; for points,
F(x) = min over (epsilon, delta) of exp(epsilon) x + delta and of 1 - exp(-epsilon) (1 - delta - x). Everything below holds for a
larger F, hence for a smaller G: leaving out points, or rounding G down, is always allowed.

Theorem. Put R = alpha v, H = alpha (r - v), and for j = v, v - 1, ..., 1

    H' = max(H, m G(R / m)),    R' = R + (j - 1) / (r - j + 1) (H' - H).

If R + H > r at the end, then P(N >= v) < alpha for every mechanism that keeps the claim for the flip of one coin.

Proof. Let s be the coins and s^i the coins with the i-th one turned; both are uniform. Let J be a set of numbers and E the
guesses that name canary i rightly under s, with N in J. Under s^i the same guesses name i wrongly, and have one right guess less.
The claim gives P_s(E) <= F(P_{s^i}(E)). Averaging over s and over i, inside F because F is concave, with p(j) = P(N = j),

    (1/m) sum_{j in J} j p(j) <= F( (1/m) sum_{j in J} (r - j + 1) p(j - 1) ).

Only this is used, so canaries may depend on each other in any way. Take J = {j, j + 1, ...} and write R_j = sum_{i >= j} i p(i),
H_j = sum_{i >= j} (r - i) p(i), so that H_{j-1} >= m G(R_j), and the step from j to j - 1 adds p(j - 1) (j - 1, r - j + 1) to
(R, H). Let K_j be the cone of all a (1, -1) + b (j, r - j) with a, b >= 0. Suppose P(N >= v) >= alpha. Then, by induction, the
true (R_j, H_j) minus the one of the recursion is in K_j:

- at j = v it is sum_{i >= v} p(i) (i, r - i) - alpha (v, r - v), and (i, r - i) = (v, r - v) + (i - v) (1, -1).
- Let the difference at j be a (1, -1) + b (j, r - j) = (a + b) (1, -1) + b (j - 1, r - j + 1). The true step adds
  p (j - 1, r - j + 1), that of the recursion q (j - 1, r - j + 1) with q >= 0. If q = 0 the new difference is in K_{j-1}.
  Otherwise the recursion has H' = m G(R) <= m G(R_j) <= H_{j-1}, as R <= R_j on K_j and G rises. So the second entry of the new
  difference, (b + p - q) (r - j + 1) - (a + b), is not negative, hence b + p - q >= 0, and the new difference is in K_{j-1}.

On K_0 the sum of the entries is not negative, and the true sum at j = 0 is r. So the recursion ends with R + H <= r.

Rounding. The proof allows H' to be too small (q is too small then) and, as (1, 0) is in every K_j, R to be too small. G is
rounded down by ``ROUNDING`` and R by a few units in the last place, so rounding never makes a probability smaller than it is.

For a single point this is never below ``membership.one_run_p_value``, which some mechanism attains: the start puts all of the
tail on N = v. For a curve it usually is below. Both bound the same probability, so the smaller one is a bound too, without a
correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from dpaudit.claims import Claim, GaussianDP
from dpaudit.engine.evidence.claim_points import curve_points
from dpaudit.engine.evidence.e_process import Floats

ROUNDING = 1e-10  # relative, of the inverse curve and of the final comparison
LAST_PLACES = 1.0 - 2.0**-50  # four units in the last place, for the operations of one step
PARALLEL = 64  # values that are computed together when a root is sought
FEW_CURVES = 6  # the same for claims whose profile takes a search at every epsilon
RESOLUTION = 1e-6  # relative, of a root
SMALLEST_TAIL = 1e-300

InverseCurve: TypeAlias = Callable[[Floats], Floats]
"""G for several claims at once: an array with one probability for each of them, to an array of the same shape."""


def inverse_curve(claims: Sequence[Claim]) -> InverseCurve:
    """Return G of each claim, rounded down: in closed form for Gaussian DP, by points of the profile otherwise.

    >>> bool(abs(inverse_curve([GaussianDP(1.0)])(np.array([0.5])) - ndtr(-1.0)) < 1e-9)
    True
    """
    if all(isinstance(claim, GaussianDP) for claim in claims):
        mu = np.array([claim.parameter for claim in claims])
        return lambda y: ndtr(ndtri(y) - mu) * (1.0 - ROUNDING)
    points = [curve_points(claim) for claim in claims]
    width = max(map(len, points))  # a point that is repeated changes nothing
    epsilon = np.array([np.resize(each.epsilon, width) for each in points])
    delta = np.array([np.resize(each.delta, width) for each in points])
    shrink, grow = np.exp(-epsilon), np.exp(np.minimum(epsilon, 700.0))

    def inverse(y: Floats) -> Floats:
        low = shrink * (y[:, None] - delta)
        high = (1.0 - delta) - grow * (1.0 - y[:, None])
        # The second form cancels: its absolute error is a few units in the last place of exp(epsilon) (1 - y) and of 1.
        high -= ROUNDING * 1e-3 * (1.0 + grow * (1.0 - y[:, None]))
        return np.asarray(np.maximum(np.maximum(low, high).max(axis=1), 0.0) * (1.0 - ROUNDING))

    return inverse


def refuted_tails(canaries: int, guesses: int, correct: int, tails: Floats, inverse: InverseCurve) -> Floats:
    """Return, for each tail probability, whether the claim beside it in ``inverse`` excludes P(N >= correct) >= tail.

    Parameters
    ----------
    canaries, guesses, correct : int
        m, r and v of the theorem; ``1 <= correct <= guesses <= canaries``.
    tails : array
        The alphas of the theorem.
    inverse : callable
        G of as many claims (or of one).
    """
    right = tails * correct * LAST_PLACES
    wrong = tails * float(guesses - correct)
    for j in range(correct, 0, -1):
        more = np.maximum(wrong, canaries * inverse(np.minimum(right / canaries, 1.0)))
        added = more - wrong
        if not added.any():
            break  # neither changes any more
        right = np.where(added > 0.0, (right + (j - 1) / (guesses - j + 1) * added) * LAST_PLACES, right)
        wrong = more
    return np.asarray(right + wrong > guesses * (1.0 + ROUNDING))


def one_run_tail(canaries: int, guesses: int, correct: int, claim: Claim) -> float:
    """Return an upper bound of P(N >= correct) under the claim, by the theorem of the module.

    >>> 0.049 < one_run_tail(1000, 100, 90, GaussianDP(0.602)) < 0.05
    True
    """
    if correct <= 0:
        return 1.0
    inverse = inverse_curve([claim])
    low, high = SMALLEST_TAIL, 1.0
    for _ in range(4):
        tails = np.geomspace(low, high, PARALLEL)
        refuted = refuted_tails(canaries, guesses, correct, tails, inverse)
        first = int(np.argmax(refuted)) if refuted.any() else PARALLEL - 1
        if first == 0:
            return low
        low, high = float(tails[first - 1]), float(tails[first])
    return high


def largest_refuted_curve(
    canaries: int, guesses: int, correct: int, claim: Claim, *, tail: float, largest: float, known: float = 0.0
) -> float:
    """Return a value of the claim's parameter at which P(N >= correct) < ``tail``, as large as a search finds; 0 if none.

    Any value found may be reported: all these bounds are about one and the same probability, so the truth is among the values
    that are excluded with probability at most ``tail``, however many are tried. Values up to ``largest`` are looked at, and
    beyond it, ten times as many each time, while all of these are refuted too. The search begins at ``known``, a value that was
    refuted otherwise, and ends there if the next one is not refuted.
    """
    if correct <= 0:
        return known

    def refuted_among(values: list[float]) -> Floats:
        inverse = inverse_curve([claim.at(value) for value in values])
        return refuted_tails(canaries, guesses, correct, np.full(len(values), tail), inverse)

    if known and not refuted_among([known * (1.0 + RESOLUTION)])[0]:
        return known
    low, high = known, max(largest, 2.0 * known)
    parallel = PARALLEL if isinstance(claim, GaussianDP) else FEW_CURVES
    while high - low > RESOLUTION * high and high > RESOLUTION * largest:
        values = np.linspace(low, high, parallel + 1)[1:].tolist()
        refuted = np.flatnonzero(refuted_among(values))
        last = int(refuted[-1]) + 1 if refuted.size else 0
        grows = last == parallel and high >= largest and math.isfinite(10.0 * high)
        low, high = (high, 10.0 * high) if grows else [low, *values, high][last : last + 2]
    return low
