"""An extracted output law as an object to look at: outcomes and probabilities, a law of ``dpaudit.exact``, samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpaudit import exact
from dpaudit._util.validation import shorten
from dpaudit.errors import LawError
from dpaudit.exact.form import form_of
from dpaudit.symbolic.comparison import Term, _merged
from dpaudit.symbolic.running.extraction import Extraction
from dpaudit.symbolic.values.forms import PartLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True, eq=False)
class ExtractedLaw:
    """The exact law of a function's output on one data set.

    ``blocks`` lists, for every structure of the output, its terms: a probability and one law for each number in it.
    ``rest`` is the probability of paths that were not followed.
    """

    extraction: Extraction

    @property
    def rest(self) -> float:
        """Probability of what was not followed."""
        return self.extraction.rest

    @property
    def blocks(self) -> dict[Hashable, list[Term]]:
        """Terms by structure."""
        found: dict[Hashable, list[Term]] = {}
        for leaf in self.extraction.leaves:
            found.setdefault(leaf.skeleton, []).append(Term(leaf.weight, leaf.coordinates))
        return {skeleton: _merged(terms) for skeleton, terms in found.items()}

    def to_exact(self) -> Any:
        """Return the law as one of ``dpaudit.exact``: a law of numbers, a Product, a Mixture, or a Discrete law.

        Raises LawError if it is none of them: outputs of several structures that hold random numbers.
        """
        if self.rest > 0.0:
            raise LawError(f"Paths of probability {self.rest:.3g} were not followed, so the law is not complete.")
        table = self.outcomes()
        if table is not None:
            return exact.Discrete(table)
        blocks = self.blocks
        if len(blocks) > 1:
            raise LawError(f"The output has {len(blocks)} structures, with random numbers in them.")
        ((skeleton, terms),) = blocks.items()
        if any(law.tag is not None for law in terms[0].laws):
            raise LawError("The output is a sum of draws or lies on a grid that does not contain 0.")
        laws = [_law(term, single=skeleton[0] == "number") for term in terms]  # type: ignore[index]
        return laws[0] if len(laws) == 1 else exact.Mixture([term.weight for term in terms], laws)

    def outcomes(self) -> dict[Any, float] | None:
        """Every outcome with its probability, if there are finitely many."""
        found: dict[Any, float] = {}
        for leaf in self.extraction.leaves:
            skeleton, kinds = cast("tuple[Any, ...]", leaf.skeleton)[:2]
            listed = [form_of(law.law) for law in leaf.coordinates]
            if any(form.lattice or form.continuous for form in listed) or len(found) > 1 << 17:
                return None
            if any(law.tag is not None for law in leaf.coordinates):
                return None
            for row in itertools.product(*(form.atoms.items() for form in listed)):
                numbers = iter(_number(value, kind) for (value, _), kind in zip(row, kinds, strict=True))
                outcome = _rebuilt(skeleton, numbers)
                mass = leaf.weight * math.exp(math.fsum(value for _, value in row))
                found[outcome] = found.get(outcome, 0.0) + mass
        return found

    def form(self) -> Any:
        """The normal form, for outputs that are one number or finitely many outcomes."""
        return form_of(self.to_exact())

    def log_prob(self, outputs: Any) -> Any:
        """Log-probability or log-density of outputs."""
        return self.to_exact().log_prob(outputs)

    def sample(self, size: int, rng: np.random.Generator) -> Any:
        """Draw outputs from the law, without running the function."""
        return self.to_exact().sample(size, rng)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the law of one number or of finitely many outcomes with matplotlib, and return the axes.

        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from dpaudit.symbolic import law_of
        >>> law_of(lambda data, rng: max(0.0, data + rng.laplace()), 1.0).plot().get_ylabel()
        'density and probability'
        """
        from dpaudit.symbolic.picture import draw

        return draw({"law": self}, axes)

    def __str__(self) -> str:
        lines = []
        table = self.outcomes()
        if table is not None:
            ordered = sorted(table.items(), key=lambda item: -item[1])
            lines = [f"{mass:.6g}  {shorten(outcome)}" for outcome, mass in ordered[:_MOST_SHOWN]]
            more = len(ordered) - _MOST_SHOWN
        else:
            terms = [(term, skeleton) for skeleton, group in self.blocks.items() for term in group]
            for term, skeleton in sorted(terms, key=lambda item: -item[0].weight)[:_MOST_SHOWN]:
                laws = ", ".join(_shown(law) for law in term.laws)
                name = skeleton[0] if skeleton[0] == "number" else shorten(skeleton[0], 60)  # type: ignore[index]
                lines.append(f"{term.weight:.6g}  {name}: {laws if len(laws) <= 160 else laws[:157] + '...'}")
            more = len(terms) - _MOST_SHOWN
        if more > 0:
            lines.append(f"... and {more} more")
        if self.rest > 0.0:
            lines.append(f"{self.rest:.3g}  not followed")
        return "\n".join(lines)


def _number(value: Any, kind: str | None) -> Any:
    return {"b": bool, "i": int}.get(kind or "", float)(value) if value == value else value


def _rebuilt(skeleton: Any, numbers: Any) -> Any:
    """An outcome as ``dpaudit.exact`` writes it: arrays and lists become tuples, dicts become tuples of items."""
    if skeleton == "number":
        return next(numbers)
    kind, inner, *more = skeleton
    if kind == "array":
        cells = (
            [next(numbers) for _ in range(math.prod(inner))] if not more else [_rebuilt(s, numbers) for s in more[0]]
        )
        return _nested(cells, inner)
    if kind == "dict":
        return tuple((_key(key), _rebuilt(value, numbers)) for key, value in inner)
    if kind in ("list", "tuple"):
        return tuple(_rebuilt(item, numbers) for item in inner)
    if kind in ("NoneType", "str", "bytes", "Raised", "complex", "str_"):
        return inner
    return (kind, inner, *more, *numbers)


def _key(key: Any) -> Any:
    skeleton, numbers = key
    return _rebuilt(skeleton, iter(_number(value, kind) for kind, value in numbers))


def _nested(cells: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return cells[0]
    step = len(cells) // shape[0] if shape[0] else 0
    return tuple(_nested(cells[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0]))


def _law(term: Term, *, single: bool) -> Any:
    laws = [coordinate.law for coordinate in term.laws]
    return laws[0] if single and len(laws) == 1 else exact.Product(laws)


def _shown(coordinate: Any) -> str:
    if coordinate.value is not None:
        return f"{coordinate.value:.6g}"
    if not isinstance(coordinate.law, PartLaw):
        return repr(coordinate.law)
    form = coordinate.law.inner
    parts = []
    if form.continuous is not None:
        parts.append("density on ({:.6g}, {:.6g})".format(*form.continuous.support))
    if form.lattice is not None:
        parts.append(f"grid of step {form.lattice.step:g}")
    if form.atoms:
        parts.append(f"{len(form.atoms)} atoms")
    return " and ".join(parts)
