"""`spend_many`: charge the same report to many users, in batches of set-based statements.

A run is a stream of users of any length. Each batch is one transaction in each partition of the ledger.

A run with an idempotency key binds batch n to KEY#n and to a digest of its users. Repeating a batch skips it; the
same batch number with other users is a conflict. So repeat an interrupted run from its start. After the last batch,
the end of the run is bound as a batch without users. The same key with more or fewer users is then a conflict.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from .._dataframes import check_texts
from .._files import canonical_json
from .._validation import check_call, check_name, check_text, check_user, check_whole, shown
from ..errors import InvalidParameter, LedgerError, NotSupported
from ..ledger.ledger import partition_of
from ..ledger.models import BOUND, CHARGED, SPENT
from .charge_request import (
    IdempotencyKey,
    StoredResponse,
    charge_of,
    check_digest,
    check_key,
    check_note,
    key_hash,
    run_idempotent,
)
from .charging import terms_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..ledger import Ledger, Transaction
    from ..ledger.keyfile import Key
    from ..ledger.models import BatchRunRecord
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .admission import ApplicablePolicy
    from .charge_request import Charge, IdempotencyKey, Principal

    Outcome = tuple[list[str], bool]
    """The refused users of a batch, and whether it was charged before."""

BATCH = 50_000
PARTITIONS_TOGETHER = 4
"""The number of partitions in which one batch is charged at the same time."""


class PartitionedBatch(NamedTuple):
    """A batch that was started before the ledger was moved, in parts for so many partitions of that time."""

    partitions: int


@dataclass
class BulkResult:
    """The numbers of requests that were charged, refused, or charged by an earlier run with the same key.

    `refused_users` lists each refused user once for each refusal. It stays empty if `on_batch` reports them.
    """

    spent: int = 0
    refused: int = 0
    repeated: int = 0
    refused_users: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<BulkResult: {self.spent} spent, {self.refused} refused, {self.repeated} repeated>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from .._dataframes import html_table

        counts = self.to_json()
        return html_table("users charged", list(counts), [list(counts.values())], 1)

    def count(self, users: int, refused: list[str], repeated: bool) -> None:
        """Add one batch.

        Parameters:
            users: the number of users in the batch.
            refused: the refused users among them.
            repeated: True if an earlier run charged the batch.
        """
        self.refused += len(refused)
        if repeated:
            self.repeated += users - len(refused)
        else:
            self.spent += users - len(refused)

    def to_json(self) -> dict[str, int]:
        """The output of `spend-many --json`."""
        return {"spent": self.spent, "refused": self.refused, "repeated": self.repeated}


Shard = tuple[int, int]
"""The number of a shard, from 1, and the number of shards; it has every batch with that remainder."""


def check_shard(shard: Any, key: str | None) -> Shard:
    """Return `shard` if it is valid and the run has a key; the single shard for None. Raises `InvalidParameter`."""
    if shard is None:
        return 1, 1
    expected = "a pair of whole numbers, which shard from 1 and of how many"
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise InvalidParameter("shard", expected, shown(shard))
    shards = check_whole("shard", shard[1], 1)
    if key is None:
        # Only a key identifies a batch of an earlier run, and the shard that charged it.
        raise InvalidParameter("key", "the run's name, which all its shards share", None)
    return check_whole("shard", shard[0], 1, shards), shards


def in_shard(number: int, shard: Shard) -> bool:
    """True if the shard has batch `number`, counted from 0."""
    which, shards = shard
    return number % shards == which - 1


def batches(users: Iterable[str], shard: Shard = (1, 1)) -> Iterator[tuple[int, list[str]]]:
    """Yield the shard's batches of users in order, with numbers from 0; the last one is empty and marks the end.

    The batches are those of the whole list, for any number of shards. Raises `InvalidParameter` at the batch that
    contains anything but texts. The caller must still check each user.
    """
    expected = "many users; a single text would be charged letter by letter"
    iterator = iter(check_texts("users", users, expected))
    for number in count():
        batch = list(islice(iterator, BATCH))
        if in_shard(number, shard):
            yield number, batch
            if not batch:
                return


class BulkCharge:
    """One batch of users who are charged one report each, inside one transaction."""

    def __init__(self, transaction: Transaction, charge: Charge, terms: ApplicablePolicy, note: str | None) -> None:
        if terms.policy.plan is not None:
            raise NotSupported(f"policy {terms.policy.name} holds a plan; charge its users one at a time")
        self._transaction = transaction
        self._charge = charge
        self._terms = terms
        self._note = note
        self._windows = transaction.windows  # raises for an implausible clock, before any work

    def run(self, users: list[str]) -> list[str]:
        """Charge all users whose limits allow it; return the refused ones. A user listed twice is charged twice."""
        if self._terms.why:
            return list(users)
        refused: list[str] = []
        for once_each in _rounds(users):
            names = dict(zip(self._transaction.key.hashes(b"user", once_each), once_each, strict=True))
            refused += [names[user] for user in self._charge_once(sorted(names))]
        return refused

    def _charge_once(self, users: list[bytes]) -> list[bytes]:
        """Charge distinct users; return the refused ones."""
        transaction, charge, terms = self._transaction, self._charge, self._terms
        batch = transaction.batch(users)
        limited = [(self._windows[limit.gauge], limit) for limit in terms.limits]
        rooms = [(window.code, limit.remaining_room(charge.cost_under(window.measure))) for window, limit in limited]
        refused = batch.refuse(rooms)
        if len(refused) < len(users):
            transaction.open_accounts(batch)
            mine = [window for window in self._windows.values() if window.counts(terms.share)]
            transaction.charge_batch(batch, {window.code: charge.cost_under(window.measure) for window in mine})
            common = (transaction.moment.micros, SPENT, charge.store(transaction), terms.number, *charge.cost)
            transaction.append_batch(batch, common, self._note, terms.share)
        return refused


def _rounds(users: list[str]) -> Iterator[list[str]]:
    """Split the users into rounds, so that each round has a user once."""
    left = Counter(users)
    while left:
        yield list(left)
        left = Counter({user: times - 1 for user, times in left.items() if times > 1})


def write_refused(users: list[str]) -> Callable[[Outcome | PartitionedBatch], StoredResponse]:
    """Return the function that encodes the response to a batch: the indexes of the refused requests."""

    def write(outcome: Outcome | PartitionedBatch) -> StoredResponse:
        assert not isinstance(outcome, PartitionedBatch)
        return StoredResponse(canonical_json({"refused": refused_places(users, outcome[0])}), kind=CHARGED)

    return write


def read_part(users: list[str]) -> Callable[[BatchRunRecord], Outcome | PartitionedBatch]:
    """Return the function that decodes a stored response to the same batch.

    For a batch that was started before the ledger was moved, it returns the parts in which the batch was started.
    """

    def read(stored: BatchRunRecord) -> Outcome | PartitionedBatch:
        if stored.kind == BOUND:
            return PartitionedBatch(stored.partitions)
        return [users[place] for place in json.loads(stored.response)["refused"]], True

    return read


def batch_key(
    secret: Key, key: str | None, number: int, users: list[str], identity: tuple[Any, ...], scope: str = ""
) -> IdempotencyKey | None:
    """Return the key of batch `number` (from 0), bound to its users and to the identity of the run.

    Raises `InvalidParameter`.
    """
    if key is None:
        return None
    name = f"{check_text('key', key)}#{number}"
    request = secret.hash(b"request", ascii((identity, secret.hash(b"users", ascii(users)).hex())))
    return IdempotencyKey(name, None, key_hash(secret, name, scope), request)


def bind_idempotency_key(
    transaction: Transaction, users: list[str], key: IdempotencyKey, check: Callable[[], None]
) -> Outcome | PartitionedBatch | None:
    """Bind a batch to its key before any user is charged, so that other users under the same key are a conflict.

    Returns the result that was stored before the ledger was moved, if any. `check` raises for a batch that cannot be
    charged; it is not called for a batch that is bound already.
    """

    def read(stored: BatchRunRecord) -> Outcome | PartitionedBatch | None:
        return None if stored.kind == BOUND and not stored.partitions else read_part(users)(stored)

    return run_idempotent(transaction, key, check, write=lambda _: StoredResponse("", kind=BOUND), read=read)


def parts_of(secret: Key, users: list[str], partitions: int) -> list[tuple[int, list[str]]]:
    """Split the users by partition, for this number of partitions; keep their order."""
    parts: dict[int, list[str]] = {}
    for user, hashed in zip(users, secret.hashes(b"user", users), strict=True):
        parts.setdefault(partition_of(hashed, partitions), []).append(user)
    return sorted(parts.items())


def part_key(secret: Key, key: IdempotencyKey, partition: int) -> IdempotencyKey:
    """Return the key of the part of a batch that belongs to one partition."""
    return key._replace(key_hash=secret.hash(b"key", f"{key.key_hash.hex()} {partition}"))


def refused_places(users: list[str], refused: list[str]) -> list[int]:
    """Return the indexes of the refused requests in the batch; for a repeated user, the last ones."""
    left: dict[str, int] = {}
    for user in refused:
        left[user] = left.get(user, 0) + 1
    places = []
    for place in range(len(users) - 1, -1, -1):
        if left.get(users[place], 0):
            left[users[place]] -= 1
            places.append(place)
    return places[::-1]


def spend_many(
    ledger: Ledger,
    caller: Principal,
    users: Iterable[str],
    mechanism: Mechanism | Collection | object,
    *,
    key: str | None,
    digest: str | None,
    note: str | None,
    policy: str,
    shard: tuple[int, int] | None,
    on_batch: Callable[[int, list[str]], None] | None,
) -> BulkResult:
    """Charge one report to each of many users, in batches; refuse the users whose limits do not fit it."""
    result = BulkResult()
    charge, note = charge_of(mechanism), check_note(note)
    identity = ("spend_many", *charge.identity, check_digest(digest), check_name("policy", policy))
    if key is not None:
        check_key(key)
    check_call("on_batch", on_batch)
    for number, given in batches(users, check_shard(shard, key)):
        batch = [check_user(user) for user in given]
        bound = batch_key(ledger.key, key, number, batch, identity, caller.name)
        if not batch:
            if bound is not None:
                _bind_end(ledger, _binding(charge, policy, batch, bound), bound)
            break
        refused: list[str] = []
        for part, (of_part, repeated) in _charge_batch(ledger, charge, policy, batch, bound, note, caller.share):
            result.count(len(part), of_part, repeated)
            refused += of_part
        if given != batch:  # report each refused user by the given name
            refused = [given[place] for place in refused_places(batch, refused)]
        if on_batch is not None:
            on_batch(len(batch), refused)
        else:
            result.refused_users += refused
    return result


def _charge_batch(
    ledger: Ledger,
    charge: Charge,
    policy: str,
    users: list[str],
    key: IdempotencyKey | None,
    note: str | None,
    share: str | None,
) -> Iterator[tuple[list[str], Outcome]]:
    """Charge a batch, one transaction for each partition; yield the users of each part and the outcome."""
    from concurrent.futures import ThreadPoolExecutor

    known: Outcome | PartitionedBatch | None = None
    if len(ledger.partitions) == 1:
        known = ledger.run(_charge_part(charge, policy, users, key, note, share))
    elif key is not None:
        # The whole batch is bound to its key before any user is charged.
        known = ledger.run(_binding(charge, policy, users, key), ledger.partition_of(key.key_hash))
    if isinstance(known, PartitionedBatch):
        # The batch was started before the ledger was moved, in other parts. Each of them was charged then or not.
        assert key is not None
        for partition, part in parts_of(ledger.key, users, known.partitions):
            yield from _charge_batch(ledger, charge, policy, part, part_key(ledger.key, key, partition), note, share)
        return
    if known is not None:
        yield users, known
        return
    parts = dict(parts_of(ledger.key, users, len(ledger.partitions)))

    def charged(partition: int) -> tuple[list[str], Outcome]:
        of_partition = None if key is None else part_key(ledger.key, key, partition)
        outcome = ledger.run(_charge_part(charge, policy, parts[partition], of_partition, note, share), partition)
        assert not isinstance(outcome, PartitionedBatch)
        return parts[partition], outcome

    with ThreadPoolExecutor(PARTITIONS_TOGETHER) as threads:
        try:
            yield from threads.map(charged, sorted(parts))
        except LedgerError as error:
            if error.unknown or len(parts) == 1:
                raise
            # The error says that nothing was charged. That holds for its partition (for example one whose key was
            # rotated), but other partitions may have been charged.
            why = str(error).removeprefix(f"ledger {error.path}: ")
            more = "so much for some users of a batch; others of it may have been charged, so ask again by the key"
            raise LedgerError(error.path, f"{why} ({more})", unknown=True) from error


def _bind_end(ledger: Ledger, binding: Callable[[Transaction], object], bound: IdempotencyKey) -> None:
    """Store the end of a run. All users of the run were charged before, so an error must not say otherwise."""
    try:
        ledger.run(binding, ledger.partition_of(bound.key_hash))
    except LedgerError as error:
        why = "the users of the run were charged, but its end could not be stored; repeat the run with the same key"
        raise LedgerError(error.path, why, unknown=True) from error


def _binding(
    charge: Charge, policy: str, users: list[str], key: IdempotencyKey
) -> Callable[[Transaction], Outcome | PartitionedBatch | None]:
    def work(transaction: Transaction) -> Outcome | PartitionedBatch | None:
        def check() -> None:
            BulkCharge(
                transaction, charge, terms_in(transaction, policy, charge), None
            )  # a batch that this rejects is not bound

        return bind_idempotency_key(transaction, users, key, check)

    return work


def _charge_part(
    charge: Charge, policy: str, users: list[str], key: IdempotencyKey | None, note: str | None, share: str | None
) -> Callable[[Transaction], Outcome | PartitionedBatch]:
    def work(transaction: Transaction) -> Outcome | PartitionedBatch:
        def act() -> Outcome | PartitionedBatch:
            terms = terms_in(transaction, policy, charge, share)
            return BulkCharge(transaction, charge, terms, note).run(users), False

        return run_idempotent(transaction, key, act, write=write_refused(users), read=read_part(users))

    return work
