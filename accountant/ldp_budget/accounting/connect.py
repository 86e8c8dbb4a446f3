"""Connections: opens the store of a ledger from a path or a URL, and restores a ledger from a backup."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .._validation import check_path, check_switch, shown_with_type
from ..errors import InvalidParameter, LedgerError, NotSupported
from ..ledger.key_file import check_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger.storage import Store


def open_store(
    ledger: str | os.PathLike[str] | Store,
    create: bool,
    secret: bytes | None = None,
    sandbox: bool | None = None,
    ledger_id: str | None = None,
    **upgrade: bool,
) -> Store:
    """Open the store of a ledger; a new one gets the secret and the id of its source, if there is one.

    With `upgrade=True`, its tables may be of an earlier version that migrations make current.
    """
    check_switch("create", create)
    if sandbox is not None:
        check_switch("sandbox", sandbox)
    if isinstance(ledger, str | os.PathLike):
        if "://" in str(ledger):
            store = _store_of(str(ledger).partition("://")[0])
            return store(str(ledger), create=create, secret=secret, sandbox=sandbox, ledger_id=ledger_id, **upgrade)
        if _ADDRESS.match(str(ledger)):
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", "a URL of another form")
        check_platform(str(ledger))
        from ..ledger.sqlite import SqliteStore

        place = ":memory:" if str(ledger) == ":memory:" else check_path("ledger", ledger)
        return SqliteStore(place, create=create, secret=secret, sandbox=sandbox, ledger_id=ledger_id, **upgrade)
    if isinstance(ledger, type) or not all(hasattr(ledger, name) for name in _OF_A_STORE):
        raise InvalidParameter("ledger", "a path, :memory:, postgresql://… or a store", shown_with_type(ledger))
    check_kind(ledger.key, ledger.name, sandbox)
    if ledger_id is not None:
        ledger.key.set_ledger_id(ledger_id)
    return ledger


def check_platform(ledger: str) -> None:
    """Raise `LedgerError` for a ledger in a file on a system without its file locks, such as Windows."""
    if ledger == ":memory:" or "://" in ledger or find_spec("fcntl"):
        return
    raise LedgerError(
        ledger,
        "a ledger file needs file locks that this system does not have. Nothing was written",
        hint="Use the Windows Subsystem for Linux (WSL), the container, PostgreSQL, or a service by its URL.",
    )


def _store_of(scheme: str) -> Callable[..., Store]:
    """Return the store for the URLs of a scheme. A distribution adds its own in the entry-point group of stores."""
    from importlib.metadata import entry_points  # a ledger in a file does not need it

    for entry in entry_points(group=STORES, name=scheme):
        store: Callable[..., Store] = entry.load()
        return store
    # The rest of the URL may contain a password.
    raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", f"{scheme}://…")


STORES = "ldp_budget.stores"
"""The entry-point group of stores. The name of an entry point is the scheme of its URLs."""

# A mistyped URL would become the name of a file, with its password in it.
_ADDRESS = re.compile(r"\s*postgres(ql)?:|(.*\s)?(password|host|dbname)\s*=", re.IGNORECASE)
_OF_A_STORE = "name", "key", "partitions", "attempts", "snapshot"


def restore(ledger: str, backup: str, verify: Callable[[str], None]) -> str | None:
    """Replace a ledger in a file by a backup; return the new name of the old ledger, if there was one.

    `verify` gets the path of a copy of the backup, and raises an error if it must not become the ledger. Raises
    `NotSupported` for another ledger, and `LedgerError` if a process has the ledger open.
    """
    if "://" in ledger or ledger == ":memory:":
        raise NotSupported("only a ledger in a file can be restored here. Use the server's own tools")
    check_platform(ledger)
    from ..ledger.sqlite.restore import restore as restore_file
    from .last_verification import forget_verification

    aside = restore_file(ledger, backup, verify)
    forget_verification(ledger)  # of a head that the backup may not have
    return aside
