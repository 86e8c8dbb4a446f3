"""The chain of keyed links over the journal: each covers what one transaction appended, and the link before it.

What an entry is called outside: a receipt bears that name, and finds its entry wherever the ledger was copied to.

A copy numbers its entries anew. So a name says in which *generation* the entry was written, see `gate`: in a ledger
that was never copied into, partition and number are where it stands. Of an older name of a reservation the ledger keeps
where that stands now, in the partition that the name's hash says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .models import Entry, MovedEntry, PartitionHead

if TYPE_CHECKING:
    from .keyfile import Key, Secret
    from .snapshot import Reading


Rows = list[tuple[Any, ...]]


def canonical_rows(rows: Rows) -> str:
    """Rows as a link covers them: as Python writes tuples in ASCII, one after the other."""
    return ascii(rows)[1:-1]


def canonical_batch(first: int, accounts: list[int], common: tuple[Any, ...], bound: tuple[int, int, int]) -> str:
    """`canonical_rows` of entries that differ in number and account only, numbered from `first`.

    `common` holds at, kind, charge, policy and the four amounts; `bound` ends each: whether it has a note, its
    API key and its sub-limit.
    """
    at, kind, charge, policy, *amounts = common
    start = ascii((at, kind))[1:-1]
    end = ascii((charge, policy, 1, *amounts, None, None, None, 0, *bound))[1:-1]
    return ", ".join([f"({number}, {start}, {account}, {end})" for number, account in enumerate(accounts, first)])


def canonical_transaction(before: bytes, entries: str, charges: Rows, policies: Rows, records: Rows) -> bytes:
    """What a link's hash covers: the link before, and every row the transaction appended, in order."""
    return before + f"[[{entries}], {charges!a}, {policies!a}, {records!a}]".encode("ascii")


def counters_mac(key: Secret, end: PartitionHead) -> bytes:
    """The MAC of what a partition has numbered beside its entries."""
    return key.row_mac("partition", *end.counters)


class Appended:
    """What one transaction appends: the entries kept back until they are written together, and what a link covers."""

    def __init__(self) -> None:
        self._kept_back: Rows = []
        self._covered: list[str] = []
        self.charges: Rows = []
        self.policies: Rows = []
        self.records: Rows = []

    def __bool__(self) -> bool:
        return bool(self._kept_back or self._covered)

    def add(self, entry: Entry, number: int) -> None:
        """Keep an entry back."""
        self._kept_back.append(entry.row(number))

    def add_batch(
        self, first: int, accounts: list[int], common: tuple[Any, ...], bound: tuple[int, int, int]
    ) -> None:
        """Cover entries that the store has written."""
        self._covered.append(canonical_batch(first, accounts, common, bound))

    def take(self) -> Rows:
        """The entries that are to be written now; the link will cover them."""
        rows, self._kept_back = self._kept_back, []
        if rows:
            self._covered.append(canonical_rows(rows))
        return rows

    def link_text(self, before: bytes) -> bytes:
        """What the link of this transaction covers."""
        return canonical_transaction(before, ", ".join(self._covered), self.charges, self.policies, self.records)


_LONGEST = 18


class Name(NamedTuple):
    """In which generation, which partition and under which number an entry was written."""

    generation: int
    partition: int
    entry: int

    def __str__(self) -> str:
        if self.generation:
            return f"{self.generation}.{self.partition}.{self.entry}"
        return f"{self.partition}.{self.entry}" if self.partition else str(self.entry)


def parse(text: str) -> Name | None:
    """A name from its text; None of any other text."""
    parts = text.split(".")
    if len(parts) > 3 or not all(part.isascii() and part.isdigit() and len(part) <= _LONGEST for part in parts):
        return None
    name = Name(*[0] * (3 - len(parts)), *map(int, parts))
    return name if str(name) == text else None


def place_of(key: Key, name: Name) -> bytes:
    """The hash by which the partition is found that knows where an entry of an older name is."""
    return key.hash(b"entry", str(name))


def find(reading: Reading, name: Name) -> tuple[int, int] | None:
    """Partition and number of an entry of an older name, as far as this partition knows."""
    found = reading.numbered(MovedEntry, *name)
    return None if found is None else (found.to_partition, found.to_entry)
