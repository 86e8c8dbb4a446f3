"""What a server must promise before a ledger is kept there. What it does not, is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import LedgerError

if TYPE_CHECKING:
    from psycopg import Connection

    from .address import Address

_NEEDED = {
    "synchronous_commit": ("on", "remote_apply"),
    "fsync": ("on",),
    "full_page_writes": ("on",),
}
OLDEST = 150000
"""The oldest version of the server, as it counts them."""


def check_settings(connection: Connection, address: Address) -> None:
    """That an acknowledged commit is on the disk, and on the standbys that were declared. Raises `LedgerError`."""
    version = connection.info.server_version
    if version < OLDEST:
        raise LedgerError(address.name, f"expected PostgreSQL {OLDEST // 10000} or newer; found {version // 10000}")
    for name, good in _NEEDED.items():
        found = _show(connection, name)
        if found not in good:
            expected = " or ".join(f"{name} = {each}" for each in good)
            why = f"expected {expected}; found {found}: with it the server forgets spends that it acknowledged"
            raise LedgerError(address.name, why)
    _check_standbys(connection, address)


def _check_standbys(connection: Connection, address: Address) -> None:
    synchronous = _show(connection, "synchronous_standby_names")
    row: Any = connection.execute("SELECT count(*) FROM pg_stat_replication").fetchone()
    if address.ha == "quorum":
        if not synchronous:
            why = "expected synchronous_standby_names, for ha=quorum was declared; found none"
            raise LedgerError(address.name, f"{why}: a standby that is promoted would lack what was acknowledged")
    elif address.ha is None and (synchronous or row[0]):
        why = (
            "its server has standbys, and nobody said what becomes of them. Put ha=quorum into the address if a"
            " standby is promoted only when synchronous_standby_names guarantees that it has every commit, or ha=none"
            " if none is ever promoted"
        )
        raise LedgerError(address.name, why)


def check_isolation(first: Connection, second: Connection, address: Address) -> None:
    """That a row which one transaction has locked cannot be locked by another. Raises `LedgerError`."""
    from psycopg import errors

    lock = "SELECT value FROM meta WHERE name = 'key_check' FOR UPDATE"
    first.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        first.execute(lock)
        second.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            second.execute(f"{lock} NOWAIT")
        except errors.LockNotAvailable:
            return
        finally:
            second.execute("ROLLBACK")
    finally:
        first.execute("ROLLBACK")
    raise LedgerError(address.name, "two transactions had the lock of one row at the same time; nothing is kept here")


def _show(connection: Connection, name: str) -> str:
    row: Any = connection.execute(f"SHOW {name}").fetchone()
    return str(row[0])
