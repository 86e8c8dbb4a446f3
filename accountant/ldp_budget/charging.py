"""One request held against one policy, inside one transaction: does it fit, and what is written if it does."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from .amounts import LARGEST, Costs
from .errors import InvalidParameter
from .guarantees import ANY_INPUTS, Guarantee, Memoised
from .ledger import Entry, Transaction
from .policy import ANY_RELATION, Limit, Policy, canonical_text
from .receipts import QUOTED, REFUSED, LimitState, Receipt
from .windows import LIFETIME, Moment, Window, window_at

if TYPE_CHECKING:
    from .base import Mechanism

MOST_REPORTS = 10**9
PLAN = "plan"
ERASED = "this user was erased, and gets no fresh budget"


class Request:
    """What somebody asks to charge, checked. Raises `InvalidParameter`."""

    def __init__(
        self,
        user: str,
        mechanism: Mechanism,
        reports: int,
        policy: str,
        label: str | None = None,
        digest: str | None = None,
        operation: str = "spend",
    ) -> None:
        if isinstance(reports, bool) or not isinstance(reports, int) or not 1 <= reports <= MOST_REPORTS:
            raise InvalidParameter("reports", f"a whole number from 1 to {MOST_REPORTS}", reports)
        self.user = check_text("user", user)
        self.reports = reports
        self.policy = policy
        self.label = None if label is None else check_text("label", label)
        self.report_digest = check_digest(digest)
        self.operation = operation

        self.charge = Charge.of(mechanism)

    def digest(self, transaction: Transaction) -> bytes:
        """Everything that makes two requests the same request, as a keyed hash."""
        parts = (self.operation, self.user, self.charge.fingerprint, self.reports, self.label, self.report_digest)
        return transaction.key.hash(b"request", repr((*parts, self.policy)))


class Charge:
    """A mechanism as the ledger stores it: self-contained, with the cost of one report."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.guarantee: Guarantee = mechanism.guarantee
        self.fingerprint = mechanism.fingerprint
        self.mechanism = mechanism.name
        self.declared = canonical_text(mechanism.declared)
        self.promise = canonical_text(self.guarantee.to_json())
        self.cost = self.guarantee.costs()

    @classmethod
    def of(cls, mechanism: Mechanism) -> Charge:
        """The charge of a mechanism; worked out once for each mechanism, which never changes."""
        known = mechanism.__dict__.get("_charge")
        if known is None:
            known = mechanism.__dict__["_charge"] = cls(mechanism)
        assert isinstance(known, cls)
        return known

    def cost_of(self, reports: int, labelled: bool, done: int) -> Costs:
        """What `reports` reports cost after `done` reports of the same label; without one, each is a new value."""
        if labelled and isinstance(self.guarantee, Memoised):
            return self.guarantee.step(done, reports)
        return self.cost.times(reports)

    def store(self, transaction: Transaction) -> int:
        """The number of this charge in the ledger."""
        return transaction.charge(self.fingerprint, self.mechanism, self.declared, self.promise, self.cost)


class Assessment:
    """A request held against a policy at one moment."""

    def __init__(
        self, transaction: Transaction, request: Request, policy_number: int, policy: Policy, moment: Moment
    ) -> None:
        self._transaction = transaction
        self._request = request
        self._charge = request.charge
        self.policy_number = policy_number
        self._policy = policy
        self._moment = moment
        self.user = transaction.key.hash(b"user", request.user)
        self._account = transaction.account(self.user)
        self._labelled = request.label is not None and isinstance(self._charge.guarantee, Memoised)
        self._label = transaction.key.hash(b"label", request.label) if request.label is not None else None
        # Every window that is kept, whether this policy limits it or not: a charge counts in all of them.
        periods = transaction.periods()
        self._spent = {period: transaction.spent(self._account, moment.window(period).code) for period in periods}
        self._done = dict.fromkeys(periods, 0)
        if self._labelled:
            self._done = {period: self._count_done(moment.window(period)) for period in periods}
        self._costs = {period: self._cost(period, request.reports) for period in periods}
        self._quota_left = self._count_quota()
        self.refusal = self._refusal()
        self.binding = self._binding()

    # -- does it fit? -----------------------------------------------------------------------------------

    def _refusal(self) -> str:
        """Why no amount of budget would do; empty if it is a matter of budget."""
        if self._account is None and self._transaction.is_erased(self.user):
            return ERASED
        relation = self._charge.guarantee.relation
        if self._policy.relation == ANY_RELATION and relation != ANY_INPUTS:
            return f"policy {self._policy.name} admits only promises for {ANY_INPUTS}; this one is for {relation}"
        if self._policy.plan is not None and self._policy.plan.count(self._charge.promise) == 0:
            return f"the plan of policy {self._policy.name} has no such charge"
        return ""

    def _binding(self) -> tuple[str, ...]:
        """The periods whose limit it does not fit, and `plan` where a quota is used up."""
        spent, costs = self._spent, self._costs
        over = [
            limit.period for limit in self._policy.limits if not limit.fits(spent[limit.period], costs[limit.period])
        ]
        if self._quota_left < self._request.reports:
            over.append(PLAN)
        return tuple(dict.fromkeys(over))

    @property
    def fits(self) -> bool:
        return not self.refusal and not self.binding

    def affordable(self) -> int:
        """How many such reports fit."""
        if self.refusal:
            return 0
        counts = [self._affordable_under(limit) for limit in self._policy.limits]
        return min([*counts, self._quota_left])

    def _affordable_under(self, limit: Limit) -> int:
        period, spent = limit.period, self._spent[limit.period]
        if not self._labelled:
            return limit.affordable(spent, self._charge.cost)
        low, high = 0, 1
        while high < LARGEST and limit.fits(spent, self._cost(period, high)):
            low, high = high, 2 * high
        while high - low > 1 and low < LARGEST:
            middle = (low + high) // 2
            fits = limit.fits(spent, self._cost(period, middle))
            low, high = (middle, high) if fits else (low, middle)
        return min(low, LARGEST)

    def _count_quota(self) -> int:
        plan = self._policy.plan
        if plan is None:
            return LARGEST
        promise = self._charge.promise
        return plan.count(promise) - self._transaction.quota_used(self._account, plan.identity, promise)

    def _cost(self, period: str, reports: int) -> Costs:
        """What the reports cost in a period's window: labelled ones go on along the window's own curve."""
        return self._charge.cost_of(reports, self._labelled, self._done[period])

    def _count_done(self, window: Window) -> int:
        """How many reports of the label were charged in a window."""
        if self._label is None or self._account is None:
            return 0
        charge = self._transaction.known_charge(self._charge.fingerprint, self._charge.promise)
        return self._transaction.label_reports(self._account, self._label, charge, window.code)

    def _limit_states(self) -> tuple[LimitState, ...]:
        return tuple(
            [
                LimitState(limit, self._spent[limit.period], self._moment.window(limit.period).ends)
                for limit in self._policy.limits
            ]
        )

    # -- the answer, and what is written ----------------------------------------------------------------

    def receipt(self, status: str, entry: int | None = None) -> Receipt:
        """The answer, with the limits as they are now."""
        undecided = status in (REFUSED, QUOTED)
        return Receipt(
            status=status,
            user=self._request.user,
            policy=self._policy.name,
            cost=self._costs[LIFETIME],
            reports=self._request.reports,
            limits=self._limit_states(),
            binding=self.binding if undecided else (),
            affordable_reports=self.affordable(),
            receipt=None if entry is None else str(entry),
            why=self.refusal if undecided else "",
        )

    def charge(self, kind: str, expires: int | None = None) -> Receipt:
        """Write the sums of every window that is kept, the label's count, the quota and the journal entry."""
        transaction, request = self._transaction, self._request
        charge = self._charge.store(transaction)
        account = self._account if self._account is not None else transaction.open_account(self.user)
        for period, spent in self._spent.items():
            window = self._moment.window(period).code
            self._spent[period] = total = spent.plus(self._costs[period])
            transaction.set_spent(account, window, total)
            if self._labelled and self._label is not None:
                self._done[period] += request.reports
                transaction.set_label_reports(account, self._label, charge, window, self._done[period])
        self._use_quota(account)
        entry = Entry(
            number=0,
            at=self._moment.micros,
            kind=kind,
            account=account,
            charge=charge,
            policy=self.policy_number,
            reports=request.reports,
            costs=self._costs[LIFETIME],
            labelled=self._labelled,
            expires=expires,
        )
        number = transaction.append(entry, self._label if self._labelled else None)
        return self.receipt(kind, number)

    def _use_quota(self, account: int) -> None:
        plan = self._policy.plan
        if plan is not None:
            promise = self._charge.promise
            self._quota_left -= self._request.reports
            self._transaction.set_quota_used(account, plan.identity, promise, plan.count(promise) - self._quota_left)


def limit_states(
    transaction: Transaction, policy: Policy, account: int | None, now: datetime
) -> tuple[LimitState, ...]:
    """What an account has spent under each limit of a policy, in the windows that are open."""
    return tuple(
        LimitState.at(now, limit, transaction.spent(account, window_at(limit.period, now).code))
        for limit in policy.limits
    )


def check_text(option: str, text: object) -> str:
    """`text`, if it is a text of at least one character; raises `InvalidParameter`."""
    if not isinstance(text, str) or not text:
        raise InvalidParameter(option, "a text of at least one character", repr(text))
    return text


def check_digest(digest: str | None) -> str | None:
    if digest is None:
        return None
    try:
        return bytes.fromhex(digest).hex()
    except (TypeError, ValueError):
        raise InvalidParameter("digest", "hexadecimal digits, two a byte", repr(digest)) from None
