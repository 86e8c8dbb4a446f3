"""Rotation of the ledger secret: an exclusive maintenance step.

One transaction of all partitions encrypts every stored hash again, gives every row a new MAC, and appends a `rekeyed`
entry to each partition. So the whole ledger is under one secret, before and after. The chain hash of the `rekeyed`
entry and all later ones are made with the new secret. The new chain hash covers the previous one, and so protects
everything that the old secret chained: an attacker with the old secret cannot rewrite it.

The new secret is in the key file before the transaction begins. If the rotation is interrupted, the ledger is under
the old secret or under the new one, and the key file has both. A process that has the ledger open refuses all
use from then on, because its hashes are encrypted with the old secret: open the ledger again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError
from ..guarantees.memoised_costs import UNLABELLED
from .models import EMPTY_CHAIN, NUMBERED, OPEN, REKEYED, KeyEpoch, NumberedTable
from .snapshot import secret_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hash_chain import Name
    from .keyed_hashing import Secret
    from .ledger import Ledger
    from .snapshot import Reading
    from .storage import Renew
    from .transaction import Transaction

    Progress = Callable[[int, int], None]


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


# -- the rotation -----------------------------------------------------------------------------------------


def rotate(ledger: Ledger, on_progress: Progress = lambda done, total: None) -> int:
    """Put a new secret in use, or complete an interrupted rotation; return its number."""
    number = ledger.key.in_use.number
    with ledger.reading():
        pass  # fails if the key was rotated since the ledger was opened
    key = ledger.change_key(lambda key: key.secret)
    if key.active == number:
        number += 1
        # A new secret of an interrupted rotation is used now.
        key = ledger.change_key(lambda key: key.with_new_secret() if key.newest < number else key.secret)
        new = secret_of(key, number)

        def take(transactions: list[Transaction]) -> None:
            for done, transaction in enumerate(transactions):
                if transaction.end.state != OPEN:
                    raise transaction.refusal()
                on_progress(done, len(transactions))
                _take(ledger.name, transaction, new)

        ledger.run_in_partitions(take, ledger.partitions, allow_closed=True)
    ledger.change_key(lambda key: key.with_active(number))
    ledger.clear_log()  # data written under the old secret
    return number


def _take(ledger: str, transaction: Transaction, new: Secret) -> None:
    """Put a new secret in use in a partition."""
    old = transaction.secret
    transaction.account_macs.renew(old, new)
    transaction.rotate(_Renewal(ledger, transaction.partition, old, new).tables(), new)
    note(transaction, transaction.generation)
    transaction.append_event(REKEYED, transaction.time(), reports=new.number)


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
            "notes": lambda row: self._with_mac("notes", row, named=("note", self._partition)),
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
        if self._old.row_mac(*named, *values) != row_mac:
            why = f"a row of {table} was changed, so the key was not rotated. Run: ldp-budget ledger verify"
            raise LedgerError(self._ledger, why)
        for place in hashes:
            if values[place] is not None:
                values[place] = self._again(values[place])
        return (*values, self._new.row_mac(*named, *values))

    def _again(self, stored: bytes) -> bytes:
        if stored == UNLABELLED:
            return stored
        return self._new.encrypt_hash(self._old.decrypt_hash(stored))
