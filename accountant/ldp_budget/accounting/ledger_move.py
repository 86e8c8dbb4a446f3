"""Moves a ledger to another store.

`ledger.migration_copy` and `ledger.migration_cutover` explain why a move is safe.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any

from .._validation import check_call
from ..errors import InvalidParameter, LedgerError, LedgerMissing
from ..ledger import Ledger
from ..ledger.migration_copy import Copy
from ..ledger.migration_cutover import begin, check_empty, differences, fence, hand_over, open_target, size
from ..ledger.models import MOVED_AWAY
from ..ledger.verification import check_integrity, head_of
from .connect import open_store
from .decision_replay import DecisionReplay
from .receipts import Receipt

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ..ledger.calendar import Read
    from ..ledger.hash_chain import Name
    from ..ledger.models import IdempotencyRecord
    from ..ledger.storage import Store
    from ..ledger.verification import Integrity

    Progress = Callable[[int, int], None]

_STEPS = 4


@dataclass(frozen=True)
class Moved:
    """A completed move: the names and heads of both ledgers, and the numbers of accounts and entries."""

    source: str
    target: str
    source_head: str
    target_head: str
    accounts: int
    entries: int

    def __repr__(self) -> str:
        much = f"{self.accounts} accounts and {self.entries} entries"
        return f"<Moved: {much} from {self.source} to {self.target}, head {self.target_head}>"

    def to_json(self) -> dict[str, Any]:
        """The output of `ledger move --json`."""
        return {
            "from": {"ledger": self.source, "head": self.source_head},
            "to": {"ledger": self.target, "head": self.target_head},
            "accounts": self.accounts,
            "entries": self.entries,
        }


def move_to(
    source: Ledger,
    clock: Read,
    place: str | os.PathLike[str] | Store,
    *,
    on_progress: Callable[[int, int], None] | None,
) -> Moved:
    """Move everything to another file or `postgresql://…`, where the ledger continues with the same key."""
    check_call("on_progress", on_progress)
    if isinstance(place, str) and place == ":memory:":
        raise InvalidParameter("ledger", "a path or postgresql://…, because memory ends with the process", place)
    progress = on_progress or (lambda done, total: None)
    with source.reading() as reading:
        moved, refusal = reading.end.state == MOVED_AWAY, reading.refusal()
    with ExitStack() as opened:
        target = None
        with suppress(LedgerMissing):
            target = opened.enter_context(closing(_open_target(source, clock, place, create=False)))
        if moved and target is None:
            raise refusal
        if not moved and target is not None:
            _check_target(source, target)
        if not moved:
            first = _verify(source, _step(progress, 0))  # before the target is created, and before charges stop
        if target is None:
            target = opened.enter_context(closing(_open_target(source, clock, place, create=True)))
            _check_target(source, target)
        if not moved:
            _fill(source, target, first, progress)
        open_target(source, target)
        return Moved(source.name, target.name, head_of(source), head_of(target), *size(source))


def _open_target(source: Ledger, clock: Read, place: str | os.PathLike[str] | Store, *, create: bool) -> Ledger:
    key = source.key
    store = open_store(place, create, key.secret, ledger_id=key.ledger_id or None)
    return Ledger(store, clock, half=True, filled_under=key.in_use.number)


def _check_target(source: Ledger, target: Ledger) -> None:
    """Raise `LedgerError` unless the target is another place, of the same kind and key, and empty."""
    if source.name == target.name or source.identity == target.identity:
        raise LedgerError(target.name, "a ledger cannot be moved to itself", hint="Name another place.")
    if source.key.sandbox != target.key.sandbox:
        kinds = "a real ledger", "a sandbox"
        why = (
            f"it is {kinds[target.key.sandbox]}, and {source.name} is {kinds[source.key.sandbox]}. Nothing was moved."
        )
        raise LedgerError(target.name, why, hint="Name a new place.")
    if not compare_digest(source.key.secret, target.key.secret):
        raise LedgerError(
            target.name,
            f"a ledger with another key than {source.name} exists there. Nothing was moved.",
            hint="Name a new place.",
        )
    check_empty(target)


def _fill(source: Ledger, target: Ledger, first: Integrity, on_progress: Progress) -> None:
    """Close both ledgers, copy, compare and verify, and mark the source as moved."""
    move = begin(source, target)
    fence(source, target, move)
    Copy(source, target, _carry, _step(on_progress, 1)).run()
    wrong = list(islice(differences(source, target), 3))
    if wrong:
        raise LedgerError(target.name, f"the copy differs from {source.name}: {'; '.join(wrong)}")
    _verify_again(source, first, _step(on_progress, 2))
    _verify(target, _step(on_progress, 3))
    hand_over(source, target, move)


def _verify(ledger: Ledger, on_progress: Progress) -> Integrity:
    return _sound(ledger, check_integrity(ledger, on_progress=on_progress, decide_again=DecisionReplay))


def _verify_again(source: Ledger, first: Integrity, on_progress: Progress) -> None:
    """Verify the closed source after it was copied; `first` is its verification before it was closed.

    Rows can have been changed by hand since then, and the copy gives what it read new MACs and a new chain. So whatever
    was copied is checked again: the chain with all that it covers, the users, and every row with a MAC. If the chain
    has the head of the first verification and then the entry that closed the ledger, then it has the entries whose
    decisions were replayed by then, and no other. What follows from them alone needs no second look: the decisions,
    and the sums, quotas and MACs of accounts. None of these is copied; the target has its own, computed from its
    journal, and all of them are verified there. Labels are copied, so accounts are compared in full where there are any.
    The head of several partitions is a checkpoint, which may be older than what was verified.
    """
    if len(source.partitions) == 1:
        found = _sound(source, check_integrity(source, first.head, on_progress, only_users=True))
        if found.entries <= first.entries + 1:
            return
    _verify(source, on_progress)


def _sound(ledger: Ledger, found: Integrity) -> Integrity:
    if not found.ok:
        raise LedgerError(
            ledger.name, f"its verification failed, so it was not moved: {'; '.join(found.problems[:3])}"
        )
    return found


def _step(on_progress: Progress, step: int) -> Progress:
    """Return the progress function of one step; each step counts as equally long."""
    return lambda done, total: on_progress(step * 1000 + 1000 * done // max(1, total), _STEPS * 1000)


def _carry(stored: IdempotencyRecord, name: Name) -> str:
    """Encode a stored response for the moved ledger: each receipt keeps its text."""
    return Receipt.named(stored.response, name)
