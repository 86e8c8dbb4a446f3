"""`GET /v1/me`: what a respondent may know of what they were charged."""

from __future__ import annotations

from typing import Any

from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from ldp_budget.accounting.policies import DEFAULT
from ldp_budget.api.schemas import MOST_ENTRIES

from ..answers import Row, told
from ..callers import Invited, router_of
from ..problems import documented

router = router_of(tags=["respondents"])

_SHOWN = ("at", "kind", "state", "collection", "mechanism", "reports", "epsilon", "delta")
_CHARGES = {"spent", "reserved", "committed", "voided", "expired"}


class MeAnswer(BaseModel):
    """Whoever has the invitation: what it is for, and their budget."""

    model_config = ConfigDict(extra="allow")

    collection: str
    digest: str
    key: str
    expires: str
    policy: str
    limits: list[Row]
    quote: Row
    charges: list[Row]


@router.get("/v1/me", response_model=MeAnswer, responses=documented("unknown-name"))
def me(invited: Invited) -> Response:
    """What an invitation is for, the respondent's balance, what a report costs now, and the collection's charges.

    The report that is sent under it has the idempotency key `key` and is of the definition `digest`.
    """
    accountant, user, collection = invited.accountant, invited.user, invited.collection
    position = accountant.position(user)
    balance = accountant.balance(user, DEFAULT)
    shown: dict[str, Any] = {
        "collection": collection.name,
        "digest": invited.invited_to.digest,
        "key": invited.invitation.key,
        "round": invited.invitation.round,
        "expires": invited.invitation.expires.isoformat().replace("+00:00", "Z"),
        **{name: value for name, value in balance.to_row().items() if name != "user"},
        "quote": _quote(invited),
        "charges": [
            {name: row[name] for name in _SHOWN}
            for row in ([] if balance.erased else accountant.history(user, most=MOST_ENTRIES))
            if row["kind"] in _CHARGES and row["collection"] == collection.name
        ],
    }
    return told(position, shown, {"Cache-Control": "no-store"})


def _quote(invited: Invited) -> Row:
    """What a report would cost that repeats none, and what stands in its way."""
    quoted = invited.accountant.quote(invited.user, invited.collection.mechanism, policy=DEFAULT).to_json()
    return {name: quoted[name] for name in ("cost", "binding", "affordable_reports")}
