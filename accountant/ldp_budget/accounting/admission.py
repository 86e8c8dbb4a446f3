"""What a policy asks of a charge: the limits that it must fit, its quota, and what no budget would help.

One request held against one policy: does it fit, and what does it leave? Nothing here touches a ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..guarantees import ANY_INPUTS, Copies, Memoised
from ..guarantees.fixed_point import LARGEST
from ..guarantees.guarantees import NO
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


class ApplicablePolicy(NamedTuple):
    """A policy as it binds one who charges something through a share of it, or through none.

    `limits` are all that the charge must fit, and `share` is the number of that share, 0 of none. `quota` is how many
    reports of it the plan holds, None without a plan. `crowded` says why the plan cannot be used beside those that
    the user has used, and `why` why nothing of it can be charged, whatever is left; both are empty where that is a
    matter of budget. `number` is that of the policy's version in the ledger.
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
        """The terms of a policy for a charge that is made through the share of that name, or through none."""
        found = None if share is None else policy.share(share)
        quota = None if policy.plan is None else policy.plan.count(charge.promise)
        limits = policy.limits_for(share)
        why = _objection(policy, charge, quota) or lacks_label(policy, limits, charge.guarantee, labelled=labelled)
        if share is not None and found is None:
            why = f"policy {policy.name} has no share {share}, to which this key is bound"
        held = 0 if found is None else found.number
        return cls(policy, limits, held, quota, why=why, number=number)

    def beside(self, others: tuple[Price, ...]) -> ApplicablePolicy:
        """The same for one who has used a quota of other plans, at these full prices."""
        crowded = _crowded(self.policy, others) if others else ""
        return self._replace(crowded=crowded, why=self.why or crowded)


def _objection(policy: Policy, charge: Charge, quota: int | None) -> str:
    """Why a policy admits no such charge, whatever is left of its limits; empty if it does."""
    if policy.checked and charge.checked == NO:
        return f"policy {policy.name} admits only checked mechanisms; nobody has checked {charge.mechanism} here"
    return inadmissible(policy, charge.guarantee, quota)


def inadmissible(policy: Policy, guarantee: Guarantee, quota: int | None) -> str:
    """The objection to a guarantee that depends on policy and guarantee alone; empty where there is none."""
    relation = guarantee.relation
    if policy.relation == ANY_RELATION and relation != ANY_INPUTS:
        return f"policy {policy.name} admits only promises for {ANY_INPUTS}; this one is for {relation}"
    return f"the plan of policy {policy.name} has no such charge" if quota == 0 else ""


def lacks_label(policy: Policy, limits: Sequence[Limit], guarantee: Guarantee, *, labelled: bool) -> str:
    """Why a memoised report needs a label under these limits; empty where it needs none.

    Without a label the ledger cannot know which earlier reports the value had. A window that does not hold them all
    could be charged too little, see `guarantees.memoised`. The lifetime of an account holds them all.
    """
    if (labelled and isinstance(guarantee, Memoised)) or not repeats(guarantee):
        return ""
    partial = next((each for each in limits if not is_lifetime(each.gauge) or share_in(each.gauge)), None)
    if partial is None:
        return ""
    return (
        f"the report is memoised and has no label, and limit {partial} of policy {policy.name} does not count all"
        " earlier reports. Give the label of its value (--label), and a new label for a new value"
    )


def repeats(guarantee: Guarantee) -> bool:
    """Whether reports of a guarantee may repeat a memoised value."""
    while isinstance(guarantee, Copies):
        guarantee = guarantee.of
    return isinstance(guarantee, Memoised)


def _crowded(policy: Policy, others: tuple[Price, ...]) -> str:
    """Why the policy's plan cannot be used beside others; empty if it can.

    A plan's price holds for that plan alone, so whoever uses several pays the full price of each, and that needs a
    lifetime limit. A policy without a plan asks for none of this: what is charged under a plan is added to the sums
    of the account as well, at least what it truly costs, and so a plain lifetime limit counts it already.
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


ERASED_USER = "this user was erased, and gets no fresh budget"


def decide(account: Account, request: Request, terms: ApplicablePolicy, windows: Mapping[str, Window]) -> Decision:
    """Whether `request` fits these terms on top of what stands in `account` in these windows: a function of these."""
    return Decision(account, request, terms, windows)


class Decision:
    """What is decided about a request.

    `costs` are what it adds in each window that it counts in, `why` the reason that no budget would help, `exceeded`
    the limits that it does not fit, and `binding` what they are called, and `plan` where a quota is used up or the
    user's plans together are too much.
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
        """Whether the request is granted."""
        return not self.why and not self.binding

    @property
    def after(self) -> Account:
        """The account once the request is charged."""
        if self._after is None:
            account, reports = self.account, self.request.reports
            before, reported = account.spent, account.reported
            spent = {gauge: before[gauge].plus(cost) for gauge, cost in self.costs.items()}
            done = {period: count + reports for period, count in reported.items()} if reported else reported
            self._after = account._replace(spent=spent, reported=done, quota_used=account.quota_used + reports)
        return self._after

    def affordable(self, account: Account) -> int:
        """How many such reports fit on top of what stands in `account`."""
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
        """The answer: with the limits as they are, or, once it is charged, as they have become."""
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
    """How many reports the plan has left; `LARGEST` without one."""
    return LARGEST if terms.quota is None else terms.quota - account.quota_used
