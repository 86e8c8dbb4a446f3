"""Idempotency keys of the requests in flight, so that a retry does not wait behind the first try."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from .error_codes import ServiceError


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
                raise ServiceError(
                    "in-flight",
                    "another request with this idempotency key is in progress. Try again in a moment, with the same key.",
                    {"Retry-After": "1"},
                )
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(key)
