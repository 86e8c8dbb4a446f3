"""Charging many users the same, in batches, each of which is one transaction in each partition of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_call, check_name, check_user
from ..errors import LedgerError
from .bulk import (
    PARTITIONS_TOGETHER,
    BulkCharge,
    BulkResult,
    Parts,
    batch_key,
    batches,
    bind,
    check_shard,
    part_key,
    parts_of,
    read_part,
    refused_places,
    write_refused,
)
from .charging import terms_in
from .idempotency import check_key, run_idempotent
from .request import charge_of, check_digest, check_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..authoring.base import Mechanism
    from ..catalogue.collections import Collection
    from ..ledger import Ledger, Transaction
    from .bulk import Outcome
    from .callers import Caller
    from .idempotency import IdempotencyKey
    from .request import Charge


def spend_many(
    ledger: Ledger,
    caller: Caller,
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

    known: Outcome | Parts | None = None
    if len(ledger.partitions) == 1:
        known = ledger.run(_charge_part(charge, policy, users, key, note, share))
    elif key is not None:
        # The whole batch is bound to its key before anybody is charged.
        known = ledger.run(_binding(charge, policy, users, key), ledger.partition_of(key.key_hash))
    if isinstance(known, Parts):
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
        assert not isinstance(outcome, Parts)
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
) -> Callable[[Transaction], Outcome | Parts | None]:
    def work(transaction: Transaction) -> Outcome | Parts | None:
        def check() -> None:
            BulkCharge(
                transaction, charge, terms_in(transaction, policy, charge), None
            )  # what it refuses is not bound

        return bind(transaction, users, key, check)

    return work


def _charge_part(
    charge: Charge, policy: str, users: list[str], key: IdempotencyKey | None, note: str | None, share: str | None
) -> Callable[[Transaction], Outcome | Parts]:
    def work(transaction: Transaction) -> Outcome | Parts:
        def act() -> Outcome | Parts:
            terms = terms_in(transaction, policy, charge, share)
            return BulkCharge(transaction, charge, terms, note).run(users), False

        return run_idempotent(transaction, key, act, write=write_refused(users), read=read_part(users))

    return work
