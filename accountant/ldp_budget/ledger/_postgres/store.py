"""The ledger on PostgreSQL: transactions over lanes, each in two trips, repeated where the server asks for that.

A transaction locks the rows of its lanes and reads only then, in another statement: in READ COMMITTED a statement
sees what was committed when it began, so one that locked and read at once could decide on what was before the lock.
Who needs several lanes waits for them in ascending order; a group waits for its first lane, and takes of the others
what is free: so nobody waits in a circle. Nothing here is more than what every engine that speaks the protocol has:
no stored procedures, temporary tables, sequences, advisory locks or notifications.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from ..._files import alone_in
from ...errors import LdpBudgetError, LedgerError, LedgerMissing, NotSupported
from .. import _forks
from ..keys import check_kind, replace
from . import address, promises, schema, secret
from .ahead import Ahead
from .connections import WAIT_SECONDS, Connections, first_connection, of_driver, plain, roll_back
from .rows import END, PostgresRows, end_of
from .unit import Unit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from psycopg import Connection, Error

    from ..keys import Key
    from ..store import Hint, Lanes, Snapshot

T = TypeVar("T")

_LOCK = f"{END} WHERE lane = ANY(%b::int4[]) ORDER BY lane FOR UPDATE"
_LOCK_FREE = f"{_LOCK} SKIP LOCKED"
_AGAIN = ("40001", "40P01")  # serialization failure, deadlock: nothing was done
_UNPREPARED = ("26000", "42P05")  # the session is not the one that has prepared the statement
_BUSY = "55P03"
_LOST = ("08", "57P", "40003")  # the connection's end, the server's, and "statement completion unknown"
_NOTHING = "; nothing was charged"
_UNKNOWN = "; whether it was charged is not known, so ask again by the key"


class PostgresStore:
    """A store of many lanes on a server, or on whatever speaks its protocol and keeps a lane's rows together."""

    def __init__(
        self, ledger: str, *, create: bool, secret: bytes | None = None, rehearsal: bool | None = None
    ) -> None:
        self._address = address.read(ledger)
        self.name = self._address.name
        self.repeated: Counter[str] = Counter()
        self._counting = threading.Lock()
        with _forks.opening(self):
            self._connections = Connections(self._address)
        with _plainly(self.name), first_connection(self._address) as connection:
            self.key, self.lanes = self._open(connection, create, secret, rehearsal)
            promises.check_settings(connection, self._address)
            with first_connection(self._address) as other:
                promises.check_isolation(connection, other, self._address)

    def _open(
        self, connection: Connection, create: bool, given: bytes | None, rehearsal: bool | None
    ) -> tuple[Key, int]:
        if not self._is_made(connection):
            if not create:
                raise LedgerMissing(self.name)
            self._create(connection, given, rehearsal)
        meta: dict[str, bytes] = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        version = bytes(meta.get("schema", b"?")).decode("ascii", "replace")
        if version in schema.STEPS:
            version = self._bring_forward(connection, version)
        if version != str(schema.SCHEMA_VERSION):
            raise LedgerError(self.name, f"expected tables of version {schema.SCHEMA_VERSION}; found {version}")
        self.identity = bytes(meta["ledger"]).decode("ascii", "replace")
        key = check_kind(secret.read(self.identity, self._address), self.name, rehearsal)
        (lanes,) = connection.execute("SELECT count(*) FROM lanes").fetchone() or (0,)
        if bytes(meta.get("key_check", b"")) != schema.key_check(key, lanes):
            why = f"its key belongs to another ledger, or it was not made with the {lanes} lanes that it has"
            raise LedgerError(self.name, why)
        return key, int(lanes)

    @staticmethod
    def _is_made(connection: Connection) -> bool:
        found: Any = connection.execute("SELECT to_regclass('lanes') IS NOT NULL").fetchone()
        return bool(found[0])

    def _create(self, connection: Connection, given: bytes | None, rehearsal: bool | None) -> None:
        """Make the tables and the key. Of several who do so at the same time one does, and the others find it.

        By which error the server tells the others depends on how far the one had come: a table, a type of the same
        name, a row of the server's own catalogue.
        """
        from psycopg import errors

        ledger = secrets.token_hex(8)
        promises.check_settings(connection, self._address)
        key = secret.make(ledger, self._address, given, rehearsal)
        try:
            with connection.transaction():
                for statement in schema.TABLES:
                    connection.execute(statement)
                schema.fill(connection, key, ledger, self._address.lanes)
        except errors.Error as error:
            if self._is_made(connection):
                return
            raise LedgerError(self.name, f"its tables cannot be made: {plain(error)}") from error

    def _bring_forward(self, connection: Connection, found: str) -> str:
        """Bring older tables to what they are today, and return that version; who comes second waits."""
        from psycopg import errors

        try:
            with connection.transaction():
                connection.execute("LOCK TABLE lanes IN ACCESS EXCLUSIVE MODE")
                row: Any = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
                for statement in schema.STEPS.get(bytes(row[0]).decode(), ()):
                    connection.execute(statement)
        except errors.Error as error:
            why = f"its tables are of version {found}; let their owner open it once, and grant the rights to them"
            raise LedgerError(self.name, f"{why} anew: {plain(error)}") from error
        return str(schema.SCHEMA_VERSION)

    # -- transactions -------------------------------------------------------------------------------------

    def run(self, work: Callable[[Lanes], T], lanes: Sequence[int] = (0,), hint: Hint | None = None) -> T:
        """Do `work` with the locks of lanes; all of it happens or nothing."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return self._run_once(work, lanes, hint)
            except _Again as again:
                if again.code in _UNPREPARED:
                    self._connections.prepares = False
                with self._counting:
                    self.repeated[again.code] += 1
                if time.monotonic() > deadline:
                    raise LedgerError(self.name, f"{again}{_NOTHING}") from again

    def _run_once(self, work: Callable[[Lanes], T], lanes: Sequence[int], hint: Hint | None) -> T:
        attempt = _Attempt()
        with self._connections.lend() as connection:
            connection.add_notice_handler(attempt.notice)
            try:
                result = self._transact(connection, attempt, work, lanes, hint)
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
        work: Callable[[Lanes], T],
        lanes: Sequence[int],
        hint: Hint | None,
    ) -> T:
        with connection.pipeline() as pipeline:
            unit = Unit(connection)
            unit.run("BEGIN ISOLATION LEVEL READ COMMITTED")
            # Of the transaction, not of the session: behind a pooler that is another one each time.
            unit.run(f"SET LOCAL lock_timeout = '{WAIT_SECONDS:g}s'")
            # So is the server; what it promises is asked of the session that is to commit.
            promised = promises.ask_settings(unit) if self._connections.is_pooled(connection) else None
            some = hint is not None and hint.some
            needed = lanes[:1] if some else lanes
            locked = unit.run(_LOCK, (list(needed),))
            free = unit.run(_LOCK_FREE, (list(lanes[1:]),)) if some else ()
            ahead = None if hint is None else Ahead(unit, hint)
            if promised is not None:
                promises.judge_settings(promised, self._address)
            ends = {row[0]: end_of(row) for row in chain(locked, free)}
            gone = {*needed} - ends.keys()
            if gone:
                raise LedgerError(self.name, f"lane {min(gone)} is not there{_NOTHING}")
            if ahead is not None:
                ahead.read()
            result = work({lane: PostgresRows(unit, lane, end, ahead) for lane, end in ends.items()})
            unit.flush()
            attempt.commits = True
            attempt.commit = connection.execute("COMMIT")
            pipeline.sync()
        return result

    def _told(self, error: Error, attempt: _Attempt, connection: Connection) -> BaseException:
        """What a caller is told of an error; `_Again` where the work is to be repeated."""
        code = error.sqlstate or ""
        roll_back(connection)
        # An error that the server has told came before the commit, or in its place.
        if attempt.commits and (connection.closed or not code or code.startswith(_LOST)):
            return LedgerError(self.name, f"{plain(error)}{_UNKNOWN}", unknown=True)
        if code in (*_AGAIN, *_UNPREPARED) or code.startswith(_LOST) or connection.closed:
            return _Again(code or "connection", plain(error))
        if code == _BUSY:
            return LedgerError(self.name, f"it is busy: others have written to it for {WAIT_SECONDS:g} s{_NOTHING}")
        return LedgerError(self.name, f"{plain(error)}{_NOTHING}")

    @contextmanager
    def snapshot(self, lane: int = 0) -> Iterator[Snapshot]:
        """One moment of a lane."""
        with self._connections.lend() as connection:
            try:
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                unit = Unit(connection)
                row: Any = unit.run(f"{END} WHERE lane = %s", (lane,)).fetchone()
                if row is None:
                    raise LedgerError(self.name, f"lane {lane} is not there")
                yield PostgresRows(unit, lane, end_of(row))
                connection.execute("COMMIT")
            except Exception as error:
                servers = of_driver(error, connection)
                if servers is None:
                    raise
                if servers.sqlstate in _UNPREPARED:
                    self._connections.prepares = False
                raise LedgerError(self.name, plain(servers)) from error

    def entries(self) -> Sequence[int]:
        """The number of the newest entry of each lane, by one statement."""
        with _plainly(self.name), self._connections.lend() as connection:
            return [row[0] for row in connection.execute("SELECT entry FROM lanes ORDER BY lane").fetchall()]

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key lies where it is looked for."""
        self._found_key()

    def _found_key(self) -> Key:
        found = secret.read(self.identity, self._address)
        if not found.replaces(self.key):
            raise LedgerError(self.name, f"another key lies in {secret.place(self.identity)}")
        return found

    def look_at_key(self) -> None:
        """Let the key learn what is in its file now."""
        self.key.learn(self._found_key())

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Put in its file what is made of the key that lies there; on this machine one does so at a time."""
        place = secret.place(self.identity)
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
