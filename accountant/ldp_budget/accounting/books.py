"""What the calls of an `Accountant` work on, each of which stands in a file with others of its subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_user
from .callers import LOCAL, Caller
from .policies import Policy

if TYPE_CHECKING:
    from ..ledger import Ledger, Reading
    from ..ledger.clock import Read


class Books:
    """A ledger, and who uses it."""

    _ledger: Ledger
    _read_clock: Read
    _caller: Caller = LOCAL

    def _hash(self, user: str) -> bytes:
        return self._ledger.key.hash(b"user", check_user(user))


def policy_in(reading: Reading, name: str) -> tuple[int, Policy]:
    """The number of the newest version of a policy, and that version. Raises `UnknownName`."""
    # Never by its number: a transaction that is taken back gives that back as well, and then to another policy.
    stored = reading.policy(name)
    return stored.number, Policy.read(stored.definition)


def policy_version(reading: Reading, number: int) -> Policy:
    """A version of a policy by its number."""
    return Policy.read(reading.policy_version(number).definition)
