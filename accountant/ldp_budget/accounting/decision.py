"""One request held against one policy, inside one transaction: does it fit, and what is written if it does."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ..catalogue import certificates
from ..errors import InvalidParameter
from ..guarantees import ANY_INPUTS, Guarantee, Memoised
from ..guarantees.amounts import LARGEST
from ..guarantees.evidence import NO
from ..ledger import Entry, Transaction
from ..ledger.windows import LIFETIME, Moment, Window, window_at
from .limits import ANY_RELATION, Limit, PlanTerms, Policy, canonical_text
from .receipts import QUOTED, REFUSED, LimitState, Receipt

if TYPE_CHECKING:
    from ..authoring.base import Mechanism
    from ..ledger.keys import Key

MOST_REPORTS = 10**9
PLAN = "plan"
ERASED = "this user was erased, and gets no fresh budget"


class Request:
    """What somebody asks to charge, checked. Raises `InvalidParameter`."""

    def __init__(
        self,
        secret: Key,
        user: str,
        mechanism: Mechanism,
        reports: int,
        policy: str,
        label: str | None = None,
        digest: str | None = None,
        operation: str = "spend",
        key: str | None = None,
    ) -> None:
        if isinstance(reports, bool) or not isinstance(reports, int) or not 1 <= reports <= MOST_REPORTS:
            raise InvalidParameter("reports", f"a whole number from 1 to {MOST_REPORTS}", reports)
        self.user = check_text("user", user)
        self.reports = reports
        self.policy = policy
        self.label = None if label is None else check_text("label", label)
        self.report_digest = check_digest(digest)
        self.operation = operation

        self.key = None if key is None else check_text("key", key)
        self.charge = Charge.of(mechanism)
        # The user and the key as the ledger knows them.
        self._secret = secret
        self.user_hash = secret.hash(b"user", user)
        self.key_hash = None if key is None else secret.hash(b"key", key)

    def digest(self) -> bytes:
        """Everything that makes two requests the same request, as a keyed hash."""
        parts = (self.operation, self.user, self.charge.fingerprint, self.reports, self.label, self.report_digest)
        return self._secret.hash(b"request", ascii((*parts, self.policy)))


class Charge:
    """A mechanism as the ledger stores it: self-contained, with the cost of one report."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.guarantee: Guarantee = mechanism.guarantee
        self.fingerprint = mechanism.fingerprint
        self.mechanism = mechanism.name
        self.declared = canonical_text(mechanism.declared)
        self.promise = canonical_text(self.guarantee.to_json())
        self.cost = self.guarantee.costs()
        self._kind = type(mechanism)

    @property
    def checked(self) -> str:
        """How the mechanism's promise was checked, see `certificates`."""
        return certificates.checked(self._kind)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Charge:
        """The charge of a mechanism; worked out once for each mechanism, which never changes."""
        known = mechanism.__dict__.get("_charge")
        if known is None:
            known = mechanism.__dict__["_charge"] = cls(mechanism)
        assert isinstance(known, cls)
        return known

    def objection(self, policy: Policy) -> str:
        """Why a policy admits no such charge at all, whatever it costs; empty if it does."""
        relation = self.guarantee.relation
        if policy.relation == ANY_RELATION and relation != ANY_INPUTS:
            return f"policy {policy.name} admits only promises for {ANY_INPUTS}; this one is for {relation}"
        if policy.checked and self.checked == NO:
            return f"policy {policy.name} admits only checked mechanisms; nobody has checked {self.mechanism} here"
        return ""

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
        self._charge = charge = request.charge
        self.policy_number = policy_number
        self._policy = policy
        self._moment = moment
        self.user = request.user_hash
        # Every window that is kept, whether this policy limits it or not: a charge counts in all of them.
        self._windows = transaction.windows(moment)
        self._account, self._spent = transaction.standing(self.user, self._windows)
        # Labelled reports go on along their curve, in each window along its own; without a label each is a new value.
        self._curve: Memoised | None = None
        self._label: bytes | None = None
        self._costs = dict.fromkeys(self._windows, charge.cost.times(request.reports))
        if request.label is not None and isinstance(charge.guarantee, Memoised):
            self._curve = charge.guarantee
            self._label = transaction.key.hash(b"label", request.label)
            self._done = {period: self._count_done(window) for period, window in self._windows.items()}
            self._costs = {period: self._curve.step(done, request.reports) for period, done in self._done.items()}
        self._quota_left = LARGEST if policy.plan is None else self._count_quota(policy.plan)
        self.refusal = self._refusal()
        self.binding = self._binding()

    # -- does it fit? -----------------------------------------------------------------------------------

    def _refusal(self) -> str:
        """Why no amount of budget would do; empty if it is a matter of budget."""
        if self._account is None and self._transaction.is_erased(self.user):
            return ERASED
        objection = self._charge.objection(self._policy)
        if objection:
            return objection
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
        return tuple(dict.fromkeys(over)) if over else ()

    @property
    def fits(self) -> bool:
        return not self.refusal and not self.binding

    def affordable(self) -> int:
        """How many such reports fit."""
        if self.refusal:
            return 0
        spent, cost = self._spent, self._charge.cost
        if self._curve is not None:
            counts = [self._affordable_along(self._curve, limit) for limit in self._policy.limits]
        else:
            counts = [limit.affordable(spent[limit.period], cost) for limit in self._policy.limits]
        return min([*counts, self._quota_left])

    def _affordable_along(self, curve: Memoised, limit: Limit) -> int:
        done, spent = self._done[limit.period], self._spent[limit.period]
        low, high = 0, 1
        while high < LARGEST and limit.fits(spent, curve.step(done, high)):
            low, high = high, 2 * high
        while high - low > 1 and low < LARGEST:
            middle = (low + high) // 2
            fits = limit.fits(spent, curve.step(done, middle))
            low, high = (middle, high) if fits else (low, middle)
        return min(low, LARGEST)

    def _count_quota(self, plan: PlanTerms) -> int:
        promise = self._charge.promise
        return plan.count(promise) - self._transaction.quota_used(self._account, plan.identity, promise)

    def _count_done(self, window: Window) -> int:
        """How many reports of the label were charged in a window."""
        if self._label is None or self._account is None:
            return 0
        charge = self._transaction.known_charge(self._charge.fingerprint, self._charge.promise)
        return self._transaction.label_reports(self._account, self._label, charge, window.code)

    def _limit_states(self) -> tuple[LimitState, ...]:
        spent, windows = self._spent, self._windows
        return tuple(
            [LimitState(limit, spent[limit.period], windows[limit.period].ends) for limit in self._policy.limits]
        )

    # -- the answer, and what is written ----------------------------------------------------------------

    def receipt(self, status: str, entry: int | None = None) -> Receipt:
        """The answer, with the limits as they are now."""
        undecided = status in (REFUSED, QUOTED)
        return Receipt(
            status,
            self._request.user,
            self._policy.name,
            self._costs[LIFETIME],
            self._request.reports,
            self._limit_states(),
            self.binding if undecided else (),
            self.affordable(),
            None if entry is None else str(entry),
            why=self.refusal if undecided else "",
            checked=self._charge.checked,
        )

    def charge(self, kind: str, expires: int | None = None) -> Receipt:
        """Write the sums of every window that is kept, the label's count, the quota and the journal entry."""
        transaction, request = self._transaction, self._request
        charge = self._charge.store(transaction)
        account = self._account if self._account is not None else transaction.open_account(self.user)
        for period, spent in self._spent.items():
            window = self._windows[period].code
            self._spent[period] = total = spent.plus(self._costs[period])
            transaction.set_spent(account, window, total)
            if self._label is not None:
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
            labelled=self._label is not None,
            expires=expires,
        )
        return self.receipt(kind, transaction.append(entry, self._label))

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
