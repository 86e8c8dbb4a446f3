"""Verification of a ledger: recompute every chain hash, sum, cost and MAC, in all partitions and checkpoints.

One verifier serves every store. It reads the journal once in order, for the hash chain, and once account by account,
for sums (`account_sums`). Each part is read from its own snapshot, so it needs little memory and blocks no writer.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import LedgerError
from . import checkpoints
from .account_sums import LOWEST, check_accounts
from .chain_verification import Chain, Expected, Whole
from .models import (
    IN_ROUNDS,
    KEY,
    SEALED,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .account_sums import DecideAgain, Decisions, Open, Progress
    from .chain_verification import Keys
    from .ledger import Ledger
    from .models import Checkpoint

_MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Integrity:
    """The result of a verification:

    `ok`, the number of journal entries, the `head` to record, and the problems as text.
    """

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...]

    def __repr__(self) -> str:
        more = "; …" if len(self.problems) > 1 else ""
        found = "ok" if self.ok else "not ok: " + "".join(self.problems[:1]) + more
        return f"<Integrity {found}; {self.entries} entries, head {self.head}>"

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ledger verify --json` prints."""
        return {"ok": self.ok, "entries": self.entries, "head": self.head, "problems": list(self.problems)}


def check_partition(
    open_reading: Open,
    expected: Sequence[Expected] = (),
    on_progress: Progress = lambda done, total: None,
    keys: Keys | None = None,
    decide_again: DecideAgain | None = None,
) -> Integrity:
    """Check a whole partition; `keys` returns the numbers of the records that created API keys (first partition).

    `decide_again` makes the object that repeats the decisions of an account, because a store knows no rules.
    """

    def tell(done: int, total: int) -> None:
        try:
            on_progress(done, total)
        except Exception as error:
            raise _CannotTell(error) from error

    try:
        return _check_partition(open_reading, expected, tell, keys or partial(keys_made, open_reading), decide_again)
    except _CannotTell as cannot:
        raise cannot.error from None


class _CannotTell(BaseException):
    """The progress callback failed, which is not a problem of the ledger."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def keys_made(open_reading: Open) -> dict[int, str | None]:
    """Return the numbers of the records that created API keys, in the first partition, each with its sub-limit."""
    with open_reading() as reading:
        made = [record for record in reading.rows.admin_log() if record.kind == KEY]
        return {record.number: _share_of(record.body) for record in made}


def _share_of(body: str) -> str | None:
    """Return the sub-limit of the key that a record created; None if it cannot be read and so created none."""
    try:
        share = json.loads(body)["share"]
    except (LookupError, TypeError, ValueError):
        return None
    return share if isinstance(share, str) else None


def _check_partition(
    open_reading: Open,
    expected: Sequence[Expected],
    on_progress: Progress,
    keys: Keys,
    decide_again: DecideAgain | None,
) -> Integrity:
    with open_reading() as reading:
        whole = Whole(reading)
        problems = _told(whole.check(), _MOST_PROBLEMS)
    chain = Chain(open_reading, whole, expected, on_progress)
    walked = whole.numbered

    def after(done: int, total: int) -> None:
        on_progress(walked + done, walked + total)

    def decisions() -> Decisions | None:
        return None if decide_again is None else decide_again(chain.past())

    accounts = check_accounts(open_reading, whole.opened, whole.end.accounts, whole.erased_users, after, decisions)
    rest = (
        chain.check(),
        chain.holds(),
        chain.check_callers(keys),
        whole.check_periods(chain.turns),
        accounts,
        whole.check_records(open_reading, chain),
        chain.check_notes(),
        chain.missing(),
    )
    for check in rest:
        problems += _told(check, _MOST_PROBLEMS - len(problems))
    return Integrity(not problems, whole.end.entries, whole.end.head, tuple(problems))


def _told(check: Iterator[str], most: int) -> list[str]:
    """Return the problems that a check finds, at most `most`."""
    found: list[str] = []
    try:
        found.extend(islice(check, max(0, most)))
    except LedgerError:
        raise
    except Exception as error:  # a changed value can raise anything in the code that reads it
        found.append(f"a stored value cannot be read: {error or type(error).__name__}")
    return found


def head_of(ledger: Ledger) -> str:
    """Return the head to record: that of the only partition, or a checkpoint over all partitions as they are."""
    if len(ledger.partitions) > 1:
        return checkpoints.head_of(checkpoints.take(ledger))
    with ledger.reading() as reading:
        return reading.end.head


def check_integrity(
    ledger: Ledger,
    expect: str | None = None,
    on_progress: Progress = lambda done, total: None,
    decide_again: DecideAgain | None = None,
) -> Integrity:
    """Check a whole ledger. With `expect`, a head recorded earlier, nothing before it may have been rolled back.

    With `decide_again`, every charge is decided again by the settings at the time of the charge.
    """
    head = head_of(ledger) if len(ledger.partitions) > 1 else None
    problems = []
    for partition in ledger.partitions[1:]:
        with ledger.reading(partition) as reading:
            if next(reading.rows.checkpoints(LOWEST), None) is not None:
                problems.append(f"checkpoints: partition {partition} has some, and they belong in partition 0")
    expected: list[list[Expected]] = [[] for _ in ledger.partitions]
    taken = _Taken(None if expect is None else expect.lower())
    with ledger.reading() as reading:
        going_by = taken.going_by(reading.rows.checkpoints(LOWEST))
        problems += checkpoints.check(reading, going_by)
    if taken.newest is not None:
        _expect(expected, checkpoints.head_of(taken.newest), taken.newest)
    if expect is not None:
        if taken.found is not None:
            _expect(expected, expect, taken.found)
        else:
            expected[0].append(_noted(expect) if len(ledger.partitions) == 1 else Expected(expect, b"", 0, 0))
    entries = 0
    for partition in ledger.partitions:
        told = partial(_tell, on_progress, partition, len(ledger.partitions))
        keys = partial(keys_made, ledger.reading)
        found = check_partition(partial(ledger.reading, partition), expected[partition], told, keys, decide_again)
        entries += found.entries
        where = f"partition {partition}: " if len(ledger.partitions) > 1 else ""
        problems += [where + problem for problem in found.problems]
    problems += _told(check_rounds(ledger), _MOST_PROBLEMS - len(problems))
    return Integrity(not problems, entries, head or found.head, tuple(problems))


def check_rounds(ledger: Ledger) -> Iterator[str]:
    """Check that the rounds of each collection have as many reports as were sealed.

    A report that was put back after it was sealed is missing among the sealed ones.
    """
    before, counted = _report_counts(ledger, 0), Counter[tuple[str, str]]()
    for partition in ledger.partitions:
        counted.update(_report_counts(ledger, partition))
    after = _report_counts(ledger, 0)  # a round may be sealed meanwhile
    for collection in sorted({collection for collection, _ in counted}):
        sealed, rounds = counted[collection, SEALED], (collection, IN_ROUNDS)
        if not before[rounds] <= sealed <= after[rounds]:
            yield f"rounds: {sealed} reports of {collection} were sealed, and its rounds have {after[rounds]}"


def _report_counts(ledger: Ledger, partition: int) -> Counter[tuple[str, str]]:
    with ledger.reading(partition) as reading:
        return Counter(reading.rows.report_counts())


class _Taken:
    """Finds the newest checkpoint and that of a head in a stream; a ledger may have more than memory can hold."""

    def __init__(self, head: str | None) -> None:
        self._head = head
        self.newest: Checkpoint | None = None
        self.found: Checkpoint | None = None

    def going_by(self, rows: Iterator[Checkpoint]) -> Iterator[Checkpoint]:
        for each in rows:
            self.newest = each
            if self._head is not None and checkpoints.head_of(each) == self._head:
                self.found = each
            yield each


def _tell(on_progress: Progress, partition: int, partitions: int, done: int, total: int) -> None:
    """Report the progress of one partition as if all partitions had the same length."""
    on_progress(partition * total + done, partitions * total)


def _expect(expected: list[list[Expected]], head: str, checkpoint: Checkpoint) -> None:
    """Expect of every partition what a checkpoint records about it."""
    for noted in checkpoints.noted(checkpoint):
        if noted.partition < len(expected):
            expected[noted.partition].append(Expected(head, noted.chain_hash, noted.numbered_rows, noted.collections))


def _noted(head: str) -> Expected:
    """Return the content of a single partition's head. A malformed head gets a chain hash that is found nowhere."""
    try:
        data = bytes.fromhex(head)
    except ValueError:
        data = b""
    if len(data) != 42:
        return Expected(head, b"", 0, 0)
    return Expected(head, data[:32], int.from_bytes(data[32:38]), int.from_bytes(data[38:]))
