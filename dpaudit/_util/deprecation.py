"""Old names that still work and warn: of keywords, of fields and of entries in dicts of options."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from dpaudit._util.validation import check_choice, did_you_mean
from dpaudit.errors import InvalidArgument

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


def warn_renamed(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Issue the DeprecationWarning for an old name; ``stacklevel=2`` is the caller of the caller."""
    warnings.warn(f"{old} is now called {new}; the old name will be removed.", DeprecationWarning, stacklevel + 1)


def with_new_names(given: Mapping[str, Any], names: Mapping[str, str], *, stacklevel: int = 2) -> dict[str, Any]:
    """Return the arguments under their new names, and warn about each old one; both at once are an error."""
    renamed = dict(given)
    for old, new in names.items():
        if old in renamed:
            if new in renamed:
                raise InvalidArgument(f"{old}= is the old name of {new}=; give {new}= alone.")
            warn_renamed(f"{old}=", f"{new}=", stacklevel=stacklevel + 1)
            renamed[new] = renamed.pop(old)
    return renamed


def checked_keywords(
    elsewhere: Mapping[str, str] | None = None, /, **names: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function accept old keywords (``old="new"``) and refuse unknown ones with a suggestion.

    ``elsewhere`` says where a keyword belongs that is often tried here. Python itself refuses an unknown keyword with a
    TypeError that lists nothing; this raises InvalidArgument.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        by_name = sorted(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
        known = {parameter.name for parameter in parameters}

        @functools.wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            given: Any = with_new_names(keywords, names)
            for name in given:
                if name in (elsewhere or {}):
                    raise InvalidArgument(f"{name}={given[name]!r} is not an option here. {(elsewhere or {})[name]}")
                if name not in known:
                    check_choice(by_name, option=name)
            return function(*args, **given)

        return call

    return decorate


def renamed_fields(advice: str = "", /, **names: str) -> Callable[[type[C]], type[C]]:
    """Make a dataclass accept old field names (``old="new"``), as arguments and as attributes.

    With ``advice`` a field that is unknown, or has no name, is refused with a suggestion and the advice.
    """

    def decorate(cls: type[C]) -> type[C]:
        initialise: Any = cls.__init__
        known = list(inspect.signature(cls).parameters)

        @functools.wraps(initialise)
        def init(self: C, *args: Any, **keywords: Any) -> None:
            if advice and args:
                raise InvalidArgument(
                    f"{cls.__name__} takes its fields by name: {', '.join(f'{name}=' for name in known)}."
                )
            for word in keywords.keys() - {*known, *names} if advice else ():
                raise InvalidArgument(f"{cls.__name__} has no field {word}=.{did_you_mean(word, known)} {advice}")
            initialise(self, *args, **(with_new_names(keywords, names) if names.keys() & keywords.keys() else keywords))

        cls.__init__ = init  # type: ignore[assignment]
        for old, new in names.items():
            setattr(cls, old, _old_attribute(cls.__name__, old, new))
        return cls

    return decorate


def _old_attribute(owner: str, old: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn_renamed(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(read, doc=f"Old name of ``{new}``.")
