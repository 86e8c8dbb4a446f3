"""Rotation of the ledger secret, partition by partition, while other processes keep writing.

A new secret is *pending* while it is in the key file but no partition uses it. It can then be distributed to every
machine. A secret is *active* when every partition uses it. Older secrets are then *expired*: they only verify older
data.

A partition takes a new secret in one transaction. The transaction encrypts every stored hash again, gives every row a
new MAC and appends a `rekeyed` entry. The chain hash of that entry and all later ones are made with the new secret.
The new chain hash covers the previous one, and so protects everything that the old secret chained: an attacker with
the old secret cannot rewrite it.

The lifecycle of a partition names the secret in use there. So all processes switch to the new secret from one
transaction to the next. A process that does not have the secret refuses to work. An interrupted rotation leaves a
consistent ledger, because every process holds both secrets. Calling `activate` again resumes it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LedgerError
from ..guarantees.fixed_point import ZERO
from . import lifecycle
from .models import EMPTY_CHAIN, NUMBERED, REKEYED, Entry, KeyEpoch, NumberedTable
from .snapshot import secret_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hash_chain import Name
    from .keyfile import Secret
    from .ledger import Ledger
    from .snapshot import Reading
    from .storage import Renew
    from .transaction import Transaction

    Progress = Callable[[int, int], None]

PENDING, ACTIVATING, ACTIVE, EXPIRED = "pending", "activating", "active", "expired"


# -- key epochs -------------------------------------------------------------------------------------------


def note(transaction: Transaction, generation: int) -> None:
    """Record in a partition, under its secret, when that secret came into use there."""
    newest = next(transaction.rows.checkpoints(max(1, transaction.end.checkpoints)), None)
    chain_hash = EMPTY_CHAIN if newest is None else newest.chain_hash
    began = transaction.end.entries, transaction.end.checkpoints, chain_hash
    transaction.add_numbered(KeyEpoch(0, generation, transaction.partition, transaction.secret.number, *began))


def since(reading: Reading, generation: int, partition: int, number: int) -> KeyEpoch | None:
    """Return when a secret came into use in a partition, at that generation of the ledger; None if it never did."""
    return reading.numbered(KeyEpoch, generation, partition, number)


def secret_epochs(reading: Reading) -> list[tuple[Secret, KeyEpoch]]:
    """Return the secrets after the first that came into use in this partition, each with its epoch."""
    found = []
    for number in range(2, reading.secret.number + 1):
        began = since(reading, reading.generation, reading.partition, number)
        if began is not None:
            found.append((secret_of(reading.key, number), began))
    return found


def secret_for(reading: Reading, name: Name) -> Secret:
    """Return the secret that was in use when the entry of a name was written.

    `reading` is of the entry's partition. For an entry that was written before a move, any partition will do.
    """
    if name.generation == reading.generation and name.entry > reading.end.entries:
        return reading.secret  # the entry is being written
    for number in range(reading.secret.number, 1, -1):
        began = since(reading, name.generation, name.partition, number)
        if began is not None and name.entry > began.entries:
            return secret_of(reading.key, number)
    return reading.key


# -- states of the secrets --------------------------------------------------------------------------------


class KeyState(NamedTuple):
    """One secret of a key: its number, its state, and the number of partitions that use it.

    The state is pending, activating, active or expired.
    """

    secret: int
    state: str
    partitions: int


def states(ledger: Ledger) -> list[KeyState]:
    """Return the state of every secret of the key, the oldest first."""
    ledger.look_at_key()
    used = _used(ledger)
    return [KeyState(number, _state(number, used), used.count(number)) for number in range(1, ledger.key.newest + 1)]


def _state(number: int, used: list[int]) -> str:
    if number > max(used):
        return PENDING
    if number < min(used):
        return EXPIRED
    return ACTIVE if min(used) == max(used) else ACTIVATING


def _used(ledger: Ledger) -> list[int]:
    """Return the number of the secret in use in each partition."""
    used = []
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            used.append(reading.secret.number)
    return used


# -- steps of a rotation ----------------------------------------------------------------------------------


def prepare(ledger: Ledger) -> int:
    """Add a new secret to the key file, which no partition uses yet; return its number.

    If the key file already has a secret that not all partitions use, that secret is kept and its number returned.
    """
    ledger.look_at_key()
    used = min(_used(ledger))
    _check_open(ledger)
    ledger.change_key(lambda key: key.with_new_secret() if key.newest == used else key.secret)
    return ledger.key.newest


def discard(ledger: Ledger) -> bool:
    """Remove the secrets that no partition uses from the key file; True if there was one."""
    ledger.look_at_key()
    used, found = max(_used(ledger)), ledger.key.newest
    ledger.change_key(lambda key: key.without_new_secrets(used))
    return found > ledger.key.newest


def activate(ledger: Ledger, on_progress: Progress = lambda done, total: None) -> int:
    """Make every partition use the newest secret, one by one, and mark it active; return its number."""
    ledger.look_at_key()
    number = ledger.key.newest
    _check_open(ledger)
    _used(ledger)  # fails if another machine prepared a secret with the same number
    ledger.change_key(lambda key: key.with_begun(min(number, key.newest)))
    if ledger.key.newest < number:
        raise LedgerError(ledger.name, f"secret {number} of its key was discarded just now, so it is not activated")
    # All processes begin with the first partition. If two machines prepared a secret each, one of them fails there.
    for done, partition in enumerate(ledger.partitions, 1):
        ledger.run_in_partitions(
            lambda transactions: _take(ledger, transactions[0], number), [partition], allow_closed=True
        )
        ledger.key.found_in_force(number)
        on_progress(done, len(ledger.partitions))
    ledger.change_key(lambda key: key.with_active(number))
    ledger.clear_log()  # data written under the old secret
    return number


def _check_open(ledger: Ledger) -> None:
    with ledger.reading() as reading:
        if reading.end.state != lifecycle.OPEN:
            raise LedgerError(ledger.name, lifecycle.why_shut(reading))


def _take(ledger: Ledger, transaction: Transaction, number: int) -> None:
    """Make a partition use its next secret, if that has this number."""
    old = transaction.secret
    if old.number >= number:
        return
    if transaction.end.state != lifecycle.OPEN:
        raise LedgerError(ledger.name, lifecycle.why_shut(transaction))
    if old.number != number - 1:
        raise LedgerError(
            ledger.name, f"partition {transaction.partition} is under secret {old.number}; expected {number - 1}"
        )
    new = secret_of(transaction.key, number)
    transaction.account_macs.renew(old, new)
    transaction.renew(_Renewal(ledger.name, transaction.partition, old, new).tables())
    transaction.set_lifecycle(transaction.end.lifecycle._replace(secret=number))
    note(transaction, transaction.generation)
    transaction.append(Entry(0, transaction.time(), REKEYED, 0, 0, 0, number, ZERO))


class _Renewal:
    """Converts the rows of a partition to a new secret.

    It checks each old MAC first: otherwise a changed row would get a valid one.
    """

    def __init__(self, ledger: str, partition: int, old: Secret, new: Secret) -> None:
        self._ledger, self._partition, self._old, self._new = ledger, partition, old, new

    def tables(self) -> dict[str, Renew]:
        """Return, for each table, the function that converts a row."""
        return {
            "users": lambda row: self._with_mac("users", row, 1),
            "tombstones": lambda row: self._with_mac("tombstones", row, 0),
            "idempotency_records": lambda row: self._with_mac("idempotency_records", row, 0, 1, 4),
            "collections": lambda row: self._with_mac("collections", row),
            "priced_mechanisms": lambda row: self._with_mac("priced_mechanisms", row),
            "policies": lambda row: self._with_mac("policies", row),
            "notes": self._note,
            "memoised_counts": lambda row: (row[0], self._again(row[1]), *row[2:]),
            "entry_labels": lambda row: (row[0], self._again(row[1]), self._again(row[2])),
            **{table.name: partial(self._numbered, table) for table in NUMBERED.values()},
        }

    def _numbered(self, table: NumberedTable, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._with_mac(table.name, row, *table.hashes, named=(table.name, self._partition))

    def _with_mac(
        self, table: str, row: tuple[Any, ...], *hashes: int, named: tuple[object, ...] = ()
    ) -> tuple[Any, ...]:
        """Convert a row that ends with its MAC.

        `hashes` are its columns with hashes; the MAC covers `named`, then the row.
        """
        *values, row_mac = row
        for place in hashes:
            if values[place] is not None:
                values[place] = self._old.decrypt_hash(values[place])
        self._check(table, self._old.row_mac(*named, *values), row_mac)
        new = self._new.row_mac(*named, *values)
        for place in hashes:
            if values[place] is not None:
                values[place] = self._new.encrypt_hash(values[place])
        return (*values, new)

    def _note(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        entry, text, row_mac = row
        sealed = ("note", self._partition, entry, text)
        self._check("notes", self._old.row_mac(*sealed), row_mac)
        return entry, text, self._new.row_mac(*sealed)

    def _again(self, stored: bytes) -> bytes:
        return self._new.encrypt_hash(self._old.decrypt_hash(stored))

    def _check(self, table: str, expected: bytes, found: bytes) -> None:
        if expected != found:
            why = f"a row of {table} was changed, so its key is not exchanged; `ledger verify` says which"
            raise LedgerError(self._ledger, why)
