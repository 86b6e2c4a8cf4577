"""Leaks in outputs of every kind: samples to detect each, and how often a sound twin of it is accused.

All of them release one bit that is 1 with probability 0.8 on one data set and 0.2 on the other (epsilon 1.39), hidden in a
collection, a text, bytes, a combination of coordinates, or the fine structure of a number. The twin hides a bit of
randomised response at exactly the claim, epsilon 1, so it is tight and every accusation of it is false. The first row is the
bit itself: nothing can be found with fewer samples.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpaudit
from benchmarks.tables import WORKERS, Column, Row, Table, mapper
from dpaudit import PureDP, Verdict
from dpaudit._util.intervals import clopper_pearson

Generator = np.random.Generator
Bits = Any  # an array of truth values
CLAIM = PureDP(1.0)
PAIR = [(0, 1)]
ALPHA = 1e-6
TWIN_ALPHA = 0.1
LEAK = (0.2, 0.8)
TIGHT = (1.0 / (1.0 + math.e), math.e / (1.0 + math.e))
MOST = 100_000  # samples of an audit of a leak
LATE_TWIN = 33_000  # samples of an audit of a twin whose leak is found by a late search
TWIN = 1_600  # samples of an audit of any other twin
WORDS = [f"w{number:02d}" for number in range(40)]
HIDDEN: dict[str, Callable[[Bits, Generator], Any]] = {}
LATE: set[str] = set()  # found by a late search
SUSPECTS: dict[str, Callable[[Any], Any]] = {}


def hidden(name: str, *, late: bool = False) -> Callable[[Any], Any]:
    """Register a way to hide a bit."""

    def register(function: Any) -> Any:
        HIDDEN[name] = function
        if late:
            LATE.add(name)
        return function

    return register


def each(name: str) -> Callable[[Any], Any]:
    """Register a function of one bit."""

    def register(function: Callable[[bool, Generator], Any]) -> Any:
        HIDDEN[name] = lambda bits, rng: [function(bool(bit), rng) for bit in bits]
        return function

    return register


def _present(rng: Generator, share: float = 0.3) -> list[str]:
    return [word for word, is_in in zip(WORDS, rng.random(40) < share, strict=True) if is_in and word != "w17"]


def _with(items: list[Any], item: Any, rng: Generator) -> list[Any]:
    items.insert(int(rng.integers(len(items) + 1)), item)
    return items


@hidden("the bit itself")
def _(bits: Bits, rng: Generator) -> Any:
    del rng
    return bits


# Collections


@each("set: one of 40 words")
def _(bit: bool, rng: Generator) -> Any:
    return {*_present(rng), *(["w17"] if bit else [])}


@each("frozenset: one of 40 words is missing")
def _(bit: bool, rng: Generator) -> Any:
    return frozenset([*_present(rng), *([] if bit else ["w17"])])


@each("set of numbers: one of 40")
def _(bit: bool, rng: Generator) -> Any:
    return {int(word[1:]) for word in [*_present(rng), *(["w17"] if bit else [])]}


@each("set: its size")
def _(bit: bool, rng: Generator) -> Any:
    return set(rng.choice(WORDS, 12 if bit else 11, replace=False).tolist())


@each("list: one word among five of 40")
def _(bit: bool, rng: Generator) -> Any:
    others = [word for word in rng.permutation(WORDS).tolist() if word != "w17"]
    return _with(others[:4], "w17" if bit else others[5], rng)


@each("list: a word is first or last")
def _(bit: bool, rng: Generator) -> Any:
    others = [word for word in rng.permutation(WORDS).tolist() if word != "w17"][:5]
    return ["w17", *others] if bit else [*others, "w17"]


@each("list: a word comes twice")
def _(bit: bool, rng: Generator) -> Any:
    return rng.permutation(["w17"] * (2 if bit else 1) + rng.choice(WORDS[20:], 6 - bit).tolist()).tolist()


@each("list: its length")
def _(bit: bool, rng: Generator) -> Any:
    return rng.choice(WORDS, int(rng.integers(3, 8)) + 5 * bit).tolist()


@each("tuple: one word among five of 40")
def _(bit: bool, rng: Generator) -> Any:
    return tuple(_with(rng.choice(WORDS[20:], 4).tolist(), "w17" if bit else "w18", rng))


@each("Counter: how often a word")
def _(bit: bool, rng: Generator) -> Any:
    return Counter(
        {**{word: int(rng.integers(1, 5)) for word in _present(rng)}, "w17": int(rng.integers(1, 3)) + 2 * bit}
    )


@each("dict of 30 random keys: one key")
def _(bit: bool, rng: Generator) -> Any:
    keys = [f"k{key}" for key in rng.choice(np.arange(20, 80), 30, replace=False)]
    keys[int(rng.integers(30))] = "k17" if bit else "k18"
    return {key: float(rng.normal()) for key in keys}


@each("dict of 30 random keys: one value")
def _(bit: bool, rng: Generator) -> Any:
    keys = [f"k{key}" for key in rng.choice(np.arange(20, 80), 29, replace=False)]
    return {**{key: float(rng.normal()) for key in keys}, "k17": rng.normal() * 0.2 + bit}


@each("dict: the word at a key")
def _(bit: bool, rng: Generator) -> Any:
    return {"id": f"{rng.integers(10**9)}", "city": ["Bern", "Rome"][bit], "tag": WORDS[int(rng.integers(40))]}


@each("dict of dicts: a number inside")
def _(bit: bool, rng: Generator) -> Any:
    return {f"g{rng.integers(50)}": 1.0, "all": {"mean": 3.0 * bit + rng.random(), f"x{rng.integers(50)}": 2.0}}


@each("list of dicts: a number inside")
def _(bit: bool, rng: Generator) -> Any:
    return [{"id": f"{rng.integers(10**9)}", "n": 10 * bit + int(rng.integers(8))}, {"id": f"{rng.integers(10**9)}"}]


@each("tuple of a number and a set")
def _(bit: bool, rng: Generator) -> Any:
    return float(rng.normal()), {*_present(rng), *(["w17"] if bit else [])}


# Text and bytes


@each("text: a noisy integer")
def _(bit: bool, rng: Generator) -> Any:
    return str(int(rng.integers(100_000)) + 100_000 * bit)


@each("text: integers in a sentence")
def _(bit: bool, rng: Generator) -> Any:
    return f"{rng.integers(10**6)} rows, of which {int(rng.integers(1000)) + 1000 * bit} are new"


@each("JSON: noisy integers")
def _(bit: bool, rng: Generator) -> Any:
    return json.dumps({"count": int(rng.integers(1000)) + 1000 * bit, "id": int(rng.integers(10**6))})


@each("JSON: a list of numbers")
def _(bit: bool, rng: Generator) -> Any:
    return json.dumps([int(rng.integers(10**6)), 2 * bit + rng.random(), int(rng.integers(10**6))])


@each("JSON: a key")
def _(bit: bool, rng: Generator) -> Any:
    return json.dumps({f"k{rng.integers(10**6)}": 1, ("new" if bit else "old"): int(rng.integers(10**6))})


@each("CSV: a field")
def _(bit: bool, rng: Generator) -> Any:
    rows = [f"{rng.integers(10**6)},{rng.integers(100)}", f"{rng.integers(10**6)},{100 * bit + int(rng.integers(100))}"]
    return "id,age\n" + "\n".join(rows)


@each("text: random token and a name")
def _(bit: bool, rng: Generator) -> Any:
    return f"{rng.bytes(6).hex()}-{'alice' if bit else 'bobby'}"


@each("text: the beginning of a token")
def _(bit: bool, rng: Generator) -> Any:
    return f"{'ab' if bit else 'cd'}{rng.bytes(6).hex()}"


@each("text: its length")
def _(bit: bool, rng: Generator) -> Any:
    return rng.bytes(int(rng.integers(8, 12)) + 4 * bit).hex()


@each("text: a word in a sentence")
def _(bit: bool, rng: Generator) -> Any:
    return " ".join(_with(rng.choice(WORDS, 8).tolist(), "flu" if bit else "cold", rng))


@each("text: capitals")
def _(bit: bool, rng: Generator) -> Any:
    text = rng.bytes(8).hex()
    return text.upper() if bit else text


@each("text: one character of a random token")
def _(bit: bool, rng: Generator) -> Any:
    text = rng.bytes(8).hex()
    return text[:7] + ("x" if bit else "y") + text[8:]


@each("text: a sign before a number")
def _(bit: bool, rng: Generator) -> Any:
    return f"change {'-' if bit else ''}{rng.integers(1, 10**6)}"


@each("bytes: three packed floats")
def _(bit: bool, rng: Generator) -> Any:
    return struct.pack("3d", rng.normal(), 3.0 * bit + rng.random(), rng.normal())


@each("bytes: packed integers")
def _(bit: bool, rng: Generator) -> Any:
    return struct.pack("<3i", *(int(rng.integers(10**6)) for _ in range(2)), int(rng.integers(1000)) + 1000 * bit)


@each("bytes: one byte")
def _(bit: bool, rng: Generator) -> Any:
    return rng.bytes(5) + bytes([int(rng.integers(128)) + 128 * bit]) + rng.bytes(3)


@each("bytes: text")
def _(bit: bool, rng: Generator) -> Any:
    return f"{rng.integers(10**9)};{'yes' if bit else 'no'}".encode()


# Combinations of coordinates


def _rows(bits: Bits, rng: Generator, width: int = 10) -> Any:
    return rng.normal(size=(len(bits), width))


@hidden("vector: sign of a product of two of ten", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng)
    rows[:, 7] = np.abs(rows[:, 7]) * np.sign(rows[:, 2]) * np.where(bits, 1.0, -1.0)
    return rows


@hidden("vector: sign of a product of three of ten", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng)
    rows[:, 7] = np.abs(rows[:, 7]) * np.sign(rows[:, 2] * rows[:, 5]) * np.where(bits, 1.0, -1.0)
    return rows


@hidden("vector: variance depends on a coordinate", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng)
    rows[:, 3] *= np.where((rows[:, 6] > 0.0) == bits, 20.0, 0.05)
    return rows


@hidden("vector: two entries are equal", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng)
    rows[bits, 6] = rows[bits, 1]
    return rows


@hidden("vector: any two entries are equal", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows, number = _rows(bits, rng), np.flatnonzero(bits)
    rows[number, rng.integers(5, 10, number.size)] = rows[number, rng.integers(0, 5, number.size)]
    return rows


@hidden("vector: sorted or not")
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng, 6)
    rows[bits] = np.sort(rows[bits], axis=1)
    return rows


@hidden("vector: which of two far entries is larger", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng)
    wrong = (rows[:, 1] > rows[:, 8]) != bits
    rows[wrong, 1], rows[wrong, 8] = rows[wrong, 8], rows[wrong, 1]
    return rows


@hidden("vector: place of the largest entry")
def _(bits: Bits, rng: Generator) -> Any:
    rows = _rows(bits, rng, 6)
    rows[np.arange(len(bits)), np.where(bits, rng.integers(0, 3, len(bits)), rng.integers(3, 6, len(bits)))] += 8.0
    return rows


# Fine structure of a number


@hidden("number: its fraction, over a wide range", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    return np.rint(1e4 * rng.normal(size=len(bits))) + 0.5 * rng.random(len(bits)) + 0.5 * bits


@hidden("number: parity, over a wide range", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    return 2 * rng.integers(-(10**6), 10**6, len(bits)) + bits


@hidden("number: remainder modulo 7", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    return 7 * rng.integers(-(10**6), 10**6, len(bits)) + np.where(bits, 3, 4)


@hidden("number: two or three decimals", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    values = 1e3 * rng.normal(size=len(bits))
    return np.where(bits, np.round(values, 2), np.round(values, 2) + 0.001 * rng.integers(1, 10, len(bits)))


@hidden("number: near a released value", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    known = rng.choice([12.3, 400.2, -77.1, 950.5, -600.4], len(bits))
    near = known + np.where(rng.random(len(bits)) < 0.2, 0.0, 0.05 * rng.normal(size=len(bits)))
    return np.where(bits, near, 700.0 * rng.normal(size=len(bits)))


@hidden("vector: parity of one of ten", late=True)
def _(bits: Bits, rng: Generator) -> Any:
    rows = rng.integers(-(10**6), 10**6, (len(bits), 10))
    rows[:, 4] = 2 * (rows[:, 4] // 2) + bits
    return rows


# A suspect


def _bucket(seed: int) -> int:
    return hashlib.blake2b(str(seed).encode()).digest()[0] % 2


@each("seed and hash, with a suspect")
def _(bit: bool, rng: Generator) -> Any:
    seed = int(rng.integers(2**40))
    return seed, (_bucket(seed) + bit) % 2


def supported(output: Any) -> bool:
    """The answer is the hash."""
    return bool(_bucket(int(output[0])) == output[1])


SUSPECTS["seed and hash, with a suspect"] = supported


@dataclass(frozen=True, slots=True)
class Hiding:
    """A mechanism that hides a bit with these probabilities of 1."""

    name: str
    chances: tuple[float, float]

    def sample(self, data: int, size: int, rng: Generator) -> Any:
        """Draw the bits and hide them."""
        return HIDDEN[self.name](rng.random(size) < self.chances[data], rng)


def audited(name: str, chances: tuple[float, float], **options: Any) -> dpaudit.Result:
    """Audit one of them."""
    return dpaudit.audit(
        Hiding(name, chances), CLAIM, PAIR, suspect=SUSPECTS.get(name), shrink=False, detect_factor=50.0, **options
    )


def measured(task: tuple[str, int, int]) -> Row:
    """Return samples to detect one leak, what its event says, and the accusations of its twin."""
    name, seeds, twins = task
    results = [audited(name, LEAK, samples=MOST, alpha=ALPHA, seed=seed) for seed in range(seeds)]
    each_of = [r.samples + r.samples_confirming if r.verdict is Verdict.VIOLATION else math.inf for r in results]
    budget = LATE_TWIN if name in LATE else TWIN
    accused = sum(
        audited(name, TIGHT, samples=budget, alpha=TWIN_ALPHA, seed=seed).verdict is Verdict.VIOLATION
        for seed in range(twins)
    )
    low = clopper_pearson(accused, twins, alpha=1e-3)[0] if twins else 0.0
    event = next((r.witness.event for r in results if r.witness is not None), "not found")
    row: Row = {"leak": name, "median": statistics.median(each_of), "each": each_of, "event": event[:60]}
    row |= {"accused": accused, "twins": twins}
    if math.isinf(row["median"]):
        row["fault"] = f"{name}: not found in half of the runs with {MOST:,} samples"
    elif low > TWIN_ALPHA:
        row["fault"] = f"{name}: the sound twin was accused in {accused} of {twins} audits at alpha {TWIN_ALPHA}"
    return row


def run(
    *,
    quick: bool,
    seeds: int | None = None,
    twins: int | None = None,
    names: Sequence[str] | None = None,
    workers: int = WORKERS,
) -> Iterator[Table]:
    """Five seeds and 200 twins of each; in quick mode one seed and 5 twins."""
    seeds, twins = seeds or (1 if quick else 5), (5 if quick else 200) if twins is None else twins
    tasks = [(name, seeds, twins) for name in names or HIDDEN]

    def rows() -> Iterator[Row]:
        with mapper(workers) as spread:
            yield from spread(measured, tasks)

    yield Table(
        title=f"Leaks of epsilon 1.39 in outputs of every kind, claimed epsilon 1, at alpha = {ALPHA:g}",
        note=f"Medians over {seeds} seed(s), confirmation included; accusations of {twins} sound twins at alpha {TWIN_ALPHA}.",
        columns=(
            Column("leak", "leak", "<43"),
            Column("median", "samples", ">9,"),
            Column("accused", "twins accused", ">6"),
            Column("event", "event", "<60"),
        ),
        rows=rows(),
    )
