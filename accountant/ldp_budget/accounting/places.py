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

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger.clock import Read
    from ..ledger.store import Store
    from .copying import Copied


def copy_to(
    ledger: Ledger,
    clock: Read,
    target: str | os.PathLike[str] | Store,
    *,
    on_progress: Callable[[int, int], None] | None,
) -> Copied:
    """Move everything to another place, a file or `postgresql://…`, where it goes on as a ledger of the same key."""
    check_call("on_progress", on_progress)
    from ..ledger._sqlite import SqliteScratch
    from .copying import copy_ledger

    if isinstance(target, str) and target == ":memory:":
        raise InvalidParameter("ledger", "a path or postgresql://…, that does not end with this process", target)
    scratch = SqliteScratch()
    try:
        open_target = partial(_half_copied, ledger, clock, target)
        return copy_ledger(ledger, open_target, scratch, on_progress or (lambda done, total: None))
    finally:
        scratch.close()


def give_up_copy(ledger: Ledger, clock: Read, target: str | os.PathLike[str] | Store) -> None:
    """Open this ledger again, of which a copy was begun by `copy_to` and is not complete."""
    from .copying import give_up_copy

    half = _half_copied(ledger, clock, target, create=False)
    try:
        give_up_copy(ledger, half)
    finally:
        half.close()


def _half_copied(ledger: Ledger, clock: Read, target: str | os.PathLike[str] | Store, create: bool) -> Ledger:
    key = ledger.key
    return Ledger(open_store(target, create, key.secret, ledger_id=key.ledger_id or None), clock, half=True)


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
