"""Request bodies, the library objects they describe, and the examples of the OpenAPI schema.

The examples are requests to a fresh ledger in this order, with their responses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from fastapi import Header
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ldp_budget import Collection, InvalidParameter, Mechanism, NotSupported, UnknownName, mechanism
from ldp_budget._files import canonical_json
from ldp_budget._number_parsing import number_in
from ldp_budget._tags import MOST_TAGS
from ldp_budget._validation import shown
from ldp_budget.accounting.charge_request import check_key
from ldp_budget.accounting.priced_mechanism import priced_mechanism_of
from ldp_budget.charge_options import DEFAULT

from .error_codes import ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .auth import AuthContext


Whole = Annotated[int, Field(strict=True)]
"""A whole number in a body; not true, "2" or 2.0."""
Switch = Annotated[bool, Field(strict=True)]
"""True or false in a body; not 1 or "no"."""
Double = Annotated[float, BeforeValidator(lambda value: number_in(value) if isinstance(value, str) else value)]
"""A number in a body, or the text of one as the library reads it; not "1_0"."""
Amount = Annotated[int, Field(ge=0, strict=True)] | None

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Makes a retry safe: the same key with the same request returns the stored answer and charges "
        "no user again. It belongs to the caller and the user, and never expires.",
        examples=["2026-11-22/alice/party"],
    ),
]


class Asked(BaseModel):
    """A request body. Unknown members are refused."""

    model_config = ConfigDict(extra="forbid")


class MechanismAsked(BaseModel):
    """A mechanism by its name, with its options as on the command line (`-` as `_`)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"name": "oue", "epsilon": "1"}]})

    name: str = Field(examples=["oue"])

    def chosen(self) -> Mechanism:
        """Return the mechanism. Raises `InvalidParameter` and `UnknownName`."""
        return self.made() or _made(self.check_size())

    def check_size(self) -> str:
        """Return the JSON of name and options. Raises `too-large`: a table of 300 answers takes seconds to check."""
        text = _as_text([self.name, self.model_extra])
        if len(text) > MOST_OPTION_BYTES:
            why = f"the options of a mechanism must have at most {MOST_OPTION_BYTES} bytes over HTTP: got {len(text)}"
            raise ServiceError(
                "too-large", f"{why}. Add a collection on the machine of the ledger, and charge by its name."
            )
        return text

    def is_that_of(self, mechanism: Mechanism) -> bool:
        """True if these are the name and the declared options of a mechanism, so that none need be made."""
        return self.name == mechanism.name and canonical_json(self.model_extra) == canonical_json(mechanism.declared)

    def made(self) -> Mechanism | None:
        """Return the mechanism if it is cached. Constructing one may take long."""
        return _MADE.get(_as_text([self.name, self.model_extra]))

    def kind(self) -> type[Mechanism]:
        """Return the mechanism's class, without parameters. Raises `UnknownName`."""
        found: type[Mechanism] = mechanism(self.name)
        return found

    @property
    def options(self) -> dict[str, Any]:
        """The mechanism's parameters as given."""
        return dict(self.model_extra or {})

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the mechanism from the JSON of a query parameter. Raises `InvalidParameter`."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            raise InvalidParameter("mechanism", _MECHANISM_EXPECTED, shown(text)) from None


_MECHANISM_EXPECTED = 'JSON with a name, such as {"name": "oue", "epsilon": "1", "domain_size": 7}'
MOST_OPTION_BYTES = 1 << 16
"""Maximum size of a mechanism's options as JSON. A mechanism is made in the process of the service."""
_as_text = json.JSONEncoder(sort_keys=True).encode
_MOST_MADE = 1024
_MADE: dict[str, Mechanism] = {}
"""Mechanisms by the request for them. They are immutable."""


def _made(asked: str) -> Mechanism:
    name, options = json.loads(asked)
    made: Mechanism = mechanism(name)(**options)
    while len(_MADE) >= _MOST_MADE:
        _MADE.pop(next(iter(_MADE)), None)
    _MADE[asked] = made
    return made


class ChargeAsked(Asked):
    """A charge: the user, and a mechanism, the name of a collection, or both if the caller knows both."""

    user: str = Field(min_length=1, examples=["alice"])
    mechanism: MechanismAsked | None = None
    collection: str | None = Field(None, examples=["party"])
    reports: Whole = Field(1, ge=1, le=10**9)
    label: str | None = Field(
        None,
        description="Opaque name of the memoized value that the reports repeat. Needed under a daily, weekly or monthly limit.",
    )
    digest: str | None = Field(None, description="Hexadecimal; binds the report itself to the key.")
    tags: list[str] = Field(
        [],
        max_length=MOST_TAGS,
        description="What the reports depend on or are for: all tags that apply. A limit with a scope counts the charges "
        "that have its tag, and those without tags.",
        examples=[["attribute:health"]],
    )
    note: str | None = Field(None, description="One line, kept with the charge until the user is erased.")
    policy: str = DEFAULT
    at_least: tuple[Amount, Amount, Amount, Amount] | None = Field(
        None,
        description="Least cost of one report by the caller's own copy of the mechanism, in whole units of ε, "
        "δ, ρ and μ² (1e-9, 1e-18, 1e-12, 1e-12; null: unbounded). Refused if it costs less here: then the two "
        "copies have different guarantees.",
    )

    def charge_at_hand(self, desk: AuthContext) -> Mechanism | Collection | None:
        """Return what `charge` does; None if that needs a long computation or the ledger."""
        if self.collection is not None:
            known = desk.held.has(self.collection) and (self.mechanism is None or self.mechanism.made() is not None)
            return self.charge(desk) if known else None
        made = None if self.mechanism is None else self.mechanism.made()
        if made is not None:
            _check_cost(made, self.at_least)
        return made

    def charge(self, desk: AuthContext) -> Mechanism | Collection:
        """Return the mechanism or collection to charge. Raises as the library does."""
        asked: Mechanism | Collection
        if self.mechanism is not None and self.collection is not None:
            asked = _of_collection(desk, self.mechanism, self.collection)
        else:
            asked = charged(desk, self.mechanism, self.collection)
        _check_cost(asked, self.at_least)
        return asked


def charged(desk: AuthContext, mechanism: MechanismAsked | None, collection: str | None) -> Mechanism | Collection:
    """Return the mechanism or the collection. Exactly one of them must be given."""
    if (mechanism is None) == (collection is None):
        if mechanism is None:
            raise InvalidParameter("mechanism", "a mechanism", hint="Or give a collection in its place.")
        raise InvalidParameter("mechanism", "left out if a collection is given", mechanism.name)
    if mechanism is not None:
        return mechanism.chosen()
    assert collection is not None
    return desk.collection(collection)


def mechanism_asked(desk: AuthContext, mechanism: MechanismAsked | None, collection: str | None) -> dict[str, Any]:
    """Return the given mechanism, or that of the collection, in the format of the worker processes."""
    if (mechanism is None) == (collection is None):
        charged(desk, mechanism, collection)
    if mechanism is not None:
        return {"name": mechanism.name, "options": mechanism.options}
    assert collection is not None
    desk.check_collection(collection)
    found = desk.collection(collection).mechanism
    return {"name": found.name, "options": dict(found.declared)}


def _of_collection(desk: AuthContext, asked: MechanismAsked, name: str) -> Collection:
    """Return a collection whose mechanism the caller knows: the ledger's collection of that name, if it exists.

    As in the library, a caller may charge for a collection that this ledger does not store. A key that is bound to
    collections may not.
    """
    try:
        stored = desk.collection(name)
    except UnknownName:
        if desk.key.collections is not None:
            raise
        return Collection(name, asked.chosen())
    if asked.is_that_of(stored.mechanism):
        return stored
    mechanism = asked.chosen()
    if stored.mechanism.fingerprint != mechanism.fingerprint:
        raise InvalidParameter("mechanism", f"the one of collection {name}, {stored.mechanism!r}", repr(mechanism))
    return stored


def _check_cost(asked: Mechanism | Collection, at_least: Sequence[int | None] | None) -> None:
    """Refuse a charge that costs less here than by the caller's copy of the mechanism."""
    if at_least is None:
        return
    mechanism = asked.mechanism if isinstance(asked, Collection) else asked
    for here, there in zip(priced_mechanism_of(asked).cost, at_least, strict=True):
        if here is not None and (there is None or here < there):
            raise NotSupported(
                f"the charge for mechanism {mechanism.name} would be too small: its guarantee is stronger here than in the "
                "caller's program",
                hint="Install the same version of its plugin in both places.",
            )


def required(key: str | None) -> str:
    """Return the idempotency key. Raises `InvalidParameter` if it is missing."""
    if not key:
        hint = "Send a new key with each charge, and the same key with a retry."
        raise InvalidParameter("Idempotency-Key", "a header of this request", hint=hint)
    return check_key(key)


# -- examples ----------------------------------------------------------------------------------------

_FILE = Path(__file__).with_name("examples.json")


def examples() -> list[dict[str, Any]]:
    """Return each example request with its response, in order."""
    found: list[dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


_KEYED = {
    "/v1/spends": "Required, unless `dry_run` is true. ",
    "/v1/reservations": "",
    "/v1/collections/{name}/reports": "",
}
"""The operations that need an idempotency key, each with the exception. A missing key is an error of its own there."""
_NEEDED = ("X-Collection",)
"""Further headers that an operation needs, whose lack is an error of its own."""


def add_to(schema: dict[str, Any]) -> None:
    """Add the examples to the parameters, bodies and responses of an OpenAPI schema; mark required keys."""
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "Idempotency-Key" and path in _KEYED:
                    parameter["required"] = _KEYED[path] == ""
                    parameter["description"] = _KEYED[path] + parameter["description"]
                elif parameter["name"] in _NEEDED:
                    parameter["required"] = True
    for example in examples():
        operation = schema["paths"].get(example["route"], {}).get(example["method"].lower())
        if operation is not None:
            _add(operation, example)


def _add(operation: dict[str, Any], example: dict[str, Any]) -> None:
    title = example["title"]
    given = {**example["path"], **example["query"], **example["headers"]}
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in given:
            parameter.setdefault("examples", {}).setdefault(title, {"value": given[parameter["name"]]})
            parameter.get("schema", {}).pop("examples", None)
    if example["body"] is not None:
        _add_example(operation.get("requestBody", {}).get("content", {}), title, example["body"])
    response = operation["responses"].get(str(example["status"]), {})
    _add_example(response.setdefault("content", {}), title, example["answer"])


def _add_example(content: dict[str, Any], title: str, value: Any) -> None:
    for kind, media in content.items():
        if len(content) > 1 and ("json" in kind) != isinstance(value, dict):
            continue  # an example of another media type
        media.setdefault("examples", {})[title] = {"summary": title, "value": value}
