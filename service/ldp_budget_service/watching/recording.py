"""Adding a record that follows from what is known, as the holder of a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ldp_budget import RecordConflict

if TYPE_CHECKING:
    from ldp_budget import Accountant
    from ldp_budget.accounting.access.following import Following
    from ldp_budget.accounting.records import Record

S = TypeVar("S")
_MOST_ATTEMPTS = 100


def append(
    following: Following[S], accountant: Accountant, decide: Callable[[S], tuple[str, str, dict[str, Any]]]
) -> Record:
    """Add the record that `decide` makes of the state, by whoever acts through `accountant`, or raise what it raises.

    Where somebody else adds one meanwhile it is asked again, so of two who see the same one finds it done already.
    """
    for _ in range(_MOST_ATTEMPTS):
        state, newest = following.now()
        kind, name, body = decide(state)
        try:
            return accountant._record_own(kind, name, body, expected=newest)
        except RecordConflict as error:
            conflict = error
    raise conflict
