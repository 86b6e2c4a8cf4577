"""The twenty mechanisms on which the field's auditors were published, as registry entries.

From Ding et al. 2018, Lyu, Su and Li 2017, Wang et al. 2019, Erlingsson, Pihur and Korolova 2014, and Balcer and Vadhan
2018; nominal epsilon 0.1 unless said. The data are vectors of query answers of sensitivity 1, and the neighbours the
eight published patterns around all ones, of which either one entry or all entries move. The true epsilon is the
supremum over all answers; on the patterns alone it can be smaller (row 5: 0.0946, row 9: 0.0885).
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

from dpaudit import neighbours
from dpaudit.claims import PureDP, Relation, Verdict
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
from . import Entry

NOMINAL = 0.1
FASTEST = "signed-exponential"
KEPT, BROKEN = Verdict.NO_VIOLATION_FOUND, Verdict.VIOLATION
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
    rappor, one_time = Rappor(), Rappor(f=0.95, instantaneous=False)
    return [
        Entry(
            name="catalogue-laplace",
            make=functools.partial(LaplaceMechanism, NOMINAL, method=FASTEST),
            claim=CLAIM,
            neighbours=one_number,
            truth=NOMINAL,
            samples=2_000_000,
            expect=KEPT,
            bug=None,
            source="Dwork et al. 2006",
            catalogue=1,
            published=0.0998,
        ),
        Entry(
            name="catalogue-truncated-geometric",
            make=functools.partial(NaturalLogGeometric, NOMINAL, 5),
            claim=CLAIM,
            neighbours=one_count,
            truth=math.log1p(2.0**-3),
            samples=4_000_000,
            expect=BROKEN,
            bug="The number of binary digits is computed with the natural logarithm, 3 in place of 5.",
            source="Balcer and Vadhan 2018, as the catalogue runs it",
            catalogue=2,
            published=0.1169,
        ),
        Entry(
            name="catalogue-noisy-hist-1",
            make=functools.partial(LaplaceMechanism, NOMINAL, method=FASTEST),
            claim=CLAIM,
            neighbours=one_of_five,
            truth=NOMINAL,
            samples=2_000_000,
            expect=KEPT,
            bug=None,
            source="Ding et al. 2018",
            catalogue=3,
            published=0.0994,
        ),
        Entry(
            name="catalogue-noisy-hist-2",
            make=functools.partial(MisscaledLaplace, NOMINAL, NOMINAL**2, method=FASTEST),
            claim=CLAIM,
            neighbours=one_of_five,
            truth=1.0 / NOMINAL,
            samples=1_000_000,
            expect=BROKEN,
            bug="The scale of the noise is epsilon, not 1/epsilon.",
            source="Ding et al. 2018",
            catalogue=4,
            published=10.002,
        ),
        Entry(
            name="catalogue-noisy-max-1",
            make=functools.partial(ReportNoisyMax, NOMINAL),
            claim=CLAIM,
            neighbours=all_of_five,
            truth=NOMINAL,
            samples=4_000_000,
            expect=KEPT,
            bug=None,
            source="Ding et al. 2018; Dwork and Roth 2014",
            catalogue=5,
            published=0.0925,
        ),
        Entry(
            name="catalogue-noisy-max-2",
            make=functools.partial(ReportNoisyMax, NOMINAL, noise="exponential"),
            claim=CLAIM,
            neighbours=all_of_five,
            truth=NOMINAL,
            samples=2_000_000,
            expect=KEPT,
            bug=None,
            source="Ding et al. 2018",
            catalogue=6,
            published=0.0997,
        ),
        Entry(
            name="catalogue-noisy-max-3",
            make=functools.partial(NoisyMaxValue, NOMINAL),
            claim=CLAIM,
            neighbours=all_of_five,
            truth=NoisyMaxValue(NOMINAL).epsilon_exact(5),
            samples=4_000_000,
            expect=BROKEN,
            bug="The noisy maximum itself is released, with noise that pays for its index.",
            source="Ding et al. 2018",
            catalogue=7,
            published=0.2488,
        ),
        Entry(
            name="catalogue-noisy-max-4",
            make=functools.partial(NoisyMaxValue, NOMINAL, noise="exponential"),
            claim=CLAIM,
            neighbours=all_of_five,
            truth=math.inf,
            samples=4_000_000,
            expect=BROKEN,
            bug="The noisy maximum itself is released, and its noise is one-sided: it is never below the largest answer.",
            source="Ding et al. 2018",
            catalogue=8,
            published=0.3534,
        ),
        Entry(
            name="catalogue-svt-1",
            make=functools.partial(svt1, epsilon=NOMINAL, threshold=0.5),
            claim=CLAIM,
            neighbours=all_of_ten,
            truth=svt1(epsilon=NOMINAL, threshold=0.5).epsilon_exact(10),
            samples=2_000_000,
            expect=KEPT,
            bug=None,
            source="Lyu, Su and Li 2017, algorithm 1",
            catalogue=9,
            published=0.0858,
        ),
        Entry(
            name="catalogue-svt-2",
            make=functools.partial(svt2, epsilon=NOMINAL, threshold=1.0),
            claim=CLAIM,
            neighbours=all_of_ten,
            truth=svt2(epsilon=NOMINAL, threshold=1.0).epsilon_exact(10),
            samples=2_000_000,
            expect=KEPT,
            bug=None,
            source="Lyu, Su and Li 2017, algorithm 2; Dwork and Roth 2014",
            catalogue=10,
            published=0.0859,
        ),
        Entry(
            name="catalogue-svt-3",
            make=functools.partial(svt3, epsilon=NOMINAL, threshold=1.0),
            claim=CLAIM,
            neighbours=halves_of_ten,
            truth=svt3(epsilon=NOMINAL, threshold=1.0).epsilon_exact(10),
            samples=16_000_000,
            expect=BROKEN,
            bug="A hit releases the noisy answer that was compared, which bounds the threshold; it grows with the queries.",
            source="Lyu, Su and Li 2017, algorithm 3",
            catalogue=11,
            published=0.1822,
        ),
        Entry(
            name="catalogue-svt-4",
            make=functools.partial(svt4, epsilon=NOMINAL, threshold=1.0),
            claim=CLAIM,
            neighbours=halves_of_ten,
            truth=svt4(epsilon=NOMINAL, threshold=1.0).epsilon_exact(10),
            samples=8_000_000,
            expect=BROKEN,
            bug="The query noise has scale 4/(3 epsilon): three quarters of epsilon where the comparison needs twice that.",
            source="Lyu, Su and Li 2017, algorithm 4",
            catalogue=12,
            published=0.1719,
        ),
        Entry(
            name="catalogue-svt-5",
            make=functools.partial(svt5, epsilon=NOMINAL, threshold=1.0),
            claim=CLAIM,
            neighbours=all_of_ten,
            truth=math.inf,
            samples=1_000_000,
            expect=BROKEN,
            bug="The queries get no noise.",
            source="Lyu, Su and Li 2017, algorithm 5",
            catalogue=13,
            published=14.314,
        ),
        Entry(
            name="catalogue-svt-6",
            make=functools.partial(svt6, epsilon=NOMINAL, threshold=1.0),
            claim=CLAIM,
            neighbours=halves_of_ten,
            truth=svt6(epsilon=NOMINAL, threshold=1.0).epsilon_exact(10),
            samples=4_000_000,
            expect=BROKEN,
            bug="It never stops, so every query is paid for with the budget of one.",
            source="Lyu, Su and Li 2017, algorithm 6",
            catalogue=14,
            published=0.3220,
        ),
        Entry(
            name="catalogue-rappor",
            make=Rappor,
            claim=rappor.claim,
            neighbours=any_two_values,
            truth=rappor.claim.epsilon,
            samples=1_000_000,
            expect=KEPT,
            bug=None,
            source="Erlingsson, Pihur and Korolova 2014, steps 1 to 3",
            catalogue=15,
            published=0.3008,
        ),
        Entry(
            name="catalogue-one-time-rappor",
            make=functools.partial(Rappor, f=0.95, instantaneous=False),
            claim=one_time.claim,
            neighbours=any_two_values,
            truth=one_time.claim.epsilon,
            samples=1_000_000,
            expect=KEPT,
            bug=None,
            source="Erlingsson, Pihur and Korolova 2014, steps 1 and 2",
            catalogue=16,
            published=0.5999,
        ),
        Entry(
            name="catalogue-laplace-parallel",
            make=laplace_parallel,
            claim=CLAIM,
            neighbours=one_number,
            truth=NOMINAL,
            samples=1_000_000,
            expect=KEPT,
            bug=None,
            source="Bichsel et al. 2021",
            catalogue=17,
            published=0.0350,
        ),
        Entry(
            name="catalogue-svt-34-parallel",
            make=functools.partial(svt34_parallel, epsilon=NOMINAL, threshold=1.0),
            claim=CLAIM,
            neighbours=alternating_ten,
            truth=(5.5 * NOMINAL, 5.75 * NOMINAL),
            samples=16_000_000,
            expect=BROKEN,
            bug="Two techniques, each of them broken, on the same answers for the price of one.",
            source="Bichsel et al. 2021",
            catalogue=18,
            published=0.2616,
        ),
        Entry(
            name="catalogue-prefix-sum",
            make=functools.partial(PrefixSum, NOMINAL),
            claim=CLAIM,
            neighbours=all_of_ten,
            truth=PrefixSum(NOMINAL).epsilon_exact,
            samples=2_000_000,
            expect=BROKEN,
            bug="Ten noisy answers are charged as one; their sums hide nothing of them.",
            source="Wang et al. 2019",
            catalogue=19,
            published=0.5774,
        ),
        Entry(
            name="catalogue-numerical-svt",
            make=functools.partial(numerical_svt, epsilon=NOMINAL, threshold=1.0, hits=2),
            claim=CLAIM,
            neighbours=all_of_ten,
            truth=numerical_svt(epsilon=NOMINAL, threshold=1.0, hits=2).epsilon_exact(10),
            samples=4_000_000,
            expect=KEPT,
            bug=None,
            source="Wang et al. 2019",
            catalogue=20,
            published=0.0345,
        ),
    ]
