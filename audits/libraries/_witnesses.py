"""Pages for the violations of the scoreboard: pair, event, counts, seed and a script that counts again."""

from __future__ import annotations

import re
from collections.abc import Container

from audits.libraries._kinds import Account, Call, Library
from dpaudit.result.model import Result

FOLDER = "witnesses"
PAGE = """# {library} {version}: `{function}`

Claimed: `{claim}`. Shown: epsilon at least {bound:.4g}, in {samples:,} samples at alpha {alpha:g}, channel `{channel}`,
seed {seed}. {known}

| | data | event on fresh outputs, with 99 % interval |
|---|---|---|
| data | `{data}` | {on_data} |
| neighbour | `{neighbour}` | {on_neighbour} |

Event:

```text
{event}
```

This counts again. Run it in the root of the repository, with the path of a Python interpreter for which
`pip install {install}` was done:

```python
{script}```
"""


def witness_name(library: Library, entry: Call | Account, taken: Container[str]) -> str:
    """Return the name of a page that is not taken."""
    bits = "-bits" if isinstance(entry, Call) and entry.channel == "representation" else ""
    name = f"{library.name}-{entry.function}{bits}".replace("_", "-").lower()
    number = next(number for number in range(1, 1000) if _numbered(name, number) not in taken)
    return _numbered(name, number)


def _numbered(name: str, number: int) -> str:
    return f"{name}.md" if number == 1 else f"{name}-{number}.md"


def witness_page(library: Library, version: str, call: Call, result: Result) -> str:
    """Return the page of a violation, without the paths of this machine."""
    witness = result.witness
    if witness is None:
        raise ValueError(f"the violation of {library.name} {call.function} has no witness")
    lines = [line for line in witness.script().splitlines() if not line.startswith("from dpaudit.mechanism.isolated")]
    place = next(number for number, line in enumerate(lines) if line.startswith("mechanism = "))
    lines[place] = (
        f'mechanism = dpaudit.isolated(sys.argv[1], "{library.repository_path}:{call.function}", calls="{call.form}")'
    )
    script = "\n".join(lines).replace("import math\n", "import math\nimport sys\n", 1)
    script = script.replace("import numpy as np\n", "import numpy as np\n\nimport dpaudit\n", 1)
    script = re.sub(r"\n{3,}(?=mechanism)", "\n\n", re.sub(r"import dpaudit\n\n+from", "import dpaudit\nfrom", script))
    known = f"Known: {call.known}." if call.known else "Not yet reported."
    return PAGE.format(
        library=library.name, version=version, function=call.function, claim=call.claim, bound=result.epsilon_lower,
        samples=result.samples, alpha=result.alpha, channel=result.channel.value, seed=result.seed, known=known,
        data=witness.data, neighbour=witness.neighbour, on_data=witness.on_data, on_neighbour=witness.on_neighbour,
        event=witness.event, install=" ".join(library.installed(version)), script=script + "\n",
    )  # fmt: skip
