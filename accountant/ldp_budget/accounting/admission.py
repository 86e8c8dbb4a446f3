"""The admission decision: does one charge request fit one policy, and how much budget does it leave?

Everything here is a pure function of the request, the policy and the account. Nothing reads or writes a ledger. The
first part applies a policy to a charge: its limits, its quota, and objections that no budget can cure. The second
part decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..guarantees import ANY_INPUTS, Memoised
from ..guarantees.fixed_point import LARGEST
from ..guarantees.guarantees import NO, is_memoised
from ..ledger.calendar import LIFETIME, is_lifetime, share_in
from ..ledger.snapshot import Account
from .policies import ANY_RELATION
from .receipts import PLAN, QUOTED, REFUSED, LimitState, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..guarantees import Guarantee
    from ..ledger.calendar import Window
    from ..ledger.snapshot import Price
    from .charge_request import Charge, Request
    from .limits import Limit
    from .policies import Policy


# -- policy applied to a charge ---------------------------------------------------------------------------------


class ApplicablePolicy(NamedTuple):
    """A policy as it applies to one charge, through one of its sub-limits or through none.

    `limits` are all limits that the charge must fit. `share` is the number of the sub-limit, 0 for none. `quota` is
    the number of such reports in the plan, None without a plan. `crowded` says why the plan cannot be combined with
    other plans that the user has used. `why` says why the policy admits no such charge at any budget. Both are empty
    if only the budget decides. `number` is the number of the policy's version in the ledger.
    """

    policy: Policy
    limits: tuple[Limit, ...]
    share: int = 0
    quota: int | None = None
    crowded: str = ""
    why: str = ""
    number: int = 0

    @classmethod
    def of(
        cls, policy: Policy, charge: Charge, share: str | None = None, number: int = 0, *, labelled: bool = False
    ) -> ApplicablePolicy:
        """Apply a policy to a charge that is made through the sub-limit with this name, or through none."""
        found = None if share is None else policy.share(share)
        quota = None if policy.plan is None else policy.plan.count(charge.promise)
        limits = policy.limits_for(share)
        why = _objection(policy, charge, quota) or lacks_label(policy, limits, charge.guarantee, labelled=labelled)
        if share is not None and found is None:
            why = f"policy {policy.name} has no share {share}, to which this key is bound"
        held = 0 if found is None else found.number
        return cls(policy, limits, held, quota, why=why, number=number)

    def beside(self, others: tuple[Price, ...]) -> ApplicablePolicy:
        """Apply it to a user who has used quotas of other plans, given the full prices of those plans."""
        crowded = _crowded(self.policy, others) if others else ""
        return self._replace(crowded=crowded, why=self.why or crowded)


def _objection(policy: Policy, charge: Charge, quota: int | None) -> str:
    """Explain why a policy admits no such charge at any budget; empty if it does."""
    if policy.checked and charge.checked == NO:
        return f"policy {policy.name} admits only checked mechanisms; nobody has checked {charge.mechanism} here"
    return inadmissible(policy, charge.guarantee, quota)


def inadmissible(policy: Policy, guarantee: Guarantee, quota: int | None) -> str:
    """Explain an objection that depends only on the policy and the guarantee; empty if there is none."""
    relation = guarantee.relation
    if policy.relation == ANY_RELATION and relation != ANY_INPUTS:
        return f"policy {policy.name} admits only promises for {ANY_INPUTS}; this one is for {relation}"
    return f"the plan of policy {policy.name} has no such charge" if quota == 0 else ""


def lacks_label(policy: Policy, limits: Sequence[Limit], guarantee: Guarantee, *, labelled: bool) -> str:
    """Explain why a memoized report needs a label under these limits; empty if it needs none.

    Without a label the ledger cannot know which earlier reports repeated the same value. So a window that does not
    contain all of them could be charged too little, see `guarantees.costs`. The lifetime of an account contains them
    all.
    """
    if (labelled and isinstance(guarantee, Memoised)) or not is_memoised(guarantee):
        return ""
    partial = next((each for each in limits if not is_lifetime(each.gauge) or share_in(each.gauge)), None)
    if partial is None:
        return ""
    return (
        f"the report is memoised and has no label, and limit {partial} of policy {policy.name} does not count all"
        " earlier reports. Give the label of its value (--label), and a new label for a new value"
    )


def _crowded(policy: Policy, others: tuple[Price, ...]) -> str:
    """Explain why the policy's plan cannot be combined with other plans; empty if it can.

    The price of a plan holds for that plan alone. So a user of several plans pays the full price of each, and the sum
    needs a lifetime limit. A policy without a plan has no such rule. Charges under a plan also count in the sums of
    the account, with at least their true cost. So a plain lifetime limit includes them already.
    """
    if not policy.lifetimes:
        return f"this user has used another plan, and policy {policy.name} has no lifetime limit that both fit in"
    epsilon, delta = policy.planned(others)
    limit = policy.overdrawn_by((epsilon, delta))
    if limit is None:
        return ""
    return (
        f"this plan and those the user has used cost together (ε = {epsilon:.12g}, δ = {delta:.12g}),"
        f" and the lifetime limit of policy {policy.name} is (ε = {limit.epsilon:.12g}, δ = {limit.delta:.12g})"
    )


# -- decision ----------------------------------------------------------------------------------------------------

ERASED_USER = "this user was erased, and gets no fresh budget"


def decide(account: Account, request: Request, terms: ApplicablePolicy, windows: Mapping[str, Window]) -> Decision:
    """Decide if `request` fits on top of `account` in these windows. The result depends on the arguments only."""
    return Decision(account, request, terms, windows)


class Decision:
    """The decision about one request.

    `costs` are the amounts that the request adds in each window in which it counts. `why` is the reason why no budget
    would help. `exceeded` are the limits that the request does not fit. `binding` has their names, and `plan` if a
    quota is used up or the user's plans together cost too much.
    """

    def __init__(
        self, account: Account, request: Request, terms: ApplicablePolicy, windows: Mapping[str, Window]
    ) -> None:
        self.account = account
        self.request = request
        self.terms = terms
        self._windows = windows
        self.costs = costs = request.costs_in(windows, terms.share, account)
        self.why = ERASED_USER if account.erased else terms.why
        spent = account.spent
        self.exceeded = [each for each in terms.limits if not each.fits(spent[each.gauge], costs[each.gauge])]
        over = [limit.label for limit in self.exceeded]
        if terms.crowded or _left(terms, account) < request.reports:
            over.append(PLAN)
        self.binding = tuple(dict.fromkeys(over)) if over else ()
        self._after: Account | None = None

    @property
    def fits(self) -> bool:
        """True if the request is granted."""
        return not self.why and not self.binding

    @property
    def after(self) -> Account:
        """The account after the request is charged."""
        if self._after is None:
            account, reports = self.account, self.request.reports
            before, reported = account.spent, account.reported
            spent = {gauge: before[gauge].plus(cost) for gauge, cost in self.costs.items()}
            done = {period: count + reports for period, count in reported.items()} if reported else reported
            self._after = account._replace(spent=spent, reported=done, quota_used=account.quota_used + reports)
        return self._after

    def affordable(self, account: Account) -> int:
        """Return the number of such reports that fit on top of `account`."""
        if self.why:
            return 0
        charge, curve = self.request.charge, self.request.curve
        counts = [_left(self.terms, account)]
        for limit in self.terms.limits:
            gauge = limit.gauge
            spent = account.spent[gauge]
            if curve is None:
                counts.append(limit.affordable(spent, charge.cost_under(self._windows[gauge].measure)))
            else:
                earlier, done = account.label_count(gauge, self._windows[gauge])
                counts.append(limit.affordable_along(curve, done, spent, earlier=earlier))
        return min(counts)

    def receipt(self, status: str, receipt: str | None = None) -> Receipt:
        """Return the receipt, with the limits before the charge for a refusal or a quote, else after it."""
        undecided = status in (REFUSED, QUOTED)
        account = self.account if undecided else self.after
        spent, windows = account.spent, self._windows
        return Receipt(
            status,
            self.request.user,
            self.terms.policy.name,
            self.costs[LIFETIME],
            self.request.reports,
            tuple([LimitState(each, spent[each.gauge], windows[each.gauge].ends) for each in self.terms.limits]),
            self.binding if undecided else (),
            self.affordable(account),
            receipt,
            why=self.why if undecided else "",
            checked=self.request.charge.checked,
        )


def _left(terms: ApplicablePolicy, account: Account) -> int:
    """Return the number of reports that the plan has left; `LARGEST` without a plan."""
    return LARGEST if terms.quota is None else terms.quota - account.quota_used
