"""A ledger on PostgreSQL as files, so that later versions can load what a release wrote.

    python tests/helpers/server_fixture.py FOLDER

writes the ledger of `format_story` on a server of its own: `server.sql.gz` with the rows of each table, `server.key`
and `server.json` with what it was. Run it once, when the format of a release is final: tests load each such folder of
`tests/data/formats`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import psycopg

import format_story
from ldp_budget import Accountant
from ldp_budget_postgres import schema
from ldp_budget_postgres.store import key_file_path
from postgres_places import new_ledger

PARTITIONS = 4
_TABLES = ("meta", *schema.PARTITIONED)


def write(target: Path) -> dict[str, Any]:
    """Write the ledger of the story; return what it was."""
    url, clock = new_ledger(PARTITIONS), format_story.Time()
    with Accountant(url, clock=clock) as accountant:
        about = format_story.ledger(accountant, clock)
        found = accountant.verify()
        assert found.ok, found.problems
        about |= {
            "head": found.head,
            "entries": found.entries,
            "tables": schema.SCHEMA_VERSION,
            "at": clock().timestamp(),
        }
    with psycopg.connect(url.partition("?")[0]) as connection:
        rows = [line for table in _TABLES for line in _dump(connection, table)]
        name: Any = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    (target / "server.sql.gz").write_bytes(gzip.compress(b"".join(rows), mtime=0))
    shutil.copyfile(key_file_path(bytes(name[0]).decode()), target / "server.key")
    (target / "server.json").write_text(json.dumps(about, indent=1, default=str) + "\n", encoding="utf-8")
    return about


def _dump(connection: psycopg.Connection[Any], table: str) -> list[bytes]:
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:  # type: ignore[call-overload, unused-ignore]
        return [f"-- {table}\n".encode(), *(bytes(each) for each in copy)]


def load(folder: Path, create: tuple[str, ...] = schema.TABLES) -> str:
    """Load a ledger from its files into a new database; return its URL. `create` makes the tables of its version."""
    url = new_ledger(PARTITIONS)
    with psycopg.connect(url.partition("?")[0]) as connection:
        for statement in create:
            connection.execute(statement)  # type: ignore[call-overload, unused-ignore]
        parts: dict[str, list[bytes]] = {}
        for line in gzip.decompress((folder / "server.sql.gz").read_bytes()).splitlines(keepends=True):
            if line.startswith(b"-- "):
                rows = parts[line[3:].decode().strip()] = []
            else:
                rows.append(line)
        for table, rows in parts.items():
            connection.execute(f"TRUNCATE {table}")  # type: ignore[call-overload, unused-ignore]
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:  # type: ignore[call-overload, unused-ignore]
                copy.write(b"".join(rows))
        name: Any = connection.execute("SELECT value FROM meta WHERE name = 'identity'").fetchone()
    key = key_file_path(bytes(name[0]).decode())
    key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(folder / "server.key", key)
    key.chmod(0o600)
    return url


if __name__ == "__main__":
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp()
    write(Path(sys.argv[1]))
