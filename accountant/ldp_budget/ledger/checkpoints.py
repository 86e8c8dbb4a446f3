"""Checkpoints: where every partition ended at some time, under one number that people note elsewhere.

The ends of the partitions are the leaves of a Merkle tree as in RFC 9162, section 2.1.1. A keyed link covers its root and
the checkpoint before. A partition that was put back whole, with everything that belongs to it, is found by the newest
checkpoint, and no other one is taken then. They stand in the first partition, and each time another partition remembers how
many there are, by which the first is found. A whole ledger that was put back is found by one that somebody has noted.

Takes checkpoints of a ledger of several partitions, while somebody writes to it here.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LdpBudgetError, LedgerError
from .key_rotation import secret_epochs
from .models import EMPTY_CHAIN, Checkpoint, PartitionHead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .keyfile import Secret
    from .ledger import Ledger
    from .snapshot import Reading
    from .transaction import Transaction


LEAF_BYTES = 60


class PartitionLeaf(NamedTuple):
    """Where a partition ended: its newest entry and link, and how many answers and collections were stored."""

    partition: int
    entries: int
    chain_hash: bytes
    numbered_rows: int
    collections: int

    @classmethod
    def of(cls, partition: int, end: PartitionHead) -> PartitionLeaf:
        """Where a partition ends."""
        return cls(partition, end.entries, end.chain_hash, end.numbered_rows, end.collections)

    def leaf(self) -> bytes:
        """As a checkpoint holds it."""
        stored = self.numbered_rows.to_bytes(8) + self.collections.to_bytes(8)
        return self.partition.to_bytes(4) + self.entries.to_bytes(8) + self.chain_hash + stored


def noted(checkpoint: Checkpoint) -> list[PartitionLeaf]:
    """What a checkpoint says of each partition."""
    result = []
    for leaf in _leaves(checkpoint.heads):
        partition, entries, numbered_rows, collections = (
            int.from_bytes(part) for part in (leaf[:4], leaf[4:12], leaf[44:52], leaf[52:])
        )
        result.append(PartitionLeaf(partition, entries, leaf[12:44], numbered_rows, collections))
    return result


def head_of(checkpoint: Checkpoint) -> str:
    """What people note."""
    return f"{checkpoint.number}-{checkpoint.chain_hash.hex()}"


def root(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash of a list, at least one."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + root(leaves[:half]) + root(leaves[half:])).digest()


def take(ledger: Ledger) -> Checkpoint:
    """The newest checkpoint; a new one if anything was written since.

    No lock is held over the partitions: each end is a true one of its partition, whenever it was read. Raises `LedgerError`
    where a partition was put back, and a new checkpoint would hide that.
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
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            ends.append(PartitionLeaf.of(partition, reading.end))
            seen = max(seen, reading.end.checkpoints)
            if before is not None and not _goes_on(reading, known[partition]):
                raise LedgerError(
                    ledger.name, f"partition {partition} has gone back since checkpoint {before.number}"
                )

    def add(transaction: Transaction) -> Checkpoint | None:
        count = transaction.end.checkpoints
        if count < seen:
            why = f"partition 0 has gone back: it has {count} checkpoints, and another partition has seen {seen}"
            raise LedgerError(ledger.name, why)
        if _newest(transaction, ledger) != before:
            return None
        later = [max(pair, key=itemgetter(1, 3, 4)) for pair in zip(known or ends, ends, strict=True)]
        if before is not None and later == known:
            return before
        heads = b"".join(each.leaf() for each in later)
        number, chain_hash = (1, EMPTY_CHAIN) if before is None else (before.number + 1, before.chain_hash)
        checkpoint = Checkpoint(number, transaction.time(), heads, b"")
        checkpoint = checkpoint._replace(chain_hash=link_of(transaction.secret, chain_hash, checkpoint))
        transaction.add_checkpoint(checkpoint)
        return checkpoint

    checkpoint = ledger.run_in_partitions(lambda transactions: add(*transactions), [0], allow_closed=True)
    others = len(ledger.partitions) - 1
    if others and checkpoint is not None and checkpoint.number > seen:
        number = checkpoint.number
        ledger.run_in_partitions(
            lambda transactions: transactions[0].see_checkpoint(number), [1 + number % others], allow_closed=True
        )
    return checkpoint


def _newest(reading: Reading, ledger: Ledger) -> Checkpoint | None:
    """The newest checkpoint."""
    count = reading.end.checkpoints
    newest = next(reading.rows.checkpoints(count), None) if count else None
    if count and (newest is None or newest.number != count or len(noted(newest)) != len(ledger.partitions)):
        raise LedgerError(ledger.name, f"checkpoint {count}, the newest, was changed")
    return newest


def _goes_on(reading: Reading, known: PartitionLeaf) -> bool:
    """Whether a partition's journal still has what was noted of it; of one that is too short `verify` says so."""
    if reading.end.chain_hash == known.chain_hash or reading.end.entries < known.entries or not known.entries:
        return True
    return [chain_hash for _, chain_hash in reading.rows.entries(known.entries, known.entries)] == [known.chain_hash]


def age(ledger: Ledger, now: float) -> float:
    """How many seconds before `now`, in seconds since 1970, the newest checkpoint was taken."""
    with ledger.reading() as reading:
        newest = next(reading.rows.checkpoints(max(1, reading.end.checkpoints)), None)
    return math.inf if newest is None else now - newest.at / 1e6


def link_of(key: Secret, before: bytes, checkpoint: Checkpoint) -> bytes:
    """The link of a checkpoint to the one before."""
    numbers = checkpoint.number.to_bytes(8) + checkpoint.at.to_bytes(8, signed=True)
    return key.chain_hash(b"checkpoint" + before + numbers + root(_leaves(checkpoint.heads)))


def check(reading: Reading, checkpoints: Iterator[Checkpoint]) -> Iterator[str]:
    """What is wrong with the checkpoints of a ledger; all of them are gone through. `reading` is of the first partition.

    The next secret of the key has found those before it as they were: nobody with an older one can write them again.
    """
    before, found, count = EMPTY_CHAIN, 0, reading.end.checkpoints
    secret: Secret = reading.key
    later = deque(secret_epochs(reading))
    for checkpoint in checkpoints:
        while later and later[0][1].checkpoints <= found:
            secret, since = later.popleft()
            if since.checkpoint_hash != before:
                yield f"checkpoints: checkpoint {found} was changed"
        found += 1
        whole = checkpoint.heads and not len(checkpoint.heads) % LEAF_BYTES
        if checkpoint.number != found or not whole or link_of(secret, before, checkpoint) != checkpoint.chain_hash:
            yield f"checkpoints: checkpoint {checkpoint.number} was changed"
            deque(checkpoints, 0)
            return
        before = checkpoint.chain_hash
    if found != count or any(since.checkpoint_hash != before for _, since in later):
        yield f"checkpoints: there are {found}, and {count} were taken"


def _leaves(heads: bytes) -> list[bytes]:
    return [heads[start : start + LEAF_BYTES] for start in range(0, len(heads), LEAF_BYTES)]


SECONDS = 60.0
NAME = "ldp-budget checkpoints"


class Checkpointer:
    """A thread that takes a checkpoint when the newest one of anybody is `seconds` old and something was written."""

    def __init__(self, ledger: Ledger, seconds: float = SECONDS) -> None:
        self._ledger = weakref.ref(ledger)
        self._seconds = seconds
        # Not an event, which is Python's own code: an interrupt (Ctrl-C) within could leave it locked for ever.
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pid = 0

    def wake(self) -> None:
        """Say that something was written; the thread is begun with the first time, and anew after a fork."""
        if self._pid != os.getpid():
            self._pid, self._ended = os.getpid(), queue.SimpleQueue()
            threading.Thread(target=self._keep, args=(self._ended,), name=NAME, daemon=True).start()

    def close(self) -> None:
        """End the thread."""
        self._ended.put(None)

    def _keep(self, ended: queue.SimpleQueue[None]) -> None:
        while True:
            with suppress(queue.Empty):
                ended.get(timeout=self._seconds)
                return
            ledger = self._ledger()
            if ledger is None:
                return
            with suppress(LdpBudgetError):  # it is taken the next time, or by the next who asks
                if age(ledger, time.time()) >= self._seconds:
                    take(ledger)
            del ledger
