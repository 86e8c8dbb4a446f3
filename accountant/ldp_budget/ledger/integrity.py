"""Is the ledger what it was when it was written? Every link, sum, cost and seal, worked out again.

One verifier for every store: it walks the journal once in order, for the chain of links, and once account by account
beside the stored sums, so that it holds no more than one account's history at a time.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..guarantees import from_json
from ..guarantees.amounts import Costs
from .entries import CHARGES, NO_LINK, VOIDED, Entry, User
from .journal import canonical_link, canonical_rows
from .replay import Replay, curves
from .windows import LIFETIME, PERIODS, from_micros, to_micros, window_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .reading import Reading

_MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Integrity:
    """`ok`, how many journal entries there are, the newest link (`head`), and what is wrong, in words."""

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What `ledger verify --json` prints."""
        return {"ok": self.ok, "entries": self.entries, "head": self.head, "problems": list(self.problems)}


def check_integrity(reading: Reading, expect: str | None = None) -> Integrity:
    """Check the whole ledger. With `expect`, that link must be in the chain: nothing before it was rolled back."""
    chain = _Chain(reading)
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: (f"the file is damaged: {line}" for line in reading.rows.damage()),
        chain.check,
        lambda: _charges(reading),
        lambda: _seals(reading, chain),
        lambda: _periods(reading),
        lambda: _Accounts(reading).check(),
        lambda: chain.holds(expect),
    )
    problems: list[str] = []
    for check in checks:
        try:
            problems += islice(check(), _MOST_PROBLEMS - len(problems))
        except Exception as error:  # whatever a changed value makes of the code that reads it
            problems.append(f"a stored value cannot be read: {error or type(error).__name__}")
    return Integrity(not problems, chain.entries, chain.head.hex(), tuple(problems))


class _Chain:
    """The keyed chain of links over the journal."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._charges = _Ahead(reading.rows.charges())
        self._policies = _Ahead(reading.rows.policies())
        self._links: set[bytes] = set()
        self._newest_at: int | None = None
        self.head = NO_LINK
        self.entries = 0
        self.erased = self.cut_off = 0
        """How many users were erased, and how many of them had an account."""

    def check(self) -> Iterator[str]:
        """Walk the chain from the first entry; every link must follow from the one before."""
        rows: list[tuple[Any, ...]] = []
        for row, link in self._reading.rows.entries(1, 2**62):
            rows.append(row)
            self.entries += 1
            self._newest_at = row[1]
            if row[0] != self.entries:
                yield f"journal: entry {row[0]} stands where entry {self.entries} was written"
                self.entries = row[0]
            if row[2] == "erased":
                self.erased, self.cut_off = self.erased + 1, self.cut_off + row[6]
            if link is not None:
                yield from self._link(rows, link)
                rows = []
        if rows:
            yield f"journal: entries {rows[0][0]} to {rows[-1][0]} have no link"
        for table, name, left in (("charges", "charge", self._charges), ("policies", "policy", self._policies)):
            for row in left.until(2**62):
                yield f"{table}: {name} {row[0]} stands in no transaction"
        yield from self._end()

    def _link(self, rows: list[tuple[Any, ...]], link: bytes) -> Iterator[str]:
        charges = self._charges.until(max(row[4] for row in rows))
        policies = self._policies.until(max(row[5] for row in rows))
        if self._reading.key.link(canonical_link(self.head, canonical_rows(rows), charges, policies)) != link:
            yield (
                f"journal: the link of entries {rows[0][0]} to {rows[-1][0]} does not hold; "
                "an entry, a charge or a policy was changed"
            )
        self.head = link
        self._links.add(link)

    def _end(self) -> Iterator[str]:
        """The lane must end where its newest rows do."""
        end = self._reading.end
        accounts = max((user.account for user in self._reading.rows.users()), default=0)
        found = (self.entries, self._newest_at, self.head, accounts, self._charges.last, self._policies.last)
        if tuple(end) != found:
            yield f"lanes: the end of the journal is not where it was written: {end.entries} for {self.entries}"

    def holds(self, expect: str | None) -> Iterator[str]:
        if expect is not None and expect.lower() not in {link.hex() for link in self._links}:
            yield f"the link {expect} is not in the chain: the ledger was rolled back, or it is another one"


class _Ahead:
    """Numbered rows, taken in order as far as a number."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)
        self.last = 0

    def until(self, number: int) -> list[tuple[Any, ...]]:
        """The rows that are left up to this number."""
        taken = []
        while self._next is not None and self._next[0] <= number:
            taken.append(tuple(self._next))
            self.last = self._next[0]
            self._next = next(self._rows, None)
        return taken


def _charges(reading: Reading) -> Iterator[str]:
    """A stored cost must not be below what its guarantee certainly costs."""
    for charge in reading.rows.charges():
        # Each cost is a ceiling of a bound good to twelve digits, so a true one is at most this much below.
        for name, amount, cost in zip(
            Costs._fields, charge.costs, from_json(json.loads(charge.guarantee)).costs(), strict=True
        ):
            least = None if cost is None else cost - 1 - cost // 10**12
            if amount is not None and (least is None or amount < least):
                yield f"charges: charge {charge.number} has {name} {amount}, below the {cost} its guarantee costs"


def _seals(reading: Reading, chain: _Chain) -> Iterator[str]:
    """Users, tombstones, stored answers and collections bear a keyed hash of their row."""
    seal, rows = reading.key.seal, reading.rows
    cut_off = tombstones = 0
    for user in rows.users():
        cut_off += user.hash is None
        if (user.hash is None) != (user.seal is None) or (user.hash is not None and seal(*user[:2]) != user.seal):
            yield f"users: the row of account {user.account} was changed"
    for tombstone in rows.tombstones():
        tombstones += 1
        if seal(*tombstone[:-1]) != tombstone.seal:
            yield f"tombstones: the row {tombstone.hash.hex()} was changed"
    for answer in rows.stored_answers():
        if seal(*answer[:-1]) != answer.seal:
            yield f"keys: the row {answer.key.hex()} was changed"
    for collection in rows.collections():
        if seal(*collection[:-1]) != collection.seal:
            yield f"collections: {collection.name} was changed"
    for table, found, count in (("tombstones", tombstones, chain.erased), ("users", cut_off, chain.cut_off)):
        if found != count:
            yield f"{table}: there are {found} of erased users, and {count} were erased"


def _periods(reading: Reading) -> Iterator[str]:
    """Windows are kept of every period since the first policy that limits it."""
    kept = reading.periods()
    first = {LIFETIME: 0}
    for policy in reading.rows.policies():
        for limit in json.loads(policy.definition)["limits"]:
            first.setdefault(limit["period"], policy.created_at)
    for period, at in first.items():
        since = 0 if period == LIFETIME else to_micros(window_at(period, from_micros(at)).starts)
        if kept.get(period) != since:
            yield f"periods: {period} is kept since {kept.get(period)}, and was limited since {since}"
    for period in kept.keys() - first.keys():
        yield f"periods: {period} is kept, and no policy limits it"


class _Accounts:
    """Every account's sums, counts of memoised values and used quotas must be those of its history."""

    def __init__(self, reading: Reading) -> None:
        self._rows = reading.rows
        self._kept = reading.periods()
        self._curve = curves(reading)
        self._promises = {charge.number: charge.guarantee for charge in reading.rows.charges()}
        plans = {policy.number: json.loads(policy.definition)["plan"] for policy in reading.rows.policies()}
        self._plans = {number: plan["identity"] for number, plan in plans.items() if plan is not None}

    def check(self) -> Iterator[str]:
        """Walk the accounts, each beside its history."""
        rows = self._rows
        histories = (row for row in rows.histories() if row[2] in CHARGES)
        streams = (rows.users(), rows.sums(), rows.label_counts(), rows.quotas())
        for account, (history, users, *stored) in _side_by_side((histories, 3), *((each, 0) for each in streams)):
            if not users:
                yield f"users: account {account} has no row"
            yield from self._account(account, bool(users) and User(*users[0]).hash is None, history, *stored)

    def _account(
        self,
        account: int,
        erased: bool,
        history: list[tuple[Any, ...]],
        sums: list[tuple[Any, ...]],
        labels: list[tuple[Any, ...]],
        quotas: list[tuple[Any, ...]],
    ) -> Iterator[str]:
        replay = Replay({LIFETIME: 0} if erased else self._kept, self._curve)
        used: dict[tuple[str, str], int] = {}
        for row in history:
            entry = Entry.of(row)
            replay.add(entry, row[-1])
            if entry.policy in self._plans:
                quota = self._plans[entry.policy], self._promises[entry.charge]
                used[quota] = used.get(quota, 0) + (-entry.reports if entry.kind == VOIDED else entry.reports)
        stored = {row[1]: Costs._make(row[2:]) for row in sums}
        for window in _differing(stored, replay.sums):
            if PERIODS[window % len(PERIODS)] not in self._kept:
                yield f"accounts: window {window} is of a period that no policy limits"
            else:
                yield f"accounts: account {account}, window {window}, differs from the journal"
        counted = {(row[1], row[2], row[3]): row[4] for row in labels}
        for _, _, window in _differing(counted, replay.labels):
            yield f"labels: a label of account {account}, window {window}, differs from the journal"
        kept = {(row[1], row[2]): row[3] for row in quotas if row[3]}
        if kept != {quota: count for quota, count in used.items() if count}:
            yield f"quotas: account {account} differs from the journal"


def _differing(stored: dict[Any, Any], expected: dict[Any, Any]) -> list[Any]:
    """The keys under which two mappings do not hold the same."""
    return sorted(
        key for key in stored.keys() | expected.keys() if stored.get(key, _MISSING) != expected.get(key, _MISSING)
    )


_MISSING = object()


def _side_by_side(*streams: tuple[Iterable[tuple[Any, ...]], int]) -> Iterator[tuple[int, list[list[Any]]]]:
    """Streams in the order of an account that stands at a place of their rows: (account, its rows in each)."""
    keyed = [_grouped(place, stream, at) for place, (stream, at) in enumerate(streams)]
    for account, groups in groupby(heapq.merge(*keyed, key=itemgetter(0)), key=itemgetter(0)):
        found: list[list[Any]] = [[] for _ in streams]
        for _, place, rows in groups:
            found[place] = rows
        yield account, found


def _grouped(place: int, rows: Iterable[tuple[Any, ...]], at: int) -> Iterator[tuple[int, int, list[Any]]]:
    for account, group in groupby(rows, key=itemgetter(at)):
        yield account, place, list(group)
