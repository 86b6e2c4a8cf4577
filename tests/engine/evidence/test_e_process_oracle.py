"""The e-process against brute force: every bet is valid for every law that keeps the claim, and bounds are correct.

For *any* two laws P, Q and any epsilon, the smallest delta for which they are (epsilon, delta)-indistinguishable is known
in closed form, so every random pair of laws becomes exactly tight at a point of our choice, and expectations are finite sums.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP, claimed_epsilon
from dpaudit.engine.evidence.claim_points import parameter_grid, points_of
from dpaudit.engine.evidence.e_process import (
    Bets,
    Points,
    Record,
    bet_sizes,
    expert_gains,
)
from dpaudit.engine.evidence.wealth import RESERVE, Wealth
from dpaudit.engine.search.campaign import Campaign
from dpaudit.engine.views.building import build_views
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import Pair

Law = NDArray[np.float64]
Counts = NDArray[np.int64]

BETS = Bets.of(100_000)
ROUNDING = 1e-12


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """Smallest delta at which P and Q keep (epsilon, delta), in both orders."""
    c = math.exp(epsilon)
    return max(float(np.maximum(p - c * q, 0.0).sum()), float(np.maximum(q - c * p, 0.0).sum()))


def tight_points(p: Law, q: Law, epsilons: list[float]) -> Points:
    """Points that P and Q keep with equality: the pure one (where it is finite) and the approximate ones."""
    pairs = [(epsilon, hockey_stick(p, q, epsilon)) for epsilon in epsilons]
    if (p > 0.0).all() and (q > 0.0).all():
        # Just above the largest log-ratio, so that rounding of exp and log cannot make the pair violate it.
        pairs.append((float(np.abs(np.log(p / q)).max()) * (1.0 + 1e-15) + 1e-15, 0.0))
    return Points.of(pairs)


def random_law(cells: int, rng: np.random.Generator, *, positive: bool) -> Law:
    law = rng.dirichlet(np.full(cells, rng.choice([0.1, 0.5, 1.0, 5.0])))
    if positive:
        law = law + 1e-4
    elif cells > 2 and rng.random() < 0.5:
        law[rng.integers(cells)] = 0.0
    return np.asarray(law / law.sum())


def staircase(cells: int, epsilon: float, rng: np.random.Generator) -> tuple[Law, Law]:
    """P / Q is exp(epsilon) on some cells and exp(-epsilon) on the others: tight for epsilon-DP everywhere."""
    heavy = np.zeros(cells, dtype=bool)
    heavy[rng.permutation(cells)[: rng.integers(1, cells)]] = True
    share = 1.0 / (1.0 + math.exp(epsilon))
    q = np.empty(cells)
    q[heavy] = share * rng.dirichlet(np.ones(heavy.sum()))
    q[~heavy] = (1.0 - share) * rng.dirichlet(np.ones((~heavy).sum()))
    p = np.where(heavy, q * math.exp(epsilon), q * math.exp(-epsilon))
    return p, q


def record_of(past: Counts, new: Counts, *, ordered: bool = True, view: str = "view") -> Record:
    """A record whose older part is a third of the past, cell by cell."""
    return Record(view, past, new, ordered, past // 3)


def one_each(cells: int, one: int, other: int) -> Counts:
    """One output of D in a cell, and one of D' in another."""
    new = np.zeros((2, cells), dtype=np.int64)
    new[0, one] = new[1, other] = 1
    return new


def gains_of(past: Counts, one: int, other: int, points: Points, *, ordered: bool) -> dict[str, Law]:
    return expert_gains([record_of(past, one_each(past.shape[1], one, other), ordered=ordered)], points, BETS)[0]


def expected_gains(p: Law, q: Law, past: Counts, points: Points, *, ordered: bool) -> dict[str, Law]:
    """E_P f1 * E_Q f0 of every expert, shape (points, bets).

    Log-gains add up over outputs (a test holds it), so with ``g(i, j)`` the gain of one output of D in cell i and one of
    D' in cell j, the product of the two expectations is sum_i P_i e^g(i, 0) * sum_j Q_j e^g(0, j) / e^g(0, 0).
    """
    at_zero = gains_of(past, 0, 0, points, ordered=ordered)
    total = {expert: np.zeros((2, *gain.shape)) for expert, gain in at_zero.items()}
    for cell in range(p.size):
        for side, law, place in ((0, p, (cell, 0)), (1, q, (0, cell))):
            for expert, gain in gains_of(past, *place, points, ordered=ordered).items():
                assert np.isfinite(gain).all()
                total[expert][side] += law[cell] * np.exp(gain)
    return {expert: sums[0] * sums[1] / np.exp(at_zero[expert]) for expert, sums in total.items()}


def test_gains_add_up_over_outputs() -> None:
    rng = np.random.default_rng(1)
    past = rng.integers(1, 50, (2, 4))
    points = Points.of([(0.5, 0.0), (1.0, 0.01)])
    for one, other in itertools.product(range(4), repeat=2):
        both = gains_of(past, one, other, points, ordered=True)
        parts = [gains_of(past, *place, points, ordered=True) for place in ((one, 0), (0, other), (0, 0))]
        for expert, gain in both.items():
            assert gain == pytest.approx(parts[0][expert] + parts[1][expert] - parts[2][expert], abs=1e-12)
    new = rng.integers(0, 20, (2, 4))
    new[1] = new[0][::-1]
    whole = expert_gains([record_of(past, new)], points, BETS)[0]
    pieces = [
        gains_of(past, *place, points, ordered=True)
        for place in zip(*(np.repeat(range(4), n) for n in new), strict=True)
    ]
    for expert, gain in whole.items():
        assert gain == pytest.approx(sum(piece[expert] for piece in pieces), rel=1e-9, abs=1e-9)


def past_counts(kind: str, p: Law, q: Law, rng: np.random.Generator) -> Counts:
    """The samples from which bets are chosen: of the laws, of other laws, or arbitrary."""
    size = int(rng.integers(1, 3000))
    if kind == "honest":
        return np.stack([rng.multinomial(size, p), rng.multinomial(size, q)])
    if kind == "swapped":
        return np.stack([rng.multinomial(size, q), rng.multinomial(2 * size, p)])
    if kind == "one sided":
        return np.stack([rng.integers(0, 2, p.size) * size, rng.integers(0, 3, p.size)])
    return rng.integers(0, size + 1, (2, p.size))


@pytest.mark.parametrize("kind", ["honest", "swapped", "one sided", "nonsense"])
@pytest.mark.parametrize("positive", [True, False])
def test_no_bet_gains_on_average_where_the_claim_holds(kind: str, positive: bool) -> None:
    rng = np.random.default_rng([len(kind), positive])
    seen: set[str] = set()
    for case in range(40):
        # More than 64 cells are ordered by the older part of the past alone.
        cells = 70 if case % 13 == 12 else int(rng.integers(2, 8))
        if case % 4 == 0 and positive:
            p, q = staircase(cells, float(rng.choice([0.01, 0.3, 1.0, 3.0])), rng)
        else:
            p, q = random_law(cells, rng, positive=positive), random_law(cells, rng, positive=positive)
        points = tight_points(p, q, [0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0])
        past = past_counts(kind, p, q, rng)
        for expert, mean in expected_gains(p, q, past, points, ordered=case % 2 == 0).items():
            seen.add(expert)
            assert mean.max() <= 1.0 + ROUNDING, (expert, mean.max(), p, q, past)
    expected = {"natural", "sorted", "tails", "isotonic natural"}
    assert seen >= expected | ({"isotonic sorted"} if positive and kind != "one sided" else set())


@given(
    weights=st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000)), min_size=2, max_size=4),
    past=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=2, max_size=4),
    epsilons=st.lists(st.floats(0.0, 50.0), max_size=3),
    ordered=st.booleans(),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_bet_gains_on_average_whatever_hypothesis_tries(
    weights: list[tuple[int, int]], past: list[tuple[int, int]], epsilons: list[float], ordered: bool
) -> None:
    cells = min(len(weights), len(past))
    law = np.array(weights[:cells], dtype=np.float64).T
    p, q = law / law.sum(axis=1, keepdims=True)
    points = tight_points(p, q, epsilons)
    for mean in expected_gains(p, q, np.array(past[:cells]).T, points, ordered=ordered).values():
        assert mean.max() <= 1.0 + ROUNDING


def test_bets_gain_where_the_claim_is_false() -> None:
    """The counterpart, without which doing nothing would pass: the best bet has an expected gain above one."""
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.2, 0.7])
    past = np.array([[700, 200, 100], [100, 200, 700]])
    for expert, mean in expected_gains(p, q, past, Points.of([(1.0, 0.0), (1.0, 0.05)]), ordered=True).items():
        assert mean[0].max() > 1.01, expert
        assert mean[1].max() > 1.01, expert


def literal_gain(record: Record, order: list[int], epsilon: float, delta: float, bet: float) -> float:
    """The log-gain of one bet, transcribed line by line from the description of the algorithm (plain Python)."""
    c = math.exp(epsilon)
    (past1, past0), (new1, new0) = record.past.tolist(), record.new.tolist()
    n1, n0 = sum(past1), sum(past0)
    cells = len(order)

    def best(
        heavy: list[int], light: list[int], n_heavy: int, n_light: int, walk: list[int]
    ) -> tuple[float, float, float, set[int]]:
        options = []
        for size in range(1, cells + 1):
            chosen = walk[:size]
            p = (sum(heavy[j] for j in chosen) + 0.5) / (n_heavy + 1)
            q = (sum(light[j] for j in chosen) + 0.5) / (n_light + 1)
            v = p * (1 - p) + c * c * q * (1 - q)
            z = (p - c * q - delta) / math.sqrt(v / min(n1, n0)) - 0.5 * math.sqrt(math.log(cells))
            options.append((z, -size, math.sqrt(v), 0.5 * (q + max(p - delta, 0.0) / c), set(chosen)))
        z, _, scale, centre, chosen_set = max(options, key=lambda option: option[:2])
        return z, scale, centre, chosen_set

    z_right, s_right, centre_right, right = best(past1, past0, n1, n0, order[::-1])
    z_left, s_left, centre_left, left = best(past0, past1, n0, n1, order)
    w_right, w_left = max(z_right, 0.0) / s_right, max(z_left, 0.0) / s_left
    if right & left:
        w_right, w_left = (w_right, 0.0) if z_right >= z_left else (0.0, w_left)
    if max(w_right, w_left) == 0.0:
        w_right, w_left = (1.0, 0.0) if z_right >= z_left else (0.0, 1.0)
    top = max(w_right, w_left)
    w_right, w_left = (w / top if w / top >= 0.02 else 0.0 for w in (w_right, w_left))
    right, left = (right if w_right else set()), (left if w_left else set())
    m1 = w_right * (c * centre_right + delta) - w_left * c * centre_left
    m0 = -w_right * c * centre_right + w_left * (c * centre_left + delta)

    def steps(cell: int) -> tuple[float, float]:
        if cell in right:
            return w_right - m1, -c * w_right - m0
        if cell in left:
            return -c * w_left - m1, w_left - m0
        return -m1, -m0

    # "Elsewhere" counts for the largest bet even where it holds no cell.
    worst = max([m1, m0, *(-s for cell in right | left for s in steps(cell))])
    stake = bet / worst
    return sum(
        new1[j] * math.log1p(stake * steps(j)[0]) + new0[j] * math.log1p(stake * steps(j)[1]) for j in range(cells)
    )


@pytest.mark.parametrize("seed", range(20))
def test_gains_are_those_of_the_description(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    cells = int(rng.integers(2, 9))
    p, q = random_law(cells, rng, positive=True), random_law(cells, rng, positive=True)
    size = int(rng.integers(20, 2000))
    past = np.stack([rng.multinomial(size, p), rng.multinomial(size, q)])
    new = np.stack([rng.multinomial(200, p), rng.multinomial(200, q)])
    record = record_of(past, new)
    points = Points.of([(0.1, 0.0), (1.0, 0.0), (0.5, 0.01), (2.0, 1e-4)])
    gains = expert_gains([record], points, BETS)[0]
    middle = [(np.cumsum(side) - side / 2) / side.sum() for side in past]
    forward = (past[0] / past[0].sum()) @ middle[1] >= 0.5
    natural = list(range(cells)) if forward else list(range(cells))[::-1]
    for row, (epsilon, delta) in enumerate(zip(points.epsilon, points.delta, strict=True)):
        for column in (0, 7, BETS.fixed.size - 1):
            expected = literal_gain(record, natural, float(epsilon), float(delta), float(BETS.fixed[column]))
            assert gains["natural"][row, column] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_capital_at_the_start_is_one_and_late_experts_get_theirs_from_the_reserve() -> None:
    points = Points.of([(1.0, 0.0)])
    wealth = Wealth(points, BETS)
    assert wealth.settle([])[0] == pytest.approx(0.0, abs=1e-15)
    past = np.array([[50, 50], [50, 50]])
    nothing = np.zeros((2, 2), dtype=np.int64)
    for views in (["a"], ["a", "b"], ["a", "b", "c", "d"], [f"late {k}" for k in range(30)]):
        # Records without new outputs move no money, so the capital stays exactly one, whichever experts join.
        wealth.settle([record_of(past, nothing, view=view) for view in views])
        assert wealth.settle([])[0] == pytest.approx(0.0, abs=1e-12)
    assert 0.0 < RESERVE < 1.0


def test_wealth_is_a_supermartingale_with_views_that_come_and_go() -> None:
    """Two rounds of one output each, all 81 x 81 futures: the mean wealth never exceeds the wealth before.

    Which views exist in round two depends on what round one showed, as it does in an audit.
    """
    p, q = staircase(3, 1.0, np.random.default_rng(5))
    points = Points.of([(1.0 + 1e-12, 0.0), (0.4, hockey_stick(p, q, 0.4))])
    start = np.array([[6, 2, 4], [3, 5, 4]])
    before = Wealth(points, BETS)
    total = np.zeros((2, 2))  # of the wealth and of a follower's, against each point
    for one, other in itertools.product(range(3), repeat=2):
        new = one_each(3, one, other)
        after = copy.deepcopy(before)
        first = np.exp(after.settle([record_of(start, new, view="value")], 1))
        total += p[one] * q[other] * first
        past = start + new
        later = np.zeros((2, 2))
        for again, another in itertools.product(range(3), repeat=2):
            fresh = one_each(3, again, another)
            records = [record_of(past, fresh, view="value")]
            if one == 2:
                records.append(record_of(past[:, ::-1].copy(), fresh[:, ::-1].copy(), ordered=False, view="record"))
            if other == 0:
                records = [record_of(past, fresh, view="score")]
            segment = 1 + (one + other) % 2  # goes on, or starts afresh
            later += p[again] * q[another] * np.exp(copy.deepcopy(after).settle(records, segment))
        assert (later[0] <= first[0] * (1.0 + ROUNDING)).all()
        assert (later[1] <= 1.0 + ROUNDING).all()
        assert (later[1] != 1.0).any()  # the follower did bet
    assert (total <= 1.0 + ROUNDING).all()


def test_rounds_booked_together_are_rounds_booked_one_by_one() -> None:
    rng = np.random.default_rng(9)
    points = Points.of([(0.5, 0.0), (1.0, 0.0), (0.4, 0.01)])
    rounds, segments = [], [0, 1, 1, 0, 2, 2, 3]
    past = np.stack([rng.multinomial(300, [0.5, 0.3, 0.2]), rng.multinomial(300, [0.2, 0.3, 0.5])])
    for place in range(7):
        new = np.stack([rng.multinomial(200, [0.5, 0.3, 0.2]), rng.multinomial(200, [0.2, 0.3, 0.5])])
        views = ["value"] + ["record"] * (place > 1) + ["score"] * (place > 4)  # experts that appear later
        rounds.append([record_of(past, new, ordered=view != "record", view=view) for view in views])
        past = past + new
    together = Wealth(points, BETS).settle_all(rounds, segments)
    one_by_one = Wealth(points, BETS)
    single = [one_by_one.settle(records, segment) for records, segment in zip(rounds, segments, strict=True)]
    for array, parts in zip(together, zip(*single, strict=True), strict=True):
        np.testing.assert_allclose(array, np.stack(parts), rtol=1e-12, atol=1e-12)
    assert (together[1][np.array(segments) == 0] == 0.0).all()


@pytest.mark.parametrize("size", [1, 10**3, 10**6, 10**9])
def test_wealth_stays_finite_at_the_ends(size: int) -> None:
    points = Points.of([(1e-9, 0.0), (1.0, 0.0), (60.0, 0.0), (0.0, 0.5), (3.0, 1e-300), (1.0, 1.0)])
    for past, new in [
        ([[size, 0], [0, size]], [[size, 0], [0, size]]),
        ([[size, 0], [0, size]], [[0, size], [size, 0]]),
        ([[0, 1], [0, 1]], [[size, 0], [size, 0]]),
        ([[0, 0], [0, 0]], [[size, 0], [size, 0]]),
        ([[size, size], [0, 0]], [[size, 0], [0, size]]),
    ]:
        wealth = Wealth(points, Bets.of(2 * size, for_bound=True))
        for _ in range(3):
            settled = wealth.settle([record_of(np.array(past), np.array(new))])
            assert np.isfinite(settled).all()
            assert np.isfinite(wealth.settle([record_of(np.array(past), np.array(new))], 1)).all()


def test_unequal_sides_and_negative_counts_are_refused() -> None:
    past = np.ones((2, 2), dtype=np.int64)
    with pytest.raises(DPAuditError, match="3 and 2"):
        record_of(past, np.array([[1, 2], [1, 1]]))
    with pytest.raises(DPAuditError, match="negative"):
        record_of(past, np.array([[2, -1], [1, 0]]))
    with pytest.raises(DPAuditError, match="negative"):
        record_of(-past, np.array([[1, 0], [1, 0]]))


def test_bet_sizes_shrink_with_the_budget() -> None:
    for samples in (2, 10**3, 10**6, 10**9, 10**15):
        bets = bet_sizes(samples)
        assert (np.diff(bets) > 0.0).all()
        assert 0.0 < bets[0] <= 0.003
        assert bets[-1] < 1.0
    assert bet_sizes(10**9)[0] < bet_sizes(10**6)[0] < bet_sizes(10**3)[0] * 1.0001


def wealth_by_value(campaign: Campaign, points_at: Callable[[float], Points]) -> Callable[[float], list[float]]:
    """The wealth against one value of the parameter after every round, with wealth processes of its own and no shortcut."""

    @functools.cache
    def wealth_over_time(value: float) -> list[float]:
        own = {candidate.number: Wealth(points_at(value), campaign.bets) for candidate in campaign.candidates}
        current = {candidate.number: 1.0 for candidate in campaign.candidates}
        follower = np.zeros(len(points_at(value)))
        lines = []
        for settled in campaign.timeline:
            wealth, gained = own[settled.number].settle(settled.records, settled.segment)
            current[settled.number] = float(np.exp(np.minimum(wealth, 300.0)).mean())
            follower = follower + gained
            share = {candidate.number: math.exp(candidate.log_share) for candidate in campaign.candidates}
            aside = 1.0 - sum(share.values())
            lines.append(
                0.5 * (sum(share[k] * current[k] for k in current) + aside)
                + 0.5 * np.exp(np.minimum(follower, 300.0)).mean()
            )
        return lines

    return wealth_over_time


def brute_force_bound(
    wealth_at: Callable[[float], list[float]], claimed: float, threshold: float, largest: float, tied: bool
) -> float:
    """The prefix rule, one value at a time."""
    reached = 0.0
    for interval in parameter_grid(claimed, largest):
        for value in interval.values:
            with_claim = 0.8 if tied and value < claimed else 0.0
            own = (1.0 - with_claim) * (0.5 if value < interval.anchor else 1.0)
            shares = [(claimed, with_claim), (value, own), (interval.anchor, 1.0 - with_claim - own)]
            shared = np.sum([share * np.array(wealth_at(partner)) for partner, share in shares], axis=0)
            if shared.max(initial=0.0) < math.exp(threshold):
                return reached
            reached = value
    return reached


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-2), GaussianDP(1.0)], ids=repr)
def test_lower_bound_is_the_prefix_rule(claim: Claim) -> None:
    reached = []
    threshold, largest = math.log(20.0), 1.3  # one interval of the coarser grid above 1.2

    def points_at(value: float) -> Points:
        return points_of(claim.at(value))

    for seed, ratio in enumerate([0.5, 1.05, 3.0]):
        campaign = simulated_campaign(claim, np.random.default_rng([11, seed]), ratio=ratio)
        wealth_at = wealth_by_value(campaign, points_at)
        for tied in (True, False):
            got = campaign.lower_bound(points_at, claim.parameter, threshold, largest=largest, tied=tied)
            expected = brute_force_bound(wealth_at, claim.parameter, threshold, largest, tied)
            assert got == pytest.approx(expected, abs=1e-12)
            reached.append(got)
    assert min(reached) < claim.parameter < max(reached)  # both sides of the claim were exercised


def simulated_campaign(claim: Claim, rng: np.random.Generator, *, ratio: float) -> Campaign:
    """Three pairs, a few rounds of counts of ordered cells; the second pair leaks ``ratio`` times the claim's parameter."""
    pairs = [Pair([k], [k + 1]) for k in range(3)]
    campaign = Campaign(claim, points_of(claim), pairs, samples=20_000, complete=True, build=build_views)
    strength = ratio * (claimed_epsilon(claim) or claim.parameter)
    for candidate in campaign.candidates:
        epsilon = strength if candidate.number == 2 else strength / 10
        p = np.array([1.0, 0.2, math.exp(-epsilon)])
        q = p[::-1] / p.sum()
        p = p / p.sum()
        past = np.stack([rng.multinomial(200, p), rng.multinomial(200, q)])
        for size in (100, 1500):
            new = np.stack([rng.multinomial(size, p), rng.multinomial(size, q)])
            records = (record_of(past, new), record_of(past, new, ordered=False, view="record"))
            leading = candidate.number != 3 and size > 100
            campaign.settle(candidate, records, leading=leading, spent=0.5)
            past = past + new
    return campaign


def test_pairs_own_their_capital_before_they_are_sampled() -> None:
    """13.6: shares of the pool, of late proposals and of what is set aside add up to one, whenever pairs are proposed."""
    claim = PureDP(1.0)
    for complete, late in ((True, 0), (False, 0), (False, 1), (False, 12)):
        pairs = [Pair([k], [k + 1]) for k in range(5)]
        campaign = Campaign(claim, points_of(claim), pairs, samples=1000, complete=complete, build=build_views)
        assert campaign.log_wealth() == pytest.approx(0.0, abs=1e-12)
        for k in range(late):
            campaign.propose(Pair([k], [k, k]))
            assert campaign.log_wealth() == pytest.approx(0.0, abs=1e-12)
        assert sum(math.exp(candidate.log_share) for candidate in campaign.candidates) <= 1.0 + 1e-12


def test_tied_bounds_agree_with_the_wealth_at_the_claim() -> None:
    """13.1: what refutes the claim with enough to spare refutes everything below, so the prefix reaches it."""
    claim = PureDP(1.0)
    agreed = 0
    for seed in range(8):
        campaign = simulated_campaign(claim, np.random.default_rng([12, seed]), ratio=1.0 + 0.3 * seed)
        threshold = math.log(20.0)
        bound = campaign.lower_bound(lambda g: points_of(claim.at(g)), 1.0, threshold, largest=8.0, tied=True)
        if campaign.log_wealth() >= threshold + math.log(3.0):
            assert bound >= 1.0
            agreed += 1
    assert agreed >= 3


def test_the_grid_meets_the_claim_and_ascends() -> None:
    for claimed in (1e-6, 0.1, 1.0 / 3.0, 1.0, math.pi, 17.3):
        values = [value for interval in parameter_grid(claimed, 60.0) for value in interval.values]
        assert claimed in values
        assert (np.diff(values) > 0.0).all()
        assert 0.0 < values[0] <= 0.03 * claimed
        assert values[-1] >= 60.0
    assert parameter_grid(0.0, 1.0)[0].values == (0.0,)
