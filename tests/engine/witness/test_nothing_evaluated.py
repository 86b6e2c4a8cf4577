"""The repr of a row or of a mechanism comes from user code: it is parsed, never evaluated, and cannot leave its
comment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpaudit

MARK: Path | None = None
OPENS = (
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'catch_warnings'][0]()"
    "._module.__builtins__['open']({!r}, 'w').close()"
)


class Row:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Noisy:
    def sample(self, data: Any, size: int, rng: Any) -> Any:
        return len(data) + rng.laplace(scale=0.4, size=size)

    def __repr__(self) -> str:
        return OPENS.format(str(MARK))


def test_neither_rows_nor_mechanisms_are_evaluated(tmp_path: Path) -> None:
    global MARK
    MARK = tmp_path / "mark"
    result = dpaudit.audit(Noisy(), dpaudit.PureDP(1.0), [([], [Row(OPENS.format(str(MARK)))])], samples=20_000)
    assert result.witness is not None
    assert not result.witness.literal
    assert not MARK.exists()


def test_a_script_holds_reprs_of_user_code_in_comments_only() -> None:
    row = Row("x\rprint('INJECTED')\n\0print('INJECTED')\x0c")
    result = dpaudit.audit(dpaudit.batched(Noisy().sample), dpaudit.PureDP(1.0), [([], [row])], samples=20_000)
    assert result.witness is not None
    script = result.witness.script()
    assert not set("\r\0\x0c") & set(script)
    assert not any(line.lstrip().startswith("print('INJECTED')") for line in script.splitlines())
    compile(script, "script", "exec")
