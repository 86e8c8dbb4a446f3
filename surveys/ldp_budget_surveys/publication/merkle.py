"""Merkle trees of RFC 6962: roots, and paths of inclusion proofs."""

from __future__ import annotations

from bisect import bisect_left
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Sequence


_SIZE = 32
_BLOCK = 2**12
"""A power of 2, so that a block of leaves is a subtree."""


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\0" + leaf).digest()


def root_of(hashes: Sequence[bytes]) -> bytes:
    """Return the root of a tree with these leaf hashes."""
    if not hashes:
        return sha256(b"").digest()
    if len(hashes) > _BLOCK:  # whole subtrees first, so that memory holds no second copy of the leaves
        hashes = [root_of(hashes[start : start + _BLOCK]) for start in range(0, len(hashes), _BLOCK)]
    while len(hashes) > 1:
        hashes = _above(hashes)
    return hashes[0]


def path_of(hashes: Sequence[bytes], index: int) -> bytes:
    """Return the path of the inclusion proof of a leaf: the hashes next to it, from the leaves to the root."""
    return Tree.of(b"".join(hashes)).path(index)


class Tree:
    """All levels of a tree, one after another, for many proofs: about 64 bytes for each leaf.

    Parameters:
        file: the levels, from the leaves to the root, as `levels_of` returns them.
        leaves: the number of leaves.
    """

    def __init__(self, file: BinaryIO, leaves: int) -> None:
        self._file = file
        self._levels: list[tuple[int, int]] = []
        start, count = 0, leaves
        while True:
            self._levels.append((start, count))
            start, count = start + count, -(-count // 2)
            if self._levels[-1][1] <= 1:
                break

    @classmethod
    def of(cls, leaves: bytes) -> Tree:
        """Return the tree of leaf hashes, in memory."""
        return cls(BytesIO(levels_of(leaves)), len(leaves) // _SIZE)

    def index(self, leaf: bytes) -> int | None:
        """Return the place of a leaf hash among leaves in ascending order; None if there is none."""
        place = bisect_left(range(self._levels[0][1]), leaf, key=lambda at: self._hash(0, at))
        return place if self._hash(0, place) == leaf else None

    def path(self, index: int) -> bytes:
        """Return the path of the inclusion proof of a leaf. A level with no hash next to it adds nothing."""
        return b"".join(self._hash(level, index >> level ^ 1) for level in range(len(self._levels) - 1))

    def _hash(self, level: int, at: int) -> bytes:
        """Return a hash; after the last one, nothing."""
        start, count = self._levels[level]
        if at >= count:
            return b""
        self._file.seek((start + at) * _SIZE)
        return self._file.read(_SIZE)


def levels_of(leaves: bytes) -> bytes:
    """Return all levels of the tree of these leaf hashes, from the leaves to the root."""
    levels = [leaves]
    hashes: Sequence[bytes] = [leaves[at : at + _SIZE] for at in range(0, len(leaves), _SIZE)]
    while len(hashes) > 1:
        hashes = _above(hashes)
        levels.append(b"".join(hashes))
    return b"".join(levels)


def _above(hashes: Sequence[bytes]) -> list[bytes]:
    pairs = iter(hashes)
    above = [sha256(b"\1" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
    return [*above, hashes[-1]] if len(hashes) % 2 else above
