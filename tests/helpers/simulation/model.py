"""The reference model: what a ledger must answer, in plain Python without any code of the library.

It keeps every charge and adds up from scratch: no running sums, no stored windows, no transactions. Amounts are whole
units of 1e-9 ε. Times are whole seconds since 1970. The model is asked in the order in which requests took effect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

DAY, TOLERANCE = 86_400, 5
UNIT = 1_000_000_000
COSTS = {"tenth": UNIT // 10, "large": 7 * UNIT // 10}
CURVE = (0, 3 * UNIT // 10, 5 * UNIT // 10, 6 * UNIT // 10, 65 * UNIT // 100)
"""The mechanism `memoized`: the ε of 0, 1, 2 … reports of one value; the last one is the cap."""

Limits = dict[str, int]
"""The capacity of each period: lifetime, day or week."""


class Terms(NamedTuple):
    """A version of a policy: its limits, and the limits of each sub-limit."""

    limits: Limits
    shares: dict[str, Limits]


class Request(NamedTuple):
    """A request for one user. `lasts` makes it a reservation of so many seconds, `report` stores a report."""

    user: str
    mechanism: str = "tenth"
    reports: int = 1
    policy: str = "default"
    share: str | None = None
    key: str | None = None
    label: str | None = None
    lasts: int | None = None
    report: bytes | None = None
    note: str | None = None

    @property
    def same(self) -> tuple[object, ...]:
        """The part that a retry must repeat."""
        return (*self[:8], self.report is not None)


class Answer(NamedTuple):
    """The answer to a request, with the amounts spent under each limit of its policy once it was decided."""

    status: str
    spent: tuple[tuple[str, int], ...] = ()
    repeated: bool = False


CONFLICT, BAD_CLOCK = Answer("conflict"), Answer("bad clock")


@dataclass(eq=False)
class Charge:
    """A granted request, and the times at which it counts: its own, and those of later clock repairs before it."""

    request: Request
    times: list[int]
    state: str
    is_late: bool = False
    """The clock was repaired before the charge, so a window may have gaps."""
    is_over: bool = False
    """The clock was repaired since the charge, so a reservation has expired."""


@dataclass
class Model:
    """The state that a ledger must have. `partition_of` names the partition of a user."""

    partition_of: Callable[[str], int]
    partitions: int
    newest: Counter[int] = field(default_factory=Counter)
    policies: dict[str, Terms] = field(default_factory=dict)
    charges: dict[str, list[Charge]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[tuple[str, str | None, str], tuple[Request, Answer, Charge | None]] = field(default_factory=dict)
    parts: dict[tuple[str, int], list[Answer]] = field(default_factory=dict)
    runs: dict[str, tuple[Request, ...]] = field(default_factory=dict)
    waiting: list[tuple[str, bytes]] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    repaired: set[int] = field(default_factory=set)

    def at(self, partition: int, now: int | None) -> int | None:
        """Return the time of a transaction; None if the clock is not plausible. `now` is None for one that jumped."""
        newest = self.newest[partition]
        return None if now is None or newest - now > TOLERANCE else max(now, newest)

    # -- one request --------------------------------------------------------------------------------------------

    def ask(self, request: Request, now: int | None) -> Answer:
        """Answer a request, and charge it if it fits. A repeated key gets its first answer."""
        partition = self.partition_of(request.user)
        owner = None if request.key is None else (request.user, request.share, request.key)
        if owner in self.answers:
            first, answer, charged = self.answers[owner]
            if first.same != request.same:
                return CONFLICT
            was_voided = charged is not None and charged.state == "voided"
            return answer._replace(status="voided" if was_voided else answer.status, repeated=True)
        at = self.at(partition, now)
        if at is None:
            return BAD_CLOCK
        charge = Charge(request, [at], "spent" if request.lasts is None else "reserved", partition in self.repaired)
        mine, granted = self.charges[request.user], self._fits(charge, at)
        if granted:
            mine.append(charge)
            self.newest[partition] = at
            if request.report is not None:
                self.waiting.append((request.user, request.report))
        spent = self.spent_under(request.user, request.policy, at, request.share)
        answer = Answer(charge.state if granted else "refused", spent)
        if owner is not None and request.user not in self.erased:
            self.answers[owner] = request, answer, charge if granted else None
        return answer

    def _fits(self, charge: Charge, at: int) -> bool:
        """True if no limit is exceeded in any window, once the charge is added."""
        request, terms = charge.request, self.policies[charge.request.policy]
        if request.user in self.erased or (request.share is not None and request.share not in terms.shares):
            return False
        return all(
            self.spent(request.user, period, at, share, charge) <= most
            for share in dict.fromkeys((None, request.share))
            for period, most in (terms.limits if share is None else terms.shares[share]).items()
        )

    def spent_under(self, user: str, policy: str, at: int, share: str | None) -> tuple[tuple[str, int], ...]:
        """Return the amounts spent under each limit that applies, by the limit's name."""
        terms = self.policies[policy]
        found = {period: self.spent(user, period, at) for period in terms.limits}
        for period in terms.shares.get(share or "", ()):
            found[f"{period} ({share})"] = self.spent(user, period, at, share)
        return tuple(sorted(found.items()))

    def spent(self, user: str, period: str, at: int, share: str | None = None, more: Charge | None = None) -> int:
        """Add up a user's charges in the window of `period` at a time; of a sub-limit, or of all. `more` comes last."""
        total, window = 0, window_of(period, at)
        reported, counted = Counter[str](), Counter[str]()
        for charge in [*self.charges[user], *([] if more is None else [more])]:
            request = charge.request
            is_here = share in (None, request.share) and any(window_of(period, time) == window for time in charge.times)
            if request.label is None:
                total += COSTS[request.mechanism] * request.reports if is_here and charge.state != "voided" else 0
                continue
            done = counted[request.label]
            earlier = reported[request.label] - done
            if earlier and charge.is_late:
                earlier, done = earlier + done, 0
            if is_here:
                total += loss(done + request.reports, earlier) - loss(done, earlier)
                counted[request.label] += request.reports
            reported[request.label] += request.reports
        return total

    # -- batches under one key ----------------------------------------------------------------------------------

    def charge_part(self, key: str, partition: int, now: int | None) -> list[Answer]:
        """Answer the lines of a batch that belong to one partition; a repeated part gets its first answers."""
        if (key, partition) in self.parts:
            return [answer._replace(repeated=True) for answer in self.parts[key, partition]]
        lines = [line for line in self.runs[key] if self.partition_of(line.user) == partition]
        self.parts[key, partition] = [self.ask(line, now) for line in lines]
        return [*self.parts[key, partition]]

    # -- the rest -----------------------------------------------------------------------------------------------

    def end(self, charge: Charge, how: str, now: int | None) -> Answer:
        """Commit or void a reservation. One that has expired stays charged."""
        partition = self.partition_of(charge.request.user)
        at = self.at(partition, now)
        if charge.state != "reserved":
            ends = ("committed", "expired") if how == "commit" else ("voided",)
            return Answer(charge.state, repeated=True) if charge.state in ends else CONFLICT
        if at is None:
            return BAD_CLOCK
        is_over = charge.is_over or at >= charge.times[0] + (charge.request.lasts or 0)
        if is_over and how == "void":
            return CONFLICT
        charge.state = "expired" if is_over else {"commit": "committed", "void": "voided"}[how]
        self.newest[partition] = at
        return Answer(charge.state)

    def set_policy(self, name: str, terms: Terms, now: int | None) -> None:
        """Set a policy in all partitions, at one time."""
        self.policies[name] = terms
        latest = max(self.at(partition, now) or 0 for partition in range(self.partitions))
        self.newest = Counter(dict.fromkeys(range(self.partitions), latest))

    def erase(self, user: str, now: int | None) -> None:
        """Erase a user, who gets no fresh budget."""
        self.erased.add(user)
        self.charges[f"{user}, erased"] = self.charges.pop(user, [])
        self.answers = {owner: kept for owner, kept in self.answers.items() if owner[0] != user}
        self.waiting = [each for each in self.waiting if each[0] != user]
        partition = self.partition_of(user)
        self.newest[partition] = self.at(partition, now) or self.newest[partition]

    def repair_clock(self, partition: int, now: int) -> bool:
        """Accept the clock. What is dated later counts now too, so a repair refills no window."""
        if self.newest[partition] - now <= TOLERANCE:
            return False
        self.newest[partition] = now
        self.repaired.add(partition)
        for charge in [each for charges in self.charges.values() for each in charges]:
            if self.partition_of(charge.request.user) == partition:
                charge.is_over = True
                charge.times += [now] if charge.times[0] > now else []
        return True


def window_of(period: str, at: int) -> int:
    """Return the number of the window that contains a time. Weeks start on Monday, and 1970 began on a Thursday."""
    return {"lifetime": 0, "day": at // DAY, "week": (at // DAY + 3) // 7}[period]


def loss(reports: int, earlier: int) -> int:
    """Return the ε of reports of one memoized value, given what `earlier` ones of it showed."""
    points = [CURVE[min(count, len(CURVE) - 1)] for count in (earlier + reports, earlier)]
    return sum(points) if reports else 0
