"""Notes: k-anonymisation, randomised answers, Laplace and Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dpaudit import anonymity, exact, neighbours
from dpaudit.claims import gaussian_delta
from dpaudit.sensitivity import estimate_sensitivity
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close, reference

CHAPTER = Chapter("notes")


@CHAPTER.row(
    "emilie",
    "k-anonymisation, example",
    Kind.EXAMPLE,
    "[Emilie, 24, Femme] -> [*, 10 < Age <= 30, Femme]: quasi-identifiers are hidden in wider groups.",
    Standing.HOLDS,
    corrected="One record says nothing about k: that needs the other records of the class.",
)
def emilie(e: Evidence) -> None:
    import pandas as pd

    e.claim("24 lies in 10 < Age <= 30, and * covers every name", 10 < 24 <= 30 and anonymity.covers("*", "Emilie"))
    people = pd.DataFrame(
        {
            "name": ["Emilie", "Jeanne", "Marc", "Paul"],
            "age": [24, 12, 29, 45],
            "sex": ["Femme", "Femme", "Homme", "Homme"],
        }
    )
    ages = anonymity.Intervals.of_width([20], low=11, high=50)
    released = anonymity.generalise(people, {"name": anonymity.Suppression(), "age": ages}, {"name": 1, "age": 1})
    names = ["name", "age", "sex"]
    audit = anonymity.audit_release(people, released, quasi_identifiers=names, hierarchies={"age": ages})
    e.claim(
        f"generalised in the same way, {', '.join(map(str, released.iloc[0]))}: every cell contains its original",
        not audit.mismatches,
    )
    k = anonymity.k_anonymity(anonymity.Table.from_frame(released, quasi_identifiers=names))
    e.corrected(
        f"among four people the release is {int(k.value)}-anonymous: Emilie has company, Marc has none",
        int(k.value) == 1,
    )


@CHAPTER.row(
    "randomised-answers",
    "1979 article on randomised answers",
    Kind.REMARK,
    "Replacing answers at random, the proportion and the variance can be recovered from the known probability.",
    Standing.HOLDS,
)
def answers(e: Evidence, truthful: float = 0.7) -> None:
    warner = reference("randomised_response").RandomisedResponse.warner(truthful)
    people = [1] * 600 + [0] * 400
    draws = np.asarray(warner.sample(people, 400, np.random.default_rng(0)))
    estimates = np.array([warner.estimate(row)[1] for row in draws])
    deviation = math.sqrt(float(warner.covariance([0.4, 0.6], 1000)[1, 1]))
    off = abs(estimates.mean() - 0.6) / (deviation / math.sqrt(400))
    e.claim(
        f"share 0.6 of 1000 people: 400 surveys average {estimates.mean():.4f}, {off:.1f} standard errors away",
        off < 5.0,
    )
    e.claim(
        f"their standard deviation {estimates.std():.4f} is the computed {deviation:.4f}",
        abs(estimates.std() / deviation - 1.0) < 0.2,
    )


@CHAPTER.row(
    "ranges",
    "remark: ranges of values",
    Kind.REMARK,
    "For real data: consider ranges of values, and the probability to belong to a range.",
    Standing.HOLDS,
    corrected="The ranges must be public: ranges taken from the data leak them.",
)
def ranges(e: Evidence) -> None:
    module, broken = reference("randomised_response"), reference("broken.randomised_response")
    thirds = module.RangeResponse.of(1.0, (0.0, 3.0, 6.0, 9.0))
    found = exact.epsilon(thirds.law([1.0]), thirds.law([7.0]))
    e.claim(f"three public ranges, epsilon = 1: the exact epsilon is {found:.9f}", close(found, 1.0))
    leaking = broken.RangesFromData(1.0, 3, 0.0, 9.0)
    bad = exact.epsilon(leaking.law([0.0, 1.0, 9.0]), leaking.law([0.0, 1.0, 3.0]))
    e.corrected(f"ranges from the data: epsilon {bad}", math.isinf(bad))


@CHAPTER.row(
    "laplace-inverse",
    "Laplace mechanism: distribution function and its inverse",
    Kind.LEMMA,
    "F(x), and x = mu + b ln(2u) for x < mu, mu - b ln(2(1 - u)) otherwise.",
    Standing.HOLDS,
    corrected="The branch must be on u < 1/2, as x is what is computed; u = 0 has no image.",
)
def inverse(e: Evidence, b: float = 2.0) -> None:
    u = np.linspace(0.001, 0.999, 999)
    x = reference("laplace").inverse_cdf_laplace(u.copy(), b)
    back = np.where(x < 0.0, 0.5 * np.exp(x / b), 1.0 - 0.5 * np.exp(-x / b))
    e.claim(f"F(F^-1(u)) = u at 999 points: {abs(back - u).max():.1e}", float(abs(back - u).max()) < 1e-12)


@CHAPTER.row(
    "range-for-sensitivity",
    "Laplace mechanism: M_f = max over (x, y) in D^2 of |f(x) - f(y)|",
    Kind.DEFINITION,
    "The scale of the noise is M_f/epsilon, M_f the largest difference over all pairs of data sets in D.",
    Standing.LOOSE,
    corrected=(
        "The maximum over neighbours. Over all pairs it is the range of f: private, with n times the noise for a"
        " count. Over pairs of records of the data at hand it is not private at all."
    ),
    counterexample="Count of 20 records: M_f = 20 instead of 1, and the true epsilon is epsilon/20.",
)
def range_noise(e: Evidence, n: int = 20, epsilon: float = 1.0) -> None:
    from hypothesis import strategies as st

    near = estimate_sensitivity(
        sum, neighbours.substitute(st.integers(0, 1), min_size=n, max_size=n), examples=60
    ).sensitivity
    overall = float(n)  # from all zeros to all ones
    kept = exact.epsilon(exact.Laplace(0.0, overall / epsilon), exact.Laplace(near, overall / epsilon))
    e.claim(f"noise of scale M_f/epsilon keeps epsilon = {epsilon:g}: on neighbours it is {kept:.4f}", kept <= epsilon)
    e.loose(f"M_f over all pairs is {overall:g}, the sensitivity {near:g}", overall / near)
    wrong = reference("broken.laplace").SensitivityFromData(epsilon, 0.0, 1.0)
    bad = exact.epsilon(wrong.law([0.0, 0.0, 0.0]), wrong.law([0.0, 0.0, 1.0]))
    e.corrected(f"read as the range of the data at hand: epsilon {bad}", math.isinf(bad))


@CHAPTER.row(
    "gaussian-cdf",
    "Gaussian mechanism: F(x) = (1 + erf((x - mu)/rho))/2, erf(x) = int_0^x exp(-t^2) dt",
    Kind.DEFINITION,
    "The distribution function of the Gaussian noise.",
    Standing.FALSE,
    corrected="erf((x - mu)/(rho sqrt 2)), and erf has the factor 2/sqrt(pi).",
    counterexample="As printed F runs from 0.057 to 0.943.",
)
def cdf(e: Evidence) -> None:
    ends = [reference("broken.gaussian").printed_cdf(x) for x in (-math.inf, math.inf)]
    e.claim(f"F runs from 0 to 1: from {ends[0]:.6f} to {ends[1]:.6f}", close(ends[0], 0.0) and close(ends[1], 1.0))
    x = np.linspace(-4.0, 4.0, 81)
    e.corrected(
        "with sqrt 2 and 2/sqrt(pi) it is the normal distribution function",
        bool(np.allclose(0.5 * (1.0 + special.erf(x / math.sqrt(2.0))), special.ndtr(x))),
    )


@CHAPTER.row(
    "gaussian-sampler",
    "Gaussian mechanism: x = mu + rho erf^-1(2u - 1)",
    Kind.ALGORITHM,
    "The sampler of the noise of variance rho^2.",
    Standing.FALSE,
    corrected="x = mu + rho sqrt(2) erfinv(2u - 1).",
    counterexample=(
        "The variance is rho^2/2; at epsilon = 0.5, delta = 1e-5 the true delta is 1.47e-5, at 0.9 it is 3.2e-5."
    ),
)
def sampler(e: Evidence, epsilon: float = 0.9, delta: float = 1e-5) -> None:
    e.theorem("gaussian-variance", "printed", scale=1.0)
    printed = reference("broken.gaussian").NotesGaussian(epsilon, delta)
    true = float(printed.delta_exact)
    direct = exact.delta(printed.law(0.0), printed.law(1.0), epsilon)
    e.claim(
        f"the sampler keeps delta = {delta:g} at epsilon = {epsilon:g}: it has {true:.4g} (integrated: {direct:.4g})",
        true <= delta,
    )
    e.correction("gaussian-variance", "corrected", scale=1.0)


@CHAPTER.row(
    "gaussian-calibration",
    "Gaussian mechanism: rho^2 = 2 ln(1.25/delta) M_f^2/epsilon^2, epsilon and delta in ]0, 1[",
    Kind.THEOREM,
    "Noise of this variance is (epsilon, delta)-private.",
    Standing.LOOSE,
    corrected="The least rho solves the exact profile: 7.03 instead of 9.69 at epsilon = 0.5, delta = 1e-5.",
)
def calibration(e: Evidence) -> None:
    module = reference("gaussian")
    cells = [(x, 10.0**-d) for x in (0.05, 0.3, 0.5, 0.9, 0.99) for d in (1, 3, 5, 9, 12)]
    ratios = [float(gaussian_delta(x, 1.0 / module.classical_scale(x, delta))) / delta for x, delta in cells]
    e.claim(
        f"over {len(cells)} settings with epsilon < 1 the true delta is at most {max(ratios):.3g} of the claimed one",
        max(ratios) <= 1.0,
    )
    classical, least = module.classical_scale(0.5, 1e-5), module.analytic_scale(0.5, 1e-5)
    e.loose(f"variance needed at (0.5, 1e-5): rho = {least:.5f} instead of {classical:.5f}", (classical / least) ** 2)
    e.corrected(
        f"at this rho delta is {float(gaussian_delta(0.5, 1.0 / least)):.6g}",
        close(float(gaussian_delta(0.5, 1.0 / least)), 1e-5, 1e-6),
    )


@CHAPTER.row(
    "gaussian-vector",
    "remark: f with values in R^d",
    Kind.REMARK,
    "If f has values in R^d, noise can be generated.",
    Standing.HOLDS,
    corrected="For the l2 sensitivity; the sentence ends there in the notes.",
)
def vector(e: Evidence) -> None:
    mechanism = reference("gaussian").GaussianMechanism(0.5, 1e-5)
    shape = np.asarray(mechanism.sample([1.0, 2.0, 3.0], 4, np.random.default_rng(0))).shape
    e.claim(f"four releases of a vector of three: {shape}", shape == (4, 3))
    spread = 1.0 / math.sqrt(3.0)
    # Along the move the pair of laws is that of one coordinate moved by the l2 distance, 1; exact.delta integrates that one.
    joint = float(gaussian_delta(0.5, math.hypot(spread, spread, spread) / mechanism.scale))
    e.claim(
        f"three coordinates moved by 1/sqrt 3 each, an l2 distance of 1: delta {joint:.6g} of 1e-5",
        joint <= 1e-5 * (1 + 1e-6),
    )
