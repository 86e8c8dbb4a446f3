"""The tables of a ledger on PostgreSQL: those of `_sqlite.schema`, each key of which begins with its lane.

So any engine that keeps the rows of one lane together can carry it. `window` and `user` are reserved there (a bare
`user` silently means the role), so the columns are called `slot` and `owner`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..entries import End
from ..journal import seal_counters
from ..keys import write_book

if TYPE_CHECKING:
    from psycopg import Connection

    from ..keys import Key

SCHEMA_VERSION = 1

LANED = (
    "lanes",
    "users",
    "tombstones",
    "accounts",
    "seals",
    "labels",
    "quotas",
    "periods",
    "charges",
    "policies",
    "journal",
    "entry_labels",
    "notes",
    "keys",
    "collections",
    "checkpoints",
    "records",
)
"""The tables whose keys begin with a lane; `meta` is the only other one."""

_AMOUNTS = "epsilon int8, delta int8, rho int8, mu_squared int8"


TABLES = (
    "CREATE TABLE meta (name text PRIMARY KEY, value bytea NOT NULL)",
    # The row of a lane is its write lock and the end of its journal. Half of each page is left free, so that a row is
    # written anew beside itself and no index is touched.
    """CREATE TABLE lanes (
        lane int4 PRIMARY KEY, entry int8 NOT NULL, at int8, link bytea NOT NULL, accounts int8 NOT NULL,
        charges int8 NOT NULL, policies int8 NOT NULL, collections int8 NOT NULL, answers int8 NOT NULL,
        checkpoints int8 NOT NULL, periods int8 NOT NULL, gate int8 NOT NULL, seal bytea NOT NULL)
        WITH (fillfactor = 50)""",
    """CREATE TABLE users (
        lane int4, account int8, hash bytea, seal bytea NOT NULL, PRIMARY KEY (lane, account))""",
    "CREATE UNIQUE INDEX users_by_hash ON users (lane, hash)",
    "CREATE TABLE tombstones (lane int4, hash bytea, seal bytea NOT NULL, PRIMARY KEY (lane, hash))",
    f"""CREATE TABLE accounts (
        lane int4, account int8, slot int8, {_AMOUNTS}, PRIMARY KEY (lane, account, slot)) WITH (fillfactor = 80)""",
    """CREATE TABLE seals (lane int4, account int8, day int8 NOT NULL, seal bytea NOT NULL,
        PRIMARY KEY (lane, account)) WITH (fillfactor = 80)""",
    """CREATE TABLE labels (
        lane int4, account int8, label bytea, charge int8, slot int8, reports int8 NOT NULL,
        PRIMARY KEY (lane, account, label, charge, slot))""",
    """CREATE TABLE quotas (
        lane int4, account int8, plan text, promise text, used int8 NOT NULL,
        PRIMARY KEY (lane, account, plan, promise))""",
    "CREATE TABLE periods (lane int4, period text, since int8 NOT NULL, PRIMARY KEY (lane, period))",
    f"""CREATE TABLE charges (
        lane int4, charge int8, fingerprint text NOT NULL, mechanism text NOT NULL, declared text NOT NULL,
        guarantee text NOT NULL, {_AMOUNTS}, collection text NOT NULL, seal bytea NOT NULL,
        PRIMARY KEY (lane, charge), UNIQUE (lane, fingerprint, guarantee, collection))""",
    """CREATE TABLE policies (
        lane int4, policy int8, name text NOT NULL, version int8 NOT NULL, created_at int8 NOT NULL,
        definition text NOT NULL, seal bytea NOT NULL, PRIMARY KEY (lane, policy), UNIQUE (lane, name, version))""",
    f"""CREATE TABLE journal (
        lane int4, entry int8, at int8 NOT NULL, kind text NOT NULL, account int8 NOT NULL, charge int8 NOT NULL,
        policy int8 NOT NULL, reports int8 NOT NULL, {_AMOUNTS}, mark bytea, expires int8, resolves int8,
        keyed int8 NOT NULL, link bytea, PRIMARY KEY (lane, entry))""",
    "CREATE UNIQUE INDEX resolutions ON journal (lane, resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (lane, account, entry)",
    "CREATE INDEX repairs ON journal (lane, entry) WHERE kind = 'clock'",
    "CREATE TABLE notes (lane int4, entry int8, note text NOT NULL, seal bytea NOT NULL, PRIMARY KEY (lane, entry))",
    "CREATE INDEX reservations ON journal (lane, expires) WHERE expires IS NOT NULL",
    """CREATE TABLE entry_labels (
        lane int4, entry int8, label bytea NOT NULL, salt bytea NOT NULL, PRIMARY KEY (lane, entry))""",
    """CREATE TABLE keys (
        lane int4, owner bytea, key bytea, place int8 NOT NULL, request bytea NOT NULL, answer text NOT NULL,
        seal bytea NOT NULL, PRIMARY KEY (lane, owner, key))""",
    "CREATE INDEX answers_apart ON keys (lane, place) WHERE place < 0",
    """CREATE TABLE collections (
        lane int4, number int8, name text NOT NULL, fingerprint text NOT NULL, definition text NOT NULL,
        seal bytea NOT NULL, PRIMARY KEY (lane, number), UNIQUE (lane, name))""",
    """CREATE TABLE checkpoints (
        lane int4, number int8, at int8 NOT NULL, heads bytea NOT NULL, link bytea NOT NULL,
        PRIMARY KEY (lane, number))""",
    """CREATE TABLE records (
        lane int4, number int8, at int8 NOT NULL, kind text NOT NULL, name text NOT NULL, body text NOT NULL,
        made_by int8 NOT NULL, PRIMARY KEY (lane, number))""",
)


def fill(connection: Connection, key: Key, ledger: str, lanes: int, book: str) -> None:
    """What stands in the tables of a new ledger."""
    values = {"schema": str(SCHEMA_VERSION).encode(), "ledger": ledger.encode(), "key_check": key_check(key, lanes)}
    values["book"] = write_book(key, book)
    for name, value in values.items():
        connection.execute("INSERT INTO meta VALUES (%s, %s)", (name, value))
    end = End()
    counters = ", ".join(str(count) for count in end.counters)
    connection.execute(
        f"INSERT INTO lanes SELECT lane, 0, NULL, %s, {counters}, %s FROM generate_series(0, %s) AS lane",
        (end.link, seal_counters(key, end), lanes - 1),
    )
    connection.execute(
        "INSERT INTO periods SELECT lane, 'lifetime', 0 FROM generate_series(0, %s) AS lane", (lanes - 1,)
    )


def key_check(key: Key, lanes: int) -> bytes:
    """By which a ledger knows its key, and that it has all of its lanes: a user's lane is told by their number."""
    return key.hash(b"check", str(lanes))
