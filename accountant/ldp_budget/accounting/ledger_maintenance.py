"""Operations for the operator of a ledger, on its own machine.

Functions for maintenance come first: erasing users, repairing the clock, verification, and digests with the ledger
key. `LedgerOperations` holds the operations behind `Accountant.ledger`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from .._later import accountant_part
from .._validation import check_call, check_many, check_switch, check_text, check_whole, shown, shown_with_type
from ..errors import InvalidParameter, LedgerError, NotSupported, UnknownName
from ..ledger import key_rotation
from ..ledger.hash_chain import Name
from ..ledger.ledger import check_up
from ..ledger.migration_cutover import abort
from ..ledger.models import RECORDED
from ..ledger.snapshot import secret_of
from ..ledger.verification import Integrity, accepted_in, check_integrity, confirm_journal, head_of, with_notes
from ..ledger.window_backfill import recount_after_clock_repair
from . import ledger_move
from .admin_log import record_faults, record_local, records
from .admin_records import ACKNOWLEDGED, MOST_REASON
from .decision_replay import DecisionReplay
from .last_verification import LastVerification, last_verification, note
from .policy_versions import user_hash

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from ldp_budget_surveys.pages.collection_use import CollectionUse

    from ..ledger import Ledger, Transaction
    from ..ledger.calendar import Read
    from ..ledger.storage import Store
    from .admin_log import Record
    from .ledger_move import Moved
    from .usage_stats import Overview


def erase(ledger: Ledger, user: str, *, unknown: bool) -> bool:
    """Erase a user: idempotency keys, labels, notes and unsealed reports are deleted.

    The account's sum stays, and there is no fresh budget.
    """
    hashed = user_hash(ledger, user)
    check_switch("unknown", unknown)

    def cut_off(transaction: Transaction) -> bool:
        if transaction.is_erased(hashed):
            return False
        account = transaction.number_of(hashed)
        seen = account is not None or transaction.has_idempotency_records(hashed)
        if not seen and not unknown:
            raise UnknownName(
                "user", user, None, "Nothing was erased. To block the name all the same, set unknown=True."
            )
        transaction.erase(hashed, account)
        return seen

    erased = ledger.run(cut_off, ledger.partition_of(hashed))
    ledger.clear_log()
    return erased


def repair_clock(ledger: Ledger) -> bool:
    """Accept the present clock if the newest entries are dated later; return True if they were."""

    def repair(transaction: Transaction) -> bool:
        moment = transaction.repair_clock()
        if moment is not None:
            recount_after_clock_repair(transaction, moment)
        return moment is not None

    repaired = [ledger.run(repair, partition) for partition in ledger.partitions]
    return any(repaired)


_HEAD = re.compile(r"([0-9]+-)?[0-9a-f]{64,}")


def verify(ledger: Ledger, expect: str | None, *, on_progress: Callable[[int, int], None] | None) -> Integrity:
    """Verify the ledger: hash chain, row MACs, sums and costs.

    Replay every admission decision and read every record.
    """
    if expect is not None and not _HEAD.fullmatch(check_text("expect", expect).lower()):
        hint = "Copy a head that an earlier verification or checkpoint returned."
        raise InvalidParameter("expect", "the head of a ledger", shown(expect), hint=hint)
    check_call("on_progress", on_progress)
    found = check_integrity(ledger, expect, on_progress or (lambda done, total: None), DecisionReplay)
    faulty = [each for each in records(ledger, 1) if each.fault is not None]
    return _with_record_faults(ledger, found, faulty) if faulty else found


def _with_record_faults(ledger: Ledger, found: Integrity, faulty: list[Record]) -> Integrity:
    """Return the result with the problems of records that cannot be used as their kind."""
    accepted = accepted_in(ledger).get(0, {})
    with ledger.reading() as reading:
        entries = {row[6]: row[0] for row in reading.rows.history(0) if row[2] == RECORDED}
    problems, acknowledged = [*found.problems], [*found.acknowledged]
    open_entries, final = dict(found.open_entries), [*found.final]
    for each, fault in zip(faulty, record_faults(faulty), strict=True):
        entry = entries.get(each.number)
        if entry is not None and _BODY in accepted.get(entry, ()):
            acknowledged.append(fault)
            continue
        problems.append(fault)
        if entry is None:
            final.append(fault)
        else:
            open_entries[0, entry] = open_entries.get((0, entry), frozenset()) | {_BODY}
    result = replace(found, ok=not problems, problems=tuple(problems))
    return with_notes(result, acknowledged, open_entries, final)


_POSITION = re.compile(r"(?:([0-9]{1,9})\.)?([0-9]{1,18})(?:-([0-9]{1,18}))?")
_EXPECTED_ENTRIES = "numbers of entries, as `ledger verify` prints them: 12, 12-20, or 3.12 in partition 3"
_MOST_IN_RECORD = 1_000
_BODY = "body"
_MOST_ENTRIES = 1_000_000


def acknowledge(
    ledger: Ledger, entries: Iterable[str], reason: str, *, on_progress: Callable[[int, int], None] | None
) -> list[Record]:
    """Acknowledge problems of entries, after verifying the ledger again."""
    if ledger.by:
        raise NotSupported("entries are acknowledged on the machine of the ledger, not with an API key")
    wanted = {place for text in check_many("entries", entries, _EXPECTED_ENTRIES) for place in _places(ledger, text)}
    if not wanted:
        raise InvalidParameter("entries", _EXPECTED_ENTRIES, "none")
    if not check_text("reason", reason).strip() or len(reason) > MOST_REASON:
        raise InvalidParameter("reason", f"a text of 1 to {MOST_REASON} characters", shown(reason))
    found = verify(ledger, None, on_progress=on_progress)
    if found.final:
        why = f"its verification found what can never be acknowledged: {found.final[0]}. Nothing was acknowledged"
        raise LedgerError(ledger.name, why, hint="Restore a backup: ldp-budget ledger restore BACKUP")
    fine = sorted(wanted - found.open_entries.keys())
    if fine:
        named = _position(ledger, fine[0])
        why = f"entry {named} has no open problem. Nothing was acknowledged"
        raise LedgerError(ledger.name, why, hint="Name the entries that `ledger verify` prints.")
    with ledger.reading() as reading:
        generation = reading.generation
    named_all = sorted(wanted)
    written = []
    for first in range(0, len(named_all), _MOST_IN_RECORD):
        some = named_all[first : first + _MOST_IN_RECORD]
        codes = {str(Name(generation, *place)): sorted(found.open_entries[place]) for place in some}
        written.append(record_local(ledger, ACKNOWLEDGED, "ledger", {"entries": codes, "reason": reason}))
    return written


def _places(ledger: Ledger, text: str) -> Iterator[tuple[int, int]]:
    """Yield the partition and number of each entry that a text names."""
    found = _POSITION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidParameter("entries", _EXPECTED_ENTRIES, shown(text))
    partition, first, last = int(found[1] or 0), int(found[2]), int(found[3] or found[2])
    if found[1] is None and len(ledger.partitions) > 1:
        raise InvalidParameter("entries", "PARTITION.ENTRY, because the ledger has several partitions", text)
    if partition not in ledger.partitions or not 0 < first <= last < first + _MOST_ENTRIES:
        raise InvalidParameter("entries", _EXPECTED_ENTRIES, text)
    return ((partition, number) for number in range(first, last + 1))


def _position(ledger: Ledger, place: tuple[int, int]) -> str:
    return f"{place[0]}.{place[1]}" if len(ledger.partitions) > 1 else str(place[1])


def keyed_digest(ledger: Ledger, data: bytes) -> str:
    """A keyed digest of data, in hex. Without the ledger key the data cannot be guessed from it."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidParameter("data", "bytes", shown_with_type(data))
    return ledger.key.hash_outside(b"data", data.hex()).hex()


def digest_under(ledger: Ledger, secret: int, data: bytes) -> str:
    """`keyed_digest` with a numbered secret of the ledger key. Number 1 gives `keyed_digest` itself."""
    return secret_of(ledger.key, secret).hash_outside(b"data", data.hex()).hex()


class LedgerOperations:
    """Operations that need the machine where a ledger is stored: `Accountant.ledger`.

    The HTTP client does not have them.

    Closing the accountant closes this object too. Do not close it separately.
    """

    def __init__(self, ledger: Ledger, clock: Read) -> None:
        self._ledger, self._clock = ledger, clock

    def __repr__(self) -> str:
        return f"<LedgerOperations of {self._ledger.name}>"

    @property
    def key_file(self) -> str:
        """The path of the ledger's key file on this machine; empty for a ledger in memory."""
        return self._ledger.key_file

    def check_up(self) -> dict[str, str | None]:
        """The health of the ledger: the reasons why no user could be charged now. Changes nothing.

        Returns:
            The fault, or None, for each of three checks: `schema` (the tables can be read, and the ledger is open),
                `key` (the key file is still at its path, is unchanged, and has the active secret) and `clock` (the
                clock is plausible). `clock` is missing if the tables cannot be read.
        """
        return check_up(self._ledger)

    def overview(self) -> Overview:
        """The anonymous usage statistics of the ledger: charges and refusals by day, and what is left of limits.

        Each of its methods reads the ledger; the time grows with the size of the ledger.
        """
        from .usage_stats import Overview

        return Overview(self._ledger)

    def verify(
        self, expect: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Integrity:
        """Verify the ledger as `Accountant.verify` does, and note the result on this machine for `last_verification`.

        Parameters:
            expect: a head that was noted earlier.
            on_progress: called as `on_progress(done, total)` from time to time, with entries and accounts.

        Returns:
            The result, with the problems in words.

        Raises:
            InvalidParameter: an argument has the wrong type or form.
            LedgerError: the ledger cannot be read.
        """
        begun = self._ledger.now().micros
        found = verify(self._ledger, expect, on_progress=on_progress)
        note(self._ledger, found, begun)
        return found

    def last_verification(self, seconds: int = 3_600) -> LastVerification | None:
        """The last verification of this ledger, if it found no problem and is that recent.

        `verify` notes it in a file next to the key file, under a MAC that names the ledger and the head. A file that
        was changed, or that is of another ledger or of the future, is not believed. A service records its
        verifications in the administrative log. `confirm` checks that the head is in the chain.

        Parameters:
            seconds: the largest age of the verification.

        Returns:
            The time at which it began (`at`, microseconds since 1970), the `entries` and the `head`; None if there is
                none to believe.

        Raises:
            InvalidParameter: `seconds` is not a whole number of at least 0.
        """
        check_whole("seconds", seconds)
        return last_verification(self._ledger, self._ledger.now().micros - seconds * 1_000_000)

    def confirm(self, head: str | None = None, *, on_progress: Callable[[int, int], None] | None = None) -> str:
        """Compute each link of the journal's hash chain again, without a verification: a fifth of its time.

        Parameters:
            head: a head that an earlier verification returned, and that the ledger must contain.
            on_progress: called as `on_progress(done, total)` from time to time, with entries.

        Returns:
            The newest head.

        Raises:
            InvalidParameter: an argument has the wrong type.
            LedgerError: an entry was changed, or the head is not in the chain.
        """
        check_call("on_progress", on_progress)
        head = None if head is None else check_text("head", head)
        confirm_journal(
            self._ledger, head, lambda partition, whole, runs: None, on_progress or (lambda done, total: None)
        )
        return head_of(self._ledger)

    def collection_use(
        self, name: str, *, head: str | None = None, on_progress: Callable[[int, int], None] | None = None
    ) -> CollectionUse:
        """The charges of one collection or survey, and the largest sums of any account, without a verification.

        Everything is confirmed: each link of the journal's hash chain is computed again, and the sums of accounts and
        the stored refusals have their MACs.

        Parameters:
            name: the name of the collection or survey; one that was never charged has no accounts.
            head: a head that an earlier verification returned, and that the ledger must contain.
            on_progress: called as `on_progress(done, total)` from time to time, with entries and accounts.

        Raises:
            InvalidParameter: an argument has the wrong type.
            LedgerError: a row was changed, or the head is not in the chain.
        """
        check_call("on_progress", on_progress)
        head = None if head is None else check_text("head", head)
        check_text("name", name)
        use: CollectionUse = accountant_part("collection-use").collection_use(
            self._ledger, name, head, on_progress or (lambda done, total: None)
        )
        return use

    def move_to(
        self,
        ledger: str | os.PathLike[str] | Store,
        *,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Moved:
        """Move the ledger to a new place, a file or `postgresql://…`, where it keeps its key.

        This ledger refuses every write from before the first row is copied; it can still be read. The other ledger is
        unusable until everything is copied and both are verified. If a move is interrupted, start it again with a new
        place, or call `abort_move`. A move that has already marked this ledger as moved is completed by the same call.
        Receipts and idempotency keys stay valid.

        Parameters:
            ledger: the other store, as for `Accountant`. Nothing may have been written to it.
            on_progress: called as `on_progress(done, total)` from time to time, with steps.

        Returns:
            The names of both ledgers, their chain heads to note, and the number of copied rows.

        Raises:
            InvalidParameter: an argument has the wrong type.
            LedgerError: the other place is in use, or this ledger does not verify; then nothing was changed.
            LedgerMoved: this ledger was moved to another place.
            ClockError: the clock is not plausible.
            NotSupported: the store is a database whose driver is not installed.
        """
        return ledger_move.move_to(self._ledger, self._clock, ledger, on_progress=on_progress)

    def abort_move(self) -> None:
        """Abort an incomplete move of this ledger, and open it again. The other place can never be used.

        Raises:
            LedgerError: the ledger is not being moved, or its move is complete.
        """
        abort(self._ledger)

    def acknowledge(
        self,
        entries: Iterable[str],
        reason: str,
        *,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[Record]:
        """Acknowledge problems of entries that `verify` names, so that the ledger verifies and can be moved.

        The administrative log records the entries, the problems and the reason permanently. `verify` reports them as
        acknowledged from then on, also after a move. The ledger is verified first. An overdraft, a changed value, a
        broken chain and missing entries can never be acknowledged.

        Parameters:
            entries: numbers of entries as `verify` prints them, such as "12", "12-20", or "3.12" in partition 3.
            reason: the reason, 1 to 500 characters. Do not name users: the record is permanent.
            on_progress: called as `on_progress(done, total)` from time to time, with entries.

        Returns:
            The records that were added.

        Raises:
            InvalidParameter: an argument has the wrong type or form.
            LedgerError: an entry has no problem that can be acknowledged, or the ledger has one that never can.
            NotSupported: the accountant acts for an API key.
        """
        return acknowledge(self._ledger, entries, reason, on_progress=on_progress)

    def rotate_key(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Replace the secret of the ledger key by a new one. The old one expires.

        Stop every process that uses the ledger first: writers wait, and each open ledger, this one too, then refuses
        all use until it is opened again. Afterwards copy the key file to every machine that opens the ledger. From
        then on the old secret cannot find users' names in stored data, and nothing made with it is accepted. If the
        call is interrupted, call it again on the opened ledger.

        Parameters:
            on_progress: called as `on_progress(done, total)` from time to time, with partitions.

        Returns:
            The number of the new secret.

        Raises:
            InvalidParameter: `on_progress` is not a function.
            LedgerError: the ledger was tampered with, or is closed; then it keeps the old secret.
        """
        check_call("on_progress", on_progress)
        return key_rotation.rotate(self._ledger, on_progress or (lambda done, total: None))
