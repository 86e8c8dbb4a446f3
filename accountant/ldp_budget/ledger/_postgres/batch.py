"""Many users of one partition charged alike. Their hashes go as arrays: no temporary tables, so poolers and shards do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...guarantees.amounts import LARGEST, Costs
from ..store import NO_SUM
from .unit import AMOUNTS, COUNTED, NEWEST, USERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..store import Rooms
    from .unit import Unit


class PostgresBatch:
    """Distinct users, at least one, as sorted hashes."""

    def __init__(self, unit: Unit, partition: int, users: list[bytes]) -> None:
        self._unit = unit
        self._partition = partition
        self._users = users
        self._accounts: list[int] = []
        self._known: list[bytes] = []
        self._new: list[bytes] = []

    def refuse(self, rooms: Rooms) -> list[bytes]:
        # Each row is looked up by its index. Of plain joins, and of EXISTS, the planner makes a hash of the whole
        # partition, or of all of them where it has not counted their rows yet.
        erased = "(u.account IS NULL AND t.user_hash IS NOT NULL)"
        refused = " OR ".join([erased, *(_over(place, room) for place, (_, room) in enumerate(rooms))])
        joins = [
            _found("u", "account FROM users WHERE partition = %(partition)s AND user_hash = b.user_hash"),
            _found("t", "user_hash FROM tombstones WHERE partition = %(partition)s AND user_hash = b.user_hash"),
        ]
        for place, (window, room) in enumerate(rooms):
            if room is not None:
                where = f"WHERE partition = %(partition)s AND account = u.account AND window_code = {window}"
                joins.append(_found(f"a{place}", f"partition, {AMOUNTS} FROM window_sums {where}"))
        found = self._unit.run(
            f"SELECT b.place, u.account, ({refused})"
            f" FROM unnest(%(users)b::bytea[]) WITH ORDINALITY AS b(user_hash, place) {' '.join(joins)}",
            {"partition": self._partition, "users": self._users},
        ).fetchall()
        known = sorted((account, self._users[place - 1]) for place, account, over in found if account and not over)
        self._accounts, self._known = [account for account, _ in known], [user for _, user in known]
        self._new = sorted(self._users[place - 1] for place, account, over in found if account is None and not over)
        return [self._users[place - 1] for place, _, over in sorted(found) if over]

    def unknown(self) -> list[bytes]:
        return self._new

    def stored_macs(self, day: int, windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        columns, joins = (
            "",
            [_found("s", "day, row_mac FROM account_macs WHERE partition = u.partition AND account = u.account")],
        )
        for place, window in enumerate(windows):
            first, *others = [f"a{place}.{name}" for name in Costs._fields]
            first = f"CASE WHEN a{place}.window_code IS NULL THEN {NO_SUM} WHEN {first} < 0 THEN {NO_SUM - 1} ELSE {first} END"
            columns += f", {first}, {', '.join(others)}"
            where = f"WHERE partition = u.partition AND account = u.account AND window_code = {window:d}"
            joins.append(_found(f"a{place}", f"window_code, {AMOUNTS} FROM window_sums {where}"))
        accounts = "SELECT %s::int4, * FROM unnest(%b::int8[], %b::bytea[])"
        row_mac = f"CASE WHEN s.day = {day:d} AND NOT {COUNTED} THEN s.row_mac END"
        return self._unit.run(
            f"SELECT u.account, u.user_hash, {NEWEST}, {row_mac}{columns}"
            f" FROM ({accounts}) AS u(partition, account, user_hash) {' '.join(joins)}",
            (self._partition, self._accounts, self._known),
        ).fetchall()

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        numbers = range(first, first + len(users))
        self._unit.put(USERS, zip([self._partition] * len(users), numbers, users, row_macs, strict=True))
        self._accounts += numbers

    def charge(self, windows: Iterable[int], cost: Costs) -> None:
        adds = ", ".join(_add(name, amount) for name, amount in zip(Costs._fields, cost, strict=True))
        for window in windows:
            self._unit.write(
                len(self._accounts),
                "INSERT INTO window_sums AS a SELECT %s, account, %s, %s::int8, %s::int8, %s::int8, %s::int8"
                f" FROM unnest(%b::int8[]) AS account ON CONFLICT (partition, account, window_code) DO UPDATE SET {adds}",
                (self._partition, window, *cost, self._accounts),
            )

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        self._unit.write(
            len(self._accounts),
            f"INSERT INTO journal (partition, entry, at, kind, account, priced_mechanism, policy, reports, {AMOUNTS},"
            " has_record, has_note, api_key, sub_limit)"
            " SELECT %s, %s + place, %s, %s, account, %s, %s, 1, %s::int8, %s::int8, %s::int8, %s::int8, 0, %s, %s, %s"
            " FROM unnest(%b::int8[]) WITH ORDINALITY AS t(account, place)",
            (self._partition, first - 1, *common, *bound, self._accounts),
        )
        return self._accounts

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        self._unit.write(
            len(row_macs),
            "INSERT INTO account_macs SELECT %s, account, %s, row_mac FROM unnest(%b::int8[], %b::bytea[]) AS t(account, row_mac)"
            " ON CONFLICT (partition, account) DO UPDATE SET day = excluded.day, row_mac = excluded.row_mac",
            (self._partition, day, self._accounts, row_macs),
        )


def _found(name: str, what: str) -> str:
    """SQL that looks up at most one row for each user."""
    return f"LEFT JOIN LATERAL (SELECT {what} LIMIT 1) AS {name} ON true"


def _over(place: int, room: dict[str, int] | None) -> str:
    """True where a limit has no room. Only integers stand in it."""
    if room is None:
        return "true"
    over = " OR ".join(f"a{place}.{name} IS NULL OR a{place}.{name} > {most}" for name, most in room.items())
    return f"(a{place}.partition IS NOT NULL AND ({over}))"


def _add(name: str, amount: int | None) -> str:
    """SQL that adds an amount to a sum; what grows too large to count is unbounded."""
    if amount is None:
        return f"{name} = NULL"
    return f"{name} = CASE WHEN a.{name} <= {LARGEST - amount} THEN a.{name} + {amount} END"
