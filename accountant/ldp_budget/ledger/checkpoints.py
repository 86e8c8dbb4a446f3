"""Checkpoints: the heads of all partitions at some time, under one short head to record outside the ledger.

The partition heads are the leaves of a Merkle tree as in RFC 9162, section 2.1.1. A keyed chain hash covers the
tree's root and the previous checkpoint.

If a partition was restored from an older copy, with everything that belongs to it, the newest checkpoint reveals the
rollback. No new checkpoint is taken then. Checkpoints are stored in the first partition. Each time, another partition
records how many there are, which reveals a rollback of the first partition. A rollback of the whole ledger is
revealed only by a head that was recorded outside it.

`Checkpointer` is a background thread. It takes checkpoints of a ledger of several partitions while this process
writes to it.
"""

from __future__ import annotations

import math
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
from .models import EMPTY_CHAIN, Checkpoint, PartitionHead, head_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .keyed_hashing import Secret
    from .ledger import Ledger
    from .snapshot import Reading
    from .transaction import Transaction


LEAF_BYTES = 60


class PartitionLeaf(NamedTuple):
    """A partition in a checkpoint: newest entry, chain hash, and the counts of numbered rows and collections."""

    partition: int
    entries: int
    chain_hash: bytes
    numbered_rows: int
    collections: int

    @classmethod
    def of(cls, partition: int, end: PartitionHead) -> PartitionLeaf:
        """Return the leaf of a partition with this head."""
        return cls(partition, end.entries, end.chain_hash, end.numbered_rows, end.collections)

    def leaf(self) -> bytes:
        """Return the bytes of the leaf in a checkpoint."""
        stored = self.numbered_rows.to_bytes(8) + self.collections.to_bytes(8)
        return self.partition.to_bytes(4) + self.entries.to_bytes(8) + self.chain_hash + stored


def noted(checkpoint: Checkpoint) -> list[PartitionLeaf]:
    """Return the leaves of a checkpoint, one for each partition."""
    result = []
    for leaf in _leaves(checkpoint.heads):
        partition, entries, numbered_rows, collections = (
            int.from_bytes(part) for part in (leaf[:4], leaf[4:12], leaf[44:52], leaf[52:])
        )
        result.append(PartitionLeaf(partition, entries, leaf[12:44], numbered_rows, collections))
    return result


def head_to_note(checkpoint: Checkpoint) -> str:
    """Return the head to record outside the ledger: that of the only partition, or that of the checkpoint."""
    leaves = noted(checkpoint)
    if len(leaves) > 1:
        return head_of(checkpoint)
    return head_text(leaves[0].chain_hash, leaves[0].numbered_rows, leaves[0].collections)


def head_of(checkpoint: Checkpoint) -> str:
    """Return the head of a checkpoint: its number and chain hash."""
    return f"{checkpoint.number}-{checkpoint.chain_hash.hex()}"


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the Merkle tree hash of a list of at least one leaf."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + root(leaves[:half]) + root(leaves[half:])).digest()


def take(ledger: Ledger) -> Checkpoint:
    """Return the newest checkpoint; take a new one if anything was written since.

    No lock is held across the partitions: each leaf is a true head of its partition, at the time it was read. Raises
    `LedgerError` if a partition was rolled back, because a new checkpoint would hide that.
    """
    while True:
        checkpoint = _try_to_take(ledger)
        if checkpoint is not None:
            return checkpoint


def _try_to_take(ledger: Ledger) -> Checkpoint | None:
    """Return a checkpoint; None if another one was taken meanwhile."""
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
                    ledger.name, f"partition {partition} was rolled back after checkpoint {before.number}"
                )

    def add(transaction: Transaction) -> Checkpoint | None:
        count = transaction.end.checkpoints
        if count < seen:
            why = f"partition 0 was rolled back: it has {count} checkpoints, and another partition has seen {seen}"
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
    """Return the newest checkpoint; None without one. Raises `LedgerError` if it was changed."""
    count = reading.end.checkpoints
    newest = next(reading.rows.checkpoints(count), None) if count else None
    if count and (newest is None or newest.number != count or len(noted(newest)) != len(ledger.partitions)):
        raise LedgerError(ledger.name, f"checkpoint {count}, the newest, was changed")
    return newest


def _goes_on(reading: Reading, known: PartitionLeaf) -> bool:
    """True if a partition's journal still contains a leaf; also if it is too short, which `verify` reports."""
    if reading.end.chain_hash == known.chain_hash or reading.end.entries < known.entries or not known.entries:
        return True
    return [chain_hash for _, chain_hash in reading.rows.entries(known.entries, known.entries)] == [known.chain_hash]


def age(ledger: Ledger, now: float) -> float:
    """Return the age of the newest checkpoint at `now` (seconds since 1970), in seconds; infinity without one."""
    with ledger.reading() as reading:
        newest = next(reading.rows.checkpoints(max(1, reading.end.checkpoints)), None)
    return math.inf if newest is None else now - newest.at / 1e6


def link_of(key: Secret, before: bytes, checkpoint: Checkpoint) -> bytes:
    """Return the chain hash of a checkpoint that follows the chain hash `before`."""
    numbers = checkpoint.number.to_bytes(8) + checkpoint.at.to_bytes(8, signed=True)
    return key.chain_hash(b"checkpoint" + before + numbers + root(_leaves(checkpoint.heads)))


def check(reading: Reading, checkpoints: Iterator[Checkpoint]) -> Iterator[str]:
    """Yield the problems of a ledger's checkpoints; all of them are read. `reading` is of the first partition.

    Each later secret of the key recorded the chain hash of the newest checkpoint when it came into use. So an
    attacker with an older secret cannot rewrite the checkpoints before that.
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


# -- background thread ------------------------------------------------------------------------------------


SECONDS = 60.0
NAME = "ldp-budget checkpoints"


class Checkpointer:
    """A thread that takes a checkpoint when the newest one is `seconds` old and something was written."""

    def __init__(self, ledger: Ledger, seconds: float = SECONDS) -> None:
        self._ledger = weakref.ref(ledger)
        self._seconds = seconds
        # Not a threading.Event, which is Python code: an interrupt (Ctrl-C) inside it could leave it locked forever.
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._started = False

    def wake(self) -> None:
        """Report a write. The first call starts the thread."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._keep, args=(self._ended,), name=NAME, daemon=True).start()

    def close(self) -> None:
        """Stop the thread."""
        self._ended.put(None)

    def _keep(self, ended: queue.SimpleQueue[None]) -> None:
        while True:
            with suppress(queue.Empty):
                ended.get(timeout=self._seconds)
                return
            ledger = self._ledger()
            if ledger is None:
                return
            with suppress(LdpBudgetError):  # retried after `seconds`, or by the next caller of `take`
                if age(ledger, time.time()) >= self._seconds:
                    take(ledger)
            del ledger
