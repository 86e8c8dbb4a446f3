"""The tables of a ledger on PostgreSQL: those of `_sqlite.schema`, each key of which begins with its partition.

So any engine that keeps the rows of one partition together can carry it.
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
    "window_sums",
    "account_macs",
    "memoised_counts",
    "quotas",
    "periods",
    "priced_mechanisms",
    "policies",
    "journal",
    "entry_labels",
    "notes",
    "idempotency_records",
    "batch_runs",
    "key_epochs",
    "closings",
    "openings",
    "moved_entries",
    "erased_records",
    "collections",
    "checkpoints",
    "admin_log",
)
"""The tables whose keys begin with a partition; `meta` is the only other one."""

_AMOUNTS = "epsilon int8, delta int8, rho int8, mu_squared int8"


TABLES = (
    "CREATE TABLE meta (name text PRIMARY KEY, value bytea NOT NULL)",
    # The row of a partition is its write lock and the end of its journal. Half of each page is left free, so that a row
    # is written anew beside itself and no index is touched.
    """CREATE TABLE partitions (
        partition int4 PRIMARY KEY, entry int8 NOT NULL, at int8, chain_hash bytea NOT NULL, accounts int8 NOT NULL,
        priced_mechanisms int8 NOT NULL, policies int8 NOT NULL, collections int8 NOT NULL,
        numbered_rows int8 NOT NULL, checkpoints int8 NOT NULL, periods int8 NOT NULL, state int8 NOT NULL,
        changes int8 NOT NULL, generation int8 NOT NULL, secret int8 NOT NULL, row_mac bytea NOT NULL)
        WITH (fillfactor = 50)""",
    """CREATE TABLE users (
        partition int4, account int8, user_hash bytea, row_mac bytea NOT NULL, PRIMARY KEY (partition, account))""",
    "CREATE UNIQUE INDEX users_by_hash ON users (partition, user_hash)",
    """CREATE TABLE tombstones (
        partition int4, user_hash bytea, row_mac bytea NOT NULL, PRIMARY KEY (partition, user_hash))""",
    f"""CREATE TABLE window_sums (
        partition int4, account int8, window_code int8, {_AMOUNTS},
        PRIMARY KEY (partition, account, window_code)) WITH (fillfactor = 80)""",
    """CREATE TABLE account_macs (partition int4, account int8, day int8 NOT NULL, row_mac bytea NOT NULL,
        PRIMARY KEY (partition, account)) WITH (fillfactor = 80)""",
    """CREATE TABLE memoised_counts (
        partition int4, account int8, label bytea, priced_mechanism int8, window_code int8, reports int8 NOT NULL,
        PRIMARY KEY (partition, account, label, priced_mechanism, window_code))""",
    """CREATE TABLE quotas (
        partition int4, account int8, plan text, guarantee text, used int8 NOT NULL,
        PRIMARY KEY (partition, account, plan, guarantee))""",
    """CREATE TABLE periods (
        partition int4, period text, since int8 NOT NULL, PRIMARY KEY (partition, period))""",
    f"""CREATE TABLE priced_mechanisms (
        partition int4, priced_mechanism int8, fingerprint text NOT NULL, mechanism text NOT NULL,
        declared text NOT NULL, guarantee text NOT NULL, {_AMOUNTS}, collection text NOT NULL,
        row_mac bytea NOT NULL, PRIMARY KEY (partition, priced_mechanism),
        UNIQUE (partition, fingerprint, guarantee, collection))""",
    """CREATE TABLE policies (
        partition int4, policy int8, name text NOT NULL, version int8 NOT NULL, created_at int8 NOT NULL,
        definition text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, policy),
        UNIQUE (partition, name, version))""",
    f"""CREATE TABLE journal (
        partition int4, entry int8, at int8 NOT NULL, kind text NOT NULL, account int8 NOT NULL,
        priced_mechanism int8 NOT NULL, policy int8 NOT NULL, reports int8 NOT NULL, {_AMOUNTS},
        label_commitment bytea, expires int8, resolves int8, has_record int8 NOT NULL, has_note int8 NOT NULL,
        api_key int8 NOT NULL, sub_limit int8 NOT NULL, chain_hash bytea, PRIMARY KEY (partition, entry))""",
    "CREATE UNIQUE INDEX resolutions ON journal (partition, resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (partition, account, entry)",
    "CREATE INDEX repairs ON journal (partition, entry) WHERE kind = 'clock'",
    """CREATE TABLE notes (
        partition int4, entry int8, note text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, entry))""",
    "CREATE INDEX reservations ON journal (partition, expires) WHERE expires IS NOT NULL",
    """CREATE TABLE entry_labels (
        partition int4, entry int8, label bytea NOT NULL, salt bytea NOT NULL, PRIMARY KEY (partition, entry))""",
    """CREATE TABLE idempotency_records (
        partition int4, user_hash bytea, key_hash bytea, entry int8, number int8, request_digest bytea NOT NULL,
        response text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, user_hash, key_hash))""",
    "CREATE INDEX refusals ON idempotency_records (partition, number) WHERE number IS NOT NULL",
    """CREATE TABLE batch_runs (
        partition int4, number int8, key_hash bytea NOT NULL, request_digest bytea NOT NULL, kind text NOT NULL,
        partitions int8 NOT NULL, response text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, key_hash))""",
    """CREATE TABLE key_epochs (
        partition int4, number int8, generation int8 NOT NULL, of_partition int8 NOT NULL, secret int8 NOT NULL,
        entries int8 NOT NULL, checkpoints int8 NOT NULL, checkpoint_hash bytea NOT NULL, row_mac bytea NOT NULL,
        PRIMARY KEY (partition, number), UNIQUE (partition, generation, of_partition, secret))""",
    """CREATE TABLE closings (
        partition int4, number int8, generation int8 NOT NULL, changes int8 NOT NULL, move text NOT NULL,
        ledger text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, generation, changes))""",
    """CREATE TABLE openings (
        partition int4, number int8, generation int8 NOT NULL, changes int8 NOT NULL, id text NOT NULL,
        identity text NOT NULL, ledger text NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, generation, changes))""",
    """CREATE TABLE moved_entries (
        partition int4, number int8, generation int8 NOT NULL, of_partition int8 NOT NULL, entry int8 NOT NULL,
        to_partition int8 NOT NULL, to_entry int8 NOT NULL, row_mac bytea NOT NULL, PRIMARY KEY (partition, number),
        UNIQUE (partition, generation, of_partition, entry))""",
    """CREATE TABLE erased_records (
        partition int4, number int8, row_mac bytea NOT NULL, PRIMARY KEY (partition, number))""",
    """CREATE TABLE collections (
        partition int4, number int8, name text NOT NULL, fingerprint text NOT NULL, definition text NOT NULL,
        row_mac bytea NOT NULL, PRIMARY KEY (partition, number), UNIQUE (partition, name))""",
    """CREATE TABLE checkpoints (
        partition int4, number int8, at int8 NOT NULL, heads bytea NOT NULL, chain_hash bytea NOT NULL,
        PRIMARY KEY (partition, number))""",
    """CREATE TABLE admin_log (
        partition int4, number int8, at int8 NOT NULL, kind text NOT NULL, name text NOT NULL, body text NOT NULL,
        api_key int8 NOT NULL, PRIMARY KEY (partition, number))""",
)


def fill(connection: Connection, key: Key, ledger: str, partitions: int, ledger_id: str) -> None:
    """What stands in the tables of a new ledger."""
    values = {
        "schema": str(SCHEMA_VERSION).encode(),
        "ledger": ledger.encode(),
        "key_check": key_check(key, partitions),
    }
    values["ledger_id"] = write_ledger_id(key, ledger_id)
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
