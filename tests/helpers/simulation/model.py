"""The reference model: what a ledger must answer, in plain Python and without any code of the library.

It keeps every charge and adds up from scratch: no running sums, no stored windows, no transactions. Amounts are whole
units of 1e-9 ε. Times are whole seconds since 1970. It is asked in the order in which the requests took effect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

DAY, TOLERANCE, UNIT = 86_400, 5, 1_000_000_000
COSTS = {"tenth": 100_000_000, "large": 700_000_000}
CURVE = (0, 300_000_000, 500_000_000, 600_000_000, 650_000_000)
"""The mechanism `memoized`: the ε of 0, 1, 2 … reports of one value; the last one is the cap."""


class Terms(NamedTuple):
    """A version of a policy: the capacity of each period (lifetime, day, week), and of each sub-limit's periods."""

    limits: dict[str, int]
    shares: dict[str, dict[str, int]]


class Request(NamedTuple):
    """A request for one user. `lasts` makes it a reservation of so many seconds, `report` stores a report."""

    user: str
    mechanism: str
    reports: int = 1
    policy: str = "default"
    share: str | None = None
    key: str | None = None
    label: str | None = None
    lasts: int | None = None
    report: bytes | None = None
    note: str | None = None

    @property
    def owner(self) -> tuple[str, str | None, str | None]:
        """The key, and its owner: a user has keys of their own for each holder of an API key."""
        return self.user, self.share, self.key


class Answer(NamedTuple):
    """The answer to a request, with what is spent then under each limit of its policy."""

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
    after_repair: bool = False
    before_repair: bool = False


@dataclass
class Model:
    """The state that a ledger must have. `place` returns the partition of a user."""

    place: Callable[[str], int]
    newest: dict[int, int]  # the time of the newest entry of each partition
    policies: dict[str, Terms] = field(default_factory=dict)
    charges: dict[str, list[Charge]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[object, tuple[Request, Answer, Charge | None]] = field(default_factory=dict)
    batches: dict[str, tuple[Request, ...]] = field(default_factory=dict)
    parts: dict[tuple[str, int], list[Answer]] = field(default_factory=dict)
    waiting: list[tuple[str, bytes]] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)
    repaired: set[int] = field(default_factory=set)

    def at(self, partition: int, now: int | None) -> int | None:
        """Return the time of a transaction; None if the clock is not plausible. `now` is None if it has jumped."""
        newest = self.newest[partition]
        return None if now is None or newest - now > TOLERANCE else max(now, newest)

    def ask(self, request: Request, now: int | None) -> Answer:
        """Answer a request, and charge it if it fits. A used key gets its first answer, or is a conflict."""
        if request.owner in self.answers:
            first, answer, charged = self.answers[request.owner]
            if first[:8] != request[:8] or (first.report is None) is not (request.report is None):
                return CONFLICT
            status = "voided" if charged is not None and charged.state == "voided" else answer.status
            return answer._replace(status=status, repeated=True)
        partition = self.place(request.user)
        at = self.at(partition, now)
        if at is None:
            return BAD_CLOCK
        state = "spent" if request.lasts is None else "reserved"
        charge = Charge(request, [at], state, after_repair=partition in self.repaired)
        user, share, limits = request.user, request.share, self._limits(request)
        has_budget = user not in self.erased and share in (None, *self.policies[request.policy].shares)
        fits = has_budget and all(self.spent(user, each, at, of, charge) <= most for _, each, of, most in limits)
        if fits:
            self.charges[user].append(charge)
            self.newest[partition] = at
            self.waiting += [] if request.report is None else [(user, request.report)]
        spent = sorted((name, self.spent(user, period, at, of)) for name, period, of, _ in limits)
        answer = Answer(state if fits else "refused", tuple(spent))
        if request.key is not None and user not in self.erased:
            self.answers[request.owner] = request, answer, charge if fits else None
        return answer

    def _limits(self, request: Request) -> list[tuple[str, str, str | None, int]]:
        """Return the name, period, sub-limit and capacity of each limit that a request must fit."""
        limits, shares = self.policies[request.policy]
        share, of_share = request.share, shares.get(request.share or "", {})
        mine = [(f"{each} ({share})", each, share, most) for each, most in of_share.items()]
        return [*((each, each, None, most) for each, most in limits.items()), *mine]

    def spent(self, user: str, period: str, at: int, share: str | None = None, more: Charge | None = None) -> int:
        """Add up what a user is charged in the window of a time; `more` is the last charge."""
        total, window = 0, window_of(period, at)
        reported, counted = Counter[str](), Counter[str]()
        for charge in self.charges[user] if more is None else [*self.charges[user], more]:
            request = charge.request
            is_in = period == "lifetime" or window in [window_of(period, time) for time in charge.times]
            is_in = is_in and share in (None, request.share)
            if request.label is None:
                total += COSTS[request.mechanism] * request.reports if is_in and charge.state != "voided" else 0
                continue
            done = counted[request.label]
            earlier = reported[request.label] - done
            if earlier and charge.after_repair:  # the window may have gaps
                earlier, done = earlier + done, 0
            if is_in:
                total += loss(done + request.reports, earlier) - loss(done, earlier)
                counted[request.label] += request.reports
            reported[request.label] += request.reports
        return total

    def charge_part(self, key: str, partition: int, now: int | None) -> list[Answer]:
        """Answer the lines of a batch that belong to one partition: together, and once."""
        if (key, partition) in self.parts:
            return [answer._replace(repeated=True) for answer in self.parts[key, partition]]
        lines = [line for line in self.batches[key] if self.place(line.user) == partition]
        self.parts[key, partition] = [self.ask(line, now) for line in lines]
        return [*self.parts[key, partition]]

    def end(self, charge: Charge, how: str, now: int | None) -> Answer:
        """Commit or void a reservation. One that has expired stays charged."""
        if charge.state != "reserved":
            is_repeated = (charge.state == "voided") is (how == "void")
            return Answer(charge.state, repeated=True) if is_repeated else CONFLICT
        partition = self.place(charge.request.user)
        at = self.at(partition, now)
        if at is None:
            return BAD_CLOCK
        is_over = charge.before_repair or at >= charge.times[0] + (charge.request.lasts or 0)
        if is_over and how == "void":
            return CONFLICT
        self.newest[partition] = at
        charge.state = "expired" if is_over else {"commit": "committed", "void": "voided"}[how]
        return Answer(charge.state)

    def set_policy(self, name: str, terms: Terms, now: int | None) -> None:
        """Set a policy in all partitions, at one time."""
        self.policies[name] = terms
        self.newest = dict.fromkeys(self.newest, max(self.at(partition, now) or 0 for partition in self.newest))

    def erase(self, user: str, now: int | None) -> None:
        """Erase a user, who gets no fresh budget."""
        self.erased.add(user)
        self.charges[f"{user}, erased"] = self.charges.pop(user, [])
        self.answers = {owner: kept for owner, kept in self.answers.items() if kept[0].user != user}
        self.waiting = [each for each in self.waiting if each[0] != user]
        self.newest[self.place(user)] = self.at(self.place(user), now) or self.newest[self.place(user)]

    def repair_clock(self, partition: int, now: int) -> None:
        """Accept the clock. What is dated later counts now too, so that no window is refilled."""
        self.newest[partition] = now
        self.repaired.add(partition)
        for charge in [each for charges in self.charges.values() for each in charges]:
            if self.place(charge.request.user) == partition:
                charge.before_repair = True
                charge.times += [now] if charge.times[0] > now else []


def window_of(period: str, at: int) -> int:
    """Return the number of the window that contains a time. Weeks start on Monday; 1970 began on a Thursday."""
    return 0 if period == "lifetime" else at // DAY if period == "day" else (at // DAY + 3) // 7


def loss(reports: int, earlier: int) -> int:
    """Return the ε of reports of one memoized value, given what `earlier` ones of it showed."""
    points = [CURVE[min(count, len(CURVE) - 1)] for count in (earlier + reports, earlier)]
    return sum(points) if reports else 0
