"""Principals: who uses a ledger, a user of the ledger's host or the holder of an API key."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """The authenticated caller: the holder of an API key.

    `number` is the number of the record that made the key. Every journal entry that the holder writes has it. For
    `LOCAL`, which needs no key, it is 0. Idempotency keys are scoped to `name`. If the key has a `share`, its charges
    must fit that sub-limit of each limit too.
    """

    number: int
    name: str
    share: str | None = None


LOCAL = Principal(0, "")

"""The caller on the ledger's host, without an API key."""
