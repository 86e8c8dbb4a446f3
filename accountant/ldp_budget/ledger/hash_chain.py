"""Canonical encoding of the journal, the keyed hash chain over it, and the external names of entries.

Each chain hash covers the rows that one transaction appended, and the chain hash before it.

An entry's name identifies it outside the ledger, for example in a receipt. The name stays valid when the ledger is
moved, although a move renumbers the entries. A name therefore contains the *generation* in which the entry was
written (see `lifecycle`). In a ledger that was never moved, the name is the entry's partition and number. For a
reservation of an older generation, the ledger stores the current partition and number. The hash of the name
determines the partition that stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .models import MovedEntry, PartitionHead

if TYPE_CHECKING:
    from .keyfile import Key, Secret
    from .snapshot import Reading


Rows = list[tuple[Any, ...]]


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
