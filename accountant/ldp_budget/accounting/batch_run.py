"""`BatchRun` and `spend_each`: charge many users, each for a request of their own.

A run is a stream of lines in chunks of any size, with a result for each line. A chunk is one transaction in each
partition of the ledger. Lines with the same request under the same policy are charged together, by set-based
statements; the others one by one.

A run has an idempotency key. The chunk that begins with line n is bound to KEY@n, to its number of lines and to a
digest of them. So repeat an interrupted run from its first line: the results of charged lines are returned again, and
the other lines are charged now. After the last line, the end of the run is bound as a chunk without lines. The same
key with more or fewer lines is then a conflict.
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
"""Fewer equal lines than this are charged one by one: a set-based statement has a fixed cost."""


_SPENDS = "a `Spend` each, or the error of what cannot be read"


class Spend(NamedTuple):
    """One line: a user and a request, as in `Accountant.spend`. In a `BatchRun`, a line has no key of its own."""

    user: str
    mechanism: Mechanism | Collection | object
    reports: int = 1
    label: str | None = None
    digest: str | None = None
    note: str | None = None
    policy: str = DEFAULT
    key: str | None = None


class SpendResult(NamedTuple):
    """The result of one line.

    `status` is `spent`, `refused` or `failed`; `repeated` is True for a result of an earlier run. A refusal has
    `binding`, the periods whose limit refused it, or `plan`. It also has `affordable_reports`, the number of such
    reports that still fit, and `why`, an objection that no budget can cure. A refusal of this run has a `receipt`
    with the state of the limits. A failure has an `error`: nothing was charged, and the next run tries the line
    again.
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
    """The part of a request that several lines have in common: all except the user.

    `together` is True if set-based statements charge the lines, as for one report without a label. `identity` has
    everything that makes two templates the same; the note is not part of it.
    """

    charge: Charge
    policy: str
    note: str | None
    together: bool
    identity: tuple[Any, ...]


class _Line(NamedTuple):
    """A checked line, or the error that was found in it."""

    spend: Spend = None  # type: ignore[assignment]  # if there is an error
    kind: SpendTemplate = None  # type: ignore[assignment]
    error: LdpBudgetError | None = None


class BatchRun:
    """The lines of a run, chunk by chunk, from the first one.

    Made by `Accountant.run`.
    """

    def __init__(self, ledger: Ledger, caller: Principal, key: str) -> None:
        self._ledger = ledger
        self._caller = caller
        self._name = check_key(key)
        self._partitions = len(self._ledger.partitions)
        self._kinds = _Kinds()
        self.done = 0
        """The number of lines that have results."""

    def charge(self, spends: Sequence[Spend | LdpBudgetError], *, last: bool = False) -> list[SpendResult]:
        """Charge the next lines as one chunk, or return their results from an earlier run again.

        Parameters:
            spends: the lines after those that have results; for a line that cannot be read, the error that says why.
            last: True if no more lines follow. The run ends then, and its key accepts no more lines.

        Returns:
            A result for each line, in order. There are fewer results, or none, if an earlier run had more lines in
            this chunk: then give the lines without a result again, followed by more lines.

        Raises:
            KeyConflict: no lines are given and `last` is True, but an earlier run with this key had more lines.
            LedgerError: it is unknown which of the lines were charged. End this run here; a new run from the first
                line finds out.
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
        """Return the results of the chunk that begins here; lines that failed before are tried again together."""
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
        """Charge a chunk under its name, or return the results of the chunk that was bound to that name before.

        Also return the indexes of the lines that failed before and must be tried again. A chunk is bound even if none
        of its lines can be read: a run with other chunk sizes must find where the next chunk begins. `end` is the
        number of lines of the run if this chunk is the last one.
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
        """Return the work that binds the end of a run with so many lines, and the partition that stores it.

        The end is a chunk without lines. The work returns False if an earlier run continued after this line.
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
        """Return the results of a chunk of an earlier run, and the indexes of the lines that failed there."""
        record = json.loads(stored.response)
        if len(lines) < record["lines"] and not last:
            return [], []
        more = len(lines) > record["lines"]
        if record["lines"]:  # if it is 0, the earlier run ended here
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
        """Return the results of a bound chunk, with one transaction for each partition.

        `copied` is the number of partitions in which the chunk was bound, if that was before the ledger was moved.
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
        """Return the results of a part that was bound before the ledger was moved, charged then or now."""
        with self._ledger.reading(self._ledger.partition_of(part.key_hash)) as reading:
            stored = reading.numbered(BatchRunRecord, part.key_hash)
        return self._parts(part, lines) if stored is None else _told_again(lines, stored)

    def _part_work(
        self, chunk: _Chunk, partition: int, lines: list[_Line]
    ) -> Callable[[Transaction], list[SpendResult]]:
        """Return the work that charges a chunk's lines in one partition, or returns their stored results."""
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
        """Charge lines of distinct users with the same template."""
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
        transaction.settle()  # so that the next read sees every write
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
    """Charge many users, each for a request and with an idempotency key of their own, many in one transaction."""
    asked = list(check_many("spends", spends, _SPENDS))
    for spend in asked:
        if not isinstance(spend, Spend | LdpBudgetError):
            raise InvalidParameter("spends", _SPENDS, shown(spend))
    return spend_group([(ledger, caller, spend) for spend in asked])


def spend_group(asked: Sequence[tuple[Ledger, Principal, Spend | LdpBudgetError]]) -> list[Receipt | LdpBudgetError]:
    """Call `spend_each` for several callers of one ledger: each spend with its caller's ledger view."""
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
    """Charge one of several requests; return an error that is raised before anything was written."""
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
    """A chunk, or its part in one partition: the hash that identifies it, and the digest of its requests."""

    key_hash: bytes
    request_digest: bytes

    def part(self, secret: Key, partition: int) -> _Chunk:
        return self._replace(key_hash=secret.hash(b"key", f"{self.key_hash.hex()} {partition}"))

    def record(self, kind: str, response: str) -> BatchRunRecord:
        return BatchRunRecord(0, self.key_hash, self.request_digest, kind, 0, response)


class _Kinds:
    """The templates of the lines, each checked and priced once."""

    def __init__(self) -> None:
        self._foreign: dict[Mechanism | Collection, Mechanism | Collection] = {}
        self._known: dict[tuple[Any, ...], tuple[SpendTemplate, object]] = {}

    def look_at(self, spend: Spend | LdpBudgetError) -> _Line:
        """Check a line; return it, or the error that was found."""
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
            except TypeError:  # a wrong argument, such as a list, has no hash
                known = None
            kind = self._work_out(asked, spend) if known is None else known[0]
            name = check_user(user)
            if name is not user:
                spend = spend._replace(user=name)
        except LdpBudgetError as error:
            return _Line(error=error)
        return _Line(spend, kind)

    def _of_foreign(self, thing: object) -> Mechanism | Collection:
        """Return the mechanism for an object of another library as it is now; equal guarantees share one."""
        chosen = chosen_of(thing)
        if len(self._foreign) >= _MOST_KINDS:
            self._foreign.clear()
        return self._foreign.setdefault(chosen, chosen)

    def _work_out(self, asked: tuple[Any, ...], spend: Spend) -> SpendTemplate:
        """Check everything except the user. Raises `InvalidParameter`."""
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
        self._known[asked] = kind, mechanism  # keep it, so that its id is not reused
        return kind


def _digest(secret: Key, lines: Sequence[_Line], unread: Sequence[int]) -> bytes:
    """Return the digest of the requests, without the lines that could not be read when they came first."""
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
    """Return the stored text of a bound chunk."""
    return canonical_json({"lines": len(lines), "unread": [n for n, line in enumerate(lines) if line.error]})


def _part_text(answers: list[SpendResult]) -> str:
    """Return the stored text of a part: refusals with their reasons, and failures. All other lines were charged."""
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
    """Return the results of lines before any of them is charged."""
    return [SpendResult(FAILED, error=line.error) for line in lines]


def _put(answers: list[SpendResult], places: Sequence[int], told: Sequence[SpendResult]) -> None:
    """Put the results of some lines at their indexes among all results."""
    for place, answer in zip(places, told, strict=True):
        answers[place] = answer


def _answer(receipt: Receipt) -> SpendResult:
    if receipt:
        return _SPENT
    return SpendResult(REFUSED, False, receipt.binding, receipt.affordable_reports, receipt.why, receipt)


def _rounds(lines: list[_Line]) -> Iterator[list[int]]:
    """Yield the lines' indexes in rounds: each round has a user once, and a user's lines keep their order."""
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
