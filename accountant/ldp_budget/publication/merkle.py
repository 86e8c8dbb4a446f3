"""Merkle trees of RFC 6962: roots, and paths of inclusion proofs."""

from __future__ import annotations

from bisect import bisect_left
from hashlib import sha256
from typing import TYPE_CHECKING

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
    return Tree(b"".join(hashes)).path(index)


class Tree:
    """All levels of a tree, for many proofs: 64 bytes for each leaf."""

    def __init__(self, leaves: bytes) -> None:
        self._levels = [leaves]
        hashes: Sequence[bytes] = [leaves[at : at + _SIZE] for at in range(0, len(leaves), _SIZE)]
        while len(hashes) > 1:
            hashes = _above(hashes)
            self._levels.append(b"".join(hashes))

    def index(self, leaf: bytes) -> int | None:
        """Return the place of a leaf hash among leaves in ascending order; None if there is none."""
        count = len(self._levels[0]) // _SIZE
        place = bisect_left(range(count), leaf, key=lambda at: self._hash(0, at))
        return place if self._hash(0, place) == leaf else None

    def path(self, index: int) -> bytes:
        """Return the path of the inclusion proof of a leaf. A level with no hash next to it adds nothing."""
        return b"".join(self._hash(level, index >> level ^ 1) for level in range(len(self._levels) - 1))

    def _hash(self, level: int, at: int) -> bytes:
        """Return a hash; after the last one, nothing."""
        return self._levels[level][at * _SIZE : (at + 1) * _SIZE]


def _above(hashes: Sequence[bytes]) -> list[bytes]:
    pairs = iter(hashes)
    above = [sha256(b"\1" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
    return [*above, hashes[-1]] if len(hashes) % 2 else above
