"""`/v1/collections`: the set-ups that clients and server agreed on."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import UnknownName
from ldp_budget.catalogue.about import About
from ldp_budget.catalogue.collections import collection_of

from ..answers import told
from ..asked import Asked, MechanismAsked
from ..callers import Caller, Reader, router_of
from ..problems import documented, json_answer

router = router_of(tags=["collections"])

MOST_CATEGORIES = 100_000
MOST_TEXT = 10_000

Text = Annotated[str, Field(max_length=MOST_TEXT)]


class CollectionAsked(Asked):
    """A collection: a mechanism, the names of its answers in order, and what respondents are told."""

    name: str = Field(min_length=1, max_length=200, examples=["party"])
    mechanism: MechanismAsked = Field(
        description="Where its answers are categories, `domain_size` may be left out.",
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
    """The collections, each as it is stored; for a key that is bound to collections, those."""
    position, bound = desk.accountant.position(), desk.key.collections
    return told(position, [row for row in desk.accountant.collections() if bound is None or row["name"] in bound])


@router.post("/v1/collections", response_model=CollectionAnswer, responses=documented("name-taken", "unknown-name"))
def add_collection(asked: CollectionAsked, desk: Caller) -> Response:
    """Store a collection. The same again is no error; another one of its name is."""
    desk.check_collection(asked.name)
    about = About(asked.title, asked.question, asked.purpose, asked.contact, asked.languages)
    categories = None if asked.categories is None else tuple(asked.categories)
    made = collection_of(asked.name, asked.mechanism.kind(), asked.mechanism.options, categories, about)
    desk.accountant.add_collection(made)
    return told(desk.accountant.position(), made.to_json())


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
) -> Response:
    """What respondents' devices need, for everybody: the public definition with its client program.

    A collection whose mechanism has no client program is told as it is stored.
    """
    try:
        held = request.app.state.collections.get(name)
    except UnknownName:
        raise UnknownName("collection", name, None) from None  # the others are nobody's business here
    tag = f'"{held.collection.fingerprint if plain else held.digest}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if if_none_match is not None and tag in (each.strip().removeprefix("W/") for each in if_none_match.split(",")):
        return Response(None, 304, headers)
    return json_answer(held.collection.to_json() if plain else held.public, headers=headers)
