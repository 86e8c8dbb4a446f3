"""The chain of keyed links over the journal: each covers what one transaction appended, and the link before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .entries import Entry, PartitionHead

if TYPE_CHECKING:
    from .keys import Secret

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
