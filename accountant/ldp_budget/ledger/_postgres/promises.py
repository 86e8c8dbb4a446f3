"""What a server must promise before a ledger is kept there. What it does not, is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import LedgerError

if TYPE_CHECKING:
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
    session = judge_settings(connection.execute(_ASK), address)
    return session != connection.info.backend_pid


def ask_settings(unit: Unit) -> Cursor[Any]:
    """Ask, in a transaction, for what `judge_settings` judges."""
    return unit.run(_ASK)


def judge_settings(answer: Cursor[Any], address: Address) -> int:
    """The number of the session that has answered. Raises `LedgerError`."""
    row: Any = answer.fetchone()
    *settings, standbys, session = row
    for (name, good), found in zip(_NEEDED.items(), settings, strict=False):
        if found not in good:
            expected = " or ".join(f"{name} = {each}" for each in good)
            why = f"expected {expected}; found {found}: with it the server forgets spends that it acknowledged"
            raise LedgerError(address.name, why)
    _judge_standbys(settings[-1], standbys, address)
    return int(session)


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


def check_isolation(first: Connection, second: Connection, address: Address) -> None:
    """That a row which one transaction has locked cannot be locked by another. Raises `LedgerError`.

    Nobody waits for the lock: of several who open a ledger behind a pooler, each would wait with a session that the
    others need. Whoever does not get it first has seen that others exclude him, which is what is asked.
    """
    from psycopg import errors

    lock = "SELECT value FROM meta WHERE name = 'key_check' FOR UPDATE NOWAIT"
    first.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        first.execute(lock)
        second.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            second.execute(lock)
        finally:
            second.execute("ROLLBACK")
    except errors.LockNotAvailable:
        return
    finally:
        first.execute("ROLLBACK")
    raise LedgerError(address.name, "two transactions had the lock of one row at the same time; nothing is kept here")
