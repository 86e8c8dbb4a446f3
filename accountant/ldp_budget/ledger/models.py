"""Row types of a ledger: the entries of its journal, and the rows of its side tables.

Amounts are fixed-point integers (see `guarantees.fixed_point`), None if unbounded. Times are microseconds since 1970,
UTC. Users, keys and labels are keyed hashes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .._tags import ANY, without_tags
from ..guarantees.fixed_point import Costs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
"""The kind of the administrative records that create API keys."""

ACKNOWLEDGED = "acknowledged"
"""The kind of the administrative records by which an operator acknowledges problems of entries."""

EMPTY_CHAIN = b"\0" * 32


class Entry(NamedTuple):
    """One entry of the journal.

    The kinds: spent, reserved, committed, voided, expired, erased, policy, clock, period, moved, reopened, copied,
    recorded, collection, rekeyed.

    - `costs`: the amounts that the entry added to the account's lifetime sum.
    - `reports`: the number of reports. For `erased`, the number of accounts detached from their users. For
      `recorded`, `collection` and `rekeyed`, the number of the record, collection or secret.
    - `label_commitment`: the commitment to the label of a memoised value. It is a keyed hash of the label and a salt;
      erasing the user deletes the salt.
    - `expires`: the end of a reservation. `resolves`: the reservation that this entry ends.
    - `has_record`, `has_note`: true if the entry has an idempotency record or a note. Both are deleted with the user.
    - `api_key`: the number of the record that created the API key which wrote the entry; 0 without one.
    - `sub_limit`: the number of the sub-limit through which the entry was charged; 0 for none. An entry that ends a
      reservation has the reservation's number.
    - `period`: for a `period` entry, the gauge whose windows are kept from then on; otherwise None.

    A `clock` entry records a clock repair. Only such an entry may be dated before the entry that it follows. From a
    `period` entry on, windows of a period are kept that no policy limits yet, because they are still to be
    backfilled. `moved` records that a move to another ledger closed this one. `reopened` records that
    this move was aborted. `copied` ends the entries that came from another ledger. `recorded` records that an
    administrative record was added; `collection`, that a collection was added with an API key. From the transaction
    of a `rekeyed` entry on, another secret of the ledger's key is in use.
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
    period: str | None = None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Entry:
        """Return the entry of a flat row as it is stored: number to reports, four amounts, the last eight columns."""
        commitment, expires, resolves, has_record, has_note, *more = row[11:19]
        kept = (commitment, expires, resolves, bool(has_record), bool(has_note), *more)
        number, at, kind, account, priced_mechanism, policy, reports = row[:7]
        return cls(number, at, kind, account, priced_mechanism, policy, reports, Costs(*row[7:11]), *kept)

    @property
    def labelled(self) -> bool:
        """True if the entry is for reports of one memoised value."""
        return self.label_commitment is not None

    def row(self, number: int) -> tuple[Any, ...]:
        """Return the entry as a flat row, with another number."""
        return (number, *self[1:7], *self.costs, *self[8:11], int(self.has_record), int(self.has_note), *self[13:])


OPEN, MOVING, MOVED_AWAY, IMPORTING = range(4)
"""The states of a ledger: open; closed while it is copied; moved to another ledger permanently; being filled by a move."""


class Lifecycle(NamedTuple):
    """The lifecycle state of a ledger, and the number of the secret in use.

    A ledger is open, moving (closed while it is copied), moved, or importing (being filled by a move). Every partition
    head holds the state and the number of its changes. So writers read it without an extra query, and rolling it back
    is detected. The reason why a ledger is closed is a row of `closings`. `key_rotation` changes the secret in use.
    """

    state: int = OPEN
    changes: int = 0
    """The number of state changes in this generation."""
    generation: int = 0
    """The number of times that the ledger was moved."""
    secret: int = 1
    """The number of the secret in use."""

    @property
    def order(self) -> tuple[int, int, int]:
        """The values that never decrease, in the order of their significance."""
        return self.secret, self.generation, self.changes

    def in_state(self, state: int) -> Lifecycle:
        """Return the next lifecycle, in that state; the number of changes only grows."""
        return self._replace(state=state, changes=self.changes + 1)

    def of_target(self) -> Lifecycle:
        """Return the lifecycle of a ledger that is being filled from one with this lifecycle."""
        return Lifecycle(IMPORTING, 0, self.generation + 1, self.secret)


class PartitionHead(NamedTuple):
    """The head of a partition: the newest numbers assigned, and the time and chain hash of the newest entry."""

    entries: int = 0
    at: int | None = None
    chain_hash: bytes = EMPTY_CHAIN
    accounts: int = 0
    priced_mechanisms: int = 0
    policies: int = 0
    collections: int = 0
    numbered_rows: int = 0
    """The number of rows that have a number but no entry: those of `NUMBERED`, and the records of refusals."""
    checkpoints: int = 0
    periods: int = 0
    """The number of times that a period was added, or the start of its windows changed."""
    state: int = OPEN
    """The lifecycle state, see `Lifecycle`; the next three fields belong to it."""
    changes: int = 0
    generation: int = 0
    secret: int = 1

    @property
    def counters(self) -> tuple[int, ...]:
        """The counters other than that of the entries, and the lifecycle."""
        return self[3:]

    @property
    def lifecycle(self) -> Lifecycle:
        """The lifecycle state, the number of moves, and the number of the secret in use."""
        return Lifecycle(*self[10:])

    @property
    def order(self) -> tuple[Any, ...]:
        """The values that never decrease, each by itself."""
        return (*self[3:10], self.lifecycle.order)

    @property
    def known(self) -> tuple[int, ...]:
        """The counters that change with the settings: priced mechanisms, policies and periods."""
        return self.priced_mechanisms, self.policies, self.periods

    @property
    def head(self) -> str:
        """The head to record outside the ledger, to detect a rollback.

        It consists of the chain hash and the counters that change without a new chain hash.
        """
        return head_text(self.chain_hash, self.numbered_rows, self.collections)


def head_text(chain_hash: bytes, numbered_rows: int, collections: int) -> str:
    """Return the head of a partition as text."""
    return f"{chain_hash.hex()}{numbered_rows:012x}{collections:08x}"


class Repair(NamedTuple):
    """A clock repair: the number of its entry, and its time."""

    entry: int
    at: int


class Checkpoint(NamedTuple):
    """The heads of all partitions at some time, and a keyed chain hash over them and the previous checkpoint."""

    number: int
    at: int
    heads: bytes
    chain_hash: bytes


class User(NamedTuple):
    """The user of an account; an erased user has no hash, and another MAC."""

    account: int
    user_hash: bytes | None
    row_mac: bytes


class Tombstone(NamedTuple):
    """An erased user, who gets no fresh budget.

    The time of the erasure would reveal the account, so it is not stored here.
    """

    user_hash: bytes
    row_mac: bytes


class IdempotencyRecord(NamedTuple):
    """The request digest and the response stored for a user's idempotency key.

    The record belongs to an entry. The record of a refusal has a number of its own instead.
    """

    user_hash: bytes
    key_hash: bytes
    entry: int | None
    number: int | None
    request_digest: bytes
    response: str
    row_mac: bytes


BOUND, CHARGED = "bound", "charged"
"""The kinds of batch runs.

`BOUND` is a batch that is bound to its key before its parts are charged; they have records of their own. `CHARGED` is
a batch, or a part, that was charged.
"""

PART_OF_RUN = " part"
"""Ends the response of a bound batch that another batch of its run counts."""


class BatchRunRecord(NamedTuple):
    """One batch of a run over many users, or one partition's part of it: the request digest and the response."""

    number: int
    key_hash: bytes
    request_digest: bytes
    kind: str
    """The kind of the batch run."""
    partitions: int
    """The number of partitions in which it began, if that was before the ledger was moved; else 0."""
    response: str
    """For a bound batch the number of its lines, else the results as JSON; each may say that it is a part."""
    row_mac: bytes = b""

    @property
    def is_part(self) -> bool:
        """True if the caller gave the key for more than this: a part of a batch, or a later batch of a run."""
        if self.kind == BOUND:
            return self.response.endswith(PART_OF_RUN)
        return bool(json.loads(self.response).get("part"))


class KeyEpoch(NamedTuple):
    """The start of a secret's use in a partition: after so many entries and checkpoints."""

    number: int
    generation: int
    of_partition: int
    secret: int
    entries: int
    checkpoints: int
    checkpoint_hash: bytes
    """The chain hash of the newest of these checkpoints."""
    row_mac: bytes = b""


class Closing(NamedTuple):
    """The move that closed a ledger, and the other ledger's name in messages.

    In a ledger that was moved, `identity` names the only target that may open: its place, and the newest token that
    was written there. It is empty once the target is open. In a target that is not open, `move` is such a token, after
    the first row, which has the name of the move.
    """

    number: int
    generation: int
    changes: int
    move: str
    ledger: str
    identity: str
    row_mac: bytes = b""


class MovedEntry(NamedTuple):
    """The current position of an entry that was written in an older generation."""

    number: int
    generation: int
    of_partition: int
    entry: int
    to_partition: int
    to_entry: int
    row_mac: bytes = b""


class ErasedRecord(NamedTuple):
    """Replaces an erased user's numbered idempotency record, so that the numbers have no gap."""

    number: int
    row_mac: bytes = b""


WAITING, SEALED = "waiting", "sealed"
"""The states of a stored report, next to `ERASED`. Only a waiting report has its bytes."""
IN_ROUNDS = "in rounds"
"""Counts the reports that are in sealed rounds."""


class StoredReport(NamedTuple):
    """A report that a respondent sent, stored in the transaction of its charge.

    Sealing a round or erasing the user deletes its bytes. The row stays, so that a report that was removed or put
    back is detected.
    """

    number: int
    entry: int
    """The entry that charged it."""
    collection: str
    state: str
    report: bytes
    row_mac: bytes = b""


class RoundPart(NamedTuple):
    """A part of a sealed round: so many reports, one after the other in random order."""

    number: int
    collection: str
    name: str
    part: int
    """The number of the part, from 0."""
    parts: int
    """The number of parts of the round."""
    reports: int
    content: bytes
    row_mac: bytes = b""


Numbered: TypeAlias = BatchRunRecord | KeyEpoch | Closing | MovedEntry | ErasedRecord | StoredReport | RoundPart


class NumberedTable(NamedTuple):
    """The table of a row class, the number of columns after `number` that are its key, and its hash columns."""

    name: str
    key: int
    hashes: tuple[int, ...] = ()
    together: int = 20_000
    """The number of rows that fit into memory."""


NUMBERED: dict[type[Any], NumberedTable] = {
    BatchRunRecord: NumberedTable("batch_runs", 1, (1, 2)),
    KeyEpoch: NumberedTable("key_epochs", 3),
    Closing: NumberedTable("closings", 2),
    MovedEntry: NumberedTable("moved_entries", 3),
    ErasedRecord: NumberedTable("erased_records", 0),
    StoredReport: NumberedTable("reports", 1, together=500),
    RoundPart: NumberedTable("rounds", 3, together=500),
}
"""The tables with numbered rows. All share one sequence per partition, so that a deleted row is detected."""


class PricedMechanism(NamedTuple):
    """A mechanism with its guarantee and the cost of one report; and the collection it was charged for.

    The row is self-contained.
    """

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
    """The name of the collection, empty if only the mechanism was named, and the tags of the charge, see `_tags`."""
    row_mac: bytes = b""

    @property
    def covered(self) -> tuple[Any, ...]:
        """The values that the MAC and the chain hash cover."""
        return tuple(self[:-1])

    @property
    def collection_name(self) -> str:
        """The name of the collection; empty if only the mechanism was named."""
        return without_tags(self.collection)[0]

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the charge."""
        return tuple(without_tags(self.collection)[1])

    @property
    def named_tags(self) -> tuple[str, ...]:
        """The tags of the charge that a person gave, without the one that stands for all other scopes."""
        return tuple([tag for tag in self.tags if tag != ANY])

    @property
    def parts(self) -> dict[str, str]:
        """The guarantee of a report about single tags, in JSON, where it is another one than that of the whole."""
        return {tag: said for tag, said in without_tags(self.collection)[1].items() if said}

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
        """The values that the MAC and the chain hash cover."""
        return tuple(self[:-1])


class AdminLogEntry(NamedTuple):
    """An administrative event, such as the creation of an API key. It is never changed or deleted."""

    number: int
    at: int
    kind: str
    name: str
    body: str
    """The data of the event, as canonical JSON."""
    api_key: int
    """The number of the record that created the API key which added this one; 0 if it was added without a key."""


class StoredCollection(NamedTuple):
    """A collection; it never changes."""

    number: int
    name: str
    fingerprint: str
    definition: str
    row_mac: bytes


class KeptPeriod(NamedTuple):
    """A period with kept windows, and the start of the first of them."""

    period: str
    since: int


class WindowSum(NamedTuple):
    """The amounts charged to an account in one window, by its name, see `calendar.Window`."""

    account: int
    window_name: str
    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None


class AccountMac(NamedTuple):
    """The MAC of an account's sums, and the day whose windows it covers."""

    account: int
    day: int
    row_mac: bytes


class AccountMacState(NamedTuple):
    """The user and the number of an account, the number of its newest charge, the day of its MAC, and the MAC.

    The last three are None if they do not exist. `counted` is true if there are label counts or used quotas.
    """

    user: bytes
    account: int
    newest: int | None
    day: int | None
    row_mac: bytes | None
    counted: int | bool


class MemoisedCount(NamedTuple):
    """The number of reports of one memoised value that were charged to an account in a window."""

    account: int
    label: bytes
    priced_mechanism: int
    window_name: str
    reports: int


class EntryLabel(NamedTuple):
    """The memoised value that an entry repeats, and the salt of the entry's label commitment."""

    entry: int
    label: bytes
    salt: bytes


class EntryNote(NamedTuple):
    """A note on an entry, with a MAC that covers its position.

    It may be about the user, so it is deleted with the user.
    """

    entry: int
    note: str
    row_mac: bytes


class QuotaUse(NamedTuple):
    """The part of a plan's quota for one guarantee that an account has used."""

    account: int
    plan: str
    guarantee: str
    used: int


# -- problems that verification finds in entries --------------------------------------------------------------------


class EntryProblem(str):
    """A problem of entries that an operator may acknowledge, as text for people.

    It is one of a closed set: the entries are genuine and in the chain, their amounts are counted, and no limit was
    exceeded by them. Every other problem is plain text and can never be acknowledged.

    `code` says what is wrong, see `EntryProblem.CODES`. `entries` are the numbers of the entries in their partition.
    """

    CODES = ("writer", "share", "version", "end", "record", "note", "body")
    """The key that wrote an entry is unknown; a writer without a sub-limit used one, or one that the policy lacks; a
    version of the policy that was no longer the newest, and the newest admits the charge too; a reservation that stays
    charged ended at another time than the journal says; the idempotency record is missing; the note is missing; the
    entry's administrative record cannot be used as its kind, and is skipped."""

    code: str
    entries: tuple[int, ...]
    _around: tuple[str, str]

    def __new__(cls, before: str, entries: Iterable[int], after: str, code: str) -> EntryProblem:
        """Return the problem; its text is `before`, the numbers and `after`."""
        numbers = tuple(sorted(entries))
        problem = super().__new__(cls, f"{before}{ranges(numbers)}{after}")
        problem.code, problem.entries, problem._around = code, numbers, (before, after)
        return problem

    def of(self, entries: Iterable[int]) -> EntryProblem:
        """Return the same problem of some of its entries."""
        before, after = self._around
        return EntryProblem(before, entries, after, self.code)


def ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as text: 5-7, 9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
