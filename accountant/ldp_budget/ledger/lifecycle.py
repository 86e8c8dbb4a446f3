"""Lifecycle state of a ledger: open, moving (closed while it is copied), moved, or importing (being filled by a move).

Every partition head holds the state and the number of its changes. So writers read it without an extra query, and
rolling it back is detected. The head also holds the ledger's *generation*, which is the number of its moves, and the
number of the secret in use (see `key_rotation`). The reason why a ledger is closed is a row of `closings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import LedgerError, LedgerMoved
from .models import IMPORTING, MOVED_AWAY, MOVING, OPEN, Closing, Lifecycle

if TYPE_CHECKING:
    from .snapshot import Reading

__all__ = ["IMPORTING", "MOVED_AWAY", "MOVING", "OPEN", "Closing", "Lifecycle"]

_UNKNOWN = Closing(0, 0, 0, "", "another ledger", "")


def importing_state(source: Lifecycle) -> Lifecycle:
    """Return the state of a ledger that is being filled from one with the lifecycle `source`."""
    return Lifecycle(IMPORTING, 0, source.generation + 1, source.secret)


def next_state(lifecycle: Lifecycle, wanted: int) -> Lifecycle:
    """Return the next lifecycle, in the wanted state; the number of changes only grows."""
    return lifecycle._replace(state=wanted, changes=lifecycle.changes + 1)


def reason_of(reading: Reading) -> Closing:
    """Return the reason why a ledger is closed."""
    return reading.numbered(Closing, reading.end.generation, reading.end.changes) or _UNKNOWN


def origin_of(reading: Reading) -> Closing:
    """Return the move that filled a ledger, or fills it."""
    return reading.numbered(Closing, reading.end.generation, 0) or _UNKNOWN


def refusal(ledger: str, reading: Reading) -> LedgerError:
    """Return the error with which a ledger that is not open refuses writes."""
    reason = reason_of(reading)
    if reading.end.state == IMPORTING:
        why = f"it is being filled by a move from {reason.ledger}. Nothing was charged."
        return LedgerError(ledger, why, hint="Wait until the move is complete.")
    return LedgerMoved(ledger, reason.ledger, complete=reading.end.state == MOVED_AWAY)
