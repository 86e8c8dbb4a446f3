"""Verification of a ledger: recompute every chain hash, sum, cost and MAC, in all partitions and checkpoints.

One verifier serves every store. It reads the journal once in order, for the hash chain, and once account by account,
for sums (`account_sums`). Each part is read from its own snapshot, so it needs little memory and blocks no writer.

`confirm_journal` reads the journal in columns, with every link of the hash chain computed again. It costs a fifth of a
verification: it decides nothing again, and looks at no account. A reader who shows sums of accounts checks these by
`checked_sums`.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import LedgerError
from . import checkpoints
from .account_sums import LOWEST, check_accounts
from .chain_verification import Chain, Expected, Whole
from .hash_chain import Name, find, parse, place_of
from .models import (
    ACKNOWLEDGED,
    IN_ROUNDS,
    KEY,
    SEALED,
    EntryProblem,
    ranges,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .account_sums import DecideAgain, Decisions, Open, Progress
    from .chain_verification import Expected, Keys
    from .hash_chain import Run
    from .ledger import Ledger
    from .models import Checkpoint

Accepted: TypeAlias = "Mapping[int, frozenset[str]]"
"""The entries of a partition whose problems were acknowledged, each with the codes of these problems."""

_MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Integrity:
    """The result of a verification:

    `ok`, the number of journal entries, the `head` to record, and the problems as text. `acknowledged` are the problems
    that an operator has acknowledged: `ok` is True in spite of them. `open_entries` are the entries that an operator
    could acknowledge, each with the codes of its problems (see `models.EntryProblem`), by partition and number. `final`
    are the problems that can never be acknowledged.
    """

    ok: bool
    entries: int
    head: str
    problems: tuple[str, ...]
    acknowledged: tuple[str, ...] = field(default=(), init=False)
    open_entries: Mapping[tuple[int, int], frozenset[str]] = field(default_factory=dict, init=False, repr=False)
    final: tuple[str, ...] = field(default=(), init=False)

    def __repr__(self) -> str:
        more = "; …" if len(self.problems) > 1 else ""
        found = "ok" if self.ok else "not ok: " + "".join(self.problems[:1]) + more
        found += f", with {len(self.acknowledged)} problems acknowledged" if self.acknowledged else ""
        return f"<Integrity {found}; {self.entries} entries, head {self.head}>"

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ledger verify --json` prints."""
        result: dict[str, Any] = {
            "ok": self.ok,
            "entries": self.entries,
            "head": self.head,
            "problems": list(self.problems),
        }
        if self.acknowledged:
            result["acknowledged"] = list(self.acknowledged)
        if self.open_entries and not self.final:
            result["open_entries"] = self.named_entries
        return result

    @property
    def named_entries(self) -> list[str]:
        """The entries that an operator could acknowledge, as `ledger acknowledge` takes them: 12-20, or 3.12-20."""
        several = any(partition for partition, _ in self.open_entries) or "-" in self.head
        by_partition: dict[int, list[int]] = {}
        for partition, entry in sorted(self.open_entries):
            by_partition.setdefault(partition, []).append(entry)
        return [
            f"{partition}.{part}" if several else part
            for partition, entries in by_partition.items()
            for part in ranges(entries).split(", ")
        ]


def with_notes(
    found: Integrity,
    acknowledged: Sequence[str],
    open_entries: Mapping[tuple[int, int], frozenset[str]],
    final: Sequence[str],
) -> Integrity:
    """Return the same result with what was acknowledged, what could be, and what never can be."""
    result = replace(found)
    notes = {"acknowledged": tuple(acknowledged), "open_entries": open_entries, "final": tuple(final)}
    for name, value in notes.items():
        object.__setattr__(result, name, value)
    return result


class _Problems:
    """The problems found so far in one partition: open ones, at most `_MOST_PROBLEMS`, and acknowledged ones.

    Acknowledged problems take no place of open ones. `accepted` has the acknowledged codes of entries.
    """

    def __init__(self, accepted: Accepted) -> None:
        self._accepted = accepted
        self.open: list[str] = []
        self.final: list[str] = []
        """The open problems that can never be acknowledged."""
        self.acknowledged: list[str] = []
        self.entries: dict[int, frozenset[str]] = {}
        """The entries of the open problems that may be acknowledged, each with the codes."""

    def take(self, check: Iterator[str]) -> None:
        """Take the problems that a check finds."""
        if len(self.open) >= _MOST_PROBLEMS:
            return
        try:
            for problem in check:
                self._add(problem)
                if len(self.open) >= _MOST_PROBLEMS:
                    return
        except LedgerError:
            raise
        except Exception as error:  # a changed value can raise anything in the code that reads it
            self._add(f"a stored value cannot be read: {error or type(error).__name__}")

    def _add(self, problem: str) -> None:
        if not isinstance(problem, EntryProblem):
            self.open.append(problem)
            self.final.append(problem)
            return
        known = [entry for entry in problem.entries if problem.code in self._accepted.get(entry, ())]
        rest = sorted({*problem.entries} - {*known})
        if known:
            self.acknowledged.append(str(problem.of(known)))
        if rest:
            self.open.append(str(problem.of(rest)))
            for entry in rest:
                self.entries[entry] = self.entries.get(entry, frozenset()) | {problem.code}


def accepted_in(ledger: Ledger) -> dict[int, Accepted]:
    """Return the entries whose problems were acknowledged on the ledger's host, by partition, each with the codes.

    A record names an entry by its name at that time. After a move, the ledger has the new position of the entry.
    """
    with ledger.reading() as reading:
        generation = reading.generation
        stored = [each for each in reading.rows.admin_log() if each.kind == ACKNOWLEDGED and not each.api_key]
    found: dict[int, dict[int, frozenset[str]]] = {}
    for name, code in chain.from_iterable(_acknowledged(each.body) for each in stored):
        place: tuple[int, int] | None = name.partition, name.entry
        if name.generation != generation:
            place = None
            with suppress(LedgerError), ledger.reading(ledger.partition_of(place_of(ledger.key, name))) as reading:
                place = find(reading, name)  # the check of its table reports a row that was changed
        if place is not None:
            of_partition = found.setdefault(place[0], {})
            of_partition[place[1]] = of_partition.get(place[1], frozenset()) | {code}
    return dict(found)


def _acknowledged(body: str) -> Iterator[tuple[Name, str]]:
    """Yield the names and codes in the body of a record; nothing from a body that cannot be read."""
    try:
        rows = [(parse(name), code) for name, codes in json.loads(body)["entries"].items() for code in codes]
    except (AttributeError, LookupError, TypeError, ValueError):
        return
    for name, code in rows:
        if name is not None and code in EntryProblem.CODES:
            yield name, code


def _check_partition(
    open_reading: Open,
    expected: Sequence[Expected],
    on_progress: Progress,
    keys: Keys,
    decide_again: DecideAgain | None,
    accepted: Accepted,
    partition: int,
    only_users: bool,
) -> Integrity:
    """Check a whole partition; `keys` returns the numbers of the records that created API keys (first partition).

    `decide_again` makes the object that repeats the decisions of an account, because a store knows no rules.
    `accepted` are the problems of entries that an operator has acknowledged. `partition` is its number.
    """

    def tell(done: int, total: int) -> None:
        try:
            on_progress(done, total)
        except Exception as error:
            raise _CannotTell(error) from error

    try:
        problems = _Problems(accepted)
        return _check_told(open_reading, expected, tell, keys, decide_again, problems, partition, only_users)
    except _CannotTell as cannot:
        raise cannot.error from None


class _CannotTell(BaseException):
    """The progress callback failed, which is not a problem of the ledger."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _keys_made(open_reading: Open) -> dict[int, str | None]:
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


def _check_told(
    open_reading: Open,
    expected: Sequence[Expected],
    on_progress: Progress,
    keys: Keys,
    decide_again: DecideAgain | None,
    problems: _Problems,
    partition: int,
    only_users: bool,
) -> Integrity:
    with open_reading() as reading:
        whole = Whole(reading)
        problems.take(whole.check())
    journal = Chain(open_reading, whole, expected, on_progress)
    walked = whole.numbered

    def after(done: int, total: int) -> None:
        on_progress(walked + done, walked + total)

    def decisions() -> Decisions | None:
        return None if decide_again is None else decide_again(journal.past())

    accounts = check_accounts(
        open_reading, whole.opened, whole.end.accounts, whole.erased_users, after, decisions, only_users
    )
    rest = (
        journal.check(),
        journal.holds(),
        journal.check_callers(keys),
        whole.check_periods(journal.turns),
        accounts,
        whole.check_records(open_reading, journal),
        journal.check_notes(),
        journal.missing(),
    )
    for check in rest:
        problems.take(check)
    entries = {(partition, entry): codes for entry, codes in problems.entries.items()}
    found = Integrity(not problems.open, whole.end.entries, whole.end.head, tuple(problems.open))
    return with_notes(found, problems.acknowledged, entries, problems.final)


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
    only_users: bool = False,
) -> Integrity:
    """Check a whole ledger. With `expect`, a head recorded earlier, nothing before it may have been rolled back.

    With `decide_again`, every charge is decided again by the settings at the time of the charge. `only_users` is for a
    ledger that was just checked: see `check_accounts`.
    """
    head = head_of(ledger) if len(ledger.partitions) > 1 else None
    problems: list[str] = []
    for partition in ledger.partitions[1:]:
        with ledger.reading(partition) as reading:
            if next(reading.rows.checkpoints(LOWEST), None) is not None:
                problems.append(f"checkpoints: partition {partition} has some, and they belong in partition 0")
    expected = _expected_of(ledger, expect, problems)
    entries, accepted = 0, accepted_in(ledger)
    acknowledged: list[str] = []
    open_entries: dict[tuple[int, int], frozenset[str]] = {}
    final = [*problems]
    for partition in ledger.partitions:
        told = partial(_in_partition, on_progress, partition, len(ledger.partitions))
        keys = partial(_keys_made, ledger.reading)
        known = accepted.get(partition, {})
        found = _check_partition(
            partial(ledger.reading, partition),
            expected[partition],
            told,
            keys,
            decide_again,
            known,
            partition,
            only_users,
        )
        entries += found.entries
        where = f"partition {partition}: " if len(ledger.partitions) > 1 else ""
        problems += [where + problem for problem in found.problems]
        acknowledged += [where + problem for problem in found.acknowledged]
        open_entries.update(found.open_entries)
        final += [where + problem for problem in found.final]
    rounds = _Problems({})
    rounds.take(check_rounds(ledger))
    problems += rounds.open
    result = Integrity(not problems, entries, head or found.head, tuple(problems))
    return with_notes(result, acknowledged, open_entries, (*final, *rounds.open))


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


def _expected_of(ledger: Ledger, head: str | None, problems: list[str]) -> list[list[Expected]]:
    """Return what each partition must contain: the newest checkpoint, and a head recorded earlier.

    The problems of checkpoints are added to `problems`.
    """
    expected: list[list[Expected]] = [[] for _ in ledger.partitions]
    taken = _Taken(None if head is None else head.lower())
    with ledger.reading() as reading:
        going_by = taken.going_by(reading.rows.checkpoints(LOWEST))
        problems += checkpoints.check(reading, going_by)
    if taken.newest is not None:
        _expect(expected, checkpoints.head_of(taken.newest), taken.newest)
    if head is not None:
        if taken.found is not None:
            _expect(expected, head, taken.found)
        else:
            expected[0].append(_noted(head) if len(ledger.partitions) == 1 else Expected(head, b"", 0, 0))
    return expected


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


def _in_partition(on_progress: Progress, partition: int, partitions: int, done: int, total: int) -> None:
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


def confirm_journal(
    ledger: Ledger, head: str | None, take: Callable[[int, Whole, list[Run]], None], on_progress: Progress
) -> list[Whole]:
    """Read the journal of every partition, and return the small tables of each, which are confirmed too.

    `take` gets the number of the partition, its small tables and the runs of each part of its journal. They are
    confirmed once this function has returned. Raises `LedgerError` if anything was changed, and if `head`, a head
    recorded earlier, is not in the chain.
    """
    problems: list[str] = []
    expected = _expected_of(ledger, head, problems)
    wholes = []
    for partition in ledger.partitions:
        told = partial(_in_partition, on_progress, partition, len(ledger.partitions))
        try:
            wholes.append(_walk(ledger, partition, expected[partition], take, told, problems))
        except LedgerError:
            raise
        except Exception as error:  # a changed value can raise anything in the code that reads it
            problems.append(f"a stored value cannot be read: {error or type(error).__name__}")
        if problems:
            raise LedgerError(ledger.name, f"{problems[0]}. Run: ldp-budget ledger verify")
    return wholes


def _walk(
    ledger: Ledger,
    partition: int,
    expected: Sequence[Expected],
    take: Callable[[int, Whole, list[Run]], None],
    on_progress: Progress,
    problems: list[str],
) -> Whole:
    """Walk the journal of a partition, and add what does not hold to `problems`."""
    open_reading = partial(ledger.reading, partition)
    with open_reading() as reading:
        whole = Whole(reading)
        problems += whole.macs()
    chain = Chain(open_reading, whole, expected, on_progress)
    if not problems:
        problems += chain.check(partial(take, partition, whole))
        problems += chain.holds()
        problems += whole.cut_off(chain)
    return whole
