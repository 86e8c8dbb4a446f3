"""Canonical encoding of the journal, the keyed hash chain over it, and the external names of entries.

Each chain hash covers the rows that one transaction appended, and the chain hash before it.

An entry's name identifies it outside the ledger, for example in a receipt. The name stays valid when the ledger is
moved, although a move renumbers the entries. A name therefore contains the *generation* in which the entry was
written (see `models.Lifecycle`). In a ledger that was never moved, the name is the entry's partition and number. For a
reservation of an older generation, the ledger stores the current partition and number. The hash of the name
determines the partition that stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .models import SPENT, MovedEntry, PartitionHead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .keyed_hashing import Key, Secret
    from .snapshot import Reading
    from .storage import Snapshot


Rows = list[tuple[Any, ...]]

_ALIKE = 50
"""The length of a run that is worth two questions."""
_ALONE = 1_024
"""The largest number of entries that are read without a question."""


def canonical_rows(rows: Rows) -> str:
    """Return rows in the encoding that a chain hash covers: Python tuples in ASCII, one after the other."""
    return ascii(rows)[1:-1]


def canonical_batch(first: int, accounts: list[int], common: tuple[Any, ...], bound: tuple[int, int, int]) -> str:
    """Return `canonical_rows` of entries that differ in number and account only, numbered from `first`.

    `common` holds time, kind, priced mechanism, policy and the four amounts. `bound` is the note flag, the
    number of the API key and the number of the sub-limit. Such an entry has no period.
    """
    at, kind, charge, policy, *amounts = common
    start = ascii((at, kind))[1:-1]
    end = ascii((charge, policy, 1, *amounts, None, None, None, 0, *bound, None))[1:-1]
    return ", ".join([f"({number}, {start}, {account}, {end})" for number, account in enumerate(accounts, first)])


def canonical_transaction(before: bytes, entries: str, charges: Rows, policies: Rows, records: Rows) -> bytes:
    """Return the bytes that a chain hash covers: the previous chain hash and every appended row, in order."""
    return before + f"[[{entries}], {charges!a}, {policies!a}, {records!a}]".encode("ascii")


def counters_mac(key: Secret, end: PartitionHead) -> bytes:
    """Return the MAC of the counters in a partition head."""
    return key.row_mac("partition", *end.counters)


class Run(NamedTuple):
    """Entries that differ in number and account only: the flat row of the first, and the accounts of all, in order.

    `chain_hash` is that of a run of one entry, if it ends a transaction.
    """

    row: tuple[Any, ...]
    accounts: list[int]
    chain_hash: bytes | None

    def canonical(self) -> str:
        """Return `canonical_rows` of the entries."""
        row = self.row
        if len(self.accounts) == 1:
            return ascii(row)
        first, start, end = row[0], ascii(row[1:3])[1:-1], ascii(row[4:])[1:-1]
        return ", ".join(
            [f"({number}, {start}, {account}, {end})" for number, account in enumerate(self.accounts, first)]
        )


def runs_in(rows: Snapshot, first: int, last: int) -> Iterator[Run]:
    """Yield the entries from `first` to `last` in runs. Entries that are not alike cost one row each, as in `entries`."""
    alone = 1
    while first <= last:
        # Charges of many users are alike. After entries that are not, fewer questions are asked.
        row, chain_hash = next(iter(rows.entries(first, first)), ((), None))
        accounts = rows.alike(first, last) if row and chain_hash is None and row[2] == SPENT else []
        if len(accounts) > _ALIKE:
            yield Run(row, accounts, None)
            first, alone = first + len(accounts), 1
            continue
        until = min(last, first + alone - 1)
        for row, chain_hash in rows.entries(first, until):
            yield Run(row, [row[3]], chain_hash)
        first, alone = until + 1, min(2 * alone, _ALONE)


# -- entry names ------------------------------------------------------------------------------------------


_LONGEST = 18


class Name(NamedTuple):
    """The name of an entry: the generation, partition and number under which it was written."""

    generation: int
    partition: int
    entry: int

    def __str__(self) -> str:
        if self.generation:
            return f"{self.generation}.{self.partition}.{self.entry}"
        return f"{self.partition}.{self.entry}" if self.partition else str(self.entry)


def parse(text: str) -> Name | None:
    """Return the name that a text encodes; None for any other text."""
    parts = text.split(".")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() and len(part) <= _LONGEST for part in parts):
        return None
    name = Name(*[0] * (3 - len(parts)), *map(int, parts))
    return name if str(name) == text else None


def place_of(key: Key, name: Name) -> bytes:
    """Return the hash of a name; it determines the partition that stores the entry's current position."""
    return key.hash(b"entry", str(name))


def find(reading: Reading, name: Name) -> tuple[int, int] | None:
    """Return the current partition and number of an entry of an older generation; None if not known here."""
    found = reading.numbered(MovedEntry, *name)
    return None if found is None else (found.to_partition, found.to_entry)
