"""Copying a ledger to another place, where it goes on; why that is safe stands in `ledger.moving` and `copying`."""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError, LedgerMissing
from ..ledger import gate
from ..ledger.comparing import differences, size
from ..ledger.copying import Copy
from ..ledger.moving import begin, check_opening, give_up, new_copy, open_copy, shut
from ..ledger.verifying import check_integrity, head_of
from .decision_replay import DecisionReplay
from .receipts import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Ledger
    from ..ledger.copying import Scratch
    from ..ledger.entries import IdempotencyRecord
    from ..ledger.names import Name

    Progress = Callable[[int, int], None]

_STEPS = 4


@dataclass(frozen=True)
class Copied:
    """A copy that is done: both ledgers by name, their heads to note, and how many accounts and entries it has."""

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
        """What `ledger move --json` prints."""
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
    """Copy all of `source` to another ledger and shut `source`, or go on with that. Raises `LedgerError`.

    `open_target` opens the other one, and makes it if it is told that it may.
    """
    verified = False
    try:
        target = open_target(False)
    except LedgerMissing:
        _check_open(source)
        _verify(source, _step(on_progress, 0))  # before anything is made
        target, verified = open_target(True), True
    try:
        if not _is_done(source, target):
            _prepare(source, target, verified, _step(on_progress, 0))
            _fill(source, target, scratch, on_progress)
        return Copied(source.name, target.name, head_of(source), head_of(target), *size(source))
    finally:
        target.close()


def give_up_copy(source: Ledger, target: Ledger) -> None:
    """Open `source` again, of which a copy to `target` was begun and is not complete. Raises `LedgerError`."""
    with source.reading() as here, target.reading() as there:
        copy = gate.reason_of(there, gate.origin(there.end.lifecycle)).move
        last = gate.reason_of(here, here.end.lifecycle) if here.end.state == gate.MOVED_AWAY else None
        if last is None:
            raise LedgerError(source.name, "it was not moved, so there is nothing to give up")
        if copy != last.move:
            raise LedgerError(target.name, f"it is not what {source.name} was moved to, which is {last.ledger}")
        if there.end.state == gate.IMPORTING:
            check_opening(source, target)
    give_up(source, target)


def _fill(source: Ledger, target: Ledger, scratch: Scratch, on_progress: Progress) -> None:
    """Copy, compare, verify, open."""
    Copy(source, target, scratch, _carry, _step(on_progress, 1)).run()
    wrong = list(islice(differences(source, target, scratch), 3))
    if wrong:
        raise LedgerError(target.name, f"the copy does not hold the same: {'; '.join(wrong)}")
    _verify(source, _step(on_progress, 2))
    _verify(target, _step(on_progress, 3))
    open_copy(source, target)


def _check_open(source: Ledger) -> None:
    with source.reading() as here:
        if here.end.state == gate.MOVED_AWAY:
            raise LedgerError(source.name, gate.why_shut(here))


def _is_done(source: Ledger, target: Ledger) -> bool:
    """Whether the copy from the one to the other is complete. Raises `LedgerError` where there can be none."""
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
        if state == gate.ABORTED:
            raise LedgerError(target.name, gate.why_half(there))
        copy = gate.reason_of(there, gate.origin(there.end.lifecycle)).move
        if here.end.state == gate.MOVED_AWAY:
            reason = gate.reason_of(here, here.end.lifecycle)
            if there.generation != here.generation + 1 or reason.move != copy:
                why = f"it was moved to {reason.ledger}, and not to what is now at {target.name}"
                raise LedgerError(source.name, why)
            if state == gate.IMPORTING:
                check_opening(source, target)
            return state != gate.IMPORTING
        # Of one that is begun nothing is copied yet; whether it was for this generation is seen to when it goes on.
        begun = state == gate.IMPORTING and there.end.lifecycle == gate.importing_state(here.end.lifecycle)
        if there.end.entries or not (begun or there.end.lifecycle == gate.Lifecycle()):
            raise LedgerError(target.name, "expected a place where nothing is yet; found another ledger")
        return False


def _prepare(source: Ledger, target: Ledger, verified: bool, on_progress: Progress) -> None:
    """Shut both, the target first."""
    with source.reading() as here, target.reading() as there:
        if here.end.state == gate.MOVED_AWAY:
            return
        begun = there.end.state == gate.IMPORTING
        copy = gate.reason_of(there, there.end.lifecycle).move if begun else new_copy()
    if not verified:
        _verify(source, on_progress)  # before anybody is stopped
    if not begun:
        begin(source, target, copy)
    shut(source, target, copy)


def _verify(ledger: Ledger, on_progress: Progress) -> None:
    found = check_integrity(ledger, on_progress=on_progress, decide_again=DecisionReplay)
    if not found.ok:
        raise LedgerError(ledger.name, f"it does not verify, so it is not copied: {'; '.join(found.problems[:3])}")


def _step(on_progress: Progress, step: int) -> Progress:
    """Progress within one of the steps, told as if all took as long."""
    return lambda done, total: on_progress(step * 1000 + 1000 * done // max(1, total), _STEPS * 1000)


def _carry(stored: IdempotencyRecord, name: Name) -> str:
    """The response of a record as a moved ledger keeps it: a receipt stays what it was."""
    return Receipt.named(stored.response, name)
