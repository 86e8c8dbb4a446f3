"""The admission decision: does one charge request fit one policy, and how much budget does it leave?

Everything here is a pure function of the request, the policy and the account. Nothing reads or writes a ledger. The
first part applies a policy to a charge: its limits, its quota, and objections that no budget can cure. The second
part decides.
"""

from __future__ import annotations

import json
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from ..errors import LdpBudgetError
from ..guarantees import ANY_INPUTS, Memoised, OneSided
from ..guarantees.fixed_point import LARGEST, costs_of
from ..guarantees.guarantees import LEVELS, NO, is_memoised
from ..ledger.calendar import LIFETIME
from ..ledger.hash_chain import Name
from ..ledger.snapshot import Account
from .limits import further_reports
from .policies import ANY_RELATION
from .receipts import PLAN, QUOTED, REFUSED, LimitState, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..guarantees import Guarantee
    from ..guarantees.fixed_point import Costs
    from ..ledger.calendar import Window
    from ..ledger.keyed_hashing import Secret
    from ..ledger.snapshot import Price
    from .charge_request import ChargeRequest
    from .limits import Limit
    from .policies import Policy
    from .priced_mechanism import PricedMechanism


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
        cls, policy: Policy, charge: PricedMechanism, share: str | None = None, number: int = 0
    ) -> ApplicablePolicy:
        """Apply a policy to a charge that is made through the sub-limit with this name, or through none."""
        found = None if share is None else policy.share(share)
        quota = None if policy.plan is None else policy.plan.count(charge.promise)
        limits = policy.limits_for(share, charge.tags)
        why = _objection(policy, charge, quota) or repeats_unknown_draws(policy, limits, charge.guarantee)
        if share is not None and found is None:
            why = f"policy {policy.name} has no share {share}, to which this key is bound"
        held = 0 if found is None else found.number
        return cls(policy, limits, held, quota, why=why, number=number)

    def with_other_plans(self, others: tuple[Price, ...]) -> ApplicablePolicy:
        """Apply it to a user who has used quotas of other plans, given the full prices of those plans."""
        crowded = _crowded(self.policy, others) if others else ""
        return self._replace(crowded=crowded, why=self.why or crowded)


def _objection(policy: Policy, charge: PricedMechanism, quota: int | None) -> str:
    """Explain why a policy admits no such charge at any budget; empty if it does."""
    if policy.checked and charge.checked == NO:
        return f"policy {policy.name} admits only checked mechanisms, and {charge.mechanism} was not checked here"
    return inadmissible(policy, charge.guarantee, quota)


def inadmissible(policy: Policy, guarantee: Guarantee, quota: int | None) -> str:
    """Explain an objection that depends only on the policy and the guarantee; empty if there is none."""
    if isinstance(guarantee, OneSided):
        return (
            f'one-sided protection has no finite ε, so no limit counts it: "no" is not protected, and η = {guarantee.eta:.6g}'
            f" is about the protected answer alone. Use randomized-response --epsilon {guarantee.eta:.6g}"
        )
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
    partial = next((each for each in limits if not each.counts_all), None)
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
    gauge, and for each amount that it counts the largest sum to which the cost can be added, and the cost of one
    report. `units` has the same with the limit in place of that sum. `checked` is how the guarantee was checked.
    `answer` is the part of a stored response that is the same for all users: that level, and the cost.
    """

    costs: dict[str, Costs]
    rooms: tuple[tuple[Limit, str, tuple[tuple[int, int, int | None], ...]], ...]
    units: tuple[tuple[str, tuple[tuple[int, int, int | None], ...]], ...]
    checked: str | None
    answer: str


def cost_of(
    request: ChargeRequest, terms: ApplicablePolicy, windows: Mapping[str, Window], account: Account
) -> ChargeCost:
    """Return the cost of a request. It depends on the account only if the request follows a cost curve."""
    costs, charge = request.costs_in(windows, terms.share, account), request.charge
    rooms, units = [], []
    for limit in terms.limits:
        added, unit = costs[limit.gauge], charge.cost_in(limit.scope, limit.measure)
        rooms.append((limit, limit.gauge, tuple([(n, _room(most, added[n]), unit[n]) for n, most in limit.counted])))
        units.append((limit.gauge, tuple([(n, most, unit[n]) for n, most in limit.counted])))
    checked = charge.checked
    answer = json.dumps([None if checked is None else LEVELS.index(checked), *costs[LIFETIME]], separators=(",", ":"))
    return ChargeCost(costs, tuple(rooms), tuple(units), checked, answer[1:-1])


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
    quota is used up or the user's plans together cost too much. `left` is the number of such reports that fit after
    this charge, if no quota and no cost curve counts; below 0 if the charge does not fit.
    """

    __slots__ = ("account", "binding", "cost", "exceeded", "left", "request", "terms", "why", "windows")

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
        spent, left = account.spent, LARGEST
        for limit, gauge, room in cost.rooms:
            sums = account.total(gauge, windows[gauge]) if windows[gauge].earlier else spent[gauge]
            for place, most, unit in room:
                used = sums[place]
                if used is None or used > most:
                    self.exceeded.append(limit)
                    left = -1
                    break
                if unit and (most - used) // unit < left:
                    left = (most - used) // unit
        self.left = left
        over = [limit.label for limit in self.exceeded] if self.exceeded else []
        if terms.crowded or (terms.quota is not None and terms.quota - account.quota_used < request.reports):
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
            sums = spent[gauge]
            if None in sums or None in added:
                spent[gauge] = sums.plus(added)
                continue
            # `Costs.plus`, spelled out: each charge adds to each of its windows.
            total = tuple(map(add, sums, added))
            spent[gauge] = costs_of(total) if max(total) <= LARGEST else sums.plus(added)
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
        count = LARGEST if self.terms.quota is None else self.terms.quota - account.quota_used
        if curve is None:
            return min(count, self._affordable_units())
        for limit in self.terms.limits:
            gauge = limit.gauge
            counts = account.label_counts(gauge, self.windows[gauge], self.request.label)
            spent = account.total(gauge, self.windows[gauge])
            count = min(count, further_reports(limit, curve, counts, self.request.label, spent))
        return count

    def _affordable_units(self) -> int:
        count = LARGEST
        for gauge, units in self.cost.units:
            sums = self.account.total(gauge, self.windows[gauge])
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
        sums = [self.account.total(each.gauge, self.windows[each.gauge]) for each in self.terms.limits]
        return self.receipt_with(status, receipt, position, sums, self.affordable())

    def receipt_with(
        self, status: str, receipt: str | None, position: str, spent: Sequence[Costs], affordable: int
    ) -> Receipt:
        """Return the receipt with the sums of its limits, and the number of such reports that fit."""
        undecided = status in (REFUSED, QUOTED)
        windows, terms, request = self.windows, self.terms, self.request
        limits = []
        for limit, sums in zip(terms.limits, spent, strict=True):
            limits.append(LimitState(limit, sums, windows[limit.gauge].resets_at))
        return Receipt(
            status,
            request.user,
            terms.policy.name,
            self.cost.costs[LIFETIME],
            request.reports,
            tuple(limits),
            self.binding if undecided else (),
            affordable,
            receipt,
            why=self.why if undecided else "",
            checked=self.cost.checked,
            position=position,
        )


class Outcome:
    """What a transaction has found for one request. Its caller makes the receipt of it, after the commit."""

    __slots__ = ("_affordable", "_decision", "_entries", "_entry", "_place", "_spent")

    def __init__(self, decision: Decision, entry: int | None, place: tuple[Secret, int, int], entries: int) -> None:
        """Keep a decision as it is now.

        `entry` is the number of the charge's entry, None for a refusal. `place` is the secret, the generation and the
        partition of the entry, and `entries` the number of the newest entry.
        """
        self._decision, self._entry, self._place, self._entries = decision, entry, place, entries
        account, windows, left = decision.account, decision.windows, decision.left
        self._spent = [
            account.total(gauge, windows[gauge]) if windows[gauge].earlier else account.spent[gauge]
            for _, gauge, _ in decision.cost.rooms
        ]
        if entry is None or left < 0 or decision.terms.quota is not None or decision.request.curve is not None:
            left = decision.affordable()
        self._affordable = left

    def stored(self, at: int) -> str:
        """Return the text that the ledger stores under an idempotency key: that of `Receipt.store`."""
        decision, amounts = self._decision, list[int | None]()
        if self._entry is None:
            return self.receipt().store(decision.terms.number, at)
        for sums in self._spent:
            amounts += sums
        request = decision.request
        numbers = f"{decision.terms.number},{at},{request.reports},{self._affordable},{decision.cost.answer}"
        if amounts:
            numbers = f"{numbers},{amounts}".replace("[", "").replace("]", "").replace(" ", "")
        return f'["{request.template.kind}",[{numbers}]]'.replace("None", "null")

    def receipt(self) -> Receipt:
        """Return the receipt."""
        decision, entry = self._decision, self._entry
        secret, generation, partition = self._place
        status, name = REFUSED, None
        if entry is not None:
            status = decision.request.template.kind
            # Most names are a number alone, see `Name`.
            name = secret.receipt(str(Name(generation, partition, entry) if generation or partition else entry))
        return decision.receipt_with(status, name, f"{partition}:{self._entries}", self._spent, self._affordable)


def receipt_in(outcome: Outcome | Receipt | LdpBudgetError) -> Receipt:
    """Return the receipt of an outcome. Raises its error."""
    if isinstance(outcome, Outcome):
        return outcome.receipt()
    if isinstance(outcome, LdpBudgetError):
        raise outcome
    return outcome


def receipts_in(outcomes: Sequence[Outcome | Receipt | LdpBudgetError]) -> list[Receipt | LdpBudgetError]:
    """Return the receipts of outcomes; errors stay."""
    return [outcome.receipt() if isinstance(outcome, Outcome) else outcome for outcome in outcomes]
