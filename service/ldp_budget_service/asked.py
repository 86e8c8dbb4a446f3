"""What callers ask for: bodies of requests, and what of the library they stand for."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from fastapi import Header
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ldp_budget import Collection, InvalidParameter, Mechanism, mechanism
from ldp_budget.accounting.policies import DEFAULT

from .problems import ServiceError

if TYPE_CHECKING:
    from .callers import Desk

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Makes a retry safe: the same key with the same request returns the stored answer and charges "
        "nobody again. It is the caller's and the user's own, and never expires.",
        examples=["2026-11-22/alice/party"],
    ),
]


class Asked(BaseModel):
    """A body: nothing may stand in it that is not known."""

    model_config = ConfigDict(extra="forbid")


class MechanismAsked(BaseModel):
    """A mechanism by its name, with its options as on the command line (`-` as `_`)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"name": "oue", "epsilon": "1"}]})

    name: str = Field(examples=["oue"])

    def chosen(self) -> Mechanism:
        """The mechanism. Raises `InvalidParameter` and `UnknownName`."""
        return _mechanism(json.dumps([self.name, self.model_extra], sort_keys=True))

    def kind(self) -> type[Mechanism]:
        """The mechanism without its parameters. Raises `UnknownName`."""
        found: type[Mechanism] = mechanism(self.name)
        return found

    @property
    def options(self) -> dict[str, Any]:
        """Its parameters as they were given."""
        return dict(self.model_extra or {})

    @classmethod
    def read(cls, text: str) -> Self:
        """One that stands in a query, as JSON. Raises `ServiceError`."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            why = 'mechanism: expected JSON with a name, such as {"name": "oue", "epsilon": "1", "domain_size": 7}'
            raise ServiceError("malformed", why) from None


@lru_cache(maxsize=1024)
def _mechanism(asked: str) -> Mechanism:
    name, options = json.loads(asked)
    made: Mechanism = mechanism(name)(**options)
    return made


class ChargeAsked(Asked):
    """Who is charged for what: a mechanism, or a collection by its name."""

    user: str = Field(min_length=1, examples=["alice"])
    mechanism: MechanismAsked | None = None
    collection: str | None = Field(None, examples=["party"])
    reports: int = Field(1, ge=1, le=10**9)
    label: str | None = Field(None, description="Which memoised value the reports repeat: an opaque name.")
    digest: str | None = Field(None, description="Hexadecimal; binds the report itself to the key.")
    note: str | None = Field(None, description="One line, kept beside the charge until the user is erased.")
    policy: str = DEFAULT

    def charge(self, desk: Desk) -> Mechanism | Collection:
        """What is charged. Raises as the library does."""
        return charged(desk, self.mechanism, self.collection)


def charged(desk: Desk, mechanism: MechanismAsked | None, collection: str | None) -> Mechanism | Collection:
    """The mechanism, or the collection; exactly one of them is named."""
    if (mechanism is None) == (collection is None):
        found = "both" if mechanism is not None else None
        raise InvalidParameter("mechanism", "a mechanism, or a collection in its place", found)
    if mechanism is not None:
        return mechanism.chosen()
    assert collection is not None
    return desk.collection(collection)


def required(key: str | None) -> str:
    """The idempotency key of whatever charges."""
    if not key:
        why = "Idempotency-Key: expected one, as this charges somebody and may have to be asked again"
        raise ServiceError("malformed", why)
    return key
