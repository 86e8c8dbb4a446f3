"""Keeping a ledger in order: erasing users, checkpoints and verification, a repaired clock, digests by its key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .._checks import check_call, check_switch, check_text, shown
from ..errors import InvalidParameter, UnknownName
from ..ledger.filling import count_at_repair
from ..ledger.integrity import Integrity
from ..ledger.reading import secret_of
from ..ledger.verifying import check_integrity
from .books import user_hash
from .decision_replay import DecisionReplay
from .records import record_faults, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Ledger, Transaction


def erase(ledger: Ledger, user: str, *, unknown: bool) -> bool:
    """Forget who an account belongs to: keys, labels and notes go, its sum stays, and there is no fresh budget."""
    hashed = user_hash(ledger, user)
    check_switch("unknown", unknown)

    def cut_off(transaction: Transaction) -> bool:
        if transaction.is_erased(hashed):
            return False
        account = transaction.number_of(hashed)
        seen = account is not None or transaction.has_idempotency_records(hashed)
        if not seen and not unknown:
            raise UnknownName("user", user, None, "Nothing was erased")
        transaction.erase(hashed, account)
        return seen

    erased = ledger.run(cut_off, ledger.partition_of(hashed))
    ledger.clear_log()
    return erased


def repair_clock(ledger: Ledger) -> bool:
    """Go on from the clock as it is now, where the newest entries are dated later; says whether they were."""

    def repair(transaction: Transaction) -> bool:
        moment = transaction.repair_clock()
        if moment is not None:
            count_at_repair(transaction, moment)
        return moment is not None

    repaired = [ledger.run(repair, partition) for partition in ledger.partitions]
    return any(repaired)


def verify(ledger: Ledger, expect: str | None, *, on_progress: Callable[[int, int], None] | None) -> Integrity:
    """Verify the ledger: hash chain, row MACs, sums and costs; decide every charge again; read every record."""
    if expect is not None:
        check_text("expect", expect)
    check_call("on_progress", on_progress)
    found = check_integrity(ledger, expect, on_progress or (lambda done, total: None), DecisionReplay)
    faults = record_faults(records(ledger, 1))
    return replace(found, ok=False, problems=(*found.problems, *faults)) if faults else found


def keyed_digest(ledger: Ledger, data: bytes) -> str:
    """A digest of data, in hex, by which nobody without the ledger's key can guess it."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidParameter("data", "bytes", shown(data))
    return ledger.key.hash_outside(b"data", data.hex()).hex()


def digest_under(ledger: Ledger, secret: int, data: bytes) -> str:
    """`keyed_digest` by a secret of the ledger's key, given its number; that by the first one is `keyed_digest`."""
    return secret_of(ledger.key, secret).hash_outside(b"data", data.hex()).hex()


def secret_in_force(ledger: Ledger) -> int:
    """The number of the secret of the ledger's key by which something that is made now is to be signed."""
    with ledger.reading() as reading:
        return reading.secret.number


def newest_secret(ledger: Ledger) -> int:
    """The number of the newest secret that is known to be in force; no look at the ledger."""
    return ledger.key.used
