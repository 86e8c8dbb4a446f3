"""Rotation of a ledger's key, and the ledger's contract for a ledger whose key was rotated."""

from __future__ import annotations

import ldp_budget
from contract import StoreContract
from contract.places import Now, Place
from ldp_budget import Accountant
from ldp_budget.ledger import Ledger

COIN = ldp_budget.mechanism("rr")(epsilon="0.5")


def exchange(accountant: Accountant) -> int:
    """Rotate the key, and continue with the same accountant as if it was opened again."""
    number = accountant.ledger.rotate_key()
    reopen(accountant)
    return number


def reopen(accountant: Accountant) -> None:
    """Let an accountant open its store again, which may be in memory."""
    accountant._ledger = Ledger(accountant._ledger._store, accountant._read_clock)


class Exchanged:
    """A place whose ledger is under the third secret from the start, and one more each time it is opened again."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def open(self, clock: Now) -> Accountant:
        accountant = self._place.open(clock)
        exchange(accountant)
        exchange(accountant)
        return accountant

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        exchange(accountant)
        return self._place.reopen(accountant, clock)


class ExchangedContract(StoreContract):
    """The ledger's contract, but for what counts every entry, or goes back before the first one."""

    test_new_period_is_backfilled_from_the_journal = None  # type: ignore[assignment]
    test_journal_is_readable_without_plugins = None  # type: ignore[assignment]
    test_entries_have_the_key_of_their_writer = None  # type: ignore[assignment]
    test_close_and_reopen_loses_nothing = None  # type: ignore[assignment]
