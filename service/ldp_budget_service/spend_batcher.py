"""Batches concurrent spends into one ledger transaction, with one wait for the disk.

With one thread per request, each request would wake a thread, and each thread would wake the event loop. Many
computing threads would also keep the event loop from responding. Here one thread takes all waiting spends to the
ledger and returns all results at once. A second thread gathers the next batch. Its spends can join a transaction that
is still running.

`InFlight` tracks the requests in progress, so that a retry does not wait behind the first try.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from ldp_budget import LdpBudgetError, LedgerError
from ldp_budget.accounting.accountant import spend_group
from ldp_budget.accounting.batch_run import Spend

from .error_codes import ServiceError

if TYPE_CHECKING:
    from ldp_budget import Accountant
    from ldp_budget.accounting.api_keys import ApiKeys
    from ldp_budget.accounting.receipts import Receipt


CLERKS = 2
MOST_TOGETHER = 256
"""Maximum number of spends in a ledger transaction."""

Told = tuple["Receipt", str]
"""A receipt and the journal's position."""


class _Asked(NamedTuple):
    accountant: Accountant
    spend: Spend
    answer: asyncio.Future[Told]


class SpendBatcher:
    """Charges the spends of requests from any event loop. Its threads start with the first spend.

    The threads also refresh the cached API keys, so that requests need not wait for a refresh while spends arrive.
    """

    def __init__(self, accountant: Accountant, keys: ApiKeys) -> None:
        self._accountant, self._keys = accountant, keys
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._clerks: list[threading.Thread] = []

    async def spend(self, accountant: Accountant, spend: Spend) -> Told:
        """Return the receipt of `Accountant.spend`, or raise its error, with the journal's position afterwards.

        `accountant` acts for the caller.
        """
        if not self._clerks:
            self._begin()
        answer: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._asked.put(_Asked(accountant, spend, answer))
        return await answer

    def _begin(self) -> None:
        for _ in range(CLERKS):
            clerk = threading.Thread(target=self._serve, name="ldp-budget counter", daemon=True)
            self._clerks.append(clerk)
            clerk.start()

    def close(self) -> None:
        """Stop the threads after they have finished all queued spends."""
        clerks, self._clerks = self._clerks, []
        for _ in clerks:
            self._asked.put(None)
        for clerk in clerks:
            clerk.join()

    # -- in a thread --------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while (first := self._asked.get()) is not None:
            together = [first]
            while len(together) < MOST_TOGETHER:
                try:
                    another = self._asked.get_nowait()
                except Empty:
                    break
                if another is None:
                    self._asked.put(None)  # stops the next thread, too
                    break
                together.append(another)
            by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Told], Told | Exception]]] = {}
            for each in self._charge(together):
                by_loop.setdefault(each[0].get_loop(), []).append(each)
            for loop, told in by_loop.items():
                with suppress(RuntimeError):  # the event loop is closed
                    loop.call_soon_threadsafe(_tell, told)
            with suppress(LdpBudgetError):  # the next request that needs a key gets this error
                self._keys.refresh_if_stale()

    def _charge(self, together: list[_Asked]) -> list[tuple[asyncio.Future[Told], Told | Exception]]:
        """Return the result of each spend."""
        try:
            told = spend_group([(each.accountant, each.spend) for each in together])
        except Exception as error:  # otherwise the requests would wait forever
            return [(each.answer, error) for each in together]
        granted = {place: receipt for place, receipt in enumerate(told) if not isinstance(receipt, LdpBudgetError)}
        try:
            positions = self._accountant.positions([together[place].spend.user for place in granted])
        except LdpBudgetError as error:  # charged, but the position is unreadable
            unknown = LedgerError(self._accountant.name, str(error), unknown=True)
            return [(each.answer, unknown) for each in together]
        at = dict(zip(granted, positions, strict=True))
        return [
            (each.answer, receipt if isinstance(receipt, LdpBudgetError) else (receipt, at[place]))
            for place, (each, receipt) in enumerate(zip(together, told, strict=True))
        ]


def _tell(told: list[tuple[asyncio.Future[Told], Told | Exception]]) -> None:
    for answer, result in told:
        if answer.done():
            continue  # the request was canceled
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)


class InFlight:
    """Idempotency keys of the requests in flight in this process. Across processes the ledger serializes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[Hashable] = set()

    @contextmanager
    def only(self, *key: Hashable) -> Iterator[None]:
        """Hold a key during a request. Raises `in-flight` if another request holds it."""
        with self._lock:
            if key in self._keys:
                raise ServiceError("in-flight", "a request with this key is being answered", {"Retry-After": "1"})
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(key)
