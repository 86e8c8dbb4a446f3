"""The reference interpreter of client programs, which runs them one report at a time, and packed bit reports.

All other interpreters agree with this one. It takes its draws from a `Draws`. `StreamDraws` draws from the stream and
the secret of one user. Exact verification instead takes every outcome of each step that draws
(`law.all_outcomes`).

Packed bit reports are uint8 rows, with column v in byte v // 8 at bit v % 8, and zero padding.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import operator
import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ..errors import NotSupported
from ..sampling import bernoulli, geometric, integers, laplace, normal, subsets
from ..sampling.memoisation import memo_words
from .client_program import OPERATORS, Ascending
from .hash_families import polynomial_hash
from .operator_forms import MOST, check_draw, check_ranges, check_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ..sampling import Stream
    from .client_program import Expression, Program


Vector: TypeAlias = "list[int]"


class Draws(Protocol):
    """The methods that run the operators that draw; each has the operator's name."""

    most_size: int
    """The most entries of a vector that is drawn."""

    def bit(self, t: int) -> int: ...
    def bits(self, t: int, n: int) -> Vector: ...
    def bit_at(self, t: int) -> int: ...
    def bits_each(self, vector: Vector) -> Vector: ...
    def below(self, b: int) -> int: ...
    def belows(self, b: int, n: int) -> Vector: ...
    def belows_from(self, b: int, n: int) -> Vector: ...
    def subset(self, m: int, n: int) -> Vector: ...
    def shuffle(self, vector: Vector) -> Vector: ...
    def geometric(self, t: int) -> int: ...
    def laplace(self, k: int) -> int: ...
    def normal(self, k: int) -> int: ...
    def kept_bits(self, label: str, v: int, t: int, n: int) -> Vector: ...
    def kept_belows(self, label: str, v: int, b: int, n: int) -> Vector: ...
    def kept_top(self, label: str, v: int, k: int) -> int: ...


def run(program: Program, value: int, draws: Draws) -> bytes:
    """Return the report of `value`, the number that `read` made of an answer."""
    known = known_of(program, value)
    for name, expression in program.steps:
        known[name] = evaluate(expression, known, draws)
    return laid_out(program, known)


def known_of(program: Program, value: int) -> dict[str, Any]:
    """Return the names that are known before the first step, with their values."""
    return {"value": value, **program.table_values}


def laid_out(program: Program, known: dict[str, Any]) -> bytes:
    """Return the report, once all steps are known."""
    return b"".join([_part(part, known) for part in program.report["parts"]])


def read(program: Program, answer: Any) -> int:
    """Return the whole number that an answer maps to. The caller has checked that the answer is in the domain."""
    given = program.input
    if given["kind"] != "number":
        return int(answer)
    number, lower, last = float(answer), float(given["lower"]), int(given["last"])
    if "times" in given:
        point = int(np.rint((number - lower) * float(given["times"])))
    else:
        point = int(np.floor((number - lower) / float(given["step"])))
    return min(max(point, 0), last)


# -- expressions -----------------------------------------------------------------------------------------------------


def evaluate(expression: Expression, known: dict[str, Any], draws: Any) -> Any:
    """Return the value of a step. An operator that draws is always the outermost one, and `draws` runs it."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return known[expression] if expression in known else int(expression)
    name, *arguments = expression
    called = OPERATORS[name]
    label = arguments[:1] if called.labelled else []
    given = [evaluate(argument, known, draws) for argument in arguments[len(label) :]]
    if called.kind in ("draw", "memo"):
        check_draw(name, given, draws.most_size)
        return getattr(draws, name)(*label, *given)
    check_ranges(name, given)
    found = _each(_EACH[name], given) if called.kind == "each" else _WHOLE[name](*label, *given)
    if called.kind == "each" or name in ("join", "floyd"):
        check_result(found)
    return found


def _each(function: Callable[..., int], given: list[Any]) -> Any:
    sizes = {len(each) for each in given if isinstance(each, list)}
    if not sizes:
        return function(*given)
    if len(sizes) > 1:
        raise ValueError(f"vectors must have one length: got {sorted(sizes)}")
    (size,) = sizes
    columns = [each if isinstance(each, list) else [each] * size for each in given]
    return list(map(function, *columns))


def _at(vector: Sequence[Any], place: int) -> Any:
    return vector[_within(place, len(vector))]


def _put(vector: Sequence[int], place: int, number: int) -> Vector:
    put = list(vector)
    put[_within(place, len(put))] = number
    return put


def _within(place: int, size: int) -> int:
    """Return `place` after checking that it is from 0 to `size` - 1; a negative place does not count from the end."""
    if not 0 <= place < size:
        raise ValueError(f"the place must be from 0 to {size - 1}: got {place}")
    return place


def _rank(vector: Vector, number: int) -> int:
    if not isinstance(vector, Ascending) and any(one > other for one, other in pairwise(vector)):
        raise ValueError("rank must have a vector that ascends")
    return bisect.bisect_right(vector, number)


def _floyd(vector: Vector, least: int) -> Vector:
    chosen: Vector = []
    before: set[int] = set()
    for place, drawn in enumerate(vector):
        chosen.append(least - 1 + place if drawn in before else drawn)
        before.add(chosen[-1])
    return chosen


def _bloom(seed: str, cohort: int, value: int, size: int, hashes: int) -> Vector:
    digest = hashlib.shake_128(f"ldp-budget bloom 1:{seed}:{cohort}:{value}".encode()).digest(8 * hashes)
    bits = [0] * size
    for (word,) in struct.iter_unpack("<Q", digest):
        bits[word % size] = 1
    return bits


_EACH: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.floordiv,
    "mod": operator.mod,
    "shr": operator.rshift,
    "shl": operator.lshift,
    "and": operator.and_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "ge": lambda a, b: int(a >= b),
    "eq": lambda a, b: int(a == b),
    "where": lambda c, a, b: a if c else b,
    "parity": lambda a: a.bit_count() & 1,
}
_WHOLE: dict[str, Callable[..., Any]] = {
    "list": lambda *numbers: list(numbers),
    "at": _at,
    "put": _put,
    "sort": sorted,
    "first": lambda bits: bits.index(1) if 1 in bits else 0,
    "rank": _rank,
    "onehot": lambda place, size: _put([0] * size, place, 1),
    "join": lambda bits: sum(bit << place for place, bit in enumerate(bits)),
    "floyd": _floyd,
    "polynomial": polynomial_hash,
    "bloom": _bloom,
}


# -- the report ------------------------------------------------------------------------------------------------------

_SIZES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The format characters of `struct` for whole numbers, by their size in bytes."""


def _part(part: list[Any], known: dict[str, Any]) -> bytes:
    kind, name, *more = part
    found = known[name]
    if kind == "packed":
        return np.packbits(np.array(_listed(found, more[0], 1), np.uint8), bitorder="little").tobytes()
    if kind == "uint":
        size, count = more
        numbers = _listed(found, count, 256**size - 1)
        if size in _SIZES:
            return struct.pack(f"<{count}{_SIZES[size]}", *numbers)
        return b"".join([number.to_bytes(size, "little") for number in numbers])
    origin, step, plus = more
    try:
        number = float(origin) + float(found + int(plus)) * float(step)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a report must have a number that a double holds: got a larger one")
    return struct.pack("<d", number)


def _listed(found: int | Vector, count: int, largest: int) -> Vector:
    """Return the numbers of a part of the report, after checking that there are `count`, each from 0 to `largest`."""
    numbers = found if isinstance(found, list) else [found]
    if len(numbers) != count or not 0 <= min(numbers, default=0) <= max(numbers, default=0) <= largest:
        raise ValueError(f"a report must have {count} numbers from 0 to {largest}: got {numbers[:9]}")
    return numbers


# -- the stream and the secret of one user ---------------------------------------------------------------------------


class StreamDraws:
    """Draws from a stream of random bytes, and from a secret under `context`, a mechanism's fingerprint."""

    most_size = MOST

    def __init__(self, stream: Stream, secret: bytes | None = None, context: str = "") -> None:
        self._stream = stream
        self._secret = secret
        self._context = context

    def bit(self, t: int) -> int:
        return self.bits(t, 1)[0]

    def bits(self, t: int, n: int) -> Vector:
        return _plain(bernoulli(self._stream, t, n).astype(np.uint8))

    def bit_at(self, t: int) -> int:
        return int(bernoulli(self._stream, np.array([t], np.uint64), 1)[0])

    def bits_each(self, vector: Vector) -> Vector:
        return [self.bit(t) for t in vector]

    def below(self, b: int) -> int:
        return self.belows(b, 1)[0]

    def belows(self, b: int, n: int) -> Vector:
        return _plain(integers(self._stream, b, n))

    def belows_from(self, b: int, n: int) -> Vector:
        return [self.below(b + place) for place in range(n)]

    def subset(self, m: int, n: int) -> Vector:
        return _plain(subsets(self._stream, m, n, 1)[0])

    def shuffle(self, vector: Vector) -> Vector:
        shuffled = list(vector)
        for last in range(len(shuffled) - 1, 0, -1):
            chosen = self.below(last + 1)
            shuffled[chosen], shuffled[last] = shuffled[last], shuffled[chosen]
        return shuffled

    def geometric(self, t: int) -> int:
        return int(geometric(self._stream, t, 1)[0])

    def laplace(self, k: int) -> int:
        return int(laplace(self._stream, k, 1)[0])

    def normal(self, k: int) -> int:
        return int(normal(self._stream, k, 1)[0])

    def _words(self, label: str, v: int, n: int) -> Vector:
        return _plain(memo_words([self._secret], f"{self._context} {label}", np.array([v]), n)[0])

    def kept_bits(self, label: str, v: int, t: int, n: int) -> Vector:
        return [int(word < t) for word in self._words(label, v, n)]

    def kept_belows(self, label: str, v: int, b: int, n: int) -> Vector:
        return [word % (b + place) for place, word in enumerate(self._words(label, v, n))]

    def kept_top(self, label: str, v: int, k: int) -> int:
        return self._words(label, v, 1)[0] >> (64 - k)


def _plain(numbers: Any) -> Vector:
    found: Vector = numbers.tolist()
    return found


# -- packed bit reports ----------------------------------------------------------------------------------------------


_BLOCK_BYTES = 1 << 17
_HIGHEST = 255
"""The most rows whose ones fit in a byte. Adding bytes to bytes is several times faster than adding them to words."""


def as_reports(reports: Any) -> NDArray[Any]:
    """Return `reports` as an array of any type. Raises `NotSupported` for rows that have different lengths."""
    try:
        return np.asarray(reports)
    except ValueError:
        raise NotSupported("reports must be an array: got rows of different lengths") from None


def pack_rows(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack each row of a boolean array (n, columns); the result has shape (n, ceil(columns/8))."""
    rows, columns = bits.shape
    if columns % 8:
        bits = np.pad(bits, ((0, 0), (0, -columns % 8)))
    # Packing whole bytes as one flat array is several times faster than packing row by row.
    return np.packbits(bits, bitorder="little").reshape(rows, -(-columns // 8))


def bit_of(reports: Any, column: int) -> NDArray[np.int64]:
    """Return the bit of one column in each row of packed reports, shape (n,)."""
    bits: NDArray[np.int64] = (as_reports(reports)[:, column >> 3] >> (column & 7) & 1).astype(np.int64)
    return bits


def check_rows(reports: Any, columns: int) -> NDArray[np.uint8]:
    """Return `reports` as an array. Raises the errors of `column_sums`, but sums nothing."""
    rows = _packed_rows(reports, -(-columns // 8))
    if columns % 8 and (rows[:, -1] >> (columns % 8)).any():
        raise _set_padding(columns)
    return rows


def _packed_rows(reports: Any, width: int) -> NDArray[np.uint8]:
    rows = as_reports(reports)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != width:
        raise NotSupported(
            f"packed reports must be uint8 of shape (n, {width}): got {rows.dtype} of shape {rows.shape}"
        )
    return rows


def _set_padding(columns: int) -> NotSupported:
    return NotSupported(f"packed reports must have {columns} bits: got padding bits that are set")


def column_sums(reports: Any, columns: int) -> NDArray[np.int64]:
    """Return the number of rows with each of the `columns` bits set, shape (columns,).

    Raises `NotSupported` where `reports` is not a uint8 array (n, ceil(columns/8)) with zero padding.
    """
    width = -(-columns // 8)
    rows = _packed_rows(reports, width)
    sums = np.zeros(8 * width, dtype=np.int64)
    for block in _stacks(rows):
        ones = np.unpackbits(block, axis=1, bitorder="little").sum(axis=0, dtype=np.uint8)
        sums += ones.reshape(-1, 8 * width).sum(axis=0, dtype=np.int64)
    if sums[columns:].any():
        raise _set_padding(columns)
    return sums[:columns]


def _stacks(rows: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """Yield all rows in blocks that fit the cache when unpacked.

    A block has at most `_HIGHEST` rows, and its width is a multiple of the rows' width.
    """
    count, width = rows.shape
    start = 0
    while start < count:
        height = min(_HIGHEST, count - start, max(1, _BLOCK_BYTES // width))
        stacks = max(1, min((count - start) // height, _BLOCK_BYTES // (height * width)))
        end = start + height * stacks
        yield rows[start:end].reshape(height, stacks * width)
        start = end
