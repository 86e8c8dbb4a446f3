"""Who uses a ledger: whoever is on its machine, or the holder of an API key."""

from __future__ import annotations

from typing import NamedTuple


class Caller(NamedTuple):
    """The holder of an API key.

    `number` is that of the record which made the key, and stands in every journal entry that they write; of `LOCAL`,
    who needs no key, it is 0. By their `name` their idempotency keys are told from those of others. With a `share`,
    what they charge must fit that share of each limit too.
    """

    number: int
    name: str
    share: str | None = None


LOCAL = Caller(0, "")
"""Whoever is on the machine of the ledger."""
