"""Keeping a ledger in order: erasing users, checkpoints and verification, a repaired clock, digests by its key.

Operations for the operator of a ledger, on its own machine: check it, move it, exchange its key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .._validation import check_call, check_switch, check_text, shown
from ..errors import InvalidParameter, UnknownName
from ..ledger import key_rotation
from ..ledger.ledger import check_up
from ..ledger.snapshot import secret_of
from ..ledger.verification import Integrity, check_integrity
from ..ledger.window_backfill import recount_after_clock_repair
from . import connect
from .admin_log import record_faults, records
from .decision_replay import DecisionReplay
from .policy_versions import user_hash

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ..ledger import Ledger, Transaction
    from ..ledger.calendar import Read
    from ..ledger.key_rotation import KeyState
    from ..ledger.store import Store
    from .connect import Copied
    from .usage_stats import Overview


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
            recount_after_clock_repair(transaction, moment)
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


class LedgerOperations:
    """Operations that need the machine where a ledger is stored: `Accountant.ledger`. The HTTP client has none.

    Closing the accountant ends them too.
    """

    def __init__(self, ledger: Ledger, clock: Read) -> None:
        self._ledger, self._clock = ledger, clock

    def __repr__(self) -> str:
        return f"<LedgerOperations of {self._ledger.name}>"

    def check_up(self) -> dict[str, str | None]:
        """Whether somebody could be charged just now, and if not, why; changes nothing.

        Returns:
            What is wrong, or None, with each of three: `schema` (the tables can be read, and the ledger is open),
            `key` (it lies where it lay when the ledger was opened, is the same, and has the secret that is in force)
            and `clock` (it can be believed). `clock` is left out where the tables cannot be read.
        """
        return check_up(self._ledger)

    def overview(self) -> Overview:
        """What the ledger adds up to without naming anybody: charges and refusals by day, and what is left of limits.

        Keep it: it remembers what it has read, and reads on from there.
        """
        from .usage_stats import Overview

        return Overview(self._ledger)

    def copy_to(
        self,
        ledger: str | os.PathLike[str] | Store,
        *,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Copied:
        """Move everything to another place, a file or `postgresql://…`, where it goes on as a ledger of the same key.

        This ledger charges nobody any more, from before anything is copied; it can still be read. The other one is of
        no use before all is there and both were verified. Stopped at any point, the same call goes on. Receipts and
        keys stay what they are.

        Parameters:
            ledger: the other place, as for `Accountant`.
            on_progress: called as `on_progress(done, total)` from time to time, with steps.

        Returns:
            The names of both, their heads to note, and how much was copied.

        Raises:
            InvalidParameter: an argument has the wrong type.
            LedgerError: something else lies there, or this ledger does not verify; then nothing was changed.
            ClockError: the clock cannot be believed.
            NotSupported: it lies in a database, and what speaks to that is not installed.
        """
        return connect.copy_to(self._ledger, self._clock, ledger, on_progress=on_progress)

    def give_up_copy(self, ledger: str | os.PathLike[str] | Store) -> None:
        """Open this ledger again, of which a copy was begun by `copy_to` and is not complete.

        What there is of the copy can never be used, nor gone on with.

        Parameters:
            ledger: the other place, as for `copy_to`.

        Raises:
            InvalidParameter: it is no place of a ledger.
            LedgerError: the copy is complete, or is not there: nobody could tell then that nobody is charged there.
            NotSupported: it lies in a database, and what speaks to that is not installed.
        """
        connect.give_up_copy(self._ledger, self._clock, ledger)

    def key_states(self) -> list[KeyState]:
        """The secrets of the ledger's key, the oldest first: pending, activating, active or expired.

        Returns:
            Of each its number, its state and in how many partitions it is in force.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        return key_rotation.states(self._ledger)

    def prepare_key(self) -> int:
        """Put a new secret into the key's file, which is not used yet; one that is not active yet stays.

        Bring the file to every machine that opens the ledger then. Nobody has to open it anew.

        Returns:
            The number of the secret.

        Raises:
            LedgerError: the ledger is shut, or the file cannot be written.
        """
        return key_rotation.prepare(self._ledger)

    def discard_key(self) -> bool:
        """Take a secret that is pending out of the key's file.

        Returns:
            Whether there was one.

        Raises:
            LedgerError: the file cannot be written.
        """
        return key_rotation.discard(self._ledger)

    def activate_key(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Have the pending secret in force, and the one before it no more.

        Stopped at any point, the same call goes on. In each partition that is one transaction, for which whoever writes
        there waits. From then on the old secret neither finds users' names in what is stored nor makes anything that
        would be believed. On another machine, whose key's file was brought there, it says in that file that the
        secret is active.

        Parameters:
            on_progress: called as `on_progress(done, total)` from time to time, with partitions.

        Returns:
            The number of the secret that is active now.

        Raises:
            InvalidParameter: it is no function.
            LedgerError: the ledger was changed by somebody, or is shut; partitions that have the secret keep it.
        """
        check_call("on_progress", on_progress)
        return key_rotation.activate(self._ledger, on_progress or (lambda done, total: None))
