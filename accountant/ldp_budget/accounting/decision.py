"""One request held against one policy: does it fit, and what does it leave? Nothing here touches a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..guarantees import ANY_INPUTS, Memoised
from ..guarantees.amounts import LARGEST, Costs
from ..guarantees.evidence import NO
from ..ledger.reading import Account
from ..ledger.replay import step_under
from ..ledger.windows import LIFETIME, holds, measure_in
from .policies import ANY_RELATION, share_number
from .receipts import PLAN, QUOTED, REFUSED, LimitState, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ledger.windows import Window
    from .limits import Limit
    from .policies import Policy
    from .request import Charge, Request

ERASED_USER = "this user was erased, and gets no fresh budget"


def decide(account: Account, request: Request, policy: Policy, windows: Mapping[str, Window]) -> Decision:
    """Whether `request` fits `policy` on top of what stands in `account` in these windows: a function of these."""
    return Decision(account, request, policy, windows)


class Decision:
    """What is decided about a request.

    `costs` are what it adds in each window that it counts in, `why` the reason that no budget would help, `exceeded`
    the limits that it does not fit, `binding` what they are called, and `plan` where a quota is used up or the user's
    plans together are too much.
    """

    def __init__(self, account: Account, request: Request, policy: Policy, windows: Mapping[str, Window]) -> None:
        self.account = account
        self.request = request
        self.policy = policy
        self._windows = windows
        self.share = share_number(policy, request.share)
        """The number of the share through which it is charged; 0 of none."""
        self.limits = policy.limits_for(request.share)
        """The limits that it must fit."""
        self.costs = _costs(account, request, self.share)
        self.why = _objection(account, request, policy)
        self.exceeded = _exceeded(account, self.limits, self.costs)
        self.binding = _binding(account, request, policy, self.exceeded)
        self._after: Account | None = None

    @property
    def fits(self) -> bool:
        """Whether the request is granted."""
        return not self.why and not self.binding

    @property
    def after(self) -> Account:
        """The account once the request is charged."""
        if self._after is None:
            (number, before, erased, reported, used, others), reports = self.account, self.request.reports
            spent = {gauge: before[gauge].plus(cost) for gauge, cost in self.costs.items()}
            done = {period: count + reports for period, count in reported.items()} if reported else reported
            self._after = Account(number, spent, erased, done, used + reports, others)
        return self._after

    def affordable(self, account: Account) -> int:
        """How many such reports fit on top of what stands in `account`."""
        if self.why:
            return 0
        charge, policy, curve = self.request.charge, self.policy, _curve(self.request)
        counts = [LARGEST if policy.plan is None else policy.plan.count(charge.promise) - account.quota_used]
        for limit in self.limits:
            gauge = limit.gauge
            spent = account.spent[gauge]
            if curve is None:
                counts.append(limit.affordable(spent, charge.cost_in(gauge)))
            else:
                counts.append(limit.affordable_along(curve, account.reported[gauge], spent))
        return min(counts)

    def receipt(self, status: str, receipt: str | None = None) -> Receipt:
        """The answer: with the limits as they are, or, once it is charged, as they have become."""
        undecided = status in (REFUSED, QUOTED)
        account = self.account if undecided else self.after
        spent, windows = account.spent, self._windows
        return Receipt(
            status,
            self.request.user,
            self.policy.name,
            self.costs[LIFETIME],
            self.request.reports,
            tuple([LimitState(each, spent[each.gauge], windows[each.gauge].ends) for each in self.limits]),
            self.binding if undecided else (),
            self.affordable(account),
            receipt,
            why=self.why if undecided else "",
            checked=self.request.charge.checked,
        )


def _curve(request: Request) -> Memoised | None:
    """The curve that a labelled request goes along; without a label each report is a new value."""
    guarantee = request.charge.guarantee
    return guarantee if request.label is not None and isinstance(guarantee, Memoised) else None


def _costs(account: Account, request: Request, share: int) -> dict[str, Costs]:
    """What the request adds in every window where its share counts: labelled reports in each along its own curve."""
    curve, gauges = _curve(request), [gauge for gauge in account.spent if holds(gauge, share)]
    if curve is None:
        costs = dict.fromkeys(gauges, request.cost)
        for gauge in costs:
            if measure_in(gauge):
                costs[gauge] = request.charge.cost_in(gauge).times(request.reports)
        return costs
    done = account.reported
    return {gauge: step_under(measure_in(gauge), curve, done[gauge], request.reports) for gauge in gauges}


def _objection(account: Account, request: Request, policy: Policy) -> str:
    """Why no amount of budget would do; empty if it is a matter of budget."""
    if account.erased:
        return ERASED_USER
    return objection(request.charge, policy, request.share) or _objection_to_plans(account, policy)


def _objection_to_plans(account: Account, policy: Policy) -> str:
    """Why the policy's plan cannot be used beside the plans the user has used; empty if it can.

    A plan's price holds for that plan alone, so whoever uses several pays the full price of each, and that needs a
    lifetime limit. A policy without a plan asks for none of this: what is charged under a plan is added to the sums
    of the account as well, at least what it truly costs, and so a plain lifetime limit counts it already.
    """
    if policy.plan is None or not account.other_plans:
        return ""
    if not policy.lifetimes:
        return f"this user has used another plan, and policy {policy.name} has no lifetime limit that both fit in"
    epsilon, delta = policy.planned(account.other_plans)
    limit = policy.overdrawn_by((epsilon, delta))
    if limit is None:
        return ""
    return (
        f"this plan and those the user has used cost together (ε = {epsilon:.12g}, δ = {delta:.12g}),"
        f" and the lifetime limit of policy {policy.name} is (ε = {limit.epsilon:.12g}, δ = {limit.delta:.12g})"
    )


def objection(charge: Charge, policy: Policy, share: str | None = None) -> str:
    """Why a policy admits no such charge at all, whatever it costs, through a share or none; empty if it does."""
    if share is not None and policy.share(share) is None:
        return f"policy {policy.name} has no share {share}, to which this key is bound"
    relation = charge.guarantee.relation
    if policy.relation == ANY_RELATION and relation != ANY_INPUTS:
        return f"policy {policy.name} admits only promises for {ANY_INPUTS}; this one is for {relation}"
    if policy.checked and charge.checked == NO:
        return f"policy {policy.name} admits only checked mechanisms; nobody has checked {charge.mechanism} here"
    if policy.plan is not None and policy.plan.count(charge.promise) == 0:
        return f"the plan of policy {policy.name} has no such charge"
    return ""


def _exceeded(account: Account, limits: Sequence[Limit], costs: dict[str, Costs]) -> list[Limit]:
    """The limits that the request does not fit."""
    spent = account.spent
    return [limit for limit in limits if not limit.fits(spent[limit.gauge], costs[limit.gauge])]


def _binding(account: Account, request: Request, policy: Policy, exceeded: list[Limit]) -> tuple[str, ...]:
    """What these limits are called, and `plan` where the plan is what stands in the way."""
    over = [limit.label for limit in exceeded]
    plan = policy.plan
    if plan is not None:
        left = plan.count(request.charge.promise) - account.quota_used
        if left < request.reports or _objection_to_plans(account, policy):
            over.append(PLAN)
    return tuple(dict.fromkeys(over)) if over else ()
