"""HEAD, OPTIONS, and methods that a path does not take.

Names in paths: any characters at all, a slash too, as `%2F`.

A path is matched as it was sent, piece by piece, and the pieces are decoded then. Were it decoded before, as servers
do, nobody could tell the user `a/balance` from the balance of the user `a`.

The headers that every answer has, unless its route says otherwise.
"""

from __future__ import annotations

import re
import secrets
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response
from starlette.routing import Route

from .error_codes import ServiceError
from .problems import problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import APIRouter
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Methods:
    """Answers OPTIONS and other methods with `Allow`, which says all that the path takes; HEAD as GET, without body.

    There is no header by which the pages of another site might ask: whoever has an API key does not need a browser.
    """

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        routes = [route for router in routers for route in router.routes if isinstance(route, Route)]
        self._routes = [(route.path_regex, route.methods or set()) for route in routes]
        # Of those without a name in them nothing needs to be matched when somebody asks.
        self._fixed = {route.path: self._taken(route.path) for route in routes if not route.param_convertors}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        takes = self._fixed.get(path) or self._taken(path)
        if not takes or scope["method"] in takes:
            await self._app(scope, receive, send)
        elif scope["method"] == "HEAD" and "GET" in takes:
            # A copy, as the server goes by the method that was sent when it compares the length of the body.
            asked = {**scope, "method": "GET"}
            try:
                await self._app(asked, receive, _without_body(send))
            finally:
                scope["route"] = asked.get("route")  # for the log and the metrics
        else:
            allow = {"Allow": ", ".join(sorted(takes | {"OPTIONS"} | ({"HEAD"} if "GET" in takes else set())))}
            if scope["method"] == "OPTIONS":
                await Response(None, 204, allow)(scope, receive, send)
            else:
                await problem("method-not-allowed", f"this path takes {allow['Allow']}", None, allow)(
                    scope, receive, send
                )

    def _taken(self, path: str) -> set[str]:
        return {method for pattern, methods in self._routes if pattern.match(path) for method in methods}


def _without_body(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return sent


class Name(Convertor[str]):
    """One piece of a path as the name that it stands for; in a route `{user:name}`."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        try:
            return unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            raise ServiceError("malformed", "path: expected names in UTF-8, percent-encoded") from None

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", Name())


class RawPathMiddleware:
    """Lets routes see each path as it was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if not _is_utf8(scope.get("query_string", b"")):
                # Otherwise all that is not would be one and the same user.
                await problem("malformed", "query: expected UTF-8, percent-encoded")(scope, receive, send)
                return
            if scope.get("raw_path"):
                # In place, as the route that is found is left in there for whoever counts requests.
                scope["path"] = scope["raw_path"].partition(b"?")[0].decode("latin-1")
        await self._app(scope, receive, send)


def _is_utf8(query: bytes) -> bool:
    try:
        unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        return False
    return True


Headers = list[tuple[bytes, bytes]]

SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""What is not said by a route itself; pages have policies of their own."""

TRANSPORT_SECURITY = (b"strict-transport-security", b"max-age=31536000")
"""Where a request came over TLS."""

_NAMING = {
    name.lower().encode(): name
    for name in ("Authorization", "Content-Type", "Idempotency-Key", "X-Collection", "X-Label", "X-User")
}
"""The headers that decide who is charged, once, and for which report."""

# An identifier that may be told of: a name of somebody does not look like that.
_ID = re.compile(rb"[0-9a-fA-F-]{16,64}")
# An id of ours need be nobody else's; that anybody can guess it does no harm.
_PROCESS, _NUMBERS = secrets.token_hex(8), count(1)


def identifier(headers: Headers) -> str:
    """The request's id, if the caller sent one of hexadecimal digits and hyphens; or else a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return value.decode("ascii")
    return f"{_PROCESS}{next(_NUMBERS):016x}"


def fault_of(headers: Headers) -> str | None:
    """Why the headers of a request do not say clearly who is charged for which report; None where they do.

    A proxy that appends a header leaves the caller's own in front. Bytes beyond ASCII have no one meaning in a
    header, so that a name in UTF-8 would be another user's.
    """
    seen = set()
    for name, value in headers:
        if name not in _NAMING:
            continue
        if name in seen:
            return f"{_NAMING[name]} is sent more than once. Send it once."
        if not value.isascii():
            return f"{_NAMING[name]} has characters other than ASCII. Send ASCII; percent-encode X-User as UTF-8."
        seen.add(name)
    return None


def completed(headers: Headers, request_id: str, *, over_tls: bool, close: bool) -> Headers:
    """The headers of an answer with those that it lacks."""
    said = {name.lower() for name, _ in headers}
    found = [*headers, *(each for each in SECURITY if each[0] not in said)]
    found.append((b"x-request-id", request_id.encode("ascii")))
    if over_tls:
        found.append(TRANSPORT_SECURITY)
    if close and b"connection" not in said:
        found.append((b"connection", b"close"))
    return found
