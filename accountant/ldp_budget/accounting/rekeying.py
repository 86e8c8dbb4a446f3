"""Exchanging the ledger's own key, in steps, while others spend; how, stands in `ledger.exchanging`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_call
from ..ledger import exchanging
from ..ledger.exchanging import KeyState

if TYPE_CHECKING:
    from collections.abc import Callable

    from .books import Books


def key_states(self: Books) -> list[KeyState]:
    """The secrets of the ledger's key, the oldest first: pending, activating, active or expired.

    Returns:
        Of each its number, its state and in how many partitions it is in force.

    Raises:
        Nothing but `LedgerError`.
    """
    return exchanging.states(self._ledger)


def prepare_key(self: Books) -> int:
    """Put a new secret into the key's file, which is not used yet; one that is not active yet stays.

    Bring the file to every machine that opens the ledger then. Nobody has to open it anew.

    Returns:
        The number of the secret.

    Raises:
        LedgerError: the ledger is shut, or the file cannot be written.
    """
    return exchanging.prepare(self._ledger)


def discard_key(self: Books) -> bool:
    """Take a secret that is pending out of the key's file.

    Returns:
        Whether there was one.

    Raises:
        LedgerError: the file cannot be written.
    """
    return exchanging.discard(self._ledger)


def activate_key(self: Books, *, on_progress: Callable[[int, int], None] | None = None) -> int:
    """Have the pending secret in force, and the one before it no more; stopped at any point, the same call goes on.

    In each partition that is one transaction, for which whoever writes there waits. From then on the old secret neither
    finds users' names in what is stored nor makes anything that would be believed. On another machine, whose key's
    file was brought there, it says in that file that the secret is active.

    Parameters:
        on_progress: called as `on_progress(done, total)` from time to time, with partitions.

    Returns:
        The number of the secret that is active now.

    Raises:
        InvalidParameter: it is no function.
        LedgerError: the ledger was changed by somebody, or is shut; partitions that have the secret keep it.
    """
    check_call("on_progress", on_progress)
    return exchanging.activate(self._ledger, on_progress or (lambda done, total: None))
