"""A ledger: a store, its clock, and the one way to read and to write it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from .cache import Cache
from .clock import BOUND_SECONDS, Clock
from .groups import GroupCommit
from .reading import Reading
from .transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .clock import Read
    from .groups import Needs
    from .store import Rows, Store

T = TypeVar("T")


class Ledger:
    """What an accountant works on, whatever it is kept in."""

    def __init__(self, store: Store, read_clock: Read, clock_bound: float = BOUND_SECONDS) -> None:
        self._store = store
        self._clock = Clock(read_clock, store.name, clock_bound)
        self._cache = Cache()
        self._group = GroupCommit(store.name, self._transact)
        self.key = store.key

    def run(self, work: Callable[[Transaction], T], needs: Needs | None = None) -> T:
        """Do `work` in a transaction and return its result once that is durable; it may share the transaction.

        `needs` are the user and the key that it will look up, as hashes.
        """
        return self._group.run(work, needs)

    def _transact(self, work: Callable[[Transaction], None]) -> None:
        self._cache = self._store.run(lambda rows: self._in_transaction(rows, work))

    def _in_transaction(self, rows: Rows, work: Callable[[Transaction], None]) -> Cache:
        """What the transaction knows when it ends; an interrupted one leaves no cache behind."""
        cache, self._cache = self._cache, Cache()
        transaction = Transaction(rows, self.key, self._clock, cache)
        work(transaction)
        transaction.finish()
        return transaction.cache

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """One moment of the ledger. No writer waits for it."""
        with self._store.snapshot() as rows:
            yield Reading(rows, self.key, self._clock)

    def clear_log(self) -> None:
        """Let what was deleted be overwritten, as far as nobody reads it just now."""
        self._store.clear_log()

    def close(self) -> None:
        """Close the store."""
        self._store.close()
