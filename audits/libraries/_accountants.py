"""Rows of the scoreboard for accountants: compositions on which they report less than the truth."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from audits.libraries._kinds import Account, Library
from dpaudit.accountant import AccountantCheck
from dpaudit.mechanism import Raised

OPTIONS: dict[str, Any] = {"examples": 40, "steps": (1, 100), "seconds": 120.0}
PAGE = """# {library} {version}: accountant `{function}`

Relation {relation}; {checked} compositions were tried, seed {seed}. {known}

```text
{found}
```

The function is in `{file}`; it runs in an environment with `pip install {install}`, and this checks it again, in the root of
the repository:

```python
import sys

from audits.libraries import _accountants, _entries

library = next(each for each in _entries.LIBRARIES if each.name == "{library}")
account = next(each for each in library.accounts if each.function == "{function}")
print(_accountants.checked(library, account, sys.argv[1]))  # the path of that environment's Python
```
"""


def checked(library: Library, account: Account, python: str | Path) -> AccountantCheck:
    """Check an accountant that runs in another environment."""
    asked = dpaudit.isolated(python, f"{library.path}:{account.function}", calls="data")
    rng = np.random.default_rng(0)  # of no use to it

    def accountant(composition: Any, delta: float) -> float:
        parts = [(part.noise_multiplier, part.sampling_rate, part.steps, part.noise) for part in composition]
        (reported,) = asked.sample((parts, delta), 1, rng)
        if isinstance(reported, Raised):
            raise ValueError(str(reported))
        return float(reported)

    options = {**OPTIONS, **account.options}
    return dpaudit.check_accountant(accountant, relation=account.relation, name=account.function, **options)


def summary(library: Library, account: Account, python: Path) -> dict[str, Any]:
    """Return what is stored of a check."""
    started = time.monotonic()
    found = checked(library, account, python)
    worst = found.worst or (found.findings[0] if found.findings else None)
    return {
        "verdict": found.verdict.value,
        "flaws": sorted({str(finding.flaw) for finding in found.findings}),
        "reported": None if worst is None else worst.reported,
        "truth": None if worst is None or worst.truth is None else worst.truth.low,
        "checked": found.checked,
        "refusal": found.refusal if found.checked == 0 else None,
        "seed": found.seed,
        "seconds": time.monotonic() - started,
        "text": str(found),
    }


def account_page(library: Library, version: str, account: Account, stored: dict[str, Any]) -> str:
    """Return the page of an accountant that is wrong."""
    return PAGE.format(
        library=library.name,
        version=version,
        function=account.function,
        relation=account.relation.value,
        checked=stored["checked"],
        seed=stored["seed"],
        known=f"Known: {account.known}." if account.known else "Not yet reported.",
        found=re.sub(r"[ \t]+$", "", stored["text"], flags=re.MULTILINE),
        file=library.repository_path,
        install=" ".join(library.installed(version)),
    )
