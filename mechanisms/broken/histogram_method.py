"""HistogramMethod as it was printed: wrong outputs in the report, and a grid that leaks the number of rows in the slides."""

from __future__ import annotations

from dpaudit.claims import Relation

from ..histogram_method import AS_IN_SLIDES, AS_PRINTED, HistogramMethod


def printed_histogram_method(epsilon: float, low: float, high: float, steps: int) -> HistogramMethod:
    """The report's pseudo-code, literally, with its four bugs in the outputs (docs/theory.md R6).

    No offset by ``low``, queries never cleared (a value above ``high`` comes out), the left edge of the bin whose right
    edge was tested, and -1 read as a value below the range. None of them touches the privacy: the calls are still
    AboveThreshold on counts, so it keeps three quarters of the claim under substitution.
    """
    return HistogramMethod(epsilon, low, high, steps, bugs=AS_PRINTED)


def slides_histogram_method(
    epsilon: float, low: float, high: float, relation: Relation = Relation.ADD_REMOVE
) -> HistogramMethod:
    """The slides' pseudo-code: ``steps = 1.5 n / log n`` of the rows at hand.

    Under addition and removal the outputs for n and n + 1 rows are multiples of different widths, so one output shows
    the number of rows: epsilon is infinite (docs/theory.md R5). Where the number of rows is public it keeps its claim.
    """
    return HistogramMethod(epsilon, low, high, relation=relation, bugs=AS_IN_SLIDES)
