"""Whether a ledger may be written to: it is open, or was moved to another one, or is only being filled by a copy.

Every partition counts this beside its entries, so that whoever writes is told at no cost, and it cannot be taken back
unseen. The count is, from the left, how often the ledger's key was exchanged (`exchanging`), the ledger's
*generation*, which is how often it was copied on its way here, and in its last two bits what state it is in. Why it
is shut stands beside it as an answer to nobody.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from .entries import GENERATION, NOBODY

if TYPE_CHECKING:
    from .keys import Key
    from .reading import Reading

OPEN, MOVED, FILLING, GIVEN_UP = range(4)
"""Open; copied to another ledger, and shut for good; being filled by a copy; filled in part, and of no use."""

NO_REQUEST = b""
"""What stands in the place of a request where nobody asked anything."""


class Reason(NamedTuple):
    """Which copy has shut a ledger, and the other ledger as messages name it."""

    copy: str
    ledger: str


class Opening(NamedTuple):
    """The target of a copy that may open: a random id that it made; in the source its identity and name as well."""

    id: str
    identity: str = ""
    ledger: str = ""


def state(gate: int) -> int:
    """Which of the states it is in."""
    return gate & 3


def begun(source: int) -> int:
    """That of a ledger that is filled from one of the gate `source`."""
    return (source // GENERATION + 1) * GENERATION + FILLING


def origin(gate: int) -> int:
    """The gate that a copied ledger had while it was filled."""
    return gate // GENERATION * GENERATION + FILLING


def following(gate: int, wanted: int) -> int:
    """The next one in the wanted state: it only grows."""
    return (gate | 3) + 1 + wanted


def place_of(key: Key, gate: int) -> bytes:
    """Under which key the reason stands."""
    return key.hash(b"gate", str(gate))


def write(reason: Reason) -> str:
    return json.dumps({"copy": reason.copy, "ledger": reason.ledger})


def reason_of(reading: Reading, gate: int) -> Reason:
    """Why it is, or was, shut."""
    for stored in reading.rows.answers([NOBODY], [place_of(reading.key, gate)]):
        return Reason(**json.loads(stored.answer))
    return Reason("", "another ledger")


def opening_of(reading: Reading) -> Opening | None:
    """Which target may open, if that was noted since the ledger is in this state."""
    for stored in reading.rows.answers([NOBODY], [opening_place(reading.key, reading.end.gate)]):
        return Opening(**json.loads(stored.answer))
    return None


def opening_place(key: Key, gate: int) -> bytes:
    """Under which key that stands."""
    return key.hash(b"opening", str(gate))


def why_shut(reading: Reading) -> str:
    """In words, why nothing may be written."""
    reason = reason_of(reading, reading.end.gate)
    if state(reading.end.gate) == MOVED:
        return f"it was moved to {reason.ledger}, and goes on there; nothing was charged"
    return why_half(reading)


def why_half(reading: Reading) -> str:
    """In words, why it is not even read."""
    reason = reason_of(reading, reading.end.gate)
    if state(reading.end.gate) == FILLING:
        return f"it is being copied from {reason.ledger}, and of no use before that is done; nothing was charged"
    return f"the copy from {reason.ledger} was given up, and this part of it is of no use; nothing was charged"
