"""Checkpoints: where every lane ended at some time, under one number that people note elsewhere.

The ends of the lanes are the leaves of a Merkle tree as in RFC 9162, section 2.1.1. A keyed link covers its root and
the checkpoint before. A lane that was put back whole, with everything that belongs to it, is found by the newest
checkpoint, and no other one is taken then. They stand in the first lane, and each time another lane remembers how
many there are, by which the first is found. A whole ledger that was put back is found by one that somebody has noted.
"""

from __future__ import annotations

import math
from collections import deque
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LedgerError
from .entries import NO_LINK, Checkpoint, End
from .exchanging import stretches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .keys import Secret
    from .ledger import Ledger
    from .reading import Reading
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
        stored = self.answers.to_bytes(8) + self.collections.to_bytes(8)
        return self.lane.to_bytes(4) + self.entries.to_bytes(8) + self.link + stored


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

    No lock is held over the lanes: each end is a true one of its lane, whenever it was read. Raises `LedgerError`
    where a lane was put back, and a new checkpoint would hide that.
    """
    while True:
        checkpoint = _try_to_take(ledger)
        if checkpoint is not None:
            return checkpoint


def _try_to_take(ledger: Ledger) -> Checkpoint | None:
    """A checkpoint; None if another was taken meanwhile."""
    with ledger.reading() as reading:
        before = _newest(reading, ledger)
    known = [] if before is None else noted(before)
    ends, seen = [], 0
    for lane in ledger.lanes:
        with ledger.reading(lane) as reading:
            ends.append(Noted.of(lane, reading.end))
            seen = max(seen, reading.end.checkpoints)
            if before is not None and not _goes_on(reading, known[lane]):
                raise LedgerError(ledger.name, f"lane {lane} has gone back since checkpoint {before.number}")

    def add(transaction: Transaction) -> Checkpoint | None:
        count = transaction.end.checkpoints
        if count < seen:
            why = f"lane 0 has gone back: it has {count} checkpoints, and another lane has seen {seen}"
            raise LedgerError(ledger.name, why)
        if _newest(transaction, ledger) != before:
            return None
        later = [max(pair, key=itemgetter(1, 3, 4)) for pair in zip(known or ends, ends, strict=True)]
        if before is not None and later == known:
            return before
        heads = b"".join(each.leaf() for each in later)
        number, link = (1, NO_LINK) if before is None else (before.number + 1, before.link)
        checkpoint = Checkpoint(number, transaction.time(), heads, b"")
        checkpoint = checkpoint._replace(link=link_of(transaction.secret, link, checkpoint))
        transaction.add_checkpoint(checkpoint)
        return checkpoint

    checkpoint = ledger.run_together(lambda transactions: add(*transactions), [0], though_shut=True)
    others = len(ledger.lanes) - 1
    if others and checkpoint is not None and checkpoint.number > seen:
        number = checkpoint.number
        ledger.run_together(
            lambda transactions: transactions[0].see_checkpoint(number), [1 + number % others], though_shut=True
        )
    return checkpoint


def _newest(reading: Reading, ledger: Ledger) -> Checkpoint | None:
    """The newest checkpoint."""
    count = reading.end.checkpoints
    newest = next(reading.rows.checkpoints(count), None) if count else None
    if count and (newest is None or newest.number != count or len(noted(newest)) != len(ledger.lanes)):
        raise LedgerError(ledger.name, f"checkpoint {count}, the newest, was changed")
    return newest


def _goes_on(reading: Reading, known: Noted) -> bool:
    """Whether a lane's journal still has what was noted of it; of one that is too short `verify` says so."""
    if reading.end.link == known.link or reading.end.entries < known.entries or not known.entries:
        return True
    return [link for _, link in reading.rows.entries(known.entries, known.entries)] == [known.link]


def age(ledger: Ledger, now: float) -> float:
    """How many seconds before `now`, in seconds since 1970, the newest checkpoint was taken."""
    with ledger.reading() as reading:
        newest = next(reading.rows.checkpoints(max(1, reading.end.checkpoints)), None)
    return math.inf if newest is None else now - newest.at / 1e6


def link_of(key: Secret, before: bytes, checkpoint: Checkpoint) -> bytes:
    """The link of a checkpoint to the one before."""
    numbers = checkpoint.number.to_bytes(8) + checkpoint.at.to_bytes(8, signed=True)
    return key.link(b"checkpoint" + before + numbers + root(_leaves(checkpoint.heads)))


def check(reading: Reading, checkpoints: Iterator[Checkpoint]) -> Iterator[str]:
    """What is wrong with the checkpoints of a ledger; all of them are gone through. `reading` is of the first lane.

    The next secret of the key has found those before it as they were: nobody with an older one can write them again.
    """
    before, found, count = NO_LINK, 0, reading.end.checkpoints
    secret: Secret = reading.key
    later = deque(stretches(reading))
    for checkpoint in checkpoints:
        while later and later[0][1].checkpoints <= found:
            secret, since = later.popleft()
            if since.link != before:
                yield f"checkpoints: checkpoint {found} was changed"
        found += 1
        whole = checkpoint.heads and not len(checkpoint.heads) % LEAF_BYTES
        if checkpoint.number != found or not whole or link_of(secret, before, checkpoint) != checkpoint.link:
            yield f"checkpoints: checkpoint {checkpoint.number} was changed"
            deque(checkpoints, 0)
            return
        before = checkpoint.link
    if found != count or any(since.link != before for _, since in later):
        yield f"checkpoints: there are {found}, and {count} were taken"


def _leaves(heads: bytes) -> list[bytes]:
    return [heads[start : start + LEAF_BYTES] for start in range(0, len(heads), LEAF_BYTES)]
