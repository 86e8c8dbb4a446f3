"""Charging many users the same: a stream of any length in batches, each one transaction of set-based statements.

With a key, batch n is bound to KEY#n and to a digest of its users: repeated, it is skipped; with other users it is a
conflict. So an interrupted run is simply run again. After the last batch the end is bound, as a batch without users:
the same key with more users, or with fewer, is a conflict.

Charging many users the same, in batches, each of which is one transaction in each partition of the ledger.
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
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .charge_request import Charge, IdempotencyKey, Principal


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..ledger import Transaction
    from ..ledger.keyfile import Key
    from ..ledger.models import BatchRunRecord
    from .admission import ApplicablePolicy
    from .charge_request import Charge

    Outcome = tuple[list[str], bool]
    """The refused users of a batch, and whether it was charged before."""

BATCH = 50_000
PARTITIONS_TOGETHER = 4
"""In how many partitions a batch is charged at the same time."""


class PartitionedBatch(NamedTuple):
    """A batch that was begun in the parts of so many partitions; each has an answer of its own if it was charged."""

    partitions: int


@dataclass
class BulkResult:
    """How many requests were charged, refused, or had been charged by an earlier run of the same key.

    `refused_users` names who was refused, once for each time, unless somebody was told of them batch by batch.
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
            users: how many it had.
            refused: who of them was refused.
            repeated: whether it had been charged before.

        Raises:
            Nothing.
        """
        self.refused += len(refused)
        if repeated:
            self.repeated += users - len(refused)
        else:
            self.spent += users - len(refused)

    def to_json(self) -> dict[str, int]:
        """What `spend-many --json` prints.

        Raises:
            Nothing.
        """
        return {"spent": self.spent, "refused": self.refused, "repeated": self.repeated}


Shard = tuple[int, int]
"""Which of so many shards of a run, from 1: it has every batch whose number leaves that remainder."""


def check_shard(shard: Any, key: str | None) -> Shard:
    """`shard`, if it is one of a run with a key; the only one where it is None. Raises `InvalidParameter`."""
    if shard is None:
        return 1, 1
    expected = "a pair of whole numbers, which shard from 1 and of how many"
    if not isinstance(shard, tuple) or len(shard) != 2:
        raise InvalidParameter("shard", expected, shown(shard))
    shards = check_whole("shard", shard[1], 1)
    if key is None:
        # By its key alone a batch is known again, and who has it.
        raise InvalidParameter("key", "the run's name, which all its shards share", None)
    return check_whole("shard", shard[0], 1, shards), shards


def in_shard(number: int, shard: Shard) -> bool:
    """Whether batch `number`, from 0, is one of the shard's."""
    which, shards = shard
    return number % shards == which - 1


def batches(users: Iterable[str], shard: Shard = (1, 1)) -> Iterator[tuple[int, list[str]]]:
    """The users in batches, numbered from 0, in order; of a shard, its own. The last one is empty: the end.

    The batches are those of the whole list, however many shards there are. Raises `InvalidParameter` at the batch
    that holds anything else; each user is still to be checked.
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
    """One batch of users charged one report each, inside one transaction."""

    def __init__(self, transaction: Transaction, charge: Charge, terms: ApplicablePolicy, note: str | None) -> None:
        if terms.policy.plan is not None:
            raise NotSupported(f"policy {terms.policy.name} holds a plan; charge its users one at a time")
        self._transaction = transaction
        self._charge = charge
        self._terms = terms
        self._note = note
        self._windows = transaction.windows  # where the clock cannot be believed, nothing is begun

    def run(self, users: list[str]) -> list[str]:
        """Charge the users whose limits admit it; returns the refused ones. A user listed twice is charged twice."""
        if self._terms.why:
            return list(users)
        refused: list[str] = []
        for once_each in _rounds(users):
            names = dict(zip(self._transaction.key.hashes(b"user", once_each), once_each, strict=True))
            refused += [names[user] for user in self._charge_once(sorted(names))]
        return refused

    def _charge_once(self, users: list[bytes]) -> list[bytes]:
        """Charge distinct users; returns the refused ones."""
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
    """The users so that each round names a user once."""
    left = Counter(users)
    while left:
        yield list(left)
        left = Counter({user: times - 1 for user, times in left.items() if times > 1})


def write_refused(users: list[str]) -> Callable[[Outcome | PartitionedBatch], StoredResponse]:
    """How the answer to a batch is kept: where in it the refused requests stand."""

    def write(outcome: Outcome | PartitionedBatch) -> StoredResponse:
        assert not isinstance(outcome, PartitionedBatch)
        return StoredResponse(canonical_json({"refused": refused_places(users, outcome[0])}), kind=CHARGED)

    return write


def read_part(users: list[str]) -> Callable[[BatchRunRecord], Outcome | PartitionedBatch]:
    """The response to the same batch, charged before; or in which parts it was begun before the ledger was moved."""

    def read(stored: BatchRunRecord) -> Outcome | PartitionedBatch:
        if stored.kind == BOUND:
            return PartitionedBatch(stored.partitions)
        return [users[place] for place in json.loads(stored.response)["refused"]], True

    return read


def batch_key(
    secret: Key, key: str | None, number: int, users: list[str], identity: tuple[Any, ...], scope: str = ""
) -> IdempotencyKey | None:
    """The key of batch `number` (from 0) of a run, bound to its users and to what makes two runs the same run.

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
    """Bind a batch to its key, so that other users under it are a conflict before any of them is charged.

    Returns what is known of it from before the ledger was copied, if anything is. `check` raises for a batch that
    cannot be charged; a batch that is bound already is not checked again.
    """

    def read(stored: BatchRunRecord) -> Outcome | PartitionedBatch | None:
        return None if stored.kind == BOUND and not stored.partitions else read_part(users)(stored)

    return run_idempotent(transaction, key, check, write=lambda _: StoredResponse("", kind=BOUND), read=read)


def parts_of(secret: Key, users: list[str], partitions: int) -> list[tuple[int, list[str]]]:
    """The users of each partition, out of so many, in their order."""
    parts: dict[int, list[str]] = {}
    for user, hashed in zip(users, secret.hashes(b"user", users), strict=True):
        parts.setdefault(partition_of(hashed, partitions), []).append(user)
    return sorted(parts.items())


def part_key(secret: Key, key: IdempotencyKey, partition: int) -> IdempotencyKey:
    """The key of the part of a batch that lies in one partition."""
    return key._replace(key_hash=secret.hash(b"key", f"{key.key_hash.hex()} {partition}"))


def refused_places(users: list[str], refused: list[str]) -> list[int]:
    """Where in the batch the refused requests stand; the last ones of a user who is listed more than once."""
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
    """Charge one report to each of many users, in batches; whoever does not fit is refused, the others go on."""
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
                ledger.run(_binding(charge, policy, batch, bound), ledger.partition_of(bound.key_hash))
            break
        refused: list[str] = []
        for part, (of_part, repeated) in _charge_batch(ledger, charge, policy, batch, bound, note, caller.share):
            result.count(len(part), of_part, repeated)
            refused += of_part
        if given != batch:  # each refused user is told by the given name
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
    """Charge a batch, each partition's part of it in a transaction of its own; the parts with what came of them."""
    from concurrent.futures import ThreadPoolExecutor

    known: Outcome | PartitionedBatch | None = None
    if len(ledger.partitions) == 1:
        known = ledger.run(_charge_part(charge, policy, users, key, note, share))
    elif key is not None:
        # The whole batch is bound to its key before anybody is charged.
        known = ledger.run(_binding(charge, policy, users, key), ledger.partition_of(key.key_hash))
    if isinstance(known, PartitionedBatch):
        # It was begun before the ledger was copied, in other parts, each of which was charged then or was not.
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
            # That nothing was charged is true of one partition, such as one whose key was exchanged, and of no other.
            why = str(error).removeprefix(f"ledger {error.path}: ")
            more = "so much for some users of a batch; others of it may have been charged, so ask again by the key"
            raise LedgerError(error.path, f"{why} ({more})", unknown=True) from error


def _binding(
    charge: Charge, policy: str, users: list[str], key: IdempotencyKey
) -> Callable[[Transaction], Outcome | PartitionedBatch | None]:
    def work(transaction: Transaction) -> Outcome | PartitionedBatch | None:
        def check() -> None:
            BulkCharge(
                transaction, charge, terms_in(transaction, policy, charge), None
            )  # what it refuses is not bound

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
