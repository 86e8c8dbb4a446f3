"""Copying a ledger to another place, where it goes on; see `ledger.copying` for how that is safe."""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError
from ..ledger import gate
from ..ledger.comparing import differences
from ..ledger.copying import Copy, begin, new_copy, open_copy, shut
from ..ledger.entries import NOBODY
from ..ledger.verifying import check_integrity, head_of
from .bulk import carried
from .receipts import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Ledger
    from ..ledger.copying import Scratch
    from ..ledger.entries import StoredAnswer
    from ..ledger.names import Name

    Progress = Callable[[int, int], None]

_STEPS = 4


@dataclass(frozen=True)
class Copied:
    """A copy that is done: both ledgers by name, their heads to note, and how many users and entries were copied."""

    source: str
    target: str
    source_head: str
    target_head: str
    users: int
    entries: int

    def to_json(self) -> dict[str, Any]:
        """What `ledger copy --json` prints."""
        return {
            "from": {"ledger": self.source, "head": self.source_head},
            "to": {"ledger": self.target, "head": self.target_head},
            "users": self.users,
            "entries": self.entries,
        }


def copy_ledger(
    source: Ledger, target: Ledger, scratch: Scratch, on_progress: Progress = lambda done, total: None
) -> Copied:
    """Copy all of `source` to `target` and shut `source`, or go on with that. Raises `LedgerError`."""
    if not _is_done(source, target):
        _prepare(source, target, _step(on_progress, 0))
        Copy(source, target, scratch, _carry, _step(on_progress, 1)).run()
        wrong = list(islice(differences(source, target, scratch), 3))
        if wrong:
            raise LedgerError(target.name, f"the copy does not hold the same: {'; '.join(wrong)}")
        _verify(source, _step(on_progress, 2))
        _verify(target, _step(on_progress, 3))
        open_copy(target)
    users = entries = 0
    for lane in source.lanes:
        with source.reading(lane) as reading:
            users += reading.end.accounts
            entries += reading.end.entries
    return Copied(source.name, target.name, head_of(source), head_of(target), users, entries)


def _is_done(source: Ledger, target: Ledger) -> bool:
    """Whether the copy from the one to the other is complete. Raises `LedgerError` where there can be none."""
    if source.name == target.name:
        raise LedgerError(target.name, "expected another place than that of the ledger itself")
    if not compare_digest(source.key.secret, target.key.secret):
        raise LedgerError(target.name, "expected a place where nothing is yet; found a ledger with another key")
    with source.reading() as here, target.reading() as there:
        moved = gate.state(here.end.gate) == gate.MOVED
        state = gate.state(there.end.gate)
        if state == gate.GIVEN_UP:
            raise LedgerError(target.name, gate.why_half(there))
        copies = there.generation == here.generation + 1
        copy = gate.reason_of(there, gate.origin(there.end.gate)).copy if copies else None
        if moved:
            reason = gate.reason_of(here, here.end.gate)
            if reason.copy != copy:
                raise LedgerError(
                    source.name, f"it was moved to {reason.ledger}, and {target.name} is not what it was moved to"
                )
            return state != gate.FILLING
        if state != gate.FILLING and (copy is not None or there.end.entries):
            raise LedgerError(target.name, "expected a place where nothing is yet; found another ledger")
        return False


def _prepare(source: Ledger, target: Ledger, on_progress: Progress) -> None:
    """Shut both, the target first."""
    with source.reading() as here, target.reading() as there:
        if gate.state(here.end.gate) == gate.MOVED:
            return
        begun = gate.state(there.end.gate) == gate.FILLING
        copy = gate.reason_of(there, there.end.gate).copy if begun else new_copy()
        if begun and (there.end.entries or there.end.gate != gate.begun(here.end.gate)):
            raise LedgerError(target.name, "expected a place where nothing is yet; found another ledger")
    _verify(source, on_progress)  # before anybody is stopped
    if not begun:
        begin(source, target, copy)
    shut(source, target, copy)


def _verify(ledger: Ledger, on_progress: Progress) -> None:
    found = check_integrity(ledger, on_progress=on_progress)
    if not found.ok:
        raise LedgerError(ledger.name, f"it does not verify, so it is not copied: {'; '.join(found.problems[:3])}")


def _step(on_progress: Progress, step: int) -> Progress:
    """Progress within one of the steps, told as if all took as long."""
    return lambda done, total: on_progress(step * total + done, _STEPS * total)


def _carry(stored: StoredAnswer, name: Name, lanes: int) -> str:
    """What is kept of an answer: a receipt stays what it was, and a bulk run says in how many lanes it was begun."""
    return carried(stored.answer, lanes) if stored.user == NOBODY else Receipt.named(stored.answer, name)
