"""Three-wise independent hash functions, drawn by a public seed (Jeong, Hong and Seo 2020, Definition 3).

Function j is a random polynomial of degree 2 modulo P = 2**61 - 1 (Wegman and Carter 1981),

    h_j(v) = floor(width · y / 2**61),   y = (a_j·x_v + b_j)·x_v + c_j mod P,

at the point x_v, a digest of the value's text. Digests and coefficients are BLAKE2b keyed by the seed. Over the draw
of the coefficients, a function's outputs at three values of different points are independent and uniform, up to
width·2**-58; two values share a point with probability 2**-61.
"""

from __future__ import annotations

import functools
import hashlib
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

    Two families of one seed agree in the points of values and, where their width is the same, in the functions
    that both have. Parameters: `seed`, a number or text; `count` >= 1; `width` from 1 to 2**31.
    """

    def __init__(self, seed: int | str, count: int, width: int) -> None:
        self.count = count
        self.width = width
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"ldp-budget seed").digest()

    @functools.cached_property
    def coefficients(self) -> Words:
        """(a_j, b_j, c_j) of every function, shape (3, count)."""
        blank = hashlib.blake2b(key=self._key, digest_size=24, person=b"coefficients")
        indices = (j.to_bytes(8, "little") for j in range(self.count))
        return _field_elements(blank, indices, 3).T.copy()

    def points(self, values: Iterable[Any]) -> Words:
        """x_v of every value, a digest of `str(v)`, shape (len(values),). About a microsecond each."""
        blank = hashlib.blake2b(key=self._key, digest_size=8, person=b"value")
        plain = values.tolist() if hasattr(values, "tolist") else values
        return _field_elements(blank, (str(value).encode() for value in plain), 1).reshape(-1)

    def points_of(self, values: NDArray[np.int64]) -> Words:
        """The same for an array in which values repeat: each is digested once."""
        distinct, place = np.unique(values, return_inverse=True)
        return self.points(distinct)[place]

    def cells_of(self, value: int) -> NDArray[np.int64]:
        """Where each of the functions takes a value, shape (count,)."""
        return self(np.arange(self.count), self.points([value]))

    def share_apart(self, first: int, second: int) -> Fraction:
        """The share of the functions under which two values do not collide."""
        return Fraction(int(np.count_nonzero(self.cells_of(first) != self.cells_of(second))), self.count)

    def least_colliding(self, values: int) -> tuple[int, int]:
        """Of the first so many values the two that collide under the fewest functions."""
        cells = [self.cells_of(value) for value in range(values)]
        pairs = list(combinations(range(values), 2))
        apart = [int(np.count_nonzero(cells[first] != cells[second])) for first, second in pairs]
        return pairs[apart.index(max(apart))]

    def __call__(self, functions: NDArray[np.int64], points: Words) -> NDArray[np.int64]:
        """h_j(v) for the numbers j of `functions` and the x_v of `points`, which broadcast."""
        functions, points = np.broadcast_arrays(functions, points)
        a, b, c = (row.take(functions) for row in self.coefficients)
        high, low = points >> np.uint64(_HALF), points & np.uint64(_LOW)
        y = _multiply_add(_multiply_add(a, high, low, b), high, low, c)
        y -= np.uint64(PRIME) * (y >= np.uint64(PRIME))
        return _scaled(y, self.width)


def _field_elements(blank: Any, texts: Iterable[bytes], each: int) -> Words:
    """`each` field elements from the digest of every text, shape (texts, each)."""
    digests = bytearray()
    for text in texts:
        digest = blank.copy()
        digest.update(text)
        digests += digest.digest()
    return (np.frombuffer(digests, "<u8").astype(np.uint64) % np.uint64(PRIME)).reshape(-1, each)


def _multiply_add(x: Words, high: Words, low: Words, z: Words) -> Words:
    """x·y + z mod P, or that and a little more: below 2**61 + 8, as x may be. y is high·2**31 + low; y, z < P.

    In place wherever it can be: half the time goes to memory otherwise.
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
    """floor(width·y / 2**61) for y < 2**61 and width <= 2**31."""
    factor = np.uint64(width)
    low = y & np.uint64(_LOW)
    low *= factor
    low >>= np.uint64(_HALF)
    high = y >> np.uint64(_HALF)
    high *= factor
    high += low
    high >>= np.uint64(_BITS - _HALF)
    return high.view(np.int64)
