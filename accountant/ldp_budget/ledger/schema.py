"""The tables of a ledger, and how an older ledger is brought forward.

It is an ordinary SQLite file: sqlite-utils and Datasette open it. Amounts are whole units (see `amounts`), NULL where
unbounded, which SQL addition absorbs; times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import sqlite3

# Kept in PRAGMA user_version, so that opening a current ledger needs no look at its tables.
SCHEMA_VERSION = 1
# "LdpB": tells a ledger from any other SQLite file.
APPLICATION_ID = 0x4C647042

_TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY) STRICT",
    # A user is known by a keyed hash only.
    "CREATE TABLE users (account INTEGER PRIMARY KEY, hash BLOB UNIQUE) STRICT",
    # What a user was charged in one window; window 0 is the lifetime, `windows` says the others.
    """CREATE TABLE accounts (
        account INTEGER NOT NULL, window INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        PRIMARY KEY (account, window)) STRICT, WITHOUT ROWID""",
    # The periods for which windows are kept, from the first policy that limits them on.
    "CREATE TABLE periods (period TEXT PRIMARY KEY) STRICT",
    # A mechanism with its guarantee and the cost of one report, self-contained.
    """CREATE TABLE charges (
        charge INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, mechanism TEXT NOT NULL,
        declared TEXT NOT NULL, guarantee TEXT NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        UNIQUE (fingerprint, guarantee)) STRICT""",
    """CREATE TABLE policies (
        policy INTEGER PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL,
        created_at INTEGER NOT NULL, definition TEXT NOT NULL, UNIQUE (name, version)) STRICT""",
    # Append-only. The four amounts are those of all the entry's reports together.
    """CREATE TABLE journal (
        entry INTEGER PRIMARY KEY, at INTEGER NOT NULL, account INTEGER NOT NULL,
        charge INTEGER NOT NULL, policy INTEGER NOT NULL, reports INTEGER NOT NULL,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER) STRICT""",
    # One answer for each idempotency key: what was asked (a digest) and what was answered.
    """CREATE TABLE keys (
        key BLOB PRIMARY KEY, user BLOB NOT NULL, request BLOB NOT NULL, answer TEXT NOT NULL)
        STRICT, WITHOUT ROWID""",
    """CREATE TABLE collections (
        name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, definition TEXT NOT NULL) STRICT""",
    "INSERT INTO periods VALUES ('lifetime')",
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the ledger's tables to `SCHEMA_VERSION`; each step is one transaction. Needs sqlite-utils."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations("ldp_budget")

    @migrations()
    def v1_tables(database: Database) -> None:
        for statement in _TABLES:
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    migrations.apply(Database(connection))
