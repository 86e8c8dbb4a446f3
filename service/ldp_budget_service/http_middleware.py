"""HTTP middleware: methods, percent-encoded names in paths, and the default headers of responses.

A name in a path may contain any character, including a slash as `%2F`. A path is matched as it was sent, segment by
segment, and each segment is decoded afterwards. Servers usually decode first. Then the user `a/balance` could not be
distinguished from the balance of the user `a`.
"""

from __future__ import annotations

import re
import secrets
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


# -- methods -----------------------------------------------------------------------------------------


class Methods:
    """Middleware for OPTIONS, HEAD and unsupported methods.

    `Allow` lists all methods of the path. HEAD is answered as GET without a body. There are no CORS headers: clients
    with an API key do not need a browser.
    """

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        routes = [route for router in routers for route in router.routes if isinstance(route, Route)]
        self._routes = [(route.path_regex, route.methods or set()) for route in routes]
        # Paths without names need no matching at request time.
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
            # A copy: the server checks the length of the body by the method of the original scope.
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
                await problem(
                    "method-not-allowed",
                    f"this path does not accept {scope['method']}. Use {allow['Allow']}.",
                    None,
                    allow,
                )(scope, receive, send)

    def _taken(self, path: str) -> set[str]:
        return {method for pattern, methods in self._routes if pattern.match(path) for method in methods}


def _without_body(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return sent


# -- paths -------------------------------------------------------------------------------------------


class Name(Convertor[str]):
    """Path convertor for one segment that is a percent-encoded name; in a route `{user:name}`."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        try:
            return unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            raise ServiceError("malformed", "names in the path must be percent-encoded UTF-8") from None

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", Name())


class RawPathMiddleware:
    """Middleware that routes each request by its path as sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if not _is_utf8(scope.get("query_string", b"")):
                # Otherwise all undecodable names would be the same user.
                await problem("malformed", "the query must be percent-encoded UTF-8")(scope, receive, send)
                return
            if scope.get("raw_path"):
                # In place: the matched route is left in this scope for the log and the metrics.
                scope["path"] = scope["raw_path"].partition(b"?")[0].decode("latin-1")
        await self._app(scope, receive, send)


def _is_utf8(query: bytes) -> bool:
    try:
        unquote_to_bytes(query).decode()
    except UnicodeDecodeError:
        return False
    return True


# -- headers -----------------------------------------------------------------------------------------

Headers = list[tuple[bytes, bytes]]

SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""Default headers of a response. A route may override them; pages have policies of their own."""

TRANSPORT_SECURITY = (b"strict-transport-security", b"max-age=31536000")
"""Header of responses to requests over TLS."""

_NAMING = {
    name.lower().encode(): name
    for name in ("Authorization", "Content-Type", "Host", "Idempotency-Key", "X-Collection", "X-Label", "X-User")
}
"""Request headers that determine the service, the user, the idempotency and the report of a charge."""

# Request ids that may be logged: a person's name does not look like this.
_ID = re.compile(rb"[0-9a-fA-F-]{16,64}")
_ID_BYTES = 16


def identifier(headers: Headers) -> str:
    """Return the caller's request id if it consists of hexadecimal digits and hyphens; otherwise a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return value.decode("ascii")
    return secrets.token_hex(_ID_BYTES)  # a counter would tell a respondent how many others there are


def fault_of(headers: Headers) -> str | None:
    """Return the reason why the headers do not clearly name the user and the report; None if they do.

    A proxy that appends a header keeps the caller's own header in front. Bytes beyond ASCII have no unique meaning in
    a header, so a name in UTF-8 could become a different user.
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
    """Return the headers of a response, completed with the default ones."""
    said = {name.lower() for name, _ in headers}
    found = [*headers, *(each for each in SECURITY if each[0] not in said)]
    found.append((b"x-request-id", request_id.encode("ascii")))
    if over_tls:
        found.append(TRANSPORT_SECURITY)
    if close and b"connection" not in said:
        found.append((b"connection", b"close"))
    return found
