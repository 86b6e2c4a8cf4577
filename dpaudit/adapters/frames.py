"""Functions of pandas data frames as mechanisms.

The data may be a frame, or rows that ``neighbours.frame(columns, dtypes)`` turns into one. Every release gets a copy, so a
function that sorts or assigns in place changes nothing for the next one; and a frame among the outputs is taken apart
into columns, index and values, all of which can leak.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit._util.validation import shorten
from dpaudit.adapters._loading import load
from dpaudit.errors import InvalidArgument
from dpaudit.mechanism import PerRelease, Plain


@dataclass(frozen=True, slots=True)
class OnFrame:
    """A function of a data frame, and of a generator if it takes one."""

    function: Callable[..., Any]
    container: Callable[[list[Any]], Any] | None = None

    def __call__(self, data: Any, *rng: Any) -> Any:
        """Release once, on a copy."""
        pandas = load("pandas", extra="libraries")
        if not isinstance(data, pandas.DataFrame):
            if self.container is None:
                raise InvalidArgument(
                    f"data={shorten(data)} must be a data frame; pass columns= and dtypes= to make one of rows."
                )
            data = self.container(list(data))
        return released(self.function(data.copy(deep=True), *rng))


def mechanism(
    function: Callable[..., Any],
    *,
    columns: Sequence[str] | None = None,
    dtypes: Sequence[Any] | Mapping[str, Any] | None = None,
    uses_rng: bool = False,
) -> Plain | PerRelease:
    """Return a function of a data frame as a mechanism.

    Parameters
    ----------
    function
        ``f(frame)``, or ``f(frame, rng)`` where ``uses_rng``.
    columns, dtypes
        Names and types of the columns, if the data come as rows; they stay when there are no rows.
    """
    from dpaudit import neighbours

    if not callable(function):
        raise InvalidArgument(f"function={shorten(function)} must be callable.")
    if (columns is None) != (dtypes is None):
        raise InvalidArgument(f"columns={columns!r} and dtypes={dtypes!r} must be given together, or neither.")
    container = None if columns is None or dtypes is None else neighbours.frame(columns, dtypes)
    adapted = OnFrame(function, container)
    return PerRelease(adapted) if uses_rng else Plain(adapted)


def released(output: Any) -> Any:
    """A frame or series as plain data: by column, and by label where the labels are more than a numbering.

    Nothing may get lost: names that occur twice are kept beside their values, in the order of the table.

    >>> import pandas as pd
    >>> released(pd.DataFrame({"n": [2, 1]}, index=["a", "b"]))
    {'n': {'a': 2, 'b': 1}}
    >>> released(pd.Series([0.5, 1.5]))
    [0.5, 1.5]
    >>> released(pd.Series([0.5, 1.5], index=["a", "a"]))
    [('a', 0.5), ('a', 1.5)]
    """
    if hasattr(output, "columns") and hasattr(output, "iloc"):
        columns = [released(output.iloc[:, place]) for place in range(output.shape[1])]
        return _by_label(output.columns, columns)
    if hasattr(output, "index") and hasattr(output, "tolist"):
        values, index = output.tolist(), output.index
        numbered = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
        return values if numbered else _by_label(index, values)
    return output


def _by_label(labels: Any, values: list[Any]) -> Any:
    both = list(zip(labels.tolist(), values, strict=True))
    return dict(both) if labels.is_unique else both
