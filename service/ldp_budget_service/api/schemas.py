"""Request and response schemas of the service, and their conversion to and from the package's objects.

Requests are validated with the library's own checks, so a client never sends an invalid one. Responses are the JSON
of the commands; the member `units` adds the exact values of what that JSON rounds.

Amounts in `units` are the ledger's integer units (see `LimitState`), null if unbounded. The service writes with the
functions that end in `_form`. A client reads with those that end in `_of`, which raise ValueError, LookupError or
TypeError for an invalid response.
"""

from __future__ import annotations

import json
import secrets
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ldp_budget._files import canonical_json
from ldp_budget._tags import check_tags
from ldp_budget._validation import check_name, check_text, check_user, check_whole, shown
from ldp_budget.accounting.admin_log import Record
from ldp_budget.accounting.admin_records import fault_of
from ldp_budget.accounting.budget_timeline import Binding, BudgetPoint, Remaining
from ldp_budget.accounting.bulk_run import BATCH
from ldp_budget.accounting.charge_request import MOST_REPORTS, check_digest, check_note, key_in_header
from ldp_budget.accounting.limits import Limit, ShareLimit
from ldp_budget.accounting.policies import ANY_RELATION, Policy
from ldp_budget.accounting.priced_mechanism import chosen_of, mechanism_of, priced_mechanism_of
from ldp_budget.accounting.receipts import Balance, LimitState, Receipt
from ldp_budget.charge_options import DEFAULT, ChargeOptions, check_options
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import from_json
from ldp_budget.guarantees.fixed_point import LARGEST, Costs, canonical
from ldp_budget.ledger.verification import Integrity, with_notes
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ldp_budget.accounting.limits import Share
    from ldp_budget.guarantees import Guarantee
    from ldp_budget.sdk.mechanism import Mechanism


Body = dict[str, Any]

_TOGETHER, _BYTES_TOGETHER = 2_000, 1 << 19


def charge_body(user: str, chosen: Mechanism | Collection | object, options: ChargeOptions) -> Body:
    """Return the body of a charge for a user, without the options that are no part of it: `key` and `strict`.

    Raises `InvalidParameter` as `Accountant.spend` does.
    """
    check_options(options)
    label = options.get("label")
    body = {
        "user": sendable("user", check_user(user)),
        "reports": check_whole("reports", options.get("reports", 1), 1, MOST_REPORTS),
        "policy": sendable("policy", check_name("policy", options.get("policy", DEFAULT))),
        "label": None if label is None else sendable("label", check_text("label", label)),
        "digest": check_digest(options.get("digest")),
        "note": check_note(options.get("note")),
        "tags": [*check_tags(options.get("tags"))] or None,
    }
    return {**{name: value for name, value in body.items() if value is not None}, **charged(chosen)}


def shares_form(shares: Sequence[Share]) -> dict[str, list[str]]:
    """Return the limits of the sub-limits as texts, by the name of the sub-limit."""
    return {share.name: [str(limit).partition(":")[2] for limit in share.limits] for share in shares}


def charged(chosen: Mechanism | Collection | object) -> Body:
    """Return the mechanism's name and declared parameters, a collection's name, and the least cost of one report.

    The cost lets the service check that its own copy of the mechanism promises as much.
    """
    return _charged(chosen_of(chosen))  # an invalid choice may not even have a hash


@lru_cache(maxsize=1024)
def _charged(chosen: Mechanism | Collection) -> Body:
    guarantee, mechanism = priced_mechanism_of(chosen).guarantee, mechanism_of(chosen)
    named = {"collection": chosen.name} if isinstance(chosen, Collection) else {}
    return {**named, **asked_for(mechanism), "at_least": list(guarantee.least_costs())}


def asked_for(mechanism: Mechanism) -> Body:
    """Return the mechanism's name and its declared parameters."""
    return {"mechanism": {"name": mechanism.name, **mechanism.declared}}


def collection_body(collection: Collection) -> Body:
    """Return a collection with all its declared parameters. Raises `NotSupported` for a survey."""
    if collection.mechanism.components:
        raise NotSupported("a survey cannot be added over HTTP", hint="Add it on the machine of the ledger.")
    categories = {} if collection.categories is None else {"categories": list(collection.categories)}
    asked = {"name": collection.name, **asked_for(collection.mechanism), **categories, **collection.about.to_json()}
    labels = {"labels": True} if collection.with_labels else {}
    return {**asked, "minimum_group": collection.minimum_group, **labels}


def missing_there(url: str, chosen: Mechanism | Collection | object) -> NotSupported:
    """Return the error for a mechanism that the service lacks, with the package that provides it."""
    mechanism = mechanism_of(chosen)
    plugins = [str(plugin) for kind, plugin in registry().items() if isinstance(mechanism, kind)]
    brings = f"Here the plugin {plugins[0]} provides it." if plugins else "No plugin here provides it either."
    return NotSupported(
        f"the service at {url} has no mechanism {mechanism.name!r}", hint=f"{brings} Install it on the service too."
    )


def sendable(option: str, text: str) -> str:
    """Return `text` if UTF-8 can encode it. Raises `InvalidParameter`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParameter(
            option, "a string that UTF-8 can encode, without lone surrogates", shown(text)
        ) from None
    return text


def header_of(key: str | None) -> str:
    """Return the header value of an idempotency key, always the same for the same key; a new key if there is none."""
    return secrets.token_urlsafe(24) if key is None else key_in_header(key)


def chunks(users: Iterable[Any]) -> Iterator[list[str]]:
    """Split users into lists small enough for one request. Raises `InvalidParameter` at a user that is not text."""
    chunk: list[str] = []
    size = 0
    for user in users:
        length = len(sendable("user", check_user(user)))
        if chunk and (len(chunk) >= _TOGETHER or size + length > _BYTES_TOGETHER):
            yield chunk
            chunk, size = [], 0
        chunk.append(user)
        size += length
    if chunk:
        yield chunk


def user_body(user: str) -> Body:
    """Return the body of a request about one user."""
    return {"user": sendable("user", check_user(user))}


def policy_name(name: object) -> str:
    """Return the name of a policy, for a path. Raises `InvalidParameter` if the name is empty."""
    if not isinstance(name, str) or not name:
        raise InvalidParameter("name", "a name of at least one character", shown(name))
    return sendable("name", name)


def check_relation(relation: object) -> str | None:
    """Check the relation of a policy as `Policy` does."""
    if relation is None or (isinstance(relation, str) and relation == ANY_RELATION):
        return ANY_RELATION if relation else None
    raise InvalidParameter("relation", f"{ANY_RELATION!r} or None", shown(relation))


def in_path(name: str) -> str:
    """Return a name as one path segment; dots are escaped, because `..` would lead to another path."""
    quoted = quote(name, safe="")
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


Form = dict[str, Any]

NEXT_ENTRY = "Next-Entry"
"""The header that gives the position of the next history entry."""
POSITION = "Journal-Position"
"""The header that gives the position of the journal."""
MOST_ENTRIES = 10_000
"""The most history entries in one answer."""
MOST_LINES, MOST_ALIKE, MOST_BYTES = 10_000, BATCH, 8 << 20
"""Limits of one batch of charges. Lines whose common members are sent once are `MOST_ALIKE` at most."""


def receipt_form(receipt: Receipt) -> Form:
    """Return a receipt as JSON."""
    units = {
        "cost": list(receipt.cost_units),
        "reports": receipt.reports,
        "limits": [_state_form(state) for state in receipt.limits],
    }
    return {**receipt.to_json(), "units": units}


def receipt_of(data: Mapping[str, Any], status: str | None = None) -> Receipt:
    """Read a receipt; for a refusal, `status` is the outcome, because a problem's own `status` is the HTTP status."""
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
    """Return the balance of one user, with the charged guarantees and without the odometer."""
    return balance_row(
        balance,
        policy=balance.policy.to_json(),
        charges=[[guarantee.to_json(), count] for guarantee, count in balance.charges],
        mechanisms=[list(each) for each in balance.mechanisms],
        charged=list(balance.charged),
    )


def balance_row(balance: Balance, **more: Any) -> Form:
    """Return one row of many balances that share a policy; the row holds only the policy's `version`."""
    units = {"limits": [_state_form(state) for state in balance.limits], "version": balance.policy.version}
    return {**balance.to_row(), "units": {**units, **more}}


def balance_of(data: Mapping[str, Any], policy: Policy | None = None) -> Balance:
    """Read a balance; `policy` is needed if the data does not include the policy."""
    units = data["units"]
    return Balance(
        user=data.get("user"),
        policy=policy_of(units["policy"]) if policy is None else policy,
        limits=_states(data["limits"], units["limits"]),
        quotas=tuple(data.get("quotas", ())),
        charges=tuple((_guarantee(guarantee), count) for guarantee, count in units.get("charges", ())),
        mechanisms=tuple((name, declared) for name, declared in units.get("mechanisms", ())),
        charged=tuple(units.get("charged", ())),
        erased=data.get("erased", False),
        place={name: data[name] for name in ("partition", "account") if name in data},
    )


def remaining_form(remaining: Remaining) -> Form:
    """Return the remaining budget of a limit as JSON."""
    spent = [list(left.spent_units) for left in remaining.course]
    return {**remaining.to_json(), "units": {"limit": remaining.limit.to_json(), "spent": spent}}


def remaining_of(data: Mapping[str, Any]) -> Remaining:
    """Read the remaining budget of a limit."""
    limit, course = _limit_of(data["units"]["limit"]), []
    for left, spent in zip(data["course"], data["units"]["spent"], strict=True):
        units = _costs(spent)
        course.append(BudgetPoint(_moment(left["at"]), units, limit.remaining(units), left["refilled"]))
    return Remaining(limit, tuple(course), _moment(data["until"]))


def binding_form(binding: Binding) -> Form:
    """Return the time at which a limit binds as JSON."""
    units = {"epsilon": canonical(binding.epsilon), "delta": canonical(binding.delta)}
    return {**binding.to_json(), "units": units}


def binding_of(data: Mapping[str, Any]) -> Binding:
    """Read the time at which a limit binds."""
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
    """Read a policy, which has an exact JSON form of its own."""
    return Policy.read(canonical_json(data))


def integrity_of(data: Mapping[str, Any]) -> Integrity:
    """Read the result of a verification."""
    found = Integrity(data["ok"], data["entries"], data["head"], tuple(data["problems"]))
    return with_notes(found, data.get("acknowledged") or (), {}, ())


def record_of(data: Mapping[str, Any]) -> Record:
    """Read a record, as `Record.to_json` writes it."""
    fault = data.get("fault") or fault_of(data["kind"], data["name"], data["body"])
    return Record(data["number"], _moment(data["at"]), data["kind"], data["name"], data["body"], data["by"], fault)


def _state_form(state: LimitState) -> Form:
    returns = [[f"{at:%Y-%m-%dT%H:%M:%SZ}", list(costs)] for at, costs in state.returns]
    return {
        "limit": state.limit.to_json(),
        "spent": list(state.spent_units),
        **({"returns": returns} if returns else {}),
    }


def _states(shown: list[Form], units: list[Form]) -> tuple[LimitState, ...]:
    return tuple(
        LimitState(
            _limit_of(exact["limit"]),
            _costs(exact["spent"]),
            None if plain["resets_at"] is None else _moment(plain["resets_at"]),
            tuple([(_moment(at), _costs(units)) for at, units in exact.get("returns", ())]),
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
        raise TypeError("the units must be whole numbers")
    return Costs(*units)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
