"""`Accountant`: who has spent what, and may this be spent as well?

    with Accountant("budget.db") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="4"), Limit("day", epsilon="1")])
        receipt = accountant.spend("alice", oue, key="2026-11-21/alice/party")

One spend is one transaction: it reads the clock, looks the key up, checks every limit of the policy and then writes
the sums of every window, the journal entry and the key, or nothing.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from ..catalogue.collections import Collection
from ..errors import InvalidParameter, KeyConflict, LedgerError, NameTaken, UnknownName
from ..ledger import SqliteLedger, Transaction
from ..ledger.groups import GroupCommit
from ..ledger.integrity import Verification, verify
from ..ledger.listing import charges_of, history_rows, journal_rows, stats
from ..ledger.windows import Moment, from_micros, to_micros
from .bulk import BulkCharge, BulkResult, batches, check_batch_key, run_batch
from .decision import Assessment, Charge, Request, check_digest, check_text, limit_states
from .limits import DEFAULT, Limit, Policy, canonical_text
from .policies import follow, keep_periods, propose
from .receipts import QUOTED, REFUSED, RESERVED, SPENT, Balance, BudgetExceeded, Receipt
from .reservations import MOST_SECONDS, commit, void

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..authoring.base import Mechanism
    from ..ledger import Entry
    from ..ledger.groups import Needs
    from .plans import Plan

    Resolve = Callable[[Transaction, str, datetime], tuple[Entry, str, bool]]

# A clock up to this far behind the newest entry counts as equal to it; further behind, nothing is trusted.
CLOCK_TOLERANCE_MICROS = 5_000_000


class Accountant:
    """The privacy budgets of the users of one ledger.

    `path`: a file, made with its key if neither exists (unless `create` is false); or ":memory:". `clock`: a function
    that returns now, as an aware datetime or in seconds since 1970; for tests. May be shared by threads, and its
    file by processes; after a fork it opens the file anew.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        clock: Callable[[], datetime | float] = time.time,
    ) -> None:
        self._ledger = SqliteLedger(path, create=create)
        self._group = GroupCommit(self._ledger, self._read_ahead)
        self._clock = clock
        self._policies: dict[int, Policy] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    # -- policies ---------------------------------------------------------------------------------------

    def set_policy(
        self,
        name: str,
        limits: Sequence[Limit | str],
        *,
        relation: str | None = None,
        unbounded: bool = False,
        checked: bool = False,
        plan: Plan | None = None,
    ) -> Policy:
        """Store a policy, as a new version where there is one of that name; what was spent stays spent.

        Raises `InvalidParameter` where the policy makes no sense, where it changes the rule or δ of a limit that was
        charged already, or where a plan's price on top of the earlier ones exceeds its lifetime limit.
        """
        proposed = propose(name, limits, relation=relation, unbounded=unbounded, checked=checked, plan=plan)
        with self._ledger.write() as transaction:
            now = self._now(transaction)
            stored = transaction.policy(name)
            previous = None if stored is None else Policy.from_json(json.loads(stored[1]))
            policy = follow(transaction, proposed, previous)
            keep_periods(transaction, policy, now)
            transaction.add_policy(name, policy.version, to_micros(now), canonical_text(policy.to_json()))
        return policy

    def policy(self, name: str = DEFAULT) -> Policy:
        """The newest version of a policy. Raises `UnknownName`."""
        with self._ledger.read() as transaction:
            return self._policy(transaction, name)[1]

    def policies(self) -> list[Policy]:
        """The newest version of every policy."""
        with self._ledger.read() as transaction:
            return [Policy.from_json(json.loads(text)) for text in transaction.policies()]

    # -- charging ---------------------------------------------------------------------------------------

    def quote(
        self,
        user: str,
        mechanism: Mechanism,
        *,
        reports: int = 1,
        label: str | None = None,
        policy: str = DEFAULT,
    ) -> Receipt:
        """What a spend would cost and whether it would fit; changes nothing."""
        request = Request(self._ledger.key, user, mechanism, reports, policy, label)
        with self._ledger.read() as transaction:
            return self._assess(transaction, request).receipt(QUOTED)

    def spend(
        self,
        user: str,
        mechanism: Mechanism,
        *,
        reports: int = 1,
        key: str | None = None,
        label: str | None = None,
        digest: str | None = None,
        policy: str = DEFAULT,
        strict: bool = False,
    ) -> Receipt:
        """Charge `reports` reports of `mechanism` to `user`, or refuse.

        `key` makes a retry safe: the same key with the same request returns the stored answer, with another
        request it raises `KeyConflict`. `label` says which memoised value the reports repeat. `digest` (hex) binds
        the report itself to the key. With `strict`, a refusal raises `BudgetExceeded`.
        """
        request = Request(self._ledger.key, user, mechanism, reports, policy, label, digest, key=key)
        return self._charge(request, SPENT, None, strict)

    def spend_many(
        self,
        users: Iterable[str],
        mechanism: Mechanism,
        *,
        key: str | None = None,
        digest: str | None = None,
        policy: str = DEFAULT,
        on_batch: Callable[[int, list[str]], None] | None = None,
    ) -> BulkResult:
        """Charge one report to each of many users, in batches; whoever does not fit is refused, the others go on.

        The users may be a stream of any length. Each batch is one transaction; with a `key`, repeating a run skips
        the batches that were charged; `digest` (hex) binds the reports to it. `on_batch(users, refused)` is called
        after each batch with how many users it had and which were refused; without it, the result names them.
        """
        result = BulkResult()
        charge = Charge.of(mechanism)
        identity = ("spend_many", charge.fingerprint, check_digest(digest), policy)
        for number, batch in enumerate(batches(users)):
            batch_key = check_batch_key(key, number)

            def work(
                transaction: Transaction, batch: list[str] = batch, batch_key: str | None = batch_key
            ) -> tuple[list[str], bool]:
                now = self._now(transaction)
                bulk = BulkCharge(transaction, charge, *self._policy(transaction, policy), now)
                return run_batch(transaction, batch, batch_key, identity, lambda: bulk.run(batch))

            refused, repeated = self._group.run(work)
            result.count(len(batch), refused, repeated)
            if on_batch is not None:
                on_batch(len(batch), refused)
            else:
                result.refused_users += refused
        return result

    def reserve(
        self,
        user: str,
        mechanism: Mechanism,
        *,
        reports: int = 1,
        expires: float = 3600,
        key: str | None = None,
        label: str | None = None,
        digest: str | None = None,
        policy: str = DEFAULT,
        strict: bool = False,
    ) -> Receipt:
        """Charge now, and decide within `expires` seconds: `commit` keeps the charge, `void` takes it back.

        What is not voided in time stays charged, for the report may be out already.
        """
        if isinstance(expires, bool) or not isinstance(expires, int | float) or not 0 < expires <= MOST_SECONDS:
            raise InvalidParameter("expires", f"seconds > 0 and <= {MOST_SECONDS}", expires)
        micros = int(expires * 1_000_000)
        operation = f"reserve {micros}"
        request = Request(self._ledger.key, user, mechanism, reports, policy, label, digest, operation, key)
        return self._charge(request, RESERVED, micros, strict)

    def commit(self, receipt: str) -> Receipt:
        """Keep what a reservation charged; an expired one answers `expired`. Raises `ReservationConflict`."""
        return self._group.run(lambda transaction: self._resolve(transaction, receipt, commit))

    def void(self, receipt: str) -> Receipt:
        """Give back what a reservation charged, while that is possible. Raises `ReservationConflict`."""
        return self._group.run(lambda transaction: self._resolve(transaction, receipt, void))

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """What `user` has spent under each limit of `policy`, in the windows that are open now."""
        with self._ledger.read() as transaction:
            _, found = self._policy(transaction, policy)
            account = transaction.account(transaction.key.hash(b"user", check_text("user", user)))
            states = limit_states(transaction, found, account, self._now(transaction))
            charges = () if account is None else charges_of(transaction, account)
            return Balance(user, found, states, _quotas(transaction, found, account), charges)

    def erase(self, user: str) -> bool:
        """Forget who an account belongs to: keys and labels go, its sum stays, and the user gets no fresh budget.

        Returns whether there was anything to erase; a user never seen gets a tombstone as well.
        """
        with self._ledger.write() as transaction:
            hashed = transaction.key.hash(b"user", check_text("user", user))
            if transaction.is_erased(hashed):
                return False
            account = transaction.account(hashed)
            transaction.erase(hashed, account, to_micros(self._now(transaction)))
        self._ledger.clear_log()
        return account is not None

    # -- looking at the ledger --------------------------------------------------------------------------

    def history(self, user: str) -> list[dict[str, Any]]:
        """The journal entries of `user`, oldest first; a reservation's `state` says what has become of it."""
        with self._ledger.read() as transaction:
            account = transaction.account(transaction.key.hash(b"user", check_text("user", user)))
            return [] if account is None else history_rows(transaction, account, self._now(transaction))

    def journal(self) -> Iterator[dict[str, Any]]:
        """Every journal entry in order, as one moment of the ledger saw it."""
        with self._ledger.read() as transaction:
            yield from journal_rows(transaction)

    def stats(self) -> dict[str, Any]:
        """Counts of what the ledger holds, and its newest link (`head`)."""
        with self._ledger.read() as transaction:
            return stats(transaction)

    def verify(self, expect: str | None = None) -> Verification:
        """Work everything out again: links, sums, costs, seals. `expect` is a `head` that was noted earlier."""
        with self._ledger.read() as transaction:
            return verify(transaction, expect)

    # -- collections ------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        """Store a collection. Raises `NameTaken` if another one has that name; the same one again is no error."""
        definition = canonical_text(collection.to_json())
        with self._ledger.write() as transaction:
            stored = transaction.collection(collection.name)
            if stored is None:
                transaction.add_collection(collection.name, collection.fingerprint, definition)
            elif stored != definition:
                raise NameTaken("collection", collection.name, "it exists already, with another definition")

    def collection(self, name: str) -> Collection:
        """The collection of that name. Raises `UnknownName`."""
        with self._ledger.read() as transaction:
            text = transaction.collection(name)
            if text is None:
                names = [json.loads(other)["name"] for other in transaction.collections()]
                raise UnknownName("collection", name, names)
        return Collection.from_json(json.loads(text))

    def collections(self) -> list[dict[str, Any]]:
        """The definitions of all collections, readable even where a mechanism's plugin is missing."""
        with self._ledger.read() as transaction:
            return [json.loads(text) for text in transaction.collections()]

    # -- inside a transaction ---------------------------------------------------------------------------

    def _charge(self, request: Request, kind: str, micros: int | None, strict: bool) -> Receipt:
        needs = request.user_hash, request.key_hash
        receipt = self._group.run(lambda transaction: self._charge_in(transaction, request, kind, micros), needs)
        if strict and receipt.status == REFUSED:
            raise BudgetExceeded(receipt)
        return receipt

    def _charge_in(self, transaction: Transaction, request: Request, kind: str, micros: int | None) -> Receipt:
        key = request.key_hash
        if request.key is not None and key is not None:
            stored = transaction.answer_to(key)
            if stored is not None:
                if stored.request != request.digest():
                    raise KeyConflict(request.key)
                return self._stored_receipt(transaction, request.user, stored.answer)
        moment = self._moment(transaction)
        assessment = self._assess(transaction, request)
        expires = None if micros is None else moment.micros + micros
        receipt = assessment.charge(kind, expires) if assessment.fits else assessment.receipt(REFUSED)
        if key is not None:
            answer = receipt.store(assessment.policy_number, moment.micros)
            transaction.store_answer(key, request.user_hash, request.digest(), answer)
        return receipt

    def _read_ahead(self, transaction: Transaction, needs: list[Needs]) -> None:
        """Read at once what several charges will look up."""
        users, keys = [user for user, _ in needs], [key for _, key in needs if key is not None]
        transaction.read_ahead(users, keys, transaction.windows(self._moment(transaction)))

    def _stored_receipt(self, transaction: Transaction, user: str, answer: str) -> Receipt:
        def policy_of(number: int) -> Policy:
            return self._policies.get(number) or Policy.from_json(json.loads(transaction.policy_definition(number)))

        return Receipt.restore(user, policy_of, answer)

    def _resolve(self, transaction: Transaction, receipt: str, how: Resolve) -> Receipt:
        now = self._now(transaction)
        entry, status, repeated = how(transaction, check_text("receipt", receipt), now)
        name = Policy.from_json(json.loads(transaction.policy_definition(entry.policy))).name
        _, policy = self._policy(transaction, name)
        return Receipt(
            status=status,
            user=None,
            policy=name,
            cost=entry.costs,
            reports=entry.reports,
            limits=limit_states(transaction, policy, entry.account, now),
            receipt=receipt,
            repeated=repeated,
        )

    def _now(self, transaction: Transaction) -> datetime:
        return self._moment(transaction).at

    def _moment(self, transaction: Transaction) -> Moment:
        """The moment of the transaction: the clock, read once in it."""
        if transaction.moment is None:
            transaction.moment = self._read_clock(transaction)
        return transaction.moment

    def _read_clock(self, transaction: Transaction) -> Moment:
        """The clock, never before the newest entry; refused where it is far behind."""
        reading = self._clock()
        now = reading if isinstance(reading, datetime) else datetime.fromtimestamp(reading, UTC)
        moment = Moment(now.replace(tzinfo=UTC) if now.tzinfo is None else now)
        last = transaction.last_entry_at()
        if last is None or moment.micros >= last:
            return moment
        newest = from_micros(last)
        if last - moment.micros > CLOCK_TOLERANCE_MICROS:
            raise LedgerError(
                self._ledger.path,
                f"expected a clock at most 5 s behind its newest entry of {newest}; found {moment.at};"
                " nothing was charged",
            )
        return Moment(newest)

    def _policy(self, transaction: Transaction, name: str) -> tuple[int, Policy]:
        stored = transaction.policy(name)
        if stored is None:
            names = [json.loads(text)["name"] for text in transaction.policies()]
            hint = f"Set one: ldp-budget policy set {name} --limit lifetime=EPSILON"
            raise UnknownName("policy", name, names, hint)
        number, definition = stored
        # A version never changes, so it is read once.
        if number not in self._policies:
            self._policies[number] = Policy.from_json(json.loads(definition))
        return number, self._policies[number]

    def _assess(self, transaction: Transaction, request: Request) -> Assessment:
        number, policy = self._policy(transaction, request.policy)
        return Assessment(transaction, request, number, policy, self._moment(transaction))


def _quotas(transaction: Transaction, policy: Policy, account: int | None) -> tuple[dict[str, Any], ...]:
    """How much of each quota of the policy's plan is used."""
    plan = policy.plan
    if plan is None:
        return ()
    rows = []
    for promise, count in plan.quotas:
        used = transaction.quota_used(account, plan.identity, promise)
        rows.append({"guarantee": json.loads(promise), "quota": count, "used": used, "left": count - used})
    return tuple(rows)
