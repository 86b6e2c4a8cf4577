"""Which lines of the user's function were run, and which branches never were."""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dpaudit.symbolic.values.paths import is_user_code


@dataclass(eq=False)
class Lines:
    """The lines of the user's code that ran, of all functions that were entered."""

    seen: set[tuple[str, int]] = field(default_factory=set)
    codes: dict[types.CodeType, None] = field(default_factory=dict)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record lines inside the block. Another tracer (a debugger, coverage) is left alone and nothing is recorded."""
        if sys.gettrace() is not None:
            yield
            return
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)

    def _trace(self, frame: Any, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        if not is_user_code(code.co_filename):
            return None
        self.codes[code] = None

        def local(frame: Any, event: str, _argument: Any) -> Any:
            if event == "line":
                self.seen.add((code.co_filename, frame.f_lineno))
            return local

        return local

    def missed(self, function: Any) -> list[tuple[str, int]]:
        """Lines of the functions that ran, and of the given one, that never ran themselves."""
        codes = dict(self.codes)
        own = code_of(function)
        if own is not None and is_user_code(own.co_filename):
            codes[own] = None
        lines = {
            (code.co_filename, line)
            for code in codes
            for _, line in dis.findlinestarts(code)
            if line is not None and line > code.co_firstlineno
        }
        return sorted(lines - self.seen) if self.codes else []


def code_of(function: Any) -> types.CodeType | None:
    """The code of the user's function inside wrappers, methods and partial applications."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)
        elif hasattr(function, "sample") and not isinstance(function, types.FunctionType):
            function = function.sample
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif isinstance(function, types.FunctionType):
            return function.__code__
        else:
            call = vars(type(function)).get("__call__")
            return call.__code__ if isinstance(call, types.FunctionType) else None
