"""What a ledger's address says: where its server is, and what of it is ours to read.

What a server must promise before a ledger is kept there. What it does not, is refused by name.

Connections to the server of a ledger: a pool for each process, and errors in the ledger's words.
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

from ...errors import InvalidParameter, LedgerError
from .schema import path_of, set_path

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from psycopg import Connection, Cursor, Error
    from psycopg_pool import ConnectionPool

    from .write_buffer import Unit


MOST_PARTITIONS = 4096
DEFAULT_PARTITIONS = 64
HA = ("none", "quorum")

_EXPECTED = "postgresql://[USER@]HOST[:PORT]/DATABASE, with libpq's options, and partitions, ha or connections"

# Hosts, each a name, an address in figures or a folder of sockets (escaped), and its port.
_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^\[\]:,]*)(?::\d*)?"
_HOSTS = re.compile(f"{_HOST}(?:,{_HOST})*")
_PRINTED = re.compile(r"(?:[!-$&-~]|[^\x00-\xa0\ud800-\udfff]|%[0-9A-Fa-f]{2})*")


class Address(NamedTuple):
    """An address, taken apart. `partitions` counts only when the ledger is made; `ha` is what was declared of standbys."""

    connect: str
    """What libpq gets."""
    name: str
    """What messages say: no user, no password, no options."""
    partitions: int
    ha: str | None
    connections: int


def read(text: str) -> Address:
    """Take an address apart. Raises `InvalidParameter`."""
    scheme, _, rest = text.partition("://")
    place, _, query = rest.partition("?")
    host, _, database = place.partition("/")
    # The message shows none of the address: in a malformed one a password may stand anywhere.
    if not _PRINTED.fullmatch(text) or not _HOSTS.fullmatch(host.rpartition("@")[2]):
        expected = f"{_EXPECTED}; each character that is none of an address as % and two hexadecimal digits"
        raise InvalidParameter("ledger", expected, "an address that cannot be read")
    # Messages name what stands behind the @, so there may be no doubt about where a password ends.
    if "#" in rest or rest.count("@") != host.count("@") or rest.count("@") > 1:
        expected = f"{_EXPECTED}; each / ? # @ of a user or password as % and two hexadecimal digits"
        raise InvalidParameter("ledger", expected, "one of them as it is")
    if any("=" not in option for option in filter(None, query.split("&"))):
        raise InvalidParameter("ledger", f"{_EXPECTED}, each as NAME=VALUE", "an option without a value")
    ours = {"partitions": str(DEFAULT_PARTITIONS), "ha": "", "connections": "16"}
    theirs = []
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name in ours:
            ours[name] = unquote(value)
        else:
            theirs.append(option)  # libpq's + is a plus, so it stays as it is
    if ours["ha"] not in ("", *HA):
        raise InvalidParameter("ledger", f"ha out of {', '.join(HA)}", ours["ha"])
    return Address(
        f"{scheme}://{place}{'?' * bool(theirs)}{'&'.join(theirs)}",
        f"postgresql://{host.rpartition('@')[2]}/{database}",
        _count("partitions", ours["partitions"], MOST_PARTITIONS),
        ours["ha"] or None,
        _count("connections", ours["connections"], 1000),
    )


def _count(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise InvalidParameter("ledger", f"{name} from 1 to {most} in {_EXPECTED}", repr(text))
    return int(text)


_NEEDED = {
    "synchronous_commit": ("on", "remote_apply"),
    "fsync": ("on",),
    "full_page_writes": ("on",),
}
_STANDBYS = "synchronous_standby_names"
_SETTINGS = ", ".join(f"current_setting('{name}')" for name in (*_NEEDED, _STANDBYS))
_ASK = f"SELECT {_SETTINGS}, (SELECT count(*) FROM pg_stat_replication), pg_backend_pid()"
# For one transaction: names are looked up where the ledger is, and the commit waits for the disk and the standbys,
# also where a reload of the server's settings has changed the session since it was greeted.
_SETTLE = (
    "SELECT pg_catalog.set_config('synchronous_commit', CASE WHEN pg_catalog.current_setting('synchronous_commit')"
    " OPERATOR(pg_catalog.=) 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),"
    " pg_catalog.current_setting('fsync'), pg_catalog.current_setting('full_page_writes'),"
    " pg_catalog.current_setting('synchronous_standby_names'), pg_catalog.pg_backend_pid(),"
    " pg_catalog.set_config('search_path', %s, true), pg_catalog.set_config('lock_timeout', %s, true)"
)
OLDEST = 150000
"""The oldest version of the server, as it counts them."""


def check_settings(connection: Connection, address: Address) -> bool:
    """That an acknowledged commit is on the disk, and on the standbys that were declared.

    Returns whether a pooler stands between: the session then is not the one that was greeted, and may be another in
    each transaction. Raises `LedgerError`.
    """
    version = connection.info.server_version
    if version < OLDEST:
        raise LedgerError(address.name, f"expected PostgreSQL {OLDEST // 10000} or newer; found {version // 10000}")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):
        # Others cannot hold every name, or hold bytes without saying what they mean.
        why = (
            f"its database stores texts as {encoding}, and a ledger needs UTF8. Create another database with: CREATE"
        )
        raise LedgerError(address.name, f"{why} DATABASE name ENCODING 'UTF8' TEMPLATE template0")
    session = judge_settings(connection.execute(_ASK), address)
    return session != connection.info.backend_pid


def ask_settings(unit: Unit) -> Cursor[Any]:
    """Ask, in a transaction, for what `judge_settings` judges."""
    return unit.run(_ASK)


def judge_settings(answer: Cursor[Any], address: Address) -> int:
    """The number of the session that has answered. Raises `LedgerError`."""
    row: Any = answer.fetchone()
    *settings, standbys, session = row
    _judge_durable(settings, address)
    _judge_standbys(settings[-1], standbys, address)
    return int(session)


def settle(unit: Unit, seconds: float) -> Cursor[Any]:
    """Set, for one transaction, what it relies on, and ask for what `judge_settled` judges."""
    return unit.run(_SETTLE, (path_of(unit.schema), f"{seconds:g}s"))


def judge_settled(answer: Cursor[Any], address: Address) -> None:
    """That the commit of this transaction will be on the disk, and on the standbys that were declared.

    Raises `LedgerError`.
    """
    row: Any = answer.fetchone()
    _judge_durable(row, address)
    if address.ha == "quorum":
        _judge_standbys(row[3], 0, address)


def _judge_durable(settings: Iterable[str], address: Address) -> None:
    for (name, good), found in zip(_NEEDED.items(), settings, strict=False):
        if found not in good:
            expected = " or ".join(f"{name} = {each}" for each in good)
            why = f"expected {expected}; found {found}: with it the server forgets spends that it acknowledged"
            raise LedgerError(address.name, why)


def _judge_standbys(synchronous: str, standbys: int, address: Address) -> None:
    if address.ha == "quorum":
        if not synchronous:
            why = "expected synchronous_standby_names, for ha=quorum was declared; found none"
            raise LedgerError(address.name, f"{why}: a standby that is promoted would lack what was acknowledged")
    elif address.ha is None and (synchronous or standbys):
        why = (
            "its server has standbys, and nobody said what becomes of them. Put ha=quorum into the address if a"
            " standby is promoted only when synchronous_standby_names guarantees that it has every commit, or ha=none"
            " if none is ever promoted"
        )
        raise LedgerError(address.name, why)


def check_isolation(first: Connection, second: Connection, schema: str, address: Address) -> None:
    """That a row which one transaction has locked cannot be locked by another. Raises `LedgerError`.

    Nobody waits for the lock: of several who open a ledger behind a pooler, each would wait with a session that the
    others need. Whoever does not get it first has seen that others exclude him, which is what is asked.
    """
    from psycopg import errors

    lock = "SELECT value FROM meta WHERE name = 'key_check' FOR UPDATE NOWAIT"
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
    raise LedgerError(address.name, "two transactions had the lock of one row at the same time; nothing is kept here")


WAIT_SECONDS = 30.0
ANSWER_SECONDS = 60.0
"""How long a server may be silent amid a piece of work; longer than it waits for a lock."""

# A server that vanished without a word, as when a firewall drops its packets, is noticed after half a minute.
_PROBES = {
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}

HINT = "a ledger on PostgreSQL needs psycopg: pip install 'ldp-budget[postgres]'"

# Pools that came with a fork. Their sockets are the parent's, so they are kept and never closed here.
_OF_PARENTS: list[Any] = []


class Connections:
    """The connections of this process; after a fork, new ones."""

    def __init__(self, address: Address, greet: Callable[[Connection], None] = lambda connection: None) -> None:
        """`greet` looks at a new connection, and raises `LedgerError` to refuse it."""
        try:
            # Now, while nobody forks: a child waits for ever for what another thread was importing.
            import psycopg  # noqa: F401
            import psycopg_pool  # noqa: F401
        except ImportError:
            raise LedgerError(address.name, HINT) from None
        probes(address)  # one that libpq cannot read is refused here, before a pool logs what it was given
        self._address = address
        self._greet = greet
        self._lock = threading.Lock()
        self._pool: ConnectionPool | None = None
        self._pid = os.getpid()
        self._closed = False
        # Those of which the server's settings are known, and whether a pooler is between; behind one address another
        # server may stand by now.
        self._pooled: WeakKeyDictionary[Connection, bool] = WeakKeyDictionary()
        self.prepares = True
        """Whether statements are prepared by name, where no pooler was seen; one that cannot be seen forbids it."""

    @contextmanager
    def lend(self, patience: float | None = None) -> Iterator[Connection]:
        """A connection in which nothing is under way. Whoever leaves it otherwise loses it.

        `patience`: how many seconds the server may be silent, where that is not `ANSWER_SECONDS`.
        """
        try:
            with self._lend(patience) as connection:
                yield connection
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            # An interrupt (Ctrl-C) may have come amid the books of the pool, which would miss a connection for ever.
            self._leave_pool()
            raise

    @contextmanager
    def _lend(self, patience: float | None) -> Iterator[Connection]:
        from psycopg import Error
        from psycopg_pool import PoolTimeout

        try:
            pool, connection = self._taken(patience)
        except PoolTimeout:
            raise LedgerError(self._address.name, f"{self._why_not(patience)}; nothing was charged") from None
        except Error as error:
            raise LedgerError(self._address.name, f"{plain(error)}; nothing was charged") from error
        # Behind a pooler the name may be that of another's statement, which would be done in place of ours.
        connection.prepare_threshold = 5 if self.prepares and not self.is_pooled(connection) else None
        try:
            yield connection
        except BaseException as error:
            if is_silence(error):
                # The others lead to the same server, and each would be waited for as long.
                self._leave_pool(pool)
            roll_back(connection)
            raise
        finally:
            pool.putconn(connection)

    def _taken(self, patience: float | None) -> tuple[ConnectionPool, Connection]:
        """A connection, and the pool that it is of."""
        from psycopg_pool import PoolClosed

        while True:
            pool = self._opened()
            try:
                return pool, self._good(pool, patience)
            except PoolClosed:
                if self._pool is pool:
                    raise
                # Another thread was interrupted, and has left it.

    def _good(self, pool: ConnectionPool, patience: float | None) -> Connection:
        """A connection to a server that keeps its promises."""
        from psycopg import Error

        deadline, pause = time.monotonic() + WAIT_SECONDS, 0.0
        while True:
            connection = _living(pool, patience)
            connection.patience = patience  # type: ignore[attr-defined]
            try:
                if connection not in self._pooled:
                    pooled = check_settings(connection, self._address)
                    self._greet(connection)
                    self._pooled[connection] = pooled
                return connection
            except BaseException as error:
                if is_silence(error):
                    self._leave_pool(pool)
                lost = isinstance(error, Error) and connection.closed and not is_silence(error)
                roll_back(connection)
                pool.putconn(connection)
                if not lost or time.monotonic() > deadline:
                    raise
            # A pooler lets everybody in, and those at once out again whose server is gone.
            time.sleep(pause)
            pause = min(1.0, 2 * pause + 0.01)

    def is_pooled(self, connection: Connection) -> bool:
        """Whether it is to a pooler, of which a session of the server is had for one transaction at a time."""
        return self._pooled[connection]

    def _opened(self) -> ConnectionPool:
        with self._lock:
            if self._closed:
                raise LedgerError(self._address.name, "it is closed")
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self._address.connect,
                    connection_class=bounded_connection(),
                    kwargs={**probes(self._address), "autocommit": True, "application_name": "ldp-budget"},
                    min_size=0,
                    max_size=self._address.connections,
                    timeout=WAIT_SECONDS,
                    reconnect_timeout=WAIT_SECONDS,
                    open=True,
                )
            return self._pool

    def _leave_pool(self, left: ConnectionPool | None = None) -> None:
        """Use another one from now on, if it is still `left`; what it has lent is closed when it comes back."""
        with self._lock:
            if left is not None and self._pool is not left:
                return
            pool, self._pool = self._pool, None
        if pool is not None:
            # Apart, as the interrupt may have left a lock of its own shut.
            threading.Thread(target=pool.close, daemon=True).start()

    def _why_not(self, patience: float | None) -> str:
        """Why no connection could be had, in the server's words if it says any."""
        import psycopg

        try:
            psycopg.connect(self._address.connect, connect_timeout=5 if patience is None else 2).close()
        except psycopg.Error as error:
            return plain(error)
        return f"all {self._address.connections} connections were busy for {patience or WAIT_SECONDS:g} s"

    def close(self) -> None:
        """Close them all; those that are lent, when they come back."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None and self._pid == os.getpid():
            pool.close()

    def after_fork_in_child(self) -> None:
        """Leave what is the parent's alone."""
        self._lock = threading.Lock()
        if self._pool is not None:
            _OF_PARENTS.append(self._pool)
            self._pool = None
        self._pid = os.getpid()


def first_connection(address: Address) -> Connection:
    """A connection outside of the pool, to look at what is there. Raises `LedgerError`."""
    import psycopg

    options = {**probes(address), "autocommit": True, "prepare_threshold": None, "application_name": "ldp-budget"}
    try:
        return bounded_connection().connect(address.connect, **options)
    except psycopg.Error as error:
        raise LedgerError(address.name, plain(error)) from None


def probes(address: Address) -> dict[str, Any]:
    """How libpq is to notice a server that vanished, but for what the address says of that."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        said = conninfo_to_dict(address.connect)
    except ProgrammingError as error:
        # libpq quotes the whole address, or the password.
        why = re.sub(r'".*"', "…", plain(error))
        raise LedgerError(address.name, f"its address cannot be read: {why}") from None
    if "PGCONNECT_TIMEOUT" in os.environ:
        said["connect_timeout"] = os.environ["PGCONNECT_TIMEOUT"]
    return {name: value for name, value in _PROBES.items() if name not in said}


class _Silence(Exception):  # noqa: N818
    """The server did not answer in time."""


@functools.cache
def bounded_connection() -> type[Connection]:
    """The class of connections on which no answer is waited for longer than their `patience`."""
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        patience: float | None = None
        """Seconds, in place of `ANSWER_SECONDS`."""

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            bound = ANSWER_SECONDS if self.patience is None else self.patience
            return super().wait(self._until(gen, bound), *args, **kwargs)

        def _until(self, gen: Generator[Any, Any, Any], bound: float) -> Generator[Any, Any, Any]:
            """The same steps, and an end of the connection where the server is silent for that long."""
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
    """Whether an error comes from a server that did not answer in time."""
    while error is not None:
        if isinstance(error, _Silence):
            return True
        error = error.__cause__ or error.__context__
    return False


def _living(pool: ConnectionPool, patience: float | None) -> Connection:
    """A connection that the server has not closed since it was last used, as far as one can see from here."""
    from psycopg import Error

    while True:
        connection = pool.getconn(patience)
        try:
            for _ in range(2):  # what the server says when it closes it, and its end
                connection.pgconn.consume_input()
            return connection
        except Error:
            connection.close()
            pool.putconn(connection)


def plain(error: BaseException) -> str:
    """What a server or its library says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2]) or type(error).__name__


def of_driver(error: BaseException, connection: Connection) -> Error | None:
    """The driver's error in this one, if there is one: itself, or that of a work among others.

    Where a session ends amid a pipeline, the driver's own book-keeping may fail, with an IndexError. Then the
    connection is good for nothing any more, and it is as if it had been lost.
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
    """The name of the module that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def roll_back(connection: Connection) -> None:
    """End whatever is under way; in doubt by closing the connection, which ends it on the server."""
    from psycopg import Error
    from psycopg.pq import TransactionStatus

    try:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            # Not by a statement: psycopg would still count on names that an error has kept from being prepared.
            connection.rollback()
    except Error:
        connection.close()
