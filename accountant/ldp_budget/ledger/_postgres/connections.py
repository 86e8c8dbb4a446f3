"""Connections to the server of a ledger: a pool for each process, and errors in the ledger's words."""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ...errors import LedgerError
from .promises import check_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from psycopg import Connection, Error
    from psycopg_pool import ConnectionPool

    from .address import Address

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
