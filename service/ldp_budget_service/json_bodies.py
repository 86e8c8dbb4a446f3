"""JSON bodies, read strictly: a repeated member is refused, and each error names its cause."""

from __future__ import annotations

import json
from email.message import Message as Mime
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ldp_budget._files import RepeatedMemberError, strict_json
from ldp_budget._validation import shown

from .problems import body_error

if TYPE_CHECKING:
    from starlette.types import Receive

_BAD_REQUEST = 400
_JSON = b"application/json"
SMALL_BYTES = 1 << 14
"""A larger body is parsed in a thread, so that the event loop serves other requests meanwhile."""


class StrictRequest(Request):
    """Request whose JSON body has no repeated members."""

    async def json(self) -> Any:
        """Return the parsed body. Raises `HTTPException`, or `json.JSONDecodeError` if it is not JSON."""
        return await _parsed(await self.body())


async def _parsed(body: bytes) -> Any:
    return parsed(body) if len(body) <= SMALL_BYTES else await run_in_threadpool(parsed, body)


def parsed(body: bytes) -> Any:
    """Return a parsed body. Raises the same errors."""
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError:
        return _strictly(body)  # the standard library words the error, and reads more, such as half a surrogate pair
    return found if body.count(b":") == members(found) else _strictly(body)


def members(value: Any) -> int:
    """Return the number of members of a JSON value and of the objects in it.

    A text with more colons has a repeated member, or a colon in a string.
    """
    if isinstance(value, dict):
        return len(value) + sum(map(members, value.values()))
    return sum(map(members, value)) if isinstance(value, list) else 0


def _strictly(body: bytes) -> Any:
    try:
        return strict_json(body.decode("utf-8"))
    except json.JSONDecodeError:
        raise
    except RepeatedMemberError as error:
        why = f"the body has the member {shown(error.name)} more than once. Send it once."
    except UnicodeDecodeError as error:
        why = f"the body must be UTF-8: got another byte at position {error.start}"
    except RecursionError:
        why = "the body is nested too deeply. Send lists and objects in fewer levels."
    except ValueError as error:
        why = str(error)
    raise HTTPException(_BAD_REQUEST, why)


# -- without the framework ------------------------------------------------------------------------------


async def received(receive: Receive) -> bytes:
    """Return a whole body. Raises `HTTPException` as the framework does, also if the client disconnects."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(_BAD_REQUEST, "There was an error parsing the body") from ClientDisconnect()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def read(body: bytes, content_type: bytes | None, model: type[BaseModel]) -> BaseModel:
    """Return the model of a body, as the framework does. Raises the errors of `body_error`, and `HTTPException`."""
    content: Any = body
    kind = "none" if content_type is None else content_type.decode("latin-1")
    try:
        if not body:
            raise body_error([{"type": "missing", "loc": ("body",)}], body, kind)
        if content_type == _JSON or (content_type and _is_json(kind)):
            content = await _parsed(body)
        return model.model_validate(content, from_attributes=True)
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "ctx": {"error": error.msg}}
        raise body_error([found], None, kind) from None
    except ValidationError as error:
        errors = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise body_error(errors, content, kind) from None


def _is_json(content_type: str) -> bool:
    """True for the media types that the framework parses as JSON."""
    mime = Mime()
    mime["content-type"] = content_type
    subtype = mime.get_content_subtype()
    return mime.get_content_maintype() == "application" and (subtype == "json" or subtype.endswith("+json"))
