"""Collections, read once: they never change, and to make a mechanism anew for each request takes long."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ldp_budget import Collection, NotSupported

if TYPE_CHECKING:
    from ldp_budget import Accountant

MOST = 1024


@dataclass(frozen=True)
class Held:
    """A collection, and what clients are told of it: with a client program, where its mechanism has one."""

    collection: Collection
    public: dict[str, Any]

    @property
    def digest(self) -> str:
        """Names what clients were told: of the public definition, or else the fingerprint."""
        told: str = self.public.get("digest", self.collection.fingerprint)
        return told


class Collections:
    """The collections of a ledger that somebody asked for, the latest ones."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Held] = OrderedDict()

    def has(self, name: str) -> bool:
        """Whether it was read before."""
        return name in self._held

    def get(self, name: str) -> Held:
        """The collection of that name. Raises `UnknownName`; `NotSupported` where its mechanism is missing here."""
        with self._lock:
            held = self._held.get(name)
            if held is not None:
                self._held.move_to_end(name)
                return held
        held = _read(self._accountant, name)
        with self._lock:
            self._held[name] = held
            if len(self._held) > MOST:
                self._held.popitem(last=False)
        return held


def _read(accountant: Accountant, name: str) -> Held:
    collection = accountant.collection(name)
    try:
        return Held(collection, collection.definition())
    except NotSupported:
        if collection.client is not None:
            raise  # it was agreed on with another client than is installed here
        return Held(collection, collection.to_json())
