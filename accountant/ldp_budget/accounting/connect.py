"""Connections: opens the store of a ledger from a path or a URL, and moves a ledger to another store.

`ledger.migration_copy` and `ledger.migration_cutover` explain why a move is safe.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any

from .._validation import check_call, check_path, check_switch, shown
from ..errors import InvalidParameter, LedgerError, LedgerMissing
from ..ledger import Ledger, lifecycle
from ..ledger.keyfile import check_kind
from ..ledger.migration_copy import Copy
from ..ledger.migration_cutover import begin, check_opening, differences, give_up, new_copy, open_copy, shut, size
from ..ledger.verification import check_integrity, head_of
from .decision_replay import DecisionReplay
from .receipts import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Ledger
    from ..ledger.calendar import Read
    from ..ledger.hash_chain import Name
    from ..ledger.migration_copy import Scratch
    from ..ledger.models import IdempotencyRecord
    from ..ledger.storage import Store

    Progress = Callable[[int, int], None]

_STEPS = 4


# -- moving a ledger ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copied:
    """A completed move: the names and heads of both ledgers, and the numbers of accounts and entries."""

    source: str
    target: str
    source_head: str
    target_head: str
    accounts: int
    entries: int

    def __repr__(self) -> str:
        much = f"{self.accounts} accounts and {self.entries} entries"
        return f"<Copied: {much} from {self.source} to {self.target}, head {self.target_head}>"

    def to_json(self) -> dict[str, Any]:
        """The output of `ledger move --json`."""
        return {
            "from": {"ledger": self.source, "head": self.source_head},
            "to": {"ledger": self.target, "head": self.target_head},
            "accounts": self.accounts,
            "entries": self.entries,
        }


def copy_ledger(
    source: Ledger,
    open_target: Callable[[bool], Ledger],
    scratch: Scratch,
    on_progress: Progress = lambda done, total: None,
) -> Copied:
    """Copy all of `source` to another ledger and close `source` to charges, or resume such a copy.


    `open_target` opens the other ledger. Its argument is True if it may create that ledger. Raises `LedgerError`.
    """
    verified = False
    try:
        target = open_target(False)
    except LedgerMissing:
        _check_open(source)
        _verify(source, _step(on_progress, 0))  # before the target is created
        target, verified = open_target(True), True
    try:
        if not _is_done(source, target):
            _prepare(source, target, verified, _step(on_progress, 0))
            _fill(source, target, scratch, on_progress)
        return Copied(source.name, target.name, head_of(source), head_of(target), *size(source))
    finally:
        target.close()


def abort_migration(source: Ledger, target: Ledger) -> None:
    """Reopen `source` after an incomplete copy to `target`. Raises `LedgerError`."""
    with source.reading() as here, target.reading() as there:
        copy = lifecycle.reason_of(there, lifecycle.origin(there.end.lifecycle)).move
        last = lifecycle.reason_of(here, here.end.lifecycle) if here.end.state == lifecycle.MOVED_AWAY else None
        if last is None:
            raise LedgerError(source.name, "it was not moved, so there is nothing to give up")
        if copy != last.move:
            raise LedgerError(target.name, f"it is not what {source.name} was moved to, which is {last.ledger}")
        if there.end.state == lifecycle.IMPORTING:
            check_opening(source, target)
    give_up(source, target)


def _fill(source: Ledger, target: Ledger, scratch: Scratch, on_progress: Progress) -> None:
    """Copy, compare, verify, and open the target."""
    Copy(source, target, scratch, _carry, _step(on_progress, 1)).run()
    wrong = list(islice(differences(source, target, scratch), 3))
    if wrong:
        raise LedgerError(target.name, f"the copy does not hold the same: {'; '.join(wrong)}")
    _verify(source, _step(on_progress, 2))
    _verify(target, _step(on_progress, 3))
    open_copy(source, target)


def _check_open(source: Ledger) -> None:
    with source.reading() as here:
        if here.end.state == lifecycle.MOVED_AWAY:
            raise LedgerError(source.name, lifecycle.why_shut(here))


def _is_done(source: Ledger, target: Ledger) -> bool:
    """True if the copy from `source` to `target` is complete. Raises `LedgerError` if no copy is possible."""
    if source.name == target.name or source.identity == target.identity:
        raise LedgerError(target.name, "expected another place than that of the ledger itself")
    if source.key.sandbox != target.key.sandbox:
        kinds = "a ledger that counts", "a sandbox"
        why = f"expected a place where nothing is yet; found {kinds[target.key.sandbox]}, and {source.name} is"
        raise LedgerError(target.name, f"{why} {kinds[source.key.sandbox]}: nothing goes from the one to the other")
    if not compare_digest(source.key.secret, target.key.secret):
        raise LedgerError(target.name, "expected a place where nothing is yet; found a ledger with another key")
    with source.reading() as here, target.reading() as there:
        state = there.end.state
        if state == lifecycle.ABORTED:
            raise LedgerError(target.name, lifecycle.why_half(there))
        copy = lifecycle.reason_of(there, lifecycle.origin(there.end.lifecycle)).move
        if here.end.state == lifecycle.MOVED_AWAY:
            reason = lifecycle.reason_of(here, here.end.lifecycle)
            if there.generation != here.generation + 1 or reason.move != copy:
                why = f"it was moved to {reason.ledger}, and not to what is now at {target.name}"
                raise LedgerError(source.name, why)
            if state == lifecycle.IMPORTING:
                check_opening(source, target)
            return state != lifecycle.IMPORTING
        # A copy that has only begun has no entries yet. Resuming it checks that it belongs to this generation.
        begun = state == lifecycle.IMPORTING and there.end.lifecycle == lifecycle.importing_state(here.end.lifecycle)
        if there.end.entries or not (begun or there.end.lifecycle == lifecycle.Lifecycle()):
            raise LedgerError(target.name, "expected a place where nothing is yet; found another ledger")
        return False


def _prepare(source: Ledger, target: Ledger, verified: bool, on_progress: Progress) -> None:
    """Close both ledgers to charges, the target first."""
    with source.reading() as here, target.reading() as there:
        if here.end.state == lifecycle.MOVED_AWAY:
            return
        begun = there.end.state == lifecycle.IMPORTING
        copy = lifecycle.reason_of(there, there.end.lifecycle).move if begun else new_copy()
    if not verified:
        _verify(source, on_progress)  # before charges stop
    if not begun:
        begin(source, target, copy)
    shut(source, target, copy)


def _verify(ledger: Ledger, on_progress: Progress) -> None:
    found = check_integrity(ledger, on_progress=on_progress, decide_again=DecisionReplay)
    if not found.ok:
        raise LedgerError(ledger.name, f"it does not verify, so it is not copied: {'; '.join(found.problems[:3])}")


def _step(on_progress: Progress, step: int) -> Progress:
    """Return the progress function of one step; each step counts as equally long."""
    return lambda done, total: on_progress(step * 1000 + 1000 * done // max(1, total), _STEPS * 1000)


def _carry(stored: IdempotencyRecord, name: Name) -> str:
    """Encode a stored response for the moved ledger: each receipt keeps its text."""
    return Receipt.named(stored.response, name)


def copy_to(
    ledger: Ledger,
    clock: Read,
    target: str | os.PathLike[str] | Store,
    *,
    on_progress: Callable[[int, int], None] | None,
) -> Copied:
    """Move everything to another file or `postgresql://…`, where the ledger continues with the same key."""
    check_call("on_progress", on_progress)
    from ..ledger.sqlite import SqliteScratch

    if isinstance(target, str) and target == ":memory:":
        raise InvalidParameter("ledger", "a path or postgresql://…, that does not end with this process", target)
    scratch = SqliteScratch()
    try:
        open_target = partial(_half_copied, ledger, clock, target)
        return copy_ledger(ledger, open_target, scratch, on_progress or (lambda done, total: None))
    finally:
        scratch.close()


def give_up_copy(ledger: Ledger, clock: Read, target: str | os.PathLike[str] | Store) -> None:
    """Reopen this ledger after an incomplete copy by `copy_to`."""

    half = _half_copied(ledger, clock, target, create=False)
    try:
        abort_migration(ledger, half)
    finally:
        half.close()


def _half_copied(ledger: Ledger, clock: Read, target: str | os.PathLike[str] | Store, create: bool) -> Ledger:
    key = ledger.key
    return Ledger(open_store(target, create, key.secret, ledger_id=key.ledger_id or None), clock, half=True)


# -- opening a store ---------------------------------------------------------------------------------------------


def open_store(
    ledger: str | os.PathLike[str] | Store,
    create: bool,
    secret: bytes | None = None,
    sandbox: bool | None = None,
    ledger_id: str | None = None,
) -> Store:
    """Open the store of a ledger; a new one gets the secret and the id of its source, if there is one."""
    check_switch("create", create)
    if sandbox is not None:
        check_switch("sandbox", sandbox)
    if isinstance(ledger, str | os.PathLike):
        if str(ledger).startswith(("postgresql://", "postgres://")):
            from ..ledger.postgres import PostgresStore

            return PostgresStore(str(ledger), create=create, secret=secret, sandbox=sandbox, ledger_id=ledger_id)
        if "://" in str(ledger):
            scheme = str(ledger).partition("://")[0]  # the rest may contain a password
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", f"{scheme}://…")
        if _ADDRESS.match(str(ledger)):
            raise InvalidParameter("ledger", "a path, :memory: or postgresql://…", "an address of another form")
        from ..ledger.sqlite import SqliteStore

        place = ":memory:" if str(ledger) == ":memory:" else check_path("ledger", ledger)
        return SqliteStore(place, create=create, secret=secret, sandbox=sandbox, ledger_id=ledger_id)
    if isinstance(ledger, type) or not all(hasattr(ledger, name) for name in _OF_A_STORE):
        raise InvalidParameter("ledger", "a path, :memory:, postgresql://… or a store", shown(ledger))
    check_kind(ledger.key, ledger.name, sandbox)
    if ledger_id is not None:
        ledger.key.set_ledger_id(ledger_id)
    return ledger


# A mistyped URL would become the name of a file, with its password in it.
_ADDRESS = re.compile(r"\s*postgres(ql)?:|(.*\s)?(password|host|dbname)\s*=", re.IGNORECASE)
_OF_A_STORE = "name", "key", "partitions", "run", "snapshot"
