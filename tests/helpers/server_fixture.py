"""A ledger on PostgreSQL as bytes: the rows of each of its tables, as COPY writes them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import psycopg

from ldp_budget._files import create_private
from ldp_budget_postgres import schema
from ldp_budget_postgres.store import key_file_path
from postgres_places import new_ledger

_TABLES = ("meta", *schema.PARTITIONED)


def new_place() -> str:
    """The address of a new ledger of four partitions."""
    return new_ledger(4)


def dump(url: str) -> tuple[dict[str, int], bytes]:
    """Return the number of rows of each table, and all rows."""
    with psycopg.connect(url.partition("?")[0]) as connection:
        rows = {table: _rows(connection, table) for table in _TABLES}
    content = b"".join(each for table, lines in rows.items() for each in (f"-- {table}\n".encode(), *lines))
    return {table: len(lines) for table, lines in rows.items()}, content


def _rows(connection: psycopg.Connection[Any], table: str) -> list[bytes]:
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:  # type: ignore[call-overload, unused-ignore]
        return [bytes(each) for each in copy]


def load(release: Path, secret: bytes, create: tuple[str, ...] = schema.TABLES) -> str:
    """Load the ledger of a release into a new database; return its URL. `create` makes the tables of its version."""
    url = new_place()
    parts: dict[str, list[bytes]] = {}
    for line in gzip.decompress((release / "server.rows.gz").read_bytes()).splitlines(keepends=True):
        if line.startswith(b"-- "):
            rows = parts[line[3:].decode().strip()] = []
        else:
            rows.append(line)
    with psycopg.connect(url.partition("?")[0]) as connection:
        for statement in create:
            connection.execute(statement)  # type: ignore[call-overload, unused-ignore]
        for table, rows in parts.items():
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:  # type: ignore[call-overload, unused-ignore]
                copy.write(b"".join(rows))
        name: Any = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    key = key_file_path(bytes(name[0]).decode())
    key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_private(key, secret)
    return url
