"""Statement of one user, as a page for an access request or a court, or as JSON.

- `GET /v1/users/{user}/statement`: the user is named in the path.
- `POST /v1/users:statement`: the same with the user's name in the body, so that no log on the way contains it.

A statement relies on a verification of the last hour. If there is none, the service verifies the ledger and records
the result, as `POST /v1/ledger/verifications` does.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict

from .. import html_pages
from ..auth import AuthContext, Caller, router_of
from ..observability.verification import Verifications
from ..problems import documented
from ..responses import Row, at_position, ok_with_position
from .ledger import only_verification
from .users import UserAsked

router = router_of(tags=["users"])

HTML, JSON = "text/html", "application/json"
PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy of a statement: one file with its styles, which loads nothing."""


class StatementAnswer(BaseModel):
    """A user's charges and limits, the verification that they rely on, and the newest head."""

    model_config = ConfigDict(extra="allow")

    user: str
    erased: bool
    charges: list[Row]
    limits: list[Row]
    head: str
    verified: bool
    verified_at: str
    verified_head: str


_ANSWERS: dict[int | str, dict[str, Any]] = {
    **documented("in-flight"),
    200: {
        "description": "The page; JSON for a request that prefers it by its `Accept`.",
        "content": {HTML: {"schema": {"type": "string"}}},
    },
}
Language = Annotated[Literal["en", "ko", "de"] | None, Query(description="The language of the page.")]
Accepted = Annotated[str, Header(alias="Accept", description="`application/json` for JSON; otherwise the page.")]
Spoken = Annotated[str, Header(alias="Accept-Language", description="The language of the page without `lang`.")]


@router.get("/v1/users/{user:name}/statement", response_model=StatementAnswer, responses=_ANSWERS)
def statement(
    user: str, request: Request, desk: Caller, lang: Language = None, accepted: Accepted = "", spoken: Spoken = ""
) -> Response:
    """Return one page about the user: what was charged, when, in whose survey, all totals and limits, what they mean.

    The page says when the ledger was verified, and what it does not prove. An erased user's page says so.
    """
    return _statement(user, request, desk, lang or html_pages.language(spoken), accepted)


@router.post("/v1/users:statement", response_model=StatementAnswer, responses=_ANSWERS)
def named_statement(
    asked: UserAsked,
    request: Request,
    desk: Caller,
    lang: Language = None,
    accepted: Accepted = "",
    spoken: Spoken = "",
) -> Response:
    """Return one page about the user in the body, as `GET /v1/users/{user}/statement` does."""
    return _statement(asked.user, request, desk, lang or html_pages.language(spoken), accepted)


def _statement(user: str, request: Request, desk: AuthContext, language: str, accepted: str) -> Response:
    from ldp_budget_surveys.pages.statement import Statement, statement_page

    position = desk.position(user)
    with only_verification(request):
        found = Statement.of(desk.accountant, user, verify=Verifications(desk.accountant).run)
    own = {"Cache-Control": "no-store", "Vary": "Accept, Accept-Language"}
    if prefers_json(accepted):
        return ok_with_position(position, found.to_json(), own)
    headers = {**html_pages.HEADERS, **own, **at_position(position), "Content-Security-Policy": PAGE_POLICY}
    return HTMLResponse(statement_page(found, language), headers={**headers, "Content-Language": language})


def prefers_json(accepted: str) -> bool:
    """True if an `Accept` header weighs JSON above HTML (RFC 9110, section 12.5.1)."""
    return _weight(accepted, JSON) > _weight(accepted, HTML)


def _weight(accepted: str, kind: str) -> float:
    """Return the weight of a media type: that of its most specific range; 0 if no range contains it."""
    ranges = {kind: 3, f"{kind.partition('/')[0]}/*": 2, "*/*": 1}
    found: list[tuple[int, float]] = []
    for each in accepted[:1000].split(","):
        name, *parameters = [part.strip().lower() for part in each.split(";")]
        given = [parameter[2:] for parameter in parameters if parameter.startswith("q=")]
        try:
            weight = float(given[0]) if given else 1.0
        except ValueError:
            continue
        if name in ranges:
            found.append((ranges[name], weight))
    return max(found, default=(0, 0.0))[1]
