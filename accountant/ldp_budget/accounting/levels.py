"""How much of each limit the accounts of a partition have used, in whole percent: a byte for each account and limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..ledger.reading import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from ..ledger import Reading
    from .limits import Limit

FULL = 100
"""The level of an account that has nothing left."""
_GONE = 255
"""Stands for an account that is nobody's any more."""
_NEIGHBOURS = 4
"""Accounts at most so far apart are read together."""


class Watched(NamedTuple):
    """A limit of the newest version of a policy."""

    policy: str
    limit: Limit


def level(limit: Limit, spent: Sequence[int | None]) -> int:
    """How much of a limit is used, in whole percent rounded down; `FULL` where some amount has nothing left."""
    most_used = 0
    for most, used in zip(limit.capacity, spent, strict=True):
        if most is None:
            continue
        if used is None or used >= most:
            # A limit may admit none of an amount, as of δ; that is no budget that was used up.
            if most or used is None or used > most:
                return FULL
            continue
        most_used = max(most_used, used * FULL // most)
    return most_used


class Levels:
    """The levels of one partition's accounts under some limits, in the windows that were open when it was last asked."""

    def __init__(self, watched: tuple[Watched, ...]) -> None:
        self.watched = watched
        self.accounts = 0
        """How many accounts were read once."""
        self._levels = [bytearray() for _ in watched]
        self._codes: list[int] | None = None
        self.ends: list[datetime | None] = [None] * len(watched)
        """When the window of each limit ends; None of one that never does."""

    def begin(self, reading: Reading) -> bool:
        """Go by the windows of a reading, and say whether any has opened since: nothing is used in it yet."""
        windows = [reading.windows[each.limit.gauge] for each in self.watched]
        codes, self.ends = [window.code for window in windows], [window.ends for window in windows]
        for levels, code, before in zip(self._levels, codes, self._codes or codes, strict=True):
            if code != before:
                levels[:] = levels.translate(_CLEARED)
        opened, self._codes = self._codes not in (None, codes), codes
        return opened

    def read(self, reading: Reading, first: int, last: int, *, erased: bool) -> None:
        """Take over the sums of the accounts `first` to `last`; where some were `erased`, also who that was."""
        if last > self.accounts:
            for levels in self._levels:
                levels.extend(bytes(last - self.accounts))
            self.accounts = last
        for levels in self._levels:
            levels[first - 1 : last] = bytes(last - first + 1)
        self._take(reading.rows.sums(first, last), self._by_window())
        if erased:
            for user in reading.rows.users(first, last):
                if user.user_hash is None:
                    for levels in self._levels:
                        levels[user.account - 1] = _GONE

    def _by_window(self) -> Mapping[int, list[tuple[bytearray, Limit]]]:
        by_window: dict[int, list[tuple[bytearray, Limit]]] = {}
        for levels, code, each in zip(self._levels, self._codes or (), self.watched, strict=True):
            by_window.setdefault(code, []).append((levels, each.limit))
        return by_window

    @staticmethod
    def _take(
        rows: Iterable[tuple[int, int, int | None, int | None, int | None, int | None]],
        by_window: Mapping[int, list[tuple[bytearray, Limit]]],
    ) -> None:
        known: dict[tuple[int, tuple[int | None, ...]], list[tuple[bytearray, int]]] = {}
        for account, window, *spent in rows:
            limits = by_window.get(window)
            if limits is None:
                continue
            # Many users were charged the same.
            same = window, tuple(spent)
            found = known.get(same)
            if found is None:
                found = known[same] = [(levels, level(limit, spent)) for levels, limit in limits]
            for levels, used in found:
                levels[account - 1] = used

    def spread(self) -> list[list[int]]:
        """For each limit, how many accounts have used each whole percent of it, from 0 to `FULL`."""
        return [[levels.count(used) for used in range(FULL + 1)] for levels in self._levels]


_CLEARED = bytes([*[0] * _GONE, _GONE])


def ranges(accounts: Iterable[int]) -> list[tuple[int, int]]:
    """Accounts as ranges from the first to the last of neighbours, each of which may hold a few strangers."""
    found: list[tuple[int, int]] = []
    for account in sorted(accounts):
        if found and account - found[-1][1] <= _NEIGHBOURS:
            found[-1] = found[-1][0], account
        else:
            found.append((account, account))
    return found


def in_parts(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """The accounts `first` to `last` in parts, each for a reading of its own."""
    return [(first - 1 + begin, first - 1 + end) for begin, end in parts(last - first + 1, size)]
