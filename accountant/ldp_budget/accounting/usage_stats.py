"""Anonymous usage statistics of a ledger: totals, refusals by day, and the use of limits, without user identities.

The store aggregates its rows for each call, so the time of a call grows with the ledger. A caller who asks often keeps
the results for a while.

Charges and limits are exact. Refusals come from the responses that the ledger stores under idempotency keys. A refusal
changes nothing else, and without an idempotency key it is not stored. The stored responses of an erased user are
deleted. So the refusals are those that the ledger knows of, and never more than there were.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from .._validation import check_whole
from ..guarantees.fixed_point import float_up
from ..ledger.calendar import DAY_MICROS, LIFETIME, from_micros, micros_text, to_micros
from ..ledger.checkpoints import head_of
from ..ledger.models import CHARGES, VOIDED
from .policies import Policy
from .policy_versions import version_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..ledger import Ledger, Reading
    from .limits import Limit

FULL = 100
"""The level of an account without remaining budget."""
OTHER = "other"
"""Used in place of a period if no limit refused but something else, such as a mechanism that was not checked."""
SEVERAL = " and "

_HOUR_MICROS = DAY_MICROS // 24
_MOST_DAYS = 36_600


class Refusal(NamedTuple):
    """The key by which refusals are counted: the day since 1970, the policy, and the periods whose limits refused."""

    day: int
    policy: str
    limit: str


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


class Overview:
    """Usage statistics of a ledger as it is at each call. Threads may share the object.

    Days are in UTC, like windows. Users are accounts: an erased user counts in `erased` and in no limit.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __repr__(self) -> str:
        return f"<Overview of {self._ledger.name}>"

    def _readings(self) -> Iterator[Reading]:
        for partition in self._ledger.partitions:
            with self._ledger.reading(partition) as reading:
                yield reading

    def summary(self, hours: int = 24) -> dict[str, Any]:
        """The ledger in a few numbers: its `totals`, the `recent` charges and refusals, and its end (`ledger`).

        Parameters:
            hours: the number of hours of `recent`.

        Raises:
            InvalidParameter: `hours` is not a whole number from 1 to 878,400.
            LedgerError: the ledger cannot be read.
        """
        recent = {"hours": hours, **self.recent(hours)}
        return {"totals": self.totals(), "recent": recent, "ledger": self.head()}

    def head(self) -> dict[str, Any]:
        """The end of the ledger.

        Returns:
            Its newest `head` (for several partitions that of the newest checkpoint), the times of that head
                (`head_at`) and of the newest entry (`last_entry_at`), and the number of `entries` and `partitions`.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        ends = [reading.end for reading in self._readings()]
        last = max((end.at for end in ends if end.at is not None), default=None)
        head, at = self._head(None if last is None else micros_text(last))
        return {
            "head": head,
            "head_at": at,
            "last_entry_at": None if last is None else micros_text(last),
            "entries": sum(end.entries for end in ends),
            "partitions": len(ends),
        }

    def _head(self, last: str | None) -> tuple[str | None, str | None]:
        """The chain head that people note. No checkpoint is written for it, because statistics change nothing."""
        with self._ledger.reading() as reading:
            if len(self._ledger.partitions) == 1:
                return reading.end.head, last
            found = next(reading.rows.checkpoints(max(1, reading.end.checkpoints)), None)
        return (None, None) if found is None else (head_of(found), micros_text(found.at))

    def policies(self) -> list[dict[str, Any]]:
        """Every version of every policy, newest first: its terms, its time and the API key that set it.

        `by` is None for a user of the ledger's machine. `change` is `first`, `raised` if it admits anything that the
        version before did not, `lowered` or `changed`. `override` is the reason of a version that was set without the
        approval that the ledger demanded, otherwise None.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        with self._ledger.reading() as reading:
            return version_rows(reading, dict(reading.rows.policies_set()))

    # -- charges and refusals -----------------------------------------------------------------------------

    def totals(self) -> dict[str, int]:
        """Totals since the beginning.

        Returns:
            The number of `users` with an account, of `erased` users, of `charges`, of `reports`, and of requests
                `refused`, as far as the ledger knows; `refused_in_bulk` counts refusals by batch runs, whose times
                are unknown.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        names = "users", "erased", "charges", "reports", "refused", "refused_in_bulk"
        totals = Counter(dict.fromkeys(names, 0))
        for reading in self._readings():
            counts, kinds = reading.rows.counts(), Counter[str]()
            kinds.update(counts["entries_by_kind"])
            totals.update(users=counts["users"], erased=counts["erased"])
            totals.update(charges=sum(kinds[kind] for kind in CHARGES if kind != VOIDED))
            for _, _, reports, _, voided, _ in reading.rows.charges_by_mechanism():
                totals.update(reports=reports - voided)
            totals.update(refused=_refusals(reading, 0).total(), refused_in_bulk=reading.rows.refused_in_runs())
        return dict(totals)

    def days(self, most: int = 30) -> list[dict[str, Any]]:
        """The charges and refusals of each of the last days, oldest first, including days without any.

        The first day is not before the first entry of the ledger.

        Parameters:
            most: the number of days, including today.

        Raises:
            InvalidParameter: `most` is not a whole number from 1 to 36,600.
            LedgerError: the ledger cannot be read.
        """
        check_whole("most", most, 1, _MOST_DAYS)
        counts: dict[int, Counter[str]] = {}
        today, begun = 0, list[int]()
        for reading in self._readings():
            today = max(today, reading.moment.day)
            since = (reading.moment.day - most + 1) * DAY_MICROS
            for day, users, charges, reports, voided in reading.rows.charges_by_day(since):
                row = counts.setdefault(day, Counter())
                row.update(users=users, charges=charges, reports=reports, voided=voided)
            for refusal, count in _refusals(reading, since).items():
                counts.setdefault(refusal.day, Counter()).update(refused=count)
            first = reading.rows.entry(1)
            begun += [] if first is None else [first[1] // DAY_MICROS]
        start = max(today - most + 1, min([today, *begun, *counts]))
        names = "users", "charges", "reports", "voided", "refused"
        rows = ((day, counts.get(day, Counter())) for day in range(start, today + 1))
        return [{"day": _day(day), **{name: row[name] for name in names}} for day, row in rows]

    def refusals(self, most: int = 30) -> list[dict[str, Any]]:
        """The refusals that the ledger knows of in the last days, by day, policy and limit; `other` is not a limit.

        Parameters:
            most: the number of days, including today.

        Raises:
            InvalidParameter: `most` is not a whole number from 1 to 36,600.
            LedgerError: the ledger cannot be read.
        """
        check_whole("most", most, 1, _MOST_DAYS)
        found = Counter[Refusal]()
        for reading in self._readings():
            found.update(_refusals(reading, (reading.moment.day - most + 1) * DAY_MICROS))
        return [
            {"day": _day(day), "policy": policy, "limit": limit, "refused": count}
            for (day, policy, limit), count in sorted(found.items())
        ]

    def recent(self, hours: int = 1) -> dict[str, int]:
        """The charges and refusals of the last hours.

        Parameters:
            hours: the number of hours.

        Returns:
            The number of `charges`, and of requests `refused`.

        Raises:
            InvalidParameter: `hours` is not a whole number from 1 to 878,400.
            LedgerError: the ledger cannot be read.
        """
        check_whole("hours", hours, 1, _MOST_DAYS * 24)
        charges = refused = 0
        for reading in self._readings():
            since = reading.moment.micros - hours * _HOUR_MICROS
            charges += sum(row[2] for row in reading.rows.charges_by_day(since))
            refused += _refusals(reading, since).total()
        return {"charges": charges, "refused": refused}

    def charged(self) -> list[dict[str, Any]]:
        """The charges by mechanism, collection and tags: their number, reports and last time; most reports first.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        found: dict[tuple[str, str, str, tuple[str, ...]], list[int]] = {}
        for reading in self._readings():
            priced = {each.number: each for each in reading.rows.priced_mechanisms()}
            for number, charges, reports, voided, voided_reports, last in reading.rows.charges_by_mechanism():
                each = priced[number]
                about = each.mechanism, each.declared, each.collection_name, each.named_tags
                sums = found.setdefault(about, [0, 0, 0])
                sums[:] = sums[0] + charges - voided, sums[1] + reports - voided_reports, max(sums[2], last)
        rows = [
            {
                "mechanism": mechanism,
                "declared": declared,
                "collection": collection or None,
                "tags": [*tags],
                "charges": charges,
                "reports": reports,
                "last": micros_text(last),
            }
            for (mechanism, declared, collection, tags), (charges, reports, last) in found.items()
        ]
        return sorted(rows, key=lambda row: (-int(str(row["reports"])), str(row["mechanism"])))

    # -- remaining budgets --------------------------------------------------------------------------------

    def limits(self) -> list[dict[str, Any]]:
        """Every limit of the newest policies, with the number of users by used percent in its open window.

        The window ends at `resets_at`; None for a lifetime. `used` counts the users by whole percent used, rounded
        down: the first number is for users below one percent, and the last for users without remaining budget.
        `users` is their sum.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        with self._ledger.reading() as reading:
            policies = [Policy.read(stored.definition) for stored in reading.newest_policies()]
            watched = [(policy.name, limit) for policy in policies for limit in policy.limits]
            ends = [reading.windows[limit.gauge].ends for _, limit in watched]
        used = [[0] * (FULL + 1) for _ in watched]
        for reading in self._readings():
            _add_users(reading, [limit for _, limit in watched], used)
        return [
            {
                "policy": policy,
                "period": limit.period,
                **({"scope": limit.scope} if limit.scope else {}),
                "rule": limit.rule,
                "epsilon": float_up(limit.epsilon),
                "delta": float_up(limit.delta),
                "resets_at": None if end is None else micros_text(to_micros(end)),
                "users": sum(users),
                "used": users,
            }
            for (policy, limit), end, users in zip(watched, ends, used, strict=True)
        ]


def _add_users(reading: Reading, limits: Sequence[Limit], used: Sequence[list[int]]) -> None:
    """Add the number of a partition's users at each level of each limit to `used`."""
    names = [reading.windows[limit.gauge].name for limit in limits]
    all_users, rest = 0, Counter[str]()  # `all_users` and `rest` add up to the users without a sum in a window
    for name, *spent, users in reading.rows.users_by_sums([*{LIFETIME, *names}]):
        all_users += users if name == LIFETIME else 0
        rest[name] -= users
        for limit, of_limit, levels in zip(limits, names, used, strict=True):
            if of_limit == name:
                levels[level(limit, spent)] += users
    for name, levels in zip(names, used, strict=True):
        levels[0] += all_users + rest[name]


def _refusals(reading: Reading, since: int) -> Counter[Refusal]:
    """The number of the refusals that a partition knows of since a time."""
    names = {policy.number: policy.name for policy in reading.rows.policies()}
    found = Counter[Refusal]()
    for day, policy, periods, count in reading.rows.refusals_by_day(since):
        found[Refusal(day, names[policy], SEVERAL.join(json.loads(periods)) or OTHER)] += count
    return found


def _day(day: int) -> str:
    return from_micros(day * DAY_MICROS).date().isoformat()
