"""The exact output law of a function on one data set: all its paths, each with its probability and the law of its output.

The function is run once for every path, with symbols in place of random numbers, the likeliest paths first. Every path is
then run again with plain numbers that follow it, and its output must be what the symbols say. That second run has no
symbols and no replaced functions in it, so whatever the first one misunderstood (a type that is asked for, state that is
kept, code in C) shows as a difference, which stops the extraction.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit._util.validation import shorten
from dpaudit.errors import CannotFollow, MechanismError
from dpaudit.mechanism import Raised
from dpaudit.symbolic.draws.rounding import ELEMENTARY
from dpaudit.symbolic.laws.joint import Joint
from dpaudit.symbolic.laws.outputs import OutputCoordinate, coordinates, kind_of, merged_sums, read, settle
from dpaudit.symbolic.running.coverage import Lines
from dpaudit.symbolic.running.functions import symbolic_functions
from dpaudit.symbolic.running.generator import Replay, Replaying, SymbolicGenerator, evaluated, used_otherwise
from dpaudit.symbolic.running.inside import aims_of, doubtful, inside
from dpaudit.symbolic.running.loops.renewal import Comeback, factors
from dpaudit.symbolic.running.randomness import symbolic_randomness
from dpaudit.symbolic.running.reach import Reach
from dpaudit.symbolic.running.state import PlainVariables
from dpaudit.symbolic.values.paths import Fork, PathCut, Returned, Stop, Trace, active, is_user_code, running
from dpaudit.symbolic.values.regions import Region
from dpaudit.symbolic.values.symbols import is_symbol

Release = Callable[[Any, np.random.Generator], Any]

_LOCK = threading.RLock()  # the replaced functions are those of the whole process
_CLOSE = 1e-6
MORE_REPLAYS = 6
"""Replays of each of the likeliest paths at other values of its draws, to find what only some values show."""
PATH_TIMES = 2.0  # the time for all paths, times this: a path that takes longer is cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the exploration of one data set ends.

    ``paths`` and ``seconds`` bound the work; what is then left goes into ``rest``. Paths with a probability below
    ``negligible`` are not followed, and go there too.
    """

    paths: int = 4096
    seconds: float = 10.0
    negligible: float = 1e-18


Part = tuple[tuple[int, ...], float]
"""The choices of a path, and its probability."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One way through the function: its probability (to a relative error), and the law of its output.

    ``skeleton`` is the structure of the output; ``coordinates`` are its numbers, independent on this path.
    """

    weight: float
    error: float
    skeleton: Hashable
    coordinates: tuple[OutputCoordinate, ...]
    shown: Any


@dataclass(frozen=True, slots=True)
class Extraction:
    """The law of a function's output on one data set: the leaves, and the probability of what was not followed."""

    leaves: tuple[Leaf, ...]
    rest: float

    @property
    def error(self) -> float:
        """Largest relative error of the probability of a leaf."""
        return max((leaf.error for leaf in self.leaves), default=0.0)


def extract(
    release: Release,
    function: Any,
    data: Any,
    limits: Limits,
    lines: Lines | None = None,
    reach: Reach | None = None,
) -> Extraction:
    """Explore all paths of ``release(data, rng)``.

    Parameters
    ----------
    release : callable
        One release, given the data and a generator.
    function : object
        What the user wrote: where global names, closures and attributes are looked up.
    data : any
        The data set; every run gets a copy.
    limits : Limits
        When to end.
    lines : Lines, optional
        Records which lines of the user's code were run.
    reach : Reach, optional
        What the function can reach, if that is known from an earlier call.

    Raises
    ------
    CannotFollow
        With the file and line at which the function does something that cannot be followed.
    """
    with _LOCK:
        explorer = _Explorer(release, data, limits, lines, reach or Reach.of(function))
        try:
            return explorer.run()
        except Stop as error:
            raise cannot_follow(error) from None


def cannot_follow(error: Stop) -> CannotFollow:
    """The public form of the exception that ends a run."""
    filename, line, name = error.place or (None, None, None)
    return CannotFollow(error.reason, filename=filename, line=line, function=name)


@dataclass(eq=False)
class _Explorer:
    release: Release
    data: Any
    limits: Limits
    lines: Lines | None
    reach: Reach
    more_replays: int = 4 * MORE_REPLAYS

    def run(self) -> Extraction:
        """Explore, put back what the runs changed, and refuse a function that changed anything."""
        surroundings, generators = PlainVariables(self.reach), self.reach.states()
        try:
            result = self._explore()
        finally:
            changed = surroundings.restore()
        if changed:
            raise Stop(
                "The function changes a global variable, an attribute or a captured variable, so releases may depend on each "
                "other"
            )
        if self.reach.states() != generators:
            raise Stop("The function drew from a random generator that it holds in a way that is not followed")
        return result

    def _explore(self) -> Extraction:
        started = time.monotonic()
        tie = itertools.count()
        waiting: list[tuple[float, int, Fork]] = [(0.0, next(tie), Fork((), (), 0.0))]
        leaves: list[Leaf] = []
        ended: list[Part] = []
        unfollowed: list[Part] = []
        back: list[Comeback] = []
        while waiting:
            negative, _, fork = heapq.heappop(waiting)
            out_of_time = len(leaves) >= self.limits.paths or time.monotonic() - started > self.limits.seconds
            if out_of_time or -negative < math.log(self.limits.negligible):
                unfollowed.append((fork.choices, math.exp(-negative)))
                continue
            deadline = started + PATH_TIMES * self.limits.seconds
            least = math.log(self.limits.negligible)
            trace = Trace(fork.choices, fork.signatures, least=least, deadline=deadline)
            leaf: Leaf | None = None
            try:
                leaf = self._leaf(trace, self._symbolic(trace))
            except PathCut:
                unfollowed.append((tuple(trace.made), math.exp(trace.log_bound)))
            except Returned:
                back.append(self._comeback(trace))
            for other in trace.forks:
                heapq.heappush(waiting, (-other.log_bound, next(tie), other))
            if leaf is not None:
                leaves.append(leaf)
                ended.append((tuple(trace.made), leaf.weight))
        self._check_total([*leaves, *back], math.fsum(mass for _, mass in unfollowed))
        if not back:
            return Extraction(tuple(leaves), _left_over(leaves, math.fsum(mass for _, mass in unfollowed)))
        scales, rest, error = factors(ended, back, unfollowed)
        leaves = [
            replace(leaf, weight=scale * leaf.weight, error=leaf.error + error)
            for leaf, scale in zip(leaves, scales, strict=True)
        ]
        self._check_total(leaves, rest)
        return Extraction(tuple(leaves), _left_over(leaves, rest))

    def _check_total(self, paths: Sequence[Leaf | Comeback], rest: float) -> None:
        total = math.fsum(path.weight for path in paths)
        allowed = 1e-9 + sum(path.weight * path.error for path in paths)
        if not (1.0 - rest - allowed <= total <= 1.0 + allowed):
            raise Stop(
                f"The probabilities of the paths sum to {total!r}; this is a defect of the extraction, please report it"
            )

    def _comeback(self, trace: Trace) -> Comeback:
        """The probability of a path that came back to an earlier state, after it was run with plain numbers too."""
        assert trace.returned is not None
        with running(trace):
            joint = Joint.of(trace)
            weight, error = _weight(trace, joint)
            if weight > 0.0:
                aims: list[dict[int, Region]] = [{}, *doubtful(trace, joint)]
                self._replayed(trace, [inside(trace, joint, aim, turn) for turn, aim in enumerate(aims)])
        return Comeback(tuple(trace.made), trace.returned, weight, error)

    # One run.

    def _symbolic(self, trace: Trace) -> Any:
        with running(trace), symbolic_randomness(self.reach), symbolic_functions(self.reach):
            output = settle(self._call(trace))
        if trace.returned is not None:
            raise Stop("The function catches every exception, also those that are none of its own")
        if trace.stopped is not None:  # the user's code swallowed it
            raise trace.stopped
        if trace.cut:
            raise PathCut
        if len(trace.made) < len(trace.choices):
            raise Stop(
                "The function did not repeat itself: on the same data and the same draws it asked for less. It keeps state "
                "between releases, or has randomness of another kind"
            )
        return output

    def _call(self, trace: Trace | None) -> Any:
        data = copy.deepcopy(self.data)
        context = self.lines.recording() if self.lines is not None and trace is not None else _Nothing()
        try:
            with context:
                output = self.release(data, SymbolicGenerator())
                if hasattr(output, "__next__"):
                    output = list(itertools.islice(output, 100_000))
        except (Stop, PathCut, Returned):
            raise
        except MechanismError as error:
            raise Stop(f"The mechanism cannot be run for one release: {error}") from error
        except Exception as error:
            raised = Raised.from_exception(error)
            if _made_by_us(error):
                raise Stop(
                    f"The function ends in {raised} where a random number is used", _user_place(error)
                ) from error
            if trace is not None:
                trace.error = error
            output = raised
        if any(map(used_otherwise, active().generators)):
            raise Stop("The random generator was used in a way that is not followed (not through its methods)")
        return output

    # From a run to a leaf.

    def _leaf(self, trace: Trace, output: Any) -> Leaf | None:
        with running(trace):
            numbers: list[Any] = []
            skeleton = read(output, numbers)
            numbers = merged_sums(numbers)
            joint = Joint.of(trace)
            weight, error = _weight(trace, joint)
            if weight == 0.0:
                return None
            trace.check(*{drawn for number in numbers if is_symbol(number) for drawn in number.draws()})
            kinds: tuple[str | None, ...] = ()
            more = min(MORE_REPLAYS, self.more_replays)
            self.more_replays -= more
            chosen = [inside(trace, joint, aim, turn) for turn, aim in enumerate(aims_of(trace, numbers, joint, more))]
            for turn, (values, shown) in enumerate(zip(chosen, self._replayed(trace, chosen), strict=True)):
                seen = self._compared(trace, skeleton, numbers, shown, values)
                if turn and seen != kinds:
                    raise Stop(f"The type of the output depends on the values of the random draws ({shorten(shown)})")
                kinds = seen
            laws = coordinates(numbers, joint)
        tags = tuple(law.tag for law in laws)
        return Leaf(weight, error, (skeleton, kinds, tags), tuple(laws), shown)

    def _replayed(self, trace: Trace, chosen: list[dict[int, float]]) -> list[Any]:
        """Run the function with plain numbers that follow the path, once for each choice of them."""
        with symbolic_randomness(self.reach):
            return [self._replay(trace, values) for values in chosen]

    def _replay(self, trace: Trace, values: dict[int, float]) -> Any:
        results = [(name, evaluated(result, values, kind)) for name, result, kind in trace.results]
        replay = Replay(results, comes_back=trace.returned is not None)
        Replaying.current = replay
        try:
            with running(Trace()):
                output = self._call(None)
        except Returned:
            return None
        finally:
            Replaying.current = None
        if trace.returned is not None or replay.failed or replay.place != len(replay.results):
            raise self._differs(trace, "it draws other random numbers", output)
        return output

    def _compared(
        self, trace: Trace, skeleton: Hashable, numbers: list[Any], shown: Any, values: dict[int, float]
    ) -> tuple[str | None, ...]:
        """Check that plain numbers give what the symbols say, and return the kinds of the numbers."""
        plain: list[Any] = []
        if read(shown, plain) != skeleton or len(plain) != len(numbers):
            raise self._differs(trace, "its output has another structure", shown)
        for number, value in zip(numbers, plain, strict=True):
            expected = float(number.at(values) if is_symbol(number) else number)
            same = expected == value or (expected != expected and value != value)
            if not same and not abs(expected - value) <= _CLOSE * (1.0 + abs(expected)):
                raise self._differs(trace, f"it returns {value!r} in place of {expected!r}", shown)
        return tuple(map(kind_of, plain))

    def _differs(self, trace: Trace, how: str, shown: Any) -> Stop:
        error = trace.error
        place = None if error is None else _user_place(error)
        reason = "" if error is None else f" With symbols it raises {type(error).__name__}: {error}."
        return Stop(
            f"With plain numbers the function does not do what it does with symbols: {how} ({shorten(shown)}).{reason}",
            place,
        )


def _steps_of(error: BaseException) -> list[Any]:
    """The steps of a traceback, innermost first."""
    steps, step = [], error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    return steps[::-1]


def _user_place(error: BaseException) -> tuple[str, int, str] | None:
    """File, line and function of the innermost step of a traceback that is the user's."""
    for step in _steps_of(error):
        code = step.tb_frame.f_code
        if is_user_code(code.co_filename):
            return code.co_filename, step.tb_lineno, code.co_name
    return None


def _made_by_us(error: BaseException) -> bool:
    """Return True if an exception passed through the symbols or the replaced functions before it reached the user's code.

    The generators are no exception to that except where they check their arguments, which numpy itself does.
    """
    for step in _steps_of(error):
        filename = step.tb_frame.f_code.co_filename
        if is_user_code(filename):
            return False
        if filename in _OURS:
            return True
    return False


_FOLDER = Path(__file__).parents[1]
_REPLACED = (_FOLDER / "running" / name for name in ("functions.py", "randomness.py"))
_OURS = {str(path) for path in (*(_FOLDER / "values").glob("*.py"), *(_FOLDER / "draws").glob("*.py"), *_REPLACED)}


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None


def _left_over(leaves: Sequence[Leaf], rest: float) -> float:
    """Return an upper bound of what was not followed: that of its parts, or what the leaves leave of one."""
    known = math.fsum(leaf.weight * (1.0 - leaf.error) for leaf in leaves)
    return max(0.0, min(rest, 1.0 - known + 1e-15))


def _weight(trace: Trace, joint: Joint) -> tuple[float, float]:
    """Probability of a path, and a bound of its relative error; rational factors are exact until the last rounding."""
    exact = Fraction(1)
    log_mass, error = 0.0, 0.0
    dependent = {index for component in joint.components for index in component}
    for drawn in trace.draws:
        if drawn.index in dependent or any(drawn.index in parents for parents in trace.derived.values()):
            continue
        region = joint.regions[drawn.index]
        share = drawn.source.exact_mass(region)
        if share is not None:
            exact *= share
        elif trace.log_masses[drawn.index] < 0.0 or region is not trace.regions[drawn.index]:
            log_mass += drawn.source.log_mass(region)
            error += drawn.source.error(region)
    for component in joint.components:
        value, relative = joint.log_mass(component)
        log_mass += value
        error += relative
    if exact == 0 or log_mass == -math.inf:
        return 0.0, 0.0
    return float(exact) * math.exp(log_mass), error + ELEMENTARY * (1.0 + abs(log_mass))
