"""The collections of a ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._checks import check_instance, check_name
from .._json import canonical_json
from ..catalogue.collections import Collection
from ..errors import NameTaken, UnknownName
from .books import Books

if TYPE_CHECKING:
    from ..ledger import Transaction


def add_collection(self: Books, collection: Collection) -> None:
    """Store a collection, with the digest of its public definition where it has a client for any device.

    The same one again is no error.

    Parameters:
        collection: what to store.

    Raises:
        NameTaken: another one has that name.
        InvalidParameter: it is no collection.
    """
    check_instance("collection", collection, Collection, "a collection")
    definition = canonical_json(collection.agreed().to_json())

    def store(transaction: Transaction) -> None:
        stored = transaction.collection(collection.name)
        if stored is None:
            transaction.add_collection(collection.name, collection.fingerprint, definition)
        elif Collection.from_json(json.loads(stored.definition)) != collection:
            raise NameTaken("collection", collection.name, "it exists already, with another definition")

    self._ledger.run(store)


def collection(self: Books, name: str) -> Collection:
    """The collection of that name.

    Parameters:
        name: of the collection.

    Raises:
        UnknownName: there is none of that name.
        NotSupported: its mechanism is missing here.
        InvalidParameter: the name is no text.
    """
    check_name("name", name)
    with self._ledger.reading() as reading:
        stored = reading.collection(name)
        if stored is None:
            raise UnknownName("collection", name, [other.name for other in reading.collections()])
    return replace(Collection.from_json(json.loads(stored.definition)), sandbox=self._ledger.key.sandbox)


def collections(self: Books) -> list[dict[str, Any]]:
    """The definitions of all collections, readable even where a mechanism's plugin is missing.

    Raises:
        Nothing but `LedgerError`.
    """
    with self._ledger.reading() as reading:
        return [json.loads(stored.definition) for stored in reading.collections()]
