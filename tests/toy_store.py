"""A store kept in dictionaries: what is left when nothing is durable. It proves that the protocol is one."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ldp_budget.guarantees.amounts import ZERO, Costs
from ldp_budget.ledger.entries import (
    CHARGES,
    End,
    LabelRow,
    QuotaRow,
    StoredAnswer,
    StoredCharge,
    StoredCollection,
    StoredPolicy,
    SumRow,
    Tombstone,
    User,
)
from ldp_budget.ledger.keys import Key, new_key
from ldp_budget.ledger.store import Rooms

T = TypeVar("T")


class ToyRows:
    """The rows of a lane, each table a dictionary by its key."""

    def __init__(self) -> None:
        self._end = End()
        self._users: dict[int, User] = {}
        self._tombstones: dict[bytes, Tombstone] = {}
        self._sums: dict[tuple[int, int], Costs] = {}
        self._labels: dict[tuple[int, bytes, int, int], int] = {}
        self._quotas: dict[tuple[int, str, str], int] = {}
        self._answers: dict[bytes, StoredAnswer] = {}
        self._journal: dict[int, tuple[Any, ...]] = {}
        self._links: dict[int, bytes] = {}
        self._entry_labels: dict[int, bytes] = {}
        self._periods = {"lifetime": 0}
        self._charges: dict[int, StoredCharge] = {}
        self._policies: dict[int, StoredPolicy] = {}
        self._collections: dict[str, StoredCollection] = {}

    def end(self) -> End:
        return self._end

    def set_end(self, end: End) -> None:
        self._end = end

    # -- one user

    def accounts(self, users: Sequence[bytes], windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        for user in self._users.values():
            if user.hash in users:
                charged = [w for w in windows if (user.account, w) in self._sums]
                for window in charged:
                    yield (user.hash, user.account, window, *self._sums[user.account, window])
                if not charged:
                    yield (user.hash, user.account, None, None, None, None, None)

    def is_erased(self, user: bytes) -> bool:
        return user in self._tombstones

    def is_cut_off(self, account: int) -> bool:
        return account in self._users and self._users[account].hash is None

    def spent(self, account: int, window: int) -> Costs | None:
        return self._sums.get((account, window))

    def label_reports(self, account: int, label: bytes, charge: int, window: int) -> int:
        return self._labels.get((account, label, charge, window), 0)

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        return self._quotas.get((account, plan, promise), 0)

    def plans_used(self, account: int) -> Iterable[str]:
        return {plan for (owner, plan, _), used in self._quotas.items() if owner == account and used}

    def answers(self, keys: Sequence[bytes]) -> Iterable[StoredAnswer]:
        return [self._answers[key] for key in keys if key in self._answers]

    # -- the journal

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        for number in range(first, min(last, len(self._journal)) + 1):
            yield self._journal[number], self._links.get(number)

    def entry(self, number: int) -> tuple[Any, ...] | None:
        return self._journal.get(number)

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        return next((row for row in self._journal.values() if row[13] == number), None)

    def label(self, number: int) -> bytes | None:
        return self._entry_labels.get(number)

    def history(self, account: int) -> Iterator[tuple[Any, ...]]:
        for number, row in self._journal.items():
            if row[3] == account:
                yield (*row, self._entry_labels.get(number))

    def histories(self, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        for account in sorted({row[3] for row in self._journal.values() if row[2] in CHARGES}):
            yield from (row for row in self.history(account) if since is None or row[1] >= since)

    def add_entries(self, rows: list[tuple[Any, ...]], link: bytes | None) -> None:
        self._journal.update((row[0], row) for row in rows)
        if link is not None:
            self.set_link(rows[-1][0], link)

    def set_link(self, number: int, link: bytes) -> None:
        self._links[number] = link

    def add_label(self, number: int, label: bytes) -> None:
        self._entry_labels[number] = label

    # -- what changes with the accounts

    def add_user(self, user: User) -> None:
        self._users[user.account] = user

    def set_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._sums.update(((row[0], row[1]), Costs(*row[2:])) for row in rows)

    def set_label_reports(self, row: LabelRow) -> None:
        self._labels[row[:4]] = row.reports

    def set_quota_used(self, row: QuotaRow) -> None:
        self._quotas[row[:3]] = row.used

    def add_answers(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._answers.update((row[0], StoredAnswer(*row)) for row in rows)

    def forget(self, tombstone: Tombstone, account: int | None) -> None:
        self._tombstones[tombstone.hash] = tombstone
        self._answers = {key: each for key, each in self._answers.items() if each.user != tombstone.hash}
        if account is not None:
            mine = {row[0] for row in self.history(account)}
            self._entry_labels = {n: label for n, label in self._entry_labels.items() if n not in mine}
            self._labels = {key: reports for key, reports in self._labels.items() if key[0] != account}
            self._sums = {key: costs for key, costs in self._sums.items() if key[0] != account or key[1] == 0}
            self._users[account] = User(account, None, None)

    def batch(self, users: list[bytes]) -> ToyBatch:
        return ToyBatch(self, users)

    # -- what was set

    def periods(self) -> dict[str, int]:
        return dict(self._periods)

    def add_period(self, period: str, since: int) -> None:
        self._periods[period] = since

    def charge_number(self, fingerprint: str, guarantee: str) -> int | None:
        same = [c.number for c in self._charges.values() if (c.fingerprint, c.guarantee) == (fingerprint, guarantee)]
        return same[0] if same else None

    def charges(self, first: int = 1) -> Iterator[StoredCharge]:
        return iter([charge for number, charge in sorted(self._charges.items()) if number >= first])

    def add_charge(self, charge: StoredCharge) -> None:
        self._charges[charge.number] = charge

    def policy(self, name: str) -> StoredPolicy | None:
        return next((policy for policy in reversed(list(self.policies())) if policy.name == name), None)

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        return iter([policy for number, policy in sorted(self._policies.items()) if number >= first])

    def was_charged(self, policy: int) -> bool:
        return any(row[5] == policy and row[4] for row in self._journal.values())

    def add_policy(self, policy: StoredPolicy) -> None:
        self._policies[policy.number] = policy

    def collection(self, name: str) -> StoredCollection | None:
        return self._collections.get(name)

    def collections(self) -> Iterator[StoredCollection]:
        return iter([self._collections[name] for name in sorted(self._collections)])

    def add_collection(self, collection: StoredCollection) -> None:
        self._collections[collection.name] = collection

    # -- everything

    def users(self) -> Iterator[User]:
        return iter(self._users.values())

    def tombstones(self) -> Iterator[Tombstone]:
        return iter(self._tombstones.values())

    def sums(self) -> Iterator[SumRow]:
        return iter([SumRow(*key, *costs) for key, costs in sorted(self._sums.items(), key=lambda item: item[0])])

    def label_counts(self) -> Iterator[LabelRow]:
        return iter([LabelRow(*key, reports) for key, reports in sorted(self._labels.items())])

    def quotas(self) -> Iterator[QuotaRow]:
        return iter([QuotaRow(*key, used) for key, used in sorted(self._quotas.items())])

    def stored_answers(self) -> Iterator[StoredAnswer]:
        return iter(self._answers.values())

    def counts(self) -> dict[str, Any]:
        kinds = [row[2] for row in self._journal.values()]
        return {
            "users": sum(user.hash is not None for user in self._users.values()),
            "erased": len(self._tombstones),
            "keys": len(self._answers),
            "collections": len(self._collections),
            "entries_by_kind": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        }

    def damage(self) -> Iterator[str]:
        return iter(())


class ToyBatch:
    """Many users charged alike, one by one."""

    def __init__(self, rows: ToyRows, users: list[bytes]) -> None:
        self._rows = rows
        self._left = users

    def refuse(self, rooms: Rooms) -> list[bytes]:
        refused = [user for user in self._left if not self._fits(user, rooms)]
        self._left = [user for user in self._left if user not in refused]
        return refused

    def _fits(self, user: bytes, rooms: Rooms) -> bool:
        account = self._account(user)
        if account is None and self._rows.is_erased(user):
            return False
        for window, room in rooms:
            if room is None:
                return False
            spent = ((account is not None and self._rows.spent(account, window)) or ZERO)._asdict()
            if any(spent[name] is None or spent[name] > most for name, most in room.items()):
                return False
        return True

    def _account(self, user: bytes) -> int | None:
        return next((each.account for each in self._rows.users() if each.hash == user), None)

    def unknown(self) -> list[bytes]:
        return [user for user in self._left if self._account(user) is None]

    def open_accounts(self, first: int, users: list[bytes], seals: list[bytes]) -> None:
        for number, (user, seal) in enumerate(zip(users, seals, strict=True), first):
            self._rows.add_user(User(number, user, seal))

    def _accounts(self) -> list[int]:
        return sorted(account for user in self._left if (account := self._account(user)) is not None)

    def charge(self, windows: Iterable[int], cost: Costs) -> None:
        for window in windows:
            for account in self._accounts():
                spent = self._rows.spent(account, window) or ZERO
                self._rows.set_sums([(account, window, *spent.plus(cost))])

    def append(self, first: int, common: tuple[Any, ...]) -> list[int]:
        accounts = self._accounts()
        at, kind, charge, policy, *amounts = common
        rows = [(n, at, kind, a, charge, policy, 1, *amounts, 0, None, None) for n, a in enumerate(accounts, first)]
        self._rows.add_entries(rows, None)
        return accounts


class ToyStore:
    """A store whose transactions work on a copy, which takes the place of the rows at their end."""

    def __init__(self) -> None:
        self.name = "toy"
        self.key = Key(new_key())
        self._rows = ToyRows()
        self._lock = threading.Lock()

    def run(self, work: Callable[[ToyRows], T]) -> T:
        with self._lock:
            work(copy.deepcopy(self._rows))  # as an engine may ask for it again
            rows = copy.deepcopy(self._rows)
            result = work(rows)
            self._rows = rows
            return result

    @contextmanager
    def snapshot(self) -> Iterator[ToyRows]:
        yield self._rows

    def clear_log(self) -> None: ...

    def close(self) -> None: ...
