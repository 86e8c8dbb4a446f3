"""Cached collections and their inboxes.

A collection never changes, and constructing its mechanism takes long, so collections are cached. A sealed round never
changes either.
"""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from ldp_budget import Collection, NotSupported

from .error_codes import as_json

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection
    from ldp_budget.reports.inbox import Inbox


# -- collections -------------------------------------------------------------------------------------

MOST = 1024


@dataclass(frozen=True)
class CachedCollection:
    """A collection and its public definition; with a client program if its mechanism has one."""

    collection: Collection
    public: dict[str, Any]

    @cached_property
    def public_json(self) -> bytes:
        """The public definition as it is sent: it may have a megabyte, and every device asks for it."""
        return as_json(self.public).encode()

    @cached_property
    def public_gzip(self) -> bytes:
        """The public definition compressed with gzip."""
        return gzip.compress(self.public_json, mtime=0)

    @cached_property
    def plain_json(self) -> bytes:
        """The collection as `collection show --json` prints it."""
        return as_json(self.collection.to_json()).encode()

    @property
    def digest(self) -> str:
        """Digest of the public definition; without a client program, the collection's fingerprint."""
        told: str = self.public.get("digest", self.collection.fingerprint)
        return told


class Collections:
    """Cache of the collections of a ledger."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._held: dict[str, CachedCollection] = {}

    def has(self, name: str) -> bool:
        """True if the collection is cached."""
        return name in self._held

    def get(self, name: str) -> CachedCollection:
        """Return the collection with that name.

        Raises `UnknownName`, and `NotSupported` if its mechanism is not installed here.
        """
        found = self._held.get(name)
        if found is None:
            found = _read(self._accountant, name)
            if len(self._held) >= MOST:
                self._held.clear()
            self._held[name] = found
        return found


def _read(accountant: Accountant, name: str) -> CachedCollection:
    collection = accountant.collection(name)
    try:
        return CachedCollection(collection, collection.definition())
    except NotSupported:
        if collection.client is not None:
            raise  # the collection was agreed on with a different client program
        return CachedCollection(collection, collection.to_json())


# -- inboxes -----------------------------------------------------------------------------------------

_MOST_ROUNDS = 4096


class Inboxes:
    """The inboxes of a ledger's collections, and the numbers of reports in their rounds."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._lock = threading.Lock()
        self._opened: dict[str, Inbox] = {}
        self._counts = lru_cache(maxsize=_MOST_ROUNDS)(self._count)

    def of(self, collection: Collection) -> Inbox:
        """Return the inbox of a collection. Raises as `Inbox`."""
        from ldp_budget.reports.inbox import Inbox

        with self._lock:
            found = self._opened.get(collection.fingerprint)
            if found is None:
                found = self._opened[collection.fingerprint] = Inbox(self._accountant, collection)
            return found

    def count(self, collection: Collection, name: str) -> int:
        """Return the number of reports in a round. Raises `UnknownName`."""
        return self._counts(collection, name)

    def _count(self, collection: Collection, name: str) -> int:
        return self.of(collection).count(name)
