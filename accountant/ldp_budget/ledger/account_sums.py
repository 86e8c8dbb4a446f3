"""Verification of account sums: compare every account with its history in the journal.

The check covers the user, the window sums, the label counts and the used quotas. It walks the accounts in order,
together with their histories. Each part of the accounts is read from one snapshot.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..guarantees import Memoised
from ..guarantees.fixed_point import Costs
from .calendar import LIFETIME, ByWindows, gauge_of, gauges_in, holds, measure_in, name_at, names_on
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
    """Called with the number of steps done and the total number of steps."""
    DecideAgain = Callable[["Past"], "Decisions"]
    Rows = list[Any]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
"""The range of a column's integers. A search for numbers that were never assigned covers all of it."""

_ACCOUNTS_TOGETHER = 5_000


class Past(NamedTuple):
    """The settings of a partition: its policies, its priced mechanisms, and the journal's entries that changed them.

    `turns` are the entries that set policies, began periods or repaired the clock, in order. `periods` maps each
    gauge to the moment since which its windows are kept. Entries up to number `copied` were copied from another
    ledger. `last` is the number of the last entry to check.
    """

    policies: Sequence[StoredPolicy]
    charges: Sequence[PricedMechanism]
    turns: Sequence[Entry]
    periods: dict[str, int]
    copied: int
    last: int


class Decisions(Protocol):
    """Repeats the admission decisions of one account after the other."""

    def check(self, history: Rows) -> Iterator[str]:
        """Yield the entries of an account that were not allowed, as text. `history` is from `Snapshot.histories`."""


def check_accounts(
    open_reading: Open,
    opened: int,
    said: int,
    erased_users: set[bytes],
    on_progress: Progress,
    decisions: Callable[[], Decisions | None],
    only_users: bool,
) -> Iterator[str]:
    """Yield the problems of the first `opened` accounts; the partition head claims that there are `said`.

    `on_progress` counts accounts. `decisions` is called once, when the walk begins. With `only_users`, only the rows of
    users are checked, unless there are labels to check with them.
    """
    decided = decisions()
    for first, until in parts(opened, _ACCOUNTS_TOGETHER):
        with open_reading() as reading:
            part = _Part(reading, erased_users, decided)
            yield from (
                part.check_users(first, until) if only_users and not part.memoised else part.check(first, until)
            )
        on_progress(until, opened)
    with open_reading() as reading:
        # Accounts opened meanwhile are left to the next verification. Accounts that were never opened are a problem.
        now = reading.end.accounts
        strange = _strange(reading, now) if now >= opened else []
    if now < opened or opened != said:
        yield f"users: there are {opened}, and {said} accounts were opened"
    for account in strange:
        yield f"users: account {account} was never opened"


def _strange(reading: Reading, last: int) -> list[int]:
    """Return the accounts that have rows but whose number was never assigned."""
    found: set[int] = set()
    for first, until in ((last + 1, HIGHEST), (LOWEST, 0)):
        found.update(row[3] for row in reading.rows.histories(first, until) if row[3])
        rows = reading.rows
        for table in (rows.users, rows.sums, rows.account_macs, rows.memoised_counts, rows.quotas):
            found.update(row[0] for row in table(first, until))
    return sorted(found)


class _Part:
    """Some accounts, read from one snapshot."""

    def __init__(self, reading: Reading, erased_users: set[bytes], decisions: Decisions | None) -> None:
        self._reading = reading
        self._decisions = decisions
        self._erased_users = erased_users
        definitions = {policy.number: json.loads(policy.definition) for policy in reading.rows.policies()}
        limited = {gauge for definition in definitions.values() for gauge in gauges_in(definition)}
        self._maker = AccountMacMaker(reading.secret, reading.partition)
        self._kept = kept = reading.periods()
        self._names: dict[int, frozenset[str]] = {}
        # No decision uses windows of a period that no policy limits. They are being backfilled, or a backfill
        # stopped.
        self._filling = kept.keys() - limited - {LIFETIME}
        self._periods = {period: since for period, since in kept.items() if period not in self._filling}
        self._repairs = reading.repairs()
        self._known = promises(reading, checked=False)
        self._measures = any(map(measure_in, self._periods))
        self._promises = {charge.number: charge.guarantee for charge in reading.rows.priced_mechanisms()}
        # The priced mechanisms whose charges cost more or less in some windows than the journal says.
        self._costly = {number for number in self._promises if self._known(number).parts}
        self.memoised = {number for number in self._promises if isinstance(self._known(number).guarantee, Memoised)}
        plans = {number: definition["plan"] for number, definition in definitions.items()}
        self._plans = {number: plan["identity"] for number, plan in plans.items() if plan is not None}
        # The windows in which charges with the same tags count, by the number of their priced mechanism.
        by_tags: dict[tuple[str, ...], ByWindows[tuple[str, ...]]] = {}
        for number in self._promises:
            tags = self._known(number).tags
            if tags not in by_tags:
                by_tags[tags] = ByWindows(self._periods, partial(self._windows_from, tags))
        self._windows_of = {number: by_tags[self._known(number).tags] for number in self._promises}

    def check_users(self, first: int, last: int) -> Iterator[str]:
        """Yield the problems of the users' rows of the accounts from `first` to `last`."""
        users = {user.account: user for user in self._reading.rows.users(first, last)}
        for account in range(first, last + 1):
            if account not in users:
                yield f"users: account {account} has no row"
        for account in sorted(self._changed(users)):
            yield from self._user(users[account])

    def check(self, first: int, last: int) -> Iterator[str]:
        """Yield the problems of the accounts from `first` to `last`, each compared with its rows of every table."""
        rows, decisions = self._reading.rows, self._decisions
        users = {user.account: user for user in rows.users(first, last)}
        changed = self._changed(users)
        sums, histories = _InOrder(rows.sums(first, last)), _InOrder(rows.histories(first, last), 3)
        labels, quotas = _InOrder(rows.memoised_counts(first, last)), _InOrder(rows.quotas(first, last))
        row_macs = _InOrder(rows.account_macs(first, last))
        for account in range(first, last + 1):
            user = users.get(account)
            if user is None:
                yield f"users: account {account} has no row"
            elif account in changed:
                yield from self._user(user)
            erased = user is None or user.user_hash is None
            of_account, history = sums.of(account), histories.of(account)
            counts, macs = (labels.of(account), quotas.of(account)), row_macs.of(account)
            found: list[str] = []
            if erased or self._filling or not self._is_plain(history, of_account, *counts):
                stored = self._in_force(of_account, 1), self._in_force(counts[0], 3), counts[1]
                found = [*self._account(account, erased, history, *stored)]
            if not found and not self._has_mac(user, macs, history, of_account, *counts):
                found = [f"account_macs: the MAC of account {account} does not hold"]
            yield from found
            if decisions is not None:
                yield from decisions.check(history)

    def _is_plain(self, history: Rows, sums: Rows, labels: Rows, quotas: Rows) -> bool:
        """True in the common case: plain charges only, and their sums are the stored ones."""
        if labels or quotas:
            return False
        plain = self._plain_sums(history)
        return plain is not None and plain == {row[1]: tuple(row[2:]) for row in sums}

    def _changed(self, users: dict[int, User]) -> set[int]:
        """Return the accounts whose user's row is not as it was written, or not of this partition, or of an erased user."""
        row_macs = self._reading.secret.row_macs((user.account, user.user_hash) for user in users.values())
        found = {user.account for user, mac in zip(users.values(), row_macs, strict=True) if mac != user.row_mac}
        if self._reading.partitions > 1 or self._erased_users:
            found |= {account for account, user in users.items() if any(True for _ in self._user(user))}
        return found

    def _has_mac(self, user: User | None, rows: Rows, history: Rows, sums: Rows, labels: Rows, quotas: Rows) -> bool:
        """True if an account has the MAC of its sums and counts. For an erased user: true if it has no MAC."""
        if user is None or user.user_hash is None:
            return not rows
        if len(rows) != 1:
            return False
        row: AccountMac = rows[0]
        names = self._windows_on(row.day)
        newest = next((row[0] for row in reversed(history) if row[2] in CHARGES), None)
        covered = tuple([each[1:] for each in sums if each[1] in names])
        counts = counts_of(labels, quotas, names) if labels or quotas else {}
        begun = self._maker.begin(row.day, covered, counts)
        return finish_account_mac(begun, row.account, user.user_hash, newest) == row.row_mac

    def _windows_on(self, day: int) -> frozenset[str]:
        """Return the windows of all kept periods that overlap a day."""
        if day not in self._names:
            self._names[day] = names_on(self._kept, day)
        return self._names[day]

    def _in_force(self, rows: Rows, place: int) -> Rows:
        """Return the rows whose windows are in use; column `place` of a row holds its window."""
        if not self._filling:
            return rows
        return [row for row in rows if gauge_of(row[place]) not in self._filling]

    def _user(self, user: User) -> Iterator[str]:
        if self._reading.secret.row_mac(user.account, user.user_hash) != user.row_mac:
            yield f"users: the row of account {user.account} was changed"
        elif (
            user.user_hash is not None
            and self._reading.key.partition_of(user.user_hash, self._reading.partitions) != self._reading.partition
        ):
            yield f"users: the row of account {user.account} is of another partition"
        if user.user_hash in self._erased_users:
            yield f"users: the row of account {user.account} is of an erased user"

    def _account(
        self, account: int, erased: bool, history: Rows, sums: Rows, labels: Rows, quotas: Rows
    ) -> Iterator[str]:
        if not erased and self._is_plain(history, sums, labels, quotas):
            return
        yield from self._labels(erased, history)
        replay = Replay({LIFETIME: 0} if erased else self._periods, self._known, self._repairs, erased=erased)
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

    def _plain_sums(self, history: Rows) -> dict[str, tuple[Any, ...]] | None:
        """Return the sums of a history that has plain charges only; None for any other history."""
        sums: dict[str, tuple[Any, ...]] = {}
        if self._measures:
            return None
        for row in history:
            if row[2] != SPENT or row[11] is not None or row[5] in self._plans or row[17]:
                return None
            if (
                row[4] in self._costly
                or row[4] in self.memoised
                or row[4] not in self._windows_of
                or self._counts_twice(row)
            ):
                return None
            amounts = row[7:11]
            for window in self._windows_of[row[4]](row[1]):
                sums[window] = (
                    tuple(Costs._make(sums[window]).plus(Costs._make(amounts))) if window in sums else amounts
                )
        return sums

    def _counts_twice(self, row: tuple[Any, ...]) -> bool:
        """True if a later clock repair found that the entry is dated too late."""
        return any(repair.entry > row[0] and repair.at < row[1] for repair in self._repairs)

    def _windows_from(self, tags: tuple[str, ...], at: int) -> tuple[str, ...]:
        """Return the kept windows that contain a moment, and count charges with these tags."""
        for_all = [(period, since) for period, since in self._periods.items() if holds(period, 0, tags)]
        return tuple([name_at(period, at) for period, since in for_all if period == LIFETIME or at >= since])

    def _labels(self, erased: bool, history: Rows) -> Iterator[str]:
        """Check that each entry's label matches its commitment, and that an erased user has no labels."""
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
        """Return how much of each plan's quotas was used according to the journal."""
        used: dict[tuple[str, str], int] = {}
        for row in history:
            if row[2] in CHARGES and row[5] in self._plans:
                quota = self._plans[row[5]], self._promises[row[4]]
                used[quota] = used.get(quota, 0) + (-row[6] if row[2] == VOIDED else row[6])
        return {quota: count for quota, count in used.items() if count}


class _InOrder:
    """Rows sorted by account, taken account by account; column `place` of a row holds its account."""

    def __init__(self, rows: Iterator[Any], place: int = 0) -> None:
        self._rows = rows
        self._place = place
        self._next = next(rows, None)

    def of(self, account: int) -> Rows:
        """Return the rows of an account; rows of earlier accounts are skipped."""
        row, place = self._next, self._place
        if row is None or row[place] > account:
            return []
        found: Rows = []
        for following in chain((row,), self._rows):
            if following[place] > account:
                self._next = following
                return found
            if following[place] == account:
                found.append(following)
        self._next = None
        return found


def _differing(stored: dict[Any, Any], expected: dict[Any, Any]) -> list[Any]:
    """Return the keys under which two mappings differ."""
    missing = object()
    return sorted(
        key for key in stored.keys() | expected.keys() if stored.get(key, missing) != expected.get(key, missing)
    )
