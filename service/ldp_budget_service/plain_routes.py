"""Routes that a plain ASGI handler answers: FastAPI describes them, and sees none of their requests.

FastAPI's routing, dependencies and inner middleware take longer than a charge. So the two routes that charge read
their own requests: the same access check, the same strict body and the same errors, in the same order.
"""

from __future__ import annotations

from email.message import Message as Mime
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ldp_budget import LdpBudgetError

from .auth import access_of, admitted, check_query, checked_at_the_end
from .json_bodies import SMALL_BYTES, parsed
from .problems import body_error, response_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import APIRouter
    from starlette.types import ASGIApp, Receive, Scope, Send


_BAD_REQUEST = 400
_JSON = b"application/json"


class PlainRoute(APIRoute):
    """Route whose parameters FastAPI only describes.

    The endpoint gets the caller, the idempotency key, and the body: as its model, or else the request itself, to read
    a stream.
    """

    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        self._access = access_of("POST", path)
        self._model: Any = None if self.body_field is None else self.body_field.field_info.annotation

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        caller: Any = None
        try:
            caller = await admitted(scope, self._access)
            if scope["query_string"]:
                check_query(Request(scope), {})
            head = dict(scope["headers"])
            key = head.get(b"idempotency-key")
            receive = checked_at_the_end(receive, caller)
            body: Any = Request(scope, receive)
            if self._model is not None:
                body = await _read(await _body(receive), head.get(b"content-type"), self._model)
            response = await self.endpoint(body, caller, None if key is None else key.decode("latin-1"))
        except LdpBudgetError as error:
            response = response_for(error if caller is None else caller.error(error), scope)
        except HTTPException as error:
            response = response_for(error, scope)
        await response(scope, receive, send)


class PlainRoutes:
    """Middleware that answers the requests to plain routes, before those that only other routes need."""

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        routes = [route for router in routers for route in router.routes if isinstance(route, PlainRoute)]
        self._routes = {route.path.encode(): route for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A request with a query goes the long way, which checks that it is UTF-8.
        if scope["type"] == "http" and scope["method"] == "POST" and not scope["query_string"]:
            route = self._routes.get(scope.get("raw_path") or b"")
            if route is not None:
                scope["route"] = route  # for the log and the metrics
                await route.handle(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _body(receive: Receive) -> bytes:
    """Return the whole body. Raises `HTTPException` as the framework does, also if the client disconnects."""
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(_BAD_REQUEST, "There was an error parsing the body") from ClientDisconnect()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _read(body: bytes, content_type: bytes | None, model: type[BaseModel]) -> BaseModel:
    """Return the model of a body. Raises the errors of `body_error` and `HTTPException`."""
    content: Any = body
    kind = "none" if content_type is None else content_type.decode("latin-1")
    try:
        if not body:
            raise body_error([{"type": "missing", "loc": ("body",)}], body, kind)
        if content_type == _JSON or (content_type and _is_json(kind)):
            content = parsed(body) if len(body) <= SMALL_BYTES else await run_in_threadpool(parsed, body)
        return model.model_validate(content, from_attributes=True)
    except JSONDecodeError as error:
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
