"""Accuracy theorems as calculators, printed and corrected, and their verification against exact values.

>>> from dpaudit import accuracy
>>> accuracy.verify("threshold-in-histogram", {"steps": [10], "beta": [0.1], "epsilon": [1.0]})[0].status
<Status.VIOLATED: 'VIOLATED'>

The calculators are in ``bounds``, exact quantities and enclosures in ``truths``, distributions of records and of errors in
``distributions``; the sources' statements with all their forms are in ``statements``. Parameters have the names of the
theorems' symbols, whose meaning and range are in ``conditions.SYMBOLS``.
"""

from dpaudit._util.lazy import imported_on_first_use

__getattr__, __dir__ = imported_on_first_use(__name__)
