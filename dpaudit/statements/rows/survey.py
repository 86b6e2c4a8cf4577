"""Notes: bounded noise, Pufferfish, importance weights, the exponential mechanism, federated learning."""

from __future__ import annotations

import math

import numpy as np

from dpaudit import exact
from dpaudit.accuracy.bounds import noise
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("notes")
QUERIES = (1, 1000)


def bounded_against_gaussian(
    epsilon: float, delta: float, beta: float, queries: tuple[int, ...] = QUERIES
) -> list[tuple[int, float, float]]:
    """Largest error over k queries: the radius of bounded noise, and what Gaussian noise exceeds with probability beta."""
    module = reference("bounded_noise")
    table = []
    for k in queries:
        radius = module.calibrate_radius(epsilon=epsilon, delta=delta, queries=k)
        deviation = module.gaussian_std(epsilon=epsilon, delta=delta, queries=k)
        table.append((k, radius, float(noise.gaussian_tail_inverse(beta, deviation, k))))
    return table


def crossing_point(epsilon: float, delta: float, beta: float, largest: int = 10_000) -> int:
    """Least number of queries, by bisection, from which bounded noise has the smaller largest error."""
    low, high = 1, largest
    while high - low > 1:
        middle = (low + high) // 2
        ((_, radius, gaussian),) = bounded_against_gaussian(epsilon, delta, beta, (middle,))
        low, high = (low, middle) if radius <= gaussian else (middle, high)
    return high


@CHAPTER.row(
    "bounded-noise",
    "bounded noise, first result",
    Kind.THEOREM,
    "The largest error over k queries is O(M sqrt(k log(1/delta))/epsilon).",
    Standing.HOLDS,
    corrected=("The constant depends on k and delta: 24.8 for one query, 4.8 for 1000 at epsilon = 1, delta = 1e-6."),
    counterexample="Read with the constant 1 such noise is far from private.",
)
def bounded(e: Evidence, epsilon: float = 1.0, delta: float = 1e-6) -> None:
    rows = bounded_against_gaussian(epsilon, delta, 1e-3)
    constants = [radius * epsilon / math.sqrt(k * math.log(1.0 / delta)) for k, radius, _ in rows]
    e.claim(
        f"the calibrated radius over sqrt(k log(1/delta))/epsilon falls: {', '.join(f'{c:.2f}' for c in constants)}"
        " for k = 1, 1000",
        constants == sorted(constants, reverse=True),
    )
    module = reference("bounded_noise")
    options = {"family": "DE", "sensitivity": 1.0, "epsilon": epsilon, "queries": 1000}
    kept = module.composed_delta(radius=rows[-1][1], **options)
    e.claim(f"at this radius 1000 queries together have delta {kept:.4g}", kept <= delta * (1 + 1e-3))
    small = module.composed_delta(radius=math.sqrt(1000 * math.log(1 / delta)) / epsilon, **options)
    e.corrected(f"with the constant 1 they have delta {small:.3g}", small > 100 * delta)


@CHAPTER.row(
    "bounded-beats-gaussian",
    "bounded noise, second result",
    Kind.THEOREM,
    "It improves on the Gaussian mechanism, as the noise grows more slowly.",
    Standing.FALSE,
    corrected=(
        "Only the largest error, and only for many queries: it is smaller from k = 213 on if a Gaussian may exceed"
        " its value with probability 0.001 (epsilon = 1, delta = 1e-6). The standard deviation is larger throughout."
    ),
    counterexample="One query, epsilon = 1, delta = 1e-6: radius 92 against 13.9.",
)
def beats(e: Evidence, epsilon: float = 1.0, delta: float = 1e-6, beta: float = 1e-3, locate: int = 0) -> None:
    rows = bounded_against_gaussian(epsilon, delta, beta)
    for k, radius, gaussian in rows:
        e.claim(
            f"k = {k}: bounded noise never exceeds {radius:.1f}; Gaussian noise exceeds {gaussian:.1f} with"
            f" probability {beta:g}",
            radius <= gaussian,
        )
    wins = [k for k, radius, gaussian in rows if radius <= gaussian]
    e.corrected(f"it wins for k = {', '.join(map(str, wins))} of {', '.join(map(str, QUERIES))}", wins == [1000])
    if locate:
        e.fact(f"the crossing point, by bisection: k = {crossing_point(epsilon, delta, beta)}")
    module = reference("bounded_noise")
    typical = [
        module.BoundedNoise(epsilon, delta, queries=k).std
        / module.gaussian_std(epsilon=epsilon, delta=delta, queries=k)
        for k in QUERIES
    ]
    e.corrected(
        "standard deviations over those of the Gaussian: " + ", ".join(f"{r:.2f}" for r in typical),
        min(typical) > 1.0,
    )


@CHAPTER.row(
    "algorithm-2",
    "bounded noise, algorithm 2 of section E",
    Kind.ALGORITHM,
    "Names the interactive algorithm of the article, without giving it.",
    Standing.NO_CONTENT,
    corrected=(
        "Reconstructed: fresh noise for each query, the radius calibrated for all k beforehand, query k + 1 refused."
    ),
)
def session(e: Evidence) -> None:
    e.fact("Reason: the notes give the number of an algorithm of another paper and nothing of it.")
    session = reference("bounded_noise").BoundedNoise(1.0, 1e-5).session([3, 4], np.random.default_rng(0))
    off = abs(session.ask(len) - 2)
    e.corrected(
        f"the reconstruction answers within its radius ({off:.1f} of 64.0), and then has {session.remaining} queries"
        " left",
        off < 64.0 and session.remaining == 0,
    )


@CHAPTER.row(
    "pufferfish",
    "Pufferfish",
    Kind.REMARK,
    "An algorithm of Pufferfish privacy based on Gaussian mixtures.",
    Standing.NO_CONTENT,
    corrected="Three mechanisms are implemented: Wasserstein-Laplace, Laplace for unequal spreads, Gaussian masking.",
)
def pufferfish(e: Evidence, epsilon: float = 1.0) -> None:
    e.fact("Reason: the notes define the mixture (next row) and give no algorithm.")
    module, laws = reference("pufferfish"), reference("pufferfish.wasserstein")
    pair = tuple(
        module.Secret(name, laws.GaussianMixture((0.4, 0.6), means, (1.0, 1.0)))
        for name, means in (("a", (0.0, 3.0)), ("b", (1.0, 5.0)))
    )
    mechanism = module.WassersteinMechanism((pair,), epsilon=epsilon)
    found = exact.epsilon(mechanism.law(pair[0]), mechanism.law(pair[1]))
    e.corrected(
        f"Laplace noise of scale W_inf/epsilon = {mechanism.scale:.4f}: epsilon {found:.6f} of {epsilon:g}",
        found <= epsilon * (1 + 1e-6),
    )


@CHAPTER.row(
    "gaussian-mixture",
    "definition of a Gaussian mixture",
    Kind.DEFINITION,
    "p(x) = sum w_i N(x | mu_i, Sigma_i) on R^d, sum w_i = 1.",
    Standing.HOLDS,
    corrected="The weights must not be negative either.",
)
def mixture(e: Evidence) -> None:
    module = reference("pufferfish.vector_mixture")
    law = module.VectorMixture([0.3, 0.7], [[0.0, 0.0], [1.0, 2.0]], [np.eye(2), [[1.0, 0.5], [0.5, 2.0]]])
    grid = np.linspace(-9.0, 11.0, 401)
    points = np.array(np.meshgrid(grid, grid)).reshape(2, -1).T
    mass = float(np.exp(law.log_density(points)).sum() * (grid[1] - grid[0]) ** 2)
    e.claim(f"a mixture of two Gaussians in R^2 has mass {mass:.9f}", close(mass, 1.0, 1e-6))
    draws = law.sample(40_000, np.random.default_rng(0)) @ np.array([1.0, 1.0])
    line = law.along([1.0, 1.0])
    off = max(abs(float(np.mean(draws <= x)) - math.exp(float(line.log_cdf(x)))) for x in (-1.0, 0.0, 2.0, 4.0))
    e.claim(
        f"x_1 + x_2 is a mixture in R: distribution functions of 40,000 draws and of the law differ by {off:.4f}",
        off < 0.012,
    )
    weights = np.array([1.5, -0.5])
    low = weights[0] * math.exp(-(6.0**2) / 2) + weights[1] * math.exp(-(1.0**2) / 2)
    e.corrected(
        f"weights 1.5 and -0.5 sum to 1 and make a 'density' of {low / math.sqrt(2 * math.pi):.3f} at a point",
        low < 0.0,
    )


@CHAPTER.row(
    "importance-algorithm",
    "importance weights, algorithm 1",
    Kind.ALGORITHM,
    "Algorithm 1 of the article generates weights that make public data speak for private data.",
    Standing.NO_CONTENT,
    corrected=(
        "Reconstructed: regularised logistic regression of private against public, its coefficients with spherical"
        " Laplace noise."
    ),
)
def importance_algorithm(e: Evidence, epsilon: float = 1.0) -> None:
    e.fact("Reason: the notes name an algorithm of another paper and do not give it.")
    public = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    mechanism = reference("importance_weighting").ImportanceWeighting(public, epsilon, 0.1)
    data = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.2], [0.9, 0.8]])
    moved = data.copy()
    moved[0] = [1.0, 1.0]
    found = mechanism.pair_epsilon(data, moved)
    e.corrected(
        f"the reconstruction on a pair of neighbours: epsilon {found:.4f} of {epsilon:g}",
        found <= epsilon * (1 + 1e-9),
    )


@CHAPTER.row(
    "importance-weights",
    "importance weights, the identity",
    Kind.LEMMA,
    "E_{p_D}[b] is about (1/N_E) sum over E of b(x) w(x), for every function b.",
    Standing.HOLDS,
    corrected="If and only if w = p_D/p_E on the support of p_E; the public data must cover the private ones.",
)
def importance(e: Evidence) -> None:
    values = np.arange(4.0)
    private, public = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    counts = (public * 1000).astype(int)
    data = np.repeat(values, counts)
    weight = np.repeat(private / public, counts)
    for name, b in (("x", data), ("x^2", data**2), ("1{x = 3}", (data == 3.0).astype(float))):
        truth = float({"x": private @ values, "x^2": private @ values**2, "1{x = 3}": private[3]}[name])
        e.claim(
            f"b = {name}: {float(np.mean(b * weight)):.6f}, true {truth:.6f}",
            close(float(np.mean(b * weight)), truth),
        )
    missing = np.repeat(values[:3], counts[:3])
    half = float(np.mean((missing == 3.0) * 1.0))
    e.corrected(f"without public records of the value 3 every weight gives {half:g} for P(x = 3) = 0.4", half == 0.0)


@CHAPTER.row(
    "exponential-mechanism",
    "exponential mechanism",
    Kind.DEFINITION,
    "P(r) = exp(epsilon u(D, r)/(2 M_u)), M_u the sensitivity of u, normalised afterwards.",
    Standing.HOLDS,
    corrected="M_u is the largest change over neighbours and over all r.",
)
def exponential(e: Evidence, epsilon: float = 1.0) -> None:
    module = reference("exponential")
    choose = module.ExponentialMechanism(epsilon, tuple(range(5)), module.answer_at)
    # One candidate gains a point and all others lose one: the worst case, for which the factor 2 is there.
    found = exact.epsilon(choose.law([0.0] * 5), choose.law([1.0] + [-1.0] * 4))
    many = module.ExponentialMechanism(epsilon, tuple(range(2000)), module.answer_at)
    tight = exact.epsilon(many.law([0.0] * 2000), many.law([1.0] + [-1.0] * 1999))
    e.claim(
        f"five candidates: epsilon {found:.4f}; 2000 candidates: {tight:.6f} of {epsilon:g}",
        max(found, tight) <= epsilon * (1 + 1e-9),
    )


@CHAPTER.row(
    "film",
    "exponential mechanism, example of films",
    Kind.EXAMPLE,
    "u(D, r) = min distance(d, r): 'we look for the films closest to r'.",
    Standing.FALSE,
    corrected="u = -min distance(d, r).",
    counterexample="Liked films at 1 and 2, candidates 1.5, 3, 5, 9: the farthest, 9, is the likeliest (0.305).",
)
def film(e: Evidence) -> None:
    films = [1.5, 3.0, 5.0, 9.0]
    printed = reference("broken.exponential").printed_film_recommendation()
    right = reference("exponential").FilmRecommendation(1.0, films=tuple(films), low=0.0, high=10.0)
    p, q = (np.exp(np.asarray(m.law([1.0, 2.0]).log_prob(films))) for m in (printed, right))
    e.claim(f"as printed the closest film is the likeliest: {', '.join(f'{x:.4f}' for x in p)}", int(np.argmax(p)) == 0)
    e.corrected(f"with the minus sign: {', '.join(f'{x:.4f}' for x in q)}", int(np.argmax(q)) == 0)


@CHAPTER.row(
    "flower",
    "framework: Flower, central privacy with Gaussian noise",
    Kind.REMARK,
    "A framework with central differential privacy by the Gaussian mechanism.",
    Standing.NO_CONTENT,
    corrected=(
        "One round of averaging with noise multiplier z is exactly 1/z-Gaussian-private if a client's update may"
        " vanish; 2/z under substitution."
    ),
)
def flower(e: Evidence, multiplier: float = 2.0) -> None:
    e.fact("Reason: the notes give a link and a sentence, without parameters.")
    mechanism = reference("federated").FederatedAveraging(clipping_norm=1.0, noise_multiplier=multiplier)
    data, without = [[1.0], [0.0], [0.0]], [[0.0], [0.0], [0.0]]
    found = exact.delta(mechanism.law(data).laws[0], mechanism.law(without).laws[0], 0.3)
    claimed = float(mechanism.claim.delta(0.3))
    e.corrected(
        f"delta at epsilon = 0.3 of the worst client: {found:.9f}, claimed {claimed:.9f}", close(found, claimed, 1e-6)
    )
