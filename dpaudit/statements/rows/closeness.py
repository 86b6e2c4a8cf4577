"""Lecture notes: distributions of a sensitive attribute, t-closeness and (n, epsilon)-closeness."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from dpaudit import anonymity
from dpaudit.statements.statement import Chapter, Evidence, Kind, Standing

CHAPTER = Chapter("lecture notes")


def _table() -> anonymity.Table:
    return anonymity.lecture_notes().table


def _shares(table: anonymity.Table) -> tuple[dict[str, Fraction], list[dict[str, Fraction]]]:
    """Distribution of the sensitive attribute in the table and in each class, counted from the rows by hand."""
    systems = anonymity.lecture_notes().released["system"].tolist()
    values = sorted(set(systems))
    parts = [systems[3 * j : 3 * j + 3] for j in range(len(table.classes.sizes))]
    whole = {v: Fraction(systems.count(v), len(systems)) for v in values}
    return whole, [{v: Fraction(part.count(v), len(part)) for v in values} for part in parts]


def _variation(p: dict[str, Fraction], q: dict[str, Fraction]) -> Fraction:
    return sum((abs(p[v] - q[v]) for v in p), Fraction(0)) / 2


@CHAPTER.row(
    "prior",
    "initial assumption, example 1",
    Kind.DEFINITION,
    "P_X, a prior of the sensitive attribute that does not depend on the data set; in the example 1/5 each.",
    Standing.HOLDS,
)
def prior(e: Evidence) -> None:
    given = anonymity.uniform_prior(["iOS", "Android", "MacOS", "Windows", "Linux"])
    e.claim(
        f"five systems, {sorted(set(given.values()))[0]} each, sum {sum(given.values())}",
        len(given) == 5 and sum(given.values()) == 1,
    )
    against = anonymity.t_closeness(_table(), reference=given, exact=True)
    e.fact(f"t-closeness of the published table against this prior: {against.value}")


@CHAPTER.row(
    "empirical-distribution",
    "Q, and example 1",
    Kind.EXAMPLE,
    "Q is the empirical distribution: number of entries with the value over number of entries. Printed: 2/9 1/9 1/9"
    " 1/9 1/9.",
    Standing.FALSE,
    corrected="iOS 1/9, Android 2/9, MacOS 2/9, Windows 3/9, Linux 1/9.",
    counterexample="The printed row sums to 6/9.",
)
def empirical(e: Evidence) -> None:
    whole, _ = _shares(_table())
    printed = [Fraction(2, 9)] + [Fraction(1, 9)] * 4
    e.claim(f"the printed row is a distribution: it sums to {sum(printed)}", sum(printed) == 1)
    e.corrected(
        f"counted: {', '.join(f'{v} {p}' for v, p in whole.items())}, sum {sum(whole.values())}",
        sum(whole.values()) == 1,
    )
    counted = _table().distribution("system")
    e.corrected("Table.distribution agrees", all(math.isclose(float(counted[v]), float(p)) for v, p in whole.items()))


@CHAPTER.row(
    "class-distribution",
    "L: the attribute restricted to a class",
    Kind.DEFINITION,
    "L has the distribution of the sensitive attribute in the class: the information that is leaked.",
    Standing.HOLDS,
)
def restricted(e: Evidence) -> None:
    _, parts = _shares(_table())
    for j, part in enumerate(parts):
        found = _table().class_distribution(j, "system")
        e.claim(
            f"class {j + 1}: {', '.join(f'{v} {p}' for v, p in part.items() if p)}",
            all(math.isclose(float(found.get(v, 0)), float(p)) for v, p in part.items()),
        )


@CHAPTER.row(
    "t-closeness",
    "definition of t-closeness",
    Kind.DEFINITION,
    "A class is t-close if D(P_L, P_Q) <= t; a data set if all its classes are.",
    Standing.HOLDS,
)
def t_close(e: Evidence) -> None:
    whole, parts = _shares(_table())
    by_hand = [_variation(part, whole) for part in parts]
    found = anonymity.t_closeness(_table(), exact=True)
    e.claim(
        f"variational distances {', '.join(map(str, by_hand))}; the table is t-close for t = {found.value}",
        found.value == max(by_hand),
    )


@CHAPTER.row(
    "distance-l2", "example of D: L2 norm", Kind.DEFINITION, "The L2 norm of P_L - P_Q as distance.", Standing.HOLDS
)
def l2(e: Evidence) -> None:
    whole, parts = _shares(_table())
    by_hand = max(math.sqrt(sum(float(part[v] - whole[v]) ** 2 for v in whole)) for part in parts)
    found = float(anonymity.t_closeness(_table(), distance="l2").value)
    e.claim(
        f"largest over the classes: {found:.9f}, by hand {by_hand:.9f} = sqrt(22)/9",
        math.isclose(found, by_hand) and math.isclose(found, math.sqrt(22) / 9),
    )


@CHAPTER.row(
    "distance-variational",
    "example of D: variational distance",
    Kind.DEFINITION,
    "Delta(P_L; P_Q) = (1/2) sum |P_L(s) - P_Q(s)|.",
    Standing.HOLDS,
)
def variational(e: Evidence) -> None:
    whole, parts = _shares(_table())
    largest = max(
        abs(
            _variation(part, whole)
            - max(
                abs(sum((part[v] - whole[v] for v in s), Fraction(0)))
                for size in range(6)
                for s in itertools.combinations(whole, size)
            )
        )
        for part in parts
    )
    e.claim(
        f"it is the largest difference of probabilities over all 32 sets of systems: differences {largest}",
        largest == 0,
    )


@CHAPTER.row(
    "distance-kl",
    "example of D: Kullback-Leibler divergence",
    Kind.DEFINITION,
    "KL(P_L || P_Q) = sum P_L(s) log2(P_L(s)/P_Q(s)).",
    Standing.HOLDS,
    corrected="The order matters: KL(P_Q || P_L) is infinite for every class of the example.",
)
def kl(e: Evidence) -> None:
    whole, parts = _shares(_table())
    by_hand = max(sum(float(p) * math.log2(p / whole[v]) for v, p in part.items() if p) for part in parts)
    found = float(anonymity.t_closeness(_table(), distance="kl").value)
    e.claim(f"largest over the classes: {found:.9f} bits, by hand {by_hand:.9f}", math.isclose(found, by_hand))
    reverse = float(anonymity.t_closeness(_table(), distance="kl-reverse").value)
    e.corrected(f"the other order gives {reverse}", math.isinf(reverse))


@CHAPTER.row(
    "sample-table",
    "sample data set and 3-anonymous data set",
    Kind.EXAMPLE,
    "Nine students with postcode, points and system, generalised into three classes of three.",
    Standing.FALSE,
    corrected="Publish 3200-3499 for class 1: then every cell contains its original.",
    counterexample="Record 3 has postcode 3400 and is published as 3200-3299.",
)
def sample(e: Evidence) -> None:
    example = anonymity.lecture_notes()
    k = anonymity.k_anonymity(example.table)
    e.claim(f"the published table is {k.value}-anonymous", int(k.value) == 3)
    audit = anonymity.audit_release(
        example.original, example.released, quasi_identifiers=["plz", "points"], sensitive=["system"]
    )
    first = ", ".join(f"{m.column} {m.original} as {m.released}" for m in audit.mismatches)
    e.claim(
        f"every published cell contains its original: {len(audit.mismatches)} of {audit.cells} does not ({first})",
        not audit.mismatches,
    )
    repaired = example.released.copy()
    repaired["plz"] = repaired["plz"].str.replace("3200-3299", "3200-3499")
    again = anonymity.audit_release(
        example.original, repaired, quasi_identifiers=["plz", "points"], sensitive=["system"]
    )
    e.corrected("with 3200-3499 all do", not again.mismatches)


@CHAPTER.row(
    "worked-t",
    "example 1 revisited",
    Kind.EXAMPLE,
    "Delta(P_L, P_Q) = (1/2)(1/3 + 2/3 + 1/3 + 3/3 + 1/3) = 4/3 = 0.44...",
    Standing.FALSE,
    corrected=(
        "(1/2)(2/9 + 1/9 + 1/9 + 3/9 + 1/9) = 4/9, the distance of class 1. The table is t-close for 5/9 (class 2),"
        " not 4/9."
    ),
    counterexample="The printed sum is 4/3, and (1/2) 8/3 is not 0.44.",
)
def worked(e: Evidence) -> None:
    printed = Fraction(1, 2) * sum(
        [Fraction(1, 3), Fraction(2, 3), Fraction(1, 3), Fraction(3, 3), Fraction(1, 3)], Fraction(0)
    )
    e.claim(f"the printed sum is 0.44...: it is {printed} = {float(printed):.3f}", abs(float(printed) - 0.444) < 0.01)
    found = anonymity.t_closeness(_table(), exact=True)
    classes = [Fraction(v).limit_denominator(100) for v in found.per_class]
    e.corrected(
        f"distances of the classes: {', '.join(map(str, classes))}",
        classes == [Fraction(4, 9), Fraction(5, 9), Fraction(2, 9)],
    )


@CHAPTER.row(
    "n-epsilon-class",
    "definition of an (n, epsilon)-close class",
    Kind.DEFINITION,
    "A class is (n, epsilon)-close if some subset M of at least n records has D(P_C; P_{Q|M}) <= epsilon.",
    Standing.HOLDS,
    corrected="Unlike Li et al. M need not contain the class, so every class is (n, 0)-close for n up to its size.",
)
def n_class(e: Evidence) -> None:
    table = _table()
    for n in (3, 5, 7, 9):
        found = anonymity.n_epsilon_closeness(table, n, exact=True)
        by_hand = max(_closest(n, [part]) for part in _shares(table)[1])
        e.claim(f"n = {n}: {found.value}, by brute force over all subsets {by_hand}", Fraction(found.value) == by_hand)


def _closest(n: int, parts: list[dict[str, Fraction]]) -> Fraction:
    """Least largest distance of the classes to one subset of at least n records, over all subsets."""
    systems = anonymity.lecture_notes().released["system"].tolist()
    best = Fraction(1)
    for size in range(n, len(systems) + 1):
        for chosen in itertools.combinations(systems, size):
            share = {v: Fraction(chosen.count(v), size) for v in parts[0]}
            best = min(best, max(_variation(part, share) for part in parts))
    return best


@CHAPTER.row(
    "n-epsilon-partition",
    "definition of an (n, epsilon)-close partition",
    Kind.DEFINITION,
    "A partition is (n, epsilon)-close if one subset M of at least n records serves all its classes.",
    Standing.HOLDS,
)
def n_partition(e: Evidence) -> None:
    table = _table()
    for n in (6, 8, 9):
        found = anonymity.partition_closeness(table, n, exact=True)
        by_hand = _closest(n, _shares(table)[1])
        e.claim(f"n = {n}: {found.value}, by brute force {by_hand}", Fraction(found.value) == by_hand)


@CHAPTER.row(
    "trusted-aggregator",
    "recap: a trusted aggregator",
    Kind.FIGURE,
    "A picture: persons give sensitive data to a trusted aggregator, who publishes a sanitised data set.",
    Standing.NO_CONTENT,
)
def aggregator(e: Evidence) -> None:
    e.fact(
        "Reason: the picture names the roles and no quantity. Central privacy is a claim on the aggregator's"
        " mechanism; without trust, randomised response (next rows)."
    )
