"""Charging many users the same: a stream of any length in batches, each one transaction of set-based statements.

With a key, batch n is bound to KEY#n and to a digest of its users: repeated, it is skipped; with other users it is a
conflict. So an interrupted run is simply run again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from .amounts import LARGEST, Costs
from .charging import Charge, check_text
from .errors import InvalidParameter, KeyConflict, NotSupported
from .guarantees import ANY_INPUTS
from .policy import ANY_RELATION, Limit, Policy, canonical_text
from .receipts import SPENT
from .windows import to_micros, window_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .ledger import Transaction

BATCH = 50_000


@dataclass
class BulkResult:
    """How many requests were charged, refused, or had been charged by an earlier run of the same key."""

    spent: int = 0
    refused: int = 0
    repeated: int = 0
    refused_users: list[str] = field(default_factory=list)

    def count(self, users: int, refused: list[str], repeated: bool) -> None:
        """Add one batch."""
        self.refused += len(refused)
        if repeated:
            self.repeated += users - len(refused)
        else:
            self.spent += users - len(refused)

    def to_json(self) -> dict[str, int]:
        """What `spend-many --json` prints."""
        return {"spent": self.spent, "refused": self.refused, "repeated": self.repeated}


def batches(users: Iterable[str]) -> Iterator[list[str]]:
    """The users in batches, in order."""
    iterator = iter(users)
    while batch := list(islice(iterator, BATCH)):
        for user in batch:
            check_text("user", user)
        yield batch


class BulkCharge:
    """One batch of users charged one report each, inside one transaction."""

    def __init__(
        self, transaction: Transaction, charge: Charge, policy_number: int, policy: Policy, now: datetime
    ) -> None:
        if policy.plan is not None:
            raise NotSupported(f"policy {policy.name} holds a plan; charge its users one at a time")
        self._transaction = transaction
        self._charge = charge
        self._policy_number = policy_number
        self._policy = policy
        self._now = now
        self._cost = charge.cost

    def run(self, users: list[str]) -> list[str]:
        """Charge the users whose limits admit it; returns the refused ones. A user listed twice is charged twice."""
        if self._policy.relation == ANY_RELATION and self._charge.guarantee.relation != ANY_INPUTS:
            return list(users)
        hashed = self._transaction.key.hash
        refused: list[str] = []
        for once in _rounds(users):
            names = {hashed(b"user", user): user for user in once}
            refused += [names[user] for user in self._charge_once(sorted(names))]
        return refused

    def _charge_once(self, users: list[bytes]) -> list[bytes]:
        """Charge distinct users, sorted so that pages are visited in order; returns the refused ones."""
        execute = self._transaction.execute
        execute("CREATE TEMP TABLE IF NOT EXISTS batch (hash BLOB PRIMARY KEY, account INTEGER) WITHOUT ROWID")
        execute("DELETE FROM batch")
        self._transaction.execute_many("INSERT INTO batch (hash) VALUES (?)", ((user,) for user in users))
        execute("UPDATE batch SET account = u.account FROM users u WHERE u.hash = batch.hash")
        refused = [row[0] for row in execute(f"SELECT hash FROM batch b WHERE {self._refused_sql()}")]
        if refused:
            execute(f"DELETE FROM batch AS b WHERE {self._refused_sql()}")
        if len(refused) < len(users):
            self._open_accounts()
            self._add_sums()
            self._append_journal()
        return refused

    def _refused_sql(self) -> str:
        """True for the users of the batch that a limit or a tombstone refuses."""
        erased = "b.account IS NULL AND EXISTS (SELECT 1 FROM tombstones t WHERE t.hash = b.hash)"
        return " OR ".join([f"({erased})", *(self._over_sql(limit) for limit in self._policy.limits)])

    def _over_sql(self, limit: Limit) -> str:
        """True where a limit has no room. Only integers stand in it."""
        room = limit.remaining_room(self._cost)
        if room is None:
            return "1"
        window = window_at(limit.period, self._now).code
        over = [f"a.{name} IS NULL OR a.{name} > {most}" for name, most in room.items()]
        found = f"SELECT 1 FROM accounts a WHERE a.account = b.account AND a.window = {window}"
        return f"EXISTS ({found} AND ({' OR '.join(over)}))"

    def _open_accounts(self) -> None:
        execute = self._transaction.execute
        unknown = [row[0] for row in execute("SELECT hash FROM batch WHERE account IS NULL ORDER BY hash")]
        self._transaction.open_accounts(unknown)
        execute(
            "UPDATE batch SET account = u.account FROM users u WHERE batch.account IS NULL AND u.hash = batch.hash"
        )

    def _add_sums(self) -> None:
        adds = ", ".join(_add_sql(name, amount) for name, amount in zip(Costs._fields, self._cost, strict=True))
        for period in self._transaction.periods():
            window = window_at(period, self._now).code
            self._transaction.execute(
                "INSERT INTO accounts SELECT account, ?, ?, ?, ?, ? FROM batch WHERE true ORDER BY account"
                f" ON CONFLICT DO UPDATE SET {adds}",
                (window, *self._cost),
            )

    def _append_journal(self) -> None:
        charge = self._charge.store(self._transaction)
        entry = (to_micros(self._now), SPENT, charge, self._policy_number, *self._cost)
        self._transaction.append_batch(entry)


def _rounds(users: list[str]) -> Iterator[list[str]]:
    """The users so that each round names a user once."""
    rest = users
    while rest:
        once = dict.fromkeys(rest)
        yield list(once)
        if len(once) == len(rest):
            return
        seen: set[str] = set()
        rest = [user for user in rest if user in seen or seen.add(user)]  # type: ignore[func-returns-value]


def _add_sql(name: str, amount: int | None) -> str:
    """SQL that adds an amount to a sum; what grows too large to count is unbounded."""
    if amount is None:
        return f"{name} = NULL"
    return f"{name} = CASE WHEN {name} <= {LARGEST - amount} THEN {name} + {amount} END"


def run_batch(
    transaction: Transaction,
    users: list[str],
    key: str | None,
    identity: tuple[Any, ...],
    charge: Callable[[], list[str]],
) -> tuple[list[str], bool]:
    """(the refused users, whether the batch was charged before); with a key, the answer is stored."""
    if key is None:
        return charge(), False
    hashed = transaction.key.hash
    name = hashed(b"key", key)
    request = hashed(b"request", repr((identity, hashed(b"users", repr(users)).hex())))
    stored = transaction.answer_to(name)
    if stored is not None:
        if stored.request != request:
            raise KeyConflict(key)
        places = json.loads(stored.answer)["refused"]
        return [users[place] for place in places], True
    refused = charge()
    transaction.store_answer(name, None, request, canonical_text({"refused": refused_places(users, refused)}))
    return refused, False


def refused_places(users: list[str], refused: list[str]) -> list[int]:
    """Where in the batch the refused requests stand; the last ones of a user who is listed more than once."""
    left: dict[str, int] = {}
    for user in refused:
        left[user] = left.get(user, 0) + 1
    places = []
    for place in range(len(users) - 1, -1, -1):
        if left.get(users[place], 0):
            left[users[place]] -= 1
            places.append(place)
    return places[::-1]


def check_batch_key(key: str | None, number: int) -> str | None:
    """The key of batch `number` (from 0) of a run. Raises `InvalidParameter`."""
    if key is None:
        return None
    if not isinstance(key, str) or not key:
        raise InvalidParameter("key", "a text of at least one character", repr(key))
    return f"{key}#{number}"
