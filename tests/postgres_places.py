"""Where the tests keep ledgers on a real server, each in a database of its own, see `ledger_contract.Place`."""

from __future__ import annotations

import re

import pytest

from ldp_budget import Accountant
from ledger_places import Now
from postgres_servers import reason_for_none, shared_server

FIRST_TABLES = """
    DROP TABLE notes;
    DROP INDEX reservations;
    ALTER TABLE charges DROP CONSTRAINT charges_lane_fingerprint_guarantee_collection_key;
    ALTER TABLE charges DROP COLUMN collection;
    ALTER TABLE charges ADD UNIQUE (lane, fingerprint, guarantee);
    DROP TABLE records;
    DROP INDEX answers_apart;
    UPDATE meta SET value = '1' WHERE name = 'schema';
"""
"""Makes of the tables of today, where nothing is in the new ones, those of version 1."""

SECOND_TABLES = """
    DROP TABLE records;
    DROP INDEX answers_apart;
    UPDATE meta SET value = '2' WHERE name = 'schema';
"""
"""Likewise those of version 2."""


def new_ledger(lanes: int, version: str | None = None, **more: str) -> str:
    """The address of a database in which no ledger is yet; skips where there is no server, or none of the version."""
    server = shared_server(version)
    if server is None:
        pytest.skip(reason_for_none(version))
    query = "&".join([f"lanes={lanes}", *(f"{name}={value}" for name, value in more.items())])
    url = server.create_database()
    return f"{url}{'&' if '?' in url else '?'}{query}"


class OnServer:
    """A ledger of some lanes."""

    def __init__(self, lanes: int, version: str | None = None) -> None:
        self.version = version
        self.address = new_ledger(lanes, version)

    def open(self, clock: Now) -> Accountant:
        return Accountant(self.address, clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        accountant.close()
        return Accountant(self.address, create=False, clock=clock)

    def remove(self) -> None:
        """Drop the database, whoever is connected."""
        server = shared_server(self.version)
        assert server is not None
        (name,) = re.findall(r"/(test_\w+)", self.address)
        server.run(f"DROP DATABASE {name} WITH (FORCE)")
