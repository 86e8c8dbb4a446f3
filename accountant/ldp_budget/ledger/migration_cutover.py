"""Cut-over steps of a migration, and the comparison of the two ledgers.

Each step is one transaction of all partitions of one ledger:

1. `begin` closes the target, which is empty.
2. `fence` closes the source: from then on it refuses every write. `abort` opens it again.
3. `hand_over` marks the source as moved, once everything is copied and verified. This cannot be undone.
4. `open_target` opens the target.

So at most one of the two is open, wherever a process is killed. The source names the move that may hand it over. A
target of an aborted move, or of one that was started again with another target, can therefore never open.

The rows of a target can be copied before it opens: a file with `cp`, a database with its server's tools. So the source
records the one place that may open, in two ways. It records the place as far as the engine has an identifier for it.
And it records a random token that was just written to the place. Each attempt to open a target requires the recorded
token there, writes a new one, and records it in the source in place of the old one. So the first attempt decides, and
every copy that was made before it lacks the new token. Once the target is open, the source records that no other place
may open. A copy that was made between the last token and that record, in the same place's identifier, would have to
be opened by a second process within this moment.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError
from . import key_rotation
from .ledger import is_fresh
from .models import (
    CLOCK,
    COPIED,
    IMPORTING,
    MOVED,
    MOVED_AWAY,
    MOVING,
    OPEN,
    PERIOD,
    POLICY_SET,
    REKEYED,
    REOPENED,
    Closing,
)
from .snapshot import by_account, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .ledger import Ledger
    from .models import PartitionHead
    from .transaction import Transaction


def check_empty(target: Ledger) -> None:
    """Raise `LedgerError` unless nothing was ever written to a ledger."""
    for partition in target.partitions:
        with target.reading(partition) as reading:
            _check_empty(target, reading.end)


def _check_empty(target: Ledger, end: PartitionHead) -> None:
    if end.state == IMPORTING:
        why = "it is left over from an interrupted move, and can never be used"
        raise LedgerError(target.name, why, hint="Remove it, or name a new place.")
    if not is_fresh(end):
        raise LedgerError(target.name, "a ledger already exists there. Nothing was moved.", hint="Name a new place.")


def begin(source: Ledger, target: Ledger) -> str:
    """Close the empty target to all other use; return the random name of the move, which both ledgers record."""
    move = token_hex(8)
    with source.reading() as reading:
        begun = reading.end.lifecycle.of_target()

    def close(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            _check_empty(target, transaction.end)
            transaction.set_lifecycle(begun, (move, source.name, ""))
            if begun.secret > 1:
                key_rotation.note(transaction, begun.generation)

    target.run_in_partitions(close, target.partitions, allow_closed=True)
    return move


def fence(source: Ledger, target: Ledger, move: str) -> None:
    """Close the source, or give a source that an interrupted move has closed to this move."""

    def close(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state not in (OPEN, MOVING):
                raise transaction.refusal()
            if transaction.end.state == OPEN:
                transaction.append_event(MOVED, transaction.time())
            following = transaction.end.lifecycle.in_state(MOVING)
            transaction.set_lifecycle(following, (move, target.name, ""))

    source.run_in_partitions(close, source.partitions, allow_closed=True)


def hand_over(source: Ledger, target: Ledger, move: str) -> None:
    """Mark the source as moved, permanently. Raises `LedgerError` if it was opened again, or names another move."""

    def close(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if transaction.end.state != MOVING or transaction.closing().move != move:
                why = f"its move to {target.name} was aborted or started again, so that place can never be used"
                raise LedgerError(source.name, why)
            following = transaction.end.lifecycle.in_state(MOVED_AWAY)
            transaction.set_lifecycle(following, (move, target.name, _only(target, token)))

    token = _write_token(source, target, None)
    source.run_in_partitions(close, source.partitions, allow_closed=True)


def open_target(source: Ledger, target: Ledger) -> None:
    """Open the target of a source that was handed over, unless it is open. Raises `LedgerError` for another target."""
    with source.reading() as reading:
        named, refusal = reading.closing(), reading.refusal()
    with target.reading() as reading:
        if reading.origin().move != named.move:
            raise refusal
        is_open = reading.end.state != IMPORTING
    if not is_open:
        token = _write_token(source, target, named)
        _record(source, named, _only(target, token))
        named = named._replace(identity=_only(target, token))
        target.run_in_partitions(_open, target.partitions, allow_closed=True)
    if named.identity:
        _record(source, named, "")


def _only(target: Ledger, token: str) -> str:
    """Return the name of the one place that may open: the target, with this token."""
    return f"{target.place} {token}"


def _open(transactions: list[Transaction]) -> None:
    for transaction in transactions:
        if transaction.end.state == IMPORTING:
            transaction.append_event(COPIED, transaction.time())
            transaction.set_lifecycle(transaction.end.lifecycle.in_state(OPEN))


def _write_token(source: Ledger, target: Ledger, named: Closing | None) -> str:
    """Write a new token into a target that is not open yet, and return it.

    With `named`, the source's record of the place that may open, the target must be that place and have its token.
    """
    token = token_hex(8)

    def write(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            if named is not None and not _may_open(target, transaction, named):
                why = f"it is a duplicate of {named.ledger}, and can never be used"
                raise LedgerError(target.name, why, hint="Remove it.")
            following = transaction.end.lifecycle.in_state(IMPORTING)
            transaction.set_lifecycle(following, (token, source.name, ""))

    target.run_in_partitions(write, target.partitions, allow_closed=True)
    return token


def _may_open(target: Ledger, transaction: Transaction, named: Closing) -> bool:
    """True if a target is the place that its source has recorded, with the token of that record."""
    end = transaction.end
    written = [transaction.numbered(Closing, end.generation, change) for change in range(1, end.changes + 1)]
    tokens = [each.move for each in written if each is not None]
    return end.state == IMPORTING and named.identity in [_only(target, token) for token in tokens]


def _record(source: Ledger, named: Closing, identity: str) -> None:
    """Record in the source which place may open, unless another process has recorded another one meanwhile."""

    def record(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            reason = transaction.closing()
            if (reason.move, reason.identity) != (named.move, named.identity):
                why = f"another process has completed, or is completing, its move to {reason.ledger}"
                raise LedgerError(source.name, why, hint="Repeat the move to the same place.")
            following = transaction.end.lifecycle.in_state(MOVED_AWAY)
            transaction.set_lifecycle(following, (named.move, named.ledger, identity))

    source.run_in_partitions(record, source.partitions, allow_closed=True)


def abort(source: Ledger) -> None:
    """Open the source again. The target of its move can never be used."""

    def reopen(transactions: list[Transaction]) -> None:
        for transaction in transactions:
            state = transaction.end.state
            if state == MOVED_AWAY:
                why = f"its move to {transaction.closing().ledger} is complete, and cannot be aborted"
                raise LedgerError(source.name, why)
            if state != MOVING:
                raise LedgerError(source.name, "it is not being moved, so there is nothing to abort")
            transaction.append_event(REOPENED, transaction.time())
            transaction.set_lifecycle(transaction.end.lifecycle.in_state(OPEN))

    source.run_in_partitions(reopen, source.partitions, allow_closed=True)


# -- comparison -------------------------------------------------------------------------------------------


_ACCOUNTS_TOGETHER = 5_000
_MOST_TEXTS = 1_000
_EVERYWHERE = (POLICY_SET, PERIOD, CLOCK, MOVED, REOPENED, COPIED, REKEYED)
"""The kinds of entry that each partition may have independently."""
_ENTRIES = "entries "


def differences(source: Ledger, target: Ledger) -> Iterator[str]:
    """Yield the differences between a ledger and its copy. The sums follow from the histories, see `verification`."""
    of_source, of_target = _counts(source), _counts(target)
    for name in sorted(of_source.keys() | of_target.keys()):
        if of_source[name] != of_target[name]:
            yield f"{name}: {of_source[name]} in the ledger and {of_target[name]} in the copy"
    if _digest_of_histories(source) != _digest_of_histories(target):
        yield "the histories of the users are not the same"


def _digest_of_histories(ledger: Ledger) -> int:
    """Return a digest of every user with all of the user's charges, independent of the order of the users."""
    total = 0
    texts: dict[Any, bytes] = {}
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            last = reading.end.accounts
            charges = {charge.number: charge.covered[1:] for charge in reading.rows.priced_mechanisms()}
            texts.clear()
        for first, until in parts(last, _ACCOUNTS_TOGETHER):
            with ledger.reading(partition) as reading:
                users = {user.account: user.user_hash for user in reading.rows.users(first, until)}
                for account, history in by_account(reading.rows.histories(first, until)):
                    total += _digest(users.get(account), history, charges, texts)
    return total


def _digest(
    user: bytes | None,
    history: Iterator[tuple[Any, ...]],
    charges: dict[int, tuple[Any, ...]],
    texts: dict[Any, bytes],
) -> int:
    """Return a digest of a user's history; `texts` keeps what many entries of a partition have in common."""
    digest = blake2b(ascii(user).encode("ascii"), digest_size=32)
    numbers: dict[int, int] = {}
    for place, row in enumerate(history):
        numbers[row[0]] = place
        key = row[1:3], row[4:]
        text = texts.get(key) if row[13] is None else None
        if text is None:
            # Number, account, priced mechanism and reservation have other numbers in a copy.
            same = (*row[1:3], charges.get(row[4]), *row[5:13], numbers.get(row[13]), *row[14:])
            text = ascii(same).encode("ascii")
            if row[13] is None:
                if len(texts) >= _MOST_TEXTS:
                    texts.clear()
                texts[key] = text
        digest.update(text)
    return int.from_bytes(digest.digest())


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
            for (collection, state), count in reading.rows.report_counts().items():
                counted[f"reports of {collection}, {state}"] += count
        for name in ("users", "erased", "cut_off", "keys", "notes"):
            counted[name] += counts[name]
        for kind, count in counts["entries_by_kind"].items():
            if kind not in _EVERYWHERE:
                counted[_ENTRIES + kind] += count
    return counted
