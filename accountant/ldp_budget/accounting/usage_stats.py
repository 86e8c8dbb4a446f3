"""Anonymous usage statistics of a ledger: totals, refusals by day, and the use of limits, without user identities.

The statistics are computed from snapshots of the store, part by part, and cached. Entries are added once, and only
accounts charged since then are read again. So a second look costs only the changes since the first. A look at a
ledger of millions takes as long as the caller allows, reports its progress, and resumes at the next call.

`UtilizationIndex` holds how much of each limit the accounts of a partition have used, in whole percent: one byte
for each account and limit.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple

from .._validation import check_whole, shown
from ..errors import InvalidParameter
from ..guarantees.fixed_point import float_up
from ..ledger.calendar import DAY_MICROS, from_micros, to_micros
from ..ledger.checkpoints import head_of
from ..ledger.models import BatchRunRecord
from ..ledger.snapshot import parts
from .hourly_totals import HOUR_MICROS, HOURS, Activity, Charged, Refusal, Refusals
from .policies import Policy
from .policy_versions import version_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from ..ledger import Ledger, Reading
    from ..ledger.models import PricedMechanism, StoredPolicy
    from .limits import Limit


FULL = 100
"""The level of an account without remaining budget."""
_GONE = 255
"""Marks the account of an erased user."""
_NEIGHBOURS = 4
"""Maximum distance between two accounts that are read together."""


# -- the use of limits -----------------------------------------------------------------------------------------


class Watched(NamedTuple):
    """A limit of the newest version of a policy."""

    policy: str
    limit: Limit


def level(limit: Limit, spent: Sequence[int | None]) -> int:
    """The used part of a limit, in whole percent rounded down; `FULL` if some amount is used up."""
    most_used = 0
    for most, used in zip(limit.capacity, spent, strict=True):
        if most is None:
            continue
        if used is None or used >= most:
            # A limit may admit none of an amount, such as δ; that is not a budget that was used up.
            if most or used is None or used > most:
                return FULL
            continue
        most_used = max(most_used, used * FULL // most)
    return most_used


class UtilizationIndex:
    """The levels of one partition's accounts under some limits, in the windows that were open at the last `begin`."""

    def __init__(self, watched: tuple[Watched, ...]) -> None:
        self.watched = watched
        self.accounts = 0
        """The number of accounts that were read at least once."""
        self._levels = [bytearray() for _ in watched]
        self._codes: list[int] | None = None
        self.ends: list[datetime | None] = [None] * len(watched)
        """The time when the window of each limit ends; None for a lifetime window."""

    def begin(self, reading: Reading) -> bool:
        """Use the windows of a reading; return True if any has opened since the last call.

        Nothing is used in it yet.
        """
        windows = [reading.windows[each.limit.gauge] for each in self.watched]
        codes, self.ends = [window.code for window in windows], [window.ends for window in windows]
        for levels, code, before in zip(self._levels, codes, self._codes or codes, strict=True):
            if code != before:
                levels[:] = levels.translate(_CLEARED)
        opened, self._codes = self._codes not in (None, codes), codes
        return opened

    def read(self, reading: Reading, first: int, last: int, *, erased: bool) -> None:
        """Read the sums of the accounts `first` to `last`; if users were `erased`, also find their accounts."""
        if last > self.accounts:
            for levels in self._levels:
                levels.extend(bytes(last - self.accounts))
            self.accounts = last
        for levels in self._levels:
            levels[first - 1 : last] = bytes(last - first + 1)
        self._take(reading.rows.sums(first, last), self._by_window())
        if erased:
            for user in reading.rows.users(first, last):
                if user.user_hash is None:
                    for levels in self._levels:
                        levels[user.account - 1] = _GONE

    def _by_window(self) -> Mapping[int, list[tuple[bytearray, Limit]]]:
        by_window: dict[int, list[tuple[bytearray, Limit]]] = {}
        for levels, code, each in zip(self._levels, self._codes or (), self.watched, strict=True):
            by_window.setdefault(code, []).append((levels, each.limit))
        return by_window

    @staticmethod
    def _take(
        rows: Iterable[tuple[int, int, int | None, int | None, int | None, int | None]],
        by_window: Mapping[int, list[tuple[bytearray, Limit]]],
    ) -> None:
        known: dict[tuple[int, tuple[int | None, ...]], list[tuple[bytearray, int]]] = {}
        for account, window, *spent in rows:
            limits = by_window.get(window)
            if limits is None:
                continue
            # Many users have equal sums.
            same = window, tuple(spent)
            found = known.get(same)
            if found is None:
                found = known[same] = [(levels, level(limit, spent)) for levels, limit in limits]
            for levels, used in found:
                levels[account - 1] = used

    def spread(self) -> list[list[int]]:
        """The number of accounts that have used each whole percent, from 0 to `FULL`, for each limit."""
        return [[levels.count(used) for used in range(FULL + 1)] for levels in self._levels]


_CLEARED = bytes([*[0] * _GONE, _GONE])


def ranges(accounts: Iterable[int]) -> list[tuple[int, int]]:
    """Accounts as ranges of near neighbors. A range may include a few other accounts."""
    found: list[tuple[int, int]] = []
    for account in sorted(accounts):
        if found and account - found[-1][1] <= _NEIGHBOURS:
            found[-1] = found[-1][0], account
        else:
            found.append((account, account))
    return found


def in_parts(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """The accounts `first` to `last` in parts, each for a separate reading."""
    return [(first - 1 + begin, first - 1 + end) for begin, end in parts(last - first + 1, size)]


# -- the statistics --------------------------------------------------------------------------------------------

_ENTRIES_TOGETHER = 20_000
_ACCOUNTS_TOGETHER = 10_000
_ROWS_TOGETHER = 20_000
_MOST_SECONDS = 3600
_MOST_DAYS = 36_600


class Overview:
    """Usage statistics of a ledger, as far as it was read; `look` reads further. Threads may share the object.

    Days are in UTC, like windows. Users are accounts: an erased user counts in `erased` and in no limit.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._partitions = [_Partition(ledger, number) for number in ledger.partitions]
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        done, total = self.progress
        return f"<Overview of {self._ledger.name}: {done} of {total} read>"

    def look(self, seconds: float = 1.0) -> bool:
        """Read further for about this time. If another thread is reading, wait for it for the same time.

        Parameters:
            seconds: from 0 to an hour; at least one part of the ledger is read in any case.

        Returns:
            True if everything was read.

        Raises:
            InvalidParameter: `seconds` is not such a number.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _MOST_SECONDS:
            raise InvalidParameter("seconds", f"seconds >= 0 and <= {_MOST_SECONDS}", shown(seconds))
        until = time.monotonic() + seconds
        if not self._lock.acquire(timeout=seconds):
            return False
        try:
            # Every partition is read, even after the time is over, so that each makes some progress.
            done = [partition.look(until) for partition in self._partitions]
            return all(done)
        finally:
            self._lock.release()

    @property
    def progress(self) -> tuple[int, int]:
        """The number of entries and accounts read, and their number at the last look."""
        steps = [partition.progress for partition in self._partitions]
        return sum(done for done, _ in steps), sum(total for _, total in steps)

    def head(self) -> dict[str, Any]:
        """The end of the ledger.

        Returns:
            Its newest `head` (for several partitions that of the newest checkpoint), the times of that head
                (`head_at`) and of the newest entry (`last_entry_at`), and the number of `entries` and `partitions`.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        entries, newest = 0, list[int]()
        for partition in self._ledger.partitions:
            with self._ledger.reading(partition) as reading:
                entries += reading.end.entries
                newest += [] if reading.end.at is None else [reading.end.at]
        last = _iso(max(newest)) if newest else None
        head, at = self._head(last)
        return {
            "head": head,
            "head_at": at,
            "last_entry_at": last,
            "entries": entries,
            "partitions": len(self._ledger.partitions),
        }

    def _head(self, last: str | None) -> tuple[str | None, str | None]:
        """The chain head that people note. No checkpoint is written for it, because statistics change nothing."""
        with self._ledger.reading() as reading:
            if len(self._ledger.partitions) == 1:
                return reading.end.head, last
            found = next(reading.rows.checkpoints(max(1, reading.end.checkpoints)), None)
        return (None, None) if found is None else (head_of(found), _iso(found.at))

    def policies(self) -> list[dict[str, Any]]:
        """Every version of every policy, newest first: its terms, its time and the API key that set it.

        `by_known` is True if the journal was read that far; then `by` is None for a user of the ledger's machine.
        `change` is `first`, `raised` if it admits anything that the version before did not, `lowered` or `changed`.
        `override` is the reason of a version that was set without the approval that the ledger demanded, otherwise
        None.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        with self._ledger.reading() as reading:
            return version_rows(reading, self._partitions[0].activity.policies_set)

    # -- charges and refusals -----------------------------------------------------------------------------

    def totals(self) -> dict[str, int]:
        """Totals since the beginning.

        Returns:
            The number of `users` with an account, of `erased` users, of `charges`, of `reports`, and of requests
                `refused`, as far as the ledger knows; `refused_in_bulk` counts refusals by batch runs, whose times
                are unknown.
        """
        activities = [partition.activity for partition in self._partitions]
        hours = [hour for each in activities for hour in list(each.hours.values())]
        return {
            "users": sum(partition.accounts for partition in self._partitions)
            - sum(each.cut_off for each in activities),
            "erased": sum(each.erased for each in activities),
            "charges": sum(hour[0] for hour in hours),
            "reports": sum(hour[1] - hour[2] for hour in hours),
            "refused": sum(self._refused().values()),
            "refused_in_bulk": sum(partition.refusals.in_bulk for partition in self._partitions),
        }

    def days(self, most: int = 30) -> list[dict[str, Any]]:
        """The charges and refusals of each of the last days, oldest first, including days without any.

        Parameters:
            most: the number of days, including today.

        Raises:
            InvalidParameter: `most` is not a whole number from 1 to 36,600.
        """
        check_whole("most", most, 1, _MOST_DAYS)
        today = self._now() // DAY_MICROS
        first = max(today - most + 1, min(self._first_day(), today))
        rows = {day: _row(day) for day in range(first, today + 1)}
        for partition in self._partitions:
            for hour, (charges, reports, voided) in list(partition.activity.hours.items()):
                if hour // HOURS in rows:
                    _add(rows[hour // HOURS], charges=charges, reports=reports, voided=voided)
            for day, users in list(partition.activity.users.items()):
                if day in rows:
                    _add(rows[day], users=users)
        for refusal, count in self._refused().items():
            if refusal.hour // HOURS in rows:
                _add(rows[refusal.hour // HOURS], refused=count)
        return list(rows.values())

    def refusals(self, most: int = 30) -> list[dict[str, Any]]:
        """The refusals that the ledger knows of in the last days, by day, policy and limit; `other` is not a limit.

        Parameters:
            most: the number of days, including today.

        Raises:
            InvalidParameter: `most` is not a whole number from 1 to 36,600.
        """
        check_whole("most", most, 1, _MOST_DAYS)
        first = self._now() // DAY_MICROS - most + 1
        counts: Counter[tuple[int, str, str]] = Counter()
        for refusal, count in self._refused().items():
            if refusal.hour // HOURS >= first:
                counts[refusal.hour // HOURS, refusal.policy, refusal.limit] += count
        return [
            {"day": _day(day), "policy": policy, "limit": limit, "refused": count}
            for (day, policy, limit), count in sorted(counts.items())
        ]

    def recent(self, hours: int = 1) -> dict[str, int]:
        """The charges and refusals of the last whole hours and of the present hour.

        Parameters:
            hours: the number of whole hours.

        Returns:
            The number of `charges`, and of requests `refused`.

        Raises:
            InvalidParameter: `hours` is not a whole number from 1 to 878,400.
        """
        check_whole("hours", hours, 1, _MOST_DAYS * HOURS)
        first = self._now() // HOUR_MICROS - hours
        activities = [list(partition.activity.hours.items()) for partition in self._partitions]
        return {
            "charges": sum(found[0] for each in activities for hour, found in each if hour >= first),
            "refused": sum(count for refusal, count in self._refused().items() if refusal.hour >= first),
        }

    def charged(self) -> list[dict[str, Any]]:
        """The charges by mechanism and collection: their number, reports and last time; most reports first."""
        found: dict[tuple[str, str, str], list[int]] = {}
        for partition in self._partitions:
            for charge, counted in partition.charged():
                sums = found.setdefault((charge.mechanism, charge.declared, charge.collection), [0, 0, 0])
                sums[:] = sums[0] + counted.charges, sums[1] + counted.reports, max(sums[2], counted.last)
        rows = [
            {
                "mechanism": mechanism,
                "declared": declared,
                "collection": collection or None,
                "charges": charges,
                "reports": reports,
                "last": _iso(last),
            }
            for (mechanism, declared, collection), (charges, reports, last) in found.items()
        ]
        return sorted(rows, key=lambda row: (-int(str(row["reports"])), str(row["mechanism"])))

    # -- remaining budgets --------------------------------------------------------------------------------

    def limits(self) -> list[dict[str, Any]]:
        """Every limit of the newest policies, with the number of users by used percent in its open window.

        The window ends at `resets_at`; None for a lifetime. `used` counts the users by whole percent used, rounded
        down: the first number is for users below one percent, and the last for users without remaining budget.
        `users` is their sum.
        """
        found: dict[Watched, list[int]] = {}
        for partition in self._partitions:
            for watched, spread in partition.spread():
                sums = found.setdefault(watched, [0] * (FULL + 1))
                sums[:] = map(sum, zip(sums, spread, strict=True))
        return [
            {
                "policy": policy,
                "period": limit.period,
                "rule": limit.rule,
                "epsilon": float_up(limit.epsilon),
                "delta": float_up(limit.delta),
                "resets_at": None if ends is None else _iso(to_micros(ends)),
                "users": sum(used),
                "used": used,
            }
            for ((policy, limit), used), ends in zip(found.items(), self._partitions[0].levels.ends, strict=True)
        ]

    # -- times --------------------------------------------------------------------------------------------

    def _now(self) -> int:
        return max(partition.micros for partition in self._partitions)

    def _first_day(self) -> int:
        hours = [min(partition.activity.hours, default=None) for partition in self._partitions]
        hours += [
            min((each.hour for each in list(partition.refusals.counts)), default=None)
            for partition in self._partitions
        ]
        return min((hour for hour in hours if hour is not None), default=2**62) // HOURS

    def _refused(self) -> Counter[Refusal]:
        found: Counter[Refusal] = Counter()
        for partition in self._partitions:
            found.update(dict(partition.refusals.counts))
        return found


class _Partition:
    """The statistics of one partition."""

    def __init__(self, ledger: Ledger, number: int) -> None:
        self._ledger = ledger
        self._number = number
        self.activity = Activity()
        self.refusals = Refusals()
        self.levels = UtilizationIndex(())
        self.accounts = 0
        self.micros = 0
        """The time of the newest reading."""
        self._end = self._numbered = 0
        self._due: deque[tuple[int, int]] = deque()
        self._charges: list[PricedMechanism] = []
        self._spread: list[tuple[Watched, list[int]]] | None = None

    def look(self, until: float) -> bool:
        """Read further until this time; return True if everything was read."""
        with self._ledger.reading(self._number) as reading:
            self._take_over(reading)
        # Sums are read after the entries that changed them, in snapshots whose windows contain these entries.
        return self._entries(until) and self._refusals(until) and self._sums(until)

    @property
    def progress(self) -> tuple[int, int]:
        known = self.levels.accounts
        again = sum(last - first + 1 for first, last in list(self._due) if last <= known)
        return self.activity.entries + known - min(again, known), self._end + self.accounts

    def _take_over(self, reading: Reading) -> None:
        """Take the counts of the partition from a reading, without reading its rows."""
        self.micros, self._end, self.accounts = reading.moment.micros, reading.end.entries, reading.end.accounts
        self._numbered = reading.end.numbered_rows
        if reading.end.priced_mechanisms > len(self._charges):
            self._charges += list(reading.rows.priced_mechanisms(len(self._charges) + 1))
        watched = tuple(
            Watched(policy.name, limit)
            for policy in map(_policy, reading.newest_policies())
            for limit in policy.limits
        )
        if watched != self.levels.watched:
            self.levels, self._spread = UtilizationIndex(watched), None
            self._due.clear()

    def _entries(self, until: float) -> bool:
        while self.activity.entries < self._end:
            first = self.activity.entries + 1
            with self._ledger.reading(self._number) as reading:
                self.activity.add(reading.rows.entries(first, min(self._end, first + _ENTRIES_TOGETHER - 1)))
            if time.monotonic() > until:
                return self.activity.entries >= self._end
        return True

    def _refusals(self, until: float) -> bool:
        while self.refusals.rows < self._numbered:
            first = self.refusals.rows + 1
            last = min(self._numbered, first + _ROWS_TOGETHER - 1)
            with self._ledger.reading(self._number) as reading:
                names = {policy.number: policy.name for policy in reading.rows.policies()}
                rows = reading.rows
                self.refusals.add(rows.refusals(first, last), rows.all_numbered(BatchRunRecord, first, last), names)
            self.refusals.rows = last
            if time.monotonic() > until:
                return last >= self._numbered
        return True

    def _sums(self, until: float) -> bool:
        self._plan()
        while self._due:
            with self._ledger.reading(self._number) as reading:
                self.levels.begin(reading)
                while self._due:
                    self.levels.read(reading, *self._due.popleft(), erased=bool(self.activity.cut_off))
                    self._spread = None
                    if time.monotonic() > until:
                        return not self._due
        with self._ledger.reading(self._number) as reading:
            if self.levels.begin(reading):
                self._spread = None
        return True

    def _plan(self) -> None:
        """Plan the accounts to read: those never read, those whose sums have changed, or all."""
        changed = self.activity.changed()
        if changed is None or (not self.levels.accounts and not self._due):
            self._due = deque(in_parts(1, self.accounts, _ACCOUNTS_TOGETHER))
            return
        known = self.levels.accounts
        before = {each for each in changed if each <= known}
        self._due.extend(part for each in ranges(before) for part in in_parts(*each, _ACCOUNTS_TOGETHER))
        planned = max([known, *(last for _, last in self._due)])
        self._due.extend(in_parts(planned + 1, self.accounts, _ACCOUNTS_TOGETHER))

    def charged(self) -> Iterator[tuple[PricedMechanism, Charged]]:
        """The charged mechanisms, each with its counts."""
        charges = {charge.number: charge for charge in self._charges}
        return ((charges[number], counted) for number, counted in list(self.activity.charged.items()))

    def spread(self) -> Iterable[tuple[Watched, list[int]]]:
        """Each limit, with the number of accounts by used percent."""
        if self._spread is None:
            self._spread = list(zip(self.levels.watched, self.levels.spread(), strict=True))
        return self._spread


def _policy(stored: StoredPolicy) -> Policy:
    return Policy.read(stored.definition)


def _row(day: int) -> dict[str, Any]:
    counts = dict.fromkeys(("users", "charges", "reports", "voided", "refused"), 0)
    return {"day": _day(day), **counts}


def _add(row: dict[str, Any], **counts: int) -> None:
    for name, count in counts.items():
        row[name] += count


def _day(day: int) -> str:
    return from_micros(day * DAY_MICROS).date().isoformat()


def _iso(micros: int) -> str:
    return from_micros(micros).isoformat().replace("+00:00", "Z")
