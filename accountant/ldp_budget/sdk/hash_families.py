"""Public hash functions of many values at once: polynomials over a prime field, and Bloom filters.

The functions of a `HashFamily` are three-wise independent and drawn by a public seed (Jeong, Hong and Seo 2020,
Definition 3). Function j is a random polynomial of degree 2 modulo P = 2**61 - 1 (Wegman and Carter 1981),

    h_j(v) = floor(width · y / 2**61),   y = (a_j·x_v + b_j)·x_v + c_j mod P,

at the point x_v, a digest of the value's text. Digests and coefficients are BLAKE2b keyed by the seed. Over the draw
of the coefficients, a function's outputs at three values of different points are independent and uniform, up to
width·2**-58. Two values share a point with probability 2**-61.

These are the operators `polynomial` and `bloom` of client programs. One value is hashed by `polynomial_hash`.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

PRIME = 2**61 - 1
_BITS = 61
_HALF = 31
_LOW = 2**_HALF - 1


class HashFamily:
    """The functions h_0..h_{count-1} of `seed`, from values to range(width).

    Two families of one seed agree in the points of values. If their width is the same, they also agree in the
    functions that both have. Parameters: `seed`, a number or text; `count` >= 1; `width` from 1 to 2**31.
    """

    def __init__(self, seed: int | str, count: int, width: int) -> None:
        self.count = count
        self.width = width
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"ldp-budget seed").digest()

    @functools.cached_property
    def coefficients(self) -> Words:
        """(a_j, b_j, c_j) of every function, shape (3, count)."""
        return self._coefficients_of(range(self.count))

    def _coefficients_of(self, functions: Iterable[int]) -> Words:
        blank = hashlib.blake2b(key=self._key, digest_size=24, person=b"coefficients")
        indices = (j.to_bytes(8, "little") for j in functions)
        return _field_elements(blank, indices, 3).T.copy()

    def points(self, values: Iterable[Any]) -> Words:
        """Return x_v of every value, a digest of `str(v)`, shape (len(values),). About a microsecond each."""
        blank = hashlib.blake2b(key=self._key, digest_size=8, person=b"value")
        plain = values.tolist() if hasattr(values, "tolist") else values
        return _field_elements(blank, (str(value).encode() for value in plain), 1).reshape(-1)

    def points_of(self, values: NDArray[np.int64]) -> Words:
        """Return the points of an array in which values repeat: each is digested once."""
        distinct, place = np.unique(values, return_inverse=True)
        return self.points(distinct)[place]

    def cells_of(self, value: int) -> NDArray[np.int64]:
        """Return the cell of a value under each of the functions, shape (count,)."""
        return self(np.arange(self.count), self.points([value]))

    def share_apart(self, first: int, second: int) -> Fraction:
        """Return the fraction of the functions under which two values do not collide."""
        return Fraction(int(np.count_nonzero(self.cells_of(first) != self.cells_of(second))), self.count)

    def least_colliding(self, values: int) -> tuple[int, int]:
        """Return the two of the first so many values that collide under the fewest functions."""
        cells = [self.cells_of(value) for value in range(values)]
        pairs = list(combinations(range(values), 2))
        apart = [int(np.count_nonzero(cells[first] != cells[second])) for first, second in pairs]
        return pairs[apart.index(max(apart))]

    def __call__(self, functions: NDArray[np.int64], points: Words) -> NDArray[np.int64]:
        """Return h_j(v) for the numbers j of `functions` and the x_v of `points`, which broadcast."""
        return self._hashed(self.coefficients, functions, points)

    def of_few(self, functions: NDArray[np.int64], points: Words) -> NDArray[np.int64]:
        """Return the same from the coefficients of these functions alone, if there are few of them, shape (n,)."""
        distinct, place = np.unique(functions, return_inverse=True)
        return self._hashed(self._coefficients_of(distinct.tolist()), place, points)

    def _hashed(self, coefficients: Words, functions: NDArray[np.int64], points: Words) -> NDArray[np.int64]:
        functions, points = np.broadcast_arrays(functions, points)
        a, b, c = (row.take(functions) for row in coefficients)
        high, low = points >> np.uint64(_HALF), points & np.uint64(_LOW)
        y = _multiply_add(_multiply_add(a, high, low, b), high, low, c)
        y -= np.uint64(PRIME) * (y >= np.uint64(PRIME))
        return _scaled(y, self.width)


def _field_elements(blank: Any, texts: Iterable[bytes], each: int) -> Words:
    """Return `each` field elements from the digest of every text, shape (texts, each)."""
    digests = bytearray()
    for text in texts:
        digest = blank.copy()
        digest.update(text)
        digests += digest.digest()
    return (np.frombuffer(digests, "<u8").astype(np.uint64) % np.uint64(PRIME)).reshape(-1, each)


def _multiply_add(x: Words, high: Words, low: Words, z: Words) -> Words:
    """Return x·y + z mod P, up to a small multiple: below 2**61 + 8, as x may be. y is high·2**31 + low; y, z < P.

    In place wherever possible: half the time goes to memory otherwise.
    """
    x_high, total = x >> np.uint64(_HALF), x & np.uint64(_LOW)
    middle = x_high * low
    middle += total * high
    # x·y = 2**62·x_high·high + 2**31·middle + (low parts); 2**61 is 1 mod P, and the terms stay below 2**64 together.
    x_high *= high
    x_high <<= np.uint64(1)
    total *= low
    total += x_high
    total += z
    total += middle >> np.uint64(_BITS - _HALF)
    middle &= np.uint64(2 ** (_BITS - _HALF) - 1)
    middle <<= np.uint64(_HALF)
    total += middle
    overflow = total >> np.uint64(_BITS)
    total &= np.uint64(PRIME)
    total += overflow
    return total


def _scaled(y: Words, width: int) -> NDArray[np.int64]:
    """Return floor(width·y / 2**61) for y < 2**61 and width <= 2**31."""
    factor = np.uint64(width)
    low = y & np.uint64(_LOW)
    low *= factor
    low >>= np.uint64(_HALF)
    high = y >> np.uint64(_HALF)
    high *= factor
    high += low
    high >>= np.uint64(_BITS - _HALF)
    return high.view(np.int64)


def polynomial_hash(seed: str, function: int, value: int, width: int) -> int:
    """Return h_j(v) of one value, for any width; `function` is j, below 2**64."""
    key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"ldp-budget seed").digest()
    point = hashlib.blake2b(str(value).encode(), key=key, digest_size=8, person=b"value").digest()
    index = function.to_bytes(8, "little")
    words = hashlib.blake2b(index, key=key, digest_size=24, person=b"coefficients").digest()
    x, a, b, c = (word % PRIME for word in struct.unpack("<4Q", point + words))
    y: int = ((a * x + b) * x + c) % PRIME
    return width * y >> _BITS


def _bloom_digest(seed: int | str, cohort: int, value: int, hashes: int) -> bytes:
    """Return the words of a filter's positions."""
    return hashlib.shake_128(f"ldp-budget bloom 1:{seed}:{cohort}:{value}".encode()).digest(8 * hashes)


_kept_bloom_digest = functools.lru_cache(maxsize=1 << 14)(_bloom_digest)


@dataclass(frozen=True)
class BloomFilters:
    """The filters of values: `hashes` of `bits` positions each, under functions that a seed and a cohort name.

    The l-th position is the l-th 64-bit little-endian word, modulo `bits`, of SHAKE-128 over the text
    "ldp-budget bloom 1:SEED:COHORT:VALUE" in decimal. Positions may coincide; then fewer than h bits are set.
    """

    bits: int
    hashes: int
    seed: int | str

    def filters(self, values: NDArray[np.int64], cohorts: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the filter of each value under its cohort's functions, as packed bits, shape (n, ceil(bits/8))."""
        rows = np.zeros((len(values), -(-self.bits // 8)), dtype=np.uint8)
        index = np.arange(len(values))
        for position in self._positions(values, cohorts).T:
            rows[index, position >> 3] |= (1 << (position & 7)).astype(np.uint8)
        return rows

    def rows(self, values: NDArray[np.int64], cohorts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the filter of each value under its cohort's functions, shape (n, bits)."""
        packed = self.filters(values, cohorts)
        return np.unpackbits(packed, axis=1, count=self.bits, bitorder="little").view(np.bool_)

    def _positions(self, values: NDArray[np.int64], cohorts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions of shape (n, hashes). Each pair of value and cohort is hashed once."""
        families = int(cohorts.max(initial=0)) + 1
        codes, inverse = np.unique(values * families + cohorts, return_inverse=True)
        pairs = (divmod(code, families) for code in codes.tolist())
        # A column comes in blocks. Where answers repeat within one, they repeat in the next one too.
        digest = _kept_bloom_digest if len(codes) < len(values) else _bloom_digest
        digests = [digest(self.seed, cohort, value, self.hashes) for value, cohort in pairs]
        words = np.frombuffer(b"".join(digests), "<u8").reshape(-1, self.hashes)
        positions: NDArray[np.int64] = (words % np.uint64(self.bits)).astype(np.int64)[inverse]
        return positions
