"""The tables of a ledger.

It is an ordinary SQLite file: sqlite-utils and Datasette open it. Amounts are whole units (see `amounts`), NULL where
unbounded, which SQL addition absorbs; times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..entries import PartitionHead
from ..journal import counters_mac
from ..keys import write_ledger_id

if TYPE_CHECKING:
    from ..keys import Key

# Kept in PRAGMA user_version, so that opening a current ledger needs no look at its tables.
SCHEMA_VERSION = 1
# "LdpB": tells a ledger from any other SQLite file.
APPLICATION_ID = 0x4C647042


TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT",
    # A partition is a whole ledger, and its row counts what it has numbered beside the entries. SQLite has one.
    # A seal is a keyed hash of its row.
    """CREATE TABLE partitions (
        partition INTEGER PRIMARY KEY, accounts INTEGER NOT NULL, charges INTEGER NOT NULL, policies INTEGER NOT NULL,
        collections INTEGER NOT NULL, answers INTEGER NOT NULL, checkpoints INTEGER NOT NULL,
        periods INTEGER NOT NULL, gate INTEGER NOT NULL, seal BLOB NOT NULL) STRICT""",
    # A user is known by a keyed hash only; an erased one by none.
    "CREATE TABLE users (account INTEGER PRIMARY KEY, hash BLOB UNIQUE, seal BLOB NOT NULL) STRICT",
    # Erased users: they get no fresh budget, and nothing leads from here to an account, no time and no order.
    "CREATE TABLE tombstones (hash BLOB PRIMARY KEY, seal BLOB NOT NULL) STRICT, WITHOUT ROWID",
    # What a user was charged in one window; window 0 is the lifetime, `windows.window_at` says the others.
    """CREATE TABLE window_sums (
        account INTEGER NOT NULL, window INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        PRIMARY KEY (account, window)) STRICT, WITHOUT ROWID""",
    # A keyed hash over what an account was charged in the windows of a day, and the number of its newest charge.
    "CREATE TABLE account_macs (account INTEGER PRIMARY KEY, day INTEGER NOT NULL, seal BLOB NOT NULL) STRICT",
    # How many reports of one memoised value (a keyed hash of its label) were charged in a window.
    """CREATE TABLE memoised_counts (
        account INTEGER NOT NULL, label BLOB NOT NULL, charge INTEGER NOT NULL, window INTEGER NOT NULL,
        reports INTEGER NOT NULL, PRIMARY KEY (account, label, charge, window)) STRICT, WITHOUT ROWID""",
    # How much of a plan's quota for one guarantee was used.
    """CREATE TABLE quotas (
        account INTEGER NOT NULL, plan TEXT NOT NULL, promise TEXT NOT NULL, used INTEGER NOT NULL,
        PRIMARY KEY (account, plan, promise)) STRICT, WITHOUT ROWID""",
    # The periods for which windows are kept, since the window in which a policy first limited them.
    "CREATE TABLE periods (period TEXT PRIMARY KEY, since INTEGER NOT NULL) STRICT",
    # A mechanism with its guarantee and the cost of one report, self-contained; and its collection, if it has one.
    """CREATE TABLE priced_mechanisms (
        charge INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, mechanism TEXT NOT NULL,
        declared TEXT NOT NULL, guarantee TEXT NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER, collection TEXT NOT NULL,
        seal BLOB NOT NULL, UNIQUE (fingerprint, guarantee, collection)) STRICT""",
    """CREATE TABLE policies (
        policy INTEGER PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL,
        created_at INTEGER NOT NULL, definition TEXT NOT NULL, seal BLOB NOT NULL, UNIQUE (name, version)) STRICT""",
    # Append-only. The four amounts are what the entry added to the account's lifetime; those of `voided` are
    # negative. `mark` stands for the label of a memoised value, `resolves` is the reservation that a `committed`,
    # `voided` or `expired` entry ends; `keyed` is 1 where an answer is kept in `keys`, 2 more where a note is in
    # `notes`, and 4 times the record of the key by which it was written. The last entry of each transaction bears its
    # `link`: a keyed hash over what the transaction appended and the link before.
    """CREATE TABLE journal (
        entry INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, account INTEGER NOT NULL,
        charge INTEGER NOT NULL, policy INTEGER NOT NULL, reports INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        mark BLOB, expires INTEGER, resolves INTEGER, keyed INTEGER NOT NULL, link BLOB) STRICT""",
    # Which memoised value an entry repeats (a keyed hash, each user's own), and the salt of its mark; apart from the
    # journal, so that they can be erased.
    "CREATE TABLE entry_labels (entry INTEGER PRIMARY KEY, label BLOB NOT NULL, salt BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX resolutions ON journal (resolves) WHERE resolves IS NOT NULL",
    "CREATE INDEX journal_by_account ON journal (account)",
    "CREATE INDEX repairs ON journal (entry) WHERE kind = 'clock'",
    # What somebody wrote beside an entry; apart from the journal, so that it can be erased, and sealed.
    "CREATE TABLE notes (entry INTEGER PRIMARY KEY, note TEXT NOT NULL, seal BLOB NOT NULL) STRICT",
    "CREATE INDEX reservations ON journal (expires) WHERE expires IS NOT NULL",
    # One answer for each idempotency key of a user: what was asked (a digest) and what was answered. `place` is the
    # entry that it answers for; of one that has none, and of the hole where an erased user's was, it counts from -1
    # down. Keys are hashes, so they come in no order; with the rows in order of arrival, only the narrow index takes
    # one page for each of them.
    """CREATE TABLE idempotency_records (
        user BLOB NOT NULL, key BLOB NOT NULL, place INTEGER NOT NULL, request BLOB NOT NULL, answer TEXT NOT NULL,
        seal BLOB NOT NULL, PRIMARY KEY (user, key)) STRICT""",
    # By which the answers that belong to no entry are found, most of them refusals, among all those that do.
    "CREATE INDEX answers_apart ON keys (place) WHERE place < 0",
    """CREATE TABLE collections (
        number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, fingerprint TEXT NOT NULL, definition TEXT NOT NULL,
        seal BLOB NOT NULL) STRICT""",
    # Where every partition ended at some time, with a keyed link over that and the checkpoint before.
    """CREATE TABLE checkpoints (
        number INTEGER PRIMARY KEY, at INTEGER NOT NULL, heads BLOB NOT NULL, link BLOB NOT NULL) STRICT""",
    # Administrative facts in order of their numbers, such as which keys were made; `made_by` is the key that did it.
    """CREATE TABLE admin_log (
        number INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
        made_by INTEGER NOT NULL) STRICT""",
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
    connection.execute("INSERT INTO meta VALUES ('book', ?)", (write_ledger_id(key, ledger_id),))
    end = PartitionHead()
    row = (0, *end.counters, counters_mac(key, end))
    connection.execute(f"INSERT INTO partitions VALUES ({', '.join('?' * len(row))})", row)


def lay_out(connection: sqlite3.Connection) -> None:
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
