"""What the records of a ledger add up to, worked out as far as they go and remembered until there are more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ..errors import RecordConflict
from .budget_client import BudgetClient

if TYPE_CHECKING:
    from .admin_log import Record

S = TypeVar("S")

FRESH_SECONDS = 1.0
"""How old what is known may be before the ledger is asked for newer records."""
_MOST_ATTEMPTS = 100


class RecordLog(BudgetClient, Protocol):
    """A `BudgetClient` that also adds records of the library's own kinds, as `Accountant` and the HTTP client do."""

    def _record_own(
        self, kind: str, name: str, body: dict[str, Any], *, expected: int, remote: bool = False
    ) -> Record:
        """Add a record of one of the library's own kinds; `remote`: for another machine."""


class Projection(Generic[S]):
    """A state that is a pure fold over the records of a ledger.

    `known` costs no look at the ledger while that is at most `fresh` seconds ago and nobody has added a record
    through the same accountant since; else one statement by the index of the records. So what another process adds
    is known here after `fresh` seconds at the latest, and what this one adds at once. `add(state, record)` returns
    the state that follows; it must leave the one before as it is, for others may be reading that.
    """

    def __init__(
        self, accountant: RecordLog, empty: S, add: Callable[[S, Record], S], *, fresh: float = FRESH_SECONDS
    ) -> None:
        self._accountant = accountant
        self._add = add
        self._fresh = fresh
        self._lock = threading.Lock()
        # What is known, the number of the newest record in it, and when the ledger was asked last.
        self._held: tuple[S, int, float] = empty, 0, float("-inf")

    def known(self) -> S:
        """The state as it was `fresh` seconds ago, or later."""
        state, newest, asked = self._held
        if newest >= self._accountant.newest_record and time.monotonic() - asked <= self._fresh:
            return state
        return self.now()[0]

    def is_fresh(self) -> bool:
        """Whether what is known will do for a moment, so that `known` does not look at the ledger."""
        return self._is_known(0.9)

    def refresh_if_stale(self) -> None:
        """Look at the ledger if somebody who asks soon would have to."""
        if not self._is_known(0.5):
            self.now()

    def _is_known(self, part: float) -> bool:
        """Whether what is known was looked at within a part of the time for which that will do."""
        _, newest, asked = self._held
        return newest >= self._accountant.newest_record and time.monotonic() - asked <= self._fresh * part

    def now(self) -> tuple[S, int]:
        """The state as it is now, and the number of the newest record in it."""
        with self._lock:
            asked = time.monotonic()
            state, newest, _ = self._held
            for record in self._accountant.records(newest + 1):
                state, newest = self._add(state, record), record.number
            self._held = state, newest, asked
            return state, newest

    def append(self, decide: Callable[[S], tuple[str, str, dict[str, Any]]]) -> Record:
        """Add the record that `decide` makes of the state, its kind, name and body, or raise what it raises.

        Where somebody else adds one meanwhile it is asked again. Raises `RecordConflict` where that never ends.
        """
        for _ in range(_MOST_ATTEMPTS):
            state, newest = self.now()
            kind, name, body = decide(state)
            try:
                return self._accountant._record_own(kind, name, body, expected=newest)
            except RecordConflict as error:
                conflict = error
        raise conflict
