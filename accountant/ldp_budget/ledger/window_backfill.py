"""Backfill of window sums from the journal, after a new limit or a clock repair.

A short journal is backfilled in the transaction that limits the period. For a long journal, a `period` entry is
appended first. From then on, every charge is added to the period's windows too, though no policy limits them. The
windows are then backfilled for a part of the accounts at a time. A part is read without a lock. A short transaction
adds what was appended since and writes the part, which stays correct from then on. Once all parts are done, a policy
may limit the period. If the process stops in between, no decision uses these windows, and the next backfill starts
again with the first account.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees.fixed_point import LARGEST
from .calendar import DAY_MICROS, LIFETIME, Moment, gauge_of, is_lifetime, window_start_micros
from .models import CHARGES, VOIDED, AccountMac, Entry, MemoisedCount, QuotaUse, WindowSum
from .row_macs import finish_account_mac
from .snapshot import Replay, by_account, parts, promise, promises

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from hashlib import blake2b

    from ..guarantees.fixed_point import Costs
    from .ledger import Ledger
    from .models import Repair
    from .snapshot import Promise, Promises, Reading
    from .storage import Rows, Snapshot
    from .transaction import Transaction

    Replayed = Iterable[tuple[int, "Replay | _Sums"]]

_MOST_AT_ONCE = 5_000
"""The largest number of journal entries that may be read while the lock is held."""

_ACCOUNTS_TOGETHER = 2_000
_ROWS_TOGETHER = 10_000
# A writer that appends faster than this process reads is not waited for.
_MOST_ROUNDS = 10


def keep(transactions: Sequence[Transaction], periods: Sequence[str]) -> list[str]:
    """Keep windows of periods that no policy limits yet, in every partition; return those still to be filled."""
    if not periods:
        return []
    if sum(transaction.end.entries for transaction in transactions) > _MOST_AT_ONCE:
        for transaction in transactions:
            for period in periods:
                transaction.begin_period(period)
        return [*periods]
    for transaction in transactions:
        _fill_at_once(transaction, periods)
    return []


def _fill_at_once(transaction: Transaction, periods: Sequence[str]) -> None:
    for period in periods:
        if period not in transaction.periods():
            transaction.keep_period(period, window_start_micros(period, transaction.moment.micros))
    kept = transaction.periods()
    since = {period: kept[period] for period in periods}
    transaction.settle()
    histories = _histories_since(transaction.rows, range(1, LARGEST), min(since.values()))
    _write_again(transaction, since, histories, lambda window: True)


def fill_ahead(ledger: Ledger, periods: Sequence[str]) -> None:
    """Write the windows of periods that are already kept, in steps, while other processes write."""
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            # An account that is opened later is charged in these windows from its first charge on.
            last = reading.end.accounts
        for first, until in parts(last, _ACCOUNTS_TOGETHER):
            accounts = range(first, until + 1)
            while not ledger.run(_read_part(ledger, partition, periods, accounts).write, partition):
                pass  # the clock was repaired meanwhile, and what was read may count in other windows


def _read_part(ledger: Ledger, partition: int, periods: Sequence[str], accounts: range) -> _Part:
    """Return a part of the accounts, read so far that few entries were appended since."""
    with ledger.reading(partition) as reading:
        part = _Part(reading, periods, accounts)
    for _ in range(_MOST_ROUNDS):
        with ledger.reading(partition) as reading:
            if part.go_on(reading) <= _MOST_AT_ONCE:
                break
    return part


class _Part:
    """Some accounts, replayed up to one entry of the journal."""

    def __init__(self, reading: Reading, periods: Sequence[str], accounts: range) -> None:
        kept = reading.periods()
        self._since = {period: kept[period] for period in periods}
        self._accounts = accounts
        self._repairs = reading.repairs()
        self._reading = reading
        self._promises: dict[int, Promise] = {}
        self._until = reading.end.entries
        late = min(self._since.values())
        rows = _histories_since(reading.rows, accounts, late)
        self._replays = dict(_replayed(rows, self._empty))

    def _empty(self) -> Replay:
        return Replay(self._since, self._promise, self._repairs)

    def _promise(self, charge: int) -> Promise:
        if charge not in self._promises:
            self._promises[charge] = promise(self._reading, charge)
        return self._promises[charge]

    def go_on(self, reading: Reading) -> int:
        """Add the entries that were appended since, up to this snapshot; return their number."""
        appended = reading.end.entries - self._until
        self._replays.update(self._with_newest(reading, reading.end.entries))
        self._until = reading.end.entries
        return appended

    def write(self, transaction: Transaction) -> bool:
        """Write the current sums and label counts; False, without writing, if the clock was repaired since."""
        newest = transaction.settle()
        if transaction.repairs() != self._repairs:
            return False
        replays = self._replays | self._with_newest(transaction, newest)
        gone = _cut_off(transaction.rows, self._accounts)
        left = {account: replay for account, replay in replays.items() if account not in gone}
        transaction.account_macs.check(left)
        _write(transaction.rows, left.items(), lambda window: True)
        _renew_macs(transaction, [*left])
        return True

    def _with_newest(self, reading: Reading, newest: int) -> dict[int, Replay]:
        """Return the accounts with newer entries, replayed.

        The stored replays stay unchanged, as a transaction may fail.
        """
        self._reading = reading
        changed: dict[int, Replay] = {}
        for row, _ in reading.rows.entries(self._until + 1, newest):
            account = row[3]
            if account in self._accounts:
                if account not in changed:
                    known = self._replays.get(account)
                    changed[account] = self._empty() if known is None else known.copy()
                label = reading.rows.label(row[0])
                changed[account].add(Entry.of(row), None if label is None else label.label)
        return changed


def write_accounts(transaction: Transaction, accounts: range) -> None:
    """Write sums, label counts and used quotas of accounts that have none yet, from their histories."""
    rows, since = transaction.rows, transaction.periods()
    known, repairs = promises(transaction), transaction.repairs()
    users = {user.account: user.user_hash for user in rows.users(accounts[0], accounts[-1])}
    quotas, macs = _Quotas(transaction), transaction.account_macs
    # The clock may be wrong while a ledger is copied, so a MAC is of the day of the newest charge.
    today = transaction.time() // DAY_MICROS
    sealed: list[AccountMac] = []

    # Accounts with one charge that is alike have equal sums, and begin their MACs alike; many have no other.
    alike: dict[tuple[Any, ...], tuple[_Sums, int, blake2b]] = {}

    def replayed() -> Iterator[tuple[int, _Sums]]:
        for account, of_account in by_account(rows.histories(accounts[0], accounts[-1])):
            history, user = list(of_account), users.get(account)
            key = (history[0][1:3], history[0][4:]) if user is not None and len(history) == 1 else ()
            if key in alike:
                found, day, begun = alike[key]
                assert user is not None
                row_mac = finish_account_mac(begun, account, user, history[0][0])
                sealed.append(AccountMac(account, day, row_mac))
                yield account, found
                continue
            found = _replayed_sums({LIFETIME: 0} if user is None else since, known, repairs, user is None, history)
            used = quotas.used(history)
            for (plan, quota), count in used.items():
                rows.replace(QuotaUse, [QuotaUse(account, plan, quota, count)])
            newest = next((row for row in reversed(history) if row[2] in CHARGES), None)
            if user is not None and newest is not None:
                day = min(today, newest[1] // DAY_MICROS)
                counts = _counts(found, used) if used or found.labels else {}
                begun = macs.begun_on(day, found.sums, counts)
                sealed.append(AccountMac(account, day, finish_account_mac(begun, account, user, newest[0])))
                if key and not counts and not repairs:
                    alike[key] = found, day, begun
            yield account, found

    _write(rows, replayed(), lambda window: True)
    rows.replace(AccountMac, sealed)
    transaction.writes += 1


class _Sums(NamedTuple):
    """The sums and label counts of a replayed history."""

    sums: Mapping[str, Costs]
    labels: Mapping[tuple[bytes, int, str], int]


def _replayed_sums(
    since: dict[str, int], known: Promises, repairs: tuple[Repair, ...], erased: bool, history: list[tuple[Any, ...]]
) -> _Sums:
    replay = Replay(since, known, repairs, erased=erased)
    for row in history:
        replay.add(Entry.of(row), row[-2])
    return _Sums(replay.sums, replay.labels)


def _counts(found: _Sums, used: Counter[tuple[str, str]]) -> dict[tuple[int | str | bytes, ...], int]:
    """Return label counts and used quotas by the keys under which a MAC covers them."""
    counts: dict[tuple[int | str | bytes, ...], int] = {
        (window, charge, label): count for (label, charge, window), count in found.labels.items()
    }
    for (plan, quota), count in used.items():
        counts[plan, quota] = count
    return counts


def _renew_macs(transaction: Transaction, accounts: Sequence[int]) -> None:
    """Make the MACs of accounts whose windows were written from the journal, never for a future day."""
    today = transaction.moment.day
    transaction.account_macs.renew_stored(accounts, lambda account, day: today if day is None else min(today, day))


class _Quotas:
    """Counts the quotas that entries use."""

    def __init__(self, reading: Reading) -> None:
        plans = {each.number: json.loads(each.definition)["plan"] for each in reading.rows.policies()}
        self._plans = {number: plan["identity"] for number, plan in plans.items() if plan is not None}
        self._promises = {charge.number: charge.guarantee for charge in reading.rows.priced_mechanisms()}

    def used(self, history: list[tuple[Any, ...]]) -> Counter[tuple[str, str]]:
        """Return what the rows of a history use of quotas; a void gives it back."""
        used: Counter[tuple[str, str]] = Counter()
        for row in history if self._plans else ():
            if row[2] in CHARGES and row[5] in self._plans:
                used[self._plans[row[5]], self._promises[row[4]]] += -row[6] if row[2] == VOIDED else row[6]
        return used


def recount_after_clock_repair(transaction: Transaction, moment: Moment) -> None:
    """Count entries that are dated later than a clock repair, the newest entry, in the windows of the repair as well.

    A period that was first limited while the clock was too far ahead is now kept since the window of the repair.
    """
    kept = {period: since for period, since in transaction.periods().items() if not is_lifetime(period)}
    starts = {period: window_start_micros(period, moment.micros) for period in kept}
    lowered = {period for period, since in kept.items() if starts[period] < since}
    for period in lowered:
        kept[period] = starts[period]
        transaction.keep_period(period, starts[period])
    rows = transaction.rows
    late = sorted({row[3] for row in rows.histories(1, LARGEST, moment.micros + 1)})
    if not kept:
        transaction.account_macs.check(late, though_later=True)
        _renew_macs(transaction, late)
    else:
        current = {moment.window(period).name for period in kept}
        histories = rows.histories(1, LARGEST)
        if not lowered:
            # Accounts without later-dated entries do not change; these are most if the clock was wrong for a short
            # time.
            histories = chain.from_iterable(map(rows.history, late))
        _write_again(
            transaction,
            kept,
            histories,
            lambda window: window in current or gauge_of(window) in lowered,
        )


def _write_again(
    transaction: Transaction,
    since: dict[str, int],
    histories: Iterator[tuple[Any, ...]],
    wanted: Callable[[str], bool],
) -> None:
    """Write the wanted windows of accounts from their histories, with all that counts in them."""
    known, repairs = promises(transaction), transaction.repairs()
    gone = _cut_off(transaction.rows, range(1, LARGEST))
    replayed = _replayed(histories, lambda: Replay(since, known, repairs))
    left = ((account, replay) for account, replay in replayed if account not in gone)
    while part := list(islice(left, _ACCOUNTS_TOGETHER)):
        accounts = [account for account, _ in part]
        transaction.account_macs.check(accounts, though_later=True)
        _write(transaction.rows, part, wanted)
        _renew_macs(transaction, accounts)


def _histories_since(rows: Snapshot, accounts: range, since: int) -> Iterator[tuple[Any, ...]]:
    """Yield the entries that determine windows since a moment: those from then on, and all of accounts with counts.

    The cost of memoised reports depends on all reports before them. Nothing else that is dated earlier counts. No
    void is dated before its reservation, because a clock repair ends open reservations.
    """
    counted = sorted({row.account for row in rows.memoised_counts(accounts[0], accounts[-1])})
    known = set(counted)
    plain = (row for row in rows.histories(accounts[0], accounts[-1], since) if row[3] not in known)
    return chain(plain, chain.from_iterable(map(rows.history, counted)))


def _cut_off(rows: Snapshot, accounts: range) -> set[int]:
    """Return the accounts of erased users, of which only the lifetime sum is kept."""
    return {user.account for user in rows.users(accounts[0], accounts[-1]) if user.user_hash is None}


def _replayed(histories: Iterator[tuple[Any, ...]], empty: Callable[[], Replay]) -> Iterator[tuple[int, Replay]]:
    """Yield accounts with the replays of their histories."""
    for account, history in by_account(histories):
        replay = empty()
        for row in history:
            replay.add(Entry.of(row), row[-2])
        yield account, replay


def _write(rows: Rows, replayed: Replayed, wanted: Callable[[str], bool]) -> None:
    """Write the sums and label counts of the wanted windows."""
    sums: list[tuple[Any, ...]] = []
    for account, replay in replayed:
        sums += [(account, window, *costs) for window, costs in replay.sums.items() if wanted(window)]
        for (label, charge, window), reports in replay.labels.items():
            if wanted(window):
                rows.replace(MemoisedCount, [MemoisedCount(account, label, charge, window, reports)])
        if len(sums) >= _ROWS_TOGETHER:
            rows.replace(WindowSum, sums)
            sums = []
    rows.replace(WindowSum, sums)
