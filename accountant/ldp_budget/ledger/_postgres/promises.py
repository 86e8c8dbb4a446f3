"""What a server must promise before a ledger is kept there. What it does not, is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import LedgerError
from .catalog import path_of, set_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psycopg import Connection, Cursor

    from .address import Address
    from .unit import Unit

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
