"""Which requests are being worked on just now, so that a retry does not wait behind the first try."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from .kinds import ServiceError


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
