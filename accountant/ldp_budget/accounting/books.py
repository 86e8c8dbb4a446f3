"""What a ledger has stored of a policy, and the hash by which it knows a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_user
from .policies import Policy

if TYPE_CHECKING:
    from ..ledger import Ledger, Reading


def user_hash(ledger: Ledger, user: str) -> bytes:
    """The hash of a user by the ledger's key. Raises `InvalidParameter`."""
    return ledger.key.hash(b"user", check_user(user))


def policy_in(reading: Reading, name: str) -> tuple[int, Policy]:
    """The number of the newest version of a policy, and that version. Raises `UnknownName`."""
    # Never by its number: a transaction that is taken back gives that back as well, and then to another policy.
    stored = reading.policy(name)
    return stored.number, Policy.read(stored.definition)


def policy_version(reading: Reading, number: int) -> Policy:
    """A version of a policy by its number."""
    return Policy.read(reading.policy_version(number).definition)
