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

from .amounts import Costs
from .collection import Collection
from .errors import BudgetExceeded, InvalidParameter, KeyConflict, LedgerError, NameTaken, UnknownName
from .guarantees import ANY_INPUTS
from .ledger import SqliteLedger, Transaction
from .policy import ANY_RELATION, DEFAULT, Limit, Policy, as_limits
from .receipts import QUOTED, REFUSED, SPENT, Balance, LimitState, Receipt
from .windows import from_micros, to_micros, window_at

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from .base import Mechanism

# A clock up to this far behind the newest entry counts as equal to it; further behind, nothing is trusted.
CLOCK_TOLERANCE_MICROS = 5_000_000
MOST_REPORTS = 10**9


class Accountant:
    """The privacy budgets of the users of one ledger.

    `path`: a file, made with its key if neither exists; or ":memory:". `clock`: a function that returns now, as an
    aware datetime or in seconds since 1970; for tests. May be shared by threads, and a file by processes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        clock: Callable[[], datetime | float] = time.time,
    ) -> None:
        self._ledger = SqliteLedger(path, create=create)
        self._clock = clock

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
    ) -> Policy:
        """Store a policy, as a new version where there is one of that name; what was spent stays spent.

        Raises `InvalidParameter` where the policy makes no sense, or where it changes the rule or δ of a limit
        that was charged already.
        """
        policy = Policy(name, as_limits(limits), 1, relation, unbounded)
        with self._ledger.write() as transaction:
            now = self._now(transaction)
            stored = transaction.policy(name)
            if stored is not None:
                # Not the newest version alone: a limit that was dropped does not come back with another rule.
                for definition in transaction.charged_versions(name):
                    _check_successor(Policy.from_json(json.loads(definition)), policy)
                version = Policy.from_json(json.loads(stored[1])).version + 1
                policy = Policy(name, policy.limits, version, relation, unbounded)
            kept = transaction.periods()
            for period in policy.periods:
                if period not in kept:
                    window = window_at(period, now)
                    transaction.keep_period(period, window.code, to_micros(window.starts))
            transaction.add_policy(name, policy.version, to_micros(now), _json(policy.to_json()))
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
        request = _Request(user, mechanism, reports, policy, label)
        with self._ledger.read() as transaction:
            return self._assess(transaction, request, self._now(transaction)).receipt(QUOTED)

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
        request it raises `KeyConflict`. `digest` (hex) binds the report itself to the key. With `strict`, a
        refusal raises `BudgetExceeded`.
        """
        request = _Request(user, mechanism, reports, policy, label, digest)
        with self._ledger.write() as transaction:
            receipt = self._answered(transaction, request, key)
            if receipt is None:
                assessment = self._assess(transaction, request, self._now(transaction))
                receipt = assessment.charge() if assessment.fits else assessment.receipt(REFUSED)
                if key is not None:
                    self._remember(transaction, request, key, receipt)
        if strict and receipt.status == REFUSED:
            raise BudgetExceeded(receipt)
        return receipt

    def balance(self, user: str, policy: str = DEFAULT) -> Balance:
        """What `user` has spent under each limit of `policy`, in the windows that are open now."""
        with self._ledger.read() as transaction:
            _, found = self._policy(transaction, policy)
            account = transaction.account(transaction.key.hash("user", _check_user(user)))
            now = self._now(transaction)
            return Balance(user, found, tuple(_states(transaction, found, account, now)))

    # -- collections ------------------------------------------------------------------------------------

    def add_collection(self, collection: Collection) -> None:
        """Store a collection. Raises `NameTaken` if another one has that name; the same one again is no error."""
        definition = _json(collection.to_json())
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

    def _now(self, transaction: Transaction) -> datetime:
        """The clock, never before the newest entry; refused where it is far behind."""
        reading = self._clock()
        now = reading if isinstance(reading, datetime) else datetime.fromtimestamp(reading, UTC)
        now = now.replace(tzinfo=UTC) if now.tzinfo is None else now
        last = transaction.last_entry_at()
        if last is None or to_micros(now) >= last:
            return now
        if last - to_micros(now) > CLOCK_TOLERANCE_MICROS:
            raise LedgerError(
                self._ledger.path,
                f"the clock says {now}, before its newest entry of {from_micros(last)}; nothing was charged",
            )
        return from_micros(last)

    def _policy(self, transaction: Transaction, name: str) -> tuple[int, Policy]:
        stored = transaction.policy(name)
        if stored is None:
            names = [json.loads(text)["name"] for text in transaction.policies()]
            hint = f"Set one: ldp-budget policy set {name} --limit lifetime=EPSILON"
            raise UnknownName("policy", name, names, hint)
        return stored[0], Policy.from_json(json.loads(stored[1]))

    def _assess(self, transaction: Transaction, request: _Request, now: datetime) -> _Assessment:
        number, policy = self._policy(transaction, request.policy)
        return _Assessment(transaction, request, number, policy, now)

    def _answered(self, transaction: Transaction, request: _Request, key: str | None) -> Receipt | None:
        if key is None:
            return None
        stored = transaction.answer_to(transaction.key.hash("key", _check_key(key)))
        if stored is None:
            return None
        if stored.request != request.digest_of(transaction):
            raise KeyConflict(key)
        data = json.loads(stored.answer)
        data.update(cost=Costs(*data["cost"]), limits=tuple(data["limits"]), binding=tuple(data["binding"]))
        return Receipt(user=request.user, **data).repeat()

    def _remember(self, transaction: Transaction, request: _Request, key: str, receipt: Receipt) -> None:
        # The user's name stays out of the ledger; it comes back with the retry.
        answer = {name: value for name, value in vars(receipt).items() if name not in ("user", "repeated")}
        transaction.store_answer(
            transaction.key.hash("key", key),
            transaction.key.hash("user", request.user),
            request.digest_of(transaction),
            _json(answer),
        )


class _Request:
    """What somebody asks to charge, checked."""

    def __init__(
        self,
        user: str,
        mechanism: Mechanism,
        reports: int,
        policy: str,
        label: str | None = None,
        digest: str | None = None,
    ) -> None:
        if isinstance(reports, bool) or not isinstance(reports, int) or not 1 <= reports <= MOST_REPORTS:
            raise InvalidParameter("reports", f"a whole number from 1 to {MOST_REPORTS}", reports)
        self.user = _check_user(user)
        self.mechanism = mechanism
        self.guarantee = mechanism.guarantee
        self.reports = reports
        self.policy = policy
        self.label = label
        self.digest = _check_digest(digest)
        self.cost_of_one = self.guarantee.costs()
        self.cost = self.cost_of_one.times(reports)

    def digest_of(self, transaction: Transaction) -> bytes:
        """Everything that makes two requests the same request, as a keyed hash."""
        parts = [self.user, self.mechanism.fingerprint, self.reports, self.label, self.digest, self.policy]
        return transaction.key.hash("request", _json(parts))


class _Assessment:
    """A request held against a policy, in one transaction."""

    def __init__(
        self, transaction: Transaction, request: _Request, policy_number: int, policy: Policy, now: datetime
    ) -> None:
        self._transaction = transaction
        self._request = request
        self._policy_number = policy_number
        self._policy = policy
        self._now = now
        self._user = transaction.key.hash("user", request.user)
        self._account = transaction.account(self._user)
        self._states = list(_states(transaction, policy, self._account, now))

    @property
    def admitted(self) -> bool:
        """Whether the policy takes guarantees of this relation at all."""
        return self._policy.relation != ANY_RELATION or self._request.guarantee.relation == ANY_INPUTS

    @property
    def binding(self) -> tuple[str, ...]:
        cost = self._request.cost
        return tuple(state.limit.period for state in self._states if not state.limit.fits(state.spent, cost))

    @property
    def fits(self) -> bool:
        return self.admitted and not self.binding

    def receipt(self, status: str, entry: int | None = None) -> Receipt:
        request = self._request
        counts = [state.limit.affordable(state.spent, request.cost_of_one) for state in self._states]
        return Receipt(
            status=status,
            user=request.user,
            policy=self._policy.name,
            cost=request.cost,
            reports=request.reports,
            limits=tuple(state.to_json() for state in self._states),
            binding=self.binding if status != SPENT else (),
            affordable_reports=min(counts) if self.admitted else 0,
            receipt=None if entry is None else str(entry),
        )

    def charge(self) -> Receipt:
        """Write the sums of every window that is kept, and the journal entry."""
        transaction, request = self._transaction, self._request
        account = self._account if self._account is not None else transaction.open_account(self._user)
        for period in transaction.periods():
            window = window_at(period, self._now).code
            transaction.set_spent(account, window, transaction.spent(account, window).plus(request.cost))
        mechanism = request.mechanism
        charge = transaction.charge(
            mechanism.fingerprint,
            mechanism.name,
            _json(mechanism.declared),
            _json(request.guarantee.to_json()),
            request.cost_of_one,
        )
        entry = transaction.journal(
            to_micros(self._now), account, charge, self._policy_number, request.reports, request.cost
        )
        self._states = list(_states(transaction, self._policy, account, self._now))
        return self.receipt(SPENT, entry)


def _states(transaction: Transaction, policy: Policy, account: int | None, now: datetime) -> Any:
    for limit in policy.limits:
        window = window_at(limit.period, now)
        yield LimitState(limit, transaction.spent(account, window.code), window.ends)


def _check_successor(previous: Policy, policy: Policy) -> None:
    """The rule and δ of a limit never change once charged: the sums of one rule mean nothing to another."""
    rules = {(limit.period, limit.rule, limit.delta) for limit in policy.limits}
    for limit in previous.limits:
        same_period = [other for other in rules if other[0] == limit.period]
        if same_period and (limit.period, limit.rule, limit.delta) not in rules:
            raise InvalidParameter(
                "limit",
                f"rule {limit.rule} and delta {limit.delta} for {limit.period}, which was charged already",
                ", ".join(f"rule {rule} and delta {delta}" for _, rule, delta in same_period),
            )


def _check_user(user: str) -> str:
    if not isinstance(user, str) or not user:
        raise InvalidParameter("user", "a text of at least one character", repr(user))
    return user


def _check_key(key: str) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidParameter("key", "a text of at least one character", repr(key))
    return key


def _check_digest(digest: str | None) -> str | None:
    if digest is None:
        return None
    try:
        return bytes.fromhex(digest).hex()
    except (TypeError, ValueError):
        raise InvalidParameter("digest", "hexadecimal digits, two a byte", repr(digest)) from None


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
