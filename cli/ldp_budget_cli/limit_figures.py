"""Text about limits, receipts and balances: one limit a line, with the ε that was spent and the unit of its rule."""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import TYPE_CHECKING, Any

from ldp_budget.guarantees.fixed_point import printed_apart, printed_up

from .output import counted
from .tables import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.receipts import Amounts, LimitState, Receipt

SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu_squared": "μ²", "renyi": "D"}
"""The symbols of the amounts; D is a Rényi divergence at the order of the rule."""


def number(value: float | Decimal) -> str:
    """Return a number that was given, as messages show it: 1e-06 and not 0.000001."""
    return f"{float(value):.12g}"


def limit_text(limit: Limit) -> str:
    """Return a limit in words, such as `lifetime ε = 8 at δ = 1e-06 (zcdp)`."""
    return f"{limit.scoped_period} {promise_text(limit)} ({limit.rule})"


def promise_text(limit: Limit) -> str:
    """Return the (ε, δ) of a limit; the part of δ that is set aside follows a plus sign."""
    if not limit.delta:
        return f"ε = {number(limit.epsilon)}"
    aside = f" ({number(limit.delta - limit.aside)} + {number(limit.aside)})" if limit.aside else ""
    return f"ε = {number(limit.epsilon)} at δ = {number(limit.delta)}{aside}"


def change_lines(before: Sequence[Limit], after: Sequence[Limit]) -> Iterator[str]:
    """Yield a line for each limit that a new version of a policy has raised, lowered, added or removed."""
    old, new = ({(limit.label, limit.rule): limit for limit in limits} for limits in (before, after))
    for name in dict.fromkeys([*old, *new]):
        one, other = old.get(name), new.get(name)
        if one is None or other is None:
            limit = one or other
            assert limit is not None
            yield f"{'added' if one is None else 'removed'}: {limit_text(limit)}"
        elif one != other:
            alike = one.delta == other.delta and one.aside == other.aside
            how = "raised" if _admits_more(one, other) else "lowered" if _admits_more(other, one) else "changed"
            promises = [f"ε = {number(each.epsilon)}" if alike else promise_text(each) for each in (one, other)]
            yield f"{how}: {one.label} {' → '.join(promises)}"


def _admits_more(before: Limit, after: Limit) -> bool:
    """True if a limit has a larger capacity of anything; None does not count the amount at all."""
    pairs = zip(before.capacity, after.capacity, strict=True)
    return any(old is not None and (new is None or new > old) for old, new in pairs)


def spent_epsilon(state: LimitState) -> float:
    """Return the ε of the promise that is spent, rounded up; the rules but basic convert their own unit."""
    return state.limit.epsilon_of(state.spent_units)


def own_unit(limit: Limit) -> str | None:
    """Return the amount that the rule adds up, as JSON names it; None for ε itself."""
    return next((name for name in ("rho", "mu_squared", "renyi") if name in limit.amounts(limit.capacity)), None)


def state_line(state: LimitState, asked: Amounts | None = None, *, with_delta: bool) -> str:
    """Return the spent and the remaining amounts of a limit, on one line; `with_delta` also shows a δ of 0.

    `asked` are the amounts of the request, which is shown in the unit of the rule. Figures that differ look different.
    """
    limit, row = state.limit, state.to_json()
    unit = own_unit(limit)
    capacity, spent, left = (row[name] for name in ("capacity", "spent", "remaining"))
    if unit is None:
        most, used, rest = _apart(float(limit.epsilon), spent_epsilon(state), left["epsilon"])
        parts = [f"ε = {used} of {most} spent, {rest} left"]
    else:
        most, used, _ = _apart(float(limit.epsilon), spent_epsilon(state), 0.0)
        own_most, own_used, own_rest = _apart(capacity[unit], spent[unit], left[unit])
        parts = [f"ε = {used} of {most} spent at δ = {number(limit.delta)}"]
        own_asked = None if asked is None else getattr(asked, unit, None)
        need = "" if own_asked is None else f"; this needs {printed_up(own_asked)}"
        parts.append(f"{SYMBOLS[unit]} = {own_used} of {own_most} spent, {own_rest} left{need}")
    if "delta" in capacity and (with_delta or spent["delta"]):
        most, used, _ = _apart(capacity["delta"], spent["delta"], left["delta"])
        parts.append(f"δ = {used} of {most} spent")
    resets = "" if row["resets_at"] is None else f"; resets at {row['resets_at']}"
    if state.returns:
        at, back = state.returns[0][0], row["returns"][0]
        shown = back[unit or "epsilon"]
        resets = f"; {SYMBOLS[unit or 'epsilon']} = {amount_text(shown)} comes back at {at:%Y-%m-%dT%H:%M:%SZ}"
    return f"{limit.label} ({limit.rule}): {'; '.join(parts)}{resets}"


def _apart(capacity: float | None, spent: float | None, left: float | None) -> list[str]:
    """Return the capacity, what is spent of it and what is left, rounded to the safe side."""
    capacity, spent, left = (math.inf if each is None else each for each in (capacity, spent, left))
    return printed_apart((capacity, ROUND_FLOOR), (spent, ROUND_CEILING), (left, ROUND_FLOOR))


def figures_of(state: LimitState, name: str) -> list[str]:
    """Return the capacity, the spent and the remaining amount of a limit, as text.

    `name` is that of the amount in JSON, or `promise` for the ε of the limit.
    """
    limit, row = state.limit, state.to_json()
    if name == "promise":
        return _apart(float(limit.epsilon), spent_epsilon(state), row["remaining"].get("epsilon", 0.0))
    return _apart(*(row[of][name] for of in ("capacity", "spent", "remaining")))


def amount_text(value: float | None) -> str:
    return "unbounded" if value is None or math.isinf(value) else printed_up(value)


def yearly_text(policy: Policy) -> str:
    """Return the most that a year can cost under a policy without a lifetime limit, or that nothing bounds it."""
    worst = policy.worst_epsilon_per_year()
    if worst is not None:
        return f"No lifetime limit: a year can cost ε = {printed_up(worst)}"
    if policy.plan is not None:
        return "No lifetime limit: the total is bounded by the plan"
    return "No lifetime limit: no bound is known for the cost of a year"


def minute(moment: str) -> str:
    """Return an ISO time to the minute, without its zone, for a cell of a table."""
    return moment[:16].replace("T", KEPT)


# -- receipts ------------------------------------------------------------------------------------------------


def receipt_lines(receipt: Receipt) -> Iterator[str]:
    """Yield a receipt as text. A refusal and a quote have a line for each limit that binds."""
    from ldp_budget.accounting.receipts import PLAN, QUOTED, REFUSED

    if receipt.status not in (REFUSED, QUOTED):
        yield receipt.explain()
        return
    fits = not (receipt.why or receipt.binding)
    verdict = "" if receipt.status == REFUSED else ": it fits" if fits else ": it does not fit"
    stop = ". Send no report" if receipt.status == REFUSED else ""
    yield f"{receipt.status}: {_request(receipt)}{verdict}{stop}"
    if receipt.why:
        yield f"  {receipt.why}"
    for state in receipt.limits:
        if state.limit.label in receipt.binding:
            yield f"  {state_line(state, receipt.cost, with_delta=receipt.delta != 0)}"
    if receipt.binding and not receipt.why and PLAN in receipt.binding:
        alone = receipt.binding == (PLAN,)
        left = _reports(receipt) if alone else f"fewer than {counted(receipt.reports, 'report')}"
        yield f"  plan of policy {receipt.policy}: {left} of this kind left"
    yield f"  fits: {_reports(receipt)} of this kind"
    if receipt.repeated:
        yield "  This is the stored answer of this key. A new key asks again."


def _request(receipt: Receipt) -> str:
    delta = "" if not receipt.delta else f", δ = {printed_up(receipt.delta)}"
    return f"{receipt.user}, {counted(receipt.reports, 'report')}, ε = {amount_text(receipt.epsilon)}{delta}"


def _reports(receipt: Receipt) -> str:
    from ldp_budget.guarantees.fixed_point import LARGEST

    count = receipt.affordable_reports
    return "any number of reports" if count >= LARGEST else counted(count, "report")


# -- plans ---------------------------------------------------------------------------------------------------


def quota_rows(quotas: Sequence[dict[str, Any]], collections: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each quota of a plan, named after the collections with that guarantee."""
    names = _names_by_guarantee(collections)
    return [
        {"reports of": _quota_name(quota["guarantee"], names), "used": quota["used"], "left": quota["left"]}
        for quota in quotas
    ]


def _quota_name(guarantee: dict[str, Any], names: dict[str, list[str]]) -> str:
    from ldp_budget.guarantees import from_json

    known = names.get(_key(guarantee))
    return ", ".join(known) if known else f"ε = {amount_text(from_json(guarantee).epsilon)}"


def _names_by_guarantee(collections: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the names of the collections with each guarantee; those whose plugin is missing are left out."""
    from ldp_budget.errors import LdpBudgetError
    from ldp_budget.registry.collections import Collection

    names: dict[str, list[str]] = {}
    for definition in collections:
        try:
            guarantee = Collection.from_json(definition).mechanism.guarantee.to_json()
        except (LdpBudgetError, ValueError):
            continue
        names.setdefault(_key(guarantee), []).append(str(definition["name"]))
    return names


def _key(guarantee: dict[str, Any]) -> str:
    return json.dumps(guarantee, sort_keys=True)
