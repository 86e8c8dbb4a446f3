"""Population rotation: each period asks another part of a panel at the full ε, and nobody twice in a turn of all parts.

A survey with `rotate = 12, every = "week"` divides its users into twelve phases. The phase is a keyed hash of the user,
so nobody chooses it, and it stays when a member leaves or joins. The key is derived from the ledger's key: its first
secret, so a rotation of the ledger's key moves nobody. Whoever has the ledger's key knows the phases, so a phase must
not depend on answers.

Two turns of a user are at least (rotate - 1)·days + 1 days apart. A sliding limit of so many days enforces it for every
road by which a charge can come. Members who refuse or are refused are not replaced.

Source: Ren, Shi, Yu, Yang, Zhao and Xu, LDP-IDS, SIGMOD 2022 (population division).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from ldp_budget._files import canonical_json
from ldp_budget._validation import check_user
from ldp_budget.accounting.limits import Limit
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees.fixed_point import EPSILON_DIGITS, from_units
from ldp_budget.ledger.calendar import days_in
from ldp_budget.ledger.zones import Zone, day_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.policies import Policy

    from .questionnaires.surveys import Survey

_DAY = timedelta(days=1)


class Period(NamedTuple):
    """A period of a rotation: its number, its first and its last day, and the moment at which it ends."""

    number: int
    first: date
    last: date
    ends: datetime

    @property
    def name(self) -> str:
        """The first day, as the name of a round."""
        return self.first.isoformat()


@dataclass(frozen=True)
class Rotation:
    """The rotation of a survey: whose turn it is in which period.

    Parameters:
        periods: the number of phases.
        days: the days of a period.
        key: the key of the phases.
        zone: the zone in which days begin; None for UTC.
    """

    periods: int
    days: int
    key: bytes
    zone: Zone | None = None

    @classmethod
    def of(cls, accountant: Accountant, survey: Survey, policy: Policy) -> Rotation | None:
        """Return the rotation of a survey of a ledger on this machine, by the days of a policy; None without one.

        Parameters:
            accountant: the accountant of the ledger, whose key decides the phases.
            survey: the survey.
            policy: the policy whose time zone counts.
        """
        if not survey.rotate:
            return None
        key = accountant.keyed_digest(canonical_json(["ldp-budget rotation 1", survey.name]).encode())
        zone = Zone(policy.zone, policy.zone_rules) if policy.zone_rules else None
        return cls(survey.rotate, survey.period_days, bytes.fromhex(key), zone)

    def phase(self, user: str) -> int:
        """Return the phase of a user, from 0 to `periods` - 1.

        Parameters:
            user: the name of the user.
        """
        digest = hmac.digest(self.key, check_user(user).encode(), "sha256")
        return int.from_bytes(digest[:16], "big") % self.periods

    def period_at(self, moment: datetime) -> Period:
        """Return the period that contains a moment. Periods of seven days begin on Mondays.

        Parameters:
            moment: an aware datetime.
        """
        return self.period_on(day_of(self.zone, moment))

    def period_on(self, day: date) -> Period:
        """Return the period that contains a day.

        Parameters:
            day: the day.
        """
        number = (day.toordinal() - 1) // self.days  # day 1 of the calendar is a Monday
        first = date.fromordinal(number * self.days + 1)
        last = first + (self.days - 1) * _DAY
        return Period(number, first, last, self._midnight(last + _DAY))

    def _midnight(self, day: date) -> datetime:
        if self.zone is None:
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.zone.starts(day))

    def asks(self, user: str, period: Period) -> bool:
        """Return True if it is the turn of a user.

        Parameters:
            user: the name of the user.
            period: the period.
        """
        return period.number % self.periods == self.phase(user)

    def turns(self, users: Iterable[str], period: Period) -> list[bool]:
        """Return for each user if it is the user's turn.

        Parameters:
            users: the names of the users.
            period: the period.
        """
        return [self.asks(user, period) for user in users]

    def next_turn(self, user: str, period: Period) -> Period:
        """Return the first period, this one or a later one, in which it is the turn of a user.

        Parameters:
            user: the name of the user.
            period: the period.
        """
        wait = (self.phase(user) - period.number) % self.periods
        return self.period_on(period.first + wait * self.days * _DAY)


def enforcing_limit(survey: Survey) -> str:
    """Return the sliding limit that enforces the rotation of a survey, as `policy set --limit` takes it.

    Parameters:
        survey: a survey with a rotation.
    """
    limit = Limit(f"{survey.least_days_between}d", survey.epsilon)
    cost = _units(survey)
    if cost is not None and not is_enforced(survey, [limit]):
        limit = Limit(limit.period, from_units(cost, EPSILON_DIGITS))  # the questions cost less than the survey may
    return str(limit)


def is_enforced(survey: Survey, limits: Sequence[Limit]) -> bool:
    """Return True if a limit refuses a second answer of a user before the user's next turn can come.

    A limit of a scope counts the questions with its tag alone, so it does not.

    Parameters:
        survey: a survey with a rotation.
        limits: the limits of the policy.
    """
    least, cost = survey.least_days_between, _units(survey)
    return any(
        days_in(each.period) >= least
        and each.rule == "basic"
        and not each.scope
        and (cost is None or (each.capacity.epsilon or 0) < 2 * cost)
        for each in limits
    )


def _units(survey: Survey) -> int | None:
    """Return the ε that one answer of a survey is charged, in units; None if it is unbounded."""
    return survey.questionnaire().guarantee.costs().epsilon


def period_for(rotation: Rotation, now: datetime, day: str | None) -> Period:
    """Return the period of a day such as 2026-11-23; without a day, that of now.

    Parameters:
        rotation: the rotation.
        now: the time of the ledger.
        day: the day.

    Raises:
        InvalidParameter: `day` is not a day.
    """
    if day is None:
        return rotation.period_at(now)
    try:
        return rotation.period_on(date.fromisoformat(day))
    except (ValueError, OverflowError):  # the calendar ends within a period
        raise InvalidParameter("period", "a day such as 2026-11-23", day) from None
