"""How often somebody may ask: so many a second in the long run, and some more at once."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable

from ..kinds import ServiceError

MOST_KNOWN = 50_000
"""How many callers are remembered at a time."""


class Rate:
    """A rate for each of many callers (the generic cell rate algorithm).

    Of a caller one moment is kept: when everything that they asked for would have been asked for at the even rate.
    They may be `burst` requests ahead of that. Whoever is not ahead is as good as unknown, and forgotten when there
    are too many; if that is not enough, so are those who are the least ahead.

    Parameters:
        rate: requests a second; 0: any number.
        burst: how many more at once.
        clock: seconds on a clock that nobody sets.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._between = 1 / rate if rate else 0.0
        self._ahead = burst * self._between
        self._clock = clock
        self._even: dict[Hashable, float] = {}
        self._lock = threading.Lock()

    def take(self, caller: Hashable) -> float:
        """Ask once. 0.0 if the caller may; or else in how many seconds they may, and then this counts as nothing."""
        if not self._between:
            return 0.0
        with self._lock:
            now = self._clock()
            even = max(self._even.get(caller, now), now)
            if even - now > self._ahead:
                return even - now - self._ahead
            if len(self._even) >= MOST_KNOWN and caller not in self._even:
                self._forget(now)
            self._even[caller] = even + self._between
            return 0.0

    def wait(self, caller: Hashable) -> float:
        """In how many seconds the caller may ask again."""
        ahead = self._even.get(caller)
        return 0.0 if ahead is None else max(0.0, ahead - self._clock() - self._ahead)

    def check(self, caller: Hashable) -> None:
        """Ask once. Raises `ServiceError` if the caller may not."""
        wait = self.take(caller)
        if wait:
            raise too_many(wait)

    def _forget(self, now: float) -> None:
        ahead = {caller: even for caller, even in self._even.items() if even > now}
        if len(ahead) > MOST_KNOWN // 2:
            ahead = dict(sorted(ahead.items(), key=lambda item: item[1])[len(ahead) // 2 :])
        self._even = ahead


def too_many(wait: float) -> ServiceError:
    """What is answered to whoever asks too often."""
    seconds = str(math.ceil(wait))
    return ServiceError("too-many-requests", f"ask again in {seconds} s", {"Retry-After": seconds})
