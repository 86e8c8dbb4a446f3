"""Short cache of the usage statistics: however many requests ask, the ledger aggregates its rows once in a while."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ldp_budget import Accountant

REST = 10
"""A result is reused for at least this many times as long as it took. So statistics take a tenth of a core at most.

Not with 0 seconds: then each request computes its own result.
"""
KEPT_SECONDS = 600
"""Time for which an outdated result is kept for a caller that does not wait."""

_Key = tuple[str, tuple[Any, ...]]


class Computed(NamedTuple):
    """A result, the position of the journal that it includes, and the time until which it is reused."""

    value: Any
    position: str
    until: float


class UsageCache:
    """The methods of an `Overview`, computed one at a time, each result reused for `seconds` or longer; 0: never reused."""

    def __init__(self, accountant: Accountant, seconds: float) -> None:
        self._accountant, self._overview = accountant, accountant.ledger.overview()
        self._seconds = seconds
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._held: dict[_Key, Computed] = {}
        self._running: dict[_Key, Future[Computed]] = {}

    def get(self, name: str, *given: Any, patience: float | None = None) -> Computed:
        """Return the result of a method.

        After `patience` seconds return an older result if there is one; otherwise raise `TimeoutError`.
        """
        key = name, given
        with self._lock:
            held = self._held.get(key)
            if held is not None and time.monotonic() < held.until:
                return held
            running = self._running.get(key)
            if running is None:
                running = self._running[key] = Future()
                # A daemon: the end of the process does not wait for it.
                threading.Thread(target=self._run, args=(key, running), name="usage", daemon=True).start()
        try:
            return running.result(patience)
        except TimeoutError:
            if held is None:
                raise
            return held

    def _run(self, key: _Key, running: Future[Computed]) -> None:
        with self._turn:
            try:
                try:
                    computed = self._compute(*key)
                finally:
                    with self._lock:
                        del self._running[key]
            except BaseException as error:
                running.set_exception(error)
            else:
                running.set_result(computed)

    def _compute(self, name: str, given: tuple[Any, ...]) -> Computed:
        begun, position = time.monotonic(), self._accountant.position()
        value = getattr(self._overview, name)(*given)
        now = time.monotonic()
        reused = max(self._seconds, REST * (now - begun)) if self._seconds else 0
        computed = Computed(value, position, now + reused)
        with self._lock:
            self._held = {key: held for key, held in self._held.items() if held.until > now - KEPT_SECONDS}
            self._held[name, given] = computed
        return computed
