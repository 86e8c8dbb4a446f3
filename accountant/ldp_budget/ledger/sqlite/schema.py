"""The tables of a ledger.

It is an ordinary SQLite file: sqlite-utils and Datasette open it. Amounts are whole units (see `amounts`), NULL where
unbounded, which SQL addition absorbs; times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..hash_chain import counters_mac
from ..keyfile import write_ledger_id
from ..models import PartitionHead

if TYPE_CHECKING:
    from ..keyfile import Key

# Kept in PRAGMA user_version, so that opening a current ledger needs no look at its tables.
SCHEMA_VERSION = 1
# "LdpB": tells a ledger from any other SQLite file.
APPLICATION_ID = 0x4C647042


TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT",
    # A partition is a whole ledger, and its row counts what it has numbered beside the entries. SQLite has one.
    # `state`, `changes`, `generation` and `secret` say whether it accepts writes. A row MAC is a keyed hash of its row.
    """CREATE TABLE partitions (
        partition INTEGER PRIMARY KEY, accounts INTEGER NOT NULL, priced_mechanisms INTEGER NOT NULL,
        policies INTEGER NOT NULL, collections INTEGER NOT NULL, numbered_rows INTEGER NOT NULL,
        checkpoints INTEGER NOT NULL, periods INTEGER NOT NULL, state INTEGER NOT NULL, changes INTEGER NOT NULL,
        generation INTEGER NOT NULL, secret INTEGER NOT NULL, row_mac BLOB NOT NULL) STRICT""",
    # A user is known by a keyed hash only; an erased one by none.
    "CREATE TABLE users (account INTEGER PRIMARY KEY, user_hash BLOB UNIQUE, row_mac BLOB NOT NULL) STRICT",
    # Erased users: they get no fresh budget, and nothing leads from here to an account, no time and no order.
    "CREATE TABLE tombstones (user_hash BLOB PRIMARY KEY, row_mac BLOB NOT NULL) STRICT, WITHOUT ROWID",
    # What a user was charged in one window; window 0 is the lifetime, `windows.code_at` says the others.
    """CREATE TABLE window_sums (
        account INTEGER NOT NULL, window_code INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        PRIMARY KEY (account, window_code)) STRICT, WITHOUT ROWID""",
    # A keyed hash over the user of an account, its sums and memoised counts in the windows of a day, its used quotas,
    # and the number of its newest charge.
    "CREATE TABLE account_macs (account INTEGER PRIMARY KEY, day INTEGER NOT NULL, row_mac BLOB NOT NULL) STRICT",
    # How many reports of one memoised value (a keyed hash of its label) were charged in a window.
    """CREATE TABLE memoised_counts (
        account INTEGER NOT NULL, label BLOB NOT NULL, priced_mechanism INTEGER NOT NULL,
        window_code INTEGER NOT NULL, reports INTEGER NOT NULL,
        PRIMARY KEY (account, label, priced_mechanism, window_code)) STRICT, WITHOUT ROWID""",
    # How much of a plan's quota for one guarantee was used.
    """CREATE TABLE quotas (
        account INTEGER NOT NULL, plan TEXT NOT NULL, guarantee TEXT NOT NULL, used INTEGER NOT NULL,
        PRIMARY KEY (account, plan, guarantee)) STRICT, WITHOUT ROWID""",
    # The periods for which windows are kept, since the window in which a policy first limited them.
    "CREATE TABLE periods (period TEXT PRIMARY KEY, since INTEGER NOT NULL) STRICT",
    # A mechanism with its guarantee and the cost of one report, self-contained; and its collection, if it has one.
    """CREATE TABLE priced_mechanisms (
        priced_mechanism INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, mechanism TEXT NOT NULL,
        declared TEXT NOT NULL, guarantee TEXT NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER, collection TEXT NOT NULL,
        row_mac BLOB NOT NULL, UNIQUE (fingerprint, guarantee, collection)) STRICT""",
    """CREATE TABLE policies (
        policy INTEGER PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL,
        created_at INTEGER NOT NULL, definition TEXT NOT NULL, row_mac BLOB NOT NULL,
        UNIQUE (name, version)) STRICT""",
    # Append-only. The four amounts are what the entry added to the account's lifetime; those of `voided` are
    # negative. `label_commitment` is of the label of a memoised value, `resolves` is the reservation that a
    # `committed`, `voided` or `expired` entry ends. `has_record` and `has_note` are 1 where the entry has an
    # idempotency record and a note; `api_key` is the record that made the API key by which it was written. The last
    # entry of each transaction has its `chain_hash`: a keyed hash over what the transaction appended and the one before.
    """CREATE TABLE journal (
        entry INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, account INTEGER NOT NULL,
        priced_mechanism INTEGER NOT NULL, policy INTEGER NOT NULL, reports INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        label_commitment BLOB, expires INTEGER, resolves INTEGER, has_record INTEGER NOT NULL,
        has_note INTEGER NOT NULL, api_key INTEGER NOT NULL, sub_limit INTEGER NOT NULL, chain_hash BLOB) STRICT""",
    # Which memoised value an entry repeats (a keyed hash, each user's own), and the salt of its commitment; apart from
    # the journal, so that they can be erased.
    "CREATE TABLE entry_labels (entry INTEGER PRIMARY KEY, label BLOB NOT NULL, salt BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX resolutions ON journal (resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (account)",
    "CREATE INDEX repairs ON journal (entry) WHERE kind = 'clock'",
    # What somebody wrote beside an entry; apart from the journal, so that it can be erased.
    "CREATE TABLE notes (entry INTEGER PRIMARY KEY, note TEXT NOT NULL, row_mac BLOB NOT NULL) STRICT",
    "CREATE INDEX reservations ON journal (expires) WHERE expires IS NOT NULL",
    # One response for each idempotency key of a user. It belongs to an entry; that of a refusal has a number instead.
    # Keys are hashes, so they come in no order; with the rows in order of arrival, only the narrow index takes one page
    # for each of them.
    """CREATE TABLE idempotency_records (
        user_hash BLOB NOT NULL, key_hash BLOB NOT NULL, entry INTEGER, number INTEGER,
        request_digest BLOB NOT NULL, response TEXT NOT NULL, row_mac BLOB NOT NULL,
        PRIMARY KEY (user_hash, key_hash)) STRICT""",
    "CREATE INDEX refusals ON idempotency_records (number) WHERE number IS NOT NULL",
    # The rows of these six, and the records of refusals, are numbered in one sequence: none can be deleted unseen.
    # A batch of a run over many users, or one partition's part of it, under its idempotency key.
    """CREATE TABLE batch_runs (
        number INTEGER PRIMARY KEY, key_hash BLOB NOT NULL, request_digest BLOB NOT NULL, kind TEXT NOT NULL,
        partitions INTEGER NOT NULL, response TEXT NOT NULL, row_mac BLOB NOT NULL, UNIQUE (key_hash)) STRICT""",
    # Since when a secret of the ledger's key is in force: after so many entries and checkpoints.
    """CREATE TABLE key_epochs (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, of_partition INTEGER NOT NULL,
        secret INTEGER NOT NULL, entries INTEGER NOT NULL, checkpoints INTEGER NOT NULL,
        checkpoint_hash BLOB NOT NULL, row_mac BLOB NOT NULL, UNIQUE (generation, of_partition, secret)) STRICT""",
    # Which move has closed the ledger, by how often its state had changed.
    """CREATE TABLE closings (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, changes INTEGER NOT NULL, move TEXT NOT NULL,
        ledger TEXT NOT NULL, row_mac BLOB NOT NULL, UNIQUE (generation, changes)) STRICT""",
    # Which target of a move may open.
    """CREATE TABLE openings (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, changes INTEGER NOT NULL, id TEXT NOT NULL,
        identity TEXT NOT NULL, ledger TEXT NOT NULL, row_mac BLOB NOT NULL, UNIQUE (generation, changes)) STRICT""",
    # Where an entry is now that had another number before the ledger was moved, and may be named by that.
    """CREATE TABLE moved_entries (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, of_partition INTEGER NOT NULL,
        entry INTEGER NOT NULL, to_partition INTEGER NOT NULL, to_entry INTEGER NOT NULL, row_mac BLOB NOT NULL,
        UNIQUE (generation, of_partition, entry)) STRICT""",
    # In the place of an erased user's record of a refusal.
    "CREATE TABLE erased_records (number INTEGER PRIMARY KEY, row_mac BLOB NOT NULL) STRICT",
    """CREATE TABLE collections (
        number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, fingerprint TEXT NOT NULL, definition TEXT NOT NULL,
        row_mac BLOB NOT NULL) STRICT""",
    # Where every partition ended at some time, with a keyed hash over that and the checkpoint before.
    """CREATE TABLE checkpoints (
        number INTEGER PRIMARY KEY, at INTEGER NOT NULL, heads BLOB NOT NULL, chain_hash BLOB NOT NULL) STRICT""",
    # Administrative facts in order of their numbers, such as which API keys were made; `api_key` is the one that did it.
    """CREATE TABLE admin_log (
        number INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
        api_key INTEGER NOT NULL) STRICT""",
    "INSERT INTO periods VALUES ('lifetime', 0)",
)

# Where sqlite-utils notes which steps of which set were taken.
_SET, _STEP = "ldp_budget", "v1_tables"
_NOTED = (
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
    """The version of a ledger's tables."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def fill(connection: sqlite3.Connection, key: Key, ledger_id: str) -> None:
    """What stands in the tables of a new ledger."""
    connection.execute("INSERT INTO meta VALUES ('key_check', ?)", (key.hash(b"check", ""),))
    connection.execute("INSERT INTO meta VALUES ('ledger_id', ?)", (write_ledger_id(key, ledger_id),))
    end = PartitionHead()
    row = (0, *end.counters, counters_mac(key, end))
    connection.execute(f"INSERT INTO partitions VALUES ({', '.join('?' * len(row))})", row)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new ledger, in one transaction: what `migrate` would make of an empty database.

    Without sqlite-utils, which takes longer to import, with all that it looks for, than everything else together.
    """
    connection.execute("BEGIN")
    for statement in (*_NOTED, *TABLES):
        connection.execute(statement)
    row = (_SET, _STEP, str(datetime.now(UTC)))
    connection.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, ?)", row)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection) -> None:
    """Make the tables with sqlite-utils, which notes the step that was taken."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations(_SET)

    @migrations()
    def v1_tables(database: Database) -> None:
        for statement in TABLES:
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    migrations.apply(Database(connection))
