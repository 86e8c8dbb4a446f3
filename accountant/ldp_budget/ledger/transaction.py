"""Write transaction of a ledger: it numbers appended rows, buffers writes, and extends the hash chain when it ends.

`Cache` keeps what the write transactions of a partition have read for the next transaction. It is valid until another
process changes the settings.
"""

from __future__ import annotations

import secrets
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError
from ..guarantees.fixed_point import ZERO, Costs
from .calendar import span_at, window_start_micros
from .hash_chain import canonical_batch, counters_mac
from .keyed_hashing import HASH_BYTES
from .models import (
    CLOCK,
    COLLECTION,
    ERASED,
    PERIOD,
    POLICY_SET,
    RECORDED,
    WAITING,
    AccountMac,
    AdminLogEntry,
    Checkpoint,
    Closing,
    Entry,
    EntryLabel,
    EntryNote,
    ErasedRecord,
    IdempotencyRecord,
    KeptPeriod,
    Lifecycle,
    MemoisedCount,
    Numbered,
    PartitionHead,
    PricedMechanism,
    QuotaUse,
    StoredCollection,
    StoredPolicy,
    StoredReport,
    Tombstone,
    User,
    WindowSum,
)
from .row_macs import AccountMacMaker, AccountMacs, covered_windows
from .snapshot import Account, Reading, covered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .calendar import Clock, Moment, Window
    from .keyed_hashing import Key, Secret
    from .storage import Batch, Renew, Rows


class Cache:
    """Rows that need not be read again until there are new priced mechanisms, policies or periods.

    The partition head counts these. A transaction updates the cache with what it writes. The cache of a transaction
    that was rolled back is dropped.
    """

    def __init__(self, end: PartitionHead | None = None) -> None:
        self.end = end
        # The gauges with kept windows and their starts; and the open windows, from one moment until another.
        self.periods: dict[str, int] | None = None
        self.windows: dict[str, Window] = {}
        self.open_from = self.open_until = 0
        # The newest version of each policy.
        self.policies: dict[str, StoredPolicy] = {}
        # What the accounting has worked out for requests in these windows; it knows the keys and the values.
        self.decided: dict[Any, Any] = {}
        # The windows that a MAC of an account covers, and the maker of such MACs.
        self.covered: list[tuple[str, str | None]] = []
        self.maker: AccountMacMaker | None = None
        # The numbers of priced mechanisms, by fingerprint, guarantee and collection.
        self.charges: dict[tuple[str, str, str], int] = {}

    def holds(self, end: PartitionHead) -> bool:
        """True if the cache is valid for a partition with this head."""
        mine = self.end
        return mine is not None and mine.known == end.known


class Appended:
    """The rows that one transaction appends: entries are buffered until they are written together."""

    def __init__(self) -> None:
        self.entries: list[tuple[Any, ...]] = []
        self.covered: list[str] = []
        self.charges: list[tuple[Any, ...]] = []
        self.policies: list[tuple[Any, ...]] = []
        self.records: list[tuple[Any, ...]] = []

    def take(self) -> list[tuple[Any, ...]]:
        """Return the buffered entries, to be written now; the chain hash will cover them."""
        rows, self.entries = self.entries, []
        if rows:
            self.covered.append(ascii(rows)[1:-1])
        return rows

    def link_text(self, before: bytes) -> bytes:
        """Return the bytes that the chain hash of this transaction covers, see `hash_chain.canonical_transaction`."""
        entries = ", ".join(self.covered)
        return before + f"[[{entries}], {self.charges!a}, {self.policies!a}, {self.records!a}]".encode("ascii")


class Transaction(Reading):
    """One write transaction. What it reads cannot change before it ends.

    Sums, idempotency records and entries are buffered and written together, at the latest when it ends. So one
    statement writes the work of all threads in a group commit.
    """

    rows: Rows

    def __init__(
        self, rows: Rows, key: Key, clock: Clock, cache: Cache, partition: int = 0, partitions: int = 1
    ) -> None:
        # Spelled out, without `Reading.__init__`: each charge begins one.
        self.key, self.rows, self._clock = key, rows, clock
        self.partition, self.partitions = partition, partitions
        self.secret = key.in_use
        known: tuple[PartitionHead, bytes] | None = getattr(rows, "known_end", None)
        end, self.counters_mac = known or rows.end()
        self.end = end
        self._moment: Moment | None = None
        self._windows: dict[str, Window] | None = None
        # Another process may have written since the cache was filled.
        self.cache = cache if cache.end is end or cache.holds(end) else Cache()
        self.cache.end = end
        self.by = 0
        """The number of the API key for which a function is run. A charge has a number of its own."""
        self.writes = 0
        """Grows with every write and every buffered write, so a caller can tell whether a step wrote anything."""
        self._entries, self._at, _, self._accounts, self._charges, self._policies = end[:6]
        self._collections, self._numbered_rows, self._checkpoints, self._periods = end[6:10]
        self._lifecycle: tuple[int, ...] = end[10:]
        self.together: tuple[Transaction, ...] = ()
        """The transactions of other partitions that are written together with this one."""
        self._appended = Appended()
        maker = self.cache.maker
        if maker is None or maker.secret is not self.secret:
            maker = self.cache.maker = AccountMacMaker(self.secret, partition)
        self.account_macs = AccountMacs(self, maker)
        """The accounts that were checked; they get a new MAC if they change."""
        self._batch_costs: Mapping[str, Costs] = {}
        self._records: dict[tuple[bytes, bytes], IdempotencyRecord] = {}

    def finish(self) -> None:
        """Write the buffered rows, the chain hash over all that was appended, and the new partition head."""
        rows, appended, macs = self.rows, self._appended, self.account_macs
        chain_hash, entries, link = self.end.chain_hash, appended.take(), b""
        if appended.covered:
            link = appended.link_text(chain_hash)
        sums, row_macs = macs.changes() if macs.changed else ([], [])
        records: list[tuple[Any, ...]] = []
        if self._records:
            records, self._records = self.secret.with_macs(self._records.values()), {}
        if link:
            chain_hash = self.secret.chain_hash(link)
        if sums:
            rows.replace(WindowSum, sums)
        if row_macs:
            rows.replace(AccountMac, row_macs)
        if records:
            rows.insert(IdempotencyRecord, records)
        if entries or appended.covered:
            rows.add_entries(entries, chain_hash, self._entries)
        numbered = (
            *(self._accounts, self._charges, self._policies, self._collections, self._numbered_rows),
            *(self._checkpoints, self._periods, *self._lifecycle),
        )
        end = PartitionHead(self._entries, self._at, chain_hash, *numbered)
        if end != self.end:
            rows.set_end(end, None if numbered == self.end[3:] else counters_mac(self.secret, end))
            self.cache.end = end

    def _write_back(self) -> None:
        """Write the buffered rows, for a statement that must see them."""
        sums, row_macs = self.account_macs.changes()
        if sums:
            self.rows.replace(WindowSum, sums)
        if row_macs:
            self.rows.replace(AccountMac, row_macs)
        if self._records:
            self.rows.insert(IdempotencyRecord, self.secret.with_macs(self._records.values()))
            self._records = {}
        rows = self._appended.take()
        if rows:
            self.rows.add_entries(rows, None, self._entries)

    def settle(self) -> int:
        """Write the buffered rows before `rows` is used directly; return the number of the newest entry."""
        self._write_back()
        self.writes += 1
        return self._entries

    @property
    def moment(self) -> Moment:
        if self._moment is None:
            if not self.together:
                self._moment = self._clock.moment(self._at)
                return self._moment
            # Partitions that are written together have one time: midnight may fall between two readings of the clock.
            latest = max((each.go_by_the_clock() for each in (self, *self.together)), key=attrgetter("micros"))
            for each in (self, *self.together):
                each._moment = latest
            return latest
        return self._moment

    def time(self) -> int:
        """Return the time in microseconds; that of the newest entry if the clock is not plausible."""
        return (self._moment or self._clock.maintenance_time(self.newest_at)).micros

    @property
    def newest_entry(self) -> int:
        """The number of the newest entry."""
        return self._entries

    @property
    def position(self) -> str:
        """The position of the journal: the partition and the number of its newest entry."""
        return f"{self.partition}:{self._entries}"

    @property
    def newest_at(self) -> int | None:
        return self._at

    @property
    def windows(self) -> dict[str, Window]:
        if self._windows is None:
            moment, cache = self._moment or self.moment, self.cache
            if not cache.open_from <= moment.micros < cache.open_until:
                cache.windows = {period: moment.window(period) for period in self.periods()}
                cache.open_from, cache.open_until = span_at(cache.windows, moment.micros)
                cache.decided = {}
                cache.covered = covered_windows(cache.windows, self.periods(), moment.day)
            self._windows, self.account_macs.covered = cache.windows, cache.covered
        return self._windows

    def windows_to_read(self) -> dict[str, Window]:
        """Return the windows to show; they are those of the newest entry if the clock is not plausible."""
        moment = self._moment or self._clock.maintenance_time(self.newest_at)
        return {period: moment.window(period) for period in self.periods()}

    def periods(self) -> dict[str, int]:
        if self.cache.periods is None:
            self.cache.periods = super().periods()
        return self.cache.periods

    # -- idempotency records ------------------------------------------------------------------------------

    def idempotency_records(
        self, needs: list[tuple[bytes, bytes]]
    ) -> dict[tuple[bytes, bytes], IdempotencyRecord | LedgerError]:
        """Return the records of pairs of a user and an idempotency key; for a record that was changed, the error."""
        found: dict[tuple[bytes, bytes], IdempotencyRecord | LedgerError] = {}
        if self._records:
            found.update((need, self._records[need]) for need in needs if need in self._records)
        unknown = [need for need in needs if need not in found] if found else needs
        if unknown:
            wanted = set(unknown)
            for stored in self.rows.idempotency_records(*map(list, zip(*unknown, strict=True))):
                need = stored.user_hash, stored.key_hash
                if need in wanted:
                    try:
                        found[need] = self.checked_idempotency_record(stored)
                    except LedgerError as error:
                        found[need] = error
        return found

    def has_idempotency_records(self, user: bytes) -> bool:
        """True if a user has any idempotency record."""
        self._write_back()
        return next(iter(self.rows.idempotency_records_of(user)), None) is not None

    def store_idempotency_record(
        self, user: bytes, key: bytes, entry: int | None, request: bytes, response: str
    ) -> IdempotencyRecord:
        """Store the response for an idempotency key, as long as the account exists; `entry` is None for a refusal."""
        number = self._next_number() if entry is None else None
        # It gets its MAC when it is written.
        record = self._records[user, key] = IdempotencyRecord(user, key, entry, number, request, response, b"")
        self.writes += 1
        return record

    def _next_number(self) -> int:
        self._numbered_rows += 1
        return self._numbered_rows

    def add_numbered(self, row: Numbered) -> None:
        """Store a row of a `NUMBERED` class; it gets the next number instead of its own."""
        self._add_numbered(row._replace(number=self._next_number()))

    def _add_numbered(self, row: Numbered) -> None:
        row = row._replace(row_mac=self.secret.row_mac(*covered(row, self.partition)))
        self.rows.insert(type(row), [row])
        self.writes += 1

    # -- reports ------------------------------------------------------------------------------------------

    def store_report(self, entry: int, collection: str, report: bytes) -> None:
        """Store the report that an entry of this transaction charges; it waits to be sealed."""
        self.add_numbered(StoredReport(0, entry, collection, WAITING, report))

    def waiting_reports(self, *, collection: str | None = None, account: int | None = None) -> list[StoredReport]:
        """Return the waiting reports of a collection or of an account. Raises `LedgerError` if one was changed."""
        reports = list(self.rows.waiting_reports(collection=collection, account=account))
        for report in reports:
            if self.secret.row_mac(*covered(report, self.partition)) != report.row_mac:
                why = f"report {report.number} was changed. Nothing was written. Run: ldp-budget ledger verify"
                raise LedgerError(self.ledger_name, why)
        return reports

    def end_reports(self, reports: Iterable[StoredReport], state: str) -> None:
        """Delete the bytes of waiting reports, and record why."""
        ended = [report._replace(state=state, report=b"") for report in reports]
        row_macs = self.secret.row_macs(covered(report, self.partition) for report in ended)
        self.rows.replace(
            StoredReport, [report._replace(row_mac=row_mac) for report, row_mac in zip(ended, row_macs, strict=True)]
        )
        self.writes += 1

    # -- accounts -----------------------------------------------------------------------------------------

    def check_account(self, account: int) -> None:
        """Check the sums of an account before they are changed.

        The sums of an erased user are not used, and not checked.
        """
        if account not in self.account_macs and not self.rows.is_erased_account(account):
            self._write_back()
            self.account_macs.check([account])

    def open_account(self, user: bytes) -> int:
        """Open an account for a new user."""
        self.copy_accounts([user])
        return self._accounts

    def copy_accounts(self, users: Sequence[bytes | None]) -> None:
        """Open accounts for new users; a copy also opens those of erased users, who have no hash."""
        numbered = [*enumerate(users, self._accounts + 1)]
        row_macs = self.secret.row_macs(numbered)
        self.rows.insert(User, [(*row, row_mac) for row, row_mac in zip(numbered, row_macs, strict=True)])
        self._accounts += len(numbered)
        self.writes += 1

    def open_accounts(self, batch: Batch) -> None:
        """Open accounts for the users of a batch who have none."""
        users = batch.unknown()
        self.account_macs.check_batch(batch)
        if users:
            first = self._accounts + 1
            self._accounts += len(users)
            row_macs = self.secret.row_macs(zip(range(first, first + len(users)), users, strict=True))
            batch.open_accounts(first, users, row_macs)
            self.account_macs.open_batch(first, users)
            self.writes += 1

    def spent(self, account: int, window: str) -> Costs:
        """Return the amounts charged to an account in a window."""
        return self.account_macs.spent(account, window) or self.rows.spent(account, window) or ZERO

    def total(self, account: int, window: Window) -> Costs:
        """Return what a limit counts in a window: what was charged in it, and in the earlier days that count."""
        total = self.spent(account, window.name)
        if window.earlier:
            for _, name, *amounts in self.rows.sums_between([account], [(window.earlier[0], window.earlier[-1])]):
                if name in window.earlier:
                    total = total.plus(Costs._make(amounts))
        return total

    def set_spent(self, account: int, window: str, costs: Costs) -> None:
        """Replace the amounts charged to an account in a window, once they were read or checked."""
        if not self.account_macs.set(account, window, costs):
            self.rows.replace(WindowSum, [(account, window, *costs)])
        self.writes += 1

    def set_memoised_reports(self, account: int, label: bytes, charge: int, window: str, reports: int) -> None:
        """Replace the number of reports of a memoised value that were charged in a window."""
        if account in self.account_macs:
            self.account_macs.count_reports(account, window, charge, label, reports)
        self.rows.replace(MemoisedCount, [MemoisedCount(account, label, charge, window, reports)])
        self.writes += 1

    def set_quota_used(self, account: int, plan: str, promise: str, used: int) -> None:
        """Replace the used part of a plan's quota."""
        if account in self.account_macs:
            self.account_macs.count_used(account, plan, promise, used)
        self.rows.replace(QuotaUse, [QuotaUse(account, plan, promise, used)])
        self.writes += 1

    def erase(self, user: bytes, account: int | None) -> None:
        """Erase a user: detach the account and add a tombstone.

        The user's keys, labels, notes and waiting reports are deleted, and all sums except that of the lifetime. The
        journal does not record the account, and the tombstone does not record the time. An `ErasedRecord` takes the
        number of each record of a refusal.
        """
        self._write_back()
        cut_off = None if account is None else User(account, None, self.secret.row_mac(account, None))
        if account is not None:
            self.account_macs.drop([account])
            self.end_reports(self.waiting_reports(account=account), ERASED)
        refused = [record.number for record in self.rows.idempotency_records_of(user) if record.number is not None]
        self.rows.forget(Tombstone(user, self.secret.row_mac(user)), cut_off)
        for number in refused:
            self._add_numbered(ErasedRecord(number))
        # An erasure does not wait for a correct clock.
        at = self.time()
        self.append_event(ERASED, at, reports=0 if account is None else 1)

    # -- charges and the journal --------------------------------------------------------------------------

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        number = self.cache.charges.get((fingerprint, guarantee, collection))
        if number is None:
            number = self.rows.priced_mechanism_number(fingerprint, guarantee, collection)
            if number is not None:
                self.check_charge(self.priced_mechanism(number))
                self.cache.charges[fingerprint, guarantee, collection] = number
        return number

    def store_priced_mechanism(
        self, fingerprint: str, mechanism: str, declared: str, guarantee: str, costs: Costs, collection: str
    ) -> int:
        """Return the number of a priced mechanism; store it first if it is new."""
        known = self.priced_mechanism_number(fingerprint, guarantee, collection)
        if known is not None:
            return known
        self._charges += 1
        charge = PricedMechanism(self._charges, fingerprint, mechanism, declared, guarantee, *costs, collection)
        self.rows.insert(PricedMechanism, [charge._replace(row_mac=self.secret.row_mac(*charge.covered))])
        self._appended.charges.append(charge.covered)
        self.cache.charges[fingerprint, guarantee, collection] = charge.number
        self.writes += 1
        return charge.number

    def put(
        self, entry: Entry, label: bytes | None = None, salt: bytes | None = None, note: str | None = None
    ) -> int:
        """Append an entry as it is, with the label of its commitment and the note that it claims to have.

        The number given is not used. Label and note are missing only for an entry of an erased user.
        """
        self._entries, self._at = self._entries + 1, entry.at
        if label is not None and salt is not None:
            self.rows.insert(EntryLabel, [EntryLabel(self._entries, label, salt)])
        if note is not None:
            self.rows.insert(
                EntryNote, [EntryNote(self._entries, note, self.secret.row_mac(*self.noted(self._entries, note)))]
            )
        self._appended.entries.append(entry.row(self._entries))
        self.account_macs.see(entry, self._entries)
        self.writes += 1
        return self._entries

    def put_charges(self, rows: Iterable[tuple[Any, ...]], charge: int) -> None:
        """Append the entries of some flat rows as they are, for a priced mechanism, to accounts that were not checked.

        Number and priced mechanism in the rows are not used. The entries have neither labels nor notes.
        """
        numbered = [(number, *row[1:4], charge, *row[5:]) for number, row in enumerate(rows, self._entries + 1)]
        self._entries, self._at = numbered[-1][:2]
        self._appended.entries += numbered
        self.writes += 1

    def append(self, entry: Entry, label: bytes | None = None, note: str | None = None) -> int:
        """Append an entry, with label and note if it has them; return its number (the number given is not used).

        The entry names its own writer. Items of several writers share a transaction.
        """
        salt = None
        if label is not None:
            salt = secrets.token_bytes(HASH_BYTES)
            entry = entry._replace(label_commitment=self.key.commitment(salt, label))
        return self.put(entry, label, salt, note)

    def append_charge(
        self, begin: tuple[Any, ...], end: tuple[Any, ...], account: Account, label: bytes | None, note: str | None
    ) -> int:
        """Append the entry of a charge to a checked account; return its number.

        `begin` has its values from the time to the amounts, `end` those from its expiry to its sub-limit, without the
        flag of its note. It writes what `append` would write.
        """
        number = self._entries = self._entries + 1
        self._at = begin[0]
        commitment = None
        if label is not None:
            salt = secrets.token_bytes(HASH_BYTES)
            commitment = self.key.commitment(salt, label)
            self.rows.insert(EntryLabel, [EntryLabel(number, label, salt)])
        if note is not None:
            self.rows.insert(EntryNote, [EntryNote(number, note, self.secret.row_mac(*self.noted(number, note)))])
        has_note = 0 if note is None else 1
        expires, has_record, api_key, share = end
        row = (number, *begin, commitment, expires, None, has_record, has_note, api_key, share, None)
        self._appended.entries.append(row)
        account.newest = number
        self.account_macs.changed.add(begin[2])
        self.writes += 1
        return number

    def append_event(
        self, kind: str, at: int, *, policy: int = 0, reports: int = 0, period: str | None = None
    ) -> int:
        """Append an entry of no account, written by the API key for which a function is run."""
        return self.append(Entry(0, at, kind, 0, 0, policy, reports, ZERO, api_key=self.by, period=period))

    def batch(self, users: list[bytes]) -> Batch:
        """Return a batch of distinct, sorted users who are charged alike."""
        self._write_back()
        return self.rows.batch(users, sorted(self.account_macs.windows_on(self.moment.day)))

    def charge_batch(self, batch: Batch, costs: Mapping[str, Costs]) -> None:
        """Add costs, by window, to every account of a batch, and remember them for its entries."""
        by_cost: dict[Costs, list[str]] = {}
        for window, cost in costs.items():
            by_cost.setdefault(cost, []).append(window)
        for cost, windows in by_cost.items():
            batch.charge(windows, cost)
        self._batch_costs = costs

    def append_batch(
        self, batch: Batch, common: tuple[Any, ...], api_key: int, note: str | None = None, share: int = 0
    ) -> None:
        """Append an entry of one report for every account of a batch; `common` is as for `Batch.append`.

        All entries record the same API key. Each entry gets its own copy of the note, because the note is deleted with
        the entry's user.
        """
        first, bound = self._entries + 1, (int(note is not None), api_key, share)
        accounts = batch.append(first, common, bound)
        self._appended.covered.append(canonical_batch(first, accounts, common, bound))
        batch.set_macs(self.moment.day, self.account_macs.macs_after(accounts, first, self._batch_costs))
        if note is not None:
            numbers = range(first, first + len(accounts))
            row_macs = self.secret.row_macs(self.noted(number, note) for number in numbers)
            self.rows.insert(
                EntryNote,
                [EntryNote(number, note, row_mac) for number, row_mac in zip(numbers, row_macs, strict=True)],
            )
        self._entries, self._at = self._entries + len(accounts), common[0]
        self.writes += 1

    def entry(self, number: int) -> Entry | None:
        """Return a journal entry by its number."""
        self._write_back()
        row = self.rows.entry(number)
        return None if row is None else Entry.of(row)

    def resolution(self, number: int) -> Entry | None:
        """Return the entry that ended a reservation."""
        self._write_back()
        row = self.rows.resolution(number)
        return None if row is None else Entry.of(row)

    def repair_clock(self) -> Moment | None:
        """Continue from the current clock if it is behind the newest entry; None if there is nothing to repair."""
        moment = self._clock.moment_to_repair(self.newest_at)
        if moment is not None:
            self.append_event(CLOCK, moment.micros)
            self._write_back()
        return moment

    # -- policies and collections -------------------------------------------------------------------------

    def find_policy(self, name: str) -> StoredPolicy | None:
        if name not in self.cache.policies:
            policy = self._checked_policies(self._policies).get(name)
            if policy is None:
                return None
            self.cache.policies[name] = policy
        return self.cache.policies[name]

    def add_policy(self, name: str, version: int, definition: str) -> None:
        """Store a version of a policy, and append an entry that records it."""
        at = self.moment.micros
        policy = StoredPolicy(self._policies + 1, name, version, at, definition)
        self.put_policy(policy)
        self.append_event(POLICY_SET, at, policy=policy.number)

    def put_policy(self, policy: StoredPolicy) -> None:
        """Store a version of a policy; the caller appends the entry that records it."""
        self._policies = policy.number
        policy = policy._replace(row_mac=self.secret.row_mac(*policy.covered))
        self.rows.insert(StoredPolicy, [policy])
        self._appended.policies.append(policy.covered)
        self.cache.policies[policy.name] = policy
        self.cache.decided = {}
        self.writes += 1

    def add_record(self, number: int, kind: str, name: str, body: str) -> AdminLogEntry:
        """Add the next administrative record, and an entry that records it; this works even if the clock is bad."""
        record = AdminLogEntry(number, self.time(), kind, name, body, self.by)
        self.put_record(record)
        self.append_event(RECORDED, record.at, reports=record.number)
        return record

    def put_record(self, record: AdminLogEntry) -> None:
        """Store a record; the caller appends the entry that records it."""
        self.rows.insert(AdminLogEntry, [record])
        self._appended.records.append(tuple(record))
        self.writes += 1

    def charged_versions(self, name: str) -> list[StoredPolicy]:
        """Return the versions of a policy under which a user was charged, oldest first."""
        self._write_back()
        versions = [policy for policy in self.rows.policies() if policy.name == name]
        return [policy for policy in versions if self.rows.was_charged(policy.number)]

    def begin_period(self, period: str) -> None:
        """Keep windows of a period that no policy limits yet, because they are still to be backfilled.

        If that was begun before, nothing happens. The partition head then counts one more period, so no process uses
        its cached periods any more.
        """
        if period not in self.periods():
            self.append_event(PERIOD, self.moment.micros, period=period)
            self.keep_period(period, window_start_micros(period, self.moment.micros))

    def keep_period(self, period: str, since: int) -> None:
        """Keep windows of `period` from the one that starts at `since`, even if the period is kept already."""
        self._write_back()
        self.rows.replace(KeptPeriod, [KeptPeriod(period, since)])
        self._periods += 1
        self.cache.periods = self._windows = None
        self.cache.open_from = self.cache.open_until = 0
        self.account_macs.forget_windows()
        self.writes += 1

    def add_collection(self, name: str, fingerprint: str, definition: str) -> None:
        """Store a collection; it never changes."""
        self._collections += 1
        row = (self._collections, name, fingerprint, definition)
        self.rows.insert(StoredCollection, [StoredCollection(*row, self.secret.row_mac(*row))])
        self.writes += 1
        if self.by:
            self.append_event(COLLECTION, self.time(), reports=self._collections)

    def import_tombstone(self, tombstone: Tombstone) -> None:
        """Store a tombstone of another ledger; the entry that records the erasure is copied separately."""
        self._write_back()
        self.rows.forget(Tombstone(tombstone.user_hash, self.secret.row_mac(tombstone.user_hash)), None)
        self.writes += 1

    def set_lifecycle(self, value: Lifecycle, move: tuple[str, str, str] | None = None) -> None:
        """Change the lifecycle of the partition. `move` is the `Closing` that caused it: move, ledger and identity."""
        self._lifecycle = tuple(value)
        if move is not None:
            self.add_numbered(Closing(0, value.generation, value.changes, *move))
        self.writes += 1

    def rotate(self, tables: Mapping[str, Renew], secret: Secret) -> None:
        """Convert stored rows, see `Rows.renew`. Everything written from then on is under another secret."""
        self._write_back()
        self.rows.renew(tables)
        self.secret = secret
        self.set_lifecycle(Lifecycle(*self._lifecycle)._replace(secret=secret.number))

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint."""
        self._checkpoints += 1
        self.rows.insert(Checkpoint, [checkpoint])
        self.writes += 1

    def see_checkpoint(self, number: int) -> None:
        """Record the number of checkpoints in a partition other than the one that stores them."""
        self._checkpoints = max(self._checkpoints, number)
        self.writes += 1
