"""Charging many users each for something of their own: a stream of lines in chunks of any size, an answer for each.

A chunk is one transaction in each partition of the ledger. Lines that ask for the same under the same policy are charged
together, by set-based statements; the others one by one. A run has a key, and the chunk that begins with line n is
bound to KEY@n, to how many lines it has and to a digest of them. So an interrupted run is simply run again, from its
first line: what was charged is told again, and what was not is charged now. After the last line the end is bound, as
a chunk of no lines: the same key with more lines, or with fewer, is a conflict.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import canonical_json
from .._validation import check_many, check_name, check_text, check_user, check_whole, shown
from ..errors import InvalidParameter, KeyConflict, LdpBudgetError
from ..guarantees.fixed_point import LARGEST
from ..ledger.models import CHUNK, CHUNK_PART, SPENT, BatchRunRecord
from ..registry.collections import Collection
from ..sdk.mechanism import Mechanism
from .admission import decide
from .batch_charging import PARTITIONS_TOGETHER, BulkCharge, parts_of
from .charge_request import MOST_REPORTS, Request, charge_of, check_digest, check_key, check_note, chosen_of, key_hash
from .charging import charge_in_transaction, terms_in, to_work_item
from .policies import DEFAULT
from .receipts import REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..ledger import Ledger, Transaction
    from ..ledger.group_commit import Piece
    from ..ledger.keyfile import Key
    from .charge_request import Charge, Principal
    from .receipts import Receipt

_MOST_KINDS = 1000
FEW = 8
"""So many equal lines are charged one by one: a set-based statement has a price of its own."""


_SPENDS = "a `Spend` each, or the error of what cannot be read"


class Spend(NamedTuple):
    """One line: who is charged for what, as with `Accountant.spend`; in a `BatchRun` without a key of its own."""

    user: str
    mechanism: Mechanism | Collection | object
    reports: int = 1
    label: str | None = None
    digest: str | None = None
    note: str | None = None
    policy: str = DEFAULT
    key: str | None = None


class SpendResult(NamedTuple):
    """What came of a line.

    `status` is spent, refused or failed; `repeated` says that this was so before. Of a refusal, `binding` names the
    periods whose limit refused it, or `plan`, `affordable_reports` says how many such reports still fit, `why` what
    no budget would help; and `receipt`, where it was refused just now, how the limits stand. Of a failure, `error`:
    nothing was charged, and the next run tries again.
    """

    status: str
    repeated: bool = False
    binding: tuple[str, ...] = ()
    affordable_reports: int = 0
    why: str = ""
    receipt: Receipt | None = None
    error: LdpBudgetError | None = None


FAILED = "failed"
_SPENT, _SPENT_BEFORE = SpendResult(SPENT), SpendResult(SPENT, True)


class SpendTemplate(NamedTuple):
    """What lines have in common, all but the user.

    `together`: whether they are charged by statements over all of them, as one report each without a label is.
    `identity` is all that makes two of them the same, and a note is no part of it.
    """

    charge: Charge
    policy: str
    note: str | None
    together: bool
    identity: tuple[Any, ...]


class _Line(NamedTuple):
    """A line that was looked at, or what is wrong with it."""

    spend: Spend = None  # type: ignore[assignment]  # where there is an error
    kind: SpendTemplate = None  # type: ignore[assignment]
    error: LdpBudgetError | None = None


class BatchRun:
    """The lines of a run, chunk by chunk, from its first one on.

    Made by `Accountant.run`.
    """

    def __init__(self, ledger: Ledger, caller: Principal, key: str) -> None:
        self._ledger = ledger
        self._caller = caller
        self._name = check_key(key)
        self._partitions = len(self._ledger.partitions)
        self._kinds = _Kinds()
        self.done = 0
        """How many lines were answered."""

    def charge(self, spends: Sequence[Spend | LdpBudgetError], *, last: bool = False) -> list[SpendResult]:
        """Charge the next lines, as one chunk, or tell again what came of them in an earlier run.

        Parameters:
            spends: the lines after those that were answered; one that cannot be read is the error that says why.
            last: whether no more lines follow. The run has ended then, and its key takes no more lines.

        Returns:
            An answer for each, in their order; or for fewer of them, even none: then an earlier run had more lines
            in one chunk than these, and they are to be given again, with those that follow.

        Raises:
            KeyConflict: no lines are given, none follow, and an earlier run of this key had more.
            LedgerError: nobody knows which of the lines were charged. The run must end here; another one, from the
                first line on, will know.
        """
        lines = [self._kinds.look_at(spend) for spend in spends]
        if not lines:
            if last and not self._ledger.run(*self._ending(self.done)):
                raise KeyConflict(self._name)
            return []
        answers = self._chunk(lines, last)
        self.done += len(answers)
        return answers

    def _chunk(self, lines: list[_Line], last: bool) -> list[SpendResult]:
        """The answers to the chunk that begins here; what failed in earlier runs is tried again, each time as one."""
        name = f"{self._name}@{self.done}"
        answers, failed = self._once(name, lines, last, self.done + len(lines) if last else None)
        tries = 0
        while failed:
            tries += 1
            some = [lines[place] for place in failed]
            told, again = self._once(f"{name}!{tries}", some, True)
            _put(answers, failed, told)
            failed = [failed[place] for place in again]
        return answers

    def _once(
        self, name: str, lines: list[_Line], last: bool, end: int | None = None
    ) -> tuple[list[SpendResult], list[int]]:
        """Charge a chunk, bound to its name, or tell again what came of the one that was bound to it before.

        Also which of it failed before, so that it is to be tried again. A chunk is bound also where none of its lines
        can be read: a run with other lines at a time must find the next one where it begins. `end`: how many lines
        the run has, if this chunk is its last.
        """
        secret = self._ledger.key
        chunk = _Chunk(key_hash(secret, name, self._caller.name), _digest(secret, lines, ()))
        answers: list[SpendResult] = []

        def bind(transaction: Transaction) -> BatchRunRecord | None:
            stored = transaction.numbered(BatchRunRecord, chunk.key_hash)
            if stored is None:
                transaction.add_numbered(chunk.record(CHUNK, _chunk_text(lines)))
                if self._partitions == 1:
                    answers[:] = _failing(lines)
                    places = [place for place, line in enumerate(lines) if line.error is None]
                    told = self._part_work(chunk, 0, [lines[place] for place in places])(transaction)
                    _put(answers, places, told)
                    if end is not None:
                        self._ending(end)[0](transaction)
            return stored

        stored = self._ledger.run(bind, self._ledger.partition_of(chunk.key_hash))
        if stored is not None:
            return self._again(chunk, stored, lines, last, end)
        told = answers or self._parts(chunk, lines)
        if end is not None and self._partitions > 1:
            self._ledger.run(*self._ending(end))
        return told, []

    def _ending(self, lines: int) -> tuple[Callable[[Transaction], bool], int]:
        """Bind the end of a run of so many lines, as a chunk of none; with the partition where that is kept.

        False where an earlier run went on from there.
        """
        secret = self._ledger.key
        chunk = _Chunk(key_hash(secret, f"{self._name}@{lines}", self._caller.name), _digest(secret, (), ()))

        def bind(transaction: Transaction) -> bool:
            stored = transaction.numbered(BatchRunRecord, chunk.key_hash)
            if stored is None:
                transaction.add_numbered(chunk.record(CHUNK, _chunk_text([])))
            return stored is None or stored.request_digest == chunk.request_digest

        return bind, self._ledger.partition_of(chunk.key_hash)

    def _again(
        self, chunk: _Chunk, stored: BatchRunRecord, lines: list[_Line], last: bool, end: int | None
    ) -> tuple[list[SpendResult], list[int]]:
        """The answers to a chunk of an earlier run, and which of its lines failed there."""
        record = json.loads(stored.response)
        if len(lines) < record["lines"] and not last:
            return [], []
        more = len(lines) > record["lines"]
        if record["lines"]:  # else the earlier run ended here
            lines = lines[: record["lines"]]
        unread = record["unread"]
        if (
            len(lines) != record["lines"]
            or stored.request_digest != _digest(self._ledger.key, lines, unread)
            or (end is not None and not more and not self._ledger.run(*self._ending(end)))
        ):
            return [SpendResult(FAILED, error=KeyConflict(self._name)) for _ in lines], []
        before = list(lines)
        for place in unread:
            before[place] = _Line(error=KeyConflict(self._name))
        answers = self._parts(chunk, before, stored.partitions or None)
        return answers, [place for place, answer in enumerate(answers) if answer.status == FAILED]

    # -- partitions --------------------------------------------------------------------------------------------

    def _parts(self, chunk: _Chunk, lines: list[_Line], copied: int | None = None) -> list[SpendResult]:
        """The answers to a chunk that is bound, each partition's part of it in a transaction of its own.

        `copied`: in how many partitions it was bound, if that was before the ledger was copied.
        """
        from concurrent.futures import ThreadPoolExecutor

        answers = _failing(lines)
        places: dict[str, list[int]] = {}
        for place, line in enumerate(lines):
            if line.error is None:
                places.setdefault(line.spend.user, []).append(place)
        parts = parts_of(self._ledger.key, list(places), copied or self._partitions)
        by_partition = {
            partition: sorted(place for user in users for place in places[user]) for partition, users in parts
        }

        def charged(partition: int) -> list[SpendResult]:
            part = [lines[place] for place in by_partition[partition]]
            if copied is not None:
                return self._part_of_copy(chunk.part(self._ledger.key, partition), part)
            return self._ledger.run(self._part_work(chunk, partition, part), partition)

        with ThreadPoolExecutor(PARTITIONS_TOGETHER) as threads:
            for partition, told in zip(by_partition, threads.map(charged, by_partition), strict=True):
                _put(answers, by_partition[partition], told)
        return answers

    def _part_of_copy(self, part: _Chunk, lines: list[_Line]) -> list[SpendResult]:
        """The answers to what was one partition's part before the ledger was copied, charged there or not."""
        with self._ledger.reading(self._ledger.partition_of(part.key_hash)) as reading:
            stored = reading.numbered(BatchRunRecord, part.key_hash)
        return self._parts(part, lines) if stored is None else _told_again(lines, stored)

    def _part_work(
        self, chunk: _Chunk, partition: int, lines: list[_Line]
    ) -> Callable[[Transaction], list[SpendResult]]:
        """Charge what a chunk has in one partition, or tell it again."""
        part = chunk.part(self._ledger.key, partition)

        def work(transaction: Transaction) -> list[SpendResult]:
            stored = transaction.numbered(BatchRunRecord, part.key_hash)
            if stored is not None:
                return _told_again(lines, stored)
            answers = self._charged(transaction, lines)
            transaction.add_numbered(part.record(CHUNK_PART, _part_text(answers)))
            return answers

        return work

    # -- inside a transaction -----------------------------------------------------------------------------

    def _charged(self, transaction: Transaction, lines: list[_Line]) -> list[SpendResult]:
        answers = _failing(lines)
        for places in _rounds(lines):
            alike: dict[int, list[int]] = {}
            for place in places:
                alike.setdefault(id(lines[place].kind), []).append(place)
            for those in alike.values():
                _put(answers, those, self._charge_alike(transaction, [lines[place] for place in those]))
        return answers

    def _charge_alike(self, transaction: Transaction, lines: list[_Line]) -> list[SpendResult]:
        """Charge lines of distinct users and of one kind."""
        kind = lines[0].kind
        try:
            terms = terms_in(transaction, kind.policy, kind.charge, self._caller.share)
        except LdpBudgetError as error:
            return [SpendResult(FAILED, error=error) for _ in lines]
        if len(lines) < FEW or not kind.together or terms.policy.plan is not None:
            return [self._charge_one(transaction, line) for line in lines]
        refused = set(BulkCharge(transaction, kind.charge, terms, kind.note).run([line.spend.user for line in lines]))
        told = dict.fromkeys(range(len(lines)), _SPENT)
        over = [place for place, line in enumerate(lines) if line.spend.user in refused]
        transaction.settle()  # what is read next is what stands there
        requests = [self._request(lines[place]) for place in over]
        accounts = transaction.accounts([request.user_hash for request in requests])
        for place, request in zip(over, requests, strict=True):
            decision = decide(accounts[request.user_hash], request, terms, transaction.windows)
            told[place] = _answer(decision.receipt(REFUSED))
        return list(told.values())

    def _charge_one(self, transaction: Transaction, line: _Line) -> SpendResult:
        told = _charge_one(transaction, self._request(line))
        return SpendResult(FAILED, error=told) if isinstance(told, LdpBudgetError) else _answer(told)

    def _request(self, line: _Line) -> Request:
        return _requested(self._ledger, self._caller, line.spend)


def spend_each(
    ledger: Ledger, caller: Principal, spends: Sequence[Spend | LdpBudgetError]
) -> list[Receipt | LdpBudgetError]:
    """Charge many users each for something of their own, with a key of their own, many in a transaction."""
    asked = list(check_many("spends", spends, _SPENDS))
    for spend in asked:
        if not isinstance(spend, Spend | LdpBudgetError):
            raise InvalidParameter("spends", _SPENDS, shown(spend))
    return spend_group([(ledger, caller, spend) for spend in asked])


def spend_group(asked: Sequence[tuple[Ledger, Principal, Spend | LdpBudgetError]]) -> list[Receipt | LdpBudgetError]:
    """`spend_each` for several callers of one ledger: each spend with its caller, and the ledger as they use it."""
    answers: list[Receipt | LdpBudgetError | None] = [None] * len(asked)
    pieces: dict[int, Piece[Receipt]] = {}
    for place, (ledger, caller, spend) in enumerate(asked):
        try:
            if isinstance(spend, LdpBudgetError):
                raise spend
            pieces[place] = ledger.work_item(*to_work_item(ledger, _requested(ledger, caller, spend)))
        except LdpBudgetError as error:
            answers[place] = error
    if pieces:
        told = asked[0][0].run_all(list(pieces.values()))
        for place, answer in zip(pieces, told, strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, LdpBudgetError):
                raise answer
            answers[place] = answer
    return [answer for answer in answers if answer is not None]


def _charge_one(transaction: Transaction, request: Request) -> Receipt | LdpBudgetError:
    """Charge one of several requests; an error that comes before anything was written is its own alone."""
    written = transaction.writes
    try:
        return charge_in_transaction(transaction, request)
    except LdpBudgetError as error:
        if transaction.writes != written:
            raise
        return error


def _requested(ledger: Ledger, caller: Principal, spend: Spend) -> Request:
    user, mechanism, reports, label, digest, note, policy, key = spend
    return Request(
        ledger.key,
        user,
        mechanism,
        reports=reports,
        policy=policy,
        label=label,
        digest=digest,
        key=key,
        caller=caller,
        note=note,
    )


class _Chunk(NamedTuple):
    """A chunk, or one partition's part of it: where its answer is kept, and the digest of what it asks."""

    key_hash: bytes
    request_digest: bytes

    def part(self, secret: Key, partition: int) -> _Chunk:
        return self._replace(key_hash=secret.hash(b"key", f"{self.key_hash.hex()} {partition}"))

    def record(self, kind: str, response: str) -> BatchRunRecord:
        return BatchRunRecord(0, self.key_hash, self.request_digest, kind, 0, response)


class _Kinds:
    """The kinds of what lines ask for, each looked at and priced once."""

    def __init__(self) -> None:
        self._foreign: dict[Mechanism | Collection, Mechanism | Collection] = {}
        self._known: dict[tuple[Any, ...], tuple[SpendTemplate, object]] = {}

    def look_at(self, spend: Spend | LdpBudgetError) -> _Line:
        """A line, with what is wrong with it."""
        if isinstance(spend, LdpBudgetError):
            return _Line(error=spend)
        user, mechanism, reports, label, digest, note, policy, key = spend
        try:
            if not isinstance(mechanism, Mechanism | Collection):
                mechanism = self._of_foreign(mechanism)
                spend = spend._replace(mechanism=mechanism)
            asked = id(mechanism), reports, label, digest, note, policy, key
            try:
                known = self._known.get(asked)
            except TypeError:  # a list where a text belongs has no hash
                known = None
            kind = self._work_out(asked, spend) if known is None else known[0]
            name = check_user(user)
            if name is not user:
                spend = spend._replace(user=name)
        except LdpBudgetError as error:
            return _Line(error=error)
        return _Line(spend, kind)

    def _of_foreign(self, thing: object) -> Mechanism | Collection:
        """What stands for an object of another library, as it is now; the same for all that promise the same."""
        chosen = chosen_of(thing)
        if len(self._foreign) >= _MOST_KINDS:
            self._foreign.clear()
        return self._foreign.setdefault(chosen, chosen)

    def _work_out(self, asked: tuple[Any, ...], spend: Spend) -> SpendTemplate:
        """Look at all but the user. Raises `InvalidParameter`."""
        _, mechanism, reports, label, digest, note, policy, key = spend
        if key is not None:
            raise InvalidParameter("key", "none, as the run has one", key)
        charge = charge_of(mechanism)
        check_name("policy", policy)
        check_whole("reports", reports, 1, MOST_REPORTS)
        if label is not None:
            check_text("label", label)
        identity = (*charge.identity, reports, label, check_digest(digest), policy)
        kind = SpendTemplate(charge, policy, check_note(note), reports == 1 and label is None, identity)
        if len(self._known) >= _MOST_KINDS:
            self._known.clear()
        self._known[asked] = kind, mechanism  # which is kept, so that nothing else gets its number meanwhile
        return kind


def _digest(secret: Key, lines: Sequence[_Line], unread: Sequence[int]) -> bytes:
    """What lines ask, but for those that could not be read when they came first."""
    kinds: dict[tuple[Any, ...], int] = {}
    skipped = set(unread)
    asked = [
        (line.spend.user, kinds.setdefault(line.kind.identity, len(kinds)))
        if line.error is None and place not in skipped
        else None
        for place, line in enumerate(lines)
    ]
    return secret.hash(b"request", ascii(("lines", asked, list(kinds))))


def _chunk_text(lines: list[_Line]) -> str:
    """What is kept of a chunk that is bound."""
    return canonical_json({"lines": len(lines), "unread": [n for n, line in enumerate(lines) if line.error]})


def _part_text(answers: list[SpendResult]) -> str:
    """What is kept of a part: who was refused and why, and what failed; all the others were charged."""
    refused = [
        [place, answer.binding, min(answer.affordable_reports, LARGEST), answer.why]
        for place, answer in enumerate(answers)
        if answer.status == REFUSED
    ]
    failed = [place for place, answer in enumerate(answers) if answer.status == FAILED]
    return canonical_json({"failed": failed, "refused": refused})


def _told_again(lines: list[_Line], stored: BatchRunRecord) -> list[SpendResult]:
    record = json.loads(stored.response)
    answers = [_SPENT_BEFORE] * len(lines)
    for place, binding, affordable, why in record["refused"]:
        answers[place] = SpendResult(REFUSED, True, tuple(binding), affordable, why)
    for place in record["failed"]:
        answers[place] = SpendResult(FAILED)
    return answers


def _failing(lines: list[_Line]) -> list[SpendResult]:
    """The answers to lines of which none was charged yet."""
    return [SpendResult(FAILED, error=line.error) for line in lines]


def _put(answers: list[SpendResult], places: Sequence[int], told: Sequence[SpendResult]) -> None:
    """Put the answers to some of many lines where they belong."""
    for place, answer in zip(places, told, strict=True):
        answers[place] = answer


def _answer(receipt: Receipt) -> SpendResult:
    if receipt:
        return _SPENT
    return SpendResult(REFUSED, False, receipt.binding, receipt.affordable_reports, receipt.why, receipt)


def _rounds(lines: list[_Line]) -> Iterator[list[int]]:
    """The places of the lines so that each round names a user once, and a user's lines stay in their order."""
    rounds: list[list[int]] = []
    seen: dict[str, int] = {}
    for place, line in enumerate(lines):
        if line.error is None:
            times = seen.get(line.spend.user, 0)
            seen[line.spend.user] = times + 1
            if times == len(rounds):
                rounds.append([])
            rounds[times].append(place)
    return iter(rounds)
