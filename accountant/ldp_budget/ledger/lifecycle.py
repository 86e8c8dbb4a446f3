"""Lifecycle state of a ledger: open, moved to another one, being filled by a move, or aborted.

Every partition counts how often the state has changed, beside its entries, so that a writer learns it at no cost, and
nobody can take it back unseen. Beside the state are the ledger's *generation*, which is how often it was moved on its
way here, and the secret of its key that is in force (`exchanging`). The reason why it is shut is a row of `closings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .models import ABORTED, IMPORTING, MOVED_AWAY, OPEN, Closing, Lifecycle, Opening

if TYPE_CHECKING:
    from .snapshot import Reading

__all__ = ["ABORTED", "IMPORTING", "MOVED_AWAY", "OPEN", "Closing", "Lifecycle", "Opening"]

_UNKNOWN = Closing(0, 0, 0, "", "another ledger")


def importing_state(source: Lifecycle) -> Lifecycle:
    """That of a ledger that is filled from another one."""
    return Lifecycle(IMPORTING, 0, source.generation + 1, source.secret)


def origin(lifecycle: Lifecycle) -> Lifecycle:
    """That which a moved ledger had while it was filled."""
    return lifecycle._replace(state=IMPORTING, changes=0)


def next_state(lifecycle: Lifecycle, wanted: int) -> Lifecycle:
    """The next one in the wanted state: what counts the changes only grows."""
    return lifecycle._replace(state=wanted, changes=lifecycle.changes + 1)


def reason_of(reading: Reading, lifecycle: Lifecycle) -> Closing:
    """Why it is, or was, shut."""
    return reading.numbered(Closing, lifecycle.generation, lifecycle.changes) or _UNKNOWN


def opening_of(reading: Reading) -> Opening | None:
    """Which target may open, if that was noted since the ledger is in this state."""
    return reading.numbered(Opening, reading.end.generation, reading.end.changes)


def why_shut(reading: Reading) -> str:
    """In words, why nothing may be written."""
    reason = reason_of(reading, reading.end.lifecycle)
    if reading.end.state == MOVED_AWAY:
        return f"it was moved to {reason.ledger}, and goes on there; nothing was charged"
    return why_half(reading)


def why_half(reading: Reading) -> str:
    """In words, why it is not even read."""
    reason = reason_of(reading, reading.end.lifecycle)
    if reading.end.state == IMPORTING:
        return f"it is being copied from {reason.ledger}, and of no use before that is done; nothing was charged"
    return f"the copy from {reason.ledger} was given up, and this part of it is of no use; nothing was charged"
