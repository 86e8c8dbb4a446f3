"""The journal: its entries, and the chain of keyed links over what each transaction appends to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees.amounts import Costs

if TYPE_CHECKING:
    import sqlite3

    from ._sqlite.known import Known
    from .keys import Key

    Rows = list[tuple[Any, ...]]

AMOUNTS = "epsilon, delta, rho, mu_squared"
ENTRY_COLUMNS = f"entry, at, kind, account, charge, policy, reports, {AMOUNTS}, labelled, expires, resolves"
_INSERT = f"INSERT INTO journal ({ENTRY_COLUMNS}) VALUES ({', '.join('?' * 14)})"
_INSERT_LINKED = f"INSERT INTO journal ({ENTRY_COLUMNS}, link) VALUES ({', '.join('?' * 15)})"
NO_LINK = b"\0" * 32


class Entry(NamedTuple):
    """One line of the journal: spent, reserved, committed, voided, expired, erased or policy.

    `costs` is what it added to the account's lifetime. `reports` of an `erased` entry: how many accounts it cut off.
    `expires` belongs to a reservation, `resolves` to the entry that ends it, and names it.
    """

    number: int
    at: int
    kind: str
    account: int
    charge: int
    policy: int
    reports: int
    costs: Costs
    labelled: bool = False
    expires: int | None = None
    resolves: int | None = None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Entry:
        """From a row of `ENTRY_COLUMNS`."""
        number, at, kind, account, charge, policy, reports = row[:7]
        costs, (labelled, expires, resolves) = Costs(*row[7:11]), row[11:]
        return cls(number, at, kind, account, charge, policy, reports, costs, bool(labelled), expires, resolves)

    def row(self, number: int) -> tuple[Any, ...]:
        """As a row of `ENTRY_COLUMNS`, under another number."""
        return (number, *self[1:7], *self.costs, int(self.labelled), *self[9:])


def canonical_rows(rows: Rows) -> str:
    """Rows as a link covers them: as Python writes tuples in ASCII, one after the other."""
    return ascii(rows)[1:-1]


def _batch_rows(first: int, accounts: list[int], common: tuple[Any, ...]) -> str:
    """`canonical_rows` of entries that differ in number and account only, without reading them back."""
    at, kind, charge, policy, *amounts = common
    start = ascii((at, kind))[1:-1]
    end = ascii((charge, policy, 1, *amounts, 0, None, None))[1:-1]
    return ", ".join([f"({number}, {start}, {account}, {end})" for number, account in enumerate(accounts, first)])


def canonical_link(before: bytes, entries: str, charges: Rows, policies: Rows) -> bytes:
    """What a link's hash covers: the link before, and every row the transaction appended, in order."""
    return before + f"[[{entries}], {charges!a}, {policies!a}]".encode("ascii")


class JournalEnd:
    """The end of the journal in one transaction: what stands there, and what the transaction appends."""

    def __init__(self, connection: sqlite3.Connection, key: Key, known: Known) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany
        self._key = key
        self._known = known
        self._kept_back: Rows = []
        self._covered: list[str] = []
        self.appended = 0

    def newest(self) -> tuple[int, int | None, bytes]:
        """Number and time of the newest entry, and the link of the newest transaction before this one."""
        if self._known.newest is None:
            row = self._execute("SELECT entry, at, link FROM journal ORDER BY entry DESC LIMIT 1").fetchone()
            self._known.newest = (0, None, NO_LINK) if row is None else (row[0], row[1], row[2] or NO_LINK)
        return self._known.newest

    def _advance(self, entries: int, at: int) -> int:
        """Count new entries; returns the number of the last of them."""
        before, _, link = self._known.newest or self.newest()
        self._known.newest = (before + entries, at, link)
        self.appended += entries
        return before + entries

    def append(self, entry: Entry) -> int:
        """Append an entry; returns its number (the one given is not used). It is written with all others."""
        number = self._advance(1, entry.at)
        self._kept_back.append(entry.row(number))
        return number

    def append_batch(self, common: tuple[Any, ...]) -> None:
        """Append an entry of one report for every account of the temporary table `charged`, in order.

        `common` holds at, kind, charge, policy and the four amounts.
        """
        self.write()
        accounts = [row[0] for row in self._execute("SELECT account FROM charged ORDER BY account")]
        number = self.newest()[0]
        self._execute(
            f"INSERT INTO journal (at, kind, account, charge, policy, reports, {AMOUNTS}, labelled)"
            " SELECT ?1, ?2, account, ?3, ?4, 1, ?5, ?6, ?7, ?8, 0 FROM charged ORDER BY account",
            common,
        )
        self._covered.append(_batch_rows(number + 1, accounts, common))
        self._advance(len(accounts), common[0])

    def write(self) -> None:
        """Write what was kept back."""
        self._execute_many(_INSERT, self._take())

    def close(self, charges: Rows, policies: Rows) -> None:
        """Write everything, with the link that covers it in the last entry; nothing if nothing was appended."""
        rows = self._take()
        if not self.appended:
            return
        number, at, before = self.newest()
        link = self._key.link(canonical_link(before, ", ".join(self._covered), charges, policies))
        if rows:
            self._execute_many(_INSERT, rows[:-1])
            self._execute(_INSERT_LINKED, (*rows[-1], link))
        else:
            self._execute("UPDATE journal SET link = ? WHERE entry = ?", (link, number))
        self._known.newest = (number, at, link)

    def _take(self) -> Rows:
        """What was kept back until now; the link will cover it."""
        rows, self._kept_back = self._kept_back, []
        if rows:
            self._covered.append(canonical_rows(rows))
        return rows
