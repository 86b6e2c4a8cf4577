r"""Privacy of training from membership scores of canaries: over many runs, or in one.

Many runs (:func:`audit_scores`). Each run trains with one canary, or without it, and gives one score. The scores with the
canary are independent draws from a law P, those without it from Q, and by post-processing P and Q are as hard to distinguish
as the claim says. That is the setting of ``evidence``, with outputs drawn beforehand. A bet may rest on earlier
scores only, and "earlier" must have nothing to do with the values. Each side is shuffled by a generator that knows only
the number of scores and the seed. Scores listed in an order that does not depend on their values (that of the runs, say)
are independent draws in any fixed order, so for every seed the wealth is a supermartingale under the claim. Scores that
come sorted are independent draws after a uniformly random shuffle: for them alpha holds over the seed.

One run (:func:`one_run_bound`; Steinke, Nasr and Jagielski 2023). Canary i of m is in the data iff a fair coin S_i says
so, all coins independent. From the one output the scores are computed, and from the scores alone guesses T: of exactly r
canaries it is said whether they were in. N is the number of right guesses.

Theorem. If flipping one S_i changes the output within (epsilon, delta)-DP, then with q = e^epsilon / (1 + e^epsilon), W
binomial (r, q) and f = P(W >= v), for v >= 1,

    P(N >= v) <= f + m delta f (1 - f) / (v P(W = v)),                                                          (*)

and some mechanism attains it (or 1, if that is less).

Proof. Let P_s be the law of T if the coins fall as s, and s^i be s with its i-th coin turned. By the claim

    sum_t (P_s(t) - e^epsilon P_{s^i}(t))_+ <= delta    for all s and i.

Keep the t that guess canary i, and rightly under s; sum over i; average over s. This is at most m delta. Now gather the
terms by j, the number of right guesses of t under s, inside the positive part, which makes the sum no larger. With p(j) =
P(N = j), the first terms add up to j p(j): t counts once for each of its right guesses. Under s^i the same t has j - 1
right guesses and i is one of its r - j + 1 wrong ones, so the second terms add up to (r - j + 1) p(j - 1). Hence

    sum_j x_j <= m delta    where    x_j = (j p(j) - e^epsilon (r - j + 1) p(j - 1))_+ .

For w(j) = P(W = j) it is j w(j) = e^epsilon (r - j + 1) w(j - 1). So h = p / w rises by at most x_j / (j w(j)) from j - 1
to j. Average h(a) - h(b) over independent a, b with the laws of W given W >= v and given W < v:

    (P(N >= v) - f) / (f (1 - f)) = P(N >= v) / f - P(N < v) / (1 - f) <= sum_j x_j P(b < j <= a) / (j w(j)).

P(b < j <= a) is P(W < j) / (1 - f) for j <= v and P(W >= j) / f for j >= v. As w is log-concave, P(W >= j) / w(j) falls
in j and P(W < j) / (j w(j)) = P(W < j) / (e^epsilon (r - j + 1) w(j - 1)) rises, so the last factor is largest at j = v,
where it is 1 / (v w(v)). (*) follows. It is attained by randomised response that, with probability m delta f / (v w(v)),
is conditioned on N >= v: then x_v = m delta, and the other x_j are zero.

For delta = 0 this is the binomial tail of the paper; for delta > 0 its bound is larger wherever it is of use.

One statistic, one tail. (*) bounds the same number P(N >= v) for every (epsilon, delta) that the mechanism keeps, so the
smallest of these bounds is a bound too: looking along a whole privacy profile, or for the largest epsilon refuted, needs
no correction. Nor does a second bound of the same number: ``evidence.one_run_tail`` uses all points of the profile together
(Mahloujifar, Melis and Chaudhuri 2025), and the smaller of both is valid at one alpha. Several numbers of guesses are several
statistics, and share alpha equally. ``epsilon_lower`` and ``parameter_lower`` hold together: each exceeds its truth only where N
reaches some number that has probability at most alpha, so one of them does only where N reaches the smaller of the two.

Equal scores. Which of them are guessed must not depend on the coins, nor on the order in which canaries are listed, which
may (first those that were out, then those that were in). A fair draw among them would do; what is counted is the smallest
N that any choice among them gives, which is at most that of the fair draw, so that (*) holds for it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit._util.deprecation import checked_keywords
from dpaudit._util.validation import check_choice, check_count, check_open_unit, shorten
from dpaudit.claims import ApproxDP, Claim, MetricDP, PureDP, Verdict, claim_delta, claimed_epsilon
from dpaudit.engine.encoding.batch import encode
from dpaudit.engine.evidence.claim_points import LARGEST_EPSILON, curve_points, points_of
from dpaudit.engine.evidence.e_process import Floats
from dpaudit.engine.evidence.one_run_tail import largest_refuted_curve, one_run_tail
from dpaudit.engine.options import Options
from dpaudit.engine.request import Findings, Request
from dpaudit.engine.sampling.blocks import BlockPair, TaskResult
from dpaudit.engine.search.attempt import Attempt
from dpaudit.engine.search.campaign import GROWTH, Campaign, Candidate
from dpaudit.engine.search.detectable import HEADLINE, Extent, detectable_epsilon
from dpaudit.engine.search.rounds import Budget, settle_rounds
from dpaudit.engine.views.building import build_views
from dpaudit.engine.views.view import Block
from dpaudit.errors import InvalidArgument
from dpaudit.neighbours import Pair, fixed
from dpaudit.result.model import Result, StoppedBy
from dpaudit.result.text import claim_text, parameter_words


@dataclass(frozen=True, slots=True)
class ScoreLimits:
    """Numbers of scores and guesses."""

    round_share: float = 0.15
    """A round has this share of the scores settled so far. Scores cannot be drawn again, so every look counts."""
    fewest: int = 10
    """An audit needs so many scores of each kind."""
    fewest_guesses: int = 8
    """The smallest number of guesses that is tried."""
    rounding: float = 1e-9
    """Relative error that is added to p-values, more than their computation can have."""
    most_guesses_of_a_curve: int = 20_000
    """With more guesses the bound by a whole curve, which takes a step for each of them, is left out."""


SCORES = ScoreLimits()
ONE_RUN_METHODS = ("points", "both")


@checked_keywords(power="detect_factor")
def audit_scores(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    claim: Claim,
    *,
    alpha: float = 1e-6,
    detect_factor: float = 2.0,
    seed: int = 0,
    name: str = "membership scores",
) -> Result:
    """Lower-bound epsilon from scores of a canary over many independent runs, with it and without it.

    Parameters
    ----------
    scores_in, scores_out
        One score a run, as many with the canary as without it; infinities are allowed, NaN is not. Runs must be
        independent. Scores of several canaries from *one* run are not: those are for :func:`one_run_bound`.
    claim
        What the training claims for adding or removing (or replacing) the canary.
    alpha
        Probability that a training that keeps its claim is reported as a violation, or that ``epsilon_lower`` exceeds
        the truth.
    detect_factor
        INCONCLUSIVE unless an event of probability 0.1 at this multiple of the claim would have been caught.
    seed
        Of the shuffle. Alpha holds for each seed if the scores are listed in an order that does not depend on their values,
        and over the seed if they are sorted.

    Returns
    -------
    Result
        As :func:`dpaudit.audit` returns, without witness.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = audit_scores(rng.normal(3.0, size=500), rng.normal(size=500), PureDP(0.5))
    >>> result.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    _check_not_metric(claim)
    sides = [_scores("scores_in", scores_in), _scores("scores_out", scores_out)]
    size = sides[0].size
    if sides[1].size != size:
        raise InvalidArgument(
            f"scores_in has {size} scores and scores_out {sides[1].size}; as many runs are needed with the canary as "
            "without it. Leave out the surplus at random, not by value."
        )
    check_count(minimum=SCORES.fewest, number_of_scores=size)
    pair = Pair("with the canary", "without it")
    options = Options(samples=2 * size, alpha=alpha, detect_factor=detect_factor, seed=seed)
    request = Request.of(None, claim, replace(fixed([pair]), relation=claim.relation), options, name)
    rng = np.random.default_rng([seed, size])
    source = _GivenScores([rng.permutation(side) for side in sides])
    campaign = Campaign(
        claim,
        points_of(claim),
        [pair],
        samples=options.samples,
        complete=True,
        build=partial(build_views, boosted=False),
    )
    log_threshold = math.log(1.0 / alpha)
    attempt = Attempt(claim, campaign, log_threshold, raised_in_probe=1.0)
    budget = Budget(options.samples)
    trajectory = [(budget.drawn, settled.log_wealth) for settled in settle_rounds(campaign, source, budget)]
    shown = attempt.shown(hurried=False)
    extent = Extent(per_side=size, log_threshold=log_threshold, log_share=0.0, samples=options.samples)
    detectable = detectable_epsilon(claim, extent)
    lacking = None if shown.refuted else request.lacking_power(detectable[HEADLINE], extent, unit="runs")
    found_nothing = Verdict.NO_VIOLATION_FOUND if lacking is None else Verdict.INCONCLUSIVE
    return request.result(
        Findings(
            verdict=Verdict.VIOLATION if shown.refuted else found_nothing,
            epsilon_lower=shown.epsilon_lower,
            parameter_lower=shown.parameter_lower,
            detectable=detectable,
            samples=options.samples,
            pairs=1,
            stopped_by=StoppedBy.SAMPLES,
            reproducible=True,
            log_threshold=log_threshold,
            messages=() if lacking is None else (lacking,),
            trajectory=trajectory,
        )
    )


@dataclass(frozen=True, slots=True)
class _GivenScores:
    """Rounds of scores that are there already; they grow with what was settled."""

    sides: Sequence[Floats]

    def next_size(self, candidate: Candidate, *, leading: bool, left: int) -> int:
        del leading
        size, start = self.sides[0].size, candidate.seen
        first = min(GROWTH.first_round, math.ceil(size / 5))
        return min(left, max(math.ceil(first / 2) if start else first, math.ceil(SCORES.round_share * start)))

    def draw(self, candidate: Candidate, size: int) -> TaskResult:
        part = slice(candidate.seen, candidate.seen + size)
        batches = encode(self.sides[0][part]), encode(self.sides[1][part])
        counts = tuple(np.stack([view.count(Block(batch)) for batch in batches]) for view in candidate.learner.views)
        return TaskResult((BlockPair(size, counts, batches, (), (0.0, 0.0)),))

    def check(self, candidate: Candidate, drawn: BlockPair) -> None:
        """Check nothing: the caller promises that the scores are independent."""

    def is_last(self, candidate: Candidate) -> bool:
        del candidate
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunBound:
    """The bound that one run with many canaries gives.

    ``epsilon_lower`` is stated at ``delta``; ``parameter_lower`` is the bound in the claim's own parameter. ``guesses`` and
    ``correct`` belong to the number of guesses that says most, and ``p_value`` (against the claim) includes its share of
    alpha.
    """

    claim: Claim
    verdict: Verdict
    epsilon_lower: float
    delta: float
    parameter_lower: float
    p_value: float
    alpha: float
    canaries: int
    guesses: int
    correct: int

    def __str__(self) -> str:
        at = f" at delta {self.delta:g}" if self.delta else ""
        own = (
            ""
            if isinstance(self.claim, PureDP | ApproxDP)
            else f"{parameter_words(self.claim)} >= {self.parameter_lower:.4g}, "
        )
        return (
            f"{self.verdict}  one run: claimed {claim_text(self.claim)}, shown {own}epsilon >= {self.epsilon_lower:.4g}{at} "
            f"({self.correct} of {self.guesses} guesses right, {self.canaries} canaries, alpha {self.alpha:g})"
        )


def one_run_bound(
    scores: ArrayLike,
    members: ArrayLike,
    claim: Claim,
    *,
    alpha: float = 0.05,
    guesses: int | Sequence[int] | None = None,
    method: str = "both",
) -> OneRunBound:
    """Lower-bound epsilon from one run with many canaries, each in the data by its own fair coin.

    Parameters
    ----------
    scores
        One score a canary, computed from the output of the run (and from public things) only; large means "was in". NaN
        is not allowed. Of equal scores at the cut between guessed and not those count that are wrong, whatever order they
        come in: where scores have few values, add a little noise of your own, drawn without looking at ``members``.
    members
        Which canaries were in the data: independent fair coins, tossed by the auditor. A fixed half drawn without
        replacement is not covered by the theorem.
    claim
        What is claimed for adding or removing one canary (or for swapping it, if the coin decides between two versions).
    alpha
        Probability of a bound above the truth.
    guesses
        How many canaries to guess: half of them the highest scores, guessed to be in, half the lowest, guessed to be out.
        Fixed without looking at ``members``. Several numbers share alpha; None tries all canaries, half of them, a
        quarter, and so on.
    method
        ``"both"`` shows the better one of two bounds, at no cost in alpha: one tests the points of the claim's curve one by one
        (Steinke, Nasr and Jagielski 2023, with the exact bound), the other uses the whole curve at once (Mahloujifar, Melis
        and Chaudhuri 2025) and shows more for Gaussian DP, for curves, and for moment claims. ``"points"`` leaves the second
        out. The same for pure and approximate DP.

    Returns
    -------
    OneRunBound
        VIOLATION where the p-value against the claim is at most alpha, otherwise INCONCLUSIVE: one run says little about
        what it would have caught.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> members = rng.random(1000) < 0.5
    >>> bound = one_run_bound(members + rng.normal(scale=0.5, size=1000), members, ApproxDP(1.0, 1e-5))
    >>> bound.verdict, 2.0 < bound.epsilon_lower < 7.5
    (<Verdict.VIOLATION: 'VIOLATION'>, True)
    """
    if isinstance(claim, type) or not isinstance(claim, Claim):
        raise InvalidArgument(f"claim={shorten(claim)} must be a claim such as dpaudit.PureDP(1.0).")
    _check_not_metric(claim)
    check_open_unit(alpha=alpha)
    check_choice(ONE_RUN_METHODS, method=method)
    values = _scores("scores", scores)
    inside = _members(members, values.size)
    numbers = _guess_numbers(guesses, values.size)
    right = [_correct(values, inside, number) for number in numbers]
    tests = list(zip(numbers, right, strict=True))

    def p_values(epsilon: Floats, delta: Floats) -> list[float]:
        """For each number of guesses the smallest bound along the profile, times the tests that share alpha."""
        return [
            min(1.0, len(tests) * min(map(partial(one_run_p_value, values.size, r, v), epsilon, delta)))
            for r, v in tests
        ]

    def against(other: Claim) -> list[float]:
        points = curve_points(other)
        return p_values(points.epsilon, points.delta)

    # Many guesses take long: whether the curve is used depends on their number alone.
    curved = [
        (r, v)
        for r, v in tests
        if method == "both" and claimed_epsilon(claim) is None and r <= SCORES.most_guesses_of_a_curve
    ]
    at_claim = against(claim)
    for r, v in curved:
        place = tests.index((r, v))
        by_curve = len(tests) * one_run_tail(values.size, r, v, claim) * (1.0 + SCORES.rounding)
        at_claim[place] = min(at_claim[place], by_curve)
    refuted = min(at_claim) <= alpha
    best = int(np.argmin(at_claim))
    delta = claim_delta(claim)
    epsilon_lower = _largest_refuted(lambda e: min(p_values(np.array([e]), np.array([delta]))), alpha, LARGEST_EPSILON)
    named = claimed_epsilon(claim) is not None
    parameter_lower = (
        epsilon_lower
        if named
        else _largest_refuted(
            lambda value: min(against(claim.at(value))), alpha, 100.0 * claim.parameter, largest_of_all=math.inf
        )
    )
    if curved and refuted:
        parameter_lower = max(parameter_lower, claim.parameter)  # the searches may end just below it
    share, largest = alpha / len(tests), 2.0 * claim.parameter
    for r, v in curved:
        parameter_lower = largest_refuted_curve(
            values.size, r, v, claim, tail=share, largest=largest, known=parameter_lower
        )
    p_value = at_claim[best]
    return OneRunBound(
        claim=claim,
        verdict=Verdict.VIOLATION if refuted else Verdict.INCONCLUSIVE,
        epsilon_lower=epsilon_lower,
        delta=delta,
        parameter_lower=parameter_lower,
        p_value=p_value,
        alpha=alpha,
        canaries=values.size,
        guesses=numbers[best],
        correct=right[best],
    )


def one_run_p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """The bound (*) of the module on the probability of so many right guesses under (epsilon, delta)-DP.

    >>> round(one_run_p_value(10, 10, 10, 0.0, 0.0) * 1024, 6)
    1.0
    """
    from scipy.special import betainc

    if correct <= 0:
        return 1.0
    against = math.exp(-epsilon)  # odds of a wrong guess
    q = 1.0 / (1.0 + against)
    tail = float(betainc(correct, guesses - correct + 1.0, q))
    # P(W >= v) / P(W = v) or P(W < v) / P(W = v), whichever is on the side where terms fall: neither can underflow.
    if correct > q * guesses:
        w = np.arange(correct + 1.0, guesses + 1.0)
        ratio = (1.0 - tail) * (1.0 + float(np.cumprod((guesses + 1.0 - w) / (against * w)).sum()))
    else:
        w = np.arange(correct, 0.0, -1.0)
        ratio = tail * float(np.cumprod(against * w / (guesses + 1.0 - w)).sum())
    return min(1.0, (tail + canaries * delta / correct * ratio) * (1.0 + SCORES.rounding))


def _largest_refuted(p_value: Any, alpha: float, largest: float, *, largest_of_all: float | None = None) -> float:
    """A value whose p-value is at most alpha, as large as bisection finds; zero where there is none.

    Any such value may be reported (see "One statistic, one tail"), so a p-value that is not monotone does no harm. Values up
    to ``largest`` are looked at, and beyond it, ten times as many each time, while that is refuted too, up to ``largest_of_all``.
    """
    low, high = 0.0, largest
    while p_value(high) <= alpha:
        if largest_of_all is None or high >= largest_of_all or not math.isfinite(10.0 * high):
            return high
        low, high = high, min(10.0 * high, largest_of_all)
    for _ in range(30):
        middle = 0.5 * (low + high)
        if middle > 0.0 and p_value(middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def _correct(scores: Floats, members: NDArray[np.bool_], number: int) -> int:
    """Right guesses: the highest half of them in, the lowest half out, equal scores at the cut chosen as wrong as can be."""
    top = (number + 1) // 2
    bottom = number - top
    ascending = np.sort(scores)
    return _least_right(scores > (cut := ascending[-top]), scores == cut, members, top) + (
        _least_right(scores < (cut := ascending[bottom - 1]), scores == cut, ~members, bottom) if bottom else 0
    )


def _least_right(sure: NDArray[np.bool_], tied: NDArray[np.bool_], right: NDArray[np.bool_], number: int) -> int:
    """Fewest right ones among ``number`` guesses, of which those that are ``sure`` are made and the rest are ``tied``.

    Both cuts may fall among the same equal scores. Wrong ones of one side are right ones of the other and there are enough
    scores for both, so that the fewest of each can be had at once.
    """
    chosen = number - int(sure.sum())
    return int((sure & right).sum()) + max(0, chosen - int((tied & ~right).sum()))


def _guess_numbers(guesses: int | Sequence[int] | None, canaries: int) -> list[int]:
    if guesses is None:
        numbers = [canaries]
        while numbers[-1] // 2 >= SCORES.fewest_guesses:
            numbers.append(numbers[-1] // 2)
        return numbers
    numbers = list(guesses) if isinstance(guesses, Sequence | np.ndarray) else [guesses]
    if not numbers:
        raise InvalidArgument("guesses is empty; give a number of guesses, or None for the default ones.")
    check_count(**{f"guesses[{place}]": number for place, number in enumerate(numbers)})
    if max(numbers) > canaries:
        raise InvalidArgument(f"guesses={guesses!r} must not exceed the number of canaries, {canaries}.")
    return numbers


def _check_not_metric(claim: Claim) -> None:
    if isinstance(claim, MetricDP):
        raise InvalidArgument(
            f"claim={claim!r} depends on the distance of two data sets, which scores do not have; use PureDP(epsilon * distance)."
        )


def _scores(name: str, scores: ArrayLike) -> Floats:
    array = np.asarray(scores)
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise InvalidArgument(f"{name}={shorten(scores)} must be a list of numbers, one a run or canary.")
    values = array.astype(np.float64)
    if np.isnan(values).any():
        raise InvalidArgument(
            f"{name} holds NaN at position {int(np.flatnonzero(np.isnan(values))[0])}; whether a run fails may depend on "
            "something too, so give it a score of its own, such as -inf."
        )
    if not values.size:
        raise InvalidArgument(f"{name} is empty; at least one score is needed.")
    return values


def _members(members: ArrayLike, size: int) -> NDArray[np.bool_]:
    array = np.asarray(members)
    if array.shape != (size,) or not np.isin(array, (0, 1)).all():
        raise InvalidArgument(f"members={shorten(members)} must say True or False for each of the {size} scores.")
    return array.astype(np.bool_)
