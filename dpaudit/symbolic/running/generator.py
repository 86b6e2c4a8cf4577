"""Generators of symbolic draws, with the interfaces of numpy's Generator, ``random``, ``secrets`` and ``numpy.random``.

Every call is recorded in the run with its result, so that the same run can be replayed with plain numbers: then the n-th
call returns the n-th result at the chosen values of the draws.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.symbolic.draws import sources
from dpaudit.symbolic.draws.sources import Source
from dpaudit.symbolic.running.loops.renewal import arrive
from dpaudit.symbolic.values.arithmetic import of_draw
from dpaudit.symbolic.values.arrays import SymbolicArray, cells_of, has_symbols
from dpaudit.symbolic.values.operators import install
from dpaudit.symbolic.values.paths import Draw, Returned, Stop, active, stop
from dpaudit.symbolic.values.regions import Region
from dpaudit.symbolic.values.symbols import Steps, is_symbol

install()
_MOST_ORDERS = 5040
"""Largest number of orders of a permutation that is followed."""


@dataclass(eq=False)
class Replay:
    """The results of a run at chosen values of its draws, in the order of the calls."""

    results: list[tuple[str, Any]]
    comes_back: bool = False  # the run ended at one more call, in an earlier state
    place: int = 0
    failed: bool = field(default=False)

    def next(self, name: str) -> Any:
        """Return the result of the next call, which must be the one that was recorded."""
        if self.place == len(self.results) and self.comes_back:
            raise Returned
        if self.place >= len(self.results) or self.results[self.place][0] != name:
            self.failed = True
            raise Stop(
                "With plain numbers in place of symbols the function draws in another order: it looks at the type of a "
                "number, keeps state, or has randomness of another kind"
            )
        self.place += 1
        return self.results[self.place - 1][1]


def new_draw(source: Source, call: str) -> Draw:
    """Make a draw in the run under way."""
    return active().draw(source, call)


def recorded(name: str, make: Callable[[], Any], *arguments: Any) -> Any:
    """Return a new result, and record it; in a replay return the recorded one."""
    replay = Replaying.current
    if replay is not None:
        result = replay.next(name)
        return result.copy() if isinstance(result, np.ndarray | list) else result
    arrive(active(), name, arguments)
    result = make()
    kept = result.copy() if type(result) is SymbolicArray or isinstance(result, list) else result
    active().results.append((name, kept, _KINDS.get(name)))
    return result


# numpy returns its own type for some scalars, and Python's for others.
_KINDS = {"integers": np.int64}


class Replaying:
    """The replay under way, if any."""

    current: Replay | None = None


def _standard(name: str) -> Source:
    return {
        "laplace": sources.laplace,
        "normal": sources.gaussian,
        "exponential": sources.exponential,
        "gumbel": sources.gumbel,
        "logistic": sources.logistic,
        "uniform": sources.uniform,
    }[name]()


def scaled(name: str, shift: Any, factor: Any) -> Any:
    """A draw of a family of location and scale."""
    if is_symbol(factor):
        factor = factor.concrete()
    if factor == 0:
        return shift if is_symbol(shift) else float(shift)
    drawn = of_draw(new_draw(_standard(name), name), factor=factor)
    return drawn if not is_symbol(shift) and shift == 0 else shift + drawn


def whole(low: int, high: int) -> Any:
    """A uniform whole number from ``low`` to ``high``, with both."""
    return low if low == high else of_draw(new_draw(sources.uniform_integers(low, high), "integers"))


def index_among(shares: Sequence[Fraction], name: str) -> Steps:
    """A random index with the given probabilities."""
    source = sources.finite(name, {float(k): share for k, share in enumerate(shares)})
    drawn = new_draw(source, name)
    return Steps(drawn, tuple((Region.point(x), int(x)) for x, _ in source.shares or ()))


def pick(items: Any, shares: Sequence[Fraction] | None, name: str) -> Any:
    """One of several items: a symbol if they are numbers, otherwise settled at once."""
    index = index_among(shares or [Fraction(1, len(items))] * len(items), name)
    if all(isinstance(item, int | float | np.number | np.bool_) and not is_symbol(item) for item in items):
        return index.mapped(lambda k: items[k])
    return items[index.concrete()]


def order(count: int, length: int, name: str) -> list[int]:
    """A random choice of ``length`` out of ``count`` places without repetition, settled at once."""
    if math.perm(count, length) > _MOST_ORDERS:
        raise stop(f"A random order of {count} items has too many outcomes")
    left = list(range(count))
    chosen = []
    for _ in range(length):
        k: Any = pick(left, None, name) if len(left) > 1 else left[0]
        k = k.concrete() if is_symbol(k) else k
        left.remove(k)
        chosen.append(k)
    return chosen


_FAMILIES: dict[str, tuple[str, tuple[Any, ...]]] = {
    # numpy's name: the family, and defaults of location and scale
    "laplace": ("laplace", (0.0, 1.0)),
    "normal": ("normal", (0.0, 1.0)),
    "gumbel": ("gumbel", (0.0, 1.0)),
    "logistic": ("logistic", (0.0, 1.0)),
}
_SIGNATURES: dict[str, tuple[str, ...]] = {
    "laplace": ("loc", "scale", "size"),
    "normal": ("loc", "scale", "size"),
    "gumbel": ("loc", "scale", "size"),
    "logistic": ("loc", "scale", "size"),
    "uniform": ("low", "high", "size"),
    "exponential": ("scale", "size"),
    "standard_normal": ("size", "dtype", "out"),
    "standard_exponential": ("size", "dtype", "method", "out"),
    "random": ("size", "dtype", "out"),
    "binomial": ("n", "p", "size"),
    "geometric": ("p", "size"),
    "poisson": ("lam", "size"),
    "integers": ("low", "high", "size", "dtype", "endpoint"),
}
_DEFAULTS = {"loc": 0.0, "scale": 1.0, "low": 0.0, "high": 1.0, "lam": 1.0}


def _cell(name: str, values: dict[str, Any]) -> Any:
    """One draw of one of numpy's methods, with plain or symbolic parameters."""
    if name in _FAMILIES:
        return scaled(name, values["loc"], values["scale"])
    for key, value in values.items():
        if is_symbol(value):
            values[key] = value.concrete()
    match name:
        case "uniform":
            return scaled("uniform", values["low"], values["high"] - values["low"])
        case "random":
            return scaled("uniform", 0.0, 1.0)
        case "standard_normal":
            return scaled("normal", 0.0, 1.0)
        case "standard_exponential":
            return scaled("exponential", 0.0, 1.0)
        case "exponential":
            return scaled("exponential", 0.0, values["scale"])
        case "binomial":
            return _binomial(int(values["n"]), float(values["p"]))
        case "geometric":
            p = float(values["p"])
            return 1 if p == 1.0 else of_draw(new_draw(sources.geometric(p), "geometric"))
        case "poisson":
            mean = float(values["lam"])
            return 0 if mean == 0.0 else of_draw(new_draw(sources.poisson(mean), "poisson"))
    raise stop(f"rng.{name} is not followed")


def _binomial(trials: int, p: float) -> Any:
    if trials == 0 or p in (0.0, 1.0):
        return int(trials * p)
    return of_draw(new_draw(sources.binomial(trials, p), "binomial"))


def numpy_draw(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Run one of numpy's methods; its own code checks the arguments and says which shape and type come out."""
    names = _SIGNATURES[name]
    given = {**dict(zip(names, args, strict=False)), **options}
    if name in _FAMILIES and len(args) + len(options) == len(given) and _are_plain(given):
        return _cell(name, {**_DEFAULTS, **given})
    out = given.pop("out", None)
    reference_options = {key: _stand_in(value) for key, value in given.items()}
    if out is not None and "size" not in given:
        reference_options["size"] = np.shape(out)
    # numpy.random.Generator checks the arguments; what it returns only shows shape and type.
    reference = getattr(np.random.Generator(np.random.PCG64(0)), name)(**reference_options)
    if given.get("dtype") is not None and np.dtype(given["dtype"]).itemsize < 8 and name != "integers":
        raise stop(f"rng.{name} with dtype={np.dtype(given['dtype']).name} is not followed")
    shape = np.shape(reference)
    if name == "integers":
        given = _integer_range(given)
    parameters = [key for key in given if key not in ("size", "dtype", "method", "endpoint")]
    defaults = {key: _DEFAULTS[key] for key in names if key in _DEFAULTS and key not in given and name != "integers"}
    grids = {key: np.broadcast_to(cells_of(given[key]), shape) for key in parameters}
    cells = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        values: dict[str, Any] = {**defaults, **{key: grid[place] for key, grid in grids.items()}}
        cells[place] = whole(values["low"], values["high"]) if name == "integers" else _cell(name, values)
    if out is not None:
        out[...] = SymbolicArray(cells, np.float64)
        return out
    if isinstance(reference, np.ndarray):
        return SymbolicArray(cells, reference.dtype)
    return cells.item()


def _are_plain(given: dict[str, Any]) -> bool:
    """Return True for one draw with usual arguments, which need no check."""
    kinds = {key: type(value) for key, value in given.items()}
    return (
        kinds.keys() <= {"loc", "scale"}
        and all(kind in (int, float) and math.isfinite(given[key]) for key, kind in kinds.items())
        and given.get("scale", 1.0) >= 0.0
    )


def _integer_range(given: dict[str, Any]) -> dict[str, Any]:
    """Lowest and highest value of ``integers(low, high)``, inclusive."""
    low, high = given.get("low"), given.get("high")
    if has_symbols(low) or has_symbols(high):
        raise stop("rng.integers with random bounds is not followed")
    if high is None:
        low, high = 0, low
    last = np.asarray(high, dtype=object) - (0 if given.get("endpoint") else 1)
    rest = {key: value for key, value in given.items() if key not in ("low", "high")}
    return {**rest, "low": np.asarray(low, dtype=object), "high": last}


def _stand_in(value: Any) -> Any:
    """A plain value of the same shape, for the check of the arguments."""
    if is_symbol(value):
        return 0.5
    if type(value) is SymbolicArray:
        return np.full(value.shape, 0.5)
    return getattr(value, "symbolic_dtype", value)


def numpy_choice(
    a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
) -> Any:
    """Return what numpy's ``choice`` does."""
    if has_symbols(a) or (p is not None and has_symbols(p)):
        raise stop("rng.choice among random numbers, or with random probabilities, is not followed")
    reference = np.random.Generator(np.random.PCG64(0)).choice(a, size, replace, p, axis, shuffle)
    items = np.arange(a) if isinstance(a, int | np.integer) else np.asarray(a)
    if items.ndim > 1 and (axis != 0 or size is not None):
        raise stop("rng.choice of several rows of a table is not followed")
    shares = None
    if p is not None:
        weights = [Fraction(float(value)) for value in np.asarray(p, dtype=np.float64).tolist()]
        shares = [weight / sum(weights) for weight in weights]
    shape = () if items.ndim > 1 else np.shape(reference)
    count = math.prod(shape)
    if replace:
        chosen = [pick(items, shares, "choice") for _ in range(count)]
    elif shares is None:
        chosen = [items[k] for k in order(len(items), count, "choice")]
    else:
        raise stop("rng.choice without replacement and with probabilities is not followed")
    if items.ndim > 1 or size is None:
        return chosen[0]
    if not any(map(is_symbol, chosen)):
        return np.array(chosen, dtype=items.dtype).reshape(shape)
    cells = np.empty(count, dtype=object)
    cells[:] = chosen
    return SymbolicArray(cells.reshape(shape), items.dtype)


def numpy_permutation(x: Any, axis: int = 0) -> Any:
    """Return what numpy's ``permutation`` does."""
    if axis != 0:
        raise stop("rng.permutation along another axis is not followed")
    if isinstance(x, int | np.integer):
        return np.array(order(int(x), int(x), "permutation"))
    cells = x if type(x) is SymbolicArray else np.asarray(x)
    return cells[order(len(cells), len(cells), "permutation")]


class SymbolicGenerator(np.random.Generator):
    """numpy's Generator with symbolic draws; methods that are not followed stop the extraction."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))
        active().generators.append(self)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        if name in _SIGNATURES:
            return lambda *args, **options: recorded(name, lambda: numpy_draw(name, args, options), args, options)
        if name == "choice":
            return lambda *args, **options: recorded(name, lambda: numpy_choice(*args, **options), args, options)
        if name == "permutation":
            return lambda *args, **options: recorded(name, lambda: numpy_permutation(*args, **options), args, options)
        if name == "shuffle":
            return _shuffle
        if hasattr(np.random.Generator, name):
            raise stop(f"rng.{name} is not followed")
        return super().__getattribute__(name)

    def __reduce__(self) -> Any:
        raise stop("The random generator was copied or pickled: two copies make the same draws")

    __copy__ = __deepcopy__ = lambda self, *_: self.__reduce__()


def used_otherwise(generator: SymbolicGenerator) -> bool:
    """Return True if a generator has made real random numbers, through a way around its methods."""
    bits = np.random.Generator.bit_generator.__get__(generator)
    return bool(bits.state != _UNUSED)


_UNUSED = np.random.PCG64(0).state


def _shuffle(x: Any, axis: int = 0) -> None:
    """Shuffle a list or array in place."""
    if axis != 0:
        raise stop("rng.shuffle along another axis is not followed")
    places = recorded("shuffle", lambda: order(len(x), len(x), "shuffle"), len(x))
    items = [x[k] for k in places]
    for k, item in enumerate(items):
        x[k] = item


class PythonDraws:
    """The functions of ``random`` and ``secrets``, with symbolic draws."""

    def random(self) -> Any:
        """random.random."""
        return recorded("random.random", lambda: scaled("uniform", 0.0, 1.0))

    def uniform(self, a: float, b: float) -> Any:
        """random.uniform."""
        return recorded("random.uniform", lambda: scaled("uniform", a, b - a), a, b)

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        """random.gauss."""
        return recorded("random.gauss", lambda: scaled("normal", mu, sigma), mu, sigma)

    normalvariate = gauss

    def expovariate(self, lambd: float = 1.0) -> Any:
        """random.expovariate."""
        return recorded("random.expovariate", lambda: scaled("exponential", 0.0, 1.0 / lambd), lambd)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> Any:
        """random.randrange."""
        values = range(start) if stop is None else range(start, stop, step)
        if not values:
            raise ValueError("empty range for randrange()")
        return recorded(
            "random.randrange",
            lambda: whole(values[0], values[-1]) if step == 1 else values[0] + step * whole(0, len(values) - 1),
            values,
        )

    def randint(self, a: int, b: int) -> Any:
        """random.randint."""
        return self.randrange(a, b + 1)

    def randbelow(self, exclusive_upper_bound: int) -> Any:
        """secrets.randbelow."""
        if exclusive_upper_bound <= 0:
            raise ValueError("Upper bound must be positive.")
        return self.randrange(exclusive_upper_bound)

    def getrandbits(self, k: int) -> Any:
        """random.getrandbits and secrets.randbits."""
        return recorded("random.getrandbits", lambda: whole(0, (1 << k) - 1), k)

    def choice(self, seq: Any) -> Any:
        """random.choice and secrets.choice."""
        items = [seq[k] for k in range(len(seq))]
        if not items:
            raise IndexError("Cannot choose from an empty sequence")
        return recorded("random.choice", lambda: items[0] if len(items) == 1 else pick(items, None, "choice"), items)

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> Any:
        """random.choices."""
        items = list(population)
        if cum_weights is not None:
            weights = [b - a for a, b in zip([0, *cum_weights[:-1]], cum_weights, strict=True)]
        if has_symbols(weights) or has_symbols(k):
            raise stop("random.choices with random weights is not followed")
        random.Random(0).choices(items, weights, k=1)  # checks the arguments
        shares = None
        if weights is not None:
            exact = [Fraction(weight) for weight in weights]
            shares = [weight / sum(exact) for weight in exact]
        return recorded(
            "random.choices",
            lambda: [pick(items, shares, "choices") for _ in range(k)],
            items,
            shares and tuple(map(str, shares)),
            k,
        )

    def shuffle(self, x: Any) -> None:
        """random.shuffle."""
        _shuffle(x)

    def sample(self, population: Any, k: int, *, counts: Any = None) -> Any:
        """random.sample."""
        if counts is not None:
            raise stop("random.sample with counts is not followed")
        items = list(population)
        places = recorded("random.sample", lambda: order(len(items), k, "sample"), len(items), k)
        return [items[place] for place in places]

    def __getattr__(self, name: str) -> Any:
        if hasattr(random.Random, name) and not name.startswith("__"):
            raise stop(f"random.{name} is not followed")
        raise AttributeError(name)


class LegacyDraws:
    """The functions of ``numpy.random`` and the methods of RandomState, with symbolic draws."""

    @property
    def _generator(self) -> SymbolicGenerator:
        return SymbolicGenerator()

    def rand(self, *shape: int) -> Any:
        """numpy.random.rand."""
        return self._generator.random(shape or None)

    def randn(self, *shape: int) -> Any:
        """numpy.random.randn."""
        return self._generator.standard_normal(shape or None)

    def random_sample(self, size: Any = None) -> Any:
        """numpy.random.random_sample."""
        return self._generator.random(size)

    random = ranf = random_sample

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = None) -> Any:
        """numpy.random.randint."""
        if dtype is not None and np.dtype(dtype).itemsize < 8:
            raise stop("numpy.random.randint with a dtype is not followed")
        return self._generator.integers(low, high, size)

    def random_integers(self, low: int, high: int | None = None, size: Any = None) -> Any:
        """numpy.random.random_integers."""
        low, high = (1, low) if high is None else (low, high)
        return self._generator.integers(low, high, size, endpoint=True)

    def __getattr__(self, name: str) -> Any:
        shared = (*_SIGNATURES, "choice", "permutation", "shuffle")
        if name in shared and name not in ("integers", "random"):
            return getattr(self._generator, name)
        if hasattr(np.random.RandomState, name) and not name.startswith("__"):
            raise stop(f"numpy.random.{name} is not followed")
        raise AttributeError(name)


def evaluated(value: Any, values: dict[int, float], kind: Any = None) -> Any:
    """A recorded result at chosen values of the draws, with numpy's types."""
    if kind is not None and type(value) is not SymbolicArray and not isinstance(value, np.ndarray):
        return kind(value.at(values) if is_symbol(value) else value)
    if type(value) is SymbolicArray:
        cells = [cell.at(values) if is_symbol(cell) else cell for cell in value.cells.ravel().tolist()]
        return np.array(cells, dtype=value.dtype).reshape(value.shape)
    if isinstance(value, list):
        return [evaluated(item, values) for item in value]
    return value.at(values) if is_symbol(value) else value
