"""What a transaction will ask first, asked in the trip that takes its locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..entries import IdempotencyRecord
from .unit import MAC_STATE, OfRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Cursor

    from ..store import Hint
    from .unit import Unit

_ACCOUNTS = OfRows(
    f"SELECT u.partition, u.user_hash, {MAC_STATE} FROM",
    "int4 bytea",
    "AS n(partition, user_hash) JOIN users u ON u.partition = n.partition AND u.user_hash = n.user_hash"
    " LEFT JOIN account_macs s ON s.partition = u.partition AND s.account = u.account"
    " LEFT JOIN window_sums a ON a.partition = u.partition AND a.account = u.account AND a.window_code = ANY(%b::int8[])",
)
_RECORDS = OfRows(
    "SELECT k.partition, k.user_hash, k.key_hash, k.entry, k.number, k.request_digest, k.response, k.row_mac FROM",
    "int4 bytea bytea",
    "AS n(partition, user_hash, key_hash) JOIN idempotency_records k"
    " ON k.partition = n.partition AND k.user_hash = n.user_hash AND k.key_hash = n.key_hash",
)


class Ahead:
    """Accounts of some users in some windows, and answers under their keys, good until something is written."""

    def __init__(self, unit: Unit, hint: Hint) -> None:
        self._windows = hint.windows
        self._users = {(partition, user) for partition, user, _ in hint.needs}
        self._keys = {(partition, user, key) for partition, user, key in hint.needs if key is not None}
        self._asked_accounts: Cursor[Any] | None = None
        self._asked_records: Cursor[Any] | None = None
        if self._windows is not None and self._users:
            self._asked_accounts = unit.ask(_ACCOUNTS, self._users, list(self._windows))
        if self._keys:
            self._asked_records = unit.ask(_RECORDS, self._keys)

    def read(self) -> None:
        """Take in what was asked."""
        self._found_accounts: dict[tuple[int, bytes], list[tuple[Any, ...]]] = {}
        self._found_records: dict[tuple[int, bytes, bytes], IdempotencyRecord] = {}
        for partition, *row in self._asked_accounts or ():
            self._found_accounts.setdefault((partition, row[0]), []).append(tuple(row))
        for partition, *row in self._asked_records or ():
            self._found_records[partition, row[0], row[1]] = IdempotencyRecord._make(row)

    def accounts(
        self, partition: int, users: Sequence[bytes], windows: Sequence[int]
    ) -> list[tuple[Any, ...]] | None:
        """The rows of `Snapshot.accounts`; None where they were not asked for."""
        if self._windows is None or set(windows) != set(self._windows):
            return None
        if any((partition, user) not in self._users for user in users):
            return None
        return [row for user in users for row in self._found_accounts.get((partition, user), ())]

    def idempotency_records(
        self, partition: int, users: Sequence[bytes], keys: Sequence[bytes]
    ) -> list[IdempotencyRecord] | None:
        """What was answered to each user under the key beside it; None where that was not asked for."""
        wanted = [(partition, user, key) for user, key in zip(users, keys, strict=True)]
        if any(each not in self._keys for each in wanted):
            return None
        return [self._found_records[each] for each in wanted if each in self._found_records]
