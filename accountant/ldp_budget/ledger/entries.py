"""What a ledger holds: the entries of its journal, and the rows that stand beside them.

Amounts are whole units (see `amounts`), None where unbounded; times are microseconds since 1970, UTC. Users, keys and
labels are keyed hashes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..guarantees.amounts import Costs

SPENT = "spent"
RESERVED = "reserved"
COMMITTED = "committed"
VOIDED = "voided"
EXPIRED = "expired"
ERASED = "erased"
POLICY_SET = "policy"

CHARGES = (SPENT, RESERVED, VOIDED)
"""The kinds of entry that change an account's sums."""

NO_LINK = b"\0" * 32


class Entry(NamedTuple):
    """One line of the journal: spent, reserved, committed, voided, expired, erased or policy.

    `costs` is what it added to the account's lifetime. `reports` of an `erased` entry: how many accounts it cut off.
    `expires` belongs to a reservation, `resolves` to the entry that ends it, and names it.
    """

    number: int
    at: int
    kind: str
    account: int
    charge: int
    policy: int
    reports: int
    costs: Costs
    labelled: bool = False
    expires: int | None = None
    resolves: int | None = None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Entry:
        """From the flat row in which it is stored and linked: number to reports, four amounts, the last three."""
        number, at, kind, account, charge, policy, reports = row[:7]
        labelled, expires, resolves = row[11:14]
        return cls(
            number, at, kind, account, charge, policy, reports, Costs(*row[7:11]), bool(labelled), expires, resolves
        )

    def row(self, number: int) -> tuple[Any, ...]:
        """As a flat row, under another number."""
        return (number, *self[1:7], *self.costs, int(self.labelled), *self[9:])


class End(NamedTuple):
    """Where a lane ends: the newest numbers it has given, and time and link of its newest entry."""

    entries: int = 0
    at: int | None = None
    link: bytes = NO_LINK
    accounts: int = 0
    charges: int = 0
    policies: int = 0


class User(NamedTuple):
    """Who an account belongs to; an erased user has neither hash nor seal."""

    account: int
    hash: bytes | None
    seal: bytes | None


class Tombstone(NamedTuple):
    """An erased user, who gets no fresh budget."""

    hash: bytes
    at: int
    seal: bytes


class StoredAnswer(NamedTuple):
    """What an idempotency key was used for, and what was answered. Without a user it names a run."""

    key: bytes
    user: bytes | None
    request: bytes
    answer: str
    seal: bytes


class StoredCharge(NamedTuple):
    """A mechanism with its guarantee and the cost of one report, self-contained."""

    number: int
    fingerprint: str
    mechanism: str
    declared: str
    guarantee: str
    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None

    @property
    def costs(self) -> Costs:
        """The four integer amounts of one report."""
        return Costs(*self[5:])


class StoredPolicy(NamedTuple):
    """One version of a policy."""

    number: int
    name: str
    version: int
    created_at: int
    definition: str


class StoredCollection(NamedTuple):
    """A collection; it never changes."""

    name: str
    fingerprint: str
    definition: str
    seal: bytes


class SumRow(NamedTuple):
    """What was charged to an account in one window; window 0 is the lifetime."""

    account: int
    window: int
    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None


class LabelRow(NamedTuple):
    """How many reports of one memoised value were charged to an account in a window."""

    account: int
    label: bytes
    charge: int
    window: int
    reports: int


class QuotaRow(NamedTuple):
    """How much of a plan's quota for one guarantee an account has used."""

    account: int
    plan: str
    promise: str
    used: int
