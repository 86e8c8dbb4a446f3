"""Bloom filters: each cohort has hash functions of its own, and a value sets the h bits they name out of k."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def bloom_filters(
    values: NDArray[np.int64], cohorts: NDArray[np.int64], *, bits: int, hashes: int, seed: int
) -> NDArray[np.uint8]:
    """The filter of each value under its cohort's hash functions, as packed bits, shape (n, ceil(bits/8)).

    The l-th position is the l-th 64-bit little-endian word, modulo `bits`, of SHAKE-128 over the text
    "ldp-budget bloom 1:SEED:COHORT:VALUE" in decimal. Positions may coincide; then fewer than h bits are set.
    """
    import numpy as np

    positions = _positions(values, cohorts, bits, hashes, seed)
    rows = np.zeros((len(values), -(-bits // 8)), dtype=np.uint8)
    index = np.arange(len(values))
    for position in positions.T:
        rows[index, position >> 3] |= (1 << (position & 7)).astype(np.uint8)
    return rows


def candidate_filters(
    candidates: NDArray[np.int64], cohorts: int, *, bits: int, hashes: int, seed: int
) -> NDArray[np.float64]:
    """The filter of every candidate in every cohort as zeros and ones, shape (cohorts, bits, M)."""
    import numpy as np

    every = np.arange(cohorts).repeat(len(candidates))
    rows = bloom_filters(np.tile(candidates, cohorts), every, bits=bits, hashes=hashes, seed=seed)
    filters = np.unpackbits(rows, axis=1, count=bits, bitorder="little").reshape(cohorts, len(candidates), bits)
    return filters.transpose(0, 2, 1).astype(np.float64, order="C")


def _positions(
    values: NDArray[np.int64], cohorts: NDArray[np.int64], bits: int, hashes: int, seed: int
) -> NDArray[np.int64]:
    """Shape (n, hashes). Each pair of value and cohort is hashed once."""
    import numpy as np

    families = int(cohorts.max(initial=0)) + 1
    codes, inverse = np.unique(values * families + cohorts, return_inverse=True)
    digests = [
        hashlib.shake_128(b"ldp-budget bloom 1:%d:%d:%d" % (seed, code % families, code // families)).digest(
            8 * hashes
        )
        for code in codes.tolist()
    ]
    words = np.frombuffer(b"".join(digests), "<u8").reshape(-1, hashes)
    positions: NDArray[np.int64] = (words % np.uint64(bits)).astype(np.int64)[inverse]
    return positions
