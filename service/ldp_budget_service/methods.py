"""HEAD, OPTIONS, and methods that a path does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

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
