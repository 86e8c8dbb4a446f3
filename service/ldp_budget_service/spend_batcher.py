"""The counter where spends are taken to the ledger: all that wait are charged together, in one wait for the disk.

A thread for each request would be woken, and wake the event loop, for each of them; and of many threads that compute
each keeps the event loop from answering. Here one takes what has come meanwhile to the ledger, and brings all of the
answers back at once. A second one gathers the next, and what it brings is taken into a transaction that still runs.

Which requests are being worked on just now, so that a retry does not wait behind the first try.
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
"""As many as a transaction of the ledger takes."""

Told = tuple["Receipt", str]
"""A receipt, and how far the journal was."""


class _Asked(NamedTuple):
    accountant: Accountant
    spend: Spend
    answer: asyncio.Future[Told]


class SpendBatcher:
    """Charges what requests of any event loop ask for. Its threads are begun with the first.

    Besides they see to it that no request has to wait for the keys to be read anew, as long as there are any.
    """

    def __init__(self, accountant: Accountant, keys: ApiKeys) -> None:
        self._accountant, self._keys = accountant, keys
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._clerks: list[threading.Thread] = []

    async def spend(self, accountant: Accountant, spend: Spend) -> Told:
        """What `Accountant.spend` returns or raises, and where the journal was after that.

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
        """End the threads, when they have done what was asked."""
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
                    self._asked.put(None)  # for whoever asks next
                    break
                together.append(another)
            by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Told], Told | Exception]]] = {}
            for each in self._charge(together):
                by_loop.setdefault(each[0].get_loop(), []).append(each)
            for loop, told in by_loop.items():
                with suppress(RuntimeError):  # nobody is there to be told any more
                    loop.call_soon_threadsafe(_tell, told)
            with suppress(LdpBudgetError):  # whoever asks for a key then hears of it
                self._keys.refresh_if_stale()

    def _charge(self, together: list[_Asked]) -> list[tuple[asyncio.Future[Told], Told | Exception]]:
        """What came of each."""
        try:
            told = spend_group([(each.accountant, each.spend) for each in together])
        except Exception as error:  # nobody else would hear of it
            return [(each.answer, error) for each in together]
        granted = {place: receipt for place, receipt in enumerate(told) if not isinstance(receipt, LdpBudgetError)}
        try:
            positions = self._accountant.positions([together[place].spend.user for place in granted])
        except LdpBudgetError as error:  # it is charged, and cannot be told
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
            continue  # the request was given up
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)


class InFlight:
    """The keys of requests under way in this process. Between processes the ledger itself lets one go first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[Hashable] = set()

    @contextmanager
    def only(self, *key: Hashable) -> Iterator[None]:
        """Work under a key that nobody else works under; raises `in-flight` where somebody does."""
        with self._lock:
            if key in self._keys:
                raise ServiceError("in-flight", "a request with this key is being answered", {"Retry-After": "1"})
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(key)
