"""Arrays whose cells may be symbolic numbers, with numpy's interface.

A :class:`SymbolicArray` is not an ndarray: code in C that wants one calls ``__array__``, which settles cells with finitely
many values and stops at all others. numpy's functions and operators reach it through its two protocols; a function that is
not known here gets a plain array if no cell is a symbol, and stops the extraction otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.symbolic.values import arithmetic, transforming
from dpaudit.symbolic.values.paths import stop
from dpaudit.symbolic.values.symbols import PendingComparison, Symbol, is_symbol

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

    @property  # type: ignore[misc]
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
        found = self.cells[settled(key)]
        return SymbolicArray(found, self.dtype) if isinstance(found, np.ndarray) else typed(found, self.dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        cells = cells_of(value)
        cast = np.empty(cells.shape, dtype=object)
        for place, cell in np.ndenumerate(cells):
            cast[place] = _cast(cell, self.dtype)
        self.cells[settled(key)] = cast if cast.ndim else cast.item()

    # Methods of arrays, most of them the functions below.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        from dpaudit.symbolic.values.array_functions import METHODS

        if name in METHODS:
            return functools.partial(METHODS[name], self)
        if not self.symbolic():
            return getattr(self.plain(), name)
        raise stop(f"ndarray.{name} of an array of random numbers is not followed")

    def symbolic(self) -> bool:
        """Return True if any cell is a symbol."""
        return any(map(is_symbol, self.cells.ravel().tolist()))

    def plain(self) -> Cells:
        """The array without symbols as numpy's own."""
        return np.array(self.cells.ravel().tolist(), dtype=self.dtype).reshape(self.shape)

    def copy(self, order: str = "C") -> SymbolicArray:  # noqa: ARG002 - numpy's signature
        """An independent copy."""
        return SymbolicArray(self.cells.copy(), self.dtype)

    def item(self, *place: int) -> Any:
        """One cell."""
        return self.cells.item(*place)

    def tolist(self) -> Any:
        """Nested lists of the cells."""
        return self.cells.tolist()

    def astype(self, dtype: Any, **_: Any) -> SymbolicArray:
        """The array with another type of cells."""
        kind = dtype_of(dtype)
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
        if order != "C":
            raise stop(f"reshape with order={order!r} is not followed for random numbers")
        return SymbolicArray(self.cells.reshape(*shape), self.dtype)

    def sort(self, axis: int = -1) -> None:  # noqa: ARG002 - a vector has one axis
        """Sort in place."""
        if self.ndim != 1:
            raise stop("Sorting a matrix of random numbers is not followed")
        self.cells[:] = [self.cells[i] for i in order_of(self.cells)]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from dpaudit.symbolic.values.array_functions import apply_function

        return apply_function(function, args, options)


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run a ufunc on arguments of which some are symbolic."""
    from dpaudit.symbolic.values import array_functions as functions

    name = ufunc.__name__
    outs = options.pop("out", None)
    options = {key: value for key, value in options.items() if value is not None or key != "dtype"}
    if not _symbolic_inputs(inputs):
        # An array that was made to hold symbols, and holds none.
        return _plain_ufunc(ufunc, method, inputs, outs, options)
    if method == "__call__" and not (options.keys() - {"dtype", "casting"}):
        result = elementwise(name, *inputs)
    elif method == "reduce" and name in ("add", "maximum", "minimum", "logical_or", "logical_and"):
        named = {"add": "sum", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all"}
        result = functions.FUNCTIONS[named[name]](inputs[0], **{"axis": 0, **options})
    elif method == "accumulate" and name == "add":
        result = functions.cumsum_of(inputs[0], axis=options.get("axis", 0))
    elif method == "outer":
        first, second = cells_of(inputs[0]), cells_of(inputs[1])
        shaped = first.reshape(first.shape + (1,) * second.ndim)
        result = elementwise(name, wrapped(shaped), wrapped(second))
    elif method == "at" and name in ("add", "subtract"):
        target, places, values = inputs
        pairs = np.broadcast(cells_of(settled(places)), cells_of(values))
        for place, value in pairs:
            target[place] = arithmetic.binary(name, target[place], value)
        return None
    else:
        raise stop(f"numpy.{name}.{method} of random numbers is not followed")
    if outs is None:
        return result
    return written(result, outs[0] if isinstance(outs, tuple) else outs, name)


def _symbolic_inputs(inputs: tuple[Any, ...]) -> bool:
    return any(value.symbolic() if type(value) is SymbolicArray else has_symbols(value) for value in inputs)


def _plain_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], outs: Any, options: dict[str, Any]) -> Any:
    if method == "at":
        target = inputs[0].plain() if type(inputs[0]) is SymbolicArray else inputs[0]
        getattr(ufunc, method)(target, *map(_lowered, inputs[1:]), **options)
        if type(inputs[0]) is SymbolicArray:
            inputs[0][...] = target
        return None
    targets = (outs if isinstance(outs, tuple) else (outs,)) if outs is not None else None
    if targets is not None:
        # Cells that a condition leaves alone keep what the target holds.
        options["out"] = tuple(_lowered(target) for target in targets)
    where = options.get("where")
    if where is not None:
        options["where"] = _lowered(where)
    result = getattr(ufunc, method)(*map(_lowered, inputs), **options)
    if targets is None:
        return result
    for target, value in zip(targets, options["out"], strict=True):
        if type(target) is SymbolicArray:
            target[...] = value
    return targets[0] if len(targets) == 1 else targets


def _lowered(value: Any) -> Any:
    return value.plain() if type(value) is SymbolicArray else value


def written(result: Any, out: Any, name: str) -> Any:
    """Write a result into the array that was given for it, and return that array."""
    if type(out) is not SymbolicArray:
        if type(result) is SymbolicArray or is_symbol(result):
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
        else:
            ufunc = getattr(np, {"divide": "true_divide"}.get(name, name))
            cell = ufunc(*values)
            cell = cell.item() if isinstance(cell, np.generic) else cell
        cells[place] = cell
    result = SymbolicArray(cells, _result_type(name, inputs))
    return result if result.ndim else typed(cells.item(), result.dtype)


def _result_type(name: str, inputs: tuple[Any, ...]) -> Any:
    if name in _COMPARING or name in _LOGICAL:
        return np.dtype(bool)
    kinds = [kind_of_cell(value) for value in inputs]
    ufunc = getattr(np, name, None)
    if isinstance(ufunc, np.ufunc):
        try:
            return ufunc.resolve_dtypes((*kinds, None))[-1]
        except TypeError:
            return np.result_type(*kinds)
    return np.result_type(*kinds)


def kind_of_cell(value: Any) -> Any:
    """The type that numpy would give a number, symbol or array."""
    if isinstance(value, np.ndarray | np.generic) and not is_symbol(value):
        return value.dtype
    if type(value) is PendingComparison:
        return np.dtype(bool)
    if is_symbol(value):
        kind = value.__class__
        return (
            np.dtype(kind) if kind in (bool, int, float, np.bool_) else np.dtype(np.int64 if value.integer else float)
        )
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
        kinds = {kind_of_cell(cell) for cell in cells.ravel().tolist()}
        dtype = functools.reduce(np.promote_types, kinds) if kinds else np.dtype(float)
    return SymbolicArray(cells, dtype)


def typed(cell: Any, dtype: Any) -> Any:
    """One cell as numpy returns it: a scalar of the array's type."""
    if is_symbol(cell) or dtype.kind not in "fiub":
        return cell
    return dtype.type(cell)


def dtype_of(dtype: Any) -> Any:
    """A type as numpy's; ``float`` and ``int`` may be the stand-ins of the user's modules."""
    dtype = getattr(dtype, "symbolic_dtype", dtype)
    return np.dtype(dtype)


def _cast(cell: Any, dtype: Any) -> Any:
    if dtype.kind == "O":
        return cell
    if not is_symbol(cell):
        return np.asarray(cell).astype(dtype).item() if not isinstance(cell, float) or dtype.kind != "f" else cell
    if dtype.kind == "f":
        if dtype.itemsize < 8:
            raise stop(f"A random number was stored as {dtype.name}, which rounds it")
        return transforming.as_float(cell)
    if dtype.kind in "iu":
        if type(cell) is PendingComparison:
            return int(cell.concrete())
        finite = arithmetic.as_finite(cell)
        if finite is not None:
            return finite.mapped(lambda value: np.asarray(value).astype(dtype).item())
        if dtype.itemsize < 8 or dtype.kind == "u":
            raise stop(f"A random number was stored as {dtype.name}, which may not hold it")
        return transforming.as_integer(cell)
    if dtype.kind == "b":
        return arithmetic.binary("not_equal", cell, 0) if type(cell) is not PendingComparison else cell
    raise stop(f"A random number was stored as {dtype.name}")


def settled(key: Any) -> Any:
    """An index without symbols: those in it choose a value."""
    if isinstance(key, tuple):
        return tuple(map(settled, key))
    if type(key) is SymbolicArray:
        return np.asarray(key)
    if is_symbol(key):
        return key.concrete()
    if isinstance(key, list) and has_symbols(key):
        return [settled(item) for item in key]
    return key


def order_of(cells: Cells) -> list[int]:
    """The places of the cells in increasing order, by insertion: each comparison is a choice of the run."""
    order: list[int] = []
    values = cells.tolist()
    for place in range(len(values)):
        at = len(order)
        while at > 0 and bool(arithmetic.binary("less", values[place], values[order[at - 1]])):
            at -= 1
        order.insert(at, place)
    return order


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


def _clip_scalar(self: Any, low: Any = None, high: Any = None) -> Any:
    from dpaudit.symbolic.values.array_functions import clip_of

    return clip_of(self, low, high)


def _matmul(self: Any, other: Any) -> Any:
    from dpaudit.symbolic.values.array_functions import dot_of

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
    SymbolicArray.__matmul__ = _matmul  # type: ignore[operator]
    SymbolicArray.__rmatmul__ = lambda self, other: _matmul(other, self)  # type: ignore[attr-defined]
    # Scalars reach numpy's functions the same way.
    Symbol.__array_ufunc__ = SymbolicArray.__array_ufunc__  # type: ignore[attr-defined]
    Symbol.__array_function__ = SymbolicArray.__array_function__  # type: ignore[attr-defined]
    Symbol.item = lambda self: self  # type: ignore[attr-defined]
    Symbol.tolist = lambda self: self  # type: ignore[attr-defined]
    Symbol.round = lambda self, decimals=0: transforming.round_to(self, decimals)  # type: ignore[attr-defined]
    Symbol.clip = _clip_scalar  # type: ignore[attr-defined]
    Symbol.astype = lambda self, dtype: _cast(self, dtype_of(dtype))  # type: ignore[attr-defined]
    Symbol.is_integer = transforming.is_integer  # type: ignore[attr-defined]
    Symbol.shape = ()  # type: ignore[attr-defined]
    Symbol.ndim = 0  # type: ignore[attr-defined]
    Symbol.size = 1  # type: ignore[attr-defined]
    Symbol.dtype = property(kind_of_cell)  # type: ignore[attr-defined]


_install()
