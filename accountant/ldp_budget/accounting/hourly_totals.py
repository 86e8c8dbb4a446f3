"""What a journal adds up to by the hour, without any user: how much was charged, and to how many.

What the ledger knows of refusals: the responses that it keeps under keys, by the hour, policy and limit.

A refusal changes nothing else, and without a key it is kept nowhere. Nor is one kept of an erased user, whose answers
go. So these are the refusals that the ledger knows of, and never more than there were.
"""

from __future__ import annotations

import json
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

from ..ledger.calendar import DAY_MICROS
from ..ledger.models import CHARGED, CLOCK, ERASED, POLICY_SET, RESERVED, SPENT, VOIDED, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..ledger.models import BatchRunRecord, IdempotencyRecord


HOUR_MICROS = 3_600_000_000
HOURS = DAY_MICROS // HOUR_MICROS
_NEVER = -1


class Charged(NamedTuple):
    """How often something was charged, for how many reports, and when last (in microseconds)."""

    charges: int = 0
    reports: int = 0
    last: int = 0


class Activity:
    """The journal of one partition, as far as it was added.

    `hours` holds for each hour since 1970 how many charges there were, of how many reports, and how many of these
    were given back; `users` for each day how many accounts were charged. A day that a repair of the clock enters for
    the second time counts its accounts anew. `charged` goes by the number of the stored charge.
    """

    def __init__(self) -> None:
        self.entries = 0
        """The newest entry that was added."""
        self.hours: dict[int, list[int]] = {}
        self.users: dict[int, int] = {}
        self.charged: dict[int, Charged] = {}
        self.erased = 0
        """How many users were erased, and how many of these had an account."""
        self.cut_off = 0
        self.policies_set: dict[int, int] = {}
        """By the number of a policy's version, the number of the record that made the key by which it was set."""
        self._last_day = array("i")
        self._changed: set[int] = set()
        self._upset = False

    def add(self, rows: Iterable[tuple[tuple[Any, ...], bytes | None]]) -> None:
        """Add the entries that follow."""
        last_day, changed = self._last_day, self._changed
        for row, _ in rows:
            number, at, kind, account = row[:4]
            self.entries = number
            if kind in (SPENT, RESERVED):
                hour = self._hour(at)
                hour[0] += 1
                hour[1] += row[6]
                self._count(row[4], 1, row[6], at)
                day = at // DAY_MICROS
                if account > len(last_day):
                    last_day.extend([_NEVER] * (account - len(last_day)))
                if last_day[account - 1] != day:
                    last_day[account - 1] = day
                    self.users[day] = self.users.get(day, 0) + 1
                changed.add(account)
            elif kind == VOIDED:
                self._hour(at)[2] += row[6]
                self._count(row[4], -1, -row[6], at)
                changed.add(account)
            elif kind == ERASED:
                self.erased += 1
                self.cut_off += row[6]
                self._upset = self._upset or row[6] > 0
            elif kind == CLOCK:
                self._upset = True
            elif kind == POLICY_SET:
                self.policies_set[row[5]] = Entry.of(row).api_key

    def _hour(self, at: int) -> list[int]:
        return self.hours.setdefault(at // HOUR_MICROS, [0, 0, 0])

    def _count(self, charge: int, charges: int, reports: int, at: int) -> None:
        before = self.charged.get(charge, Charged())
        self.charged[charge] = Charged(before.charges + charges, before.reports + reports, max(before.last, at))

    def changed(self) -> set[int] | None:
        """The accounts whose sums have changed since this was asked; None where any may have."""
        found = None if self._upset else self._changed
        self._changed, self._upset = set(), False
        return found


OTHER = "other"
"""Stands in the place of a period where no limit refused but something else, such as a mechanism nobody checked."""
SEVERAL = " and "


class Refusal(NamedTuple):
    """What refusals are counted by: the hour since 1970, the policy, and the periods whose limits refused."""

    hour: int
    policy: str
    limit: str


class Refusals:
    """The refusals that the records of one partition tell of, as far as they were added."""

    def __init__(self) -> None:
        self.rows = 0
        """How many numbered rows were gone through."""
        self.counts: dict[Refusal, int] = {}
        self.in_bulk = 0
        """How many requests of bulk runs were refused; of these nobody knows when, and by which limit."""

    def add(
        self, records: Iterable[IdempotencyRecord], runs: Iterable[BatchRunRecord], policies: Mapping[int, str]
    ) -> None:
        """Add records of refusals and batch runs; `policies` are named by the numbers of their versions."""
        for stored in records:
            _, numbers, (binding, _) = json.loads(stored.response)
            hour, policy = numbers[1] // HOUR_MICROS, policies[numbers[0]]
            refusal = Refusal(hour, policy, SEVERAL.join(binding) or OTHER)
            self.counts[refusal] = self.counts.get(refusal, 0) + 1
        for run in runs:
            if run.kind == CHARGED:
                self.in_bulk += len(json.loads(run.response)["refused"])
