"""Laws of vectors with independent coordinates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit._util.validation import shorten
from dpaudit.errors import InvalidArgument, LawError
from dpaudit.exact.form import Array, Form, FormLaw, form_of
from dpaudit.exact.law import Law

_MOST_TUPLES = 1 << 20
"""Largest number of outcomes of a product of discrete laws that is listed as atoms."""


@dataclass(frozen=True, slots=True, init=False)
class Product(FormLaw):
    """The law of independent coordinates, one law each; an output is a row (a tuple, a list, an array) of that length.

    >>> from dpaudit.exact import Laplace
    >>> Product([Laplace(0.0, 1.0), Laplace(3.0, 1.0)]).log_prob([(0.0, 3.0)]).round(6).tolist()
    [-1.386294]
    """

    laws: tuple[Law, ...]

    def __init__(self, laws: Iterable[Law]) -> None:
        coordinates = tuple(laws)
        if not coordinates:
            raise InvalidArgument("laws is empty; a product needs at least one coordinate.")
        for position, law in enumerate(coordinates):
            if not isinstance(law, Law):
                raise InvalidArgument(
                    f"laws[{position}]={shorten(law)} must be a law: log_prob(outputs), sample(size, rng)."
                )
        object.__setattr__(self, "laws", coordinates)

    def form(self) -> Form:
        """Atoms at the tuples of outcomes, where all coordinates are discrete and the tuples are not too many."""
        forms = [form_of(law) for law in self.laws]
        count = math.prod(len(form.atoms) for form in forms)
        if any(form.lattice or form.continuous for form in forms) or count > _MOST_TUPLES:
            raise LawError(
                "A Product has one list of atoms only where all coordinates are discrete, with at most "
                f"{_MOST_TUPLES} outcomes together. Compare it with another Product of as many coordinates."
            )
        rows = itertools.product(*(form.atoms.items() for form in forms))
        return Form({tuple(outcome for outcome, _ in row): math.fsum(value for _, value in row) for row in rows})

    def log_prob(self, outputs: Any) -> Array:
        """Sum of the coordinates' log-probabilities, for each row."""
        columns = self._columns(outputs)
        total: Array = np.sum([law.log_prob(column) for law, column in zip(self.laws, columns, strict=True)], axis=0)
        return total

    def _draw(self, size: int, rng: np.random.Generator) -> Any:
        """Return an array of ``size`` rows where all coordinates are numbers, otherwise a list of tuples."""
        columns = [law.sample(size, rng) for law in self.laws]
        if all(isinstance(column, np.ndarray) and column.ndim == 1 for column in columns):
            return np.stack(columns, axis=1)
        return list(zip(*columns, strict=True))

    def _columns(self, outputs: Any) -> list[Any]:
        width = len(self.laws)
        if isinstance(outputs, np.ndarray):
            if outputs.ndim < 2 or outputs.shape[1] != width:
                raise InvalidArgument(f"outputs has shape {outputs.shape}; each row must have {width} coordinates.")
            return [outputs[:, j] for j in range(width)]
        rows = list(outputs)
        for row in rows:
            if len(row) != width:
                raise InvalidArgument(f"outputs holds {shorten(row)}; each row must have {width} coordinates.")
        return [[row[j] for row in rows] for j in range(width)]
