"""The ledger: every statement of five documents on private deciles and around, each with a computation that decides it.

The documents are an internship report on private deciles and the slides of its defence, course notes with the proof of the
Laplace mechanism, lecture notes on t-closeness and randomised response, and notes that survey mechanisms.

>>> from dpaudit import statements
>>> found = statements.find_statement("lemma-2.2.3.1").run()
>>> str(found.standing), found.as_expected
('vacuous', True)
"""

from dpaudit._util.lazy import imported_on_first_use

__getattr__, __dir__ = imported_on_first_use(__name__)
