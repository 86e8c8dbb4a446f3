"""The tables of a ledger on PostgreSQL: those of `_sqlite.schema`, each key of which begins with its partition.

So any engine that keeps the rows of one partition together can carry it. `window` and `user` are reserved there (a bare
`user` silently means the role), so the columns are called `slot` and `owner`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..entries import PartitionHead
from ..journal import counters_mac
from ..keys import write_ledger_id

if TYPE_CHECKING:
    from psycopg import Connection

    from ..keys import Key

SCHEMA_VERSION = 1

PARTITIONED = (
    "partitions",
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
"""The tables whose keys begin with a partition; `meta` is the only other one."""

_AMOUNTS = "epsilon int8, delta int8, rho int8, mu_squared int8"


TABLES = (
    "CREATE TABLE meta (name text PRIMARY KEY, value bytea NOT NULL)",
    # The row of a partition is its write lock and the end of its journal. Half of each page is left free, so that a row is
    # written anew beside itself and no index is touched.
    """CREATE TABLE partitions (
        partition int4 PRIMARY KEY, entry int8 NOT NULL, at int8, link bytea NOT NULL, accounts int8 NOT NULL,
        charges int8 NOT NULL, policies int8 NOT NULL, collections int8 NOT NULL, answers int8 NOT NULL,
        checkpoints int8 NOT NULL, periods int8 NOT NULL, gate int8 NOT NULL, seal bytea NOT NULL)
        WITH (fillfactor = 50)""",
    """CREATE TABLE users (
        partition int4, account int8, hash bytea, seal bytea NOT NULL, PRIMARY KEY (partition, account))""",
    "CREATE UNIQUE INDEX users_by_hash ON users (partition, hash)",
    "CREATE TABLE tombstones (partition int4, hash bytea, seal bytea NOT NULL, PRIMARY KEY (partition, hash))",
    f"""CREATE TABLE window_sums (
        partition int4, account int8, slot int8, {_AMOUNTS}, PRIMARY KEY (partition, account, slot)) WITH (fillfactor = 80)""",
    """CREATE TABLE account_macs (partition int4, account int8, day int8 NOT NULL, seal bytea NOT NULL,
        PRIMARY KEY (partition, account)) WITH (fillfactor = 80)""",
    """CREATE TABLE memoised_counts (
        partition int4, account int8, label bytea, charge int8, slot int8, reports int8 NOT NULL,
        PRIMARY KEY (partition, account, label, charge, slot))""",
    """CREATE TABLE quotas (
        partition int4, account int8, plan text, promise text, used int8 NOT NULL,
        PRIMARY KEY (partition, account, plan, promise))""",
    "CREATE TABLE periods (partition int4, period text, since int8 NOT NULL, PRIMARY KEY (partition, period))",
    f"""CREATE TABLE priced_mechanisms (
        partition int4, charge int8, fingerprint text NOT NULL, mechanism text NOT NULL, declared text NOT NULL,
        guarantee text NOT NULL, {_AMOUNTS}, collection text NOT NULL, seal bytea NOT NULL,
        PRIMARY KEY (partition, charge), UNIQUE (partition, fingerprint, guarantee, collection))""",
    """CREATE TABLE policies (
        partition int4, policy int8, name text NOT NULL, version int8 NOT NULL, created_at int8 NOT NULL,
        definition text NOT NULL, seal bytea NOT NULL, PRIMARY KEY (partition, policy), UNIQUE (partition, name, version))""",
    f"""CREATE TABLE journal (
        partition int4, entry int8, at int8 NOT NULL, kind text NOT NULL, account int8 NOT NULL, charge int8 NOT NULL,
        policy int8 NOT NULL, reports int8 NOT NULL, {_AMOUNTS}, mark bytea, expires int8, resolves int8,
        keyed int8 NOT NULL, link bytea, PRIMARY KEY (partition, entry))""",
    "CREATE UNIQUE INDEX resolutions ON journal (partition, resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (partition, account, entry)",
    "CREATE INDEX repairs ON journal (partition, entry) WHERE kind = 'clock'",
    "CREATE TABLE notes (partition int4, entry int8, note text NOT NULL, seal bytea NOT NULL, PRIMARY KEY (partition, entry))",
    "CREATE INDEX reservations ON journal (partition, expires) WHERE expires IS NOT NULL",
    """CREATE TABLE entry_labels (
        partition int4, entry int8, label bytea NOT NULL, salt bytea NOT NULL, PRIMARY KEY (partition, entry))""",
    """CREATE TABLE idempotency_records (
        partition int4, owner bytea, key bytea, place int8 NOT NULL, request bytea NOT NULL, answer text NOT NULL,
        seal bytea NOT NULL, PRIMARY KEY (partition, owner, key))""",
    "CREATE INDEX answers_apart ON keys (partition, place) WHERE place < 0",
    """CREATE TABLE collections (
        partition int4, number int8, name text NOT NULL, fingerprint text NOT NULL, definition text NOT NULL,
        seal bytea NOT NULL, PRIMARY KEY (partition, number), UNIQUE (partition, name))""",
    """CREATE TABLE checkpoints (
        partition int4, number int8, at int8 NOT NULL, heads bytea NOT NULL, link bytea NOT NULL,
        PRIMARY KEY (partition, number))""",
    """CREATE TABLE admin_log (
        partition int4, number int8, at int8 NOT NULL, kind text NOT NULL, name text NOT NULL, body text NOT NULL,
        made_by int8 NOT NULL, PRIMARY KEY (partition, number))""",
)


def fill(connection: Connection, key: Key, ledger: str, partitions: int, ledger_id: str) -> None:
    """What stands in the tables of a new ledger."""
    values = {
        "schema": str(SCHEMA_VERSION).encode(),
        "ledger": ledger.encode(),
        "key_check": key_check(key, partitions),
    }
    values["book"] = write_ledger_id(key, ledger_id)
    for name, value in values.items():
        connection.execute("INSERT INTO meta VALUES (%s, %s)", (name, value))
    end = PartitionHead()
    counters = ", ".join(str(count) for count in end.counters)
    connection.execute(
        f"INSERT INTO partitions SELECT partition, 0, NULL, %s, {counters}, %s FROM generate_series(0, %s) AS partition",
        (end.chain_hash, counters_mac(key, end), partitions - 1),
    )
    connection.execute(
        "INSERT INTO periods SELECT partition, 'lifetime', 0 FROM generate_series(0, %s) AS partition",
        (partitions - 1,),
    )


def key_check(key: Key, partitions: int) -> bytes:
    """By which a ledger knows its key, and that it has all of its partitions: a user's partition is told by their number."""
    return key.hash(b"check", str(partitions))
