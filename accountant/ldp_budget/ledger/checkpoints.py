"""Checkpoints: where every lane ended at some time, under one number that people note elsewhere.

The ends of the lanes are the leaves of a Merkle tree as in RFC 9162, section 2.1.1. A keyed link covers its root and
the checkpoint before. A lane that was put back whole, with everything that belongs to it, is found by the newest
checkpoint; a whole ledger that was, by one that somebody has noted.
"""

from __future__ import annotations

import math
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from .entries import NO_LINK, Checkpoint, End

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .keys import Key
    from .ledger import Ledger
    from .transaction import Transaction

LEAF_BYTES = 60


class Noted(NamedTuple):
    """Where a lane ended: its newest entry and link, and how many answers and collections were stored."""

    lane: int
    entries: int
    link: bytes
    answers: int
    collections: int

    @classmethod
    def of(cls, lane: int, end: End) -> Noted:
        """Where a lane ends."""
        return cls(lane, end.entries, end.link, end.answers, end.collections)

    def leaf(self) -> bytes:
        """As a checkpoint holds it."""
        numbers = (number.to_bytes(8) for number in (self.entries, self.answers, self.collections))
        entries, answers, collections = numbers
        return self.lane.to_bytes(4) + entries + self.link + answers + collections


def noted(checkpoint: Checkpoint) -> list[Noted]:
    """What a checkpoint says of each lane."""
    result = []
    for leaf in _leaves(checkpoint.heads):
        lane, entries, answers, collections = (
            int.from_bytes(part) for part in (leaf[:4], leaf[4:12], leaf[44:52], leaf[52:])
        )
        result.append(Noted(lane, entries, leaf[12:44], answers, collections))
    return result


def head_of(checkpoint: Checkpoint) -> str:
    """What people note."""
    return f"{checkpoint.number}-{checkpoint.link.hex()}"


def root(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash of a list, at least one."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + root(leaves[:half]) + root(leaves[half:])).digest()


def take(ledger: Ledger) -> Checkpoint:
    """The newest checkpoint; a new one if anything was written since.

    No lock is held over the lanes: each end is a true one of its lane, whenever it was read.
    """
    ends = []
    for lane in ledger.lanes:
        with ledger.reading(lane) as reading:
            ends.append(Noted.of(lane, reading.end))

    def add(transaction: Transaction) -> Checkpoint:
        newest = next(transaction.rows.checkpoints(max(1, transaction.end.checkpoints)), None)
        later = ends
        if newest is not None:  # somebody may have taken one meanwhile
            known = noted(newest)
            later = [max(pair, key=itemgetter(1, 3, 4)) for pair in zip(known, ends, strict=True)]
            if later == known:
                return newest
        heads = b"".join(each.leaf() for each in later)
        number, before = (1, NO_LINK) if newest is None else (newest.number + 1, newest.link)
        checkpoint = Checkpoint(number, transaction.time(), heads, b"")
        checkpoint = checkpoint._replace(link=link_of(transaction.key, before, checkpoint))
        transaction.add_checkpoint(checkpoint)
        return checkpoint

    return ledger.run(add)


def age(ledger: Ledger, now: float) -> float:
    """How many seconds before `now`, in seconds since 1970, the newest checkpoint was taken."""
    with ledger.reading() as reading:
        newest = next(reading.rows.checkpoints(max(1, reading.end.checkpoints)), None)
    return math.inf if newest is None else now - newest.at / 1e6


def link_of(key: Key, before: bytes, checkpoint: Checkpoint) -> bytes:
    """The link of a checkpoint to the one before."""
    numbers = checkpoint.number.to_bytes(8) + checkpoint.at.to_bytes(8, signed=True)
    return key.link(b"checkpoint" + before + numbers + root(_leaves(checkpoint.heads)))


def check(key: Key, checkpoints: Sequence[Checkpoint], count: int) -> Iterator[str]:
    """What is wrong with the checkpoints of a ledger, of which `count` were taken."""
    before = NO_LINK
    for place, checkpoint in enumerate(checkpoints, 1):
        whole = checkpoint.heads and not len(checkpoint.heads) % LEAF_BYTES
        if checkpoint.number != place or not whole or link_of(key, before, checkpoint) != checkpoint.link:
            yield f"checkpoints: checkpoint {checkpoint.number} was changed"
            return
        before = checkpoint.link
    if len(checkpoints) != count:
        yield f"checkpoints: there are {len(checkpoints)}, and {count} were taken"


def _leaves(heads: bytes) -> list[bytes]:
    return [heads[start : start + LEAF_BYTES] for start in range(0, len(heads), LEAF_BYTES)]
