"""Where a ledger lies: opening it, copying it to a file, and moving it to another place."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING

from .._checks import check_call, check_path, check_switch, shown
from ..errors import InvalidParameter
from ..ledger import Ledger
from ..ledger.keys import check_kind
from .books import Books

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger.store import Store
    from .copying import Copied


def backup(self: Books, path: str | os.PathLike[str]) -> None:
    """Copy the ledger, as it is at one moment, and its key; others may write meanwhile.

    Parameters:
        path: of the copy; the key goes to `path` with `.key`.

    Raises:
        InvalidParameter: it is no path.
        LedgerError: something is there already, or `copy_to` has not filled this ledger yet.
        NotSupported: the ledger lies in a database, which has tools of its own for that.
    """
    self._ledger.backup(check_path("path", path))


def copy_to(
    self: Books,
    ledger: str | os.PathLike[str] | Store,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> Copied:
    """Move everything to another place, a file or `postgresql://…`, where it goes on as a ledger of the same key.

    This ledger charges nobody any more, from before anything is copied; it can still be read. The other one is of
    no use before all is there and both were verified. Stopped at any point, the same call goes on. Receipts and
    keys stay what they are.

    Parameters:
        ledger: the other place, as for `Accountant`.
        on_progress: called as `on_progress(done, total)` from time to time, with steps.

    Returns:
        The names of both, their heads to note, and how much was copied.

    Raises:
        InvalidParameter: one of them is of another kind.
        LedgerError: something else lies there, or this ledger does not verify; then nothing was changed.
        ClockError: the clock cannot be believed.
        NotSupported: it lies in a database, and what speaks to that is not installed.
    """
    check_call("on_progress", on_progress)
    from ..ledger._sqlite import SqliteScratch
    from .copying import copy_ledger

    if isinstance(ledger, str) and ledger == ":memory:":
        raise InvalidParameter("ledger", "a path or postgresql://…, that does not end with this process", ledger)
    scratch = SqliteScratch()
    try:
        open_target = partial(_half_copied, self, ledger)
        return copy_ledger(self._ledger, open_target, scratch, on_progress or (lambda done, total: None))
    finally:
        scratch.close()


def give_up_copy(self: Books, ledger: str | os.PathLike[str] | Store) -> None:
    """Open this ledger again, of which a copy was begun by `copy_to` and is not complete.

    What there is of the copy can never be used, nor gone on with.

    Parameters:
        ledger: the other place, as for `copy_to`.

    Raises:
        InvalidParameter: it is no place of a ledger.
        LedgerError: the copy is complete, or is not there: nobody could tell then that nobody is charged there.
        NotSupported: it lies in a database, and what speaks to that is not installed.
    """
    from .copying import give_up_copy

    target = _half_copied(self, ledger, create=False)
    try:
        give_up_copy(self._ledger, target)
    finally:
        target.close()


def _half_copied(self: Books, ledger: str | os.PathLike[str] | Store, create: bool) -> Ledger:
    key = self._ledger.key
    return Ledger(
        open_store(ledger, create, key.secret, ledger_id=key.ledger_id or None), self._read_clock, half=True
    )


def open_store(
    ledger: str | os.PathLike[str] | Store,
    create: bool,
    secret: bytes | None = None,
    sandbox: bool | None = None,
    ledger_id: str | None = None,
) -> Store:
    """The store of a ledger; one that is made here gets the secret and the id of its source, if there is one."""
    check_switch("create", create)
    if sandbox is not None:
        check_switch("sandbox", sandbox)
    if isinstance(ledger, str | os.PathLike):
        if str(ledger).startswith(("postgresql://", "postgres://")):
            from ..ledger._postgres import PostgresStore

            return PostgresStore(str(ledger), create=create, secret=secret, sandbox=sandbox, ledger_id=ledger_id)
        if "://" in str(ledger):
            scheme = str(ledger).partition("://")[0]  # what follows may be a password
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", f"{scheme}://…")
        if _ADDRESS.match(str(ledger)):
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", "an address of another form")
        from ..ledger._sqlite import SqliteStore

        place = ":memory:" if str(ledger) == ":memory:" else check_path("ledger", ledger)
        return SqliteStore(place, create=create, secret=secret, sandbox=sandbox, ledger_id=ledger_id)
    if isinstance(ledger, type) or not all(hasattr(ledger, name) for name in _OF_A_STORE):
        raise InvalidParameter("ledger", "a path, :memory:, postgresql://… or a store", shown(ledger))
    check_kind(ledger.key, ledger.name, sandbox)
    if ledger_id is not None:
        ledger.key.set_ledger_id(ledger_id)
    return ledger


# A mistyped address would become a file's name, with its password in it.
_ADDRESS = re.compile(r"\s*postgres(ql)?:|(.*\s)?(password|host|dbname)\s*=", re.IGNORECASE)
_OF_A_STORE = "name", "key", "partitions", "run", "snapshot"
