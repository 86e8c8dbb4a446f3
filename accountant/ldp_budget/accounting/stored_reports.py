"""Reports that respondents sent: each is stored in the transaction of its charge, and sealed in rounds.

Any number of processes can store reports of one collection, and seal and read its rounds: all of them are in the
ledger. A report is stored exactly once if and only if its charge is.

A waiting report has the number of its entry, so a reader of the ledger can link it to the account. Sealing moves the
reports to a round, in random order, and deletes them from the rows that name entries.
"""

from __future__ import annotations

import json
import random
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from .._validation import check_instance, check_text, check_whole
from ..errors import InvalidParameter, LdpBudgetError, LedgerError, NameTaken, TooFewReports, UnknownName
from ..ledger.models import SEALED, RoundPart
from ..registry.collections import Collection, minimum_group_in
from ..registry.public_definition import MINIMUM_GROUP
from . import engine
from .admission import receipt_in, receipts_in
from .charge_request import check_key, key_hash, request_in
from .policy_versions import user_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..ledger import Ledger, Transaction
    from ..ledger.models import StoredReport
    from .charge_request import ChargeRequest, Principal
    from .receipts import Receipt

PART_BYTES = 1 << 18
"""The size of a part of a round, unless a single report is larger."""
_MOST = 10**9
MARK_BYTES = 16
"""Size of a mark, which a respondent's device chose."""


def note_of(mark: bytes) -> str:
    """Return the note on a charge that holds its mark."""
    return f"mark:{mark.hex()}"


class Taken(NamedTuple):
    """A report to charge and to store: its user, bytes and idempotency key, a label, and a note on its charge.

    The idempotency key covers `digest`, which stays in the ledger. It must not depend on the randomized report.
    """

    user: str
    report: bytes
    key: str
    label: str | None = None
    note: str | None = None
    digest: str | None = None


class StoredReports:
    """The reports in a ledger: `Accountant.reports`.

    It knows no mechanism: `ldp_budget.reports.inbox.Inbox` checks that a client can send the bytes.
    """

    def __init__(self, ledger: Ledger, caller: Principal) -> None:
        self._ledger, self._caller = ledger, caller

    def __repr__(self) -> str:
        return f"<StoredReports of {self._ledger.name}>"

    def take(
        self,
        user: str,
        collection: Collection,
        report: bytes,
        *,
        key: str,
        label: str | None,
        policy: str,
        note: str | None = None,
    ) -> Receipt:
        """Charge a report and store it, in one transaction, or refuse it.

        A repeated key gets the stored response, and stores nothing. The response says nothing about the report. The
        charge has the note, which is erased with the user.

        Raises:
            InvalidParameter: an argument has the wrong type.
            UnknownName: the policy does not exist.
            KeyConflict: the key was used for another collection, or for a charge without a report.
            ClockError: the system clock is not plausible.
        """
        check_instance("collection", collection, Collection, "a `Collection`")
        check_instance("report", report, bytes, "bytes")
        return self.take_many([Taken(user, report, key, label, note)], collection, policy)[0]

    def take_many(self, reports: Sequence[Taken], collection: Collection, policy: str) -> list[Receipt]:
        """Do the same for many reports, in few transactions; return their receipts in order.

        Raises the first error of a report. The others were taken; take all again to settle the rest.
        """
        return [receipt_in(outcome) for outcome in self.take_each(reports, collection, policy)]

    def take_each(
        self, reports: Sequence[Taken], collection: Collection, policy: str
    ) -> list[Receipt | LdpBudgetError]:
        """Do the same for many reports; return a receipt or the error of each, in order. No error stops another report."""
        found: dict[int, Receipt | LdpBudgetError] = {}
        requests: dict[int, ChargeRequest] = {}
        for place, each in enumerate(reports):
            terms = {"policy": policy, "label": each.label, "key": each.key, "note": each.note, "digest": each.digest}
            try:
                requests[place] = request_in(
                    self._ledger, self._caller, each.user, collection, report=each.report, **terms
                )
            except LdpBudgetError as error:
                found[place] = error
        charged = self._ledger.charge(engine.charge, [*requests.values()], bulk=len(requests) > 1) if requests else []
        found.update(zip(requests, receipts_in(charged), strict=True))
        return [found[place] for place in range(len(reports))]

    def has_key(self, user: str, key: str) -> bool:
        """True if the caller used an idempotency key for this user before: a request with it gets the stored response.

        Raises `InvalidParameter`.
        """
        hashed = user_hash(self._ledger, user)
        stored = key_hash(self._ledger.key, check_key(key), self._caller.name)
        with self._ledger.reading(self._ledger.partition_of(hashed)) as reading:
            return next(iter(reading.rows.idempotency_records([hashed], [stored])), None) is not None

    def waiting(self, collection: str) -> int:
        """Return the number of reports of a collection that wait to be sealed."""
        check_text("collection", collection)
        count = 0
        for partition in self._ledger.partitions:
            with self._ledger.reading(partition) as reading:
                count += sum(1 for _ in reading.rows.waiting_reports(collection=collection))
        return count

    def seal(self, collection: str, name: str, together: int | None = None) -> int:
        """Seal the waiting reports of a collection as a round; return their number.

        Only whole groups of `together` reports are sealed, the oldest first; None for the minimum group of the
        collection.

        Raises:
            InvalidParameter: an argument has the wrong type or is out of range, or `together` is below the minimum
                group. Nothing was sealed.
            NameTaken: the collection has a round of this name.
            TooFewReports: there is no whole group.
            LedgerError: the round was sealed, but a reader prevented the clearing of the log. Seal the same round
                again: `NameTaken` then says that the log is clear.
        """
        check_text("collection", collection)
        check_text("round", name)
        if together is not None:
            check_whole("together", together, 1, _MOST)

        def seal(transactions: list[Transaction]) -> int:
            return _seal(transactions, collection, name, together)

        try:
            sealed = self._ledger.run_in_partitions(seal, self._ledger.partitions)
        except NameTaken:
            self._ledger.clear_log()
            raise
        # The log of SQLite still has the reports with their entries.
        self._ledger.clear_log()
        return sealed

    def rounds(self, collection: str) -> list[str]:
        """Return the names of a collection's rounds, in the order of their sealing."""
        check_text("collection", collection)
        with self._ledger.reading() as reading:
            return reading.rows.rounds(collection)

    def round(self, collection: str, name: str) -> Iterator[RoundPart]:
        """Yield the reports of a round in parts. All reports of a part are equally long; the longest come first.

        Raises:
            UnknownName: the collection has no round of this name.
            LedgerError: the round was changed.
        """
        check_text("collection", collection)
        check_text("round", name)
        part, parts = 0, 1
        while part < parts:
            with self._ledger.reading() as reading:
                row = reading.numbered(RoundPart, collection, name, part)
            if row is None and not part:
                raise UnknownName("round", name, self.rounds(collection))
            if row is None:
                why = f"a part of round {name} of {collection} is missing. Run: ldp-budget ledger verify"
                raise LedgerError(self._ledger.name, why)
            yield row
            part, parts = part + 1, row.parts


def _minimum_group(transaction: Transaction, collection: str) -> int:
    """Return the minimum group of a stored collection; its plugin need not be installed."""
    stored = transaction.collection(collection)
    return MINIMUM_GROUP if stored is None else minimum_group_in(json.loads(stored.definition))


def _seal(transactions: list[Transaction], collection: str, name: str, group: int | None) -> int:
    """Move the waiting reports of all partitions to a round in the first one."""
    first = transactions[0]
    if first.numbered(RoundPart, collection, name, 0) is not None:
        raise NameTaken("round", name, "is already sealed. Nothing was sealed.", hint="Choose another name.")
    least = _minimum_group(first, collection)
    together = least if group is None else group
    if together < least:
        hint = "Nothing was sealed. What is left waits for the next round."
        raise InvalidParameter("group", f"at least {least}, the minimum group of {collection}", together, hint=hint)
    waiting = [(each, row) for each in transactions for row in each.waiting_reports(collection=collection)]
    whole = len(waiting) // together * together
    if not whole:
        raise TooFewReports(len(waiting), together)
    # Partitions are filled evenly, so the numbers give the order of arrival, and in one partition exactly.
    waiting = sorted(waiting, key=lambda each: each[1].number)[:whole]
    by_partition: dict[int, list[StoredReport]] = {each.partition: [] for each in transactions}
    for transaction, row in waiting:
        by_partition[transaction.partition].append(row)
    for transaction in transactions:
        if by_partition[transaction.partition]:
            transaction.end_reports(by_partition[transaction.partition], SEALED)
    reports = [row.report for _, row in waiting]
    random.SystemRandom().shuffle(reports)
    reports.sort(key=len, reverse=True)  # keeps the random order of equally long ones
    parts: list[list[bytes]] = []
    for length, equal in groupby(reports, len):
        some = list(equal)
        size = max(1, PART_BYTES // max(1, length))
        parts += [some[start : start + size] for start in range(0, len(some), size)]
    for part, some in enumerate(parts):
        first.add_numbered(RoundPart(0, collection, name, part, len(parts), len(some), b"".join(some)))
    return whole
