"""Arrays whose cells may be symbolic numbers, with numpy's interface.

A :class:`SymbolicArray` is not an ndarray: code in C that wants one calls ``__array__``, which settles cells with finitely
many values and stops at all others. numpy's functions and operators reach it through its two protocols; a function that is
not known here gets a plain array if no cell is a symbol, and stops the extraction otherwise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.symbolic import arithmetic
from dpaudit.symbolic.paths import stop
from dpaudit.symbolic.symbols import Comparison, Symbol, is_symbol

Cells = NDArray[Any]
_COMPARING = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
_LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isfinite", "isinf"}


class SymbolicArray:
    """An array with symbolic cells.

    ``cells`` is an array of objects, shared with the arrays that this one is a view of; ``dtype`` is what the array would
    have if its cells were numbers, and decides what happens to values that are written into it.
    """

    __slots__ = ("cells", "dtype")

    def __init__(self, cells: Cells, dtype: Any) -> None:
        self.cells = cells
        self.dtype = np.dtype(dtype)

    @property
    def __class__(self) -> Any:
        return np.ndarray

    __hash__ = None  # type: ignore[assignment]

    shape = property(lambda self: self.cells.shape)
    ndim = property(lambda self: self.cells.ndim)
    size = property(lambda self: self.cells.size)
    T = property(lambda self: SymbolicArray(self.cells.T, self.dtype))
    flat = property(lambda self: iter(self.cells.ravel().tolist()))
    real = property(lambda self: self)

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous.")
        return bool(self.cells.reshape(()).item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.ndim:  # numpy then reads it as an array of indices
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return self.item().__index__()  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.size == 1 else np.asarray(self), spec)

    def __copy__(self) -> SymbolicArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> SymbolicArray:
        return self.copy()

    def __reduce__(self) -> Any:
        raise stop("An array of random numbers was pickled")

    def __contains__(self, value: Any) -> bool:
        return any(bool(cell == value) for cell in self.cells.ravel().tolist())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Cells:
        values = [cell.concrete() if is_symbol(cell) else cell for cell in self.cells.ravel().tolist()]
        return np.array(values, dtype=dtype or self.dtype).reshape(self.shape)

    # Indexing. An index with symbols is settled first.

    def __getitem__(self, key: Any) -> Any:
        found = self.cells[_settled(key)]
        return SymbolicArray(found, self.dtype) if isinstance(found, np.ndarray) else _typed(found, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        cells = cells_of(value)
        cast = np.empty(cells.shape, dtype=object)
        for place, cell in np.ndenumerate(cells):
            cast[place] = _cast(cell, self.dtype)
        self.cells[_settled(key)] = cast if cast.ndim else cast.item()

    # Methods of arrays, most of them the functions below.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if name in _METHODS:
            return functools.partial(_METHODS[name], self)
        if not self.symbolic():
            return getattr(self.plain(), name)
        raise stop(f"ndarray.{name} of an array of random numbers is not followed")

    def symbolic(self) -> bool:
        """Return True if any cell is a symbol."""
        return any(map(is_symbol, self.cells.ravel().tolist()))

    def plain(self) -> Cells:
        """The array without symbols as numpy's own."""
        return np.array(self.cells.ravel().tolist(), dtype=self.dtype).reshape(self.shape)

    def copy(self, order: str = "C") -> SymbolicArray:
        """An independent copy."""
        return SymbolicArray(self.cells.copy(), self.dtype)

    def item(self, *place: int) -> Any:
        """One cell."""
        return self.cells.item(*place)

    def tolist(self) -> Any:
        """Nested lists of the cells."""
        return self.cells.tolist()

    def astype(self, dtype: Any, **options: Any) -> SymbolicArray:
        """The array with another type of cells."""
        kind = _dtype(dtype)
        cells = np.empty(self.shape, dtype=object)
        for place, cell in np.ndenumerate(self.cells):
            cells[place] = _cast(cell, kind)
        return SymbolicArray(cells, kind)

    def view(self, dtype: Any = None) -> SymbolicArray:
        """The cells as another type of the same width: only truth values as small integers."""
        if dtype is None:
            return SymbolicArray(self.cells, self.dtype)
        if self.dtype == np.bool_ and np.dtype(dtype) in (np.dtype(np.int8), np.dtype(np.uint8)):
            return self.astype(dtype)
        raise stop("ndarray.view of an array of random numbers is not followed")

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self[...] = value

    def reshape(self, *shape: Any, order: str = "C") -> SymbolicArray:
        """The cells in another shape."""
        return SymbolicArray(self.cells.reshape(*shape), self.dtype)

    def sort(self, axis: int = -1) -> None:
        """Sort in place."""
        if self.ndim != 1:
            raise stop("Sorting a matrix of random numbers is not followed")
        self.cells[:] = [self.cells[i] for i in _order(self.cells)]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return apply_function(function, args, options)


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a ufunc on arguments of which some are symbolic."""
    name = ufunc.__name__
    outs = options.pop("out", None)
    options = {key: value for key, value in options.items() if value is not None or key != "dtype"}
    if method == "__call__" and not (options.keys() - {"dtype", "casting"}):
        result = elementwise(name, *inputs)
    elif method == "reduce" and name in ("add", "maximum", "minimum", "logical_or", "logical_and", "multiply"):
        named = {"add": sum_of, "maximum": max_of, "minimum": min_of, "logical_or": any_of, "logical_and": all_of}
        if name == "multiply":
            raise stop("A product of random numbers is not followed")
        result = named[name](inputs[0], axis=options.get("axis", 0), keepdims=options.get("keepdims", False))
    elif method == "accumulate" and name == "add":
        result = cumsum_of(inputs[0], axis=options.get("axis", 0))
    elif method == "outer":
        first, second = cells_of(inputs[0]), cells_of(inputs[1])
        shaped = first.reshape(first.shape + (1,) * second.ndim)
        result = elementwise(name, wrapped(shaped), wrapped(second))
    elif method == "at" and name in ("add", "subtract"):
        target, places, values = inputs
        pairs = np.broadcast(cells_of(_settled(places)), cells_of(values))
        for place, value in pairs:
            target[place] = arithmetic.binary(name, target[place], value)
        return None
    else:
        raise stop(f"numpy.{name}.{method} of random numbers is not followed")
    if outs is None:
        return result
    return _written(result, outs[0] if isinstance(outs, tuple) else outs, name)


def _written(result: Any, out: Any, name: str) -> Any:
    if type(out) is not SymbolicArray:
        if isinstance(result, SymbolicArray) or is_symbol(result):
            raise stop(f"numpy.{name} writes random numbers into an array that was made elsewhere")
        np.copyto(out, result, casting="same_kind")
        return out
    out[...] = result
    return out


def elementwise(name: str, *inputs: Any) -> Any:
    """Apply a function of one or two arguments cell by cell."""
    grids = np.broadcast_arrays(*(cells_of(value) for value in inputs))
    cells = np.empty(grids[0].shape, dtype=object)
    for place in np.ndindex(cells.shape):
        values = [grid[place] for grid in grids]
        if any(map(is_symbol, values)):
            function: Callable[..., Any] = arithmetic.unary if len(values) == 1 else arithmetic.binary
            cell = function(name, *values)
            if cell is NotImplemented:
                raise stop(f"numpy.{name} of a random number and {type(values[1]).__name__} is not followed")
        else:
            ufunc = getattr(np, {"divide": "true_divide"}.get(name, name))
            cell = ufunc(*values)
            cell = cell.item() if isinstance(cell, np.generic) else cell
        cells[place] = cell
    result = SymbolicArray(cells, _result_type(name, inputs))
    return result if result.ndim else _typed(cells.item(), result.dtype)


def _result_type(name: str, inputs: tuple[Any, ...]) -> Any:
    if name in _COMPARING or name in _LOGICAL:
        return np.dtype(bool)
    kinds = [_kind(value) for value in inputs]
    ufunc = getattr(np, name, None)
    if isinstance(ufunc, np.ufunc):
        try:
            return ufunc.resolve_dtypes((*kinds, None))[-1]
        except TypeError:
            return np.result_type(*kinds)
    return np.result_type(*kinds)


def _kind(value: Any) -> Any:
    if type(value) is SymbolicArray or isinstance(value, np.ndarray | np.generic) and not is_symbol(value):
        return value.dtype
    if type(value) is Comparison:
        return np.dtype(bool)
    if is_symbol(value):
        kind = value.__class__
        return np.dtype(kind) if kind in (bool, int, float, np.bool_) else np.dtype(np.int64 if value.integer else float)
    return np.asarray(value).dtype


def cells_of(value: Any) -> Cells:
    """The cells of any array, symbol, number or nested list, as an array of objects."""
    if type(value) is SymbolicArray:
        return value.cells
    if is_symbol(value):
        cells = np.empty((), dtype=object)
        cells[()] = value
        return cells
    if isinstance(value, list | tuple) and has_symbols(value):
        parts = [cells_of(item) for item in value]
        return np.stack(parts) if parts else np.empty(0, dtype=object)
    array = np.asarray(value)
    if array.dtype == object:
        return array
    cells = np.empty(array.shape, dtype=object)
    cells[...] = array.tolist() if array.ndim == 0 else array.astype(object)
    return cells


def has_symbols(value: Any) -> bool:
    """Return True if a nested list or array holds a symbol."""
    if type(value) is SymbolicArray or is_symbol(value):
        return True
    if isinstance(value, list | tuple):
        return any(map(has_symbols, value))
    return False


def wrapped(cells: Cells, dtype: Any = None) -> Any:
    """Cells as a symbolic array of the type that their values have."""
    if dtype is None:
        kinds = {_kind(cell) for cell in cells.ravel().tolist()}
        dtype = functools.reduce(np.promote_types, kinds) if kinds else np.dtype(float)
    return SymbolicArray(cells, dtype)


def _typed(cell: Any, dtype: Any) -> Any:
    """One cell as numpy returns it: a scalar of the array's type."""
    if is_symbol(cell) or dtype.kind not in "fiub":
        return cell
    return dtype.type(cell)


def _dtype(dtype: Any) -> Any:
    dtype = getattr(dtype, "symbolic_dtype", dtype)
    return np.dtype(dtype)


def _cast(cell: Any, dtype: Any) -> Any:
    if dtype == object:
        return cell
    if not is_symbol(cell):
        return np.asarray(cell).astype(dtype).item() if not isinstance(cell, float) or dtype.kind != "f" else cell
    if dtype.kind == "f":
        if dtype.itemsize < 8:
            raise stop(f"A random number was stored as {dtype.name}, which rounds it")
        return arithmetic.as_float(cell)
    if dtype.kind in "iu":
        finite = arithmetic.as_finite(cell)
        if finite is not None:
            return finite.mapped(lambda value: np.asarray(value).astype(dtype).item())
        if dtype.itemsize < 8 or dtype.kind == "u":
            raise stop(f"A random number was stored as {dtype.name}, which may not hold it")
        return arithmetic.as_integer(cell)
    if dtype.kind == "b":
        return arithmetic.binary("not_equal", cell, 0) if type(cell) is not Comparison else cell
    raise stop(f"A random number was stored as {dtype.name}")


def _settled(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(_settled, key))
    if type(key) is SymbolicArray:
        return np.asarray(key)
    if is_symbol(key):
        value = key.concrete()
        return value
    if isinstance(key, list) and has_symbols(key):
        return [_settled(item) for item in key]
    return key


# Functions of whole arrays.


def _along(value: Any, axis: Any, function: Callable[[list[Any]], Any], dtype: Any, keepdims: bool = False) -> Any:
    array = value if type(value) is SymbolicArray else wrapped(cells_of(value))
    if axis is None:
        result = function(array.cells.ravel().tolist())
        if keepdims:
            cells = np.empty((1,) * array.ndim, dtype=object)
            cells[...] = result
            return SymbolicArray(cells, dtype or array.dtype)
        return _typed(result, np.dtype(dtype or array.dtype))
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
    return SymbolicArray(cells, result_type) if cells.ndim else _typed(cells.item(), result_type)


def _sum_type(value: Any, dtype: Any) -> Any:
    if dtype is not None:
        return _dtype(dtype)
    kind = value.dtype if hasattr(value, "dtype") else None
    return np.dtype(np.int64) if kind is not None and kind.kind == "b" else kind


def _total(values: list[Any]) -> Any:
    total: Any = 0
    for value in values:
        if type(value) is Comparison:
            value = value.concrete()
        total = total + value if not is_symbol(total) and not is_symbol(value) else arithmetic.binary("add", total, value)
    return total


def sum_of(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
    """numpy.sum."""
    result = _along(a, axis, _total, _sum_type(a, dtype), keepdims)
    return result if out is None else _written(result, out, "sum")


def mean_of(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
    """numpy.mean."""
    total = sum_of(a, axis=axis, keepdims=keepdims)
    count = a.size if axis is None else a.shape[axis]
    return elementwise("true_divide", total, count)


def cumsum_of(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """numpy.cumsum."""
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
    return values[arithmetic.largest(values, smallest=smallest)]


def _smallest(values: list[Any]) -> Any:
    return _best(values, smallest=True)


def _place(values: list[Any]) -> int:
    return arithmetic.largest(values)


def _place_of_smallest(values: list[Any]) -> int:
    return arithmetic.largest(values, smallest=True)


def _reduction(function: Callable[[list[Any]], Any], dtype: Any = None) -> Callable[..., Any]:
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, **_: Any) -> Any:
        result = _along(a, axis, function, dtype, keepdims is True)
        return result if out is None else _written(result, out, "reduction")

    return reduce


max_of, min_of = _reduction(_best), _reduction(_smallest)
argmax_of, argmin_of = _reduction(_place, np.intp), _reduction(_place_of_smallest, np.intp)
any_of = _reduction(lambda values: any(bool(value) for value in values), bool)
all_of = _reduction(lambda values: all(bool(value) for value in values), bool)


def _order(cells: Cells) -> list[int]:
    """The places of the cells in increasing order, by insertion: each comparison is a choice of the run."""
    order: list[int] = []
    values = cells.tolist()
    for place in range(len(values)):
        at = len(order)
        while at > 0 and bool(arithmetic.binary("less", values[place], values[order[at - 1]])):
            at -= 1
        order.insert(at, place)
    return order


def sort_of(a: Any, axis: int = -1, **_: Any) -> Any:
    """numpy.sort of a vector."""
    array = (a if type(a) is SymbolicArray else wrapped(cells_of(a))).copy()
    array.sort()
    return array


def argsort_of(a: Any, axis: int = -1, **_: Any) -> Any:
    """numpy.argsort of a vector."""
    return np.array(_order(cells_of(a)), dtype=np.intp)


def round_of(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """numpy.round."""
    array = a if type(a) is SymbolicArray else wrapped(cells_of(a))
    cells = np.empty(array.shape, dtype=object)
    for place, cell in np.ndenumerate(array.cells):
        cells[place] = arithmetic.round_to(cell, decimals) if is_symbol(cell) else float(np.round(cell, decimals))
    result = SymbolicArray(cells, array.dtype)
    if out is not None:
        return _written(result, out, "round")
    return result if result.ndim else cells.item()


def clip_of(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    """numpy.clip."""
    a_min, a_max = options.get("min", a_min), options.get("max", a_max)
    grids = np.broadcast_arrays(
        cells_of(a), cells_of(-math.inf if a_min is None else a_min), cells_of(math.inf if a_max is None else a_max)
    )
    cells = np.empty(grids[0].shape, dtype=object)
    for place in np.ndindex(cells.shape):
        cell, low, high = (grid[place] for grid in grids)
        if is_symbol(low) or is_symbol(high):
            raise stop("Clipping at a random number is not followed")
        cells[place] = arithmetic.clip(cell, low, high) if is_symbol(cell) else min(max(cell, low), high)
    result = wrapped(cells, a.dtype if type(a) is SymbolicArray else None)
    if out is not None:
        return _written(result, out, "clip")
    return result if result.ndim else cells.item()


def where_of(condition: Any, *choices: Any) -> Any:
    """numpy.where: a choice between two constants stays one symbol; any other settles the condition."""
    if not choices:
        return nonzero_of(condition)
    grids = np.broadcast_arrays(cells_of(condition), *(cells_of(choice) for choice in choices))
    cells = np.empty(grids[0].shape, dtype=object)
    for place in np.ndindex(cells.shape):
        test, yes, no = (grid[place] for grid in grids)
        if is_symbol(test) and type(test) is not Comparison and hasattr(test, "cells"):
            if not is_symbol(yes) and not is_symbol(no):
                cells[place] = test.mapped(lambda value, yes=yes, no=no: yes if value else no)
                continue
        cells[place] = yes if bool(test) else no
    result = SymbolicArray(cells, np.result_type(*(_kind(choice) for choice in choices)))
    return result if result.ndim else cells.item()


def nonzero_of(a: Any) -> Any:
    """numpy.nonzero: settles every cell."""
    return np.nonzero(np.array([bool(cell) for cell in cells_of(a).ravel()]).reshape(cells_of(a).shape))


def flatnonzero_of(a: Any) -> Any:
    """numpy.flatnonzero."""
    return np.flatnonzero(np.array([bool(cell) for cell in cells_of(a).ravel()]))


def count_nonzero_of(a: Any, axis: Any = None) -> Any:
    """numpy.count_nonzero of truth values, without settling them."""
    if axis is not None:
        raise stop("numpy.count_nonzero along an axis is not followed")
    return _total([arithmetic.binary("not_equal", cell, 0) if is_symbol(cell) else bool(cell) for cell in cells_of(a).flat])


def searchsorted_of(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """numpy.searchsorted of random numbers among fixed cuts."""
    if has_symbols(a) or sorter is not None:
        raise stop("numpy.searchsorted among random numbers is not followed")
    cuts = np.asarray(a).tolist()

    def place(cell: Any) -> Any:
        passed = [arithmetic.binary("greater" if side == "left" else "greater_equal", cell, cut) for cut in cuts]
        return _total([value if is_symbol(value) else int(value) for value in passed])

    grid = cells_of(v)
    cells = np.empty(grid.shape, dtype=object)
    for at, cell in np.ndenumerate(grid):
        cells[at] = place(cell) if is_symbol(cell) else int(np.searchsorted(cuts, cell, side))
    return SymbolicArray(cells, np.intp) if cells.ndim else cells.item()


def dot_of(a: Any, b: Any, out: Any = None) -> Any:
    """numpy.dot of vectors and matrices, as sums of products."""
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
    cells = cells.reshape(first.shape[:-1] + ((len(columns),) if second.ndim == 2 else ()))
    return wrapped(cells) if cells.ndim else cells.item()


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


def asarray_of(a: Any, dtype: Any = None, **_: Any) -> Any:
    """numpy.asarray of something that holds symbols; a matching symbolic array is returned as it is."""
    if type(a) is SymbolicArray:
        return a if dtype is None or _dtype(dtype) == a.dtype else a.astype(dtype)
    array = wrapped(cells_of(a))
    return array if dtype is None else array.astype(dtype)


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    where = _settled(indices)
    if type(a) is not SymbolicArray:
        return np.take(a, where, axis=axis, mode=mode)
    cells = np.take(a.cells, where, axis=axis, mode=mode)
    return SymbolicArray(cells, a.dtype) if isinstance(cells, np.ndarray) and cells.ndim else cells


def _full_like(a: Any, value: Any, dtype: Any = None, **_: Any) -> Any:
    kind = _dtype(dtype) if dtype is not None else (a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype)
    result = SymbolicArray(np.empty(np.shape(cells_of(a)), dtype=object), kind)
    result[...] = value
    return result


_MOVING = (
    "reshape ravel transpose concatenate stack vstack hstack column_stack squeeze expand_dims copy flip roll repeat tile "
    "atleast_1d atleast_2d split array_split swapaxes moveaxis append broadcast_to diagonal delete"
).split()
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _structural(getattr(np, name)) for name in _MOVING},
    "sum": sum_of,
    "mean": mean_of,
    "average": lambda a, axis=None, **_: mean_of(a, axis=axis),
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
    "take": _take,
    "shape": lambda a: np.shape(cells_of(a)),
    "ndim": lambda a: cells_of(a).ndim,
    "size": lambda a: cells_of(a).size,
    "copyto": lambda dst, src, **_: _written(src, dst, "copyto"),
    "zeros_like": lambda a, dtype=None, **_: _full_like(a, 0, dtype),
    "ones_like": lambda a, dtype=None, **_: _full_like(a, 1, dtype),
    "empty_like": lambda a, dtype=None, **_: _full_like(a, 0, dtype),
    "full_like": _full_like,
    "fix": lambda a: elementwise("trunc", a),
    "real": lambda a: a,
}
_METHODS: dict[str, Callable[..., Any]] = {
    name: FUNCTIONS[name]
    for name in (
        "sum mean cumsum max min argmax argmin any all round clip nonzero ravel transpose squeeze swapaxes repeat dot "
        "take searchsorted argsort"
    ).split()
}
_METHODS["flatten"] = lambda a, order="C": a.reshape(-1).copy()  # noqa: ARG005 - numpy's signature


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


def _array_operator(name: str, *, swapped: bool = False) -> Any:
    def method(self: SymbolicArray, other: Any) -> Any:
        if isinstance(other, str | dict) or other is None:
            return NotImplemented
        return elementwise(name, other, self) if swapped else elementwise(name, self, other)

    return method


def _in_place(name: str) -> Any:
    def method(self: SymbolicArray, other: Any) -> SymbolicArray:
        self[...] = elementwise(name, self, other)
        return self

    return method


def _matmul(self: Any, other: Any) -> Any:
    return dot_of(self, other)


def _install() -> None:
    binary = {
        "add": "add",
        "sub": "subtract",
        "mul": "multiply",
        "truediv": "true_divide",
        "floordiv": "floor_divide",
        "mod": "remainder",
        "pow": "power",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
    }
    for name, method in binary.items():
        setattr(SymbolicArray, f"__{name}__", _array_operator(method))
        setattr(SymbolicArray, f"__r{name}__", _array_operator(method, swapped=True))
        setattr(SymbolicArray, f"__i{name}__", _in_place(method))
    comparisons = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal"}
    for name, method in {**comparisons, "ne": "not_equal"}.items():
        setattr(SymbolicArray, f"__{name}__", _array_operator(method))
    unary = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
    for name, method in unary.items():
        setattr(SymbolicArray, f"__{name}__", lambda self, method=method: elementwise(method, self))
    SymbolicArray.__matmul__ = _matmul  # type: ignore[attr-defined]
    SymbolicArray.__rmatmul__ = lambda self, other: dot_of(other, self)  # type: ignore[attr-defined]
    # Scalars reach numpy's functions the same way.
    Symbol.__array_ufunc__ = SymbolicArray.__array_ufunc__  # type: ignore[attr-defined]
    Symbol.__array_function__ = SymbolicArray.__array_function__  # type: ignore[attr-defined]
    Symbol.item = lambda self: self  # type: ignore[attr-defined]
    Symbol.tolist = lambda self: self  # type: ignore[attr-defined]
    Symbol.round = lambda self, decimals=0: arithmetic.round_to(self, decimals)  # type: ignore[attr-defined]
    Symbol.clip = lambda self, low=None, high=None: clip_of(self, low, high)  # type: ignore[attr-defined]
    Symbol.astype = lambda self, dtype: _cast(self, _dtype(dtype))  # type: ignore[attr-defined]
    Symbol.is_integer = lambda self: self.integer  # type: ignore[attr-defined]
    Symbol.shape = ()  # type: ignore[attr-defined]
    Symbol.ndim = 0  # type: ignore[attr-defined]
    Symbol.size = 1  # type: ignore[attr-defined]
    Symbol.dtype = property(_kind)  # type: ignore[attr-defined]


_install()
