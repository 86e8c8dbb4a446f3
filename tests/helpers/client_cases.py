"""The mechanisms with which clients in any language are tried: every one, some in several forms."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ldp_budget
from ldp_budget import Mechanism
from ldp_budget.sampling import SeededStream, Stream
from ldp_budget.sampling.memoisation import memo_words
from ldp_budget.sdk.client_program import Program, falling, record
from ldp_budget.sdk.domain import Words as WordDomain
from ldp_budget.sdk.interpreter import StreamDraws, read, run

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "tutorials" / "examples" / "ldp-budget-olh" / "src"))

from ldp_budget_olh.local_hashing import OptimalLocalHashing


def _made(name: str, **declared: Any) -> Mechanism:
    return ldp_budget.mechanism(name)(**declared)


_SKETCH = {"epsilon": 2, "hashes": 64, "width": 128}
_RAPPOR = {"bits": 32, "hashes": 2, "cohorts": 8}

CASES: dict[str, Mechanism] = {
    "randomized-response": _made("randomized-response", epsilon=1),
    "one-sided": _made("one-sided", g="0.3"),
    "two coins": _made("randomized-response", truth="0.5", yes="0.5"),
    "sue": _made("sue", epsilon=1, domain_size=5),
    "oue": _made("oue", epsilon=1, domain_size=4),
    "oue of 100": _made("oue", epsilon=1, domain_size=100),
    "unary-encoding": _made("unary-encoding", p="0.75", q="0.25", domain_size=9),
    "random-substitution": _made("random-substitution", epsilon=1, domain_size=7),
    "three draws": _made("random-substitution", epsilon=1, domain_size=300, draws=3),
    "ordered": _made("random-substitution", epsilon=1, domain_size=9, draws=3, sampling="distinct", ordered=True),
    "subset-selection": _made("subset-selection", epsilon=1, domain_size=10),
    "a large subset": _made("subset-selection", epsilon="0.1", domain_size=6, draws=4),
    "a subset of 70000": _made("subset-selection", epsilon=1, domain_size=70_000, draws=3),
    "pgr": _made("pgr", epsilon=1, domain_size=1000),
    "pgr over a prime field": _made("pgr", epsilon=3, domain_size=100_000),
    "pgr by wide slabs": _made("pgr", epsilon=4, domain_size=100),
    "matrix-substitution": _made("matrix-substitution", matrix=[["0.7", "0.2"], ["0.2", "0.3"], ["0.1", "0.5"]]),
    "rappor": _made("rappor", f="0.5", p="0.25", q="0.75", domain_size=8, **_RAPPOR),
    "rappor of any text": _made("rappor", f="0.5", p="0.25", q="0.75", **_RAPPOR),
    "rappor for any inputs": _made(
        "rappor", epsilon=1, epsilon_lifetime=4, any_inputs=True, domain_size=8, **{**_RAPPOR, "bits": 20}
    ),
    "cms": _made("cms", domain_size=1000, **_SKETCH),
    "cms of any text": _made("cms", **{**_SKETCH, "hashes": 300, "width": 20, "seed": 7}),
    "hcms": _made("hcms", domain_size=1000, **_SKETCH),
    "hcms of any text": _made("hcms", **_SKETCH),
    "d-bit-flip": _made("d-bit-flip", epsilon=1, buckets=20, bits=4),
    "every bucket": _made("d-bit-flip", epsilon=1, buckets=5, bits=5),
    "kept buckets": _made("d-bit-flip", epsilon=1, buckets=20, bits=4, memoize=True),
    "every kept bucket": _made("d-bit-flip", epsilon=1, buckets=5, bits=5, memoize=True),
    "one-bit-mean": _made("one-bit-mean", epsilon=1, maximum=100),
    "one-bit-mean from 18": _made("one-bit-mean", epsilon=1, lower=18, upper="70.5"),
    "a kept bit": _made("one-bit-mean", epsilon=1, maximum=100, rounding=10, flip="0.2"),
    "bounded-staircase": _made("bounded-staircase", epsilon=1, lower=0, upper=10),
    "bounded-laplace": _made("bounded-laplace", epsilon=1, lower=0, upper=10),
    "bounded-laplace at 20": _made("bounded-laplace", epsilon=20, lower=-3, upper=5),
    "staircase": _made("staircase", epsilon=1, lower=0, upper=10),
    "staircase at 0.01": _made("staircase", epsilon="0.01", lower=0, upper=10),
    "hybrid": _made("hybrid", epsilon=2, lower=0, upper=10),
    "hybrid at 0.1": _made("hybrid", epsilon="0.1", lower=-3, upper=5),
    "random-threshold": _made("random-threshold", epsilon=1, lower=0, upper=10),
    "random-threshold of logarithms": _made("random-threshold", epsilon=2, lower=10, upper=5000, scale="log"),
    "rounded-response": _made("rounded-response", epsilon=4, lower=0, upper=10),
    "rounded-response of two points": _made("rounded-response", epsilon=1, lower=-3, upper=5),
    "square-wave": _made("square-wave", epsilon=1, lower=0, upper=10),
    "laplace": _made("laplace", epsilon=1, lower=0, upper=10),
    "gaussian": _made("gaussian", epsilon=1, delta="1e-6", lower="-0.1", upper=10),
    "loloha": _made("loloha", epsilon_lifetime=3, epsilon_first=1, domain_size=20),
    "loloha of two cells": _made("loloha", epsilon_lifetime=2, epsilon_first="0.5", g=2, hashes=300, seed=7),
    "heavy-hitters": _made("heavy-hitters", epsilon=2, length=6),
    "heavy-hitters of long words": _made("heavy-hitters", epsilon=1, length=21, hashes=100, seed=3),
    "ticks": _made("ticks", epsilon=4, domain_size=10, at_most=3),
    "any ticks": _made("ticks", epsilon=2, domain_size=12),
    "many ticks": _made("ticks", epsilon=4, domain_size=60, at_most=8),
    "grid": _made("grid", epsilon=4, items=8, domain_size=5),
    "grid of sets": _made("grid", epsilon=1, items=6, domain_size=11, asked=2, threshold=1),
    "joint yes or no": _made("grid", epsilon=4, items=4, domain_size=2),
    "olh": _made("olh", epsilon=2, domain_size=1000, functions=300),
    "olh of any text": _made("olh", epsilon=4, seed=7),
    "exact-olh": OptimalLocalHashing(epsilon=1, domain_size=50),
}


class Recorder(Stream):
    """Another stream, and what was read of it."""

    def __init__(self, source: Stream) -> None:
        self._source = source
        self.read_so_far = b""

    def read(self, count: int) -> bytes:
        found = bytes(self._source.read(count))
        self.read_so_far += found
        return found


class Bytes(Stream):
    """Bytes that were read before."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def read(self, count: int) -> bytes:
        assert count <= len(self.left), "more is read than the client reads"
        found, self.left = self.left[:count], self.left[count:]
        return found


class Ties(Stream):
    """Bytes that meet the top bytes of thresholds half of the time, then low bytes at, next to and far from them."""

    def __init__(self, seed: int, thresholds: list[int]) -> None:
        self._random = random.Random(seed)
        self._tops = sorted({0, 0x80, 0xFF, *(t >> 56 for t in thresholds)})
        self._lows = [(t + by) % 2**56 for t in thresholds for by in (-1, 0, 1)] or [0]

    def read(self, count: int) -> bytes:
        if count and count % 7 == 0 and self._random.random() < 0.8:
            return b"".join(self._random.choice(self._lows).to_bytes(7, "little") for _ in range(count // 7))
        return bytes(self._byte() for _ in range(count))

    def _byte(self) -> int:
        return self._random.choice(self._tops) if self._random.random() < 0.5 else self._random.randrange(256)


class Words(Stream):
    """Eight-byte words of which every other one is that before it: deviates that have to draw further digits."""

    def __init__(self, seed: int) -> None:
        self._random, self._last = random.Random(seed), bytes(8)

    def read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            if self._random.random() < 0.5:
                self._last = self._random.randbytes(8)
            found += self._last
        return found[:count]


def thresholds(program: Program) -> list[int]:
    """The probabilities that a program draws with."""
    found: set[int] = set()

    def look(expression: Any) -> None:
        if isinstance(expression, str) and expression.isdigit() and 2**53 <= int(expression) < 2**64:
            found.add(int(expression))
        for part in expression if isinstance(expression, list) else []:
            look(part)

    for _, expression in program.steps:
        look(expression)
    return sorted(found)


def answers_for(program: Program, seed: int) -> Iterator[Any]:
    """Answers without end: the ends, halves between two points of the grid, and what lies anywhere."""
    chance = random.Random(seed)
    given = program.input
    if given["kind"] == "answer":
        count = int(given["count"])
        yield from (0, count - 1)
        while True:
            yield chance.randrange(min(count, 10 ** chance.randrange(1, 20)))
    if given["kind"] == "word":
        while True:
            length = chance.randrange(1, 1 + given["length"])
            word = "".join(chance.choice("aeéz0 한") for _ in range(length)).encode()[:length].decode(errors="ignore")
            yield word if word.strip() else "b"
    lower, upper = float(given["lower"]), float(given["upper"])
    yield from (lower, upper, (lower + upper) / 2)
    while True:
        half = (chance.randrange(1000) + 0.5) / float(given["times"]) if "times" in given else 0.0
        yield chance.choice([chance.uniform(lower, upper), min(upper, lower + half)])


def streams(program: Program, seed: int) -> Iterator[Stream]:
    """Streams without end, in turns: seeded ones, ties, and words that repeat."""
    tops = thresholds(program)
    while True:
        yield from (SeededStream(seed), Ties(seed, tops), Words(seed))
        seed += 1


SECRET = bytes(range(32))
CONTEXT = "corners"


def corners_program() -> Program:
    """Rare cases: a word at its threshold, half of a set, divisions below zero, a table's floor."""
    (word,) = memo_words([SECRET], f"{CONTEXT} edge", np.array([3]), 1)[0].tolist()
    steps: dict[str, Any] = {
        "below_word": ["kept_bits", "edge", 3, str(word), 1],
        "at_word": ["kept_bits", "edge", 3, str(word + 1), 1],
        "top": ["kept_top", "edge", 3, 12],
        "half": ["subset", 8, 4],
        "more": ["subset", 7, 5],
        "none": ["bits", 0, 3],
        "always": ["bit", str(2**64)],
        # Often enough for one of them to tie, whose lower bits are all zero.
        **{f"coarse{place}": ["bit_at", ["add", str(2**63), 0]] for place in range(12)},
        "coarse": ["join", ["list", *(f"coarse{place}" for place in range(12))]],
        "one": ["below", 1],
        "wide": ["below", str(2**63)],
        "minus": ["sub", "value", 9],
        "quotient": ["add", ["div", "minus", 4], 8],
        "rest": ["mod", "minus", 4],
        "shifted": ["add", ["shr", "minus", 1], 16],
        "product": ["and", ["mul", "wide", "wide"], str(2**64 - 1)],
        "hash": ["polynomial", "a seed", 1, "value", str(2**61)],
        "distinct": ["floyd", ["list", "value", "value", 5, "value"], str(2**60)],
        "place": ["min", "value", 6],
        "total": ["add", ["at", "falling", "place"], ["add", ["at", "short", "place"], ["at", "few", "place"]]],
        "numbers": [
            "list", ["at", "below_word", 0], ["at", "at_word", 0], "top", ["join", "none"], "always", "coarse", "one",
            "quotient", "rest", "shifted",
        ],
    }  # fmt: skip
    parts = [
        ["uint", "half", 1, 4],
        ["uint", "more", 1, 5],
        ["uint", "wide", 8, 1],
        ["uint", "product", 8, 1],
        ["uint", "total", 8, 1],
        ["uint", "hash", 8, 1],
        ["uint", "distinct", 8, 4],
        ["float64", "product", "0.5", "0.25", 3],
    ]
    return Program(
        {"kind": "answer", "count": 16, "text": False},
        tuple(steps.items()),
        record([*parts, ["uint", "numbers", 2, 10]]),
        {
            "falling": falling("1234567890123.5", "0.9876543210987654", 16, 7, 6),
            "few": falling("1000000", "0.3337", 3, 0, 6),
            "short": falling("1000", "0.25", 16, 7, 6),
        },
        memo="value",
    )


def corners(count: int) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """The same of a program that no mechanism has, by the reference interpreter."""
    program = corners_program()
    answers, made = answers_for(program, 1), streams(program, 1)
    for _ in range(count):
        answer, stream = next(answers), Recorder(next(made))
        report = run(program, answer, StreamDraws(stream, SECRET, CONTEXT))
        yield answer, SECRET, stream.read_so_far, report


def vectors(name: str, count: int) -> Iterator[tuple[Any, bytes | None, bytes, bytes]]:
    """Answer, secret, what was read of the stream, and the report, as Python's own client makes it."""
    mechanism = CASES[name]
    program, chance = mechanism.client_program(), random.Random(name)
    answers, made = answers_for(program, len(name)), streams(program, len(name))
    for _ in range(count):
        answer, stream = next(answers), Recorder(next(made))
        secret = chance.randbytes(16 + chance.randrange(48)) if program.memo else None
        row = mechanism.randomize([answer], rng=stream, secrets=None if secret is None else [secret])
        yield answer, secret, stream.read_so_far, row.astype(row.dtype.newbyteorder("<")).tobytes()


def interpreted(name: str, answer: Any, secret: bytes | None, stream: Stream) -> bytes:
    """The same report, as the reference interpreter makes it of the program."""
    program, domain = _program(name), CASES[name].domain
    if isinstance(domain, WordDomain):
        answer = domain.number_of(answer)
    return run(program, read(program, answer), StreamDraws(stream, secret, CASES[name].fingerprint))


@cache
def _program(name: str) -> Program:
    """Its tables, of some of them tens of thousands of numbers, are worked out once."""
    return CASES[name].client_program()
