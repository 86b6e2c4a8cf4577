"""Report, sections 2.2.3 and 2.2.4 and appendix A: deciles with high probability."""

from __future__ import annotations

import math

from scipy import integrate, special

from dpaudit.accuracy.bound import Variant
from dpaudit.accuracy.bounds import deciles
from dpaudit.accuracy.distributions.data_law import NORMAL
from dpaudit.accuracy.distributions.order_statistics import binomial_at_most
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing, close

CHAPTER = Chapter("report")
_CORRECTED = ("corrected-72", "corrected-36", "sharp")


@CHAPTER.row(
    "lemma-2.2.3.1",
    "lemma 2.2.3.1",
    Kind.LEMMA,
    "The empirical decile is within gamma/2 of i/10 with probability at least 1 - eta, eta = 2 - S1 + S2 (uniform"
    " law).",
    Standing.VACUOUS,
    corrected="Exact: I_u(r, n-r+1) - I_l(r, n-r+1), r = ceil(i n/10), u and l the ends of the interval.",
    counterexample=(
        "eta >= 1 always. With the proof's signs, 2 - S1 - S2, false: n = 10, i = 9, gamma = 0 claims 0.387, true is 0."
    ),
)
def empirical(e: Evidence, n: int = 10, i: int = 9, gamma: float = 0.0) -> None:
    grid = [(m, j, g) for m in (1, 7, 10, 95, 1000) for j in range(1, 10) for g in (0.0, 0.02, 0.1)]
    largest = max(1.0 - float(deciles.eta(m, j / 10, g, Variant.LITERAL)) for m, j, g in grid)
    e.vacuous(f"the largest lower bound 1 - eta over {len(grid)} points is {largest:.3g}", largest <= 0.0)
    e.correction("empirical-decile", "corrected", n=n, i=i, gamma=gamma)
    e.correction("empirical-decile", "corrected", n=999, i=3, gamma=0.04)


@CHAPTER.row(
    "lemma-2.2.3.1-proof",
    "proof of lemma 2.2.3.1",
    Kind.PROOF,
    "P(d_i in I) = 1 - P(A or B) >= S1 + S2 - 1, A and B the events that enough records lie on either side.",
    Standing.FALSE,
    corrected="A and B are the good events: P(d_i in I) = P(A and B), and eta = P(Bin <= r - 1) + P(Bin <= n - r).",
    counterexample="n = 10, i = 9, gamma = 0: it claims that a continuous variable is 0.9 with probability 0.387.",
)
def empirical_proof(e: Evidence, n: int = 10, i: int = 9, gamma: float = 0.0) -> None:
    e.theorem("empirical-decile", "proof", n=n, i=i, gamma=gamma)
    e.correction("empirical-decile", "corrected", n=n, i=i, gamma=0.1)


@CHAPTER.row(
    "lemma-2.2.3.2",
    "lemma 2.2.3.2",
    Kind.LEMMA,
    "At least alpha records lie in each of [i/10 - gamma, i/10 - gamma/2] and [i/10 + gamma/2, i/10 + gamma] with"
    " probability 1 - beta.",
    Standing.HOLDS,
    corrected="One term less for whole alpha: the sum ends at ceil(alpha) - 1.",
)
def flanks(e: Evidence, n: int = 100, gamma: float = 0.1, alpha: float = 3.0) -> None:
    for needed in (alpha, alpha - 0.5):
        point = {"n": n, "i": 5, "gamma": gamma, "alpha": needed}
        printed, exact = (float(deciles.mu(n, 0.5, gamma, needed, v)) for v in (Variant.PRINTED, Variant.EXACT))
        e.claim(f"alpha = {needed:g}: failure {exact:.6f}, claimed at most {printed:.6f}", exact <= printed)
        e.correction("flank-counts", "corrected", **point)
    fractional = [float(deciles.mu(n, 0.5, gamma, alpha - 0.5, v)) for v in (Variant.PRINTED, Variant.EXACT)]
    e.loose("for alpha that is not whole only the union bound is lost", fractional[0] / fractional[1])


@CHAPTER.row(
    "event-E-alpha",
    "proof of theorem 2.2.3.1, event E_alpha",
    Kind.PROOF,
    "Both flanks hold at least alpha records; its probability is taken from lemma 2.2.3.2.",
    Standing.HOLDS,
    corrected="Exactly a trinomial sum, which the calculator has.",
)
def event_flanks(e: Evidence, n: int = 100, gamma: float = 0.1, alpha: int = 3) -> None:
    exact = 1.0 - float(deciles.mu(n, 0.5, gamma, alpha, Variant.EXACT))
    p = gamma / 2.0
    direct = sum(
        math.exp(
            math.lgamma(n + 1) - math.lgamma(a + 1) - math.lgamma(b + 1) - math.lgamma(n - a - b + 1)
            + (a + b) * math.log(p) + (n - a - b) * math.log1p(-2 * p)
        )
        for a in range(alpha, n + 1)
        for b in range(alpha, n + 1 - a)
    )  # fmt: skip
    printed = 1.0 - float(deciles.mu(n, 0.5, gamma, alpha, Variant.PRINTED))
    e.claim(f"P(E_alpha) = {exact:.12f} is at least the lemma's {printed:.6f}", exact >= printed)
    e.corrected(f"summed term by term it is {direct:.12f}", close(exact, direct, 1e-9))


@CHAPTER.row(
    "event-E-A",
    "proof of theorem 2.2.3.1, event E_{A_i}",
    Kind.PROOF,
    "With probability 1 - beta fewer than alpha records separate the empirical decile and A_i, by lemma 2.2.1.1.",
    Standing.FALSE,
    corrected="Counted from the bin [A, A + h] instead of its left edge A, and with alpha = 72 log(2k/beta)/epsilon.",
    counterexample=(
        "n = 60, k = 10, beta = 0.05, epsilon = 20: it claims 0.95, true is 0.479. With the right alpha false on"
        " coarse grids (k = 1)."
    ),
)
def event_answer(e: Evidence, n: int = 60, steps: int = 10, epsilon: float = 20.0) -> None:
    e.theorem("separating-records", "printed", n=n, steps=steps, epsilon=epsilon)
    e.theorem("separating-records", "semi-repaired", n=60, steps=1, epsilon=100.0)
    for variant in ("corrected-72", "corrected-36"):
        e.correction("separating-records", variant, n=n, steps=steps, epsilon=epsilon)
    e.correction("separating-records", "corrected-72", n=60, steps=1, epsilon=100.0)


@CHAPTER.row(
    "theorem-2.2.3.1",
    "theorem 2.2.3.1",
    Kind.THEOREM,
    "P(|A_i - i/10| <= gamma) >= 1 - beta - eta - mu for uniform records and gamma <= 0.1.",
    Standing.VACUOUS,
    corrected=(
        "P(i/10 - gamma - (b-a)/k <= A_i <= i/10 + gamma) >= 1 - beta - eta - mu, corrected eta, alpha with 72 or 36;"
        " any gamma with i/10 + gamma <= b."
    ),
    counterexample=(
        "The right side is negative everywhere. With eta repaired it is false: n = 1000, k = 1, epsilon = 100 claims"
        " 0.948, true is 0."
    ),
)
def uniform(e: Evidence, n: int = 1000, steps: int = 50, epsilon: float = 20.0) -> None:
    points = [
        (m, k, j, g, b, x)
        for m in (20, 1000)
        for k in (1, 60)
        for j in (1, 5, 9)
        for g in (0.0, 0.1)
        for b in (0.01, 0.3)
        for x in (1.0, 100.0)
    ]
    for variant in (Variant.LITERAL, Variant.PROOF):
        largest = max(
            float(deciles.within(n=m, steps=k, quantile=j / 10, gamma=g, beta=b, epsilon=x, variant=variant))
            for m, k, j, g, b, x in points
        )
        e.vacuous(f"{variant}: the largest right side over {len(points)} points is {largest:.3g}", largest <= 0.0)
    e.fact("what a reader would repair it to (eta corrected, alpha kept) is the next row")
    for form in _CORRECTED:
        e.correction("histogram-uniform", form, n=n, steps=steps, epsilon=epsilon)
        e.correction("histogram-uniform", form, n=n, steps=steps, epsilon=epsilon, gamma=0.2)


@CHAPTER.row(
    "theorem-2.2.3.1-repaired",
    "theorem 2.2.3.1, as a reader would repair it",
    Kind.THEOREM,
    "Theorem 2.2.3.1 with the corrected eta and the printed alpha and interval.",
    Standing.FALSE,
    corrected="As theorem 2.2.3.1.",
    counterexample=(
        "n = 1000, k = 1, epsilon = 100 claims 0.948, true is 0; on a fine grid n = 3000, k = 8000, beta = 0.05,"
        " epsilon = 0.8 claims 0.905, true is 0.897."
    ),
)
def uniform_repaired(e: Evidence, n: int = 1000, steps: int = 1, epsilon: float = 100.0) -> None:
    e.theorem("histogram-uniform", "semi-repaired", n=n, steps=steps, epsilon=epsilon)
    e.fact(
        "dpaudit accuracy show histogram-uniform --n 3000 --steps 8000 --gamma 0.1 --beta 0.05 --epsilon 0.8 shows"
        " the fine grid"
    )
    for variant in _CORRECTED:
        e.correction("histogram-uniform", variant, n=n, steps=steps, epsilon=epsilon)


@CHAPTER.row(
    "definition-2.2.4.1",
    "definition 2.2.4.1",
    Kind.DEFINITION,
    "erf(z) = (2/sqrt(pi)) int_0^z exp(-t^2) dt.",
    Standing.HOLDS,
)
def erf(e: Evidence) -> None:
    worst = max(
        abs(2.0 / math.sqrt(math.pi) * integrate.quad(lambda t: math.exp(-t * t), 0.0, z)[0] - math.erf(z))
        for z in (0.1, 0.7, 2.0, 4.0)
    )
    e.claim(f"the integral agrees with the error function at four points: {worst:.1e}", worst < 1e-12)


@CHAPTER.row(
    "lemma-2.2.4.1",
    "lemma 2.2.4.1",
    Kind.LEMMA,
    "The deciles of N(0, 1) are sqrt(2) erfinv(0.2 i - 1).",
    Standing.HOLDS,
)
def normal_deciles(e: Evidence) -> None:
    worst = max(abs(special.ndtr(math.sqrt(2.0) * special.erfinv(0.2 * i - 1.0)) - i / 10) for i in range(1, 10))
    e.claim(f"Phi(d_i) = i/10 for all nine: {worst:.1e}", worst < 1e-12)
    e.theorem("normal-deciles", "printed", i=1)


@CHAPTER.row(
    "gamma-below-decile",
    "lemmas 2.2.4.2 and 2.2.4.3, theorem 2.2.4.1: gamma in [0, d_i]",
    Kind.REMARK,
    "The hypothesis gamma in [0, d_i] of all statements on the normal law.",
    Standing.VACUOUS,
    corrected="None is needed but a <= d_i + gamma <= b.",
    counterexample="d_i < 0 for i <= 4 and d_5 = 0: no gamma, or gamma = 0 only.",
)
def gamma_hypothesis(e: Evidence) -> None:
    allowed = [i for i in range(1, 10) if float(deciles.normal_decile(i)) > 1e-12]
    e.vacuous(
        f"deciles for which a positive gamma is allowed: {', '.join(map(str, allowed))} of 1 to 9", len(allowed) < 9
    )
    e.correction("histogram-normal", "sharp", n=300, i=2, gamma=0.5)


@CHAPTER.row(
    "lemma-2.2.4.2",
    "lemma 2.2.4.2 and appendix A.1",
    Kind.LEMMA,
    "The lemma on empirical deciles for the normal law: eta = 2 - S1 + S2 with integrals that end at d_i.",
    Standing.VACUOUS,
    corrected="As lemma 2.2.3.1, with F(d_i +- gamma/2) in the place of i/10 +- gamma/2.",
    counterexample="gamma does not occur in eta. With the proof's signs it is false.",
)
def normal_empirical(e: Evidence, n: int = 100) -> None:
    values = {g: 1.0 - float(deciles.eta(n, 0.5, g, Variant.LITERAL, NORMAL)) for g in (0.0, 0.5, 1.5)}
    e.vacuous(
        f"1 - eta is {values[0.5]:.4f} for gamma = 0, 0.5 and 1.5 alike",
        max(values.values()) <= 0.0 and len(set(values.values())) == 1,
    )
    for i in (1, 5):
        e.correction("empirical-decile-normal", "corrected", n=n, i=i, gamma=0.3)


@CHAPTER.row(
    "appendix-A.1",
    "appendix A.1, proof",
    Kind.PROOF,
    "The proof for the normal law begins with uniform records, has gamma + 2 for gamma/2, and sqrt(2 pi^n) for (2"
    " pi)^{n/2}.",
    Standing.FALSE,
    corrected="Normal records, gamma/2, and each integral with its own 1/sqrt(2 pi).",
    counterexample="n = 10, i = 9: with 1/sqrt(2 pi^n) the two sums of probabilities exceed 1.",
)
def appendix_one(e: Evidence, n: int = 10, i: int = 9) -> None:
    left = math.sqrt(2.0 * math.pi) * i / 10
    right = math.sqrt(2.0 * math.pi) * (1.0 - i / 10)
    total = sum(math.comb(n, k) * left**k * right ** (n - k) for k in range(n + 1))
    e.claim(
        "the weights with 1/sqrt(2 pi^n) sum to 1 over k = 0..n: they sum to"
        f" {total / math.sqrt(2.0 * math.pi**n):.4g}",
        close(total / math.sqrt(2.0 * math.pi**n), 1.0),
    )
    e.corrected(
        f"with (2 pi)^(-n/2) they sum to {total / (2.0 * math.pi) ** (n / 2):.12f}",
        close(total / (2.0 * math.pi) ** (n / 2), 1.0),
    )
    wide = special.ndtr(float(deciles.normal_decile(i)) + 0.2 + 2.0) - special.ndtr(
        float(deciles.normal_decile(i)) + 0.1
    )
    e.claim(
        f"the interval up to d + gamma + 2 is the one up to d + gamma/2: between them lies mass {wide:.3f} at gamma"
        " = 0.2",
        wide < 1e-6,
    )
    e.theorem("empirical-decile-normal", "proof", n=n, i=i, gamma=0.01)
    e.correction("empirical-decile-normal", "corrected", n=n, i=i, gamma=0.01)


@CHAPTER.row(
    "lemma-2.2.4.3",
    "lemma 2.2.4.3 and appendix A.2",
    Kind.LEMMA,
    "The lemma on flanks for the normal law; both sums contain integrals over an empty range.",
    Standing.VACUOUS,
    corrected="Both flanks [d - gamma, d - gamma/2] and [d + gamma/2, d + gamma] in both factors.",
    counterexample="A power of 1 minus an empty integral is 1 in every term, so mu exceeds 1.",
)
def normal_flanks(e: Evidence, n: int = 1000, gamma: float = 0.5, alpha: float = 30.0) -> None:
    value = 1.0 - float(deciles.mu(n, 0.5, gamma, alpha, Variant.LITERAL, NORMAL))
    e.vacuous(f"1 - mu = {value:.4g} at n = {n}, gamma = {gamma:g}, alpha = {alpha:g}", value <= 0.0)
    e.correction("flank-counts-normal", "corrected", n=n, gamma=gamma, alpha=alpha)
    e.correction("flank-counts-normal", "printed", n=n, gamma=gamma, alpha=alpha)


@CHAPTER.row(
    "appendix-A.2",
    "appendix A.2, statement",
    Kind.LEMMA,
    "The second sum of A.2 has 1 minus an integral from d + gamma/2 to d + gamma/2 as its second factor, the first an"
    " empty first factor.",
    Standing.VACUOUS,
    corrected="As the display in the proof of A.2, where the limits are right.",
    counterexample=(
        "First sum: only the term k = 0 is left. Second: sum of C(n, k) p^k over k <= alpha, which exceeds 1 as soon"
        " as n p does."
    ),
)
def appendix_two(e: Evidence, n: int = 1000, gamma: float = 0.5, alpha: int = 30) -> None:
    left, right = (float(p) for p in deciles.flanks(0.5, gamma, NORMAL))
    first = (1.0 - left) ** n
    second = sum(math.comb(n, k) * right**k for k in range(alpha + 1))
    e.vacuous(f"beta of A.2 is {first:.3g} + {second:.3g}, so 1 - beta excludes nothing", first + second >= 1.0)
    proof = 2.0 - float(binomial_at_most(alpha, n, left)) - float(binomial_at_most(alpha, n, right)) - 1.0
    e.corrected(
        f"the display in the proof gives a probability of at least {proof:.6f}, the exact one is"
        f" {1.0 - float(deciles.mu(n, 0.5, gamma, alpha, Variant.EXACT, NORMAL)):.6f}",
        proof <= 1.0 - float(deciles.mu(n, 0.5, gamma, alpha, Variant.EXACT, NORMAL)) + 1e-12,
    )


@CHAPTER.row(
    "theorem-2.2.4.1",
    "theorem 2.2.4.1",
    Kind.THEOREM,
    "Theorem 2.2.3.1 for the normal law; the first sum of eta has an integral from d_i to d_i.",
    Standing.VACUOUS,
    corrected="As theorem 2.2.3.1, for any continuous law with a <= d + gamma <= b.",
    counterexample=(
        "With int_{d}^{d} = 0 the first sum is 0 (its term k = n is left out), so eta >= 2, and 1 - beta - eta - mu"
        " < -1."
    ),
)
def normal(e: Evidence, n: int = 1000, i: int = 5, gamma: float = 0.5) -> None:
    # The first sum literally: terms with (integral from d to d)^{n-k}, which vanish unless k = n, and k stops at i n/10 < n.
    empty = 0.0
    first = sum(math.comb(n, k) * (i / 10) ** k * empty ** (n - k) for k in range(i * n // 10 + 1))
    second = float(binomial_at_most((10 - i) * n // 10, n, 1.0 - i / 10))
    e.vacuous(f"eta with the printed limits is 2 - {first:g} + {second:.4f} >= 2", 2.0 - first + second >= 1.0)
    largest = float(
        deciles.within(
            n=n, steps=50, quantile=i / 10, gamma=gamma, beta=0.05, epsilon=20.0, variant=Variant.LITERAL, law=NORMAL
        )
    )
    e.vacuous(f"the right side is {largest:.4g}, also if the limit is read as infinity", largest <= 0.0)
    for variant in _CORRECTED:
        e.correction("histogram-normal", variant, n=n, i=i, gamma=gamma)


@CHAPTER.row(
    "appendix-A.3",
    "appendix A.3, proof",
    Kind.PROOF,
    "The proof for the normal law concludes with [0.1 i - gamma, 0.1 i + gamma], the interval of the uniform law, and"
    " mu with empty ranges.",
    Standing.FALSE,
    corrected="[d_i - gamma - (b-a)/k, d_i + gamma], and mu of the display in the proof of A.2.",
    counterexample="i = 1, gamma = 0.1: [0, 0.2] does not contain d_1 = -1.28.",
)
def appendix_three(e: Evidence, gamma: float = 0.1) -> None:
    inside = [i for i in range(1, 10) if abs(float(deciles.normal_decile(i)) - i / 10) <= gamma]
    e.claim(
        f"[0.1 i - gamma, 0.1 i + gamma] contains the decile d_i for i = {inside or 'none'} only (gamma = {gamma:g})",
        len(inside) == 9,
    )
    e.theorem("histogram-normal", "semi-repaired", n=100, steps=1, epsilon=100.0)
    e.correction("histogram-normal", "sharp", n=100, steps=1, epsilon=100.0)
    empty = 2.0 * float(binomial_at_most(30, 1000, 0.0))
    e.claim(
        f"mu of the last display, all integrals from d - gamma/2 to d - gamma/2, is a probability: it is {empty:g}",
        empty <= 1.0,
    )
