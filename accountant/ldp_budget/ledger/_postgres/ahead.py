"""What a transaction will ask first, asked in the trip that takes its locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..entries import StoredAnswer
from .unit import SEALED, OfRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Cursor

    from ..store import Hint
    from .unit import Unit

_ACCOUNTS = OfRows(
    f"SELECT u.lane, u.hash, {SEALED} FROM",
    "int4 bytea",
    "AS n(lane, hash) JOIN users u ON u.lane = n.lane AND u.hash = n.hash"
    " LEFT JOIN seals s ON s.lane = u.lane AND s.account = u.account"
    " LEFT JOIN accounts a ON a.lane = u.lane AND a.account = u.account AND a.slot = ANY(%b::int8[])",
)
_ANSWERS = OfRows(
    "SELECT k.lane, k.owner, k.key, k.place, k.request, k.answer, k.seal FROM",
    "int4 bytea bytea",
    "AS n(lane, owner, key) JOIN keys k ON k.lane = n.lane AND k.owner = n.owner AND k.key = n.key",
)


class Ahead:
    """Accounts of some users in some windows, and answers under their keys, good until something is written."""

    def __init__(self, unit: Unit, hint: Hint) -> None:
        self._windows = hint.windows
        self._users = {(lane, user) for lane, user, _ in hint.needs}
        self._keys = {(lane, user, key) for lane, user, key in hint.needs if key is not None}
        self._asked_accounts: Cursor[Any] | None = None
        self._asked_answers: Cursor[Any] | None = None
        if self._windows is not None and self._users:
            self._asked_accounts = unit.ask(_ACCOUNTS, self._users, list(self._windows))
        if self._keys:
            self._asked_answers = unit.ask(_ANSWERS, self._keys)

    def read(self) -> None:
        """Take in what was asked."""
        self._found_accounts: dict[tuple[int, bytes], list[tuple[Any, ...]]] = {}
        self._found_answers: dict[tuple[int, bytes, bytes], StoredAnswer] = {}
        for lane, *row in self._asked_accounts or ():
            self._found_accounts.setdefault((lane, row[0]), []).append(tuple(row))
        for lane, *row in self._asked_answers or ():
            self._found_answers[lane, row[0], row[1]] = StoredAnswer._make(row)

    def accounts(self, lane: int, users: Sequence[bytes], windows: Sequence[int]) -> list[tuple[Any, ...]] | None:
        """The rows of `Snapshot.accounts`; None where they were not asked for."""
        if self._windows is None or set(windows) != set(self._windows):
            return None
        if any((lane, user) not in self._users for user in users):
            return None
        return [row for user in users for row in self._found_accounts.get((lane, user), ())]

    def answers(self, lane: int, users: Sequence[bytes], keys: Sequence[bytes]) -> list[StoredAnswer] | None:
        """What was answered to each user under the key beside it; None where that was not asked for."""
        wanted = [(lane, user, key) for user, key in zip(users, keys, strict=True)]
        if any(each not in self._keys for each in wanted):
            return None
        return [self._found_answers[each] for each in wanted if each in self._found_answers]
