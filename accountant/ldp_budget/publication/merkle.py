"""Merkle trees of RFC 6962: roots, and paths of inclusion proofs."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    path = []
    while len(hashes) > 1:
        if index ^ 1 < len(hashes):
            path.append(hashes[index ^ 1])
        hashes, index = _above(hashes), index >> 1
    return b"".join(path)


def _above(hashes: Sequence[bytes]) -> list[bytes]:
    pairs = iter(hashes)
    above = [sha256(b"\1" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
    return [*above, hashes[-1]] if len(hashes) % 2 else above
