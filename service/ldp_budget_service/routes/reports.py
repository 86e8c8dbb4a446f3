"""`POST /v1/collections/{name}/reports`: a report as a device has drawn it; and what the reports say together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import Collection

from ..answers import ReceiptAnswer, answered, told
from ..callers import Caller, Reader, router_of
from ..inboxes import Inboxes
from ..kinds import ServiceError
from ..problems import documented
from ..senders import From

router = router_of(tags=["reports"])

RAW = "application/octet-stream"
MOST_CANDIDATES = 10_000


async def _body(request: Request) -> bytes:
    return await request.body()


Report = Annotated[bytes, Depends(_body)]
_RAW_BODY = {
    "requestBody": {
        "required": True,
        "description": "The bytes that the client drew, as its program lays them out.",
        "content": {RAW: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "/v1/collections/{name:name}/reports",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict", "wrong-collection"),
    openapi_extra=_RAW_BODY,
)
def take(
    request: Request,
    sender: From,
    report: Report,
    digest: Annotated[
        str | None, Header(alias="X-Collection", description="The digest of the definition it is of.")
    ] = None,
    label: Annotated[
        str | None, Header(alias="X-Label", description="Of a memoised report: which draw it repeats.")
    ] = None,
) -> Response:
    """Check a report, charge its user, and keep it; or refuse with 409 and every limit that failed.

    The first report under a key is charged and kept once, however often it is sent. Another report under that key
    gets the same answer, and is neither charged nor kept: no answer says which report was the first. An application
    sends it under an API key, for the user that `X-User` names; a respondent under an invitation, once for each
    round and under the key that `GET /v1/me` says.
    """
    if not report:
        raise ServiceError("malformed", "body: expected the bytes of a report; found none")
    check_digest(digest, sender.held.digest)
    inbox = request.app.state.inboxes.of(sender.held.collection).using(sender.accountant, sender.policy)
    with request.app.state.in_flight.only(sender.caller, sender.user, sender.key):
        receipt = inbox.take(sender.user, sender.key, report, label=label)
    return answered(sender.accountant, receipt, sender.user)


def check_digest(found: str | None, expected: str) -> None:
    """Refuse a report that was drawn from another definition, or does not say from which."""
    if not found:
        raise ServiceError("malformed", "X-Collection: expected the digest of the definition it was drawn from")
    if found != expected:
        why = f"this is a report of the definition {found[:64]}; that of the collection is {expected}"
        raise ServiceError("wrong-collection", why)


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
    responses=documented("unknown-name", "name-taken", "in-flight", "too-few-reports"),
)
def seal(name: str, asked: RoundAsked, request: Request, desk: Caller) -> Response:
    """Close a round: seal what was taken since the last one, in random order and without any user's name.

    The reports are sealed in whole groups of the smallest number that is ever estimated; the rest waits for the next
    round. So no reader isolates a report by asking before and after. Fewer reports than a group are not sealed (409).
    """
    desk.check_collection(name)
    collection, inboxes = desk.collection(name), request.app.state.inboxes
    with request.app.state.in_flight.only("seal", name):
        count = inboxes.seal(collection, asked.round, request.app.state.settings.least_reports)
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
