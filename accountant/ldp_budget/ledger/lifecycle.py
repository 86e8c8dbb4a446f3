"""Lifecycle state of a ledger: open, moved to another ledger, importing (being filled by a move) or aborted.

Every partition head holds the state and the number of its changes. So writers read it without an extra query, and
rolling it back is detected. The head also holds the ledger's *generation*, which is the number of its moves, and the
number of the secret in use (see `key_rotation`). The reason why a ledger is closed is a row of `closings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .models import ABORTED, IMPORTING, MOVED_AWAY, OPEN, Closing, Lifecycle, Opening

if TYPE_CHECKING:
    from .snapshot import Reading

__all__ = ["ABORTED", "IMPORTING", "MOVED_AWAY", "OPEN", "Closing", "Lifecycle", "Opening"]

_UNKNOWN = Closing(0, 0, 0, "", "another ledger")


def importing_state(source: Lifecycle) -> Lifecycle:
    """Return the state of a ledger that is being filled from one with the lifecycle `source`."""
    return Lifecycle(IMPORTING, 0, source.generation + 1, source.secret)


def origin(lifecycle: Lifecycle) -> Lifecycle:
    """Return the lifecycle that a moved ledger had while it was filled."""
    return lifecycle._replace(state=IMPORTING, changes=0)


def next_state(lifecycle: Lifecycle, wanted: int) -> Lifecycle:
    """Return the next lifecycle, in the wanted state; the number of changes only grows."""
    return lifecycle._replace(state=wanted, changes=lifecycle.changes + 1)


def reason_of(reading: Reading, lifecycle: Lifecycle) -> Closing:
    """Return the reason why a ledger is, or was, closed."""
    return reading.numbered(Closing, lifecycle.generation, lifecycle.changes) or _UNKNOWN


def opening_of(reading: Reading) -> Opening | None:
    """Return the target that may open, if one was recorded since the last change of state."""
    return reading.numbered(Opening, reading.end.generation, reading.end.changes)


def why_shut(reading: Reading) -> str:
    """Return the reason, as text, why the ledger refuses writes."""
    reason = reason_of(reading, reading.end.lifecycle)
    if reading.end.state == MOVED_AWAY:
        return f"it was moved to {reason.ledger}, and goes on there; nothing was charged"
    return why_half(reading)


def why_half(reading: Reading) -> str:
    """Return the reason, as text, why the ledger refuses reads too."""
    reason = reason_of(reading, reading.end.lifecycle)
    if reading.end.state == IMPORTING:
        return f"it is being copied from {reason.ledger}, and of no use before that is done; nothing was charged"
    return f"the copy from {reason.ledger} was given up, and this part of it is of no use; nothing was charged"
