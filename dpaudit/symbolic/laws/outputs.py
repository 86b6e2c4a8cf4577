"""The output of one path: its structure, its numbers, and the law of each number that is random.

``read`` splits an output into a skeleton (containers, lengths, keys, text, None) and numbers. ``coordinates`` turns the
numbers of a path into laws, independent of each other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit._util.values import is_frame, is_series
from dpaudit.errors import LawError
from dpaudit.exact.form import Form, log_total
from dpaudit.mechanism import Raised
from dpaudit.symbolic.draws import rounding
from dpaudit.symbolic.draws.sources import Source
from dpaudit.symbolic.laws.joint import Joint
from dpaudit.symbolic.values import forms
from dpaudit.symbolic.values.arrays import SymbolicArray
from dpaudit.symbolic.values.operations import Affine, Clip, Floor, Increasing, Operation, RoundTo, Truncate
from dpaudit.symbolic.values.paths import Stop
from dpaudit.symbolic.values.regions import FULL, Region
from dpaudit.symbolic.values.symbols import Image, Linear, PendingComparison, Steps, is_symbol
from dpaudit.symbolic.values.transforming import merge

Numbers = list[Any]


def settle(output: Any) -> Any:
    """Decide what an output may not leave open: comparisons, and choices between things that are not all numbers."""
    if is_symbol(output):
        if type(output) is PendingComparison:
            return output.concrete()
        if type(output) is Steps:
            kinds = {kind_of(value) for _, value in output.possible().cells}
            if len(kinds) > 1 or None in kinds:
                return output.concrete()
        return output
    if type(output) is SymbolicArray:
        cells = np.empty(output.shape, dtype=object)
        for place, cell in np.ndenumerate(output.cells):
            cells[place] = cell.concrete() if type(cell) is PendingComparison else cell
        return SymbolicArray(cells, output.dtype)
    if isinstance(output, dict):
        return {(key.concrete() if is_symbol(key) else key): settle(value) for key, value in output.items()}
    if isinstance(output, list | tuple) and type(output) in (list, tuple):
        return type(output)(map(settle, output))
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(*map(settle, output))
    if isinstance(output, Set):
        return {item.concrete() if is_symbol(item) else item for item in output}
    return output


def kind_of(value: Any) -> str | None:
    """The kind of a plain number: b, i or f; None for anything else."""
    if isinstance(value, bool | np.bool_):
        return "b"
    if isinstance(value, int | np.integer):
        return "i"
    if isinstance(value, float | np.floating):
        return "f"
    return None


def read(output: Any, numbers: Numbers) -> Hashable:
    """Return the skeleton of an output, and append its numbers and symbols to ``numbers``."""
    if is_symbol(output) or kind_of(output) is not None:
        numbers.append(output)
        return "number"
    if type(output) is SymbolicArray:
        numbers.extend(output.cells.ravel().tolist())
        return ("array", output.shape)
    if isinstance(output, np.ndarray):
        if output.dtype.kind in "fiub":
            numbers.extend(output.ravel())
            return ("array", output.shape)
        return ("array", output.shape, tuple(read(item, numbers) for item in output.ravel().tolist()))
    if output is None or isinstance(output, str | bytes | Raised | complex):
        return (type(output).__name__ if not isinstance(output, str) else "str", output)
    if isinstance(output, Mapping):
        items = sorted(output.items(), key=lambda item: repr(item[0]))
        return ("dict", tuple((_constant(key), read(value, numbers)) for key, value in items))
    if isinstance(output, tuple | list):
        return (type(output).__name__, tuple(read(item, numbers) for item in output))
    if isinstance(output, Set):
        return ("set", tuple(sorted((_constant(item) for item in output), key=repr)))
    if is_frame(output) or is_series(output):
        columns = tuple(map(str, output.columns)) if is_frame(output) else ()
        index = tuple(map(_constant, output.index))
        return (type(output).__name__, columns, index, read(output.to_numpy(), numbers))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = [(f.name, getattr(output, f.name)) for f in dataclasses.fields(output)]
        return (type(output).__name__, tuple((name, read(value, numbers)) for name, value in fields))
    raise Stop(f"An output of type {type(output).__name__} cannot be read")


def _constant(value: Any) -> Hashable:
    inner: Numbers = []
    skeleton = read(value, inner)
    if any(map(is_symbol, inner)):
        raise Stop("A key or member of the output is a random number")
    return skeleton, tuple((kind_of(number), float(number)) for number in inner)


@dataclass(frozen=True, slots=True)
class OutputCoordinate:
    """The law of one number of an output, with total mass one; ``value`` if it is certain.

    ``tag`` is what belongs to the skeleton: the offset of a grid. ``certified`` is False if the density may vanish inside its
    support, so that a search cannot bound ratios of it. Laws with the same ``key``, if it is not None, are equal. ``error``
    bounds the error of the log-density (or log-mass) wherever it is above exp(-760). The number is ``function`` of one with the
    law ``origin``, if that is known. ``located`` is a whole draw times a factor plus a location, both rational.
    """

    law: Any
    value: float | None = None
    tag: Hashable = None
    certified: bool = True
    key: Hashable = None
    error: float = 0.0
    origin: OutputCoordinate | None = None
    function: Hashable = None
    located: Located | None = None

    def form(self) -> Form:
        """Its normal form."""
        return self.law.form()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Located:
    """A draw of a family of location and scale, with its factor and its location as they are over the reals."""

    source: Source
    factor: Fraction
    shift: Fraction

    def coordinate(self) -> OutputCoordinate | None:
        """The law, if it has a name."""
        factor, shift = float(self.factor), float(self.shift)
        law = None if self.source.named is None else self.source.named(factor, shift)
        error = rounding.density_error(self.source, factor, shift)
        return None if law is None else OutputCoordinate(law, error=error, located=self)


def certain(value: Any) -> OutputCoordinate:
    """A number that is not random."""
    number = float(value)
    key = math.nan if number != number else number
    return OutputCoordinate(forms.PartLaw(Form({key: 0.0})), number)


def coordinates(numbers: Numbers, joint: Joint) -> list[OutputCoordinate]:
    """The independent laws of the numbers of a path's output; stop if they are not independent."""
    recoded = _recoded(numbers)
    used: set[int] = set()
    found = []
    for number, tag in recoded:
        if not is_symbol(number):
            found.append(certain(number) if tag is None else dataclasses.replace(certain(number), tag=tag))
            continue
        group: set[int] = set()
        for drawn in number.draws():
            joint.trace.check(drawn)
            group |= set(joint.dependent(drawn.index) or [drawn.index])
        if group & used:
            raise Stop(
                "Two numbers of the output depend on the same draw, or on draws that were compared with each other"
            )
        used |= group
        one = _coordinate(number, joint)
        found.append(one if tag is None else dataclasses.replace(one, tag=(tag, one.tag)))
    return found


def merged_sums(numbers: Numbers) -> Numbers:
    """Replace sums of draws with a known law by one draw, where no other number of the output uses them."""
    return [_as_one_draw(number, numbers) for number in numbers]


def _as_one_draw(number: Any, numbers: Numbers) -> Any:
    if type(number) is not Linear or len(number.terms) < 2 or not _alone(number, numbers):
        return number
    merged = merge(number)
    return number if merged is None else merged


def _alone(number: Linear, numbers: Numbers) -> bool:
    """Return True if no other number of the output uses the draws of this one."""
    own = {drawn.index for drawn in number.draws()}
    others = {d.index for n in numbers if is_symbol(n) and n is not number for d in n.draws()}
    return not own & others


def _recoded(numbers: Numbers) -> list[tuple[Any, Hashable]]:
    """Replace sums of draws by single draws where the output determines them.

    If the numbers that share draws are ``y = A x + b`` with a square invertible matrix ``A``, the output is a one-to-one
    function of ``A^-1 y = x + A^-1 b``, whose coordinates are independent. ``A`` becomes part of the skeleton: data sets
    with different matrices are not compared.
    """
    sums = [n for n in numbers if type(n) is Linear and len(n.terms) > 1]
    if not sums:
        return [(n, None) for n in numbers]
    places = [k for k, n in enumerate(numbers) if type(n) is Linear]
    drawn = sorted({d.index for k in places for d in numbers[k].draws()})
    by_index = {d.index: d for k in places for d in numbers[k].draws()}
    if len(drawn) != len(places):
        raise Stop("A sum of several draws is released, and its law is not followed")
    matrix = [[{d.index: f for d, f in numbers[k].terms}.get(i, Fraction(0)) for i in drawn] for k in places]
    shift = [numbers[k].constant for k in places]
    solved = _solve([row[:] for row in matrix], shift)
    if solved is None:
        raise Stop("Several released numbers are made of the same draws, and do not determine them")
    result: list[tuple[Any, Hashable]] = [(n, None) for n in numbers]
    tag = tuple(tuple(row) for row in matrix)
    for k, i, value in zip(places, drawn, solved, strict=True):
        result[k] = (Linear(((by_index[i], Fraction(1)),), value), tag)
    return result


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Solve a linear system exactly; None if it is singular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = next((k for k in range(column, len(rows)) if rows[k][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for k, row in enumerate(rows):
            if k != column and row[column]:
                rows[k] = [a - row[column] * b for a, b in zip(row, rows[column], strict=True)]
    return [row[-1] for row in rows]


def _coordinate(number: Any, joint: Joint) -> OutputCoordinate:
    (drawn,) = number.draws()
    region = joint.regions[drawn.index]
    dependent = joint.dependent(drawn.index)
    source = drawn.source
    located = None
    if dependent is None and type(number) is Linear and _everything(source, region):
        located = Located(source, number.terms[0][1], number.constant)
        whole = located.coordinate()
        if whole is not None:
            return whole
    chain = number.chain if type(number) is Image else ()
    if type(number) is Linear:
        chain = (Affine(number.terms[0][1], number.constant),)
    error = _Error(source)
    if dependent is not None:
        node = joint.density(drawn.index)
        if node.form.continuous is None:
            raise Stop("A whole random number that was compared with another draw is released")
        base = Form(continuous=node.continuous()).scaled(-node.log_total())
        error.bound += node.error() + joint.density_error(drawn.index)
    else:
        base = source.form
        if chain and isinstance(chain[0], Affine) and base.lattice is None:
            # Cut where the output is cut: there the ends are exact.
            error.add(chain[0], base)
            base, region = chain[0].image(base), region.affine(chain[0].factor, chain[0].shift)
            chain = chain[1:]
        base = base if region is FULL else forms.restricted(base, region)
        base = base.scaled(-source.log_mass(joint.regions[drawn.index]))
        error.bound += source.error(joint.regions[drawn.index])
    if type(number) is Steps:
        return _of_steps(number, base, _cells_error(number, joint))
    tag: Hashable = None
    certified = dependent is None or joint.positive(drawn.index)
    try:
        for place, operation in enumerate(chain):
            error.add(operation, base)
            if isinstance(operation, Increasing):
                certified = bool(certified and (operation.safe or _is_flat(base)))
            if isinstance(operation, Affine) and base.lattice is not None:
                operation, tag = _on_grid(operation, base.lattice.step, last=place + 1 == len(chain))
            base = operation.image(base)
    except LawError as reason:
        raise Stop(f"The law of an output is not followed: {reason}") from reason
    key = (source.name, joint.regions[drawn.index], number.chain if type(number) is Image else number.terms[0][1:])
    constant = number.constant if type(number) is Linear else None
    origin, function = _origin(number, joint) if type(number) is Image else (None, None)
    return OutputCoordinate(
        forms.PartLaw(base),
        tag=tag,
        certified=certified,
        key=None if dependent is not None else (*key, constant),
        located=located,
        error=error.bound,
        origin=origin,
        function=function,
    )


def _origin(number: Image, joint: Joint) -> tuple[OutputCoordinate | None, Hashable]:
    """The law of what the operations after the first affine one are applied to, and these."""
    if not number.chain or not isinstance(number.chain[0], Affine):
        return None, None
    first = number.chain[0]
    return _coordinate(Linear(((number.drawn, first.factor),), first.shift), joint), number.chain[1:]


@dataclass
class _Error:
    """The error of the log-density of a draw to which one operation after the other is applied."""

    source: Source
    factor: float = 1.0
    shift: float = 0.0
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        self.bound = rounding.density_error(self.source, 1.0, 0.0)

    def add(self, operation: Operation, base: Form) -> None:
        """Note one more operation, applied to a law with the form ``base``."""
        if isinstance(operation, Affine):
            factor, shift = float(operation.factor), float(operation.shift)
            self.factor, self.shift = factor * self.factor, factor * self.shift + shift
            if base.continuous is not None:
                size = abs(shift) + abs(factor * self.shift) + abs(self.shift)
                self.bound += rounding.density_error(self.source, self.factor, size)
        elif base.continuous is None:
            return
        elif isinstance(operation, Clip):
            self.bound += rounding.end_error(base.continuous, self.shift, float(operation.low), float(operation.high))
        elif isinstance(operation, RoundTo | Floor | Truncate):
            step = float(operation.step) if isinstance(operation, RoundTo) else 1.0
            self.bound += rounding.cell_error(self.source, self.factor, self.shift, step)
        elif isinstance(operation, Increasing):
            self.bound += rounding.function_error(self.factor, self.shift)
        else:
            self.bound += rounding.ELEMENTARY


def _cells_error(number: Steps, joint: Joint) -> float:
    """Error of the log-masses of the cells of a finite function of a draw."""
    source, known = number.drawn.source, joint.regions[number.drawn.index]
    cells = [source.error(known.meet(region)) for region, _ in number.cells if known.meet(region).parts]
    return max(cells, default=0.0) + source.error(known) + rounding.ELEMENTARY * (1.0 + rounding.LARGEST_LOG)


def _is_flat(form: Form) -> bool:
    return form.continuous is None or forms.is_constant(form.continuous)


def _everything(source: Any, region: Region) -> bool:
    low, high = source.support()
    return region is FULL or any(a <= low and high <= b for a, b in region.intervals())


def _on_grid(operation: Affine, step: float, *, last: bool) -> tuple[Affine, Hashable]:
    """Split an affine map of a grid into one onto a grid through 0, and the offset of the grid."""
    size = abs(operation.factor) * forms.exact_step(step)
    whole = round(operation.shift / size) * size
    offset = operation.shift - whole
    if not last and offset != 0:
        raise LawError("a rounded number is shifted off its grid and transformed again")
    return Affine(operation.factor, whole), None if offset == 0 else ("offset", float(offset / size))


def _of_steps(number: Steps, base: Form, error: float) -> OutputCoordinate:
    atoms: dict[Hashable, float] = {}
    for region, value in number.cells:
        part = forms.restricted(base, region)
        mass = log_total(part) if part.atoms or part.lattice or part.continuous else -math.inf
        if mass > -math.inf:
            key = float(value)
            atoms[key] = float(np.logaddexp(atoms.get(key, -math.inf), mass))
    certain_value = float(next(iter(atoms))) if len(atoms) == 1 else None  # type: ignore[arg-type]
    return OutputCoordinate(forms.PartLaw(Form(atoms)), certain_value, error=error)
