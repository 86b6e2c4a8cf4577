"""Measures of published tables: k-anonymity, l-diversity, t-closeness, (n, epsilon)-closeness.

>>> from dpaudit import anonymity
>>> table = anonymity.lecture_notes().table
>>> print(anonymity.t_closeness(table, exact=True))
t-closeness (tv) of system = 5/9 (0.555556): class 2 (plz=2600-3199, points=35-45), records 4, 5, 6

None of these measures bounds what an observer learns about a person from their presence in the table. Differential privacy
does; it is a property of a mechanism, not of a table.
"""

from dpaudit._util.lazy import imported_on_first_use

__getattr__, __dir__ = imported_on_first_use(__name__)
