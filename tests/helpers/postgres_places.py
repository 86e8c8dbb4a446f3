"""The places of the tests' ledgers on a real server, each in its own database, see `contract.places.Place`."""

from __future__ import annotations

import atexit
import functools
import re
import uuid
from collections.abc import Sequence

import pytest

from contract.places import Now
from ldp_budget import Accountant
from ldp_budget._files import create_private
from ldp_budget_postgres import pool, store
from ldp_budget_postgres.schema import PARTITIONED
from postgres_servers import in_this_process, reason_for_none, shared_server


def new_ledger(partitions: int, version: str | None = None, **more: str) -> str:
    """The address of a database in which no ledger is yet; skips where there is no server, or none of the version."""
    server = shared_server(version)
    if server is None:
        pytest.skip(reason_for_none(version))
    query = "&".join([f"partitions={partitions}", *(f"{name}={value}" for name, value in more.items())])
    url = server.create_database()
    return f"{url}{'&' if '?' in url else '?'}{query}"


class OnServer:
    """A new ledger of some partitions, in a database of its own."""

    def __init__(self, partitions: int, version: str | None = None) -> None:
        self.version = version
        self.address = new_ledger(partitions, version)

    def open(self, clock: Now) -> Accountant:
        return Accountant(self.address, clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        accountant.close()
        return Accountant(self.address, create=False, clock=clock)

    def remove(self) -> None:
        """Drop the database, with all its connections."""
        server = shared_server(self.version)
        assert server is not None
        (name,) = re.findall(r"/(test_\w+)", self.address)
        server.run(f"DROP DATABASE {name} WITH (FORCE)")


class Emptied(OnServer):
    """A ledger of some partitions as it was when it was made: of a process all of as many are one, emptied each time.

    To make a database and the tables takes longer than what most tests do there. The key is put where it lies now.
    """

    def __init__(self, partitions: int, version: str | None = None) -> None:
        self.version = version
        self._empty = _empty_ledger(partitions, version)
        self.address = self._empty.address
        self._empty.restore()

    def remove(self) -> None:
        """The next one wants it."""


_FILLED = ("meta", "partitions", "periods")
"""The tables in which something stands from the beginning."""


class Empty:
    """A ledger, and its reset to what it is now; `by` is a URL of a role that may reset it.

    `filled` are the tables that have rows now: those of a new ledger, if nothing else is said.
    """

    def __init__(self, ledger: str, by: str | None = None, filled: Sequence[str] = _FILLED) -> None:
        import psycopg

        self.address, self._filled = ledger, filled
        self.connection = psycopg.connect(by or pool.read(ledger).connect, autocommit=True)
        atexit.register(in_this_process(self.connection.close))
        self._kept = f"kept_{uuid.uuid4().hex}"
        kept = [f"CREATE TABLE {self._kept}.{table} AS TABLE {table}" for table in filled]
        self._run(f"CREATE SCHEMA {self._kept}", *kept)
        rows = self.connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchall()
        self._identity = str(rows[0][0], "ascii")
        self._key = store.key_file_path(self._identity).read_bytes()

    def restore(self) -> None:
        """After any use, also by a test that failed and left its sessions."""
        self._run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
            *(f"DELETE FROM {table}" for table in ("meta", *PARTITIONED)),
            *(f"INSERT INTO {table} TABLE {self._kept}.{table}" for table in self._filled),
        )
        file = store.key_file_path(self._identity)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        create_private(file, self._key)

    def _run(self, *statements: str) -> None:
        self.connection.execute("; ".join(statements))  # type: ignore[call-overload, unused-ignore]


@functools.cache
def _empty_ledger(partitions: int, version: str | None) -> Empty:
    ledger = new_ledger(partitions, version)
    Accountant(ledger).close()
    return Empty(ledger)
