"""Batches: `spend_batch` charges many users under one key, `spend_each` each under a key of their own.

A batch has one idempotency key for all of its lines. It is charged in parts of at most `PART` lines, each of one
partition. A part is one item of the ledger's write queue: its lines are charged, and its results are recorded under
its own key, in one transaction. So single charges are served between two parts.

A batch of several parts is first bound to its key and to a digest of its lines. Repeating it skips the parts that
were charged. Other lines under the same key are a conflict, and cost nothing. A line that failed is tried again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import canonical_json
from .._validation import check_many, check_user, shown_with_type
from ..charge_options import DEFAULT
from ..errors import InvalidParameter, KeyConflict, LdpBudgetError, LedgerError
from ..guarantees.fixed_point import LARGEST
from ..ledger.models import BOUND, CHARGED, PART_OF_RUN, SPENT, BatchRunRecord
from ..registry.collections import Collection
from ..sdk.mechanism import Mechanism
from . import engine
from .admission import receipts_in
from .charge_request import ChargeRequest, RequestTemplate, check_key, key_hash, request_template
from .priced_mechanism import chosen_of
from .receipts import REFUSED

if TYPE_CHECKING:
    from ..ledger import Ledger, Transaction
    from ..ledger.keyed_hashing import Key
    from .charge_request import Principal
    from .receipts import Receipt

PART = 1_000
"""Maximum number of lines that are charged in one transaction in one partition."""
Check = Callable[[], None]
"""A check between two parts, which raises an error to end a batch."""
STEP = 1_000
"""Number of lines whose hashes are computed at a time. After each step, other threads may write their charges."""
FEW = 8
"""Fewer equal lines than this are charged one by one: a set-based statement has a fixed cost."""


# -- lines and results -------------------------------------------------------------------------------------------

_SPENDS = "a list of `Spend` objects (or errors, for lines that cannot be read)"


class Spend(NamedTuple):
    """One line: a user and a request, as in `Accountant.spend`. In a batch with a key, a line has no key of its own."""

    user: str
    mechanism: Mechanism | Collection | object
    reports: int = 1
    label: str | None = None
    digest: str | None = None
    note: str | None = None
    policy: str = DEFAULT
    key: str | None = None
    tags: Iterable[str] = ()


class SpendResult(NamedTuple):
    """The result of one line.

    `status` is `spent`, `refused` or `failed`; `repeated` is True for a result that was recorded before. A refusal
    has `binding`, the periods whose limit refused it, or `plan`. It also has `affordable_reports`, the number of such
    reports that still fit, and `why`, an objection that no budget can cure. A new refusal has a `receipt` with the
    state of the limits. A failure has an `error`: nothing was charged, and the next time the line is tried again.
    """

    status: str
    repeated: bool = False
    binding: tuple[str, ...] = ()
    affordable_reports: int = 0
    why: str = ""
    receipt: Receipt | None = None
    error: LdpBudgetError | None = None


FAILED = "failed"
SPENT_RESULT, SPENT_BEFORE = SpendResult(SPENT), SpendResult(SPENT, True)
_REFUSED = SpendResult(REFUSED)


class Lines(NamedTuple):
    """Checked lines: their users and templates. `errors` has the lines that failed the check.

    `common` is the template of all lines, if they have only one; then `templates` is empty.
    """

    users: Sequence[str]
    templates: Sequence[RequestTemplate]
    errors: Mapping[int, LdpBudgetError]
    common: RequestTemplate | None = None

    def template(self, place: int) -> RequestTemplate:
        """Return the template of a valid line."""
        return self.common or self.templates[place]

    @property
    def all_differ(self) -> bool:
        """True if all lines are valid and have different users."""
        return not self.errors and len(set(self.users)) == len(self.users)

    def at(self, places: Sequence[int]) -> Lines:
        """Return the lines at some indexes."""
        users = [self.users[n] for n in places]
        templates = [] if self.common is not None else [self.templates[n] for n in places]
        errors = (
            {n: self.errors[place] for n, place in enumerate(places) if place in self.errors} if self.errors else {}
        )
        return Lines(users, templates, errors, self.common)

    def results(self) -> list[SpendResult]:
        """Return the results of lines that fit their limits."""
        results = [SPENT_RESULT] * len(self.users)
        for place, error in self.errors.items():
            results[place] = SpendResult(FAILED, error=error)
        return results


def _template(spend: Spend, mechanism: Mechanism | Collection | object) -> RequestTemplate:
    """Return the template of a line. Raises `InvalidParameter`."""
    _, _, reports, label, digest, note, policy, _, tags = spend
    return request_template(
        mechanism, policy=policy, reports=reports, label=label, digest=digest, note=note, tags=tags
    )


class _Templates:
    """The templates of the lines of one batch."""

    def __init__(self) -> None:
        self._foreign: dict[Mechanism | Collection, Mechanism | Collection] = {}

    def check(self, spend: Spend | LdpBudgetError) -> tuple[str, RequestTemplate]:
        """Return the user and the template of a line. Raises `InvalidParameter`, or the error of the line."""
        if isinstance(spend, LdpBudgetError):
            raise spend
        user, mechanism, *_, key, _ = spend
        if key is not None:
            raise InvalidParameter("key", "left out in a line, because the batch has a key", repr(key))
        if not isinstance(mechanism, Mechanism | Collection):
            mechanism = self._of_foreign(mechanism)
        template = _template(spend, mechanism)
        return check_user(user), template

    def lines(self, spends: Iterable[Spend | LdpBudgetError]) -> Lines:
        """Check lines."""
        users: list[str] = []
        templates: list[RequestTemplate] = []
        errors: dict[int, LdpBudgetError] = {}
        for place, spend in enumerate(_checked(spends)):
            try:
                user, template = self.check(spend)
            except LdpBudgetError as error:
                errors[place] = error
                user, template = "", _NO_TEMPLATE
            users.append(user)
            templates.append(template)
        if len({*map(id, templates)}) == 1 and not errors:
            return Lines(users, [], {}, templates[0])
        return Lines(users, templates, errors)

    def _of_foreign(self, thing: object) -> Mechanism | Collection:
        """Return the mechanism for an object of another library as it is now; equal guarantees share one."""
        chosen = chosen_of(thing)
        return self._foreign.setdefault(chosen, chosen)


_NO_TEMPLATE: Any = None
"""The template of an invalid line, which is never charged."""


# -- parts ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Part:
    """Lines of one partition that are charged in one transaction: an item of the write queue.

    `hashes` are those of the users.
    `key_hash` and `digest` identify it, if its batch has a key, called `name`. With `explain`, each refusal gets a
    receipt. `is_part` is True if its key is not the one that the caller gave.
    """

    needs = None

    ledger: Ledger
    caller: Principal
    partition: int
    lines: Lines
    hashes: Sequence[bytes]
    key_hash: bytes
    digest: bytes
    name: str
    explain: bool
    is_part: bool

    @cached_property
    def batch_users(self) -> list[bytes] | None:
        """The sorted hashes of its users, if set-based statements charge all of its lines."""
        common = self.lines.common
        alike = common is not None and common.alike and len(self.hashes) >= FEW and self.lines.all_differ
        return sorted(self.hashes) if alike else None

    def request(self, place: int) -> ChargeRequest:
        """Return the charge request of a line."""
        template, ledger = self.lines.template(place), self.ledger
        return ChargeRequest(
            template,
            ledger.key,
            self.lines.users[place],
            caller=self.caller,
            partitions=len(ledger.partitions),
        )


def charge_parts(transactions: Mapping[int, Transaction], parts: Sequence[Part]) -> list[list[SpendResult]]:
    """Charge parts in the transactions of their partitions, or return their recorded results."""
    return [_charge_part(transactions[part.partition], part) for part in parts]


def _charge_part(transaction: Transaction, part: Part) -> list[SpendResult]:
    stored = transaction.numbered(BatchRunRecord, part.key_hash) if part.key_hash else None
    if stored is not None:
        if stored.request_digest != part.digest:
            raise KeyConflict(part.name)
        return read_results(stored, len(part.lines.users))
    results = _charge_lines(transaction, part)
    if part.key_hash and any(result.status != FAILED for result in results):
        response = write_results(results, is_part=part.is_part)
        transaction.add_numbered(BatchRunRecord(0, part.key_hash, part.digest, CHARGED, 0, response))
    return results


def _charge_lines(transaction: Transaction, part: Part) -> list[SpendResult]:
    lines = part.lines
    results = lines.results()
    if lines.common is not None and lines.all_differ:
        _charge_group(transaction, part, range(len(results)), results)
        return results
    for places in _rounds(lines):
        groups: dict[int, list[int]] = {}
        for place in places:
            groups.setdefault(id(lines.template(place)), []).append(place)
        for group in groups.values():
            _charge_group(transaction, part, group, results)
    return results


def _charge_group(transaction: Transaction, part: Part, places: Sequence[int], results: list[SpendResult]) -> None:
    """Charge lines of distinct users with the same template; put their results in their places."""
    template = part.lines.template(places[0])
    try:
        terms = engine.terms_in(transaction, template, part.caller.share)
    except LdpBudgetError as error:
        for place in places:
            results[place] = SpendResult(FAILED, error=error)
        return
    plain = terms.policy.plan is None and not transaction.has_sliding_limits
    if len(places) >= FEW and template.alike and plain:
        hashes = part.hashes if isinstance(places, range) else [part.hashes[place] for place in places]
        written, alike = transaction.writes, True
        try:
            charged = transaction, template.charge, terms, template.note, hashes
            over = set(engine.charge_alike(*charged, part.caller.number))
        except LedgerError:
            if transaction.writes != written:
                raise
            over, alike = set(hashes), False  # an account was changed: charged one by one, only that user fails
        if not over:
            return
        places = [place for place, user in zip(places, hashes, strict=True) if user in over]
        if alike and not part.explain:
            for place in places:
                results[place] = _REFUSED
            return
    requests = [part.request(place) for place in places]
    outcomes = receipts_in(engine.charge({part.partition: transaction}, requests))
    for place, outcome in zip(places, outcomes, strict=True):
        if isinstance(outcome, LdpBudgetError) and not part.explain:
            raise outcome  # of `spend_many`: no user of the part is charged
        results[place] = _result(outcome)


def _result(outcome: Receipt | LdpBudgetError) -> SpendResult:
    if isinstance(outcome, LdpBudgetError):
        return SpendResult(FAILED, error=outcome)
    if outcome:
        return SPENT_RESULT
    return SpendResult(REFUSED, False, outcome.binding, outcome.affordable_reports, outcome.why, outcome)


def _rounds(lines: Lines) -> Iterator[list[int]]:
    """Yield the lines' indexes in rounds: each round has a user once, and a user's lines keep their order."""
    rounds: list[list[int]] = []
    seen: dict[str, int] = {}
    for place, user in enumerate(lines.users):
        if place not in lines.errors:
            times = seen.get(user, 0)
            seen[user] = times + 1
            if times == len(rounds):
                rounds.append([])
            rounds[times].append(place)
    return iter(rounds)


def write_results(results: Sequence[SpendResult], *, is_part: bool = False) -> str:
    """Return the recorded text of results: refusals with their reasons, and failures. All other lines were charged."""
    refused = [
        [place, result.binding, min(result.affordable_reports, LARGEST), result.why]
        for place, result in enumerate(results)
        if result.status == REFUSED
    ]
    failed = [place for place, result in enumerate(results) if result.status == FAILED]
    return canonical_json({"failed": failed, "refused": refused, **({"part": True} if is_part else {})})


def read_results(stored: BatchRunRecord, lines: int) -> list[SpendResult]:
    """Return the results of a recorded part; a failed line has no error."""
    record = json.loads(stored.response)
    results = [SPENT_BEFORE] * lines
    for place, binding, affordable, why in record["refused"]:
        results[place] = SpendResult(REFUSED, True, tuple(binding), affordable, why)
    for place in record["failed"]:
        results[place] = SpendResult(FAILED)
    return results


# -- batches -------------------------------------------------------------------------------------------------------


_LATER_BATCH = re.compile(r"#[1-9][0-9]*\Z")
"""The end of the key of a batch whose run has an earlier batch, which counts the run."""


@dataclass(eq=False)
class Batch:
    """Lines under one key, or without a key, in parts. With `explain`, each refusal gets a receipt."""

    _ledger: Ledger
    _caller: Principal
    _key: str | None
    _explain: bool
    _check: Check | None = None

    def charge(self, lines: Lines) -> list[SpendResult]:
        """Charge the lines, or return their recorded results; lines that failed before are tried again together."""
        key = self._key
        results = self._charge_once(lines, key)
        tries = 0
        while key is not None:
            again = [place for place, each in enumerate(results) if each.status == FAILED and each.error is None]
            if not again:
                break
            tries += 1
            some = self._charge_once(lines.at(again), key, tries, follows=True)
            _put(results, again, some)
        return results

    def _charge_once(
        self, lines: Lines, key: str | None, tries: int = 0, *, follows: bool = False
    ) -> list[SpendResult]:
        """Charge lines under a key, or the lines that failed under it, for the nth time.

        With `follows`, another record counts for the caller's key.
        """
        identity = None
        follows = follows or _LATER_BATCH.search(self._key or "") is not None
        partitions = len(self._ledger.partitions)
        if key is not None:
            secret = self._ledger.key
            bound = key_hash(secret, key, self._caller.name)
            if tries:  # no key that a caller can choose
                bound = secret.hash(b"batch retry", f"{secret.plain(bound).hex()} {tries}")
            identity = bound, _digest(secret, lines)
        parts = self._parts(lines, identity, partitions, follows=follows)
        if key is not None and identity is not None:
            bind = [part.key_hash for part, _ in parts] != [identity[0]]
            stored = self._bound(identity, bind=bind, lines=f"{len(lines.users)}{PART_OF_RUN if follows else ''}")
            if stored is not None and stored.request_digest != identity[1]:
                raise KeyConflict(self._key or "")
            if stored is not None and stored.kind == CHARGED:  # it was one part
                results = lines.results()
                ((_, places),) = self._parts(lines, identity, 1)
                _put(results, places, read_results(stored, len(places)))
                return results
            if stored is not None and stored.partitions:
                return self._charge_moved(lines, identity, stored)
        results = lines.results()
        charged: list[list[SpendResult]] = []
        for some in self._cut([part for part, _ in parts]):
            charged += self._ledger.charge(charge_parts, some, bulk=True)
        for (_, places), found in zip(parts, charged, strict=True):
            _put(results, places, found)
            self._ledger.give_way()
        return results

    def _cut(self, parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
        """Yield the parts to charge together: all of them, or with a check a few, each after a check."""
        if self._check is None:
            yield from [parts] if parts else []
            return
        some: list[Part] = []
        for place, part in enumerate(parts, 1):
            some.append(part)
            if place == len(parts) or sum(len(each.hashes) for each in some) >= PART:
                self._check()
                yield some
                some = []

    def _bound(self, identity: tuple[bytes, bytes], *, bind: bool, lines: str) -> BatchRunRecord | None:
        """Return the record of the batch if it was bound before; otherwise bind it if `bind` says so.

        A record is read in a transaction, so that it is as durable as a charge. A snapshot tells only that there may
        be no record: a single part looks again in its own transaction.
        """
        key, digest = identity
        partition = self._ledger.partition_of(key)

        def work(transaction: Transaction) -> BatchRunRecord | None:
            stored = transaction.numbered(BatchRunRecord, key)
            if stored is None and bind:
                transaction.go_by_the_clock()  # otherwise a batch that cannot be charged would be bound
                transaction.add_numbered(BatchRunRecord(0, key, digest, BOUND, 0, lines))
            return stored

        if not bind:
            with self._ledger.reading(partition) as reading:
                if reading.numbered(BatchRunRecord, key) is None:
                    return None
        return self._ledger.run(work, partition)

    def _parts(
        self, lines: Lines, identity: tuple[bytes, bytes] | None, partitions: int, *, follows: bool = False
    ) -> list[tuple[Part, Sequence[int]]]:
        """Return the parts of the lines for this number of partitions, each with the indexes of its lines."""
        secret = self._ledger.key
        hashes, order = self._hashed(lines.users)
        by_partition: dict[int, list[int]] = {}
        if partitions == 1:
            by_partition[0] = order
        else:
            for place in order:
                by_partition.setdefault(secret.partition_of(hashes[place], partitions), []).append(place)
        cut = [
            (partition, start // PART, places[start : start + PART])
            for partition, places in sorted(by_partition.items())
            for start in range(0, len(places), PART)
        ]
        parts: list[tuple[Part, Sequence[int]]] = []
        for partition, number, places in cut:
            key = identity
            # A single part has the key of the batch, but only where a batch with this key and other lines finds it.
            if identity is not None and (len(cut) > 1 or partition != secret.partition_of(identity[0], partitions)):
                key = secret.hash(b"key", f"{secret.plain(identity[0]).hex()} {partition} {number}"), identity[1]
            mine, some = lines.at(places), [hashes[place] for place in places]
            is_part, bound = follows or key != identity, key or (b"", b"")
            name, explain = self._key or "", self._explain
            part = Part(self._ledger, self._caller, partition, mine, some, *bound, name, explain, is_part)
            parts.append((part, places))
        return parts

    def _hashed(self, users: Sequence[str]) -> tuple[list[bytes], list[int]]:
        """Return the hashes of the users, and their indexes in the order of the hashes.

        In that order, a part changes few pages of their index. A user's lines keep their order. Plain hashes give the
        same parts after a rotation of the key. A thread that computes for long delays each statement of another
        thread's charge, so this one gives way after each step.
        """
        secret = self._ledger.key
        hashes: list[bytes] = []
        plain: list[bytes] = []
        buckets: list[list[int]] = [[] for _ in range(256)]
        for start in range(0, len(users), STEP):
            some = secret.hashes(b"user", [*users[start : start + STEP]])
            hashes += some
            plain += secret.plain_hashes(some)
            for place in range(start, len(plain)):
                buckets[plain[place][0]].append(place)
            self._ledger.give_way()
        order: list[int] = []
        for number, bucket in enumerate(buckets):
            order += sorted(bucket, key=plain.__getitem__)
            if number % 16 == 0:
                self._ledger.give_way()
        return hashes, order

    def _charge_moved(self, lines: Lines, identity: tuple[bytes, bytes], stored: BatchRunRecord) -> list[SpendResult]:
        """Charge a batch that was bound before the ledger was moved, in the parts of that time."""
        results = lines.results()
        for part, places in self._parts(lines, identity, stored.partitions):
            key = part.key_hash
            record = self._ledger.run(partial(_record_of, key=key), self._ledger.partition_of(key))
            if record is not None:
                found = read_results(record, len(places))
            else:
                found = self._charge_once(part.lines, self._ledger.key.plain(key).hex(), follows=True)
            _put(results, places, found)
        return results


def _record_of(transaction: Transaction, key: bytes) -> BatchRunRecord | None:
    return transaction.numbered(BatchRunRecord, key)


def _put(results: list[SpendResult], places: Sequence[int], found: Sequence[SpendResult]) -> None:
    """Put the results of some lines in their places."""
    for place, result in zip(places, found, strict=True):
        results[place] = result


def _digest(secret: Key, lines: Lines) -> bytes:
    """Return the digest of lines: users and templates, in order. Lines that could not be read count too, all alike.

    It is the same for the same lines, with or without a common template.
    """
    templates: dict[tuple[Any, ...], int] = {}
    numbers: list[int] = []
    if lines.common is not None:
        templates = {lines.common.identity: 0} if lines.users else {}
    else:
        numbers = [
            -1 if place in lines.errors else templates.setdefault(template.identity, len(templates))
            for place, template in enumerate(lines.templates)
        ]
        numbers = numbers if any(numbers) else []
    users = secret.plain(secret.hash(b"users", ascii(list(lines.users)))).hex()
    return secret.hash(b"request", ascii(("batch", list(templates), numbers, users)))


def spend_batch(
    ledger: Ledger,
    caller: Principal,
    spends: Sequence[Spend | LdpBudgetError],
    key: str,
    check: Check | None = None,
) -> list[SpendResult]:
    """Charge lines under one key, or return their recorded results.

    `check` is called before each part. Its error ends the batch; the parts before are charged, and a retry finds them.
    """
    lines = _Templates().lines(spends)
    return Batch(ledger, caller, check_key(key), True, check).charge(lines)


def spend_alike(
    ledger: Ledger, caller: Principal, users: Sequence[str], template: RequestTemplate, key: str | None
) -> list[SpendResult]:
    """Do the same for checked users with one template, also without a key. Refusals need not say why."""
    return Batch(ledger, caller, key, False).charge(Lines(users, [], {}, template))


def _checked(spends: Iterable[Spend | LdpBudgetError]) -> Iterator[Spend | LdpBudgetError]:
    """Yield lines of a batch. Raises `InvalidParameter` for what is neither a `Spend` nor an error."""
    for spend in check_many("spends", spends, _SPENDS):
        if not isinstance(spend, Spend | LdpBudgetError):
            raise InvalidParameter("spends", _SPENDS, f"{shown_with_type(spend)} in it")
        yield spend


def spend_each(
    ledger: Ledger, caller: Principal, spends: Sequence[Spend | LdpBudgetError], check: Check | None = None
) -> list[Receipt | LdpBudgetError]:
    """Charge many users, each for a request and with an idempotency key of their own.

    `check` is called before each part. Its error is that of all lines from there on.
    """
    requests = [_request_or_error(ledger, caller, spend) for spend in _checked(spends)]
    outcomes: list[Receipt | LdpBudgetError] = []
    for first in range(0, len(requests), PART):
        part = requests[first : first + PART]
        valid = [each for each in part if isinstance(each, ChargeRequest)]
        try:
            if check is not None:
                check()
            charged = iter(receipts_in(ledger.charge(engine.charge, valid)) if valid else ())
        except LdpBudgetError as error:
            if not first:
                raise
            charged = iter([error] * len(valid))  # earlier parts were charged
        outcomes += [next(charged) if isinstance(each, ChargeRequest) else each for each in part]
    return outcomes


def _request_or_error(
    ledger: Ledger, caller: Principal, spend: Spend | LdpBudgetError
) -> ChargeRequest | LdpBudgetError:
    """Return the charge request of a line that has a key of its own; for an invalid line, its error."""
    if isinstance(spend, LdpBudgetError):
        return spend
    try:
        template, key = _template(spend, spend.mechanism), spend.key
        return ChargeRequest(
            template, ledger.key, spend.user, key=key, caller=caller, partitions=len(ledger.partitions)
        )
    except LdpBudgetError as error:
        return error
