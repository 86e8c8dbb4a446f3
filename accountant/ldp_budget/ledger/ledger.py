"""A ledger: a store, its clock, and the one way to read and to write it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..errors import LedgerError
from .cache import Cache
from .clock import BOUND_SECONDS, Clock
from .groups import GroupCommit
from .reading import Reading
from .transaction import Transaction

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from .clock import Read
    from .entries import End
    from .groups import Needs
    from .store import Rows, Store

T = TypeVar("T")


class Ledger:
    """What an accountant works on, whatever it is kept in."""

    def __init__(self, store: Store, read_clock: Read, clock_bound: float = BOUND_SECONDS) -> None:
        self._store = store
        self._clock = Clock(read_clock, store.name, clock_bound)
        self._cache = Cache()
        # Where the journal ended when it was last told to anybody here; it can only have grown.
        self._told: End | None = None
        self._group = GroupCommit(store.name, self._transact)
        self.key = store.key

    def run(self, work: Callable[[Transaction], T], needs: Needs | None = None) -> T:
        """Do `work` in a transaction and return its result once that is durable; it may share the transaction.

        `needs` are the user and the key that it will look up, as hashes.
        """
        return self._group.run(work, needs)

    def _transact(self, work: Callable[[Transaction], None]) -> None:
        cache = self._store.run(lambda rows: self._in_transaction(rows, work))
        self._cache, self._told = cache, cache.end

    def _in_transaction(self, rows: Rows, work: Callable[[Transaction], None]) -> Cache:
        """What the transaction knows when it ends; an interrupted one leaves no cache behind."""
        cache, self._cache = self._cache, Cache()
        transaction = Transaction(rows, self.key, self._clock, cache)
        self._check_past(transaction, self._told, "; nothing was charged")
        work(transaction)
        transaction.finish()
        return transaction.cache

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """One moment of the ledger. No writer waits for it."""
        told = self._told
        with self._store.snapshot() as rows:
            reading = Reading(rows, self.key, self._clock)
            self._check_past(reading, told)
            yield reading

    def _check_past(self, reading: Reading, told: End | None, then: str = "") -> None:
        """Refuse a ledger without what this process was told: an older copy, or one that has lost its log."""
        if told is None or reading.end == told:
            return
        if not _goes_on(reading, told):
            why = f"it has gone back: this process was told of {told.entries} entries which it does not have any more"
            raise LedgerError(self._store.name, why + then)

    def clear_log(self) -> None:
        """Let what was deleted be overwritten. Raises `LedgerError` where somebody who reads it keeps that off."""
        if not self._store.clear_log():
            why = (
                "what was deleted is gone from the ledger and still stands in its log, for somebody reads it; "
                "do the same again when they are through"
            )
            raise LedgerError(self._store.name, why)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger, as it is at one moment, and its key to a place where there is nothing yet."""
        self._store.backup(path)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _goes_on(reading: Reading, told: End) -> bool:
    """Whether a journal goes on from an earlier end."""
    end = reading.end
    if end.entries < told.entries or any(now < then for now, then in zip(end.counters, told.counters, strict=True)):
        return False
    links = [link for _, link in reading.rows.entries(told.entries, told.entries)]
    return links == [told.link] or not told.entries
