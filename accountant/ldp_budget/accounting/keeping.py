"""Keeping a ledger in order: erasing users, checkpoints and verification, a repaired clock, digests by its key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .._checks import check_call, check_switch, check_text, shown
from ..errors import InvalidParameter, UnknownName
from ..ledger.checkpoints import head_of, take
from ..ledger.checkup import check_up as look_over
from ..ledger.filling import count_at_repair
from ..ledger.integrity import Integrity
from ..ledger.reading import secret_of
from ..ledger.verifying import check_integrity
from .books import Books
from .decision_replay import DecisionReplay
from .records import record_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ledger import Transaction


def erase(self: Books, user: str, *, unknown: bool = False) -> bool:
    """Forget who an account belongs to: keys, labels and notes go, its sum stays, and there is no fresh budget.

    Parameters:
        user: who is to be forgotten.
        unknown: block the name for good even where it was never seen.

    Returns:
        Whether there was anything to erase, which is no more if it was done before.

    Raises:
        UnknownName: a user never seen, which may be misspelt, and not `unknown`.
        InvalidParameter: one of them is of another kind.
        LedgerError: the user is erased, but somebody was reading what was overwritten.
    """
    hashed = self._hash(user)
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

    erased = self._ledger.run(cut_off, self._ledger.partition_of(hashed))
    self._ledger.clear_log()
    return erased


def repair_clock(self: Books) -> bool:
    """Go on from the clock as it is now, where the newest entries are dated later; says whether they were.

    For a clock that was too far ahead for a while: what was written meanwhile stops every charge. The repair is
    an entry of the journal, and refills nothing: what is dated later counts in the windows that are open now as
    well, and reservations made before it are expired, as nobody knows how old they are.

    Returns:
        Whether anything was dated later.

    Raises:
        ClockError: the clock has run away within this process.
    """

    def repair(transaction: Transaction) -> bool:
        moment = transaction.repair_clock()
        if moment is not None:
            count_at_repair(transaction, moment)
        return moment is not None

    repaired = [self._ledger.run(repair, partition) for partition in self._ledger.partitions]
    return any(repaired)


def check_up(self: Books) -> dict[str, str | None]:
    """Whether somebody could be charged just now, and if not, why; changes nothing.

    Returns:
        What is wrong, or None, with each of three: `schema` (the tables can be read, and the ledger is open),
        `key` (it lies where it lay when the ledger was opened, is the same, and has the secret that is in force) and
        `clock` (it can be believed). `clock` is left out where the tables cannot be read.

    Raises:
        Nothing.
    """
    return look_over(self._ledger)


def checkpoint(self: Books) -> str:
    """Put down where every partition ends. If nothing was written since the newest checkpoint, that is the one.

    Returns:
        Its head, to be noted elsewhere for `verify`.

    Raises:
        Nothing but `LedgerError`.
    """
    return head_of(take(self._ledger))


def verify(
    self: Books, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
) -> Integrity:
    """Verify the ledger: hash chain, row MACs, sums and costs; decide every charge again; read every record.

    Parameters:
        expect: a `head` that was noted earlier, before which nothing may have been rolled back.
        on_progress: called as `on_progress(done, total)` from time to time, with steps.

    Returns:
        Whether all is as it was written, and what is not, in words.

    Raises:
        InvalidParameter: one of them is of another kind.
    """
    if expect is not None:
        check_text("expect", expect)
    check_call("on_progress", on_progress)
    found = check_integrity(self._ledger, expect, on_progress or (lambda done, total: None), DecisionReplay)
    faults = record_faults(self)
    return replace(found, ok=False, problems=(*found.problems, *faults)) if faults else found


def keyed_digest(self: Books, data: bytes) -> str:
    """A digest of data, in hex, by which nobody without the ledger's key can guess it.

    Parameters:
        data: bytes.

    Raises:
        InvalidParameter: they are none.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidParameter("data", "bytes", shown(data))
    return self._ledger.key.hash_outside(b"data", data.hex()).hex()


def digest_under(self: Books, secret: int, data: bytes) -> str:
    """`keyed_digest` by a secret of the ledger's key, given its number; that by the first one is `keyed_digest`."""
    return secret_of(self._ledger.key, secret).hash_outside(b"data", data.hex()).hex()


def secret_in_force(self: Books) -> int:
    """The number of the secret of the ledger's key by which something that is made now is to be signed."""
    with self._ledger.reading() as reading:
        return reading.secret.number


def newest_secret(self: Books) -> int:
    """The number of the newest secret that is known to be in force; no look at the ledger."""
    return self._ledger.key.used
