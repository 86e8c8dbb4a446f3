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
from .limits import further_reports
from .policies import ANY_RELATION
from .receipts import PLAN, QUOTED, REFUSED, LimitState, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..guarantees import Guarantee
    from ..guarantees.fixed_point import Costs
    from ..ledger.calendar import Window
    from ..ledger.snapshot import Price
    from .charge_request import Charge, ChargeRequest
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
    def of(cls, policy: Policy, charge: Charge, share: str | None = None, number: int = 0) -> ApplicablePolicy:
        """Apply a policy to a charge that is made through the sub-limit with this name, or through none."""
        found = None if share is None else policy.share(share)
        quota = None if policy.plan is None else policy.plan.count(charge.promise)
        limits = policy.limits_for(share)
        why = _objection(policy, charge, quota) or repeats_unknown_draws(policy, limits, charge.guarantee)
        if share is not None and found is None:
            why = f"policy {policy.name} has no share {share}, to which this key is bound"
        held = 0 if found is None else found.number
        return cls(policy, limits, held, quota, why=why, number=number)

    def with_other_plans(self, others: tuple[Price, ...]) -> ApplicablePolicy:
        """Apply it to a user who has used quotas of other plans, given the full prices of those plans."""
        crowded = _crowded(self.policy, others) if others else ""
        return self._replace(crowded=crowded, why=self.why or crowded)


def _objection(policy: Policy, charge: Charge, quota: int | None) -> str:
    """Explain why a policy admits no such charge at any budget; empty if it does."""
    if policy.checked and charge.checked == NO:
        return f"policy {policy.name} admits only checked mechanisms, and {charge.mechanism} was not checked here"
    return inadmissible(policy, charge.guarantee, quota)


def inadmissible(policy: Policy, guarantee: Guarantee, quota: int | None) -> str:
    """Explain an objection that depends only on the policy and the guarantee; empty if there is none."""
    relation = guarantee.relation
    if policy.relation == ANY_RELATION and relation != ANY_INPUTS:
        return f"policy {policy.name} admits only guarantees for {ANY_INPUTS}, and this one is for {relation}"
    return f"the plan of policy {policy.name} does not include this mechanism" if quota == 0 else ""


def repeats_unknown_draws(policy: Policy, limits: Sequence[Limit], guarantee: Guarantee) -> str:
    """Explain why a report of several memoized draws does not fit these limits; empty if it does.

    The ledger cannot know which earlier reports repeated the same draws. So a window that does not contain all of
    them could be charged too little, see `guarantees.memoised_costs`. The lifetime of an account contains them all.
    """
    if isinstance(guarantee, Memoised) or not is_memoised(guarantee):
        return ""
    partial = next((each for each in limits if not is_lifetime(each.gauge) or share_in(each.gauge)), None)
    if partial is None:
        return ""
    return (
        f"the report repeats several memoized draws, and limit {partial} of policy {policy.name} does not count all"
        " earlier reports. Charge each draw alone, or use a policy with a lifetime limit only"
    )


def _crowded(policy: Policy, others: tuple[Price, ...]) -> str:
    """Explain why the policy's plan cannot be combined with other plans; empty if it can.

    The price of a plan holds for that plan alone. So a user of several plans pays the full price of each, and the sum
    needs a lifetime limit. A policy without a plan has no such rule. Charges under a plan also count in the sums of
    the account, with at least their true cost. So a plain lifetime limit includes them already.
    """
    if not policy.lifetimes:
        return (
            f"this user has used another plan, and policy {policy.name} has no lifetime limit that both plans fit in"
        )
    epsilon, delta = policy.planned(others)
    limit = policy.overdrawn_by((epsilon, delta))
    if limit is None:
        return ""
    return (
        f"this plan and the plans that the user has used cost (ε = {epsilon:.12g}, δ = {delta:.12g}) together,"
        f" and the lifetime limit of policy {policy.name} is (ε = {limit.epsilon:.12g}, δ = {limit.delta:.12g})"
    )


# -- decision ----------------------------------------------------------------------------------------------------

ERASED_USER = "this user was erased, and gets no new budget"


class ChargeCost(NamedTuple):
    """The cost of a request under a policy, computed once for all users.

    `costs` are the amounts that it adds in each window in which it counts, by gauge. `rooms` has, for each limit, its
    gauge, and for each amount that it counts the largest sum to which the cost can be added. `units` has the same
    with the limit and the cost of one report.
    """

    costs: dict[str, Costs]
    rooms: tuple[tuple[Limit, str, tuple[tuple[int, int], ...]], ...]
    units: tuple[tuple[str, tuple[tuple[int, int, int | None], ...]], ...]


def cost_of(
    request: ChargeRequest, terms: ApplicablePolicy, windows: Mapping[str, Window], account: Account
) -> ChargeCost:
    """Return the cost of a request. It depends on the account only if the request follows a cost curve."""
    costs, charge = request.costs_in(windows, terms.share, account), request.charge
    rooms, units = [], []
    for limit in terms.limits:
        added, unit = costs[limit.gauge], charge.cost_under(limit.measure)
        rooms.append((limit, limit.gauge, tuple([(n, _room(most, added[n])) for n, most in limit.counted])))
        units.append((limit.gauge, tuple([(n, most, unit[n]) for n, most in limit.counted])))
    return ChargeCost(costs, tuple(rooms), tuple(units))


def _room(most: int, cost: int | None) -> int:
    return -1 if cost is None else most - cost


def decide(
    account: Account,
    request: ChargeRequest,
    terms: ApplicablePolicy,
    windows: Mapping[str, Window],
    cost: ChargeCost | None = None,
) -> Decision:
    """Decide if `request` fits on top of `account` in these windows. The result depends on the arguments only.

    `cost` is `cost_of` the other arguments, if the caller has it.
    """
    return Decision(account, request, terms, windows, cost or cost_of(request, terms, windows, account))


class Decision:
    """The decision about one request.

    `cost` has the amounts that the request adds in each window in which it counts. `why` is the reason why no budget
    would help. `exceeded` are the limits that the request does not fit. `binding` has their names, and `plan` if a
    quota is used up or the user's plans together cost too much.
    """

    __slots__ = ("account", "binding", "cost", "exceeded", "request", "terms", "why", "windows")

    def __init__(
        self,
        account: Account,
        request: ChargeRequest,
        terms: ApplicablePolicy,
        windows: Mapping[str, Window],
        cost: ChargeCost,
    ) -> None:
        self.account = account
        self.request = request
        self.terms = terms
        self.windows = windows
        self.cost = cost
        self.why = ERASED_USER if account.erased else terms.why
        self.exceeded: list[Limit] = []
        spent = account.spent
        for limit, gauge, room in cost.rooms:
            sums = spent[gauge]
            for place, most in room:
                used = sums[place]
                if used is None or used > most:
                    self.exceeded.append(limit)
                    break
        over = [limit.label for limit in self.exceeded]
        if terms.crowded or _left(terms, account) < request.reports:
            over.append(PLAN)
        self.binding = tuple(dict.fromkeys(over)) if over else ()

    @property
    def fits(self) -> bool:
        """True if the request is granted."""
        return not self.why and not self.binding

    @property
    def costs(self) -> dict[str, Costs]:
        """The amounts that the request adds in each window in which it counts."""
        return self.cost.costs

    def charge(self) -> None:
        """Add the request to the account."""
        account, reports, costs = self.account, self.request.reports, self.cost.costs
        spent = account.spent
        for gauge, added in costs.items():
            spent[gauge] = spent[gauge].plus(added)
        account.changed.update(costs)
        if self.request.curve is not None:
            label = self.request.label
            for counts in account.reported.values():
                counts[label] = counts.get(label, 0) + reports
        account.quota_used += reports

    def affordable(self) -> int:
        """Return the number of such reports that fit on top of the account."""
        account, curve = self.account, self.request.curve
        if self.why:
            return 0
        count = _left(self.terms, account)
        if curve is None:
            return min(count, self._affordable_units())
        for limit in self.terms.limits:
            gauge = limit.gauge
            counts = account.label_counts(gauge, self.windows[gauge], self.request.label)
            count = min(count, further_reports(limit, curve, counts, self.request.label, account.spent[gauge]))
        return count

    def _affordable_units(self) -> int:
        count, spent = LARGEST, self.account.spent
        for gauge, units in self.cost.units:
            sums = spent[gauge]
            for place, most, each in units:
                used = sums[place]
                # A zero cost fits any number of times, unless a lowered limit is already overdrawn.
                if used is None or each is None or used > most:
                    return 0
                if each and (most - used) // each < count:
                    count = (most - used) // each
        return count

    def receipt(self, status: str, receipt: str | None = None, position: str = "") -> Receipt:
        """Return the receipt, with the limits as they are now: after the charge, if `charge` was called."""
        undecided = status in (REFUSED, QUOTED)
        spent, windows, terms, request = self.account.spent, self.windows, self.terms, self.request
        return Receipt(
            status,
            request.user,
            terms.policy.name,
            self.cost.costs[LIFETIME],
            request.reports,
            tuple([LimitState(each, spent[each.gauge], windows[each.gauge].ends) for each in terms.limits]),
            self.binding if undecided else (),
            self.affordable(),
            receipt,
            why=self.why if undecided else "",
            checked=request.charge.checked,
            position=position,
        )


def _left(terms: ApplicablePolicy, account: Account) -> int:
    """Return the number of reports that the plan has left; `LARGEST` without a plan."""
    return LARGEST if terms.quota is None else terms.quota - account.quota_used
