"""Tables and indexes of a ledger in SQLite.

The ledger is an ordinary SQLite file: sqlite-utils and Datasette open it. Amounts are whole units (see
`fixed_point`), and NULL if unbounded: in SQL, a sum with NULL is NULL. Times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..hash_chain import counters_mac
from ..keyed_hashing import write_ledger_id
from ..models import PartitionHead

if TYPE_CHECKING:
    from ..keyed_hashing import Key
    from ..storage import Migration

# Stored in PRAGMA user_version, so that opening a current ledger need not inspect its tables.
SCHEMA_VERSION = 1
# "LdpL": distinguishes a ledger from other SQLite files, and from those of candidates, whose tables had no fixed version.
APPLICATION_ID, CANDIDATE_ID = 0x4C64704C, 0x4C647042


TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT",
    # A partition is a complete ledger. Its row counts its numbered rows other than entries. SQLite has one partition.
    # `state`, `changes`, `generation` and `secret` decide if it accepts writes. A row MAC is a keyed hash of its row.
    """CREATE TABLE partitions (
        partition INTEGER PRIMARY KEY, accounts INTEGER NOT NULL, priced_mechanisms INTEGER NOT NULL,
        policies INTEGER NOT NULL, collections INTEGER NOT NULL, numbered_rows INTEGER NOT NULL,
        checkpoints INTEGER NOT NULL, periods INTEGER NOT NULL, state INTEGER NOT NULL, changes INTEGER NOT NULL,
        generation INTEGER NOT NULL, secret INTEGER NOT NULL, row_mac BLOB NOT NULL) STRICT""",
    # A user is stored as a keyed hash only; an erased user without a hash.
    "CREATE TABLE users (account INTEGER PRIMARY KEY, user_hash BLOB UNIQUE, row_mac BLOB NOT NULL) STRICT",
    # Erased users: they get no new budget. No column, time or order links a row to an account.
    "CREATE TABLE tombstones (user_hash BLOB PRIMARY KEY, row_mac BLOB NOT NULL) STRICT, WITHOUT ROWID",
    # Sum of a user's charges in one window, such as `lifetime` or `day 2026-11-24`; see `calendar.Window`.
    """CREATE TABLE window_sums (
        account INTEGER NOT NULL, window_name TEXT NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        PRIMARY KEY (account, window_name)) STRICT, WITHOUT ROWID""",
    # A keyed hash over the user of an account, its sums and memoised counts in the windows of a day, its used quotas,
    # and the number of its newest charge.
    "CREATE TABLE account_macs (account INTEGER PRIMARY KEY, day INTEGER NOT NULL, row_mac BLOB NOT NULL) STRICT",
    # Number of charged reports of one memoised value (a keyed hash of its label) in a window.
    """CREATE TABLE memoised_counts (
        account INTEGER NOT NULL, label BLOB NOT NULL, priced_mechanism INTEGER NOT NULL,
        window_name TEXT NOT NULL, reports INTEGER NOT NULL,
        PRIMARY KEY (account, label, priced_mechanism, window_name)) STRICT, WITHOUT ROWID""",
    # Used part of a plan's quota for one guarantee.
    """CREATE TABLE quotas (
        account INTEGER NOT NULL, plan TEXT NOT NULL, guarantee TEXT NOT NULL, used INTEGER NOT NULL,
        PRIMARY KEY (account, plan, guarantee)) STRICT, WITHOUT ROWID""",
    # Periods for which windows are stored, each since the window in which a policy first limited it.
    "CREATE TABLE periods (period TEXT PRIMARY KEY, since INTEGER NOT NULL) STRICT",
    # A mechanism with its guarantee, the cost of one report and its collection, if it has one; self-contained.
    """CREATE TABLE priced_mechanisms (
        priced_mechanism INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, mechanism TEXT NOT NULL,
        declared TEXT NOT NULL, guarantee TEXT NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER, collection TEXT NOT NULL,
        row_mac BLOB NOT NULL, UNIQUE (fingerprint, guarantee, collection)) STRICT""",
    """CREATE TABLE policies (
        policy INTEGER PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL,
        created_at INTEGER NOT NULL, definition TEXT NOT NULL, row_mac BLOB NOT NULL,
        UNIQUE (name, version)) STRICT""",
    # Append-only. The four amounts are what the entry added to the account's lifetime; `voided` has negative ones.
    # `label_commitment` commits to the label of a memoised value. `resolves` is the reservation that a `committed`,
    # `voided` or `expired` entry ends. `has_record` and `has_note` are 1 if the entry has an idempotency record or a
    # note. `api_key` is the number of the record that created the API key of the writer. `period` is the gauge that a
    # `period` entry keeps. The last entry of each transaction has its `chain_hash`: a keyed hash over the previous one
    # and what the transaction appended.
    """CREATE TABLE journal (
        entry INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, account INTEGER NOT NULL,
        priced_mechanism INTEGER NOT NULL, policy INTEGER NOT NULL, reports INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        label_commitment BLOB, expires INTEGER, resolves INTEGER, has_record INTEGER NOT NULL,
        has_note INTEGER NOT NULL, api_key INTEGER NOT NULL, sub_limit INTEGER NOT NULL, period TEXT,
        chain_hash BLOB) STRICT""",
    # The memoised value that an entry repeats (a keyed hash, different for each user) and the salt of its commitment.
    # Outside the journal, so that they can be erased.
    "CREATE TABLE entry_labels (entry INTEGER PRIMARY KEY, label BLOB NOT NULL, salt BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX resolutions ON journal (resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (account)",
    "CREATE INDEX repairs ON journal (entry) WHERE kind = 'clock'",
    # A caller's note on an entry. Outside the journal, so that it can be erased.
    "CREATE TABLE notes (entry INTEGER PRIMARY KEY, note TEXT NOT NULL, row_mac BLOB NOT NULL) STRICT",
    "CREATE INDEX reservations ON journal (expires) WHERE expires IS NOT NULL",
    # One response for each idempotency key of a user. It belongs to an entry; the response of a refusal has a number
    # instead. Keys are hashes, so their order is random. The rows are in order of arrival, so each new key writes one
    # random page of the narrow index only.
    """CREATE TABLE idempotency_records (
        user_hash BLOB NOT NULL, key_hash BLOB NOT NULL, entry INTEGER, number INTEGER,
        request_digest BLOB NOT NULL, response TEXT NOT NULL, row_mac BLOB NOT NULL,
        PRIMARY KEY (user_hash, key_hash)) STRICT""",
    "CREATE INDEX refusals ON idempotency_records (number) WHERE number IS NOT NULL",
    # One sequence numbers the rows of the next seven tables and the records of refusals: a deletion is always detected.
    # A batch of a run over many users, or one partition's part of it, with its idempotency key.
    """CREATE TABLE batch_runs (
        number INTEGER PRIMARY KEY, key_hash BLOB NOT NULL, request_digest BLOB NOT NULL, kind TEXT NOT NULL,
        partitions INTEGER NOT NULL, response TEXT NOT NULL, row_mac BLOB NOT NULL, UNIQUE (key_hash)) STRICT""",
    # Key epochs: the numbers of entries and checkpoints after which a secret of the ledger key is active.
    """CREATE TABLE key_epochs (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, of_partition INTEGER NOT NULL,
        secret INTEGER NOT NULL, entries INTEGER NOT NULL, checkpoints INTEGER NOT NULL,
        checkpoint_hash BLOB NOT NULL, row_mac BLOB NOT NULL, UNIQUE (generation, of_partition, secret)) STRICT""",
    # The move that closed the ledger, with the number of state changes before it. `identity`: the target that may open.
    """CREATE TABLE closings (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, changes INTEGER NOT NULL, move TEXT NOT NULL,
        ledger TEXT NOT NULL, identity TEXT NOT NULL, row_mac BLOB NOT NULL, UNIQUE (generation, changes)) STRICT""",
    # New place of an entry whose number changed when the ledger was moved; receipts may name its old number.
    """CREATE TABLE moved_entries (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, of_partition INTEGER NOT NULL,
        entry INTEGER NOT NULL, to_partition INTEGER NOT NULL, to_entry INTEGER NOT NULL, row_mac BLOB NOT NULL,
        UNIQUE (generation, of_partition, entry)) STRICT""",
    # Replaces an erased user's record of a refusal.
    "CREATE TABLE erased_records (number INTEGER PRIMARY KEY, row_mac BLOB NOT NULL) STRICT",
    # A report that a respondent sent, with the entry that charged it. It has its bytes until it is sealed or erased.
    """CREATE TABLE reports (
        number INTEGER PRIMARY KEY, entry INTEGER NOT NULL, collection TEXT NOT NULL, state TEXT NOT NULL,
        report BLOB NOT NULL, row_mac BLOB NOT NULL, UNIQUE (entry)) STRICT""",
    "CREATE INDEX waiting_reports ON reports (collection) WHERE state = 'waiting'",
    # Sealed reports of a collection in random order, in parts.
    """CREATE TABLE rounds (
        number INTEGER PRIMARY KEY, collection TEXT NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL,
        parts INTEGER NOT NULL, reports INTEGER NOT NULL, content BLOB NOT NULL, row_mac BLOB NOT NULL,
        UNIQUE (collection, name, part)) STRICT""",
    """CREATE TABLE collections (
        number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, fingerprint TEXT NOT NULL, definition TEXT NOT NULL,
        row_mac BLOB NOT NULL) STRICT""",
    # The heads of all partitions at one time, with a keyed hash over them and the previous checkpoint.
    """CREATE TABLE checkpoints (
        number INTEGER PRIMARY KEY, at INTEGER NOT NULL, heads BLOB NOT NULL, chain_hash BLOB NOT NULL) STRICT""",
    # Administrative events in order of their numbers, such as new API keys; `api_key` is the key that caused one.
    """CREATE TABLE admin_log (
        number INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
        api_key INTEGER NOT NULL) STRICT""",
    "INSERT INTO periods VALUES ('lifetime', 0)",
)

# What changes the tables of a released version to those of a later one, in order; TABLES are those of the last.
MIGRATIONS: tuple[Migration, ...] = ()

# The table in which sqlite-utils records the applied migrations.
MIGRATION = _SET, _STEP = "ldp_budget", "v1_tables"
MIGRATION_TABLES = (
    """CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
)""",
    """CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name")""",
)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of a ledger."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def fill(connection: sqlite3.Connection, key: Key, ledger_id: str) -> None:
    """Insert the first rows of a new ledger, and set the id in its key."""
    key.set_ledger_id(ledger_id)
    connection.execute("INSERT INTO meta VALUES ('key_check', ?)", (key.hash(b"check", ""),))
    connection.execute("INSERT INTO meta VALUES ('ledger_id', ?)", (write_ledger_id(key, ledger_id),))
    end = PartitionHead()
    row = (0, *end.counters, counters_mac(key, end))
    connection.execute(f"INSERT INTO partitions VALUES ({', '.join('?' * len(row))})", row)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new ledger in one transaction, exactly as `migrations.migrate` does in an empty database.

    It does not use sqlite-utils, whose import takes longer than everything else together.
    """
    connection.execute("BEGIN")
    for statement in (*MIGRATION_TABLES, *TABLES):
        connection.execute(statement)
    steps = [_STEP, *(name for each in MIGRATIONS for name in each.names)]
    for name in steps:
        row = (_SET, name, str(datetime.now(UTC)))
        connection.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, ?)", row)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
