"""Find out whether code that claims to be differentially private really is.

The entry points: :func:`audit`, :func:`assert_private`, :class:`Audit` (black box, with a stated error probability),
:func:`verify` (exact laws, declared or extracted from the code), :func:`check_sensitivity` (deterministic), :func:`diagnose`
(where the bug is), the claims, and what makes a mechanism of a function, a program or a service. Everything is imported on
first use, so that ``import dpaudit`` costs next to nothing; ``__init__.pyi`` lists the public names and their modules.
"""

from __future__ import annotations

from dpaudit._util.lazy import imported_on_first_use

__version__ = "0.2.0"
__getattr__, __dir__ = imported_on_first_use(__name__)
