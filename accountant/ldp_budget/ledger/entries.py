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
CLOCK = "clock"
PERIOD = "period"
MOVED = "moved"
REOPENED = "reopened"
COPIED = "copied"
RECORDED = "recorded"
COLLECTION = "collection"
REKEYED = "rekeyed"

CHARGES = (SPENT, RESERVED, VOIDED)
"""The kinds of entry that change an account's sums."""

KEYED, NOTED, BY, SHARE = 1, 2, 4, 1 << 34
"""What an entry's last number adds up from: what is kept beside it, and so often the numbers of key and share."""
BESIDE = KEYED + NOTED
"""The part of it that says what is kept beside the entry."""
KEY = "key"
"""The kind of the records that make keys."""

EMPTY_CHAIN = b"\0" * 32

NOBODY = b""
"""Whose the keys of bulk runs are, of what is left where an erased user's answers were, and what a copy notes."""


class Entry(NamedTuple):
    """One line of the journal: spent, reserved, committed, voided, expired, erased, policy, clock, period,
    moved, reopened, copied, recorded, collection, rekeyed.

    `costs` is what it added to the account's lifetime. `reports` of an `erased` entry: how many accounts it cut off.
    `mark` stands for the label of a report of a memoised value: a keyed hash of it and a salt that goes when the user
    is erased. `expires` belongs to a reservation, `resolves` to the entry that ends it, and names it. `keyed` says
    that its answer is kept under an idempotency key, `noted` that a note is kept beside it; both go with the user.
    A `clock` entry says that the clock was repaired, and is the only one that may be dated before the entry that it
    follows. A `period` entry says that windows of a period are kept from now on which no policy limits yet, as they
    are still to be filled; `reports` is the number of its gauge. `moved` says that everything is copied to another
    ledger, where it goes on, `reopened` that this was given up, and `copied` ends what came from another one.
    `recorded` says that a record was added, and `collection` that a collection was by the holder of a key; `reports`
    is its number. `rekeyed` says that another secret of the ledger's key is in force from its transaction on;
    `reports` is its number. `by` is the number of the record that made the key by which it was written, 0 without
    one; `share` that of the share through which it was charged, 0 for none, or the reservation was that it ends.
    """

    number: int
    at: int
    kind: str
    account: int
    charge: int
    policy: int
    reports: int
    costs: Costs
    mark: bytes | None = None
    expires: int | None = None
    resolves: int | None = None
    keyed: bool = False
    noted: bool = False
    by: int = 0
    share: int = 0

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Entry:
        """From the flat row in which it is stored and linked: number to reports, four amounts, the last four."""
        number, at, kind, account, charge, policy, reports = row[:7]
        mark, expires, resolves, kept = row[11:15]
        costs = Costs(*row[7:11])
        keyed, noted = bool(kept & KEYED), bool(kept & NOTED)
        more = (mark, expires, resolves, keyed, noted, kept % SHARE // BY, kept // SHARE)
        return cls(number, at, kind, account, charge, policy, reports, costs, *more)

    @property
    def labelled(self) -> bool:
        """Whether it is of reports of one memoised value."""
        return self.mark is not None

    @property
    def kept(self) -> int:
        """Its last number."""
        return KEYED * self.keyed + NOTED * self.noted + BY * self.by + SHARE * self.share

    def row(self, number: int) -> tuple[Any, ...]:
        """As a flat row, under another number."""
        return (number, *self[1:7], *self.costs, *self[8:11], self.kept)


GENERATION = 1 << 20
"""By how much the gate of a partition is more when it was copied once more."""
SECRET = 1 << 40
"""By how much it is more under the next secret of the ledger's key."""


class PartitionHead(NamedTuple):
    """Where a partition ends: the newest numbers it has given, and time and link of its newest entry."""

    entries: int = 0
    at: int | None = None
    chain_hash: bytes = EMPTY_CHAIN
    accounts: int = 0
    charges: int = 0
    policies: int = 0
    collections: int = 0
    answers: int = 0
    """How many answers were stored that belong to no entry: refusals, and batches of bulk runs."""
    checkpoints: int = 0
    periods: int = 0
    """How often a period was set, to be kept or to be kept from another moment on."""
    gate: int = 0
    """Whether anything may be written, how often the ledger was copied, which secret is in force, see `gate`."""

    @property
    def counters(self) -> tuple[int, ...]:
        """What was numbered beside the entries."""
        return self[3:]

    @property
    def known(self) -> tuple[int, ...]:
        """What tells whether anything was set since: charges, policies and periods."""
        return self.charges, self.policies, self.periods

    @property
    def generation(self) -> int:
        """How often the ledger was copied on its way here."""
        return self.gate % SECRET // GENERATION

    @property
    def secret(self) -> int:
        """The number of the secret that is in force, from 1 on."""
        return self.gate // SECRET + 1

    @property
    def head(self) -> str:
        """What people note to find a rollback: the newest link, and the counts that move without a new one."""
        return f"{self.chain_hash.hex()}{self.answers:012x}{self.collections:08x}"


class Repair(NamedTuple):
    """A repair of the clock: the entry that says so, and when it was."""

    entry: int
    at: int


class Checkpoint(NamedTuple):
    """Where every partition ended at some time, and a keyed link over that and the checkpoint before."""

    number: int
    at: int
    heads: bytes
    chain_hash: bytes


class User(NamedTuple):
    """Who an account belongs to; an erased user has no hash, and another seal."""

    account: int
    hash: bytes | None
    row_mac: bytes


class Tombstone(NamedTuple):
    """An erased user, who gets no fresh budget. When that was would lead to the account, so it is not kept here."""

    hash: bytes
    row_mac: bytes


class IdempotencyRecord(NamedTuple):
    """What a user's idempotency key was used for, and what was answered.

    `place` is the number of the entry that the answer belongs to; of one that belongs to none it counts from -1 down.
    """

    user: bytes
    key: bytes
    place: int
    request: bytes
    answer: str
    row_mac: bytes


class PricedMechanism(NamedTuple):
    """A mechanism with its guarantee and the cost of one report, self-contained; and the collection it was for."""

    number: int
    fingerprint: str
    mechanism: str
    declared: str
    guarantee: str
    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None
    collection: str = ""
    """Its name; empty where the mechanism alone was named."""
    row_mac: bytes = b""

    @property
    def covered(self) -> tuple[Any, ...]:
        """What the seal and the journal's link cover."""
        return tuple(self[:-1])

    @property
    def costs(self) -> Costs:
        """The four integer amounts of one report."""
        return Costs(*self[5:9])


class StoredPolicy(NamedTuple):
    """One version of a policy."""

    number: int
    name: str
    version: int
    created_at: int
    definition: str
    row_mac: bytes = b""

    @property
    def covered(self) -> tuple[Any, ...]:
        """What the seal and the journal's link cover."""
        return tuple(self[:-1])


class AdminLogEntry(NamedTuple):
    """An administrative fact, such as that a key was made; it is never changed nor taken away, see `Record`."""

    number: int
    at: int
    kind: str
    name: str
    body: str
    """Canonical JSON."""
    by: int
    """The number of the record that made the key by which it was added; 0 of what was added without one."""


class StoredCollection(NamedTuple):
    """A collection; it never changes."""

    number: int
    name: str
    fingerprint: str
    definition: str
    row_mac: bytes


class WindowSum(NamedTuple):
    """What was charged to an account in one window; window 0 is the lifetime."""

    account: int
    window: int
    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None


class AccountMac(NamedTuple):
    """The seal of an account's sums, and the day in whose windows these are."""

    account: int
    day: int
    row_mac: bytes


class AccountMacState(NamedTuple):
    """The number of an account's newest charge, the day of its seal, the seal, and the user.

    The first three are None where there is none. `counted` says whether there are label counts or used quotas.
    """

    newest: int | None
    day: int | None
    row_mac: bytes | None
    counted: int | bool
    user: bytes


class MemoisedCount(NamedTuple):
    """How many reports of one memoised value were charged to an account in a window."""

    account: int
    label: bytes
    charge: int
    window: int
    reports: int


class EntryLabel(NamedTuple):
    """Which memoised value an entry repeats, and the salt under which the entry bears its mark."""

    entry: int
    label: bytes
    salt: bytes


class EntryNote(NamedTuple):
    """What somebody wrote beside an entry, sealed with its place; it may be about the user, and goes with them."""

    entry: int
    note: str
    row_mac: bytes


class QuotaUse(NamedTuple):
    """How much of a plan's quota for one guarantee an account has used."""

    account: int
    plan: str
    promise: str
    used: int
