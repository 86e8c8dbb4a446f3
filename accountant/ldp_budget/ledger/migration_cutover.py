"""Cut-over steps of a migration, and the comparison of the two ledgers.

Each step is one transaction of all partitions of one ledger. `begin` closes the target, `shut` closes the source, and
`open_copy` opens the target when everything was copied. Until then, `give_up` opens the source again. At no moment do
both ledgers accept charges.

Files can be duplicated while they are filled, and every duplicate could be filled to the end. So the source records
which target opens, by a random id that this target made and by its location. No other target opens after that.

`differences` compares the users, the counts, and every account's sums in every window.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import zip_longest
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError
from ..guarantees.fixed_point import ZERO
from . import key_rotation, lifecycle
from .calendar import LIFETIME, gauge_of, gauges_in
from .models import CLOCK, COPIED, MOVED, PERIOD, POLICY_SET, REKEYED, REOPENED, Entry, PartitionHead
from .snapshot import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .ledger import Ledger
    from .migration_copy import Scratch
    from .transaction import Transaction


def new_copy() -> str:
    """Return a random name for a migration, which both ledgers record."""
    return token_hex(8)


def begin(source: Ledger, target: Ledger, copy: str) -> None:
    """Close the target to all other use. Raises `LedgerError` if it is not empty.

    Also raises `LedgerError` if the source's key is being rotated, or was rotated since the target was made.
    """
    secrets = set()
    for partition in source.partitions:
        with source.reading(partition) as reading:
            secrets.add(reading.secret.number)
            begun = lifecycle.importing_state(reading.end.lifecycle)
    if len(secrets) > 1:
        raise LedgerError(source.name, "its key is being exchanged, partition by partition; end that, and copy then")
    if not target.key.replaces(source.key):
        why = f"the key of {source.name} was exchanged since this place was made; remove it, and copy anew"
        raise LedgerError(target.name, why)

    def shut(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end._replace(checkpoints=0) != PartitionHead():
                raise LedgerError(target.name, "expected a place where nothing is yet; found another ledger")
            transaction.set_lifecycle(begun, (copy, source.name))
            if transaction.secret.number > 1:
                key_rotation.note(transaction, begun.generation)

    target.run_in_partitions(shut, target.partitions, allow_closed=True)


def shut(source: Ledger, target: Ledger, copy: str) -> None:
    """Close the source. It continues in the target, under the same secret of the key; only `give_up` opens it again.

    Raises `LedgerError` if the key was rotated since the copy began, or if only some partitions use the new secret.
    """
    with target.reading() as reading:
        secret = reading.secret.number

    def move(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state != lifecycle.OPEN:
                raise LedgerError(source.name, lifecycle.why_shut(transaction))
            if transaction.secret.number != secret:
                why = (
                    f"partition {transaction.partition} is under secret {transaction.secret.number} of its key, which was "
                    f"exchanged since the copy was begun; end that, remove what is at {target.name}, and copy anew"
                )
                raise LedgerError(source.name, why)
            transaction.append(Entry(0, transaction.time(), MOVED, 0, 0, 0, 0, ZERO))
            following = lifecycle.next_state(transaction.end.lifecycle, lifecycle.MOVED_AWAY)
            transaction.set_lifecycle(following, (copy, target.name))

    source.run_in_partitions(move, source.partitions, allow_closed=True)


def check_opening(source: Ledger, target: Ledger) -> None:
    """Raise `LedgerError` if `source` has recorded another target as the one that opens."""
    with source.reading() as here, target.reading() as there:
        noted, mine = lifecycle.opening_of(here), lifecycle.opening_of(there)
        if noted is not None:
            _check_opening(noted, mine, target)


def _check_opening(noted: lifecycle.Opening, mine: lifecycle.Opening | None, target: Ledger) -> None:
    """Raise `LedgerError` unless the target that the source has recorded is this one."""
    if mine is None or (noted.id, noted.identity) != (mine.id, target.identity):
        why = f"this is a second copy of the ledger that was moved to {noted.ledger}, and can never be used"
        raise LedgerError(target.name, f"{why}. Remove this copy, and use {noted.ledger}")


def open_copy(source: Ledger, target: Ledger) -> None:
    """Open the target, which is complete. Raises `LedgerError` if another target has opened."""
    opening = lifecycle.Opening(0, 0, 0, token_hex(16), "", "")

    def propose(transactions: list[Transaction]) -> lifecycle.Opening:
        noted = lifecycle.opening_of(transactions[0])
        if noted is None:
            _note_opening(transactions[0], opening)
        return noted or opening

    def choose(transactions: list[Transaction]) -> None:
        (transaction,) = transactions
        if transaction.end.state != lifecycle.MOVED_AWAY:
            raise LedgerError(source.name, f"it was opened again, so its copy at {target.name} can never be used")
        noted = lifecycle.opening_of(transaction)
        if noted is None:
            _note_opening(transaction, mine._replace(identity=target.identity, ledger=target.name))
        else:
            _check_opening(noted, mine, target)

    mine = target.run_in_partitions(propose, [0], allow_closed=True)
    source.run_in_partitions(choose, [0], allow_closed=True)
    _open(target)


def _note_opening(transaction: Transaction, opening: lifecycle.Opening) -> None:
    """Record the target that may open, in the source or in the target itself."""
    end = transaction.end
    transaction.add_numbered(opening._replace(generation=end.generation, changes=end.changes))


def _open(target: Ledger) -> None:
    def finish(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state != lifecycle.IMPORTING:
                raise LedgerError(target.name, "it is not being copied any more")
            transaction.append(Entry(0, transaction.time(), COPIED, 0, 0, 0, 0, ZERO))
            transaction.set_lifecycle(lifecycle.next_state(transaction.end.lifecycle, lifecycle.OPEN))

    target.run_in_partitions(finish, target.partitions, allow_closed=True)


def give_up(source: Ledger, target: Ledger) -> None:
    """Abort: open the source again. The incomplete copy becomes permanently unusable."""

    def spoil(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state not in (lifecycle.IMPORTING, lifecycle.ABORTED):
                raise LedgerError(target.name, "it is complete, and the ledger goes on there")
            if transaction.end.state == lifecycle.IMPORTING:
                reason = lifecycle.reason_of(transaction, transaction.end.lifecycle)
                aborted = lifecycle.next_state(transaction.end.lifecycle, lifecycle.ABORTED)
                transaction.set_lifecycle(aborted, (reason.move, reason.ledger))

    def reopen(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state == lifecycle.MOVED_AWAY:
                transaction.append(Entry(0, transaction.time(), REOPENED, 0, 0, 0, 0, ZERO))
                transaction.set_lifecycle(lifecycle.next_state(transaction.end.lifecycle, lifecycle.OPEN))

    target.run_in_partitions(spoil, target.partitions, allow_closed=True)
    source.run_in_partitions(reopen, source.partitions, allow_closed=True)


# -- comparison -------------------------------------------------------------------------------------------


_ACCOUNTS_TOGETHER = 5_000
_EVERYWHERE = (POLICY_SET, PERIOD, CLOCK, MOVED, REOPENED, COPIED, REKEYED)
"""The kinds of entry that each partition may have independently."""
_ENTRIES = "entries "


def differences(source: Ledger, target: Ledger, scratch: Scratch) -> Iterator[str]:
    """Yield the differences between `source` and its copy `target`; `scratch` maps accounts and entries."""
    of_source, of_target = _counts(source), _counts(target)
    for name in sorted(of_source.keys() | of_target.keys()):
        if of_source[name] != of_target[name]:
            yield f"{name}: {of_source[name]} in the ledger and {of_target[name]} in the copy"
    exact = _read_sums(source, scratch)
    limited = _limited(source)
    for partition in target.partitions:
        for one, other in zip_longest(scratch.users(partition), _users(target, partition)):
            if one != other:
                yield f"users: partition {partition} of the copy has other accounts"
                break
        stored = (row for row in _sums(target, partition) if _counts_in(row[1], limited))
        copied = (row for row in scratch.sums(partition) if _counts_in(row[1], limited))
        yield from _sum_differences(partition, copied, stored, exact)


def _sum_differences(
    partition: int, copied: Iterator[tuple[Any, ...]], stored: Iterator[tuple[Any, ...]], exact: bool
) -> Iterator[str]:
    """Yield the differences between sums in one order:

    `copied` from the source, `stored` in a partition of the copy.
    """
    was, now = next(copied, None), next(stored, None)
    while was is not None or now is not None:
        if now is None or (was is not None and was[:2] < now[:2]):
            assert was is not None
            yield f"window_sums: account {was[0]}, window {was[1]}, is not in partition {partition} of the copy"
            was = next(copied, None)
        elif was is None or now[:2] < was[:2]:
            if exact:
                yield f"window_sums: account {now[0]}, window {now[1]}, is in partition {partition} of the copy alone"
            now = next(stored, None)
        else:
            if was != now and (exact or not _covers(now[2:], was[2:])):
                yield f"window_sums: account {now[0]}, window {now[1]}, differs in partition {partition} of the copy"
            was, now = next(copied, None), next(stored, None)


def _covers(now: tuple[int | None, ...], was: tuple[int | None, ...]) -> bool:
    """True if no amount is less than before; None is unbounded."""
    return all(a is None or (b is not None and a >= b) for a, b in zip(now, was, strict=True))


def size(ledger: Ledger) -> tuple[int, int]:
    """Return the number of accounts, and of entries except those that each partition may have independently."""
    counted = _counts(ledger)
    entries = sum(count for name, count in counted.items() if name.startswith(_ENTRIES))
    return counted["users"] + counted["cut_off"], entries


def _counts(ledger: Ledger) -> Counter[str]:
    """Return the numbers of users, idempotency records, notes and entries of each kind, over all partitions."""
    counted: Counter[str] = Counter()
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            counts = reading.rows.counts()
            counted["collections"] += reading.end.collections
        for name in ("users", "erased", "cut_off", "keys", "notes"):
            counted[name] += counts[name]
        for kind, count in counts["entries_by_kind"].items():
            if kind not in _EVERYWHERE:
                counted[_ENTRIES + kind] += count
    return counted


def _read_sums(source: Ledger, scratch: Scratch) -> bool:
    """Load the sums of the source into `scratch`; True if the sums of the copy must be exactly equal.

    If partitions are merged, a clock repair in one of them also counts for earlier charges in the others. So a sum in
    the copy may be larger, but never smaller.
    """
    exact = True
    for partition in source.partitions:
        with source.reading(partition) as reading:
            last = reading.end.accounts
            exact = exact and not (len(source.partitions) > 1 and reading.repairs())
        for first, until in parts(last, _ACCOUNTS_TOGETHER):
            with source.reading(partition) as reading:
                scratch.add_sums((partition, *row) for row in reading.rows.sums(first, until))
    return exact


def _limited(source: Ledger) -> set[str]:
    """Return the gauges that a policy limits. Windows of other gauges are not used, and may be partly backfilled."""
    with source.reading() as reading:
        definitions = [json.loads(policy.definition) for policy in reading.rows.policies()]
    return {LIFETIME}.union(*map(gauges_in, definitions))


def _counts_in(window: int, limited: set[str]) -> bool:
    return gauge_of(window) in limited


def _sums(target: Ledger, partition: int) -> Iterator[tuple[Any, ...]]:
    for first, last in _all_parts(target, partition):
        with target.reading(partition) as reading:
            part = [tuple(row) for row in reading.rows.sums(first, last)]
        yield from part


def _users(target: Ledger, partition: int) -> Iterator[tuple[int, bytes | None]]:
    for first, last in _all_parts(target, partition):
        with target.reading(partition) as reading:
            part = [(user.account, user.user_hash) for user in reading.rows.users(first, last)]
        yield from part


def _all_parts(target: Ledger, partition: int) -> Iterator[tuple[int, int]]:
    with target.reading(partition) as reading:
        last = reading.end.accounts
    return parts(last, _ACCOUNTS_TOGETHER)
