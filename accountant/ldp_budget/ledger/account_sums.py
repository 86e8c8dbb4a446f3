"""Is every account what its history in the journal says: its user, its sums, its labels and the quotas it has used?

The accounts are walked in order beside their histories, a part of them in each moment.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..guarantees.fixed_point import Costs
from .calendar import DAY_MICROS, LIFETIME, code_at, gauge_of, gauges_in, measure_in, share_in
from .ledger import partition_of
from .models import CHARGES, SPENT, VOIDED, Entry, User
from .row_macs import AccountMacMaker, counts_of, finish_account_mac
from .snapshot import Replay, parts, promises

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .models import AccountMac, PricedMechanism, StoredPolicy
    from .snapshot import Reading

    Open = Callable[[], AbstractContextManager[Reading]]
    Progress = Callable[[int, int], None]
    """Told of how many steps out of how many are done."""
    DecideAgain = Callable[["Past"], "Decisions"]
    Rows = list[Any]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""The numbers that a column can hold; what was never given is looked for among all of them."""

_ACCOUNTS_TOGETHER = 5_000


class Past(NamedTuple):
    """What was set in a partition: every policy and charge, and the journal's entries that say when policies were set.

    `turns` are these entries with the repairs of the clock, in order, and `periods` are kept since the moments that
    they name. Entries up to number `copied` were copied from another ledger; `last` is the last one to look at.
    """

    policies: Sequence[StoredPolicy]
    charges: Sequence[PricedMechanism]
    turns: Sequence[Entry]
    periods: dict[str, int]
    copied: int
    last: int


class Decisions(Protocol):
    """Decides again the charges of one account after the other."""

    def check(self, history: Rows) -> Iterator[str]:
        """The entries of an account that were not allowed, in words; `history` as `Snapshot.histories` has it."""


def check_accounts(
    open_reading: Open,
    opened: int,
    said: int,
    erased_users: set[bytes],
    on_progress: Progress,
    decisions: Callable[[], Decisions | None] = lambda: None,
) -> Iterator[str]:
    """What is wrong with the first `opened` accounts; as many as are `said` to be there should be.

    Progress is told in accounts. `decisions` is asked once the walk begins.
    """
    decided = decisions()
    for first, until in parts(opened, _ACCOUNTS_TOGETHER):
        with open_reading() as reading:
            yield from _Part(reading, erased_users, decided).check(first, until)
        on_progress(until, opened)
    with open_reading() as reading:
        # What was opened meanwhile is for the next time; what nobody opened is not.
        now = reading.end.accounts
        strange = _strange(reading, now) if now >= opened else []
    if now < opened or opened != said:
        yield f"users: there are {opened}, and {said} accounts were opened"
    for account in strange:
        yield f"users: account {account} was never opened"


def _strange(reading: Reading, last: int) -> list[int]:
    """Accounts that have rows, and a number that was never given."""
    found: set[int] = set()
    for first, until in ((last + 1, HIGHEST), (LOWEST, 0)):
        found.update(row[3] for row in reading.rows.histories(first, until) if row[3])
        rows = reading.rows
        for table in (rows.users, rows.sums, rows.account_macs, rows.memoised_counts, rows.quotas):
            found.update(row[0] for row in table(first, until))
    return sorted(found)


class _Part:
    """Some accounts, in one moment."""

    def __init__(self, reading: Reading, erased_users: set[bytes], decisions: Decisions | None) -> None:
        self._reading = reading
        self._decisions = decisions
        self._erased_users = erased_users
        definitions = {policy.number: json.loads(policy.definition) for policy in reading.rows.policies()}
        limited = {gauge for definition in definitions.values() for gauge in gauges_in(definition)}
        self._maker = AccountMacMaker(reading.secret, reading.partition)
        self._kept = kept = reading.periods()
        self._codes: dict[int, frozenset[int]] = {}
        # Nobody goes by windows of a period that no policy limits: they are being filled, or that was stopped.
        self._filling = kept.keys() - limited - {LIFETIME}
        self._periods = {period: since for period, since in kept.items() if period not in self._filling}
        self._repairs = reading.repairs()
        self._known = promises(reading)
        self._measures = any(map(measure_in, self._periods))
        self._promises = {charge.number: charge.guarantee for charge in reading.rows.priced_mechanisms()}
        plans = {number: definition["plan"] for number, definition in definitions.items()}
        self._plans = {number: plan["identity"] for number, plan in plans.items() if plan is not None}
        self._windows: dict[int, tuple[int, ...]] = {}

    def check(self, first: int, last: int) -> Iterator[str]:
        """Every account from `first` to `last`, each with its rows of every table."""
        rows = self._reading.rows
        users, sums = _InOrder(rows.users(first, last)), _InOrder(rows.sums(first, last))
        labels, quotas = _InOrder(rows.memoised_counts(first, last)), _InOrder(rows.quotas(first, last))
        histories = _InOrder(rows.histories(first, last), 3)
        row_macs = _InOrder(rows.account_macs(first, last))
        for account in range(first, last + 1):
            user = next(iter(users.of(account)), None)
            if user is None:
                yield f"users: account {account} has no row"
            else:
                yield from self._user(user)
            erased = user is None or user.user_hash is None
            of_account, history = sums.of(account), histories.of(account)
            counts = labels.of(account), quotas.of(account)
            stored = self._in_force(of_account, 1), self._in_force(counts[0], 3), counts[1]
            found, macs = [*self._account(account, erased, history, *stored)], row_macs.of(account)
            if not found and not self._has_mac(user, macs, history, of_account, *counts):
                found = [f"account_macs: the MAC of account {account} does not hold"]
            yield from found
            if self._decisions is not None:
                yield from self._decisions.check(history)

    def _has_mac(self, user: User | None, rows: Rows, history: Rows, sums: Rows, labels: Rows, quotas: Rows) -> bool:
        """Whether an account has the MAC of its sums and counts; that of an erased user has none."""
        if user is None or user.user_hash is None:
            return not rows
        if len(rows) != 1:
            return False
        row: AccountMac = rows[0]
        codes = self._codes_on(row.day)
        newest = next((row[0] for row in reversed(history) if row[2] in CHARGES), None)
        covered = tuple([each[1:] for each in sums if each[1] in codes])
        counts = counts_of(labels, quotas, codes) if labels or quotas else {}
        begun = self._maker.begin(row.day, covered, counts)
        return finish_account_mac(begun, row.account, user.user_hash, newest) == row.row_mac

    def _codes_on(self, day: int) -> frozenset[int]:
        """The windows that contain a day, of all periods that are kept."""
        if day not in self._codes:
            self._codes[day] = frozenset([code_at(gauge, day * DAY_MICROS) for gauge in self._kept])
        return self._codes[day]

    def _in_force(self, rows: Rows, place: int) -> Rows:
        """The rows that somebody goes by; their window stands at a place of theirs."""
        if not self._filling:
            return rows
        return [row for row in rows if gauge_of(row[place]) not in self._filling]

    def _user(self, user: User) -> Iterator[str]:
        if self._reading.secret.row_mac(user.account, user.user_hash) != user.row_mac:
            yield f"users: the row of account {user.account} was changed"
        elif (
            user.user_hash is not None
            and partition_of(user.user_hash, self._reading.partitions) != self._reading.partition
        ):
            yield f"users: the row of account {user.account} is of another partition"
        if user.user_hash in self._erased_users:
            yield f"users: the row of account {user.account} is of an erased user"

    def _account(
        self, account: int, erased: bool, history: Rows, sums: Rows, labels: Rows, quotas: Rows
    ) -> Iterator[str]:
        plain = None if erased else self._plain_sums(history)
        if plain is not None and not labels and not quotas and plain == {row[1]: tuple(row[2:]) for row in sums}:
            return  # as nearly all of them
        yield from self._labels(erased, history)
        replay = Replay({LIFETIME: 0} if erased else self._periods, self._known, self._repairs)
        for row in history:
            replay.add(Entry.of(row), row[-2])
        for window in _differing({row[1]: Costs._make(row[2:]) for row in sums}, replay.sums):
            if gauge_of(window) not in self._periods:
                yield f"window_sums: window {window} is of a period that no policy limits"
            else:
                yield f"window_sums: account {account}, window {window}, differs from the journal"
        counted = {(row[1], row[2], row[3]): row[4] for row in labels}
        for _, _, window in _differing(counted, replay.labels):
            yield f"memoised_counts: a label of account {account}, window {window}, differs from the journal"
        if {(row[1], row[2]): row[3] for row in quotas if row[3]} != self._used(history):
            yield f"quotas: account {account} differs from the journal"

    def _plain_sums(self, history: Rows) -> dict[int, tuple[Any, ...]] | None:
        """The sums of a history of nothing but plain charges; None of any other one."""
        sums: dict[int, tuple[Any, ...]] = {}
        if self._measures:
            return None
        for row in history:
            if row[2] != SPENT or row[11] is not None or row[5] in self._plans or row[17]:
                return None
            if self._counts_twice(row):
                return None
            amounts = row[7:11]
            for window in self._windows_of(row[1]):
                sums[window] = (
                    tuple(Costs._make(sums[window]).plus(Costs._make(amounts))) if window in sums else amounts
                )
        return sums

    def _counts_twice(self, row: tuple[Any, ...]) -> bool:
        """Whether a later repair of the clock found the entry dated too late."""
        return any(repair.entry > row[0] and repair.at < row[1] for repair in self._repairs)

    def _windows_of(self, at: int) -> tuple[int, ...]:
        """The kept windows in which a moment lies; they are the same all day."""
        day = at // DAY_MICROS
        if day not in self._windows:
            everybodys = [(period, since) for period, since in self._periods.items() if not share_in(period)]
            kept = [period for period, since in everybodys if period == LIFETIME or at >= since]
            self._windows[day] = tuple([code_at(period, at) for period in kept])
        return self._windows[day]

    def _labels(self, erased: bool, history: Rows) -> Iterator[str]:
        """The label of an entry must be the one that its commitment stands for; an erased user has none."""
        for row in history:
            commitment, label, salt = row[11], row[-2], row[-1]
            if label is not None:
                if (
                    commitment is None
                    or erased
                    or self._reading.key.commitment(salt, label) != commitment
                    or row[2] == VOIDED
                ):
                    yield f"entry_labels: the label of entry {row[0]} is not the one it was written with"
            elif commitment is not None and not erased and row[2] in CHARGES and row[2] != VOIDED:
                yield f"entry_labels: entry {row[0]} has lost its label"

    def _used(self, history: Rows) -> dict[tuple[str, str], int]:
        """How much of each plan's quotas the journal says was used."""
        used: dict[tuple[str, str], int] = {}
        for row in history:
            if row[2] in CHARGES and row[5] in self._plans:
                quota = self._plans[row[5]], self._promises[row[4]]
                used[quota] = used.get(quota, 0) + (-row[6] if row[2] == VOIDED else row[6])
        return {quota: count for quota, count in used.items() if count}


class _InOrder:
    """Rows in the order of an account that stands at a place of theirs, taken account by account."""

    def __init__(self, rows: Iterator[Any], place: int = 0) -> None:
        self._rows = rows
        self._place = place
        self._next = next(rows, None)

    def of(self, account: int) -> Rows:
        """The rows of an account; those before it are passed over."""
        found: Rows = []
        row, place = self._next, self._place
        while row is not None and row[place] <= account:
            if row[place] == account:
                found.append(row)
            row = next(self._rows, None)
        self._next = row
        return found


def _differing(stored: dict[Any, Any], expected: dict[Any, Any]) -> list[Any]:
    """The keys under which two mappings do not hold the same."""
    missing = object()
    return sorted(
        key for key in stored.keys() | expected.keys() if stored.get(key, missing) != expected.get(key, missing)
    )
