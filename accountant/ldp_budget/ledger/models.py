"""What a ledger holds: the entries of its journal, and the rows that stand beside them.

Amounts are whole units (see `amounts`), None where unbounded; times are microseconds since 1970, UTC. Users, keys and
labels are keyed hashes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from ..guarantees.fixed_point import Costs

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

KEY = "key"
"""The kind of the records that make keys."""

EMPTY_CHAIN = b"\0" * 32


class Entry(NamedTuple):
    """One line of the journal: spent, reserved, committed, voided, expired, erased, policy, clock, period,
    moved, reopened, copied, recorded, collection, rekeyed.

    `costs` is what it added to the account's lifetime. `reports` of an `erased` entry: how many accounts it cut off.
    `label_commitment` stands for the label of a report of a memoised value: a keyed hash of it and a salt that goes
    when the user is erased. `expires` belongs to a reservation, `resolves` to the entry that ends it, and names it. `has_record`
    says that it has an idempotency record, `has_note` that it has a note; both go with the user.
    A `clock` entry says that the clock was repaired, and is the only one that may be dated before the entry that it
    follows. A `period` entry says that windows of a period are kept from now on which no policy limits yet, as they
    are still to be filled; `reports` is the number of its gauge. `moved` says that everything is copied to another
    ledger, where it goes on, `reopened` that this was given up, and `copied` ends what came from another one.
    `recorded` says that a record was added, and `collection` that a collection was by the holder of a key; `reports`
    is its number. `rekeyed` says that another secret of the ledger's key is in force from its transaction on;
    `reports` is its number. `api_key` is the number of the record that made the API key by which it was written, 0
    without one; `sub_limit` that of the sub-limit through which it was charged, 0 for none, or the reservation was
    that it ends.
    """

    number: int
    at: int
    kind: str
    account: int
    priced_mechanism: int
    policy: int
    reports: int
    costs: Costs
    label_commitment: bytes | None = None
    expires: int | None = None
    resolves: int | None = None
    has_record: bool = False
    has_note: bool = False
    api_key: int = 0
    sub_limit: int = 0

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Entry:
        """From the flat row in which it is stored and hashed: number to reports, four amounts, the last seven."""
        commitment, expires, resolves, has_record, has_note, api_key, sub_limit = row[11:18]
        more = (commitment, expires, resolves, bool(has_record), bool(has_note), api_key, sub_limit)
        number, at, kind, account, priced_mechanism, policy, reports = row[:7]
        return cls(number, at, kind, account, priced_mechanism, policy, reports, Costs(*row[7:11]), *more)

    @property
    def labelled(self) -> bool:
        """Whether it is of reports of one memoised value."""
        return self.label_commitment is not None

    def row(self, number: int) -> tuple[Any, ...]:
        """As a flat row, under another number."""
        return (number, *self[1:7], *self.costs, *self[8:11], int(self.has_record), int(self.has_note), *self[13:])


OPEN, MOVED_AWAY, IMPORTING, ABORTED = range(4)
"""The states of a ledger: open; moved to another one, and shut for good; filled by a move; filled in part, useless."""


class Lifecycle(NamedTuple):
    """Whether a ledger accepts writes, and under which secret; see `gate`."""

    state: int = OPEN
    changes: int = 0
    """How often the state has changed in this generation."""
    generation: int = 0
    """How often the ledger was moved on its way here."""
    secret: int = 1
    """The number of the secret that is in force."""

    @property
    def order(self) -> tuple[int, int, int]:
        """What only grows."""
        return self.secret, self.generation, self.changes


class PartitionHead(NamedTuple):
    """Where a partition ends: the newest numbers it has given, and time and link of its newest entry."""

    entries: int = 0
    at: int | None = None
    chain_hash: bytes = EMPTY_CHAIN
    accounts: int = 0
    priced_mechanisms: int = 0
    policies: int = 0
    collections: int = 0
    numbered_rows: int = 0
    """How many rows were numbered that belong to no entry: see `NUMBERED`, and the records of refusals."""
    checkpoints: int = 0
    periods: int = 0
    """How often a period was set, to be kept or to be kept from another moment on."""
    state: int = OPEN
    """Whether anything may be written, see `gate`; likewise the next three."""
    changes: int = 0
    generation: int = 0
    secret: int = 1

    @property
    def counters(self) -> tuple[int, ...]:
        """What was numbered beside the entries, and the lifecycle."""
        return self[3:]

    @property
    def lifecycle(self) -> Lifecycle:
        """Whether anything may be written, how often the ledger was moved, and which secret is in force."""
        return Lifecycle(*self[10:])

    @property
    def order(self) -> tuple[Any, ...]:
        """What only grows, each by itself."""
        return (*self[3:10], self.lifecycle.order)

    @property
    def known(self) -> tuple[int, ...]:
        """What tells whether anything was set since: priced mechanisms, policies and periods."""
        return self.priced_mechanisms, self.policies, self.periods

    @property
    def head(self) -> str:
        """What people note to find a rollback: the newest link, and the counts that move without a new one."""
        return f"{self.chain_hash.hex()}{self.numbered_rows:012x}{self.collections:08x}"


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
    """Who an account belongs to; an erased user has no hash, and another MAC."""

    account: int
    user_hash: bytes | None
    row_mac: bytes


class Tombstone(NamedTuple):
    """An erased user, who gets no fresh budget. When that was would lead to the account, so it is not kept here."""

    user_hash: bytes
    row_mac: bytes


class IdempotencyRecord(NamedTuple):
    """What a user's idempotency key was used for, and the response.

    It belongs to an entry, or has a number of its own: that of a refusal.
    """

    user_hash: bytes
    key_hash: bytes
    entry: int | None
    number: int | None
    request_digest: bytes
    response: str
    row_mac: bytes


BOUND, CHARGED, CHUNK, CHUNK_PART = "bound", "charged", "chunk", "chunk part"
"""The kinds of batch runs: a batch that is bound before its parts are charged; one, or a part, that was charged; and
the same two of a chunk of lines."""
BEGUN = (BOUND, CHUNK)
"""Those whose parts have records of their own."""


class BatchRunRecord(NamedTuple):
    """One batch of a run over many users, or one partition's part of it: what was asked, and the response."""

    number: int
    key_hash: bytes
    request_digest: bytes
    kind: str
    """What the response is of."""
    partitions: int
    """In how many partitions it was begun, if that was before the ledger was moved; else 0."""
    response: str
    row_mac: bytes = b""


class KeyEpoch(NamedTuple):
    """From when on a secret is in force in a partition: after so many entries and checkpoints."""

    number: int
    generation: int
    of_partition: int
    secret: int
    entries: int
    checkpoints: int
    checkpoint_hash: bytes
    """The chain hash of the newest of the checkpoints."""
    row_mac: bytes = b""


class Closing(NamedTuple):
    """Which move has closed a ledger, and the other ledger as messages name it."""

    number: int
    generation: int
    changes: int
    move: str
    ledger: str
    row_mac: bytes = b""


class Opening(NamedTuple):
    """The target of a move that may open: a random id that it made; in the source its identity and name as well."""

    number: int
    generation: int
    changes: int
    id: str
    identity: str
    ledger: str
    row_mac: bytes = b""


class MovedEntry(NamedTuple):
    """Where an entry of an older name is now."""

    number: int
    generation: int
    of_partition: int
    entry: int
    to_partition: int
    to_entry: int
    row_mac: bytes = b""


class ErasedRecord(NamedTuple):
    """In the place of an erased user's numbered idempotency record: so the numbers have no gap."""

    number: int
    row_mac: bytes = b""


Numbered: TypeAlias = BatchRunRecord | KeyEpoch | Closing | Opening | MovedEntry | ErasedRecord


class NumberedTable(NamedTuple):
    """Where rows of a class are: the table, by how many columns after the number they are found, and its hashes."""

    name: str
    key: int
    hashes: tuple[int, ...] = ()


NUMBERED: dict[type[Any], NumberedTable] = {
    BatchRunRecord: NumberedTable("batch_runs", 1, (1, 2)),
    KeyEpoch: NumberedTable("key_epochs", 3),
    Closing: NumberedTable("closings", 2),
    Opening: NumberedTable("openings", 2),
    MovedEntry: NumberedTable("moved_entries", 3),
    ErasedRecord: NumberedTable("erased_records", 0),
}
"""The tables whose rows are numbered, all in one sequence of their partition, so that none can be taken away unseen."""


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
        """What the MAC and the journal's link cover."""
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
        """What the MAC and the journal's link cover."""
        return tuple(self[:-1])


class AdminLogEntry(NamedTuple):
    """An administrative fact, such as that a key was made; it is never changed nor taken away, see `Record`."""

    number: int
    at: int
    kind: str
    name: str
    body: str
    """Canonical JSON."""
    api_key: int
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
    window_code: int
    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None


class AccountMac(NamedTuple):
    """The MAC of an account's sums, and the day in whose windows these are."""

    account: int
    day: int
    row_mac: bytes


class AccountMacState(NamedTuple):
    """The number of an account's newest charge, the day of its MAC, the MAC, and the user.

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
    priced_mechanism: int
    window_code: int
    reports: int


class EntryLabel(NamedTuple):
    """Which memoised value an entry repeats, and the salt under which the entry bears its mark."""

    entry: int
    label: bytes
    salt: bytes


class EntryNote(NamedTuple):
    """What somebody wrote beside an entry, with a MAC that covers its place; it may be about the user, and goes with them."""

    entry: int
    note: str
    row_mac: bytes


class QuotaUse(NamedTuple):
    """How much of a plan's quota for one guarantee an account has used."""

    account: int
    plan: str
    guarantee: str
    used: int
