"""Checks of privacy accountants: is a reported epsilon ever below the true one?

- :mod:`dpaudit.accountant.composition`: the compositions that an accountant is asked about
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
