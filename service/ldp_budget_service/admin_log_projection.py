"""Cached projection (fold) over the administrative log of a ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ldp_budget.accounting.budget_client import BudgetClient
from ldp_budget.errors import RecordConflict

if TYPE_CHECKING:
    from ldp_budget.accounting.admin_log import Record

S = TypeVar("S")

FRESH_SECONDS = 0.5
"""Maximum age of a cached state before the ledger is queried for newer records.

A service takes about as long to charge a part of a batch, and a revoked API key must end within a second.
"""
_MOST_ATTEMPTS = 100


class RecordLog(BudgetClient, Protocol):
    """A `BudgetClient` that also adds records of the library's own kinds, like `Accountant` and the HTTP client."""

    def _record_own(
        self, kind: str, name: str, body: dict[str, Any], *, expected: int, remote: bool = False
    ) -> Record:
        """Add a record of one of the library's own kinds; `remote`: on behalf of another machine."""


class Projection(Generic[S]):
    """A state that is a pure fold over the records of a ledger.

    `known` does not query the ledger if the last query is at most `fresh` seconds old and no record was added
    through the same accountant since. Otherwise it runs one statement on the index of the records. So a record of
    another process is known here after `fresh` seconds at the latest, and a record of this process at once.
    `add(state, record)` returns the next state. It must not change the state before, because other threads may be
    reading it.
    """

    def __init__(
        self, accountant: RecordLog, empty: S, add: Callable[[S, Record], S], *, fresh: float = FRESH_SECONDS
    ) -> None:
        self._accountant = accountant
        self._add = add
        self._fresh = fresh
        self._lock = threading.Lock()
        # The cached state, the number of its newest record, and the time of the last query.
        self._held: tuple[S, int, float] = empty, 0, float("-inf")

    def known(self) -> S:
        """The state as it was at most `fresh` seconds ago."""
        state, newest, asked = self._held
        if newest >= self._accountant.newest_record and time.monotonic() - asked <= self._fresh:
            return state
        return self.now()[0]

    def last_known(self) -> S:
        """The state at the last query, however long ago that was. It needs no ledger."""
        return self._held[0]

    def is_fresh(self) -> bool:
        """True if the cached state will be valid for a moment longer, so that `known` does not query the ledger."""
        return self._is_known(0.9)

    def refresh_if_stale(self) -> None:
        """Query the ledger now if a caller would soon have to."""
        if not self._is_known(0.5):
            self.now()

    def _is_known(self, part: float) -> bool:
        """True if the cached state is younger than this fraction of its validity."""
        _, newest, asked = self._held
        return newest >= self._accountant.newest_record and time.monotonic() - asked <= self._fresh * part

    def now(self) -> tuple[S, int]:
        """The present state, and the number of its newest record."""
        with self._lock:
            asked = time.monotonic()
            state, newest, _ = self._held
            for record in self._accountant.records(newest + 1):
                state, newest = self._add(state, record), record.number
            self._held = state, newest, asked
            return state, newest

    def append(self, decide: Callable[[S], tuple[str, str, dict[str, Any]]]) -> Record:
        """Add the record that `decide` makes of the state: its kind, name and body.

        Errors of `decide` are passed on.

        If another writer adds a record in the meantime, `decide` is called again. Raises `RecordConflict` after too
        many attempts.
        """
        for _ in range(_MOST_ATTEMPTS):
            state, newest = self.now()
            kind, name, body = decide(state)
            try:
                return self._accountant._record_own(kind, name, body, expected=newest)
            except RecordConflict as error:
                conflict = error
        raise conflict
