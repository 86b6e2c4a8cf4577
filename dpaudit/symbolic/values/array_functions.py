"""numpy's functions of whole arrays, for arrays with symbolic cells.

``FUNCTIONS`` maps the name of a numpy function to ours. Arguments that are not followed stop the extraction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.values import arithmetic, comparing, transforming
from dpaudit.symbolic.values.arrays import (
    Cells,
    SymbolicArray,
    cells_of,
    dtype_of,
    elementwise,
    has_symbols,
    kind_of_cell,
    order_of,
    settled,
    typed,
    wrapped,
    written,
)
from dpaudit.symbolic.values.paths import stop
from dpaudit.symbolic.values.symbols import PendingComparison, Steps, is_symbol

_Reduction = Callable[[list[Any]], Any]


def _refuse(name: str, options: dict[str, Any]) -> None:
    """Stop if a function is called with an option that is not followed."""
    given = [key for key, value in options.items() if value is not None and value is not np._NoValue]
    if given:
        raise stop(f"numpy.{name} with {', '.join(given)} is not followed for random numbers")


def _along(value: Any, axis: Any, function: Callable[[list[Any]], Any], dtype: Any, keepdims: bool = False) -> Any:
    array = value if type(value) is SymbolicArray else wrapped(cells_of(value))
    if axis is None:
        result = function(array.cells.ravel().tolist())
        if keepdims:
            cells = np.empty((1,) * array.ndim, dtype=object)
            cells[...] = result
            return SymbolicArray(cells, dtype or array.dtype)
        return typed(result, np.dtype(dtype or array.dtype))
    if isinstance(axis, tuple):
        if len(axis) != 1:
            raise stop("A reduction over several axes is not followed")
        axis = axis[0]
    moved = np.moveaxis(array.cells, axis, -1)
    cells = np.empty(moved.shape[:-1], dtype=object)
    for place in np.ndindex(cells.shape):
        cells[place] = function(moved[place].tolist())
    if keepdims:
        cells = np.expand_dims(cells, axis)
    result_type = np.dtype(dtype or array.dtype)
    return SymbolicArray(cells, result_type) if cells.ndim else typed(cells.item(), result_type)


def _sum_type(value: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype_of(dtype)
    kind = value.dtype if hasattr(value, "dtype") else None
    return np.dtype(np.int64) if kind is not None and kind.kind == "b" else kind


def _total(values: list[Any]) -> Any:
    total: Any = 0
    for value in values:
        if type(value) is PendingComparison:
            value = value.concrete()
        total = (
            total + value if not is_symbol(total) and not is_symbol(value) else arithmetic.binary("add", total, value)
        )
    return total


def sum_of(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """Return ``numpy.sum``."""
    _refuse("sum", options)
    result = _along(a, axis, _total, _sum_type(a, dtype), keepdims)
    return result if out is None else written(result, out, "sum")


def mean_of(a: Any, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """Return ``numpy.mean``."""
    _refuse("mean", options)
    total = sum_of(a, axis=axis, keepdims=keepdims)
    shape = np.shape(cells_of(a))
    count = math.prod(shape) if axis is None else shape[axis]
    if count == 0:
        raise stop("The mean of an empty array is not followed")
    return elementwise("true_divide", total, count)


def cumsum_of(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return ``numpy.cumsum``."""
    _refuse("cumsum", {"out": out})
    array = a if type(a) is SymbolicArray else wrapped(cells_of(a))
    cells = array.cells.ravel() if axis is None else np.moveaxis(array.cells, axis, -1)
    result = np.empty(cells.shape, dtype=object)
    for place in np.ndindex(cells.shape[:-1]):
        total: Any = 0
        for k, cell in enumerate(cells[place].tolist()):
            total = _total([total, cell])
            result[(*place, k)] = total
    return SymbolicArray(result if axis is None else np.moveaxis(result, -1, axis), _sum_type(array, dtype))


def _best(values: list[Any], *, smallest: bool = False) -> Any:
    return values[comparing.largest(values, smallest=smallest)]


def _smallest(values: list[Any]) -> Any:
    return _best(values, smallest=True)


def _place(values: list[Any]) -> int:
    return comparing.largest(values)


def _place_of_smallest(values: list[Any]) -> int:
    return comparing.largest(values, smallest=True)


def _reduction(function: Callable[[list[Any]], Any], dtype: Any = None) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> Any:
        _refuse("reduction", options)
        result = _along(a, axis, function, dtype, keepdims is True)
        return result if out is None else written(result, out, "reduction")

    return reduce


max_of, min_of = _reduction(_best), _reduction(_smallest)
argmax_of, argmin_of = _reduction(_place, np.intp), _reduction(_place_of_smallest, np.intp)
any_of = _reduction(lambda values: any(bool(value) for value in values), bool)
all_of = _reduction(lambda values: all(bool(value) for value in values), bool)


def sort_of(a: Any, axis: int = -1, **options: Any) -> Any:  # noqa: ARG001 - a vector has one axis
    """Return ``numpy.sort`` of a vector."""
    _refuse("sort", options)
    array = (a if type(a) is SymbolicArray else wrapped(cells_of(a))).copy()
    array.sort()
    return array


def argsort_of(a: Any, axis: int = -1, **options: Any) -> Any:  # noqa: ARG001 - a vector has one axis
    """Return ``numpy.argsort`` of a vector."""
    _refuse("argsort", {key: value for key, value in options.items() if key != "kind"})
    if cells_of(a).ndim != 1:
        raise stop("Sorting a matrix of random numbers is not followed")
    return np.array(order_of(cells_of(a)), dtype=np.intp)


def round_of(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Return ``numpy.round``."""
    array = a if type(a) is SymbolicArray else wrapped(cells_of(a))
    cells = np.empty(array.shape, dtype=object)
    for place, cell in np.ndenumerate(array.cells):
        cells[place] = transforming.round_to(cell, decimals) if is_symbol(cell) else float(np.round(cell, decimals))
    result = SymbolicArray(cells, array.dtype)
    if out is not None:
        return written(result, out, "round")
    return result if result.ndim else cells.item()


def _at(grid: Cells, place: tuple[int, ...]) -> Any:
    return grid[place]


def clip_of(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    """Return ``numpy.clip``."""
    a_min, a_max = options.pop("min", a_min), options.pop("max", a_max)
    _refuse("clip", options)
    grids = np.broadcast_arrays(
        cells_of(a), cells_of(-math.inf if a_min is None else a_min), cells_of(math.inf if a_max is None else a_max)
    )
    cells = np.empty(grids[0].shape, dtype=object)
    for place in np.ndindex(cells.shape):
        cell, low, high = [_at(grid, place) for grid in grids]
        if is_symbol(low) or is_symbol(high):
            raise stop("Clipping at a random number is not followed")
        cells[place] = transforming.clip(cell, low, high) if is_symbol(cell) else min(max(cell, low), high)
    result = wrapped(cells, a.dtype if type(a) is SymbolicArray else None)
    if out is not None:
        return written(result, out, "clip")
    return result if result.ndim else cells.item()


def _either(yes: Any, no: Any, condition: Any) -> Any:
    return yes if condition else no


def where_of(condition: Any, *choices: Any) -> Any:
    """Return ``numpy.where``: a choice between two constants stays one symbol; any other settles the condition."""
    if not choices:
        return nonzero_of(condition)
    grids = np.broadcast_arrays(cells_of(condition), *(cells_of(choice) for choice in choices))
    cells = np.empty(grids[0].shape, dtype=object)
    for place in np.ndindex(cells.shape):
        test, yes, no = [_at(grid, place) for grid in grids]
        if type(test) is Steps and not is_symbol(yes) and not is_symbol(no):
            cells[place] = test.mapped(functools.partial(_either, yes, no))
        else:
            cells[place] = yes if bool(test) else no
    result = SymbolicArray(cells, np.result_type(*(kind_of_cell(choice) for choice in choices)))
    return result if result.ndim else cells.item()


def nonzero_of(a: Any) -> Any:
    """Return ``numpy.nonzero``: settles every cell."""
    return np.nonzero(np.array([bool(cell) for cell in cells_of(a).ravel()]).reshape(cells_of(a).shape))


def flatnonzero_of(a: Any) -> Any:
    """Return ``numpy.flatnonzero``."""
    return np.flatnonzero(np.array([bool(cell) for cell in cells_of(a).ravel()]))


def count_nonzero_of(a: Any, axis: Any = None) -> Any:
    """Return ``numpy.count_nonzero`` of truth values, without settling them."""
    if axis is not None:
        raise stop("numpy.count_nonzero along an axis is not followed")
    return _total(
        [arithmetic.binary("not_equal", cell, 0) if is_symbol(cell) else bool(cell) for cell in cells_of(a).flat]
    )


def searchsorted_of(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return ``numpy.searchsorted`` of random numbers among fixed cuts."""
    if has_symbols(a) or sorter is not None:
        raise stop("numpy.searchsorted among random numbers is not followed")
    cuts = np.asarray(a).tolist()

    def place(cell: Any) -> Any:
        passed = [arithmetic.binary("greater" if side == "left" else "greater_equal", cell, cut) for cut in cuts]
        return _total([value if is_symbol(value) else int(value) for value in passed])

    grid = cells_of(v)
    cells = np.empty(grid.shape, dtype=object)
    for at, cell in np.ndenumerate(grid):
        cells[at] = place(cell) if is_symbol(cell) else int(np.searchsorted(cuts, cell, side))  # type: ignore[call-overload]
    return SymbolicArray(cells, np.intp) if cells.ndim else cells.item()


def interp_of(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Return ``numpy.interp``: which segment a number lies in is a choice of the run, and there it is linear."""
    _refuse("interp", {"left": left, "right": right, "period": period})
    if has_symbols(xp) or has_symbols(fp):
        raise stop("numpy.interp between random numbers is not followed")
    places, heights = np.asarray(xp, dtype=np.float64).tolist(), np.asarray(fp, dtype=np.float64).tolist()

    def value(cell: Any) -> Any:
        segment = searchsorted_of(places, cell, side="right")
        k = segment.concrete() if is_symbol(segment) else int(segment)
        if k in (0, len(places)) or places[k] == places[k - 1]:
            return heights[min(k, len(places) - 1)] if k in (0, len(places)) else heights[k]
        slope = (Fraction(heights[k]) - Fraction(heights[k - 1])) / (Fraction(places[k]) - Fraction(places[k - 1]))
        moved = arithmetic.binary("multiply", arithmetic.binary("subtract", cell, places[k - 1]), slope)
        return arithmetic.binary("add", moved, heights[k - 1])

    grid = cells_of(x)
    cells = np.empty(grid.shape, dtype=object)
    for at, cell in np.ndenumerate(grid):
        cells[at] = value(cell) if is_symbol(cell) else float(np.interp(cell, places, heights))
    return SymbolicArray(cells, np.float64) if cells.ndim else cells.item()


def dot_of(a: Any, b: Any, out: Any = None) -> Any:
    """Return ``numpy.dot`` of vectors and matrices, as sums of products."""
    _refuse("dot", {"out": out})
    first, second = cells_of(a), cells_of(b)
    if first.ndim == 0 or second.ndim == 0:
        return elementwise("multiply", a, b)
    if second.ndim > 2 or first.ndim > 2:
        raise stop("A product of arrays of random numbers with more than two axes is not followed")
    rows = first.reshape(-1, first.shape[-1])
    columns = (second if second.ndim == 2 else second[:, None]).T
    cells = np.empty((len(rows), len(columns)), dtype=object)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            cells[i, j] = _total([_times(x, y) for x, y in zip(row, column, strict=True)])
    shaped: Cells = cells.reshape(first.shape[:-1] + ((len(columns),) if second.ndim == 2 else ()))
    return wrapped(shaped) if shaped.ndim else shaped.item()


def _times(x: Any, y: Any) -> Any:
    return arithmetic.binary("multiply", x, y) if is_symbol(x) or is_symbol(y) else x * y


def _structural(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only moves cells: it is run on the arrays of objects."""

    def moved(*args: Any, **options: Any) -> Any:
        kinds: set[Any] = set()

        def bare(value: Any) -> Any:
            if type(value) is SymbolicArray:
                kinds.add(value.dtype)
                return value.cells
            if isinstance(value, np.ndarray):
                kinds.add(value.dtype)
                return cells_of(value)
            if is_symbol(value):
                return cells_of(value)
            return type(value)(map(bare, value)) if isinstance(value, list | tuple) else value

        first, *rest = args
        result = function(bare(first), *map(bare, rest) if function is np.append else rest, **options)
        kind = functools.reduce(np.promote_types, kinds) if kinds else None
        if isinstance(result, list | tuple):
            return type(result)(wrapped(part, kind) for part in result)
        return wrapped(result, kind)

    return moved


def asarray_of(a: Any, dtype: Any = None) -> Any:
    """Return ``numpy.asarray`` of something that holds symbols; a matching symbolic array is returned as it is."""
    if type(a) is SymbolicArray:
        return a if dtype is None or dtype_of(dtype) == a.dtype else a.astype(dtype)
    array = wrapped(cells_of(a))
    return array if dtype is None else array.astype(dtype)


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    _refuse("take", {"out": out})
    where = settled(indices)
    if type(a) is not SymbolicArray:
        return np.take(a, where, axis=axis, mode=mode)
    cells: Any = np.take(a.cells, where, axis=axis, mode=mode)
    return SymbolicArray(cells, a.dtype) if isinstance(cells, np.ndarray) and cells.ndim else cells


def _full_like(a: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    _refuse("full_like", options)
    kind = dtype_of(dtype) if dtype is not None else (a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype)
    result = SymbolicArray(np.empty(np.shape(cells_of(a)), dtype=object), kind)
    result[...] = fill_value
    return result


def _copyto(dst: Any, src: Any, casting: Any = None, where: Any = True) -> None:  # noqa: ARG001 - numpy's signature
    written(src if where is True else where_of(where, src, dst), dst, "copyto")


def _average(a: Any, axis: Any = None, **options: Any) -> Any:
    _refuse("average", options)
    return mean_of(a, axis=axis)


MOVING = (
    *("reshape", "ravel", "transpose", "concatenate", "stack", "vstack", "hstack", "column_stack", "squeeze", "copy"),
    *("expand_dims", "flip", "roll", "repeat", "tile", "atleast_1d", "atleast_2d", "split", "array_split", "swapaxes"),
    *("moveaxis", "append", "broadcast_to", "diagonal", "delete"),
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _structural(getattr(np, name)) for name in MOVING},
    "sum": sum_of,
    "mean": mean_of,
    "average": _average,
    "cumsum": cumsum_of,
    "max": max_of,
    "amax": max_of,
    "min": min_of,
    "amin": min_of,
    "argmax": argmax_of,
    "argmin": argmin_of,
    "any": any_of,
    "all": all_of,
    "sort": sort_of,
    "argsort": argsort_of,
    "round": round_of,
    "around": round_of,
    "clip": clip_of,
    "where": where_of,
    "nonzero": nonzero_of,
    "flatnonzero": flatnonzero_of,
    "count_nonzero": count_nonzero_of,
    "searchsorted": searchsorted_of,
    "dot": dot_of,
    "interp": interp_of,
    "take": _take,
    "shape": lambda a: np.shape(cells_of(a)),
    "ndim": lambda a: cells_of(a).ndim,
    "size": lambda a: cells_of(a).size,
    "copyto": _copyto,
    "zeros_like": lambda a, dtype=None: _full_like(a, 0, dtype),
    "ones_like": lambda a, dtype=None: _full_like(a, 1, dtype),
    "empty_like": lambda a, dtype=None: _full_like(a, 0, dtype),
    "full_like": _full_like,
    "fix": lambda a: elementwise("trunc", a),
    "real": lambda a: a,
}
METHODS: dict[str, Callable[..., Any]] = {
    name: FUNCTIONS[name]
    for name in (
        *("sum", "mean", "cumsum", "max", "min", "argmax", "argmin", "any", "all", "round", "clip", "nonzero", "ravel"),
        *("transpose", "squeeze", "swapaxes", "repeat", "dot", "take", "searchsorted", "argsort"),
    )
}
METHODS["flatten"] = lambda a, order="C": a.reshape(-1).copy()  # noqa: ARG005 - numpy's signature


def apply_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run one of numpy's functions on arguments of which some are symbolic."""
    known = FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None
    if known is not None:
        return known(*args, **options)
    if _holds_symbols(args) or _holds_symbols(tuple(options.values())):
        raise stop(f"{function.__module__}.{function.__name__} of random numbers is not followed")
    return function(*map(_bare, args), **{key: _bare(value) for key, value in options.items()})


def _holds_symbols(values: Any) -> bool:
    if type(values) is SymbolicArray:
        return values.symbolic()
    if isinstance(values, list | tuple):
        return any(map(_holds_symbols, values))
    return is_symbol(values)


def _bare(value: Any) -> Any:
    if type(value) is SymbolicArray:
        return value.plain()
    return type(value)(map(_bare, value)) if type(value) in (list, tuple) else value
