"""A store in dictionaries, without durability. It shows that the store interface suffices."""

from __future__ import annotations

import copy
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, TypeAlias

from ldp_budget.guarantees.fixed_point import ZERO, Costs
from ldp_budget.ledger import models as e
from ldp_budget.ledger.calendar import DAY_MICROS
from ldp_budget.ledger.hash_chain import counters_mac
from ldp_budget.ledger.keyed_hashing import Key, new_key
from ldp_budget.ledger.storage import NO_SUM, Attempt, Prefetch, Renew, Rooms
from ldp_budget.ledger.tables import TABLES, NamedReads

Table: TypeAlias = dict[Any, Any]


class ToyRows(NamedReads):  # of a partition, each table a dictionary by its key
    def __init__(self, key: Key) -> None:
        self._end, self._mac = e.PartitionHead(), counters_mac(key, e.PartitionHead())
        self._users: dict[int, e.User] = {}
        self._tombstones, self._idempotency_records, self._macs, self._collections = (
            Table(),
            Table(),
            Table(),
            Table(),
        )
        self._sums: dict[tuple[int, int], Costs] = {}
        self._memoised_counts: dict[tuple[int, bytes, int, int], int] = {}
        self._quotas: dict[tuple[int, str, str], int] = {}
        self._numbered: dict[str, Table] = {}
        self._journal, self._links, self._notes, self._priced_mechanisms = Table(), Table(), Table(), Table()
        self._checkpoints, self._records = list[e.Checkpoint](), list[e.AdminLogEntry]()
        self._entry_labels, self._policies, self._periods = Table(), Table(), {"lifetime": 0}

    def end(self) -> tuple[e.PartitionHead, bytes]:
        return self._end, self._mac

    def set_end(self, end: e.PartitionHead, row_mac: bytes | None) -> None:
        self._end, self._mac = end, row_mac or self._mac

    def _table(self, kind: type[Any]) -> list[Any]:
        if kind in (e.WindowSum, e.MemoisedCount, e.QuotaUse):
            of: dict[Any, Any] = {
                e.WindowSum: self._sums,
                e.MemoisedCount: self._memoised_counts,
                e.QuotaUse: self._quotas,
            }[kind]
            return [kind(*key, *(value if isinstance(value, tuple) else (value,))) for key, value in of.items()]
        if kind is e.KeptPeriod:
            return [e.KeptPeriod(*each) for each in self._periods.items()]
        if kind in (e.Checkpoint, e.AdminLogEntry):
            return list(self._checkpoints if kind is e.Checkpoint else self._records)
        return list((self._of(kind) if kind in e.NUMBERED else self._named[kind]).values())

    @property
    def _named(self) -> dict[type[Any], Table]:
        return {
            e.User: self._users,
            e.Tombstone: self._tombstones,
            e.IdempotencyRecord: self._idempotency_records,
            e.AccountMac: self._macs,
            e.EntryLabel: self._entry_labels,
            e.EntryNote: self._notes,
            e.PricedMechanism: self._priced_mechanisms,
            e.StoredPolicy: self._policies,
            e.StoredCollection: self._collections,
        }

    def select(self, kind: type[Any], first: Any = None, last: Any = None, **equal: Any) -> Iterator[Any]:
        table = TABLES[kind]
        key, same = (
            [table.columns.index(name) for name in table.key],
            [(table.columns.index(n), v) for n, v in equal.items()],
        )
        rows = [row for row in self._table(kind) if all(row[place] == value for place, value in same)]
        rows = [
            row for row in rows if (first is None or row[key[0]] >= first) and (last is None or row[key[0]] <= last)
        ]
        return iter(sorted(rows, key=lambda row: [row[place] for place in key]))

    def ask(self, query: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        name, _, amount = query.partition(" ")
        if name == "amounts":
            return [(key[0], getattr(self._sums[key], amount)) for key in sorted(self._sums) if key[1] == values[0]]
        found: Iterable[tuple[Any, ...]] = getattr(self, f"_{name}")(*values)
        return found

    def insert(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        self.replace(kind, rows)

    def replace(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            if kind is e.WindowSum:
                self._sums[row[0], row[1]] = Costs(*row[2:])
            elif kind in (e.MemoisedCount, e.QuotaUse):
                (self._memoised_counts if kind is e.MemoisedCount else self._quotas)[row[:-1]] = row[-1]  # type: ignore[index]
            elif kind is e.KeptPeriod:
                self._periods[row[0]] = row[1]
            elif kind in (e.Checkpoint, e.AdminLogEntry):
                (self._checkpoints if kind is e.Checkpoint else self._records).append(kind(*row))
            elif kind in e.NUMBERED:
                self._of(kind)[row[0]] = kind(*row)
            else:
                table = TABLES[kind]
                key = tuple([row[table.columns.index(name)] for name in table.key])
                self._named[kind][key if len(key) > 1 else key[0]] = kind(*row)

    def accounts(
        self, asked: Sequence[Any], windows: Sequence[str], by_number: bool = False
    ) -> Iterable[tuple[Any, ...]]:
        if by_number:
            yield from self.accounts_by_number(asked, windows)
        for user in () if by_number else [each for each in self._users.values() if each.user_hash in asked]:
            yield from self.accounts_by_number([user.account], windows)

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        for account in [each for each in accounts if each in self._users and self._users[each].user_hash is not None]:
            charges = [n for n, row in self._journal.items() if row[3] == account and row[2] in e.CHARGES]
            counted = any(key[0] == account for key in (*self._memoised_counts, *self._quotas))
            row_mac = max(charges, default=None), *self._macs.get(account, (0, None, None))[1:], counted
            sums = [
                (each, *self._sums[account, each]) if (account, each) in self._sums else [None] * 5
                for each in windows
            ]
            yield (self._users[account].user_hash, account, *row_mac, *chain.from_iterable(sums))

    def sums_between(
        self, accounts: Sequence[int], ranges: Sequence[tuple[str, str]]
    ) -> Iterable[tuple[int, str, int | None, int | None, int | None, int | None]]:
        return [
            (account, name, *costs)
            for (account, name), costs in self._sums.items()
            if account in accounts and any(first <= name <= last for first, last in ranges)
        ]

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        return [user for user in users if user in self._tombstones]

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[e.IdempotencyRecord]:
        return [each for (user, key), each in self._idempotency_records.items() if user in users and key in keys]

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        return iter([(self._journal[n], self._links.get(n)) for n in range(first, min(last, len(self._journal)) + 1)])

    def _entry(self, number: int) -> list[tuple[Any, ...]]:
        return [self._journal[number]] if number in self._journal else []

    def _resolution(self, number: int) -> list[tuple[Any, ...]]:
        return [row for row in self._journal.values() if row[13] == number]

    def _repairs(self, first: int) -> list[tuple[Any, ...]]:
        return [row[:2] for row in self._journal.values() if row[2] == "clock" and row[0] >= first]

    def _notes_of(self, first: int, last: int, account: int) -> list[tuple[Any, ...]]:
        return [note for note in self.notes(first, last) if self._journal[note.entry][3] == account]

    def histories(
        self, first: int, last: int, since: int | None = None, after: int = 0, most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        rows = [row for row in self._journal.values() if first <= row[3] <= last and row[0] > after]
        rows = sorted([row for row in rows if since is None or row[1] >= since], key=lambda row: (row[3], row[0]))
        for row in rows[:most]:
            yield (*row, *self._entry_labels.get(row[0], (row[0], None, None))[1:])

    def _first_other(self, number: int, last: int) -> list[tuple[int]]:
        return [(number + 1,)]

    def _accounts_of(self, first: int, last: int) -> list[tuple[int]]:
        return [(self._journal[number][3],) for number in range(first, last + 1)]

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        rows = (row for row in self._journal.values() if row[12] is not None and row[12] > after)
        return iter([row for row in rows if account in (None, row[3]) and self.resolution(row[0]) is None])

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None, last: int) -> None:
        self._journal.update((row[0], row) for row in rows)
        self._links.update({} if chain_hash is None else {last: chain_hash})

    def forget(self, tombstone: e.Tombstone, cut_off: e.User | None) -> None:
        self._tombstones[tombstone.user_hash] = tombstone
        records = self._idempotency_records.items()
        self._idempotency_records = {key: each for key, each in records if key[0] != tombstone.user_hash}
        if cut_off is not None:
            account, labels = cut_off.account, self._entry_labels.values()
            self._macs.pop(account, None)
            self._entry_labels = {each.entry: each for each in labels if self._journal[each.entry][3] != account}
            self._notes = {entry: n for entry, n in self._notes.items() if self._journal[entry][3] != account}
            self._memoised_counts = {
                key: reports for key, reports in self._memoised_counts.items() if key[0] != account
            }
            self._sums = {
                key: costs for key, costs in self._sums.items() if key[0] != account or key[1] == "lifetime"
            }
            self._users[account] = cut_off

    def renew(self, by: Mapping[str, Renew]) -> None:
        counts = "memoised_counts"
        for name in by.keys() - {counts, *(table.name for table in e.NUMBERED.values())}:
            rows = [row._make(by[name](row)) for row in getattr(self, f"_{name}").values()]
            size = {"idempotency_records": slice(2), "collections": 1}.get(name, 0)
            setattr(self, f"_{name}", {row[size]: row for row in rows})
        self._memoised_counts = {row[:4]: row[4] for row in map(by[counts], self._counted())}
        for name, table in self._numbered.items():
            table.update({number: row._make(by[name](row)) for number, row in table.items()})

    def _counted(self) -> list[tuple[Any, ...]]:
        return [(*key, reports) for key, reports in self._memoised_counts.items()]

    def batch(self, users: list[bytes], windows: list[str]) -> ToyBatch:
        return ToyBatch(self, users)

    def _was_charged(self, policy: int) -> list[tuple[Any, ...]]:
        return [(1,) for row in self._journal.values() if row[5] == policy and row[4]]

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[e.IdempotencyRecord], int | None]:
        return self._idempotency_records.values(), None

    def _refusals(self, first: int, last: int) -> list[e.IdempotencyRecord]:
        numbered = [each for each in self._idempotency_records.values() if each.number is not None]
        return [each for each in numbered if first <= each.number <= last]

    def _waiting_of(self, account: int) -> list[e.StoredReport]:
        return [row for row in self.waiting_reports() if self._journal[row.entry][3] == account]

    def _rounds(self, collection: str) -> list[tuple[str]]:
        parts = [row for _, row in sorted(self._of(e.RoundPart).items())]
        return [(row.name,) for row in parts if row.collection == collection and not row.part]

    def _report_counts(self) -> list[tuple[Any, ...]]:
        counted = Counter((row.collection, row.state) for row in self._of(e.StoredReport).values())
        for row in self._of(e.RoundPart).values():
            counted[row.collection, e.IN_ROUNDS] += row.reports
        return [(*key, count) for key, count in counted.items()]

    def _of(self, kind: type[Any]) -> Table:
        return self._numbered.setdefault(e.NUMBERED[kind].name, Table())

    def counts(self) -> dict[str, Any]:
        gone = sum(user.user_hash is None for user in self._users.values())
        keys = len(self._idempotency_records) + len(self._of(e.BatchRunRecord))
        kinds = dict(sorted(Counter(row[2] for row in self._journal.values()).items()))
        some = {"users": len(self._users) - gone, "erased": len(self._tombstones), "cut_off": gone, "keys": keys}
        return {"engine": {}, **some, "notes": len(self._notes), "entries_by_kind": kinds}

    def _charges(self, since: int = 0) -> list[tuple[Any, ...]]:
        return [row for row in self._journal.values() if row[2] in e.CHARGES and row[1] >= since]

    def _charges_by_mechanism(self) -> Iterable[tuple[int, int, int, int, int, int]]:
        for mechanism in sorted({row[4] for row in self._charges()}):
            mine = [row for row in self._charges() if row[4] == mechanism]
            kinds = [[row[6] for row in mine if (row[2] == e.VOIDED) is voided] for voided in (False, True)]
            yield (
                mechanism,
                *(count for each in kinds for count in (len(each), sum(each))),
                max(row[1] for row in mine),
            )  # type: ignore[misc]

    def _charges_by_day(self, since: int) -> Iterable[tuple[int, int, int, int, int]]:
        for day in sorted({row[1] // DAY_MICROS for row in self._charges(since)}):
            today = [row for row in self._charges(since) if row[1] // DAY_MICROS == day]
            charged = [row for row in today if row[2] != e.VOIDED]
            reports = sum(row[6] for row in charged)
            voided = sum(row[6] for row in today) - reports
            yield day, len({row[3] for row in charged}), len(charged), reports, voided

    def _refusals_by_day(self, since: int) -> Iterable[tuple[int, int, str, int]]:
        found = Counter[tuple[int, int, str]]()
        for record in self._idempotency_records.values():
            if record.number is not None:
                _, (policy, at, *_), (periods, _) = json.loads(record.response)
                if at >= since:
                    found[at // DAY_MICROS, policy, json.dumps(periods)] += 1
        return [(*key, count) for key, count in sorted(found.items())]

    def _refused_in_runs(self) -> list[tuple[int]]:
        runs = self._of(e.BatchRunRecord).values()
        return [(sum(len(json.loads(run.response)["refused"]) for run in runs if run.kind == e.CHARGED),)]

    def _users_by_sums(self, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        sums = Counter(
            (window, *spent)
            for (account, window), spent in self._sums.items()
            if window in windows and self._users[account].user_hash is not None
        )
        return [(*key, users) for key, users in sums.items()]

    def _policies_set(self) -> Iterable[tuple[int, int]]:
        return [(row[5], row[16]) for row in self._journal.values() if row[2] == e.POLICY_SET]

    def damage(self) -> Iterator[str]:
        return iter(())


class ToyBatch:  # many users charged alike, one by one
    def __init__(self, rows: ToyRows, users: list[bytes]) -> None:
        self._rows = rows
        self._left = users

    def refuse(self, rooms: Rooms) -> list[bytes]:
        left, erased = self._left, self._rows.erased
        self._left = [user for user in left if not erased([user]) and self._fits(user, rooms)]
        return [user for user in left if user not in self._left]

    def _fits(self, user: bytes, rooms: Rooms) -> bool:
        for window, room in rooms:
            sums = (row[7:] for row in self._rows.accounts([user], [window]) if row[6] is not None)
            spent = Costs(*next(sums, ZERO))._asdict()
            if room is None or any(spent[name] is None or spent[name] > most for name, most in room.items()):
                return False
        return True

    def unknown(self) -> list[bytes]:
        return [user for user in self._left if not [*self._rows.accounts([user], [])]]

    def stored_macs(self, day: int, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        for account in self._accounts():
            [(user, _, newest, sealed_on, row_mac, counted)] = self._rows.accounts([account], (), by_number=True)
            sums = [self._rows.spent(account, window) or (NO_SUM, None, None, None) for window in windows]
            yield (
                account,
                user,
                newest,
                None if counted or sealed_on != day else row_mac,
                *sum(map(tuple, sums), ()),
            )

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        self._rows._users.update((n, e.User(n, *u)) for n, u in enumerate(zip(users, row_macs, strict=True), first))

    def _accounts(self) -> list[int]:
        return sorted(row[1] for row in self._rows.accounts(self._left, []))

    def charge(self, windows: Iterable[str], cost: Costs) -> None:
        for w in windows:
            rows = [(a, w, *(self._rows.spent(a, w) or ZERO).plus(cost)) for a in self._accounts()]
            self._rows.replace(e.WindowSum, rows)

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        (at, kind, *charged), *amounts = common[:4], *common[4:]
        for number, account in enumerate(self._accounts(), first):
            self._rows._journal[number] = (
                number,
                at,
                kind,
                account,
                *charged,
                1,
                *amounts,
                None,
                None,
                None,
                0,
                *bound,
                None,
            )
        return self._accounts()

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        self._rows.replace(
            e.AccountMac,
            [e.AccountMac(a, day, row_mac) for a, row_mac in zip(self._accounts(), row_macs, strict=True)],
        )


class ToyStore:
    """A store whose transactions work on a copy, which takes the place of the rows at their end."""

    writers = 1

    def __init__(self, partitions: int = 1, secret: bytes | None = None) -> None:
        self.name, self.identity, self.partitions, self.key = (
            "toy",
            f"toy {id(self)}",
            partitions,
            Key(secret or new_key()),
        )
        self._rows = [ToyRows(self.key) for _ in range(partitions)]
        self.repeated, self._lock = Counter[str](), threading.Lock()

    def attempts(self, partitions: Sequence[int] = (0,), hint: Prefetch | None = None) -> Iterator[Attempt]:
        with self._lock:
            for _ in range(2):  # as an engine may ask for it again
                rows = copy.deepcopy(self._rows)
                # The order of the partitions promises nothing: a cluster has that of its nodes.
                attempt = Attempt({partition: rows[partition] for partition in reversed(partitions)})
                yield attempt
                if attempt.error is not None:
                    raise attempt.error
            self._rows = rows

    def snapshot(self, partition: int = 0) -> AbstractContextManager[ToyRows]:
        return nullcontext(self._rows[partition])

    def entries(self) -> list[int]:
        return [rows.end()[0].entries for rows in self._rows]

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        self.key.learn(Key(change(self.key)))

    def close(self, *given: object) -> bool:
        return True

    backup = check_key = check_writable = clear_log = close


def opened(url: str, *, create: bool, secret: bytes | None, sandbox: bool | None, ledger_id: str | None) -> ToyStore:
    """The store at a URL, as an entry point of `ldp_budget.stores` gives it."""
    return ToyStore(secret=secret)
