"""The twenty mechanisms on which the field's auditors were published, as registry entries.

From Ding et al. 2018, Lyu, Su and Li 2017, Wang et al. 2019, Erlingsson, Pihur and Korolova 2014, and Balcer and Vadhan
2018; nominal epsilon 0.1 unless said. The data are vectors of query answers of sensitivity 1, and the neighbours the
eight published patterns around all ones, of which either one entry or all entries move. The true epsilon is the
supremum over all answers; on the patterns alone it can be smaller (row 5: 0.0946, row 9: 0.0885).
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any, Literal

from dpaudit import neighbours
from dpaudit.claims import PureDP, Relation
from dpaudit.neighbours import Neighbours

from ..broken.geometric import NaturalLogGeometric
from ..broken.laplace import MisscaledLaplace, PrefixSum
from ..broken.noisy_max import NoisyMaxValue
from ..broken.sparse_vector import svt3, svt4, svt5, svt6, svt34_parallel
from ..composition import Composition
from ..laplace import LaplaceMechanism
from ..noisy_max import ReportNoisyMax
from ..rappor import Rappor
from ..sparse_vector import numerical_svt, svt1, svt2
from . import Entry, entry

NOMINAL = 0.1
FASTEST = "signed-exponential"
CLAIM = PureDP(NOMINAL, Relation.ANSWERS)


def patterns(length: int, entries: Literal["all", "one"] = "all") -> Neighbours:
    """All ones against the published neighbours: eight if all entries may move, two if only one may."""
    known = neighbours.answers(length, 0, 2, entries=entries).corners()
    return neighbours.fixed(known[: 8 if entries == "all" else 2], relation=Relation.ANSWERS)


def pattern(length: int, number: int) -> Neighbours:
    """One of the eight: 4 is half up and half down, 7 alternating; there the threshold has nowhere to go."""
    return neighbours.fixed([patterns(length).corners()[number]], relation=Relation.ANSWERS)


all_of_five = functools.partial(patterns, 5)
one_of_five = functools.partial(patterns, 5, "one")
all_of_ten = functools.partial(patterns, 10)
halves_of_ten = functools.partial(pattern, 10, 4)
alternating_ten = functools.partial(pattern, 10, 7)


def only(data: Any) -> Any:
    """Return the single entry of a vector: a mechanism on one number sees a number."""
    return data[0]


def one_number() -> Neighbours:
    """The answer 1 against 0 and 2."""
    return patterns(1, "one").map_data(only)


def one_count() -> Neighbours:
    """One count between 0 and 5 that moves by 1."""
    return neighbours.answers(1, 0, 5, integral=True).map_data(only)


def any_two_values() -> Neighbours:
    """Values whose filters share no bit (0, 6), and two of four bits (0, 5): 8 and 6 bits differ."""
    return neighbours.fixed([(0, 6), (0, 5)], relation=Relation.SUBSTITUTE)


def laplace_parallel() -> Composition:
    """Twenty independent Laplace releases of one number, a twentieth of epsilon each."""
    return Composition((LaplaceMechanism(NOMINAL / 20, method=FASTEST),) * 20)


def entries() -> list[Entry]:
    """Return the rows of the catalogue, in order."""
    of = functools.partial
    nominal: dict[str, Any] = {"epsilon": NOMINAL, "threshold": 1.0}
    rappor, one_time = Rappor(), Rappor(f=0.95, instantaneous=False)
    rows = [
        _row(
            "laplace",
            of(LaplaceMechanism, NOMINAL, method=FASTEST),
            one_number,
            NOMINAL,
            "Dwork et al. 2006",
            samples=2_000_000,
            published=0.0998,
        ),
        _row(
            "truncated-geometric",
            of(NaturalLogGeometric, NOMINAL, 5),
            one_count,
            math.log1p(2.0**-3),
            "Balcer and Vadhan 2018, as the catalogue runs it",
            "The number of binary digits is computed with the natural logarithm, 3 in place of 5.",
            samples=4_000_000,
            published=0.1169,
        ),
        _row(
            "noisy-hist-1",
            of(LaplaceMechanism, NOMINAL, method=FASTEST),
            one_of_five,
            NOMINAL,
            "Ding et al. 2018",
            samples=2_000_000,
            published=0.0994,
        ),
        _row(
            "noisy-hist-2",
            of(MisscaledLaplace, NOMINAL, NOMINAL**2, method=FASTEST),
            one_of_five,
            1.0 / NOMINAL,
            "Ding et al. 2018",
            "The scale of the noise is epsilon, not 1/epsilon.",
            published=10.002,
        ),
        _row(
            "noisy-max-1",
            of(ReportNoisyMax, NOMINAL),
            all_of_five,
            NOMINAL,
            "Ding et al. 2018; Dwork and Roth 2014",
            samples=4_000_000,
            published=0.0925,
        ),
        _row(
            "noisy-max-2",
            of(ReportNoisyMax, NOMINAL, noise="exponential"),
            all_of_five,
            NOMINAL,
            "Ding et al. 2018",
            samples=2_000_000,
            published=0.0997,
        ),
        _row(
            "noisy-max-3",
            of(NoisyMaxValue, NOMINAL),
            all_of_five,
            NoisyMaxValue(NOMINAL).epsilon_exact(5),
            "Ding et al. 2018",
            "The noisy maximum itself is released, with noise that pays for its index.",
            samples=4_000_000,
            published=0.2488,
        ),
        _row(
            "noisy-max-4",
            of(NoisyMaxValue, NOMINAL, noise="exponential"),
            all_of_five,
            math.inf,
            "Ding et al. 2018",
            "The noisy maximum itself is released, and its noise is one-sided: it is never below the largest answer.",
            samples=4_000_000,
            published=0.3534,
        ),
        _row(
            "svt-1",
            of(svt1, epsilon=NOMINAL, threshold=0.5),
            all_of_ten,
            svt1(epsilon=NOMINAL, threshold=0.5).epsilon_exact(10),
            "Lyu, Su and Li 2017, algorithm 1",
            samples=2_000_000,
            published=0.0858,
        ),
        _row(
            "svt-2",
            of(svt2, **nominal),
            all_of_ten,
            svt2(**nominal).epsilon_exact(10),
            "Lyu, Su and Li 2017, algorithm 2; Dwork and Roth 2014",
            samples=2_000_000,
            published=0.0859,
        ),
        _row(
            "svt-3",
            of(svt3, **nominal),
            halves_of_ten,
            svt3(**nominal).epsilon_exact(10),
            "Lyu, Su and Li 2017, algorithm 3",
            "A hit releases the noisy answer that was compared, which bounds the threshold; it grows with the queries.",
            samples=16_000_000,
            published=0.1822,
        ),
        _row(
            "svt-4",
            of(svt4, **nominal),
            halves_of_ten,
            svt4(**nominal).epsilon_exact(10),
            "Lyu, Su and Li 2017, algorithm 4",
            "The query noise has scale 4/(3 epsilon): three quarters of epsilon where the comparison needs twice that.",
            samples=8_000_000,
            published=0.1719,
        ),
        _row(
            "svt-5",
            of(svt5, **nominal),
            all_of_ten,
            math.inf,
            "Lyu, Su and Li 2017, algorithm 5",
            "The queries get no noise.",
            published=14.314,
        ),
        _row(
            "svt-6",
            of(svt6, **nominal),
            halves_of_ten,
            svt6(**nominal).epsilon_exact(10),
            "Lyu, Su and Li 2017, algorithm 6",
            "It never stops, so every query is paid for with the budget of one.",
            samples=4_000_000,
            published=0.3220,
        ),
        _row(
            "rappor",
            Rappor,
            any_two_values,
            rappor.claim.epsilon,
            "Erlingsson, Pihur and Korolova 2014, steps 1 to 3",
            claim=rappor.claim,
            published=0.3008,
        ),
        _row(
            "one-time-rappor",
            of(Rappor, f=0.95, instantaneous=False),
            any_two_values,
            one_time.claim.epsilon,
            "Erlingsson, Pihur and Korolova 2014, steps 1 and 2",
            claim=one_time.claim,
            published=0.5999,
        ),
        _row("laplace-parallel", laplace_parallel, one_number, NOMINAL, "Bichsel et al. 2021", published=0.0350),
        _row(
            "svt-34-parallel",
            of(svt34_parallel, **nominal),
            alternating_ten,
            (5.5 * NOMINAL, 5.75 * NOMINAL),
            "Bichsel et al. 2021",
            "Two techniques, each of them broken, on the same answers for the price of one.",
            samples=16_000_000,
            published=0.2616,
        ),
        _row(
            "prefix-sum",
            of(PrefixSum, NOMINAL),
            all_of_ten,
            PrefixSum(NOMINAL).epsilon_exact,
            "Wang et al. 2019",
            "Ten noisy answers are charged as one; their sums hide nothing of them.",
            samples=2_000_000,
            published=0.5774,
        ),
        _row(
            "numerical-svt",
            of(numerical_svt, **nominal, hits=2),
            all_of_ten,
            numerical_svt(**nominal, hits=2).epsilon_exact(10),
            "Wang et al. 2019",
            samples=4_000_000,
            published=0.0345,
        ),
    ]
    return [replace(row, catalogue=number) for number, row in enumerate(rows, start=1)]


def _row(name: str, *described: Any, claim: PureDP = CLAIM, **more: Any) -> Entry:
    """Return a row of the catalogue, which is described as :func:`entry` describes a mechanism."""
    return entry(f"catalogue-{name}", *described, claim=claim, **more)
