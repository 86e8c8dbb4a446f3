"""Collections, the reports of their users, and estimates.

- `/v1/collections`: the mechanisms and answers on which clients and server agree.
- `GET /v1/me`: a respondent's own invitation, budget and charges; `/v1/me/proof`: her proof in a publication.
- `POST /v1/collections/{name}/reports`: a report as a device drew it. An application sends it with its API key, for
  any user. A respondent sends it with an invitation.
- Rounds and estimates: closed sets of reports, and their statistics.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ldp_budget import InvalidParameter, NotSupported, UnknownName
from ldp_budget._files import canonical_json
from ldp_budget._validation import shown
from ldp_budget.charge_options import DEFAULT
from ldp_budget.ledger.calendar import utc_text
from ldp_budget.registry.collections import collection_of
from ldp_budget.registry.public_definition import MINIMUM_GROUP, MOST_GROUP, About
from ldp_budget_service.api.schemas import MOST_ENTRIES
from ldp_budget_surveys.questionnaires.survey_collection import SurveyCollection

from ..auth import CALLER, AuthContext, Caller, Invited, Reader, Respondent, Sending, router_of
from ..error_codes import ServiceError
from ..estimates import RoundsToEstimate
from ..html_pages import takes_gzip
from ..problems import JSON, documented, json_answer
from ..proofs import ChargeMark, ProofAnswer, ProofToken, ReportMark, mark_in, marks_in, promise_of, proof_of
from ..publications import is_proof_token, publication_for
from ..responses import ReceiptAnswer, Row, of_one_length, ok_with_position, receipt_response
from ..schemas import Asked, KeyHeader, MechanismAsked, Whole, required
from ..turns import check_turn, turn_of

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection

    from ..report_store import CachedCollection


# -- senders of reports ---------------------------------------------------------------------------------

UserHeader = Annotated[
    str | None,
    Header(
        alias="X-User",
        description="The user who sends the report, in percent-encoded UTF-8. Required with an API key; an invitation has "
        "the user already.",
        examples=["alice"],
    ),
]
PolicyQuery = Annotated[str, Query(description="The policy to charge by; with an invitation, the default one.")]


@dataclass(frozen=True)
class Sender:
    """The user of a report, its idempotency key, and the caller that sent it."""

    accountant: Accountant
    held: CachedCollection
    caller: str
    user: str
    key: str
    policy: str


def sender(
    name: str,
    caller: Sending,
    user: UserHeader = None,
    policy: PolicyQuery = DEFAULT,
    key: KeyHeader = None,
) -> Sender:
    """Dependency: the sender of a report for the collection in the path."""
    if isinstance(caller, AuthContext):
        return _application(caller, name, user, policy, key)
    return _respondent(caller, name, user, policy, key)


def _application(desk: AuthContext, name: str, user: str | None, policy: str, key: str | None) -> Sender:
    desk.check_collection(name)
    desk.check_policy(policy)
    return Sender(desk.accountant, desk.held.get(name), desk.key.name, _named(user), required(key), policy)


def _respondent(respondent: Respondent, name: str, user: str | None, policy: str, key: str | None) -> Sender:
    respondent.check_collection(name)
    if user is not None or policy != DEFAULT:
        raise ServiceError("forbidden", "leave out the user and the policy: the invitation has both")
    key = required(key)
    respondent.check_key(key)
    return Sender(respondent.accountant, respondent.invited_to, CALLER, respondent.user, key, policy)


def _named(user: str | None) -> str:
    try:
        named = unquote_to_bytes(user or "").decode()
    except UnicodeDecodeError:
        named = ""
    if not named:
        raise InvalidParameter("X-User", "a header with the name of the user in percent-encoded UTF-8", user or None)
    return named


From = Annotated[Sender, Depends(sender)]


# -- collections ----------------------------------------------------------------------------------------

router = router_of(tags=["collections"])

MOST_CATEGORIES = 100_000
MOST_TEXT = 10_000

Text = Annotated[str, Field(max_length=MOST_TEXT)]


class CollectionAsked(Asked):
    """A collection: a mechanism, the names of its answers in order, and the texts for respondents."""

    name: str = Field(min_length=1, max_length=200, examples=["party"])
    mechanism: MechanismAsked = Field(
        description="If its answers are categories, `domain_size` may be left out.",
        examples=[{"name": "oue", "epsilon": "1"}],
    )
    categories: list[str] | None = Field(None, max_length=MOST_CATEGORIES, examples=[["left", "right", "neither"]])
    title: Text = ""
    question: Text = ""
    purpose: Text = ""
    contact: Text = ""
    languages: dict[str, dict[str, Any]] = Field(
        {}, description="For each language tag, such as `ko`: title, question, purpose and answers."
    )
    labels: bool = Field(
        False, description="Charge `rappor` and `loloha` reports with labels, which tell you which answers repeat."
    )
    minimum_group: Whole = Field(
        MINIMUM_GROUP, ge=1, le=MOST_GROUP, description="The least number of reports in a round. It never changes."
    )


class CollectionAnswer(BaseModel):
    """A collection as `collection show --json` prints it, or its public definition, which has a `digest`."""

    model_config = ConfigDict(extra="allow")

    format: str
    version: int
    name: str
    mechanism: str
    fingerprint: str
    guarantee: dict[str, Any]


@router.get("/v1/collections", response_model=list[CollectionAnswer], responses=documented())
def list_collections(desk: Reader) -> Response:
    """Return the collections as stored; a key that is bound to collections gets those."""
    position, bound = desk.position(), desk.key.collections
    return ok_with_position(
        position, [row for row in desk.accountant.collections() if bound is None or row["name"] in bound]
    )


@router.post("/v1/collections", response_model=CollectionAnswer, responses=documented("name-taken", "unknown-name"))
def add_collection(asked: CollectionAsked, desk: Caller) -> Response:
    """Store a collection. Storing the same collection again succeeds; a different one with its name is refused."""
    desk.check_collection(asked.name)
    about = About(asked.title, asked.question, asked.purpose, asked.contact, asked.languages)
    categories = None if asked.categories is None else tuple(asked.categories)
    asked.mechanism.check_size()
    kind, options = asked.mechanism.kind(), asked.mechanism.options
    try:
        known = desk.accountant.collection(asked.name)
    except (UnknownName, NotSupported):
        known = None
    group, labels = asked.minimum_group, asked.labels
    made = collection_of(asked.name, kind, options, categories, about, known, group, with_labels=labels)
    desk.accountant.add_collection(made)
    return ok_with_position(desk.position(), made.to_json())


@router.get(
    "/v1/collections/{name:name}",
    response_model=CollectionAnswer,
    responses=documented("unknown-name", key=False)
    | {304: {"description": "It is as `If-None-Match` says; a collection never changes."}},
)
def collection(
    name: str,
    request: Request,
    plain: Annotated[
        bool, Query(description="As `collection show --json` prints it, with what was declared.")
    ] = False,
    if_none_match: Annotated[str | None, Header()] = None,
    accepted: Annotated[str, Header(alias="Accept-Encoding", include_in_schema=False)] = "",
) -> Response:
    """Return the public definition with its client program, which respondents' devices need. No API key is required.

    If the collection's mechanism has no client program, the response is the stored collection.
    """
    try:
        held = request.app.state.collections.get(name)
    except UnknownName:
        raise UnknownName("collection", name, None) from None  # do not list the other names to the public
    digest = held.collection.fingerprint if plain else held.digest
    is_gzipped = not plain and takes_gzip(accepted)
    headers = {
        "ETag": f'"{digest}{"-gzip" if is_gzipped else ""}"',
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding",
    }
    known = (each.strip().removeprefix("W/") for each in (if_none_match or "").split(","))
    if not {f'"{digest}"', f'"{digest}-gzip"'}.isdisjoint(known):
        return Response(None, 304, headers)
    if is_gzipped:
        headers["Content-Encoding"] = "gzip"
    body = held.plain_json if plain else held.public_gzip if is_gzipped else held.public_json
    return Response(body, media_type="application/json", headers=headers)


# -- respondents ----------------------------------------------------------------------------------------

me_router = router_of(tags=["respondents"])

_SHOWN = ("at", "kind", "state", "collection", "mechanism", "reports", "epsilon", "delta")
_CHARGES = {"spent", "reserved", "committed", "voided", "expired"}


class MeAnswer(BaseModel):
    """The invitation of a respondent, and the respondent's budget."""

    model_config = ConfigDict(extra="allow")

    collection: str
    title: str
    titles: dict[str, str] = Field(description="Translations of the title, by the tag of their language.")
    digest: str
    key: str
    expires: str
    policy: str
    limits: list[Row]
    quote: Row
    charges: list[Row]


@me_router.get("/v1/me", response_model=MeAnswer, responses=documented("unknown-name"))
def me(invited: Invited) -> Response:
    """Return the invitation, the respondent's balance, the current cost of a report and the collection's charges.

    Send the report with the idempotency key `key` and from the definition `digest`. `turn`, in a survey with a rotation,
    has the first and last day of the respondent's turn; `now` is true while it lasts.
    """
    accountant, user, collection = invited.accountant, invited.user, invited.collection
    balance = accountant.balance(user, DEFAULT)
    turn = turn_of(accountant, collection, DEFAULT, user)
    shown: dict[str, Any] = {
        "collection": collection.name,
        **_titles(collection),
        "digest": invited.invited_to.digest,
        "key": invited.invitation.key,
        "round": invited.invitation.round,
        "expires": utc_text(invited.invitation.expires),
        **{name: value for name, value in balance.to_row().items() if name != "user"},
        "quote": _quote(invited),
        **({} if turn is None else {"turn": turn}),
        **({"seed": collection.seed(user).hex()} if isinstance(collection, SurveyCollection) else {}),
        "charges": [
            {name: row[name] for name in _SHOWN}
            for row in ([] if balance.erased else accountant.history(user, most=MOST_ENTRIES))
            if row["kind"] in _CHARGES and row["collection"] == collection.name
        ],
    }
    return json_answer(shown, headers={"Cache-Control": "no-store"})


def _titles(collection: Collection) -> Row:
    """Return the title of a survey for people, and its translations by the tag of their language."""
    about = collection.about
    translated = {tag: words["title"] for tag, words in about.languages.items() if words.get("title")}
    return {"title": about.title or collection.name, "titles": translated}


def _quote(invited: Invited) -> Row:
    """Return the cost of a new report, and the limits that would refuse it."""
    quoted = invited.accountant.quote(invited.user, invited.collection.mechanism, policy=DEFAULT).to_json()
    return {name: quoted[name] for name in ("cost", "binding", "affordable_reports")}


@me_router.get(
    "/v1/me/proof",
    response_model=ProofAnswer,
    responses=documented("unknown-name", "not-published", "no-charge", "proofs-destroyed"),
)
def proof(invited: Invited, mark: ChargeMark = None) -> Response:
    """Return the respondent's proof in the newest publication of the collection, for the charge with this mark.

    The body is canonical JSON. Save the bytes unchanged, because a checker takes no other form. The proof contains the
    respondent's total.
    """
    if mark is None:
        raise InvalidParameter("Charge-Mark", "a header with the mark of the charge, 32 hexadecimal digits")
    return _proved(invited.accountant, invited.user, invited.collection.name, mark_in("Charge-Mark", mark))


@me_router.get(
    "/v1/collections/{name:name}/proof",
    response_model=ProofAnswer,
    responses=documented("not-published", "no-charge", "proofs-destroyed", key=False),
)
def proof_of_receipt(name: str, request: Request, mark: ChargeMark = None, token: ProofToken = None) -> Response:
    """Return the proof of the respondent who has the receipt, in the newest publication of the collection.

    No invitation is required: the receipt's `publication.proof` opens the proof of its own charge, and nothing else. The body
    is canonical JSON, as that of `GET /v1/me/proof`.
    """
    if mark is None:
        raise InvalidParameter("Charge-Mark", "a header with the mark of the charge, 32 hexadecimal digits")
    accountant, place = request.app.state.accountant, mark_in("Charge-Mark", mark)
    if token is None or not is_proof_token(accountant, token, name, place):
        raise ServiceError("no-charge", f"no charge of collection {name} has this mark and this Proof-Token")
    return _proved(accountant, None, name, place)


def _proved(accountant: Accountant, user: str | None, name: str, mark: bytes) -> Response:
    found = proof_of(accountant, user, name, mark)
    return Response(canonical_json(found), media_type="application/json", headers={"Cache-Control": "no-store"})


# -- reports --------------------------------------------------------------------------------------------

reports_router = router_of(tags=["reports"])

RAW = "application/octet-stream"
MOST_CANDIDATES = 10_000


class ReportAsked(Asked):
    """A report with its public attributes."""

    report: str = Field(description="The bytes that the client drew, in hexadecimal.", examples=["02"])
    public: dict[str, str] = Field(
        {},
        description="At most 8 attributes that reveal nothing private, such as the region. They travel with the report, "
        "without noise. An invitation cannot set them.",
        examples=[{"region": "north"}],
    )


class SentReport(NamedTuple):
    """The bytes of a report, and its public attributes."""

    report: bytes
    public: dict[str, str]


async def _body(request: Request) -> SentReport:
    if not JSON.match(request.headers.get("Content-Type", "")):
        return SentReport(await request.body(), {})
    try:
        asked = ReportAsked.model_validate(await request.json())
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    except json.JSONDecodeError as error:
        why = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise RequestValidationError([why]) from None
    try:
        return SentReport(bytes.fromhex(asked.report), asked.public)
    except ValueError:
        raise InvalidParameter("report", "hexadecimal digits, two for each byte", shown(asked.report)) from None


Report = Annotated[SentReport, Depends(_body)]
_REPORT_BODY = {
    "requestBody": {
        "required": True,
        "description": "The bytes that the client drew, as its program lays them out; or JSON, with public attributes.",
        "content": {
            RAW: {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": ReportAsked.model_json_schema()},
        },
    }
}


@reports_router.post(
    "/v1/collections/{name:name}/reports",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "key-conflict", "wrong-collection", "not-your-turn"),
    openapi_extra=_REPORT_BODY,
)
def take(
    request: Request,
    caller: Sending,
    sender: From,
    sent: Report,
    digest: Annotated[
        str | None,
        Header(alias="X-Collection", description="The digest of the definition that the report was drawn with."),
    ] = None,
    label: Annotated[
        str | None,
        Header(
            alias="X-Label",
            description="Of a memoized report: the draw it repeats. Ignored if reports hide it.",
        ),
    ] = None,
    report_mark: ReportMark = None,
    charge_mark: ChargeMark = None,
) -> Response:
    """Check a report, charge its user and keep it; or refuse with 409 and every limit that failed.

    The first report under a key is charged and kept once. Another report under that key gets the same response, and is
    neither charged nor kept; no response reveals which report was the first. An application uses an API key and names
    the user in `X-User`. A respondent uses an invitation, once per round, with the key that `GET /v1/me` returns.

    With both marks, which the device derives from a secret of 16 bytes, the respondent can check a publication.
    `units.cost` of the response has the costs for her receipt, and `promise` the signed lifetime limit.

    `public` attributes become public columns of the report file; where one is missing, the column has the empty text.
    The idempotency key covers them: a retry with other attributes is a conflict. A report hides among those with the
    same attributes. The public definition does not list them, so state in your application what it sends. An invitation
    cannot set them.
    """
    if not sent.report:
        raise ServiceError("malformed", "the report is empty: send the bytes that the client drew")
    if sent.public and sender.caller == CALLER:
        why = "leave out the public attributes: an invitation cannot set them, only an application with an API key"
        raise ServiceError("forbidden", why)
    check_digest(digest, sender.held.digest)
    marks = marks_in(report_mark, charge_mark)
    check_turn(sender.accountant, sender.held.collection, sender.policy, sender.user, sender.key)
    inbox = request.app.state.inboxes.of(sender.held.collection).using(sender.accountant, sender.policy)
    label = sender.held.collection.label_to_charge(label)
    receipt = inbox.take(sender.user, sender.key, sent.report, label=label, marks=marks, public=sent.public)
    if marks is None:
        return of_one_length(receipt_response(caller, receipt))
    accountant, name = sender.accountant, sender.held.collection.name
    more: dict[str, Any] = {"promise": promise_of(accountant, name, sender.held.digest, sender.policy)}
    if sender.caller == CALLER:  # an application must not learn later totals of its users
        has_folder = request.app.state.settings.publications is not None
        more["publication"] = publication_for(accountant, name, marks.charge, has_folder)
    return of_one_length(receipt_response(caller, receipt, **more))


def check_digest(found: str | None, expected: str) -> None:
    """Refuse a report that was drawn from another definition, or does not name its definition."""
    if not found:
        raise InvalidParameter(
            "X-Collection", "a header with the digest of the definition that the report was drawn with"
        )
    if found != expected:
        why = f"X-Collection must be {expected}: got {found[:64]}. Fetch the definition, and draw a new report."
        raise ServiceError("wrong-collection", why)


# -- rounds and estimates -------------------------------------------------------------------------------


class EstimateAnswer(BaseModel):
    """Counts and fractions with standard errors and confidence intervals, or a mean; in `rounds`, one for each."""

    model_config = ConfigDict(extra="allow")


class RoundAsked(BaseModel):
    """The name of a round."""

    model_config = ConfigDict(extra="forbid")

    round: str = Field(min_length=1, max_length=100, examples=["2026-W47"])


class RoundAnswer(BaseModel):
    """A round and its number of reports."""

    round: str
    reports: int


@reports_router.post(
    "/v1/collections/{name:name}/rounds",
    response_model=RoundAnswer,
    responses=documented("unknown-name", "name-taken", "too-few-reports"),
)
def seal(name: str, asked: RoundAsked, request: Request, desk: Caller) -> Response:
    """Close a round: seal the reports since the last one, in random order and without the users' names.

    Only whole minimum groups are sealed; the rest waits for the next round. Fewer reports than one group are not sealed
    (409).
    """
    desk.check_collection(name)
    inbox = request.app.state.inboxes.of(desk.collection(name)).using(desk.accountant, DEFAULT)
    count = inbox.seal(asked.round)
    return ok_with_position(desk.position(), {"round": asked.round, "reports": count})


@reports_router.get(
    "/v1/collections/{name:name}/estimate",
    response_model=EstimateAnswer,
    responses=documented("unknown-name", "too-few-reports", "too-much-work", "overloaded"),
)
async def estimate(
    name: str,
    request: Request,
    desk: Reader,
    confidence: Annotated[float, Query(gt=0, lt=1, description="Of the intervals.")] = 0.95,
    candidates: Annotated[
        list[str] | None, Query(max_length=MOST_CANDIDATES, description="The answers to count; needed for sketches.")
    ] = None,
    top: Annotated[int | None, Query(ge=1, description="Only the answers with the largest counts.")] = None,
    adjust: Annotated[
        Literal["nonnegative", "simplex"] | None,
        Query(description="Adjusted counts in addition to the unbiased ones."),
    ] = None,
    consistent: Annotated[
        bool, Query(description="Counts >= 0 that add up to the reports, with `raw_count`; a mean is as it is.")
    ] = False,
    round: Annotated[str | None, Query(description="Of that round alone.")] = None,
    by_round: Annotated[bool, Query(description="Of each round that was sealed, by itself.")] = False,
) -> Response:
    """Estimate the answers of a collection from its sealed rounds.

    Reports that wait for a round are not counted, and fewer reports than one group are not estimated (409).
    """
    chosen, names, position = await run_in_threadpool(_rounds, request, desk, name, candidates, top, round, by_round)
    said = {"level": confidence, "names": names, "most": top, "adjust": adjust, "consistent": consistent}
    estimates = request.app.state.estimates
    found = await estimates.answer("estimate", {**chosen.identity(), **said}, chosen.copied)
    return ok_with_position(position, {"rounds": found} if by_round else found)


def _rounds(
    request: Request,
    desk: AuthContext,
    name: str,
    candidates: list[str] | None,
    top: int | None,
    round: str | None,
    by_round: bool,
) -> tuple[RoundsToEstimate, list[str] | None, str | None]:
    """Return the rounds to estimate, the candidates, and the position of the journal.

    Raises `ServiceError` for too few reports.
    """
    from ldp_budget.reports import estimation

    desk.check_collection(name)
    position, collection, state = desk.position(), desk.collection(name), request.app.state
    names = None if candidates is None else list(estimation.check_candidates(collection, candidates))
    estimation.check_countable(collection, names, top)
    return RoundsToEstimate.of(state.inboxes, collection, round, by_round), names, position
