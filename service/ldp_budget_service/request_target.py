"""HTTP middleware: methods, and percent-encoded names in paths.

A name in a path may contain any character, including a slash as `%2F`. A path is matched as it was sent, segment by
segment, and each segment is decoded afterwards. Servers usually decode first. Then the user `a/balance` could not be
distinguished from the balance of the user `a`.
"""

from __future__ import annotations

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
