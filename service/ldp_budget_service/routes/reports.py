"""`POST /v1/collections/{name}/reports`: a report as a device has drawn it; and what the reports say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import Accountant, Collection
from ldp_budget.access.keys import PREFIX
from ldp_budget.accounting.policies import DEFAULT

from ..answers import ReceiptAnswer, answered, told
from ..asked import KeyHeader, required
from ..callers import Admin, Credentials, Desk, Reader, allowed
from ..inboxes import Inboxes
from ..kinds import ServiceError
from ..problems import documented
from ..respondents import Invitation, Respondent, respondent

router = APIRouter(tags=["reports"])

RAW = "application/octet-stream"
MOST_CANDIDATES = 10_000


async def _body(request: Request) -> bytes:
    return await request.body()


Report = Annotated[bytes, Depends(_body)]
UserHeader = Annotated[
    str | None,
    Header(
        alias="X-User",
        description="Who has sent it; percent-encoded UTF-8, as headers hold few characters.",
        examples=["alice"],
    ),
]
_RAW_BODY = {
    "requestBody": {
        "required": True,
        "description": "The bytes that the client drew, as its program lays them out.",
        "content": {RAW: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@dataclass(frozen=True)
class Sender:
    """Who sends a report: whom it is of, and what says that they may."""

    accountant: Accountant
    caller: str
    user: str
    by: Desk | Respondent

    def check(self, name: str, policy: str, key: str) -> None:
        """Refuse what their key or invitation is not for."""
        self.by.check_collection(name)
        if isinstance(self.by, Desk):
            self.by.check_policy(policy)
            return
        self.by.check_key(key)
        if policy != DEFAULT:
            raise ServiceError("forbidden", f"an invitation is held against the policy {DEFAULT}")


def _sender(request: Request, key: Credentials, invitation: Invitation, user: UserHeader = None) -> Sender:
    if key is not None and key.credentials.startswith(PREFIX):
        desk = _collector(request, key)
        return Sender(desk.accountant, desk.key.name, _named(user), desk)
    invited = respondent(request, invitation)
    return Sender(invited.accountant, "respondent", invited.user, invited)


_collector = allowed("collect")
Sending = Annotated[Sender, Depends(_sender)]


@router.post(
    "/v1/collections/{name:name}/reports",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict", "wrong-collection"),
    openapi_extra=_RAW_BODY,
)
def take(
    name: str,
    request: Request,
    sender: Sending,
    report: Report,
    digest: Annotated[
        str | None, Header(alias="X-Collection", description="The digest of the definition that it was drawn from.")
    ] = None,
    label: Annotated[
        str | None, Header(alias="X-Label", description="Of a memoised report: which draw it repeats.")
    ] = None,
    policy: Annotated[str, Query(description="The policy to hold it against.")] = DEFAULT,
    key: KeyHeader = None,
) -> Response:
    """Check a report, charge its user, and keep it; or refuse with 409 and every limit that failed.

    It comes from whoever has an API key, and says in `X-User` whose it is; or from a respondent with an invitation,
    which says whose it is and what its key is. The same report under the same key is charged and kept once, however
    often it is sent.
    """
    key = required(key)
    if not report:
        raise ServiceError("malformed", "body: expected the bytes of a report; found none")
    sender.check(name, policy, key)
    held = request.app.state.collections.get(name)
    check_digest(digest, held.digest)
    inbox = request.app.state.inboxes.of(held.collection).using(sender.accountant, policy)
    with request.app.state.in_flight.only(sender.caller, sender.user, key):
        receipt = inbox.take(sender.user, key, report, label=label)
    return answered(sender.accountant, receipt, sender.user)


def check_digest(found: str | None, expected: str) -> None:
    """Refuse a report that was drawn from another definition, or does not say from which."""
    if not found:
        raise ServiceError("malformed", "X-Collection: expected the digest of the definition it was drawn from")
    if found != expected:
        why = f"this is a report of the definition {found[:64]}; that of the collection is {expected}"
        raise ServiceError("wrong-collection", why)


def _named(user: str | None) -> str:
    try:
        named = unquote_to_bytes(user or "").decode()
    except UnicodeDecodeError:
        named = ""
    if not named:
        raise ServiceError("malformed", "X-User: expected who has sent it, in UTF-8, percent-encoded")
    return named


# -- what they say together -----------------------------------------------------------------------------


class EstimateAnswer(BaseModel):
    """Counts and shares with their standard errors and intervals, or a mean; of `rounds`, one for each."""

    model_config = ConfigDict(extra="allow")


class RoundAsked(BaseModel):
    """What a round is to be called."""

    model_config = ConfigDict(extra="forbid")

    round: str = Field(min_length=1, max_length=100, examples=["2026-W47"])


class RoundAnswer(BaseModel):
    """A round, and how many reports it has."""

    round: str
    reports: int


@router.post(
    "/v1/collections/{name:name}/rounds",
    response_model=RoundAnswer,
    responses=documented("unknown-name", "name-taken", "in-flight"),
)
def seal(name: str, asked: RoundAsked, request: Request, desk: Admin) -> Response:
    """Close a round: what was taken since the last one is sealed in random order, and nobody is named in it."""
    desk.check_collection(name)
    collection, inboxes = desk.collection(name), request.app.state.inboxes
    with request.app.state.in_flight.only("seal", name):
        count = inboxes.seal(collection, asked.round)
    return told(desk.accountant.position(), {"round": asked.round, "reports": count})


@router.get(
    "/v1/collections/{name:name}/estimate",
    response_model=EstimateAnswer,
    responses=documented("unknown-name", "too-few-reports"),
)
def estimate(
    name: str,
    request: Request,
    desk: Reader,
    confidence: Annotated[float, Query(gt=0, lt=1, description="Of the intervals.")] = 0.95,
    candidates: Annotated[
        list[str] | None, Query(max_length=MOST_CANDIDATES, description="The answers to count; needed for sketches.")
    ] = None,
    top: Annotated[int | None, Query(ge=1, description="Only the answers with the largest counts.")] = None,
    adjust: Annotated[
        Literal["nonnegative", "simplex"] | None, Query(description="Beside the unbiased counts, adjusted ones.")
    ] = None,
    round: Annotated[str | None, Query(description="Of that round alone.")] = None,
    by_round: Annotated[bool, Query(description="Of each round that was sealed, by itself.")] = False,
) -> Response:
    """What the reports of a collection say together: those that were sealed, and those that wait to be.

    Those that wait count in whole groups, and fewer reports than that are estimated at all: nobody who asks again
    and again sees what one of them says.
    """
    desk.check_collection(name)
    held, position = desk.held.get(name), desk.accountant.position()
    ask = _Question(held.collection, request.app.state.inboxes, request.app.state.settings.least_reports)
    said = {"level": confidence, "names": candidates, "most": top, "adjust": adjust}
    if by_round:
        return told(position, {"rounds": ask.by_round(**said)})
    return told(position, ask.answer(round, **said))


class _Question:
    """What is to be estimated, from no fewer than so many reports."""

    def __init__(self, collection: Collection, inboxes: Inboxes, least: int) -> None:
        self._collection = collection
        self._inboxes = inboxes
        self._least = least

    def answer(self, round: str | None, **said: Any) -> dict[str, Any]:
        """The estimate of a round, or of everything. Raises `ServiceError` where there are too few reports."""
        if round is not None:
            totals = [self._inboxes.total(self._collection, round)]
        else:
            rounds = self._inboxes.rounds(self._collection)
            totals = [self._inboxes.total(self._collection, each) for each in rounds]
            totals.append(self._inboxes.waiting(self._collection, self._least))
        return self._row(totals, **said)

    def by_round(self, **said: Any) -> list[dict[str, Any]]:
        """That of each round which has enough reports."""
        rows = []
        for each in self._inboxes.rounds(self._collection):
            total = self._inboxes.total(self._collection, each)
            if total is not None and total.reports >= self._least:
                rows.append({"round": each, **self._row([total], **said)})
        return rows

    def _row(
        self, totals: list[Any], *, level: float, names: list[str] | None, most: int | None, adjust: str | None
    ) -> dict[str, Any]:
        from ldp_budget.collecting import estimating

        collection = self._collection
        if names is not None:
            estimating.check_candidates(collection, names)
        estimating.check_countable(collection, names, most)
        reports = sum(total.reports for total in totals if total is not None)
        if reports < self._least:
            why = f"expected at least {self._least} reports in whole groups of so many; found {reports}"
            raise ServiceError("too-few-reports", why)
        result = estimating.estimate_totals(collection, totals, names)
        assert result is not None
        row = estimating.estimate_row(collection, result, level=level, names=names)
        if adjust is not None:
            estimating.add_adjusted(result, row, adjust)
        if "answers" in row:
            row["answers"] = estimating.chosen_rows(row["answers"], names, most)
        return row
