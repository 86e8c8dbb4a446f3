"""The door: who comes in, and what becomes of those who are too many, too large or too slow."""

from __future__ import annotations

import ipaddress
import logging
import traceback
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from .. import current
from ..problems import idempotency_record, problem
from .exchange import RETRY, Exchange, Receive, Scope, Send, too_large
from .headers import fault_of
from .rates import Rate, too_many

if TYPE_CHECKING:
    from starlette.responses import Response

    from ..settings import Settings

_log = logging.getLogger("ldp_budget_service")
_IPV6_NETWORK = 64
ALIVE = "/livez"
"""Answers however many requests are under way: who asks restarts a process that does not."""


class Load:
    """How many requests are under way, and whether the service is about to end."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.draining = False


class Door:
    """ASGI middleware that bounds every request in size, time and number, and completes the headers of answers.

    Parameters:
        app: the application.
        settings: the bounds.
        load: where requests are counted.
        streamed: the paths whose bodies may be of any length, a line at a time.
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        settings: Settings,
        load: Load,
        streamed: Collection[str] = (),
    ) -> None:
        self._app, self._settings, self._load, self._streamed = app, settings, load, frozenset(streamed)
        self._addresses = Rate(settings.address_rate, settings.address_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(
            scope,
            receive,
            send,
            settings=self._settings,
            told=current.told(),
            streamed=scope["path"] in self._streamed,
            closing=lambda: self._load.draining,
        )
        self._load.in_flight += 1
        try:
            refusal = self._refusal(scope)
            if refusal is None:
                await self._let_in(exchange)
            else:
                await exchange.answer(refusal)
        finally:
            self._load.in_flight -= 1

    async def _let_in(self, exchange: Exchange) -> None:
        exchange.begin()
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception as error:
            _log.error("crashed", extra={"error": describe(error)})
            await exchange.answer(problem("internal", "something went wrong here; the operator's log says what"))
        finally:
            await exchange.end()
        if exchange.told.caller is None and _says_a_key(exchange.scope):
            # The header had no good key, or the route did not look at it: `_refusal` has not counted the request.
            self._addresses.take(address(exchange.scope))

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request does not come in."""
        if self._load.in_flight > self._settings.most_in_flight and scope["path"] != ALIVE:
            return problem("overloaded", "too many requests are under way just now", headers=RETRY)
        length = 0
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                length = int(value)
        # A caller with a good key is bounded by a rate of their own; another one counts when the answer is given.
        caller = address(scope)
        wait = self._addresses.wait(caller) if _says_a_key(scope) else self._addresses.take(caller)
        if wait:
            return idempotency_record(too_many(wait))
        if length > self._settings.most_bytes and scope["path"] not in self._streamed:
            return problem("too-large", too_large(self._settings))
        fault = fault_of(scope["headers"])
        return None if fault is None else problem("malformed", fault)


def _says_a_key(scope: Scope) -> bool:
    """Whether a request has the header in which API keys come."""
    return any(name == b"authorization" for name, _ in scope["headers"])


def address(scope: Scope) -> str:
    """Where a request comes from: an address, or of IPv6 the network that one subscriber has."""
    client = scope.get("client")
    host = client[0] if client else ""
    if ":" not in host:
        return host
    try:
        found = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), _IPV6_NETWORK), strict=False))


def describe(error: BaseException) -> str:
    """An error without its message, which may name somebody: of what kind, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})" for frame in frames[::-1])
    return f"{type(error).__name__}: {where}"
