"""A progress line on stderr: samples, evidence against the threshold, time left. Silent where nobody watches."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """A tqdm bar that appears only on a terminal (``wanted`` forces it on or off)."""

    def __init__(self, name: str, samples: int, log_threshold: float, *, wanted: bool | None) -> None:
        self._name = name
        self._samples = samples
        self._threshold = log_threshold
        self._bar: Any = None
        self._wanted = (sys.stderr.isatty() and not os.environ.get("CI")) if wanted is None else wanted

    def __enter__(self) -> Self:
        if self._wanted:
            from tqdm import tqdm

            self._bar = tqdm(
                total=self._samples, desc=self._name, unit="", unit_scale=True, file=sys.stderr, leave=False
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, drawn: int) -> None:
        """Count outputs drawn."""
        if self._bar is not None:
            self._bar.update(drawn)

    def show(self, log_wealth: float) -> None:
        """Show the evidence."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"evidence {log_wealth:.1f} of {self._threshold:.1f}", refresh=False)
