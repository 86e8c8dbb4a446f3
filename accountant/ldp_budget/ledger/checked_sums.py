"""Sums of all accounts of a partition, each confirmed by the account's MAC, as a charge confirms them.

Accounts are read in parts, each from a snapshot of its own. Accounts with equal sums share one tuple and one begun
hash, so an account costs one row of a query and one keyed hash of a few bytes. An account that needs more, such as one
with label counts, or one whose MAC does not fit, is read again by `AccountMacs`, which decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import LedgerError
from ..guarantees.fixed_point import ZERO, Costs, costs_of
from .calendar import windows_on
from .hash_chain import counters_mac
from .models import AccountMacState
from .row_macs import AccountMacMaker, AccountMacs, _bound
from .snapshot import parts, sums_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from hashlib import blake2b

    from .snapshot import Reading

T = TypeVar("T")
_TOGETHER = 5_000
_FIRST = 100
_STATE = len(AccountMacState._fields)
_MOST_DISTINCT = 10_000


class Part(NamedTuple):
    """The accounts of one snapshot, from `first` to `last`. A number without sums is of an erased user."""

    reading: Reading
    first: int
    last: int
    gauges: tuple[str, ...]
    """The gauges of the open windows, in the order of the amounts."""
    spent: dict[int, tuple[Costs, ...]]
    """What limits of these gauges count, for each account by its number. Equal tuples are mostly one object."""


def checked_sums(
    open_reading: Callable[[], AbstractContextManager[Reading]], shown: Callable[[Part], T]
) -> Iterator[T]:
    """Yield what `shown` returns for each part of the accounts, in order; no snapshot is held while a caller works.

    Raises `LedgerError` if an account or the number of accounts was changed.
    """
    with open_reading() as reading:
        last = counted_accounts(reading)
    days: tuple[int, ...] = ()
    # The first part is small: it shows of which days the MACs are.
    for first, until in _parts(last):
        with open_reading() as reading:
            part = _Part(reading, days)
            found = shown(part.read(first, until))
            days = part.days
        yield found


def _parts(last: int) -> Iterator[tuple[int, int]]:
    if last:
        yield 1, min(last, _FIRST)
    for first, until in parts(last - _FIRST, _TOGETHER):
        yield first + _FIRST, until + _FIRST


def counted_accounts(reading: Reading) -> int:
    """Return the number of accounts, once the MAC of the counters is checked. Raises `LedgerError`."""
    if counters_mac(reading.secret, reading.end) != reading.counters_mac:
        raise LedgerError(reading.ledger_name, "its counters were changed. Run: ldp-budget ledger verify")
    return reading.end.accounts


class _Part:
    """Reads and checks the accounts of one snapshot; `days` are those of the MACs that were seen before."""

    def __init__(self, reading: Reading, days: Sequence[int]) -> None:
        self._reading = reading
        self._macs = AccountMacs(reading)
        self._maker = AccountMacMaker(reading.secret, reading.partition)
        self._today = reading.moment.day
        self._covered = {day: self._macs.windows_on(day) for day in {self._today, *days}}
        self._sliding = reading.has_sliding_limits
        periods = reading.periods()
        self._names = sorted({each.name for day in self._covered for each in windows_on(periods, day)})
        self._open = tuple((gauge, window.name) for gauge, window in sorted(reading.windows.items()))
        self._begun: dict[tuple[Any, ...], tuple[blake2b, tuple[Costs, ...]] | None] = {}
        self.days = tuple(days)

    def read(self, first: int, last: int) -> Part:
        """Return the accounts from `first` to `last`. Raises `LedgerError`."""
        spent: dict[int, tuple[Costs, ...]] = {}
        others: dict[int, int | None] = {}
        begun, begin = self._begun, self._begin
        for row in self._reading.rows.accounts(range(first, last + 1), self._names, by_number=True):
            user, number, newest, day, row_mac, counted = row[:_STATE]
            key = day, row[_STATE:]
            known = begun[key] if key in begun else begin(key)
            if known is None or counted or self._sliding:
                others[number] = day
                continue
            hasher = known[0].copy()
            hasher.update(_bound(number, newest or 0, user))
            if hasher.digest() == row_mac:
                spent[number] = known[1]
            else:
                others[number] = day
        self._check(others, spent)
        self.days = tuple(sorted({day for day in (*self.days, *others.values()) if day is not None})[-4:])
        self._check_missing(first, last, spent)
        return Part(self._reading, first, last, tuple(gauge for gauge, _ in self._open), spent)

    def _begin(self, key: tuple[Any, ...]) -> tuple[blake2b, tuple[Costs, ...]] | None:
        """Return the begun hash over the sums of a row, and its sums in the open windows; None for `AccountMacs`."""
        if len(self._begun) >= _MOST_DISTINCT:
            self._begun.clear()
        day, flat = key
        self._begun[key] = None
        names = self._covered.get(day)
        if names is None or day > self._today:
            return None
        sums = {each[0]: costs_of(each[1:]) for each in sums_in((None,) * _STATE + flat) if each[0] is not None}
        if any(costs != ZERO for name, costs in sums.items() if name not in names):
            return None  # dated after the newest charge: the clock was repaired, or the row was changed
        covered = tuple((name, *costs) for name, costs in sums.items() if name in names)
        found = (
            self._maker.begin(day, covered, {}),
            tuple(Costs._make(sums.get(name, ZERO)) for _, name in self._open),
        )
        self._begun[key] = found
        return found

    def _check(self, others: dict[int, int | None], spent: dict[int, tuple[Costs, ...]]) -> None:
        """Check the other accounts by themselves."""
        self._macs.check(others)
        for number in others:
            if number not in self._macs:
                raise self._changed(number)
            totals = self._macs.accounts[number].totals(self._reading.windows)
            spent[number] = tuple(totals[gauge] for gauge, _ in self._open)

    def _check_missing(self, first: int, last: int, spent: dict[int, tuple[Costs, ...]]) -> None:
        """Check that the numbers without sums are accounts of erased users; every number that was given has a row."""
        if len(spent) > last - first:
            return
        users = {each.account: each for each in self._reading.rows.users(first, last)}
        for number in range(first, last + 1):
            if number in spent:
                continue
            user = users.get(number)
            if user is None or user.user_hash is not None:
                raise self._changed(number)
            if self._reading.secret.row_mac(number, None) != user.row_mac:
                raise self._changed(number)

    def _changed(self, number: int) -> LedgerError:
        why = f"the row of account {number} was changed. Run: ldp-budget ledger verify"
        return LedgerError(self._reading.ledger_name, why)
