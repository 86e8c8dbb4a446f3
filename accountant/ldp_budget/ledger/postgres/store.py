"""Where the secret of a ledger on a server lies: never there, or the server could link its users to their names.

The ledger on PostgreSQL: transactions over partitions, each in three trips, repeated where the server asks for that.

The first takes the locks and reads, the second writes, and the third commits once every row is counted.

A transaction locks the rows of its partitions and reads only then, in another statement: in READ COMMITTED a statement
sees what was committed when it began, so one that locked and read at once could decide on what was before the lock.
Who needs several partitions waits for them in ascending order; a group waits for its first partition, and takes of the others
what is free: so nobody waits in a circle. Nothing here is more than what every engine that speaks the protocol has:
no stored procedures, temporary tables, sequences, advisory locks or notifications.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import threading
import time
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..._files import alone_in, application_folder, create_private
from ...errors import LdpBudgetError, LedgerError, LedgerMissing, NotSupported
from .. import group_commit
from ..keyfile import Key, check_kind, new_key, new_ledger_id, read_key_file, read_ledger_id, replace
from ..store import UnstorableError
from . import pool, schema
from . import schema as catalog
from .pool import WAIT_SECONDS, Connections, first_connection, of_driver, plain, roll_back
from .queries import END, PostgresRows, end_of
from .write_buffer import PrefetchedRows, Unit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from psycopg import Connection, Cursor, Error

    from ..keyfile import Key
    from ..store import Partitions, Prefetch, Snapshot
    from .pool import Address


VARIABLE = "LDP_BUDGET_KEY"


def key_file_path(ledger: str) -> Path:
    """The key file of a ledger, by the name that it gave itself: that of the variable, or in the user's folder."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else application_folder() / "keys" / f"{ledger}.key"


def make(ledger: str, address: Address, given: bytes | None = None, sandbox: bool | None = None) -> Key:
    """The key of a ledger that is being made: that which the variable names, if it is there, else a new file.

    `given`: that of the ledger which is to be copied there.
    """
    file = key_file_path(ledger)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone_in(file.parent):  # another may be writing the same one
            if file.exists():
                key = read(ledger, address)
                if given not in (None, key.secret):
                    why = f"expected the key of the ledger that is copied to it in {file}; found another key"
                    raise LedgerError(address.name, why)
                return key if given else check_kind(key, address.name, bool(sandbox))
            secret = given or new_key(sandbox)
            create_private(file, secret)
    except OSError as error:
        raise LedgerError(address.name, f"its key {file} cannot be written: {error.strerror}") from None
    return Key(secret)


def read(ledger: str, address: Address) -> Key:
    """The key of a ledger that is there. Raises `LedgerError`."""
    file = key_file_path(ledger)
    hint = f"; copy it there from the machine that made the ledger, or let {VARIABLE} name the file"
    key = read_key_file(file, address.name, hint)
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise LedgerError(address.name, f"others than its owner have rights to its key; type: chmod 600 {file}")
    return key


T = TypeVar("T")

_LOCK = f"{END} WHERE partition = ANY(%b::int4[]) ORDER BY partition FOR UPDATE"
_LOCK_FREE = f"{_LOCK} SKIP LOCKED"
_AGAIN = ("40001", "40P01")  # serialization failure, deadlock: nothing was done
_UNPREPARED = ("26000", "42P05")  # the session is not the one that has prepared the statement
_BUSY = "55P03"
_NAME = re.compile(rb"[0-9a-f]{16}")
"""The name that a ledger gives itself; that of a file in the folder of keys."""
_VALUES = ("22", "54")  # data exceptions, and limits of the program, such as the longest row of an index
_TABLES_SECONDS = 5.0
"""How old the last look at the server's catalogue may be when a transaction begins."""
_LOOK_SECONDS = 5.0
"""How long a server may take to say where its partitions end."""
_LOST = ("08", "57P", "40003")  # the connection's end, the server's, and "statement completion unknown"
_NOTHING = "; nothing was charged"
_UNKNOWN = "; whether it was charged is not known, so ask again by the key"


class PostgresStore:
    """A store of many partitions on a server, or on whatever speaks its protocol and keeps a partition's rows together."""

    def __init__(
        self,
        ledger: str,
        *,
        create: bool,
        secret: bytes | None = None,
        sandbox: bool | None = None,
        ledger_id: str | None = None,
    ) -> None:
        self._address = pool.read(ledger)
        self.name = self._address.name
        self.repeated: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._tables_checked = -_TABLES_SECONDS
        with group_commit.opening(self):
            self._connections = Connections(self._address, self._check_tables)
        with _plainly(self.name), first_connection(self._address) as connection:
            pool.check_settings(connection, self._address)
            self._schema = catalog.find_schema(connection)
            if not self._schema:
                why = "no schema of the role's search_path is there. Create one, or put options=-csearch_path%3DNAME"
                raise LedgerError(self.name, f"{why} into the address")
            self.key, self.partitions = self._open(connection, create, secret, sandbox, ledger_id)
            self._check_tables(connection)
            with first_connection(self._address) as other:
                pool.check_isolation(connection, other, self._schema, self._address)

    def _open(
        self, connection: Connection, create: bool, given: bytes | None, sandbox: bool | None, ledger_id: str | None
    ) -> tuple[Key, int]:
        if not self._is_made(connection):
            if not create:
                raise LedgerMissing(self.name)
            self._create(connection, given, sandbox, new_ledger_id() if ledger_id is None else ledger_id)
        with self._looking(connection):
            meta: dict[str, bytes] = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        version = bytes(meta.get("schema", b"?")).decode("ascii", "replace")
        if version != str(schema.SCHEMA_VERSION):
            raise LedgerError(self.name, f"expected tables of version {schema.SCHEMA_VERSION}; found {version}")
        if not {"ledger", "key_check"} <= meta.keys() or not _NAME.fullmatch(bytes(meta["ledger"])):
            why = (
                "its table meta was changed: it has no name of the ledger, or no check of its key. Restore the table"
            )
            raise LedgerError(self.name, f"{why} from a backup")
        self.identity = bytes(meta["ledger"]).decode("ascii")
        key = check_kind(read(self.identity, self._address), self.name, sandbox)
        with self._looking(connection):
            (partitions,) = connection.execute("SELECT count(*) FROM partitions").fetchone() or (0,)
        if bytes(meta["key_check"]) != schema.key_check(key, partitions):
            why = (
                f"its key belongs to another ledger, or it was not made with the {partitions} partitions that it has"
            )
            raise LedgerError(self.name, why)
        found = read_ledger_id(key, meta.get("ledger_id"))
        if found is None:
            raise LedgerError(self.name, "its table meta was changed: the id in it. Restore the table from a backup")
        key.set_ledger_id(found)
        return key, int(partitions)

    def _is_made(self, connection: Connection) -> bool:
        with self._looking(connection):
            found: Any = connection.execute("SELECT to_regclass('partitions') IS NOT NULL").fetchone()
        return bool(found[0])

    @contextmanager
    def _looking(self, connection: Connection) -> Iterator[None]:
        """A transaction in which names are looked up where the ledger is."""
        with connection.transaction():
            connection.execute(catalog.set_path(self._schema))  # type: ignore[call-overload, unused-ignore]
            yield

    def _check_tables(self, connection: Connection) -> None:
        """That the tables are those that the ledger makes. Raises `LedgerError`."""
        with connection.transaction():
            catalog.check_catalog(catalog.ask_catalog(Unit(connection, self._schema)), self.name)
        self._tables_checked = time.monotonic()

    def _create(self, connection: Connection, given: bytes | None, sandbox: bool | None, ledger_id: str) -> None:
        """Make the tables and the key. Of several who do so at the same time one does, and the others find it.

        By which error the server tells the others depends on how far the one had come: a table, a type of the same
        name, a row of the server's own catalogue.
        """
        from psycopg import errors

        ledger = secrets.token_hex(8)
        key = make(ledger, self._address, given, sandbox)
        try:
            with self._looking(connection):
                for statement in schema.TABLES:
                    connection.execute(statement)
                schema.fill(connection, key, ledger, self._address.partitions, ledger_id)
        except errors.Error as error:
            if self._is_made(connection):
                return
            raise LedgerError(self.name, f"its tables cannot be made: {plain(error)}") from error

    # -- transactions -------------------------------------------------------------------------------------

    def run(
        self, work: Callable[[Partitions], T], partitions: Sequence[int] = (0,), hint: Prefetch | None = None
    ) -> T:
        """Do `work` with the locks of partitions; all of it happens or nothing."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return self._run_once(work, partitions, hint)
            except _Again as again:
                if again.code in _UNPREPARED:
                    self._connections.prepares = False
                with self._counting:
                    self.repeated[again.code] += 1
                if time.monotonic() > deadline:
                    raise LedgerError(self.name, f"{again}{_NOTHING}") from again

    def _run_once(self, work: Callable[[Partitions], T], partitions: Sequence[int], hint: Prefetch | None) -> T:
        attempt = _Attempt()
        with self._connections.lend() as connection:
            connection.add_notice_handler(attempt.notice)
            try:
                result = self._transact(connection, attempt, work, partitions, hint)
            except BaseException as error:
                # A group of works says by another error that one of them had one.
                servers = of_driver(error, connection)
                if servers is not None:
                    raise self._told(servers, attempt, connection) from servers
                raise
            finally:
                connection.remove_notice_handler(attempt.notice)
        attempt.check(self.name)
        return result

    def _transact(
        self,
        connection: Connection,
        attempt: _Attempt,
        work: Callable[[Partitions], T],
        partitions: Sequence[int],
        hint: Prefetch | None,
    ) -> T:
        with connection.pipeline() as pipeline:
            unit = Unit(connection, self._schema)
            unit.run("BEGIN ISOLATION LEVEL READ COMMITTED")
            # Behind a pooler the server may be another one each time: the session that is to commit is asked.
            promised = pool.ask_settings(unit) if self._connections.is_pooled(connection) else None
            tables = catalog.ask_catalog(unit) if self._tables_are_due() else None
            # Of the transaction, not of the session: behind a pooler that is another one, too.
            settled = pool.settle(unit, WAIT_SECONDS)
            some = hint is not None and hint.some
            needed = partitions[:1] if some else partitions
            locked = unit.run(_LOCK, (list(needed),))
            free = unit.run(_LOCK_FREE, (list(partitions[1:]),)) if some else ()
            ahead = None if hint is None else PrefetchedRows(unit, hint)
            if promised is not None:
                pool.judge_settings(promised, self._address)
            if tables is not None:
                self._judge_tables(tables)
            pool.judge_settled(settled, self._address)
            ends = {row[0]: end_of(row) for row in chain(locked, free)}
            gone = {*needed} - ends.keys()
            if gone:
                raise LedgerError(self.name, f"partition {min(gone)} is not there{_NOTHING}")
            if ahead is not None:
                ahead.read()
            result = work({partition: PostgresRows(unit, partition, end, ahead) for partition, end in ends.items()})
            unit.flush()
            if unit.has_written:
                pipeline.sync()
                self._check_written(unit)
            attempt.commits = True
            attempt.commit = connection.execute("COMMIT")
            pipeline.sync()
        return result

    def _tables_are_due(self) -> bool:
        return time.monotonic() - self._tables_checked >= _TABLES_SECONDS

    def _judge_tables(self, answer: Cursor[Any]) -> None:
        catalog.check_catalog(answer, self.name, _NOTHING)
        self._tables_checked = time.monotonic()

    def _check_written(self, unit: Unit) -> None:
        """That each statement wrote every row that it was given. Raises `LedgerError` before the commit."""
        counts = unit.miscounted()
        if counts is not None:
            why = (
                f"the server wrote {counts[0]} of {counts[1]} rows and reported no error; look for triggers and rules"
            )
            raise LedgerError(self.name, f"{why} on its tables{_NOTHING}")

    def _told(self, error: Error, attempt: _Attempt, connection: Connection) -> BaseException:
        """What a caller is told of an error; `_Again` where the work is to be repeated."""
        code = error.sqlstate or ""
        roll_back(connection)
        # An error that the server has told came before the commit, or in its place.
        if attempt.commits and (connection.closed or not code or code.startswith(_LOST)):
            return LedgerError(self.name, f"{plain(error)}{_UNKNOWN}", unknown=True)
        if code in (*_AGAIN, *_UNPREPARED) or code.startswith(_LOST) or connection.closed:
            return _Again(code or "connection", plain(error))
        if _is_of_values(error):
            return UnstorableError(self.name, f"{plain(error)}{_NOTHING}")
        if code == _BUSY:
            return LedgerError(self.name, f"it is busy: others have written to it for {WAIT_SECONDS:g} s{_NOTHING}")
        return LedgerError(self.name, f"{plain(error)}{_NOTHING}")

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        """One moment of a partition."""
        with self._connections.lend() as connection:
            try:
                begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {catalog.set_path(self._schema)}"
                connection.execute(begin, prepare=False)  # type: ignore[call-overload, unused-ignore]
                unit = Unit(connection, self._schema)
                row: Any = unit.run(f"{END} WHERE partition = %s", (partition,)).fetchone()
                if row is None:
                    raise LedgerError(self.name, f"partition {partition} is not there")
                yield PostgresRows(unit, partition, end_of(row))
                connection.execute("COMMIT")
            except Exception as error:
                servers = of_driver(error, connection)
                if servers is None:
                    raise
                if servers.sqlstate in _UNPREPARED:
                    self._connections.prepares = False
                raise LedgerError(self.name, plain(servers)) from error

    def entries(self) -> Sequence[int]:
        """The number of the newest entry of each partition, in one trip, of a server that answers soon."""
        with _plainly(self.name), self._connections.lend(_LOOK_SECONDS) as connection, connection.pipeline():
            unit = Unit(connection, self._schema)
            unit.run("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
            tables = catalog.ask_catalog(unit) if self._tables_are_due() else None
            unit.run(catalog.set_path(self._schema))
            partitions = unit.run("SELECT entry FROM partitions ORDER BY partition")
            unit.run("COMMIT")
            if tables is not None:
                self._judge_tables(tables)
            return [row[0] for row in partitions.fetchall()]

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key lies where it is looked for."""
        self._found_key()

    def check_writable(self) -> None:
        """Nothing is looked at: the server says so when something is written."""

    def _found_key(self) -> Key:
        found = read(self.identity, self._address)
        if not found.replaces(self.key):
            raise LedgerError(self.name, f"another key lies in {key_file_path(self.identity)}")
        return found

    def look_at_key(self) -> None:
        """Let the key learn what is in its file now."""
        self.key.learn(self._found_key())

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Put in its file what is made of the key that lies there; on this machine one does so at a time."""
        place = key_file_path(self.identity)
        with alone_in(place.parent):
            self.look_at_key()
            replace(place, self.name, change(self.key))
            self.look_at_key()

    def clear_log(self) -> bool:
        """Nothing is to be done: what was deleted goes with the server's own house-keeping."""
        return True

    def backup(self, path: str | os.PathLike[str], check: Callable[[Snapshot], None]) -> None:
        """Raises `NotSupported`: a server is backed up by its own tools."""
        raise NotSupported(f"{self.name} is backed up by its server's own tools, such as pg_basebackup")

    def close(self) -> None:
        """Close its connections."""
        self._connections.close()

    # -- forks --------------------------------------------------------------------------------------------

    def hold(self, wait: bool) -> bool:
        """Nothing of it is in the way of a fork."""
        return True

    def let_go(self) -> None: ...

    def before_fork(self) -> None: ...

    def after_fork_in_child(self) -> None:
        """Connect anew when it is needed, and count anew."""
        self._connections.after_fork_in_child()
        self.repeated, self._counting = Counter(), threading.Lock()


@contextmanager
def _plainly(ledger: str) -> Iterator[None]:
    """Tell an error of the server as one of the ledger, where nothing can have been charged."""
    try:
        yield
    except LdpBudgetError:
        raise
    except Exception as error:
        from psycopg import Error

        if isinstance(error, Error):
            raise LedgerError(ledger, plain(error)) from error
        raise


def _is_of_values(error: Error) -> bool:
    """Whether the values of a statement caused an error, which the server found or its library."""
    from psycopg import DataError

    return isinstance(error, DataError) or (error.sqlstate or "").startswith(_VALUES)


class _Again(Exception):  # noqa: N818
    """Nothing was done, and the work is to be repeated."""

    def __init__(self, code: str, why: str) -> None:
        self.code = code
        super().__init__(why)


class _Attempt:
    """How far one attempt has come."""

    def __init__(self) -> None:
        self.commits = False
        """From here on nobody knows what has become of it, until the server says so."""
        self.commit: Any = None
        self._warnings: list[str] = []

    def notice(self, diagnostic: Any) -> None:
        if self.commits and diagnostic.sqlstate == "01000":
            self._warnings.append(diagnostic.message_primary or "a warning")

    def check(self, ledger: str) -> None:
        """Raise `LedgerError` where the server does not simply say that it was committed.

        A commit that is cancelled while it waits for a standby succeeds, with a warning.
        """
        if self._warnings:
            raise LedgerError(ledger, f"{self._warnings[0]}{_UNKNOWN}", unknown=True)
        if self.commit.statusmessage != "COMMIT":
            raise LedgerError(ledger, f"the server answered {self.commit.statusmessage} to COMMIT{_NOTHING}")
