"""Stores the collections of a ledger and looks them up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from .._validation import check_instance, check_name
from ..errors import NameTaken, UnknownName
from ..registry.collections import Collection

if TYPE_CHECKING:
    from ..ledger import Ledger, Transaction

_NEW_NAME = "Choose another name, because reports of the existing definition cannot be mixed with others."


def add_collection(ledger: Ledger, collection: Collection) -> None:
    """Store a collection, with the digest of its public definition if its client runs on any device."""
    check_instance("collection", collection, Collection, "a `Collection`")
    definition = canonical_json(collection.agreed().to_json())

    def store(transaction: Transaction) -> None:
        stored = transaction.collection(collection.name)
        if stored is None:
            transaction.add_collection(collection.name, collection.fingerprint, definition)
        elif Collection.from_json(json.loads(stored.definition)) != collection:
            raise NameTaken(
                "collection", collection.name, "exists with another definition. Nothing was changed.", hint=_NEW_NAME
            )

    ledger.run(store)


def collection(ledger: Ledger, name: str) -> Collection:
    """Return the collection with this name. Raises `UnknownName`."""
    check_name("name", name)
    with ledger.reading() as reading:
        stored = reading.collection(name)
        if stored is None:
            raise UnknownName("collection", name, [other.name for other in reading.collections()])
    return replace(Collection.from_json(json.loads(stored.definition)), sandbox=ledger.key.sandbox)


def collections(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the definitions of all collections, readable even if a mechanism's plugin is not installed."""
    with ledger.reading() as reading:
        return [json.loads(stored.definition) for stored in reading.collections()]
