"""Exchanging the secret of a ledger's key, partition by partition, while others go on.

A new secret is *pending* when it stands in the key's file and is in force nowhere, so that it can be brought to every
machine; *active* when it is in force in every partition; what was before it is *expired*, and only says that what is older
holds. A partition takes it in one transaction: every stored hash is veiled anew, every row gets a new MAC, and a `rekeyed`
entry says so, whose link and all later ones are made with the new secret. That link covers the one before, so it also
holds what the old secret has linked: nobody can write that again, whoever has the old one.

The partition says by its gate which secret is in force there, so all processes go by the same one, from one transaction to
the next; one that does not have it refuses. Whoever is stopped between two partitions leaves a ledger that is whole, for
its processes have both, and the same call goes on.
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
    from .store import Renew
    from .transaction import Transaction

    Progress = Callable[[int, int], None]

PENDING, ACTIVATING, ACTIVE, EXPIRED = "pending", "activating", "active", "expired"


# -- what the ledger keeps of it --------------------------------------------------------------------------


def note(transaction: Transaction, generation: int) -> None:
    """Keep in a partition, under its secret, when that came into force there."""
    newest = next(transaction.rows.checkpoints(max(1, transaction.end.checkpoints)), None)
    chain_hash = EMPTY_CHAIN if newest is None else newest.chain_hash
    began = transaction.end.entries, transaction.end.checkpoints, chain_hash
    transaction.add_numbered(KeyEpoch(0, generation, transaction.partition, transaction.secret.number, *began))


def since(reading: Reading, generation: int, partition: int, number: int) -> KeyEpoch | None:
    """When a secret came into force in a partition of the ledger when it was moved so often; None if it never did."""
    return reading.numbered(KeyEpoch, generation, partition, number)


def secret_epochs(reading: Reading) -> list[tuple[Secret, KeyEpoch]]:
    """The secrets after the first that came into force in this partition, and when."""
    found = []
    for number in range(2, reading.secret.number + 1):
        began = since(reading, reading.generation, reading.partition, number)
        if began is not None:
            found.append((secret_of(reading.key, number), began))
    return found


def secret_for(reading: Reading, name: Name) -> Secret:
    """The secret that was in force when the entry of a name was written.

    `reading`: of its partition, or, for one that was written before the ledger was moved, of any.
    """
    if name.generation == reading.generation and name.entry > reading.end.entries:
        return reading.secret  # it is being written
    for number in range(reading.secret.number, 1, -1):
        began = since(reading, name.generation, name.partition, number)
        if began is not None and name.entry > began.entries:
            return secret_of(reading.key, number)
    return reading.key


# -- the states -------------------------------------------------------------------------------------------


class KeyState(NamedTuple):
    """One secret of a key: which it is, pending, activating, active or expired, and in how many partitions in force."""

    secret: int
    state: str
    partitions: int


def states(ledger: Ledger) -> list[KeyState]:
    """Every secret of the key, the oldest first."""
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
    """Which secret is in force in each partition."""
    used = []
    for partition in ledger.partitions:
        with ledger.reading(partition) as reading:
            used.append(reading.secret.number)
    return used


# -- the steps --------------------------------------------------------------------------------------------


def prepare(ledger: Ledger) -> int:
    """Put a new secret into the key's file, in force nowhere yet; its number.

    One that stands there and is not in force in all partitions stays, and is the one.
    """
    ledger.look_at_key()
    used = min(_used(ledger))
    _check_open(ledger)
    ledger.change_key(lambda key: key.with_new_secret() if key.newest == used else key.secret)
    return ledger.key.newest


def discard(ledger: Ledger) -> bool:
    """Take a secret that is in force nowhere out of the key's file; whether there was one."""
    ledger.look_at_key()
    used, found = max(_used(ledger)), ledger.key.newest
    ledger.change_key(lambda key: key.without_new_secrets(used))
    return found > ledger.key.newest


def activate(ledger: Ledger, on_progress: Progress = lambda done, total: None) -> int:
    """Have the newest secret in force in every partition, one by one, and say so in the key's file; its number."""
    ledger.look_at_key()
    number = ledger.key.newest
    _check_open(ledger)
    _used(ledger)  # one that somebody else has prepared under the same number is told here
    ledger.change_key(lambda key: key.with_begun(min(number, key.newest)))
    if ledger.key.newest < number:
        raise LedgerError(ledger.name, f"secret {number} of its key was discarded just now, so it is not activated")
    # All begin with the first partition. Of two machines that have prepared one each, one is told there.
    for done, partition in enumerate(ledger.partitions, 1):
        ledger.run_in_partitions(
            lambda transactions: _take(ledger, transactions[0], number), [partition], allow_closed=True
        )
        ledger.key.found_in_force(number)
        on_progress(done, len(ledger.partitions))
    ledger.change_key(lambda key: key.with_active(number))
    ledger.clear_log()  # of what stood there under the old one
    return number


def _check_open(ledger: Ledger) -> None:
    with ledger.reading() as reading:
        if reading.end.state != lifecycle.OPEN:
            raise LedgerError(ledger.name, lifecycle.why_shut(reading))


def _take(ledger: Ledger, transaction: Transaction, number: int) -> None:
    """Have a partition go by its next secret, if that is the one of this number."""
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
    """What becomes of the rows of a partition; each must hold before, or what somebody changed would hold from now on."""

    def __init__(self, ledger: str, partition: int, old: Secret, new: Secret) -> None:
        self._ledger, self._partition, self._old, self._new = ledger, partition, old, new

    def tables(self) -> dict[str, Renew]:
        """By the table, what makes a row what it is to be."""
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
        """A row that ends with its MAC, and has hashes at some places; `named` is what the MAC covers before."""
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
