"""Hourly totals of the journal and of recorded refusals, without user identities.

The refusals come from the responses that the ledger stores under idempotency keys, by hour, policy and limit. A
refusal changes nothing else, and without an idempotency key it is not stored. The stored responses of an erased
user are deleted. So the totals are the refusals that the ledger knows of, and never more than there were.
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
    """The number of charges and of their reports, and the time of the last charge (in microseconds)."""

    charges: int = 0
    reports: int = 0
    last: int = 0


class Activity:
    """Totals of the journal of one partition, for the entries added so far.

    `hours` holds for each hour since 1970 the number of charges, of their reports, and of the reports that were
    given back. `users` holds for each day the number of charged accounts. A day that repeats after a clock repair
    counts its accounts again. `charged` is keyed by the number of the stored charge.
    """

    def __init__(self) -> None:
        self.entries = 0
        """The number of the newest added entry."""
        self.hours: dict[int, list[int]] = {}
        self.users: dict[int, int] = {}
        self.charged: dict[int, Charged] = {}
        self.erased = 0
        """The number of erased users. `cut_off` counts those of them that had an account."""
        self.cut_off = 0
        self.policies_set: dict[int, int] = {}
        """The API key that set each policy version: the number of the key's record, by the version's number."""
        self._last_day = array("i")
        self._changed: set[int] = set()
        self._upset = False

    def add(self, rows: Iterable[tuple[tuple[Any, ...], bytes | None]]) -> None:
        """Add the entries that follow the newest added one."""
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
        """The accounts whose sums have changed since the last call; None if any may have changed."""
        found = None if self._upset else self._changed
        self._changed, self._upset = set(), False
        return found


# -- refusals --------------------------------------------------------------------------------------------------

OTHER = "other"
"""Used in place of a period if no limit refused but something else, such as a mechanism that was not checked."""
SEVERAL = " and "


class Refusal(NamedTuple):
    """The key by which refusals are counted: the hour since 1970, the policy, and the periods whose limits refused."""

    hour: int
    policy: str
    limit: str


class Refusals:
    """Totals of the refusals in the records of one partition, for the records added so far."""

    def __init__(self) -> None:
        self.rows = 0
        """The number of numbered rows read so far."""
        self.counts: dict[Refusal, int] = {}
        self.in_bulk = 0
        """The number of refused requests of batch runs. Their times and limits are unknown."""

    def add(
        self, records: Iterable[IdempotencyRecord], runs: Iterable[BatchRunRecord], policies: Mapping[int, str]
    ) -> None:
        """Add records of refusals and batch runs. `policies` maps the numbers of policy versions to names."""
        for stored in records:
            _, numbers, (binding, _) = json.loads(stored.response)
            hour, policy = numbers[1] // HOUR_MICROS, policies[numbers[0]]
            refusal = Refusal(hour, policy, SEVERAL.join(binding) or OTHER)
            self.counts[refusal] = self.counts.get(refusal, 0) + 1
        for run in runs:
            if run.kind == CHARGED:
                self.in_bulk += len(json.loads(run.response)["refused"])
