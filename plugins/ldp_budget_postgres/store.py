"""Store of a ledger on PostgreSQL: key files and transactions over partitions.

**Key files.** The key of a ledger is never on its server: with the key, the server could link user hashes to names.

**Transactions.** A transaction takes three round trips, and is repeated if the server asks for that. The first trip
takes the locks and reads, the second writes, and the third commits after the row counts of all writes are checked.

A transaction locks the rows of its partitions, and reads them in a later statement. In READ COMMITTED, a statement
sees what was committed when the statement began. So a statement that locked and read together could decide on data
from before the lock. A transaction that needs several partitions waits for them in ascending order. A group waits for
its first partition only, and takes those of the others that are free. So there is no deadlock. The store uses only
what every engine of this protocol has: no stored procedures, temporary tables, sequences, advisory locks or
notifications.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ldp_budget._files import alone_in, application_folder, create_private, others_have_access
from ldp_budget.errors import LdpBudgetError, LedgerError, LedgerMissing, NotSupported
from ldp_budget.ledger.key_file import check_kind, read_key_file, replace
from ldp_budget.ledger.keyed_hashing import Key, new_key, new_ledger_id, read_ledger_id
from ldp_budget.ledger.storage import Attempt, UnstorableError, of_a_candidate, other_tables

from . import citus, migrations, pool, schema
from . import schema as catalog
from .bulk_writes import MISCOUNTED, PrefetchedRows, Unit
from .pool import WAIT_SECONDS, Connections, first_connection, of_driver, plain, roll_back
from .statements import END, PostgresRows, end_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from psycopg import Connection, Cursor, Error

    from ldp_budget.ledger.keyed_hashing import Key
    from ldp_budget.ledger.storage import Prefetch, Snapshot

    from .pool import Address

    _Lent: TypeAlias = tuple[Connections, Connection]


# -- key files -----------------------------------------------------------------------------------------------

VARIABLE = "LDP_BUDGET_KEY"
"""Environment variable that names the key file."""


def key_file_path(ledger: str) -> Path:
    """Return the key file of a ledger by its internal name: the path in the variable, or in the user's folder."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else application_folder() / "keys" / f"{ledger}.key"


def make(ledger: str, address: Address, given: bytes | None = None, sandbox: bool | None = None) -> Key:
    """Return the key for a new ledger: from the existing key file, or a new one, which is written there.

    `given` is the secret of the ledger that is to be copied there.
    """
    file = key_file_path(ledger)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone_in(file.parent):  # another process may be writing the same file
            if file.exists():
                key = read(ledger, address)
                if given not in (None, key.secret):
                    why = f"its key file {file} must have the key of the ledger that is copied to it: got another key"
                    raise LedgerError(address.name, why)
                return key if given else check_kind(key, address.name, bool(sandbox))
            secret = given or new_key(sandbox)
            create_private(file, secret)
    except OSError as error:
        raise LedgerError(address.name, f"its key file {file} cannot be written: {error.strerror}") from None
    return Key(secret)


def read(ledger: str, address: Address) -> Key:
    """Return the key of an existing ledger. Raises `LedgerError`."""
    file = key_file_path(ledger)
    hint = f"Copy it from the machine that made the ledger, or set {VARIABLE} to its path."
    key = read_key_file(file, address.name, hint)
    if others_have_access(file):
        raise LedgerError(
            address.name, f"other users have access to its key file {file}", hint=f"Run: chmod 600 {file}"
        )
    return key


# -- the store -----------------------------------------------------------------------------------------------

_LOCK = f"{END} WHERE partition = ANY(%b::int4[]) ORDER BY partition FOR UPDATE"
_LOCK_FREE = f"{_LOCK} SKIP LOCKED"
_LOCK_ONE = f"{END} WHERE partition = %s FOR UPDATE"
"""Statement of a sharded engine, which plans it faster."""
_FORMAT = "SELECT value FROM meta WHERE name = 'schema'"
_AGAIN = ("40001", "40P01")  # serialization failure, deadlock: nothing was done
_UNPREPARED = ("26000", "42P05")  # another session has prepared the statement
_BUSY = "55P03"
_MOVED, _SEVERAL_SHARDS = "moved", "0A000"  # a shard was split, and its parts are not locked together
_NAME = re.compile(rb"[0-9a-f]{16}")
"""Internal name of a ledger, drawn at random; also the name of its file in the folder of keys."""
_VALUES = ("22", "54")  # data exceptions, and limits of the program, such as the longest row of an index
_TABLES_SECONDS = 5.0
"""Largest age of the last check of the server's catalog when a transaction begins."""
_LOOK_SECONDS = 5.0
"""Longest time that a server may take to return the heads of its partitions."""
_LOST = ("08", "57P", "40003")  # the connection's end, the server's, and "statement completion unknown"
_OIDS = (
    "SELECT (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),"
    " 'partitions'::pg_catalog.regclass::pg_catalog.oid,"
    " coalesce(pg_catalog.has_function_privilege("
    "pg_catalog.to_regprocedure('pg_catalog.pg_control_system()'), 'execute'), false)"
)
_CLUSTER = "SELECT system_identifier FROM pg_catalog.pg_control_system()"
_NOTHING = ". Nothing was charged."
_MISCOUNTED = "the server wrote fewer rows than it was given and reported no error"
_TRIGGERS = "Look for triggers and rules on its tables."
_UNKNOWN = ". It is unknown whether it was charged. Repeat the request with the same key."
_RESTORE = "Restore the table from a backup."
MOST_WRITERS = 4
"""Maximum number of transactions of one bulk run at the same time. On two cores, two were as fast as four."""


class PostgresStore:
    """Store of many partitions on a PostgreSQL server, or on an engine of the same protocol."""

    def __init__(
        self,
        ledger: str,
        *,
        create: bool,
        secret: bytes | None = None,
        sandbox: bool | None = None,
        ledger_id: str | None = None,
        upgrade: bool = False,
    ) -> None:
        self._upgrade, self._aside = upgrade, frozenset[catalog.Fact]()
        self._address = pool.read(ledger)
        self.name = self._address.name
        self.repeated: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._tables_checked = -_TABLES_SECONDS
        self._connections = Connections(self._address, self._check_tables)
        self._nodes: dict[Address, Connections] = {}
        with _plainly(self.name), first_connection(self._address) as connection:
            pool.check_settings(connection, self._address)
            self._schema = catalog.find_schema(connection)
            if not self._schema:
                why = "no schema of the role's search_path exists"
                hint = "Create one, or add options=-csearch_path%3DNAME to the URL."
                raise LedgerError(self.name, why, hint=hint)
            self._has_citus = citus.is_installed(connection)
            self.key, self.partitions = self._open(connection, create, secret, sandbox, ledger_id)
            self.writers = min(MOST_WRITERS, self.partitions, self._address.connections)
            self._check_tables(connection)
            if self._cluster is not None:
                self._cluster.check_all(connection, self._address)
                return
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
        self._version = version = migrations.read_version(meta.get("schema", b""))
        steps = migrations.pending(version)
        if "ledger" in meta and "identity" not in meta:  # a candidate's name of the row
            raise of_a_candidate(self.name)
        if version != schema.SCHEMA_VERSION and not (steps and self._upgrade):
            raise other_tables(self.name, schema.SCHEMA_VERSION, version, migrates=bool(steps))
        self._aside = migrations.created(steps)
        if not {"identity", "key_check"} <= meta.keys() or not _NAME.fullmatch(bytes(meta["identity"])):
            why = "its table meta was changed: it has no name of the ledger, or no check of its key"
            raise LedgerError(self.name, why, hint=_RESTORE)
        self.identity = bytes(meta["identity"]).decode("ascii")
        key = check_kind(read(self.identity, self._address), self.name, sandbox)
        with self._looking(connection):
            self._cluster = None
            if self._has_citus and citus.is_distributed(connection):
                partitions = schema.count_partitions(key, bytes(meta["key_check"]))
                self._cluster = citus.Cluster(self._address, self._schema, partitions, self._aside)
                self._cluster.locate(connection)
            else:
                (partitions,) = connection.execute("SELECT count(*) FROM partitions").fetchone() or (0,)
        if bytes(meta["key_check"]) != schema.key_check(key, partitions):
            why = f"its key belongs to another ledger, or its number of partitions, {partitions}, was changed"
            raise LedgerError(self.name, why)
        found = read_ledger_id(key, meta.get("ledger_id"))
        if found is None:
            raise LedgerError(self.name, "its table meta was changed: the id in it", hint=_RESTORE)
        key.set_ledger_id(found)
        return key, int(partitions)

    def _is_made(self, connection: Connection) -> bool:
        with self._looking(connection):
            found: Any = connection.execute("SELECT to_regclass('partitions') IS NOT NULL").fetchone()
        return bool(found[0])

    @contextmanager
    def _looking(self, connection: Connection) -> Iterator[None]:
        """Open a transaction in which names are looked up in the ledger's schema."""
        with connection.transaction():
            connection.execute(catalog.set_path(self._schema))  # type: ignore[call-overload, unused-ignore]
            yield

    def _check_tables(self, connection: Connection) -> None:
        """Raise `LedgerError` unless the tables are those that the ledger creates."""
        with connection.transaction():
            catalog.check_catalog(catalog.ask_catalog(Unit(connection, self._schema)), self.name, aside=self._aside)
        self._tables_checked = time.monotonic()

    def _create(self, connection: Connection, given: bytes | None, sandbox: bool | None, ledger_id: str) -> None:
        """Create the tables and the key. If several processes do so at the same time, one creates them for all.

        The other processes get an error that depends on the progress of the first: an existing table, an existing
        type of the same name, or an existing row of the server's catalog.
        """
        from psycopg import errors

        ledger = secrets.token_hex(8)
        key = make(ledger, self._address, given, sandbox)
        try:
            with self._looking(connection):
                for statement in schema.TABLES:
                    connection.execute(statement)
                if self._has_citus:
                    citus.distribute(connection, self._address)
                schema.fill(connection, key, ledger, self._address.partitions, ledger_id)
        except errors.Error as error:
            if self._is_made(connection):
                return
            raise LedgerError(self.name, f"its tables cannot be created: {plain(error)}") from error

    # -- transactions -------------------------------------------------------------------------------------

    def attempts(self, partitions: Sequence[int] = (0,), hint: Prefetch | None = None) -> Iterator[Attempt]:
        """Yield atomic transactions that hold the locks of `partitions`, until the server asks for no other one."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                yield from self._attempt(partitions, hint)
            except _Again as again:
                if again.code in _UNPREPARED:
                    self._connections.prepares = False
                if again.code == _MOVED:
                    self._locate()
                with self._counting:
                    self.repeated[again.code] += 1
                if time.monotonic() > deadline:
                    raise LedgerError(self.name, f"{again}{_NOTHING}") from again
            else:
                return

    def _attempt(self, partitions: Sequence[int], hint: Prefetch | None) -> Iterator[Attempt]:
        progress = _Progress()
        if self._cluster is not None and hint is not None and hint.some:
            partitions = self._cluster.together(partitions)
            hint = hint.within(partitions)
        with self._lend(partitions) as lent:
            _, connection = lent
            connection.add_notice_handler(progress.notice)
            try:
                yield from self._transact(lent, progress, partitions, hint)
            except BaseException as error:
                # A group of works wraps the error of one of them in another error.
                servers = of_driver(error, connection)
                if servers is not None:
                    raise self._told(servers, progress, connection, partitions) from servers
                raise
            finally:
                connection.remove_notice_handler(progress.notice)
        progress.check(self.name)

    @contextmanager
    def _lend(self, partitions: Sequence[int]) -> Iterator[_Lent]:
        """Yield a connection for a transaction, and its pool: that of the node of the partitions, or of the URL."""
        those = self._cluster
        node = None if those is None else those.route(partitions)
        if those is None or node is None:
            with self._connections.lend() as connection:
                yield self._connections, connection
            return

        def greet(connection: Connection) -> None:
            those.check_identity(connection, node)
            self._check_tables(connection)

        with self._counting:
            there = self._nodes.get(node) or Connections(node, greet, citus.CONNECT_SECONDS)
            self._nodes[node] = there
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(there.lend())
            except LedgerError:
                those.detour(partitions)
                self._locate()  # the node may have been replaced
                there, connection = self._connections, stack.enter_context(self._connections.lend())
            yield there, connection

    def _transact(
        self, lent: _Lent, progress: _Progress, partitions: Sequence[int], hint: Prefetch | None
    ) -> Iterator[Attempt]:
        (connections, connection), those = lent, self._cluster
        some = hint is not None and hint.some
        if those is not None:
            for node in those.due(partitions):
                those.check(connection, node, connections.address)
        with connection.pipeline() as pipeline:
            unit = Unit(connection, self._schema, None if those is None else those.shards)
            unit.run("BEGIN ISOLATION LEVEL READ COMMITTED")
            # Behind a pooler each transaction may use another server: so check the session that will commit.
            promised = pool.ask_settings(unit) if connections.is_pooled(connection) else None
            tables = catalog.ask_catalog(unit) if self._tables_are_due() else None
            # Settings of the transaction, not of the session: behind a pooler the session changes as well.
            settled = pool.settle(unit, WAIT_SECONDS)
            if those is not None and connections is self._connections:
                for statement in citus.SETTLE:
                    unit.run(statement)
            needed, free = (partitions[:1], partitions[1:]) if some else (partitions, [])
            locked = [self._lock(unit, each) for each in self._by_shard(needed)]
            locked += [unit.run(_LOCK_FREE, (each,)) for each in self._by_shard(free)]
            # After the locks: an upgrade locks the table, so it ends before this transaction reads it, or begins after it.
            newest = unit.run(_FORMAT)
            places = None if those is None else those.ask_places(unit, partitions)
            ahead = None if hint is None else PrefetchedRows(unit, hint)
            self._judge_format(newest)  # before the tables, which an upgrade may change
            try:
                if promised is not None:
                    pool.judge_settings(promised, connections.address)
                if tables is not None:
                    self._judge_tables(tables)
                pool.judge_settled(settled, connections.address)
            except LedgerError as error:
                if those is None or connections is self._connections:
                    raise
                those.detour(partitions)  # the check of the node refuses its users, and no others
                raise _Again("unsafe", str(error)) from error
            ends = {row[0]: end_of(row) for row in chain.from_iterable(locked)}
            gone = {*needed} - ends.keys()
            if gone:
                raise LedgerError(self.name, f"partition {min(gone)} is missing{_NOTHING}")
            if those is not None and those.has_moved(places, partitions):
                raise _Again(_MOVED, "its partitions are being moved to another node")
            if ahead is not None:
                ahead.read()
            attempt = Attempt({each: PostgresRows(unit, each, end, ahead) for each, end in ends.items()})
            yield attempt
            if attempt.error is not None:
                raise attempt.error
            unit.flush()
            if unit.has_written:
                pipeline.sync()
                self._check_written(unit)
            # The statements of buffered rows count their rows themselves: if one fails, the server skips the commit.
            progress.commits = True
            progress.commit = connection.execute("COMMIT")
            pipeline.sync()

    def migrate(self, until: str) -> tuple[int, list[str]]:
        """Apply the pending migrations in one transaction; return the version before, and the applied steps."""
        with _plainly(self.name), self._connections.lend() as connection, self._looking(connection):
            return migrations.apply(connection, self.name, until, distributed=self._cluster is not None)

    def _by_shard(self, partitions: Sequence[int]) -> list[list[int]]:
        """Return partitions as lists, each for one statement."""
        if self._cluster is not None:
            return self._cluster.by_shard(partitions)
        return [list(partitions)] if partitions else []

    def _lock(self, unit: Unit, partitions: list[int]) -> Cursor[Any]:
        if self._cluster is not None and len(partitions) == 1:
            return unit.run(_LOCK_ONE, partitions)
        return unit.run(_LOCK, (partitions,))

    def _locate(self) -> None:
        """Read again where each partition of a cluster is."""
        with _plainly(self.name), self._connections.lend() as connection, self._looking(connection):
            if self._cluster is not None:
                self._cluster.locate(connection)

    def _judge_format(self, answer: Cursor[Any]) -> None:
        """Raise `LedgerError` if a newer ldp-budget has upgraded the tables since this process has opened them."""
        row: Any = answer.fetchone()
        version = None if row is None else migrations.read_version(row[0])
        if version != self._version:
            raise other_tables(self.name, schema.SCHEMA_VERSION, version)

    def _tables_are_due(self) -> bool:
        return time.monotonic() - self._tables_checked >= _TABLES_SECONDS

    def _judge_tables(self, answer: Cursor[Any]) -> None:
        catalog.check_catalog(answer, self.name, _NOTHING, self._aside)
        self._tables_checked = time.monotonic()

    def _check_written(self, unit: Unit) -> None:
        """Raise `LedgerError`, before the commit, unless each statement wrote every row that it was given."""
        counts = unit.miscounted()
        if counts is not None:
            raise LedgerError(self.name, f"{_MISCOUNTED}{_NOTHING}", hint=_TRIGGERS)

    def _told(self, error: Error, progress: _Progress, used: Connection, partitions: Sequence[int]) -> BaseException:
        """Return the error for the caller, or `_Again` if the work is to be repeated."""
        code = error.sqlstate or ""
        roll_back(used)
        # An error that the server has reported came before the commit, or instead of it. A host of a cluster may report
        # that it does not know what a node has done.
        is_lost = used.closed or not code or code.startswith(_LOST) or self._cluster is not None
        if progress.commits and is_lost:
            return LedgerError(self.name, f"{plain(error)}{_UNKNOWN}", unknown=True)
        if self._cluster is not None and citus.is_of_node(error):
            used.close()  # with the server's own connections to the node
            return self._cluster.has_failed(partitions, plain(error))
        if code in (*_AGAIN, *_UNPREPARED) or code.startswith(_LOST) or used.closed:
            return _Again(code or "connection", plain(error))
        if self._cluster is not None and code == _SEVERAL_SHARDS:
            return _Again(_MOVED, plain(error))
        if code == MISCOUNTED:
            return LedgerError(self.name, f"{_MISCOUNTED}{_NOTHING}", hint=_TRIGGERS)
        if _is_of_values(error):
            return UnstorableError(self.name, f"{plain(error)}{_NOTHING}")
        if code == _BUSY:
            return LedgerError(self.name, f"it was busy with other writers for {WAIT_SECONDS:g} s{_NOTHING}")
        return LedgerError(self.name, f"{plain(error)}{_NOTHING}")

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        """Open a consistent snapshot of a partition."""
        with self._connections.lend() as connection:
            try:
                begin = (
                    f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {catalog.set_path(self._schema)}; {_FORMAT}"
                )
                newest = connection.execute(begin, prepare=False)  # type: ignore[call-overload, unused-ignore]
                while newest.nextset():
                    pass
                self._judge_format(newest)
                unit = Unit(connection, self._schema)
                row: Any = unit.run(f"{END} WHERE partition = %s", (partition,)).fetchone()
                if row is None:
                    raise LedgerError(self.name, f"partition {partition} is missing")
                unit.aside = self._aside
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
        """Return the number of the newest entry of each partition, in one round trip with a short timeout."""
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

    @property
    def key_file(self) -> str:
        """The path of the key file on this machine."""
        return str(key_file_path(self.identity))

    @property
    def place(self) -> str:
        """The place of the tables: the cluster, the database and the oid of a table. A copy has another place.

        The exception is a copy of a whole cluster, such as that of `pg_basebackup`: no server can tell it apart.
        """
        with _plainly(self.name), self._connections.lend() as connection, self._looking(connection):
            oids: Any = connection.execute(_OIDS).fetchone()
            cluster: Any = connection.execute(_CLUSTER).fetchone() if oids[-1] else ("",)
        return " ".join(map(str, (self.identity, *cluster, *oids[:-1])))

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key file is at its path and has the ledger's key."""
        self._found_key()

    def check_writable(self) -> None:
        """Do nothing: the server reports a failure with the write."""

    def _found_key(self) -> Key:
        found = read(self.identity, self._address)
        if not found.replaces(self.key):
            raise LedgerError(self.name, f"its key file {key_file_path(self.identity)} has another key")
        return found

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Replace the key file with what `change` makes of it. One process of this machine does so at a time."""
        place = key_file_path(self.identity)
        with alone_in(place.parent):
            content = change(self._found_key())
            replace(place, self.name, content)
            self.key.learn(Key(content))

    def clear_log(self) -> bool:
        """Do nothing and return True: the server's own vacuuming removes deleted rows."""
        return True

    def backup(self, path: str | os.PathLike[str], check: Callable[[Snapshot], None]) -> None:
        """Raise `NotSupported`: back up a server with its own tools."""
        raise NotSupported(
            f"{self.name} cannot be backed up from here", hint="Use the server's own tools, such as pg_basebackup."
        )

    def close(self) -> None:
        """Close the connections."""
        for connections in (self._connections, *self._nodes.values()):
            connections.close()


@contextmanager
def _plainly(ledger: str) -> Iterator[None]:
    """Convert server errors to `LedgerError`, for operations that cannot have charged anything."""
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
    """True if the values of a statement caused an error, found by the server or by the driver."""
    from psycopg import DataError

    return isinstance(error, DataError) or (error.sqlstate or "").startswith(_VALUES)


class _Again(Exception):  # noqa: N818
    """Nothing was written, and the work is to be repeated."""

    def __init__(self, code: str, why: str) -> None:
        self.code = code
        super().__init__(why)


class _Progress:
    """Progress of one attempt of a transaction."""

    def __init__(self) -> None:
        self.commits = False
        """True once the commit was sent: until the server answers, the outcome is unknown."""
        self.commit: Any = None
        self._warnings: list[str] = []

    def notice(self, diagnostic: Any) -> None:
        if self.commits and diagnostic.sqlstate == "01000":
            self._warnings.append(diagnostic.message_primary or "a warning")

    def check(self, ledger: str) -> None:
        """Raise `LedgerError` unless the server confirmed the commit without a warning.

        A commit that is cancelled while it waits for a standby succeeds, with a warning.
        """
        if self._warnings:
            raise LedgerError(ledger, f"{self._warnings[0]}{_UNKNOWN}", unknown=True)
        if self.commit.statusmessage != "COMMIT":
            raise LedgerError(ledger, f"the server answered {self.commit.statusmessage} to COMMIT{_NOTHING}")
