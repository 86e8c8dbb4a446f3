"""What is kept of each request: one line of the log, and the figures."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from .. import current
from ..guarding.headers import identifier

if TYPE_CHECKING:
    from .metrics import Metrics

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOGGER = "ldp_budget_service.requests"
UNKNOWN = "(unknown)"
"""Stands for the route of a request that goes to none; its path may say anything."""
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"}

_log = logging.getLogger(LOGGER)


class Watched:
    """ASGI middleware, outside of all other, that tells log and metrics of every request.

    A request is named by its route's template, `/v1/users/{user}/balance`, and never by its path.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = current.Told(identifier(scope["headers"]), count=self._metrics.count)
        current.begin(told)
        status, start = 499, time.perf_counter()  # where nobody is there any more to be answered

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            self._tell(scope, told, status, time.perf_counter() - start)

    def _tell(self, scope: Scope, told: current.Told, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN
        route = route_of(scope)
        self._metrics.answered(method, route, status, seconds, told)
        if not _log.isEnabledFor(logging.INFO):
            return
        said = {"request": told.id, "method": method, "route": route, "status": status, "ms": round(seconds * 1e3, 2)}
        said["caller"], said["code"] = told.caller, told.code
        if told.trace is not None:
            said["trace"] = told.trace
        _log.info("request", extra={"said": said})


def route_of(scope: Scope) -> str:
    """The template of the route that a request went to."""
    return getattr(scope.get("route"), "path", None) or UNKNOWN
