"""Charging many users the same: a stream of any length in batches, each one transaction of set-based statements.

With a key, batch n is bound to KEY#n and to a digest of its users: repeated, it is skipped; with other users it is a
conflict. So an interrupted run is simply run again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import InvalidParameter, KeyConflict, NotSupported
from ..ledger import Batch
from ..ledger.windows import to_micros, window_at
from .decision import Charge, check_text
from .limits import Policy, canonical_text
from .receipts import SPENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..ledger import Transaction

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
    if isinstance(users, str | bytes):
        raise InvalidParameter("users", "many users; a single text would be charged letter by letter", repr(users))
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
        if self._charge.objection(self._policy):
            return list(users)
        refused: list[str] = []
        for once in _rounds(users):
            names = dict(zip(self._transaction.key.hashes(b"user", once), once, strict=True))
            refused += [names[user] for user in self._charge_once(sorted(names))]
        return refused

    def _charge_once(self, users: list[bytes]) -> list[bytes]:
        """Charge distinct users; returns the refused ones."""
        batch = Batch(self._transaction, users)
        refused = batch.refuse(
            [(self._window(limit.period), limit.remaining_room(self._cost)) for limit in self._policy.limits]
        )
        if len(refused) < len(users):
            batch.open_accounts()
            batch.charge([self._window(period) for period in self._transaction.periods()], self._cost)
            charge = self._charge.store(self._transaction)
            batch.append((to_micros(self._now), SPENT, charge, self._policy_number, *self._cost))
        return refused

    def _window(self, period: str) -> int:
        return window_at(period, self._now).code


def _rounds(users: list[str]) -> Iterator[list[str]]:
    """The users so that each round names a user once."""
    left = Counter(users)
    while left:
        yield list(left)
        left = Counter({user: times - 1 for user, times in left.items() if times > 1})


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
    request = hashed(b"request", ascii((identity, hashed(b"users", ascii(users)).hex())))
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
