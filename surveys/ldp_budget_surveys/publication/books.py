"""Data of a publication in a ledger: the totals of all accounts, and the charges of a collection with their marks.

A mark is 16 bytes that a respondent's device chose. The mark of a charge is a note on its entry, so it is erased with
the user. The books are read from one snapshot of each partition, and nothing is written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget._validation import check_text
from ldp_budget.accounting.policy_versions import latest_policy, user_hash
from ldp_budget.accounting.receipts import name_in
from ldp_budget.accounting.stored_reports import note_of
from ldp_budget.errors import LedgerError, NotSupported, PublicationError
from ldp_budget.guarantees.fixed_point import Costs
from ldp_budget.ledger.calendar import LIFETIME
from ldp_budget.ledger.models import ERASED, SEALED, WAITING, Entry, StoredReport
from ldp_budget.ledger.snapshot import covered

from . import signed_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ldp_budget.ledger import Ledger, Reading
    from ldp_budget.ledger.models import EntryNote

    Leaf = Callable[[int, int, int], bytes]
    """A function that returns the leaf hash of an account from its partition, its number and its total."""

_MARK = re.compile(r"mark:([0-9a-f]{32})")
_MEASURES = {"basic": "epsilon", "zcdp": "rho", "gdp": "mu_squared"}
_LARGEST_LIMIT = 2**53 - 1
_GAP = 200
"""Entries that are closer than this are read together."""


class Charged(NamedTuple):
    """A charge of a sealed report: its partition, entry and account, its cost, and its mark, or None."""

    partition: int
    entry: int
    account: int
    costs: Costs
    mark: bytes | None


class Book(NamedTuple):
    """A reading of the books: the newest entry of each partition, the leaves, the largest total, and the charges."""

    heads: list[int]
    leaves: list[bytes]
    largest: int
    charges: list[Charged]


class Books:
    """Data of publications: `Accountant.books`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __repr__(self) -> str:
        return f"<Books of {self._ledger.name}>"

    @property
    def ledger_name(self) -> str:
        """The name of the ledger in messages."""
        return self._ledger.name

    @property
    def folder(self) -> Path:
        """The private folder of publications, next to the key file of the ledger.

        Raises `NotSupported` for a ledger in memory.
        """
        key_file = self._ledger.key_file
        if not key_file:
            raise NotSupported("a ledger in memory cannot be published, because its secrets would be lost")
        return Path(f"{key_file.removesuffix('.key')}.publications")

    def now(self) -> int:
        """Return the time of the ledger, in seconds since 1970."""
        return self._ledger.now().micros // 1_000_000

    def limit(self, policy: str) -> tuple[str, int]:
        """Return the measure of a policy's lifetime limit (epsilon, rho or mu_squared) and its capacity in units.

        Raises `PublicationError` if the policy has no such limit, and `UnknownName` if there is no such policy.
        """
        with self._ledger.reading() as reading:
            _, found = latest_policy(reading, policy)
        for limit in found.limits:
            measure = _MEASURES.get(limit.rule)
            capacity = None if measure is None else getattr(limit.capacity, measure)
            if limit.counts_all and measure is not None and capacity:
                if capacity > _LARGEST_LIMIT:
                    break  # checkers in JavaScript read no larger whole number
                return measure, capacity
        raise PublicationError(
            f"policy {policy!r} has no lifetime limit under the rule basic, zcdp or gdp that can be published, so no "
            "maximum can be proved",
            hint=f"Set one: ldp-budget policy set {policy} --limit lifetime=EPSILON",
        )

    def promise(self, collection: str, client: str, policy: str) -> dict[str, Any]:
        """Return what a receipt promises: the measure and the lifetime limit of a policy, signed with the ledger's key.

        Parameters:
            collection: the name of the collection.
            client: the digest of its definition.
            policy: the name of the policy that the respondent is charged under.

        Raises `PublicationError` and `UnknownName` as `limit`, and `NotSupported` without the package cryptography.
        """
        return signed_limits.signed(self._ledger, collection, client, *self.limit(policy))

    def receipt_keys(self) -> list[str]:
        """Return the public keys, in hex, that sign the promises of this ledger; the newest is the last."""
        return signed_limits.public_keys(self._ledger)

    def read(self, collection: str, measure: str, limit: int, leaf: Leaf) -> Book:
        """Read all accounts, and the charges of the sealed reports of a collection.

        Raises `PublicationError` if a total is above the limit or unbounded, or if charges have no report.
        """
        check_text("collection", collection)
        book = Book([], [], 0, [])
        largest = 0
        for partition in self._ledger.partitions:
            with self._ledger.reading(partition) as reading:
                book.heads.append(reading.end.entries)
                for account, total in reading.rows.window_amounts(LIFETIME, measure):
                    if total is None or not 0 <= total <= limit:
                        raise PublicationError(
                            f"account {account} of partition {partition} has a total above the limit. Nothing was "
                            "published",
                            hint="Run: ldp-budget ledger verify, and read the policy's limits.",
                        )
                    largest = max(largest, total)
                    book.leaves.append(leaf(partition, account, total))
                book.charges.extend(_charges(reading, collection))
        return book._replace(largest=largest)

    def costs_of(self, receipts: Iterable[str]) -> list[Costs]:
        """Return the amounts that the charges with these receipts added to their accounts' lifetime totals."""
        names = [name_in(receipt) for receipt in receipts]
        costs: dict[tuple[int, int], Costs] = {}
        for partition in self._ledger.partitions:
            mine = [name.entry for name in names if name is not None and name.partition == partition]
            with self._ledger.reading(partition) as reading:
                for number in mine:
                    row = reading.rows.entry(number)
                    assert row is not None
                    costs[partition, number] = Entry.of(row).costs
        return [costs[name.partition, name.entry] for name in names if name is not None]

    def find(self, mark: bytes) -> Charged | None:
        """Return the charge with this mark; None if there is none, for example because its user was erased."""
        for partition in self._ledger.partitions:
            with self._ledger.reading(partition) as reading:
                found = _with_mark(reading, mark, None)
            if found is not None:
                return found
        return None

    def find_of(self, user: str, mark: bytes) -> Charged | None:
        """Return the charge of a user with this mark; None if the user has no such charge, or was erased."""
        hashed = user_hash(self._ledger, user)
        with self._ledger.reading(self._ledger.partition_of(hashed)) as reading:
            account = reading.number_of(hashed)
            return None if account is None else _with_mark(reading, mark, account)

    def total(self, charged: Charged, until: int, measure: str) -> int:
        """Return the lifetime total of the account of a charge, after the entry `until` of its partition."""
        with self._ledger.reading(charged.partition) as reading:
            entries = [entry for entry, _ in reading.history(charged.account) if entry.number <= until]
        amounts = [getattr(entry.costs, measure) for entry in entries]
        return sum(amount for amount in amounts if amount is not None)


def _with_mark(reading: Reading, mark: bytes, account: int | None) -> Charged | None:
    """Return the charge of a partition with this mark, of one account or of all."""
    note = note_of(mark)
    for each in reading.rows.notes(1, reading.end.entries, account):
        if each.note == note:
            _check_notes(reading, [each])
            row = reading.rows.entry(each.entry)
            assert row is not None
            entry = Entry.of(row)
            return Charged(reading.partition, entry.number, entry.account, entry.costs, mark)
    return None


def _charges(reading: Reading, collection: str) -> Iterator[Charged]:
    """Yield the charges of the sealed reports of a collection in one partition."""
    stored = list(reading.rows.all_numbered(StoredReport, 1, reading.end.numbered_rows))
    right = reading.secret.row_macs(covered(each, reading.partition) for each in stored)
    if any(each.row_mac != row_mac for each, row_mac in zip(stored, right, strict=True)):
        raise LedgerError(reading.ledger_name, "a stored report was changed. Run: ldp-budget ledger verify")
    states = {each.entry: each.state for each in stored if each.collection == collection}
    _check_counts(reading, collection, states.values())
    sealed = sorted(entry for entry, state in states.items() if state == SEALED)
    marks = {}
    notes = [each for each in reading.rows.notes(1, reading.end.entries) if each.entry in states]
    _check_notes(reading, notes)
    for each in notes:
        found = _MARK.fullmatch(each.note)
        if found:
            marks[each.entry] = bytes.fromhex(found[1])
    for first, last in _runs(sealed):
        for row, _ in reading.rows.entries(first, last):
            if states.get(row[0]) == SEALED:
                entry = Entry.of(row)
                yield Charged(reading.partition, entry.number, entry.account, entry.costs, marks.get(entry.number))


def _check_counts(reading: Reading, collection: str, states: Iterable[str]) -> None:
    """Raise `PublicationError` if the journal has charges of the collection without a stored report."""
    priced = {each.number for each in reading.rows.priced_mechanisms() if each.collection_name == collection}
    charged = sum(
        reports - voided
        for number, _, reports, _, voided, _ in reading.rows.charges_by_mechanism()
        if number in priced
    )
    stored = sum(state in (SEALED, WAITING, ERASED) for state in states)
    if charged != stored:
        raise PublicationError(
            f"collection {collection} has {charged} charged reports, and the ledger stores {stored}. Nothing was "
            "published",
            hint="Only reports that the ledger took can be published: randomize --spend --receipts, inbox take, or "
            "the service.",
        )


def _check_notes(reading: Reading, notes: list[EntryNote]) -> None:
    right = reading.secret.row_macs(reading.noted(each.entry, each.note) for each in notes)
    if any(each.row_mac != row_mac for each, row_mac in zip(notes, right, strict=True)):
        raise LedgerError(reading.ledger_name, "a note was changed. Run: ldp-budget ledger verify")


def _runs(entries: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of entries to read together."""
    start = last = None
    for entry in entries:
        if start is None or last is None:
            start = entry
        elif entry - last > _GAP:
            yield start, last
            start = entry
        last = entry
    if start is not None and last is not None:
        yield start, last
