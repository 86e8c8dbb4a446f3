"""Addresses, server checks and connections of a ledger on PostgreSQL.

The module has three parts:

- `Address`: the parsed address of a ledger, with the options that this package reads itself.
- Server checks: durability, standbys and isolation that a server must guarantee before it may hold a ledger. An error
  names the setting that is wrong.
- `Connections`: a connection pool for each process, and the conversion of driver errors to ledger errors.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from ldp_budget.errors import InvalidParameter, LedgerError

from .schema import MOST_PARTITIONS, path_of, set_path

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from psycopg import Connection, Cursor, Error
    from psycopg_pool import ConnectionPool

    from .bulk_writes import Unit


# -- addresses -----------------------------------------------------------------------------------------------

DEFAULT_PARTITIONS = 64
HA = ("none", "quorum")

_EXPECTED = "postgresql://[USER@]HOST[:PORT]/DATABASE, with libpq's options, and partitions, ha or connections"

# Hosts: each a name, a numeric address or a socket folder (escaped), with its port.
_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^\[\]:,]*)(?::\d*)?"
_HOSTS = re.compile(f"{_HOST}(?:,{_HOST})*")
_PRINTED = re.compile(r"(?:[!-$&-~]|[^\x00-\xa0\ud800-\udfff]|%[0-9A-Fa-f]{2})*")


class Address(NamedTuple):
    """Parsed address. `partitions` matters only when the ledger is created; `ha` declares the use of standbys."""

    connect: str
    """The connection string for libpq."""
    name: str
    """The name for messages, without user, password and options."""
    partitions: int
    ha: str | None
    connections: int


def read(text: str) -> Address:
    """Parse an address. Raises `InvalidParameter`."""
    scheme, _, rest = text.partition("://")
    place, _, query = rest.partition("?")
    host, _, database = place.partition("/")
    # The message shows no part of the address: a malformed address may have a password anywhere.
    if not _PRINTED.fullmatch(text) or not _HOSTS.fullmatch(host.rpartition("@")[2]):
        hint = "Write characters that a URL cannot have as % and two hexadecimal digits."
        raise InvalidParameter("ledger", _EXPECTED, "a URL that cannot be read", hint=hint)
    # Messages show the part after the @, so the end of a password must be unambiguous.
    if "#" in rest or rest.count("@") != host.count("@") or rest.count("@") > 1:
        hint = "Write these characters as % and two hexadecimal digits, such as %40 for @."
        raise InvalidParameter("ledger", _EXPECTED, "a user or password with / ? # or @", hint=hint)
    if any("=" not in option for option in filter(None, query.split("&"))):
        raise InvalidParameter("ledger", f"{_EXPECTED}, each as NAME=VALUE", "an option without a value")
    ours = {"partitions": str(DEFAULT_PARTITIONS), "ha": "", "connections": "16"}
    theirs = []
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name in ours:
            ours[name] = unquote(value)
        else:
            theirs.append(option)  # libpq does not decode + to a space, so the option stays unchanged
    if ours["ha"] not in ("", *HA):
        raise InvalidParameter("ledger", f"{_EXPECTED}, with ha={' or ha='.join(HA)}", f"ha={ours['ha']}")
    return Address(
        f"{scheme}://{place}{'?' * bool(theirs)}{'&'.join(theirs)}",
        f"postgresql://{host.rpartition('@')[2]}/{database}",
        _count("partitions", ours["partitions"], MOST_PARTITIONS),
        ours["ha"] or None,
        _count("connections", ours["connections"], 1000),
    )


@functools.cache
def at_node(address: Address, node: str) -> Address | None:
    """Return the address of the same database on a node, HOST:PORT; None if the options name the hosts."""
    scheme, _, rest = address.connect.partition("://")
    place, _, query = rest.partition("?")
    if re.search(r"(?:^|&)(?:host|hostaddr|port|service)=", query):
        return None
    host, _, database = place.partition("/")
    user, at, _ = host.rpartition("@")
    name, _, port = node.rpartition(":")
    there = f"{user}{at}{f'[{name}]' if ':' in name else name}:{port}/{database}"
    connect = f"{scheme}://{there}{'?' * bool(query)}{query}"
    return address._replace(connect=connect, name=f"{address.name}, node {node}")


def _count(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise InvalidParameter("ledger", f"{_EXPECTED}, with {name} from 1 to {most}", f"{name}={text}")
    return int(text)


# -- server checks -------------------------------------------------------------------------------------------

_NEEDED = {
    "synchronous_commit": ("on", "remote_apply"),
    "fsync": ("on",),
    "full_page_writes": ("on",),
}
_STANDBYS = "synchronous_standby_names"
_SETTINGS = ", ".join(f"current_setting('{name}')" for name in (*_NEEDED, _STANDBYS))
# Citus moves a shard by logical replication, in slots of this name: their readers are no standbys.
_COUNT_STANDBYS = (
    "(SELECT count(*) FROM pg_stat_replication r WHERE NOT EXISTS (SELECT FROM pg_replication_slots s"
    " WHERE s.active_pid = r.pid AND s.slot_type = 'logical' AND starts_with(s.slot_name::text, 'citus_shard_')))"
)
_ASK = f"SELECT {_SETTINGS}, {_COUNT_STANDBYS}, pg_backend_pid()"
ASK_NODE = (
    f"SELECT json_build_array({_SETTINGS}, {_COUNT_STANDBYS}, extract(epoch FROM clock_timestamp())::float8,"
    " current_setting('server_version_num')::int4, (SELECT metadata->>'server_id' FROM pg_dist_node_metadata))"
)
"""Query of one JSON value, which `judge_node` checks."""
# For one transaction: names are looked up in the ledger's schema, and the commit waits for the disk and the standbys.
# The latter also if a reload of the server's settings has changed the session since it was checked.
_SETTLE = (
    "SELECT pg_catalog.set_config('synchronous_commit', CASE WHEN pg_catalog.current_setting('synchronous_commit')"
    " OPERATOR(pg_catalog.=) 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),"
    " pg_catalog.current_setting('fsync'), pg_catalog.current_setting('full_page_writes'),"
    " pg_catalog.current_setting('synchronous_standby_names'), pg_catalog.pg_backend_pid(),"
    " pg_catalog.set_config('search_path', %s, true), pg_catalog.set_config('lock_timeout', %s, true)"
)
OLDEST = 150000
"""The oldest supported server version, as `server_version` counts it."""
CLOCK_SECONDS = 5.0
"""Largest difference between the clocks of this machine and of a node of a cluster."""


def check_settings(connection: Connection, address: Address) -> bool:
    """Raise `LedgerError` unless an acknowledged commit is on the disk and on the declared standbys.

    Returns True if a connection pooler is between client and server. The session is then not the one that the client
    connected to, and may change with each transaction. A changed backend PID reveals the pooler.
    """
    _judge_version(connection.info.server_version, address)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):
        # Other encodings cannot store every name, or store bytes without a defined meaning.
        why = f"the encoding of its database must be UTF8: got {encoding}"
        hint = "Create another database: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        raise LedgerError(address.name, why, hint=hint)
    session = judge_settings(connection.execute(_ASK), address)
    return session != connection.info.backend_pid


def judge_node(found: list[Any], address: Address, asked: float, answered: float) -> None:
    """Raise `LedgerError` unless a node of a cluster, which answered `ASK_NODE` between two times, may hold a ledger."""
    *settings, standbys, clock, version, _ = found
    _judge_version(version, address)
    _judge_durable(settings, address)
    _judge_standbys(settings[-1], standbys, address)
    differs = max(asked - clock, clock - answered)
    if differs > CLOCK_SECONDS:
        why = f"its clock differs by {differs:.1f} s from the clock of this machine, by more than {CLOCK_SECONDS:g} s"
        raise LedgerError(address.name, why, hint="Set the clocks of all machines by NTP.")


def _judge_version(version: int, address: Address) -> None:
    if version < OLDEST:
        why = f"its server must be PostgreSQL {OLDEST // 10000} or newer: got {version // 10000}"
        raise LedgerError(address.name, why)


def ask_settings(unit: Unit) -> Cursor[Any]:
    """Query, in a transaction, the settings that `judge_settings` checks."""
    return unit.run(_ASK)


def judge_settings(answer: Cursor[Any], address: Address) -> int:
    """Check the queried settings; return the backend PID of the session. Raises `LedgerError`."""
    row: Any = answer.fetchone()
    *settings, standbys, session = row
    _judge_durable(settings, address)
    _judge_standbys(settings[-1], standbys, address)
    return int(session)


def settle(unit: Unit, seconds: float) -> Cursor[Any]:
    """Set the settings that one transaction relies on, and query those that `judge_settled` checks."""
    return unit.run(_SETTLE, (path_of(unit.schema), f"{seconds:g}s"))


def judge_settled(answer: Cursor[Any], address: Address) -> None:
    """Raise `LedgerError` unless the commit of this transaction will be on the disk and on the declared standbys."""
    row: Any = answer.fetchone()
    _judge_durable(row, address)
    if address.ha == "quorum":
        _judge_standbys(row[3], 0, address)


def _judge_durable(settings: Iterable[str], address: Address) -> None:
    for (name, good), found in zip(_NEEDED.items(), settings, strict=False):
        if found not in good:
            expected = " or ".join(f"{name} = {each}" for each in good)
            why = f"its server must have {expected}: got {found}, with which it can lose acknowledged charges"
            raise LedgerError(address.name, why)


def _judge_standbys(synchronous: str, standbys: int, address: Address) -> None:
    if address.ha == "quorum":
        if not synchronous:
            why = "with ha=quorum its server must set synchronous_standby_names: got none"
            hint = "Set it, because a promoted standby would otherwise lack acknowledged charges."
            raise LedgerError(address.name, why, hint=hint)
    elif address.ha is None and (synchronous or standbys):
        hint = (
            "Add ha=quorum to the URL if a standby is promoted only when synchronous_standby_names guarantees that it"
            " has every commit, or ha=none if no standby is ever promoted."
        )
        raise LedgerError(address.name, "its server has standbys, and the URL has no ha option", hint=hint)


def check_isolation(first: Connection, second: Connection, schema: str, address: Address, row: int = 0) -> None:
    """Raise `LedgerError` if two transactions can lock the same row at the same time.

    The check never waits for the lock. If several processes open a ledger behind a pooler, each would wait in a
    session that the others need. A process whose first transaction does not get the lock has seen that the lock
    excludes it, which is what the check tests.
    """
    from psycopg import errors

    lock = f"SELECT entry FROM partitions WHERE partition = {row:d} FOR UPDATE NOWAIT"
    begin = f"BEGIN ISOLATION LEVEL READ COMMITTED; {set_path(schema)}"
    first.execute(begin)  # type: ignore[call-overload, unused-ignore]
    try:
        first.execute(lock)
        second.execute(begin)  # type: ignore[call-overload, unused-ignore]
        try:
            second.execute(lock)
        finally:
            second.execute("ROLLBACK")
    except errors.LockNotAvailable:
        return
    finally:
        first.execute("ROLLBACK")
    raise LedgerError(
        address.name,
        "two transactions held the lock of one row at the same time, so this server cannot store a ledger",
    )


# -- connections ---------------------------------------------------------------------------------------------

WAIT_SECONDS = 30.0
ANSWER_SECONDS = 60.0
"""Longest silence of a server during a query; longer than the server waits for a lock."""

# Detect within half a minute a server that disappeared silently, as when a firewall drops its packets.
_PROBES = {
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}

HINT = "Install it: pip install 'ldp-budget[postgres]'"


class Connections:
    """Connection pool of one process. A forked child cannot use it."""

    def __init__(self, address: Address, greet: Callable[[Connection], None], wait: float | None = None) -> None:
        """Import the driver and check the address.

        `greet` checks each new connection, and raises `LedgerError` to refuse it. `wait` is the longest wait for a
        connection in seconds, in place of `WAIT_SECONDS`.
        """
        try:
            # Import now, before any fork: a child would wait forever for an import that another thread had begun.
            import psycopg  # noqa: F401
            import psycopg_pool  # noqa: F401
        except ImportError:
            raise LedgerError(address.name, "a ledger on PostgreSQL needs the package psycopg", hint=HINT) from None
        probes(address)  # refuses an address that libpq cannot read, before the pool would log it
        self.address = address
        self._greet = greet
        self._wait = wait
        self._lock = threading.Lock()
        self._pool: ConnectionPool | None = None
        self._pid = os.getpid()
        self._closed = False
        # The checked connections, each with True if it uses a pooler. Another server may have the address by now,
        # so each new connection is checked.
        self._pooled: WeakKeyDictionary[Connection, bool | LedgerError] = WeakKeyDictionary()
        self.prepares = True
        """True if statements are prepared on connections without a detected pooler.

        It becomes False when an error reveals a pooler that was not detected.
        """

    @contextmanager
    def lend(self, patience: float | None = None) -> Iterator[Connection]:
        """Yield an idle connection. A transaction that the caller leaves open by an exception is rolled back.

        `patience` is the longest silence of the server in seconds, in place of `ANSWER_SECONDS`.
        """
        try:
            with self._lend(patience) as connection:
                yield connection
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            # An interrupt (Ctrl-C) may have stopped the pool's bookkeeping: it may have lost a connection, or believe
            # for ever that it is opening one.
            self._discard_pool()
            raise

    @contextmanager
    def _lend(self, patience: float | None) -> Iterator[Connection]:
        pool, connection = self._borrow(patience)
        try:
            found = self._pooled[connection]
            if isinstance(found, LedgerError):
                del self._pooled[connection]  # the next caller finds out if the server was set right
                raise found
            connection.patience = patience  # type: ignore[attr-defined]
            # Behind a pooler another client may have prepared a different statement under the same name, and the
            # server would run that one.
            connection.prepare_threshold = 5 if self.prepares and not found else None
            yield connection
        except BaseException as error:
            if is_silence(error):
                # The other connections lead to the same server, and each would take the same wait.
                pool.drain()
            roll_back(connection)
            raise
        finally:
            pool.putconn(connection)

    def _borrow(self, patience: float | None) -> tuple[ConnectionPool, Connection]:
        """Return an idle connection and its pool."""
        from psycopg_pool import PoolClosed, PoolTimeout

        while True:
            pool = self._opened()
            try:
                return pool, pool.getconn(patience or self._wait)
            except PoolTimeout:
                raise LedgerError(self.address.name, f"{self._why_not(patience)}. Nothing was charged.") from None
            except PoolClosed:
                continue  # it was discarded after an interrupt, or the ledger was closed

    def _check(self, connection: Connection) -> None:
        """Check a connection before the pool lends it. The pool replaces one for which this raises an error.

        A pooler accepts every connection, and closes it immediately if its server is gone: then the pool tries again.
        A server that must not hold the ledger is found out once, and its `LedgerError` is for the caller.
        """
        from psycopg import Error

        try:
            for _ in range(2):  # the server's message on closing, then the end of the stream
                connection.pgconn.consume_input()
            if connection not in self._pooled:
                pooled = check_settings(connection, self.address)
                self._greet(connection)
                self._pooled[connection] = pooled
        except LedgerError as error:
            roll_back(connection)
            self._pooled[connection] = error
        except Error:
            connection.close()
            pool = self._pool
            if pool is not None:
                pool.drain()  # one that the server has closed is seldom alone
            raise

    def is_pooled(self, connection: Connection) -> bool:
        """True if the connection uses a pooler, which assigns a server session for one transaction at a time."""
        return self._pooled[connection] is True

    def _opened(self) -> ConnectionPool:
        with self._lock:
            if self._closed:
                raise LedgerError(self.address.name, "this accountant is closed", hint="Open a new one.")
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self.address.connect,
                    connection_class=bounded_connection(),
                    kwargs={**probes(self.address), "autocommit": True, "application_name": "ldp-budget"},
                    min_size=0,
                    max_size=self.address.connections,
                    timeout=WAIT_SECONDS,
                    reconnect_timeout=WAIT_SECONDS,
                    check=self._check,
                    open=True,
                )
            return self._pool

    def _discard_pool(self) -> None:
        """Close the pool, so that the next caller opens a new one. Borrowed connections close on their return."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            # In another thread, because the interrupt may have left a lock of the pool locked.
            threading.Thread(target=pool.close, daemon=True).start()

    def _why_not(self, patience: float | None) -> str:
        """Return the reason for a missing connection, in the server's words if it gives any."""
        import psycopg

        try:
            psycopg.connect(self.address.connect, connect_timeout=5 if patience is None else 2).close()
        except psycopg.Error as error:
            return plain(error)
        return f"all {self.address.connections} connections were busy for {patience or WAIT_SECONDS:g} s"

    def close(self) -> None:
        """Close all connections; borrowed ones on their return."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None and self._pid == os.getpid():
            pool.close()


def first_connection(address: Address) -> Connection:
    """Return a connection outside the pool, to inspect the database. Raises `LedgerError`."""
    import psycopg

    options = {**probes(address), "autocommit": True, "prepare_threshold": None, "application_name": "ldp-budget"}
    try:
        return bounded_connection().connect(address.connect, **options)
    except psycopg.Error as error:
        raise LedgerError(address.name, plain(error)) from None


def probes(address: Address) -> dict[str, Any]:
    """Return libpq's options for detecting a dead server, without those that the address sets."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        said = conninfo_to_dict(address.connect)
    except ProgrammingError as error:
        # libpq quotes the whole address, or the password.
        why = re.sub(r'".*"', "…", plain(error))
        raise LedgerError(address.name, f"its URL cannot be read: {why}") from None
    if "PGCONNECT_TIMEOUT" in os.environ:
        said["connect_timeout"] = os.environ["PGCONNECT_TIMEOUT"]
    return {name: value for name, value in _PROBES.items() if name not in said}


class _Silence(Exception):  # noqa: N818
    """The server did not answer in time."""


@functools.cache
def bounded_connection() -> type[Connection]:
    """Return the connection class that waits no longer than its `patience` for an answer."""
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        patience: float | None = None
        """Longest wait for an answer in seconds, in place of `ANSWER_SECONDS`."""

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            bound = ANSWER_SECONDS if self.patience is None else self.patience
            return super().wait(self._until(gen, bound), *args, **kwargs)

        def _until(self, gen: Generator[Any, Any, Any], bound: float) -> Generator[Any, Any, Any]:
            """Run the same steps, and close the connection if the server is silent for `bound` seconds."""
            try:
                wanted = next(gen)
                heard = time.monotonic()
                while True:
                    ready = yield wanted
                    if ready:
                        heard = time.monotonic()
                    elif time.monotonic() - heard > bound:
                        gen.close()
                        self.close()
                        silence = _Silence(f"silent for {bound:g} s")
                        raise psycopg.OperationalError(f"the server has not answered for {bound:g} s") from silence
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

    return BoundedConnection


def is_silence(error: BaseException | None) -> bool:
    """True if an error comes from a server that did not answer in time."""
    while error is not None:
        if isinstance(error, _Silence):
            return True
        error = error.__cause__ or error.__context__
    return False


def plain(error: BaseException) -> str:
    """Return the message of a server or driver error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2]) or type(error).__name__


def of_driver(error: BaseException, connection: Connection) -> Error | None:
    """Return the driver's error in `error`, if there is one: the error itself, or its cause.

    If a session ends during a pipeline, the driver's own bookkeeping may fail with an IndexError. The connection is
    then unusable, and the error counts as a lost connection.
    """
    from psycopg import Error, OperationalError

    for each in (error, error.__cause__):
        if isinstance(each, Error):
            return each
        if isinstance(each, IndexError) and _raised_in(each).startswith("psycopg"):
            connection.close()
            return OperationalError(f"the session ended amid its answers ({each})")
    return None


def _raised_in(error: BaseException) -> str:
    """Return the name of the module that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def roll_back(connection: Connection) -> None:
    """Roll back an open transaction. If that fails, close the connection, so the server ends the transaction."""
    from psycopg import Error
    from psycopg.pq import TransactionStatus

    try:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            # Not by a ROLLBACK statement: psycopg would keep statement names that an error has not let it prepare.
            connection.rollback()
    except Error:
        connection.close()
