"""What a service answers, and back: the JSON of the commands, and beside it in `units` what that has rounded.

Amounts in `units` are the ledger's whole units (see `LimitState`), null where unbounded. The service writes with the
functions that end in `_form`, and a client reads with those that end in `_of`, which raise ValueError, LookupError or
TypeError for anything else.
"""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._json import canonical_json
from ..accounting.limits import Limit
from ..accounting.policies import Policy
from ..accounting.receipts import Balance, LimitState, Receipt
from ..accounting.record_kinds import fault_of
from ..accounting.records import Record
from ..accounting.remaining import Left, Remaining
from ..accounting.shares import ShareLimit
from ..accounting.simulating import Binding
from ..guarantees import from_json
from ..guarantees.amounts import LARGEST, Costs, canonical
from ..ledger.integrity import Integrity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..guarantees import Guarantee

Form = dict[str, Any]

NEXT_ENTRY = "Next-Entry"
"""The header that says where the rest of a history begins."""
MOST_ENTRIES = 10_000
"""Of a history in one answer."""


def receipt_form(receipt: Receipt) -> Form:
    """A receipt."""
    units = {
        "cost": list(receipt.cost_units),
        "reports": receipt.reports,
        "limits": [_state_form(state) for state in receipt.limits],
    }
    return {**receipt.to_json(), "units": units}


def receipt_of(data: Mapping[str, Any], status: str | None = None) -> Receipt:
    """A receipt; of a refusal, which is a problem and has a `status` of another kind, that is `outcome`."""
    units, most = data["units"], data["affordable_reports"]
    return Receipt(
        status=data["status"] if status is None else status,
        user=data["user"],
        policy=data["policy"],
        cost_units=_costs(units["cost"]),
        reports=units["reports"],
        limits=_states(data["limits"], units["limits"]),
        binding=tuple(data["binding"]),
        affordable_reports=LARGEST if most is None else most,
        receipt=data["receipt"],
        repeated=data["repeated"],
        why=data.get("why", ""),
        checked=data["checked"],
    )


def balance_form(balance: Balance) -> Form:
    """The balance of one user, with the guarantees that were charged and without the odometer."""
    return balance_row(
        balance,
        policy=balance.policy.to_json(),
        charges=[[guarantee.to_json(), count] for guarantee, count in balance.charges],
    )


def balance_row(balance: Balance, **more: Any) -> Form:
    """One of many balances, which share a policy: it says by its `version` which."""
    units = {"limits": [_state_form(state) for state in balance.limits], "version": balance.policy.version}
    return {**balance.to_row(), "units": {**units, **more}}


def balance_of(data: Mapping[str, Any], policy: Policy | None = None) -> Balance:
    """A balance, under a policy that it does not say itself."""
    units = data["units"]
    return Balance(
        user=data.get("user"),
        policy=policy_of(units["policy"]) if policy is None else policy,
        limits=_states(data["limits"], units["limits"]),
        quotas=tuple(data.get("quotas", ())),
        charges=tuple((_guarantee(guarantee), count) for guarantee, count in units.get("charges", ())),
        erased=data.get("erased", False),
        place={name: data[name] for name in ("partition", "account") if name in data},
    )


def remaining_form(remaining: Remaining) -> Form:
    """What was left of a limit."""
    spent = [list(left.spent_units) for left in remaining.course]
    return {**remaining.to_json(), "units": {"limit": remaining.limit.to_json(), "spent": spent}}


def remaining_of(data: Mapping[str, Any]) -> Remaining:
    """What was left of a limit."""
    limit, course = _limit_of(data["units"]["limit"]), []
    for left, spent in zip(data["course"], data["units"]["spent"], strict=True):
        units = _costs(spent)
        course.append(Left(_moment(left["at"]), units, limit.remaining(units), left["refilled"]))
    return Remaining(limit, tuple(course), _moment(data["until"]))


def binding_form(binding: Binding) -> Form:
    """When a limit binds."""
    units = {"epsilon": canonical(binding.epsilon), "delta": canonical(binding.delta)}
    return {**binding.to_json(), "units": units}


def binding_of(data: Mapping[str, Any]) -> Binding:
    """When a limit binds."""
    return Binding(
        period=data["period"],
        rule=data["rule"],
        epsilon=Decimal(data["units"]["epsilon"]),
        delta=Decimal(data["units"]["delta"]),
        at=None if data["binds_at"] is None else _moment(data["binds_at"]),
        report=data["report"],
        charged=data["charged"],
        never=data["never"],
    )


def policy_of(data: Mapping[str, Any]) -> Policy:
    """A policy; it has an exact form of its own."""
    return Policy.read(canonical_json(data))


def integrity_of(data: Mapping[str, Any]) -> Integrity:
    """What a verification found."""
    return Integrity(data["ok"], data["entries"], data["head"], tuple(data["problems"]))


def record_of(data: Mapping[str, Any]) -> Record:
    """A record, as `Record.to_json` writes it."""
    fault = data.get("fault") or fault_of(data["kind"], data["name"], data["body"])
    return Record(data["number"], _moment(data["at"]), data["kind"], data["name"], data["body"], data["by"], fault)


def _state_form(state: LimitState) -> Form:
    return {"limit": state.limit.to_json(), "spent": list(state.spent_units)}


def _states(shown: list[Form], units: list[Form]) -> tuple[LimitState, ...]:
    return tuple(
        LimitState(
            _limit_of(exact["limit"]),
            _costs(exact["spent"]),
            None if plain["resets_at"] is None else _moment(plain["resets_at"]),
        )
        for plain, exact in zip(shown, units, strict=True)
    )


def _limit_of(data: Form) -> Limit:
    return _limit(json.dumps(data))


@lru_cache(maxsize=1024)
def _limit(text: str) -> Limit:
    data = json.loads(text)
    return ShareLimit.from_json(data) if "share" in data else Limit.from_json(data)


def _guarantee(data: Form) -> Guarantee:
    return from_json(data)


def _costs(units: list[int | None]) -> Costs:
    if any(isinstance(each, bool) or not (each is None or isinstance(each, int)) for each in units):
        raise TypeError("expected whole units")
    return Costs(*units)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
