"""The ledger in one SQLite file: opening it safely, and the few statements a charge needs."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..amounts import LARGEST, Costs
from ..errors import LedgerError
from . import keyfile
from .schema import APPLICATION_ID, SCHEMA_VERSION, migrate

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = ":memory:"
BUSY_SECONDS = 30

# Connections that came with a fork: kept, and never used or closed.
_OF_PARENTS: list[sqlite3.Connection | None] = []

_AMOUNTS = "epsilon, delta, rho, mu_squared"


class StoredAnswer(NamedTuple):
    """What a key was used for, and what was answered."""

    request: bytes
    answer: str


class SqliteLedger:
    """The store behind an accountant. Safe to share between threads and to use after a fork."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        # Absolute, as the process may change its folder before it opens the ledger again after a fork.
        self.path = MEMORY if str(path) == MEMORY else str(Path(path).absolute())
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._pid = os.getpid()
        if self.path == MEMORY:
            self.key = keyfile.Key(keyfile.new_key())
            self._connection = _connect(MEMORY)
            migrate(self._connection)
            return
        file = Path(self.path)
        if create and not file.exists() and not keyfile.key_path(file).exists():
            _create(file)
        _require_both(file)
        self.key = keyfile.read_key(file)
        self._connection = self._open()

    def close(self) -> None:
        """Close the connection; the ledger can be used no more."""
        with self._own_lock():
            if self._connection is not None:
                self._connection.close()
            self._connection, self._closed = None, True

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that holds the ledger's write lock from its start; all of it happens or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that sees one moment of the ledger and writes nothing."""
        with self._transaction("BEGIN") as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        with self._own_lock():
            connection = self._current()
            try:
                connection.execute(begin)
                try:
                    yield Transaction(connection, self.key)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, UnicodeEncodeError) as error:
                raise LedgerError(self.path, _reason(error)) from error

    def _own_lock(self) -> threading.RLock:
        """This process's lock. After a fork another thread of the parent may hold its lock for ever."""
        if self._pid != os.getpid():
            # Closing the parent's connection, or dropping it, would meddle with what the parent is writing.
            _OF_PARENTS.append(self._connection)
            self._pid, self._lock, self._connection = os.getpid(), threading.RLock(), None
        return self._lock

    def _current(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(self.path, "it is closed")
        if self._connection is None:
            if self.path == MEMORY:
                raise LedgerError(MEMORY, "a ledger in memory does not survive a fork")
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        try:
            _check(connection, self.path)
            _check_key(connection, self.key, self.path)
            _make_durable(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, sqlite3.Error):
                raise LedgerError(self.path, _reason(error)) from None
            raise
        return connection


class Transaction:
    """The statements of one transaction. What it reads cannot change before it ends."""

    def __init__(self, connection: sqlite3.Connection, key: keyfile.Key) -> None:
        self._connection = connection
        self._execute = connection.execute
        self.key = key

    # -- time and keys ----------------------------------------------------------------------------------

    def last_entry_at(self) -> int | None:
        """When the newest journal entry was written, in microseconds."""
        row = self._execute("SELECT at FROM journal ORDER BY entry DESC LIMIT 1").fetchone()
        return None if row is None else row[0]

    def answer_to(self, key: bytes) -> StoredAnswer | None:
        """What was asked and answered under an idempotency key."""
        row = self._execute("SELECT request, answer FROM keys WHERE key = ?", (key,)).fetchone()
        return None if row is None else StoredAnswer(*row)

    def store_answer(self, key: bytes, user: bytes, request: bytes, answer: str) -> None:
        """Bind an answer to its key, for as long as the account lives."""
        self._execute("INSERT INTO keys VALUES (?, ?, ?, ?)", (key, user, request, answer))

    # -- accounts ---------------------------------------------------------------------------------------

    def account(self, user: bytes) -> int | None:
        """The number of a user's account; None before the first charge."""
        row = self._execute("SELECT account FROM users WHERE hash = ?", (user,)).fetchone()
        return None if row is None else row[0]

    def open_account(self, user: bytes) -> int:
        """Give a new user an account."""
        account = self._execute("INSERT INTO users (hash) VALUES (?)", (user,)).lastrowid
        assert account is not None
        return account

    def spent(self, account: int | None, window: int) -> Costs:
        """What was charged to an account in a window."""
        row = self._execute(
            f"SELECT {_AMOUNTS} FROM accounts WHERE account = ? AND window = ?", (account, window)
        ).fetchone()
        return Costs(0, 0, 0, 0) if row is None else Costs(*row)

    def set_spent(self, account: int, window: int, costs: Costs) -> None:
        """Replace what was charged to an account in a window."""
        self._execute("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?)", (account, window, *costs))

    def periods(self) -> list[str]:
        """The periods for which windows are kept."""
        return [row[0] for row in self._execute("SELECT period FROM periods ORDER BY period")]

    def keep_period(self, period: str, window: int, starts_at: int) -> None:
        """Keep windows of `period` from now on; its current one is filled from the journal."""
        self._execute("INSERT INTO periods VALUES (?)", (period,))
        sums = ", ".join(_sum_or_null(name) for name in Costs._fields)
        self._execute(
            f"INSERT INTO accounts SELECT account, ?, {sums} FROM journal WHERE at >= ? GROUP BY account",
            (window, starts_at),
        )

    # -- charges and the journal ------------------------------------------------------------------------

    def charge(self, fingerprint: str, mechanism: str, declared: str, guarantee: str, costs: Costs) -> int:
        """The number of a stored charge, stored first if it is new."""
        known = self.known_charge(fingerprint, guarantee)
        if known is not None:
            return known
        number = self._execute(
            f"INSERT INTO charges (fingerprint, mechanism, declared, guarantee, {_AMOUNTS})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (fingerprint, mechanism, declared, guarantee, *costs),
        ).lastrowid
        assert number is not None
        return number

    def known_charge(self, fingerprint: str, guarantee: str) -> int | None:
        """The number of a charge that is stored already."""
        row = self._execute(
            "SELECT charge FROM charges WHERE fingerprint = ? AND guarantee = ?", (fingerprint, guarantee)
        ).fetchone()
        return None if row is None else row[0]

    def journal(self, at: int, account: int, charge: int, policy: int, reports: int, costs: Costs) -> int:
        """Append one entry; returns its number."""
        entry = self._execute(
            f"INSERT INTO journal (at, account, charge, policy, reports, {_AMOUNTS})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (at, account, charge, policy, reports, *costs),
        ).lastrowid
        assert entry is not None
        return entry

    # -- policies and collections -----------------------------------------------------------------------

    def policy(self, name: str) -> tuple[int, str] | None:
        """The number and definition of the newest version of a policy."""
        row = self._execute(
            "SELECT policy, definition FROM policies WHERE name = ? ORDER BY version DESC LIMIT 1", (name,)
        ).fetchone()
        return None if row is None else (row[0], row[1])

    def policies(self) -> list[str]:
        """The definitions of the newest versions of all policies, by name."""
        rows = self._execute(
            "SELECT definition FROM policies p WHERE version ="
            " (SELECT max(version) FROM policies WHERE name = p.name) ORDER BY name"
        )
        return [row[0] for row in rows]

    def add_policy(self, name: str, version: int, at: int, definition: str) -> None:
        """Store a version of a policy."""
        self._execute(
            "INSERT INTO policies (name, version, created_at, definition) VALUES (?, ?, ?, ?)",
            (name, version, at, definition),
        )

    def charged_versions(self, name: str) -> list[str]:
        """The definitions of the versions of a policy under which somebody was charged, oldest first."""
        rows = self._execute(
            "SELECT definition FROM policies p WHERE name = ?"
            " AND EXISTS (SELECT 1 FROM journal WHERE policy = p.policy) ORDER BY version",
            (name,),
        )
        return [row[0] for row in rows]

    def collection(self, name: str) -> str | None:
        """The definition of a collection."""
        row = self._execute("SELECT definition FROM collections WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def collections(self) -> list[str]:
        """The definitions of all collections, by name."""
        return [row[0] for row in self._execute("SELECT definition FROM collections ORDER BY name")]

    def add_collection(self, name: str, fingerprint: str, definition: str) -> None:
        """Store a collection; it never changes."""
        self._execute("INSERT INTO collections VALUES (?, ?, ?)", (name, fingerprint, definition))


def _sum_or_null(column: str) -> str:
    """The sum of a column; NULL where any of it is, or where it grows too large to count."""
    # sum() fails where it leaves 64 bits; of the halves neither does, and their sum turns into a large real.
    total = f"(sum({column} >> 32) * 4294967296 + sum({column} & 4294967295))"
    return f"CASE WHEN count({column}) < count(*) OR {total} > {LARGEST} THEN NULL ELSE {total} END"


def _create(file: Path) -> None:
    """Make key and ledger, unless somebody else just has; the ledger appears whole, under its name, last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    draft = file.with_name(f"{file.name}.new")
    try:
        with keyfile.making_in(file.parent):
            if file.exists() or keyfile.key_path(file).exists():
                return
            # What a crash may have left was never a ledger: it has no key.
            draft.unlink(missing_ok=True)
            secret = keyfile.new_key()
            _write_draft(draft, keyfile.Key(secret))
            keyfile.write_private(keyfile.key_path(file), secret)
            os.rename(draft, file)
            keyfile.sync_directory(file.parent)
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be created: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(str(file), f"it cannot be created: {error}") from None


def _write_draft(draft: Path, key: keyfile.Key) -> None:
    keyfile.write_private(draft, b"")
    connection = _connect(str(draft))
    try:
        # The journal mode stays in the file, so whoever opens it need not change it. Closing leaves one whole file.
        _make_durable(connection)
        migrate(connection)
        connection.execute("INSERT INTO meta VALUES ('key_check', ?)", (key.hash("check", ""),))
    finally:
        connection.close()


def _require_both(file: Path) -> None:
    """Ledger and key must both be there."""
    key = keyfile.key_path(file)
    has_ledger, has_key = file.exists(), key.exists()
    if has_key and not has_ledger:
        with suppress(OSError), keyfile.making_in(file.parent):  # somebody may be between the two just now
            has_ledger = file.exists()
    if not has_ledger and not has_key:
        raise LedgerError(str(file), "there is none; `ldp-budget policy set` or `ldp-budget ledger init` makes one")
    if not has_ledger:
        raise LedgerError(str(file), f"its key {key} is there but the ledger is missing; restore it from a backup")
    if not has_key:
        raise LedgerError(str(file), f"its key {key} is missing; restore it from a backup")


def _connect(path: str) -> sqlite3.Connection:
    uri = path if path == MEMORY else Path(path).absolute().as_uri() + "?mode=rw"
    try:
        return sqlite3.connect(
            uri, uri=path != MEMORY, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise LedgerError(path, f"it cannot be opened: {error}") from None


def _make_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _check(connection: sqlite3.Connection, path: str) -> None:
    """That this is a ledger of a version this package understands; an older one is brought forward.

    It only reads until it knows that it is a ledger: another program's file is left as it is.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise LedgerError(path, "this is not an ldp-budget ledger")
    if version > SCHEMA_VERSION:
        raise LedgerError(path, f"it was written by a newer version (schema {version}, known {SCHEMA_VERSION})")
    _check_size(connection, path)
    if version < SCHEMA_VERSION:
        migrate(connection)


def _check_size(connection: sqlite3.Connection, path: str) -> None:
    """SQLite reads a last page that was cut off as zeros; a lost account would look like a new one."""
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    log = Path(f"{path}-wal")
    recovers = log.exists() and log.stat().st_size > 0
    if os.path.getsize(path) % page_bytes and not recovers:
        raise LedgerError(path, "it is truncated; restore it from a backup")


def _check_key(connection: sqlite3.Connection, key: keyfile.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != key.hash("check", ""):
        raise LedgerError(path, f"its key {keyfile.key_path(Path(path))} belongs to another ledger")


def _reason(error: Exception) -> str:
    if "locked" in str(error) or "busy" in str(error):
        return f"another process kept it locked for {BUSY_SECONDS} s; nothing was charged"
    return f"{error}; nothing was charged"
