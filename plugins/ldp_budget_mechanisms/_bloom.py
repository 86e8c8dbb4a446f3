"""Bloom filters: each cohort has hash functions of its own, and a value sets the h bits they name out of k."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class BloomFamily:
    """The hash functions of each cohort: `hashes` of them, to `bits` positions, drawn by a public seed."""

    cohorts: int
    bits: int
    hashes: int
    seed: int

    def filters(self, values: NDArray[np.int64], cohorts: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The filter of each value under its cohort's functions, as packed bits, shape (n, ceil(bits/8)).

        The l-th position is the l-th 64-bit little-endian word, modulo `bits`, of SHAKE-128 over the text
        "ldp-budget bloom 1:SEED:COHORT:VALUE" in decimal. Positions may coincide; then fewer than h bits are set.
        """
        rows = np.zeros((len(values), -(-self.bits // 8)), dtype=np.uint8)
        index = np.arange(len(values))
        for position in self._positions(values, cohorts).T:
            rows[index, position >> 3] |= (1 << (position & 7)).astype(np.uint8)
        return rows

    def _positions(self, values: NDArray[np.int64], cohorts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Shape (n, hashes). Each pair of value and cohort is hashed once."""
        families = int(cohorts.max(initial=0)) + 1
        codes, inverse = np.unique(values * families + cohorts, return_inverse=True)
        digests = [
            hashlib.shake_128(b"ldp-budget bloom 1:%d:%d:%d" % (self.seed, code % families, code // families)).digest(
                8 * self.hashes
            )
            for code in codes.tolist()
        ]
        words = np.frombuffer(b"".join(digests), "<u8").reshape(-1, self.hashes)
        positions: NDArray[np.int64] = (words % np.uint64(self.bits)).astype(np.int64)[inverse]
        return positions

    def of_candidates(self, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
        """The filter of every candidate in every cohort as zeros and ones, shape (cohorts, bits, M)."""
        every = np.arange(self.cohorts).repeat(len(candidates))
        rows = self.filters(np.tile(candidates, self.cohorts), every)
        bits = np.unpackbits(rows, axis=1, count=self.bits, bitorder="little")
        filters = bits.reshape(self.cohorts, len(candidates), self.bits)
        return filters.transpose(0, 2, 1).astype(np.float64, order="C")

    def alone(self, first: int, second: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The bits that only the first value sets, and that only the second does, each of shape (cohorts, bits)."""
        own, other = (self._bits(np.full(self.cohorts, value), np.arange(self.cohorts)) for value in (first, second))
        return own & ~other, other & ~own

    def furthest_apart(self, values: int, cohorts: int) -> tuple[int, int]:
        """Of the first values the two whose filters differ in the most bits, in any of the first cohorts."""
        apart = np.zeros((values, values))
        for cohort in range(min(cohorts, self.cohorts)):
            bits = self._bits(np.arange(values), np.full(values, cohort))
            # Of many bits few are set by any of the values.
            filters = bits[:, bits.any(axis=0)].astype(np.float64)
            held = filters.sum(axis=1)
            np.maximum(apart, held[:, np.newaxis] + held - 2 * (filters @ filters.T), out=apart)
        first, second = divmod(int(apart.argmax()), values)
        return first, second

    def _bits(self, values: NDArray[np.int64], cohorts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The filter of each value under its cohort's functions, shape (n, bits)."""
        rows = self.filters(values, cohorts)
        return np.unpackbits(rows, axis=1, count=self.bits, bitorder="little").view(np.bool_)
