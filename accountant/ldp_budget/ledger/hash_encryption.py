"""View of a partition's rows that decrypts stored hashes on reading and encrypts them on writing.

Code that uses this view sees plain hashes, and need not know the secret in use. Under the first secret hashes are
stored unencrypted, and this view is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from .models import NUMBERED, EntryLabel, IdempotencyRecord, MemoisedCount, Numbered, Tombstone, User

if TYPE_CHECKING:
    from .keyfile import Secret
    from .storage import Batch, N, Rooms, Rows, Snapshot


def decrypting_view(rows: Snapshot, secret: Secret) -> Rows:
    """Return the rows of a partition with plain hashes, where `secret` is in use."""
    return cast("Rows", rows if secret.number == 1 else _Unveiled(rows, secret))


class _Unveiled:
    """All rows that contain hashes; everything else is delegated to the rows themselves."""

    def __init__(self, rows: Any, secret: Secret) -> None:
        self._rows = rows
        self._secret, self._decrypt_hash = secret, secret.decrypt_hash
        # The hash of a user or key is looked up more than once.
        self._known: dict[bytes, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def _veil(self, hashed: bytes) -> bytes:
        veiled = self._known.get(hashed)
        if veiled is None:
            veiled = self._known[hashed] = self._secret.encrypt_hash(hashed)
        return veiled

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(self, users: Sequence[bytes], windows: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        veiled = {self._veil(user): user for user in users}
        for user, *row, _ in self._rows.accounts(list(veiled), windows):
            yield (veiled[user], *row, veiled[user])

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        for *row, user in self._rows.accounts_by_number(accounts, windows):
            yield (*row, self._decrypt_hash(user))

    def erased(self, users: Sequence[bytes]) -> list[bytes]:
        veiled = {self._veil(user): user for user in users}
        return [veiled[user] for user in self._rows.erased(list(veiled))]

    def memoised_reports(self, account: int, label: bytes, charge: int, window: int) -> int:
        reports: int = self._rows.memoised_reports(account, self._veil(label), charge, window)
        return reports

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterator[IdempotencyRecord]:
        veiled = [self._veil(user) for user in users], [self._veil(key) for key in keys]
        return map(self._record, self._rows.idempotency_records(*veiled))

    def idempotency_records_of(self, user: bytes) -> Iterator[IdempotencyRecord]:
        return map(self._record, self._rows.idempotency_records_of(self._veil(user)))

    # -- the journal --------------------------------------------------------------------------------------

    def label(self, number: int) -> EntryLabel | None:
        label = self._rows.label(number)
        return (
            None
            if label is None
            else EntryLabel(number, self._decrypt_hash(label.label), self._decrypt_hash(label.salt))
        )

    def history(self, account: int, first: int = 1, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        return map(self._labelled, self._rows.history(account, first, most))

    def histories(self, first: int, last: int, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        return map(self._labelled, self._rows.histories(first, last, since))

    def _labelled(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if row[-2] is None:
            return row
        return (*row[:-2], self._decrypt_hash(row[-2]), self._decrypt_hash(row[-1]))

    # -- everything ---------------------------------------------------------------------------------------

    def users(self, first: int, last: int) -> Iterator[User]:
        for user in self._rows.users(first, last):
            yield user if user.user_hash is None else user._replace(user_hash=self._decrypt_hash(user.user_hash))

    def tombstones(self) -> Iterator[Tombstone]:
        for tombstone in self._rows.tombstones():
            yield tombstone._replace(user_hash=self._decrypt_hash(tombstone.user_hash))

    def memoised_counts(self, first: int, last: int) -> Iterator[MemoisedCount]:
        rows = [row._replace(label=self._decrypt_hash(row.label)) for row in self._rows.memoised_counts(first, last)]
        return iter(sorted(rows))

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[IdempotencyRecord], int | None]:
        records, following = self._rows.idempotency_records_after(position, most)
        return map(self._record, records), following

    def refusals(self, first: int, last: int) -> Iterator[IdempotencyRecord]:
        return map(self._record, self._rows.refusals(first, last))

    def _record(self, row: IdempotencyRecord) -> IdempotencyRecord:
        user, key, request = map(self._decrypt_hash, (row.user_hash, row.key_hash, row.request_digest))
        return row._replace(user_hash=user, key_hash=key, request_digest=request)

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        veiled = [self._veil(each) if isinstance(each, bytes) else each for each in key]
        row = self._rows.numbered(kind, *veiled)
        return None if row is None else self._each_hash(row, self._decrypt_hash)

    def all_numbered(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        return (self._each_hash(row, self._decrypt_hash) for row in self._rows.all_numbered(kind, first, last))

    def _each_hash(self, row: Any, change: Callable[[bytes], bytes]) -> Any:
        values = list(row)
        for place in NUMBERED[type(row)].hashes:
            values[place] = change(values[place])
        return type(row)(*values)

    # -- writing ------------------------------------------------------------------------------------------

    def add_user(self, user: User) -> None:
        self._rows.add_user(user if user.user_hash is None else user._replace(user_hash=self._veil(user.user_hash)))

    def set_memoised_reports(self, row: MemoisedCount) -> None:
        self._rows.set_memoised_reports(row._replace(label=self._veil(row.label)))

    def add_idempotency_records(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows.add_idempotency_records([self._veiled(IdempotencyRecord(*row)) for row in rows])

    def _veiled(self, row: IdempotencyRecord) -> IdempotencyRecord:
        user, key, request = map(self._veil, (row.user_hash, row.key_hash, row.request_digest))
        return row._replace(user_hash=user, key_hash=key, request_digest=request)

    def add_numbered(self, row: Numbered) -> None:
        self._rows.add_numbered(self._each_hash(row, self._veil))

    def add_label(self, label: EntryLabel) -> None:
        self._rows.add_label(EntryLabel(label.entry, self._veil(label.label), self._veil(label.salt)))

    def forget(self, tombstone: Tombstone, cut_off: User | None) -> None:
        self._rows.forget(tombstone._replace(user_hash=self._veil(tombstone.user_hash)), cut_off)

    def batch(self, users: list[bytes]) -> Batch:
        return _UnveiledBatch(self._rows, {self._veil(user): user for user in users})


class _UnveiledBatch:
    """A batch of users, with the mapping between plain and stored hashes."""

    def __init__(self, rows: Rows, users: dict[bytes, bytes]) -> None:
        self._users = dict(sorted(users.items(), key=itemgetter(0)))
        self._veiled = {user: veiled for veiled, user in users.items()}
        self._batch = rows.batch(list(self._users))

    def refuse(self, rooms: Rooms) -> list[bytes]:
        return [self._users[veiled] for veiled in self._batch.refuse(rooms)]

    def unknown(self) -> list[bytes]:
        return [self._users[veiled] for veiled in self._batch.unknown()]

    def stored_macs(self, day: int, windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        for account, user, *row in self._batch.stored_macs(day, windows):
            yield (account, self._users[user], *row)

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        self._batch.open_accounts(first, [self._veiled[user] for user in users], row_macs)

    def charge(self, windows: Iterable[int], cost: Any) -> None:
        self._batch.charge(windows, cost)

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        return self._batch.append(first, common, bound)

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        self._batch.set_macs(day, row_macs)
