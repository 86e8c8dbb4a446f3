"""Three-wise independent hash functions, drawn by a public seed (document 002, Definition 3).

Function j is a random polynomial of degree 2 modulo P = 2**61 - 1 (Wegman and Carter 1981),

    h_j(v) = floor(width · y / 2**61),   y = (a_j·x_v + b_j)·x_v + c_j mod P,

at the point x_v, a digest of the value's text. Digests and coefficients are BLAKE2b keyed by the seed. Over the draw
of the coefficients, a function's outputs at three values of different points are independent and uniform, up to
width·2**-58; two values share a point with probability 2**-61.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

PRIME = 2**61 - 1
_BITS = 61
_HALF = 31


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

    def __call__(self, functions: NDArray[np.int64], points: Words) -> NDArray[np.int64]:
        """h_j(v) for the numbers j of `functions` and the x_v of `points`, which broadcast."""
        a, b, c = self.coefficients[:, functions]
        return _scaled(_whole(_fma(_fma(a, points, b), points, c)), self.width)


def _field_elements(blank: Any, texts: Iterable[bytes], each: int) -> Words:
    """`each` field elements from the digest of every text, shape (texts, each)."""
    import numpy as np

    digests = bytearray()
    for text in texts:
        digest = blank.copy()
        digest.update(text)
        digests += digest.digest()
    return (np.frombuffer(digests, "<u8").astype(np.uint64) % np.uint64(PRIME)).reshape(-1, each)


def _fma(x: Words, y: Words, z: Words) -> Words:
    """x·y + z mod P, for y and z below P and x below 2**61 + 8; the result is below 2**61 + 8, not below P."""
    import numpy as np

    half, low = np.uint64(_HALF), np.uint64(2**_HALF - 1)
    x1, x0 = x >> half, x & low
    y1, y0 = y >> half, y & low
    middle = x1 * y0 + x0 * y1
    # 2**62 = 2 and 2**61 = 1 mod P; the five terms stay below 2**64 together.
    total = ((x1 * y1) << np.uint64(1)) + x0 * y0 + z
    total += middle >> np.uint64(_BITS - _HALF)
    total += (middle & np.uint64(2 ** (_BITS - _HALF) - 1)) << half
    return (total & np.uint64(PRIME)) + (total >> np.uint64(_BITS))


def _whole(x: Words) -> Words:
    """x mod P for x below 2P."""
    import numpy as np

    return np.where(x >= np.uint64(PRIME), x - np.uint64(PRIME), x)


def _scaled(x: Words, width: int) -> NDArray[np.int64]:
    """floor(x·width / 2**61) for x below 2**61: the intervals of each cell differ by one point at most."""
    import numpy as np

    half, low = np.uint64(_HALF), np.uint64(2**_HALF - 1)
    factor = np.uint64(width)
    carry = ((x & low) * factor) >> half
    return (((x >> half) * factor + carry) >> np.uint64(_BITS - _HALF)).view(np.int64)
