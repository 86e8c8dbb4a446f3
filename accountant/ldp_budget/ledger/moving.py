"""The steps by which a ledger goes from one place to another, each a transaction of all partitions of one of the two.

`begin` shuts the place, `shut` the source, `open_copy` opens the place when all is there; until then `give_up` opens
the source again. At no moment are both open to charges.

Files can be copied while they are filled, and every such copy could be filled to the end. So the source notes which
target opens, by a random id that this target made and by its place, and no other one opens after that.
"""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING

from ..errors import LedgerError
from ..guarantees.amounts import ZERO
from . import exchanging, gate
from .entries import COPIED, MOVED, REOPENED, Entry, PartitionHead

if TYPE_CHECKING:
    from .ledger import Ledger
    from .transaction import Transaction


def new_copy() -> str:
    """A name for a copy, which both ledgers note."""
    return token_hex(8)


def begin(source: Ledger, target: Ledger, copy: str) -> None:
    """Shut the place of the copy to all. Raises `LedgerError` where something stands there.

    Also where the source's key is being exchanged, or was since the place was made.
    """
    secrets = set()
    for partition in source.partitions:
        with source.reading(partition) as reading:
            secrets.add(reading.secret.number)
            begun = gate.importing_state(reading.end.lifecycle)
    if len(secrets) > 1:
        raise LedgerError(source.name, "its key is being exchanged, partition by partition; end that, and copy then")
    if not target.key.replaces(source.key):
        why = f"the key of {source.name} was exchanged since this place was made; remove it, and copy anew"
        raise LedgerError(target.name, why)

    def shut(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end._replace(checkpoints=0) != PartitionHead():
                raise LedgerError(target.name, "expected a place where nothing is yet; found another ledger")
            transaction.set_lifecycle(begun, (copy, source.name))
            if transaction.secret.number > 1:
                exchanging.note(transaction, begun.generation)

    target.run_together(shut, target.partitions, allow_closed=True)


def shut(source: Ledger, target: Ledger, copy: str) -> None:
    """Shut the source for good: it goes on in the target, under the same secret of the key.

    Raises `LedgerError` where that was exchanged since the copy was begun, or is in force in some partitions only.
    """
    with target.reading() as reading:
        secret = reading.secret.number

    def move(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state != gate.OPEN:
                raise LedgerError(source.name, gate.why_shut(transaction))
            if transaction.secret.number != secret:
                why = (
                    f"partition {transaction.partition} is under secret {transaction.secret.number} of its key, which was "
                    f"exchanged since the copy was begun; end that, remove what is at {target.name}, and copy anew"
                )
                raise LedgerError(source.name, why)
            transaction.append(Entry(0, transaction.time(), MOVED, 0, 0, 0, 0, ZERO))
            following = gate.next_state(transaction.end.lifecycle, gate.MOVED_AWAY)
            transaction.set_lifecycle(following, (copy, target.name))

    source.run_together(move, source.partitions, allow_closed=True)


def check_opening(source: Ledger, target: Ledger) -> None:
    """Raise `LedgerError` where `source` has noted that another target opens."""
    with source.reading() as here, target.reading() as there:
        noted, mine = gate.opening_of(here), gate.opening_of(there)
        if noted is not None:
            _compare(noted, mine, target)


def _compare(noted: gate.Opening, mine: gate.Opening | None, target: Ledger) -> None:
    """Raise `LedgerError` unless the target that the source has noted is this one."""
    if mine is None or (noted.id, noted.identity) != (mine.id, target.identity):
        why = f"this is a second copy of the ledger that was moved to {noted.ledger}, and can never be used"
        raise LedgerError(target.name, f"{why}. Remove this copy, and use {noted.ledger}")


def open_copy(source: Ledger, target: Ledger) -> None:
    """Open the place of the copy, which is complete. Raises `LedgerError` where another target has opened."""
    opening = gate.Opening(0, 0, 0, token_hex(16), "", "")

    def propose(transactions: list[Transaction]) -> gate.Opening:
        noted = gate.opening_of(transactions[0])
        if noted is None:
            _note_opening(transactions[0], opening)
        return noted or opening

    def choose(transactions: list[Transaction]) -> None:
        (transaction,) = transactions
        if transaction.end.state != gate.MOVED_AWAY:
            raise LedgerError(source.name, f"it was opened again, so its copy at {target.name} can never be used")
        noted = gate.opening_of(transaction)
        if noted is None:
            _note_opening(transaction, mine._replace(identity=target.identity, ledger=target.name))
        else:
            _compare(noted, mine, target)

    mine = target.run_together(propose, [0], allow_closed=True)
    source.run_together(choose, [0], allow_closed=True)
    _open(target)


def _note_opening(transaction: Transaction, opening: gate.Opening) -> None:
    """Keep which target may open, in the source or in the target itself."""
    end = transaction.end
    transaction.add_numbered(opening._replace(generation=end.generation, changes=end.changes))


def _open(target: Ledger) -> None:
    def finish(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state != gate.IMPORTING:
                raise LedgerError(target.name, "it is not being copied any more")
            transaction.append(Entry(0, transaction.time(), COPIED, 0, 0, 0, 0, ZERO))
            transaction.set_lifecycle(gate.next_state(transaction.end.lifecycle, gate.OPEN))

    target.run_together(finish, target.partitions, allow_closed=True)


def give_up(source: Ledger, target: Ledger) -> None:
    """Open the source again, of which the copy is not complete and never will be: it is of no use any more."""

    def spoil(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state not in (gate.IMPORTING, gate.ABORTED):
                raise LedgerError(target.name, "it is complete, and the ledger goes on there")
            if transaction.end.state == gate.IMPORTING:
                reason = gate.reason_of(transaction, transaction.end.lifecycle)
                aborted = gate.next_state(transaction.end.lifecycle, gate.ABORTED)
                transaction.set_lifecycle(aborted, (reason.move, reason.ledger))

    def reopen(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state == gate.MOVED_AWAY:
                transaction.append(Entry(0, transaction.time(), REOPENED, 0, 0, 0, 0, ZERO))
                transaction.set_lifecycle(gate.next_state(transaction.end.lifecycle, gate.OPEN))

    target.run_together(spoil, target.partitions, allow_closed=True)
    source.run_together(reopen, source.partitions, allow_closed=True)
