"""Checks of privacy accountants: does one ever report less than the truth?

- :mod:`dpaudit.accountant.composition`: what is accounted for
- :mod:`dpaudit.accountant.truth`: the true epsilon of a composition, between a lower and an upper bound
- :mod:`dpaudit.accountant.check`: the search for a composition on which an accountant is wrong
"""

from dpaudit.accountant.check import AccountantCheck, Flaw, WrongReport, check_accountant
from dpaudit.accountant.composition import Composition, Part
from dpaudit.accountant.truth import Bracket, true_epsilon

__all__ = [
    "AccountantCheck",
    "Bracket",
    "Composition",
    "Flaw",
    "Part",
    "WrongReport",
    "check_accountant",
    "true_epsilon",
]
