"""A made-up next version of the tables, in processes that call `install` before they open a ledger.

Its pre step adds the table `remarks`. Its post step fills it with a row for each entry, and adds an index to it and one to
the journal. As a program:

    python made_up_version.py upgrade LEDGER STEP       upgrades, with the made-up version
    python made_up_version.py charge LEDGER NAME        charges one user after the other, with this version
    python made_up_version.py newer LEDGER NAME         the same, with the made-up version

Each prints a line for what it has done.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import ldp_budget
from ldp_budget import Accountant, LedgerError
from ldp_budget.ledger.sqlite import connection, schema
from ldp_budget.ledger.storage import Migration
from ldp_budget_postgres import citus, migrations, statements
from ldp_budget_postgres import schema as server

COIN = ldp_budget.mechanism("rr")(epsilon="0.001")
FILE, SERVER = schema.SCHEMA_VERSION + 1, server.SCHEMA_VERSION + 1
"""The made-up versions of a file and of a server's ledger."""

_TABLE = "CREATE TABLE remarks (entry INTEGER PRIMARY KEY, remark TEXT NOT NULL) STRICT"
_INDEXES = ("CREATE INDEX remarks_by_text ON remarks (remark)", "CREATE INDEX journal_by_time ON journal (at)")
_SERVERS = (
    "CREATE TABLE remarks (partition int4, entry int8, remark text NOT NULL, PRIMARY KEY (partition, entry))",
    "CREATE INDEX remarks_by_text ON remarks (partition, remark)",
    "CREATE INDEX journal_by_time ON journal (partition, at)",
)
_FILL = "INSERT INTO remarks SELECT entry, kind FROM journal"
_SERVERS_FILL = "INSERT INTO remarks SELECT partition, entry, kind FROM journal"


def install() -> None:
    """Make this process one of the made-up version."""
    schema.SCHEMA_VERSION = connection.SCHEMA_VERSION = FILE
    schema.TABLES = (*schema.TABLES, _TABLE, *_INDEXES)
    schema.MIGRATIONS = (Migration(FILE, (_TABLE,), (_FILL, *_INDEXES)),)
    server.SCHEMA_VERSION = SERVER
    for module in (server, citus, statements):
        module.PARTITIONED = (*module.PARTITIONED, "remarks")  # type: ignore[attr-defined]
    server.TABLES = (*server.TABLES, *_SERVERS)
    server._EXPECTED = server.expect_facts(server.TABLES)
    server._TABLES = sorted({fact.table for fact in server._EXPECTED})
    migrations.FOLDER = Path(tempfile.mkdtemp())
    pre = _SERVERS[0].replace("TABLE remarks", "TABLE IF NOT EXISTS remarks")
    (migrations.FOLDER / f"{SERVER:04d}.pre.sql").write_text(f"{pre};\n", encoding="utf-8")
    (migrations.FOLDER / f"{SERVER:04d}.post.sql").write_text(
        ";\n".join((_SERVERS_FILL, *_SERVERS[1:])), encoding="utf-8"
    )


def charge(ledger: str, name: str) -> None:
    """Charge users for ever; print each key after its charge is acknowledged, and the error that ends it."""
    with Accountant(ledger, create=False) as accountant:
        print("opened", flush=True)
        for number in range(10**9):
            try:
                receipt = accountant.spend(f"user-{number % 7}", COIN, key=f"{name}/{number}")
            except LedgerError as error:
                print(f"refused {error}", flush=True)
                return
            print(f"{receipt.status} {name}/{number}", flush=True)


if __name__ == "__main__":
    what, place, third = sys.argv[1:]
    if what != "charge":
        install()
    if what == "upgrade":
        from ldp_budget.accounting.upgrade import upgrade

        print(*upgrade(place, third).steps, flush=True)
    else:
        charge(place, third)
