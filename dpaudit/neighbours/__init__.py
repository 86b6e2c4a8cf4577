"""Neighbouring data sets, on which a claim is audited, as Hypothesis strategies of pairs.

=====================  ===================================  ==========================================================
function               relation                             a pair
=====================  ===================================  ==========================================================
:func:`substitute`     ``SUBSTITUTE``                       one row replaced, size public
:func:`add_remove`     ``ADD_REMOVE``                       one row more or less
:func:`zero_out`       ``ZERO_OUT``                         one row replaced by a null row
:func:`users`          ``USERS_ADD_REMOVE`` or              all rows of one person
                       ``USERS_SUBSTITUTE``
:func:`answers`        ``ANSWERS``                          vectors of query answers
:func:`secrets`        ``SECRETS``                          two secrets; data drawn again for every release
:func:`fixed`          yours                                the pairs you name
:func:`pairs`          yours                                the pairs of your own strategy
:func:`asking`         that of its pairs                    data sets, both asked the same questions
=====================  ===================================  ==========================================================
"""

from dpaudit.neighbours._answers import answers
from dpaudit.neighbours._asking import asking
from dpaudit.neighbours._containers import array, frame
from dpaudit.neighbours._core import Neighbours, Pair, check_relation
from dpaudit.neighbours._given import Secret, as_neighbours, fixed, pairs, secrets
from dpaudit.neighbours._tables import add_remove, substitute, users, zero_out

__all__ = [
    "Neighbours",
    "Pair",
    "Secret",
    "add_remove",
    "answers",
    "array",
    "as_neighbours",
    "asking",
    "check_relation",
    "fixed",
    "frame",
    "pairs",
    "secrets",
    "substitute",
    "users",
    "zero_out",
]
