"""Verifying a whole ledger: each of its partitions, its checkpoints, and what somebody has noted of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from . import checkpoints
from .integrity import Expected, Integrity, check_partition, keys_made
from .tallying import LOWEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .entries import Checkpoint
    from .ledger import Ledger
    from .tallying import DecideAgain

    Progress = Callable[[int, int], None]


def head_of(ledger: Ledger) -> str:
    """What people note of a ledger: the end of its only partition, or a checkpoint over its partitions as they are."""
    if len(ledger.partitions) > 1:
        return checkpoints.head_of(checkpoints.take(ledger))
    with ledger.reading() as reading:
        return reading.end.head


def check_integrity(
    ledger: Ledger,
    expect: str | None = None,
    on_progress: Progress = lambda done, total: None,
    decide_again: DecideAgain | None = None,
) -> Integrity:
    """Check a whole ledger. With `expect`, a head noted earlier, nothing before it may have been rolled back.

    With `decide_again`, every charge is decided again by what was set when it was made.
    """
    head = head_of(ledger) if len(ledger.partitions) > 1 else None
    problems = []
    for partition in ledger.partitions[1:]:
        with ledger.reading(partition) as reading:
            if next(reading.rows.checkpoints(LOWEST), None) is not None:
                problems.append(
                    f"checkpoints: there are some in partition {partition}, and they stand in partition 0"
                )
    expected: list[list[Expected]] = [[] for _ in ledger.partitions]
    taken = _Taken(None if expect is None else expect.lower())
    with ledger.reading() as reading:
        going_by = taken.going_by(reading.rows.checkpoints(LOWEST))
        problems += checkpoints.check(reading, going_by)
    if taken.newest is not None:
        _expect(expected, checkpoints.head_of(taken.newest), taken.newest)
    if expect is not None:
        if taken.found is not None:
            _expect(expected, expect, taken.found)
        else:
            expected[0].append(_noted(expect) if len(ledger.partitions) == 1 else Expected(expect, b"", 0, 0))
    entries = 0
    for partition in ledger.partitions:
        told = partial(_tell, on_progress, partition, len(ledger.partitions))
        keys = partial(keys_made, ledger.reading)
        found = check_partition(partial(ledger.reading, partition), expected[partition], told, keys, decide_again)
        entries += found.entries
        where = f"partition {partition}: " if len(ledger.partitions) > 1 else ""
        problems += [where + problem for problem in found.problems]
    return Integrity(not problems, entries, head or found.head, tuple(problems))


class _Taken:
    """Of the checkpoints that go by, the newest and the one of a head; a ledger may have more than can be held."""

    def __init__(self, head: str | None) -> None:
        self._head = head
        self.newest: Checkpoint | None = None
        self.found: Checkpoint | None = None

    def going_by(self, rows: Iterator[Checkpoint]) -> Iterator[Checkpoint]:
        for each in rows:
            self.newest = each
            if self._head is not None and checkpoints.head_of(each) == self._head:
                self.found = each
            yield each


def _tell(on_progress: Progress, partition: int, partitions: int, done: int, total: int) -> None:
    """Tell of one partition as if all were as long."""
    on_progress(partition * total + done, partitions * total)


def _expect(expected: list[list[Expected]], head: str, checkpoint: Checkpoint) -> None:
    """Ask of every partition what a checkpoint says of it."""
    for noted in checkpoints.noted(checkpoint):
        if noted.partition < len(expected):
            expected[noted.partition].append(Expected(head, noted.chain_hash, noted.numbered_rows, noted.collections))


def _noted(head: str) -> Expected:
    """What the head of a single partition says: link, answers and collections. What is none is found nowhere."""
    try:
        data = bytes.fromhex(head)
    except ValueError:
        data = b""
    if len(data) != 42:
        return Expected(head, b"", 0, 0)
    return Expected(head, data[:32], int.from_bytes(data[32:38]), int.from_bytes(data[38:]))
