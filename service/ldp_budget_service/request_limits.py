"""Request limits: the rate, number and size of requests, and the headers of responses.

- `Rate`: a rate limit with bursts for each caller.
- `AdmissionMiddleware`: admits or refuses requests, bounds their bodies, and completes the headers of responses.

uvicorn limits the head of a request and the number of connections, see `server.py`. A proxy keeps slow clients away.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import re
import secrets
import threading
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

import anyio
from starlette.exceptions import HTTPException

from . import request_attributes
from .error_codes import ServiceError
from .problems import error_response, problem

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .settings import Settings


# -- rate limits -------------------------------------------------------------------------------------

MOST_KNOWN = 50_000
"""Maximum number of callers that a rate limit remembers."""


class Rate:
    """Rate limit for each of many callers (the generic cell rate algorithm).

    It stores one time per caller: when all of the caller's requests would have been made at the sustained rate. A
    caller may be `burst` requests ahead of that. Callers who are not ahead need no memory. If too many callers are
    stored, those are forgotten first, and then the ones who are the least ahead.

    Parameters:
        rate: requests per second; 0: unlimited.
        burst: additional requests at once.
        clock: a monotonic clock in seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._between = 1 / rate if rate else 0.0
        self._ahead = burst * self._between
        self._clock = clock
        self._even: dict[Hashable, float] = {}
        self._lock = threading.Lock()

    def take(self, caller: Hashable) -> float:
        """Count a request and return 0.0 if the caller may make it.

        Otherwise return the seconds to wait; the request does not count then.
        """
        if not self._between:
            return 0.0
        with self._lock:
            now = self._clock()
            even = max(self._even.get(caller, now), now)
            if even - now > self._ahead:
                return even - now - self._ahead
            if len(self._even) >= MOST_KNOWN and caller not in self._even:
                self._forget(now)
            self._even[caller] = even + self._between
            return 0.0

    def wait(self, caller: Hashable) -> float:
        """Return the seconds until the caller may make a request, without counting one."""
        ahead = self._even.get(caller)
        return 0.0 if ahead is None else max(0.0, ahead - self._clock() - self._ahead)

    def check(self, caller: Hashable) -> None:
        """Count a request. Raises `ServiceError` if the caller may not make it."""
        wait = self.take(caller)
        if wait:
            raise too_many(wait)

    def _forget(self, now: float) -> None:
        ahead = {caller: even for caller, even in self._even.items() if even > now}
        if len(ahead) > MOST_KNOWN // 2:
            ahead = dict(sorted(ahead.items(), key=lambda item: item[1])[len(ahead) // 2 :])
        self._even = ahead


def too_many(wait: float) -> ServiceError:
    """Return the error for a caller above the rate limit."""
    seconds = str(math.ceil(wait))
    return ServiceError(
        "too-many-requests", f"too many requests. Try again in {seconds} s.", {"Retry-After": seconds}
    )


# -- admission ---------------------------------------------------------------------------------------

RETRY = {"Retry-After": "1"}
ALIVE = "/livez"
"""Path that is served under any load. A supervisor restarts a process that does not respond there."""
MOST_BATCH_BYTES = 128 << 20
"""Maximum bytes of all batches in progress, as sent. Their lines take a few times as much."""
_IPV6_NETWORK = 64
_KEY = b"authorization"
"""Header that carries API keys and invitations."""
_Head: TypeAlias = dict[bytes, bytes]

_log = logging.getLogger("ldp_budget_service")


class Load:
    """Number of requests in flight, the bytes of their batches, and the shutdown flag."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.unknown_in_flight = 0
        self.batch_bytes = 0
        self.draining = False

    @cached_property
    def reading(self) -> anyio.CapacityLimiter:
        """The turn to read a batch; first used in the event loop."""
        return anyio.CapacityLimiter(1)

    @contextmanager
    def batch(self) -> Iterator[BatchRoom]:
        """Give room for one batch, which is given back at the end. Used in the event loop only."""
        room = BatchRoom(self)
        try:
            yield room
        finally:
            self.batch_bytes -= room.taken


class BatchRoom:
    """Memory for the body of one batch, out of that of all batches."""

    def __init__(self, load: Load) -> None:
        self._load, self.taken = load, 0

    def take(self, number: int) -> None:
        """Take a number of bytes. Raises `overloaded` if all batches together have too many."""
        if self._load.batch_bytes + number > MOST_BATCH_BYTES:
            why = "the batches in progress take too much memory. Nothing was charged. Try again later, with the same key."
            raise ServiceError("overloaded", why, RETRY)
        self._load.batch_bytes += number
        self.taken += number


class AdmissionMiddleware:
    """ASGI middleware that limits every request in size and number, and completes the headers of responses.

    Parameters:
        app: the application.
        settings: the limits.
        load: counts the requests in flight.
        is_known: True for the token of an active API key or of a valid invitation.
        large: paths that limit the size of their bodies themselves.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        load: Load,
        is_known: Callable[[str], Awaitable[bool]],
        large: Collection[str] = (),
    ) -> None:
        self._app, self._settings, self._load, self._large = app, settings, load, frozenset(large)
        self._is_known = is_known
        self._addresses = Rate(settings.address_rate, settings.address_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        page = is_page(scope)
        # The names of headers that came more than once keep their first value.
        head = dict(reversed(scope["headers"]))
        unknown = page or _KEY not in head
        self._load.in_flight += 1
        self._load.unknown_in_flight += unknown
        try:
            await self._answer(scope, head, page, receive, send)
        finally:
            self._load.in_flight -= 1
            self._load.unknown_in_flight -= unknown

    async def _answer(self, scope: Scope, head: _Head, page: bool, receive: Receive, send: Send) -> None:
        context, started = request_attributes.CURRENT.get(), False

        async def complete(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, over_tls = True, scope.get("scheme") == "https"
                headers = completed(message["headers"], context.id, over_tls=over_tls, close=self._load.draining)
                message = {**message, "headers": headers}
            await send(message)

        refusal = await self._refusal(scope, head, page)
        if refusal is not None:
            await refusal(scope, receive, complete)
            return
        try:
            await self._app(scope, self._bounded(receive, scope["path"] in self._large), complete)
        except Exception as error:
            _log.error("crashed", extra={"error": describe(error)})
            if not started:
                answer = problem("internal", "the service failed. The operator finds the cause in the log.")
                await answer(scope, receive, complete)
        if context.caller is None and _KEY in head and not page:
            # The key was invalid or the route ignored it, and `_refusal` has not counted the request.
            self._addresses.take(address(scope))

    def _bounded(self, receive: Receive, large: bool) -> Receive:
        """Return `receive` with limits on the size of the body and on the time until all of it has arrived.

        A `large` body has no limit on its size here.
        """
        deadline = asyncio.get_running_loop().time() + self._settings.body_seconds
        arrived, complete = 0, False

        async def bounded() -> Message:
            nonlocal arrived, complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                why = "the body of the request did not arrive in time"
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, why, {"Connection": "close"}) from None
            arrived, complete = arrived + len(message.get("body", b"")), not message.get("more_body", False)
            if arrived > self._settings.most_bytes and not large:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large())
            return message

        return bounded

    async def _refusal(self, scope: Scope, head: _Head, page: bool) -> Response | None:
        """Return the response that refuses a request; None to admit it."""
        most = self._settings.most_in_flight
        # Requests without a key get half of the places at most, so that they never take those of the others.
        full = self._load.in_flight > most or self._load.unknown_in_flight > max(1, most // 2)
        if full and scope["path"] != ALIVE and (self._load.in_flight > most or _KEY not in head):
            return problem("overloaded", "too many requests are in progress. Try again later.", headers=RETRY)
        wait = 0.0 if page else await self._wait(scope, head)
        if wait:
            return error_response(too_many(wait))
        length = head.get(b"content-length", b"0")
        too_large = length.isdigit() and int(length) > self._settings.most_bytes
        if too_large and scope["path"] not in self._large:
            return problem("too-large", self._too_large())
        fault = fault_of(scope["headers"])
        return None if fault is None else problem("malformed", fault)

    async def _wait(self, scope: Scope, head: _Head) -> float:
        """Return the seconds for which the address of a request must wait.

        Many people share an address. So neither a good key or invitation waits, nor a page for those who have one,
        however many requests without a key come from there. With an invalid key a request counts after its response.
        """
        if _KEY not in head:
            return self._addresses.take(address(scope))
        wait = self._addresses.wait(address(scope))
        return 0.0 if wait and await self._is_known(token_of(scope)) else wait

    def _too_large(self) -> str:
        return f"the body is larger than {self._settings.most_bytes} bytes. Send less, or several requests."


def token_of(scope: Scope) -> str:
    """Return the bearer token of a request; empty without one."""
    value = dict(reversed(scope["headers"])).get(_KEY, b"")
    scheme, _, token = value.decode("latin-1").partition(" ")
    return token if scheme.lower() == "bearer" else ""


_PAGES = {"/", "/officer", "/me", "/check"}
_BELOW = ("/s/", "/static/", "/v1/collections/")


def is_page(scope: Scope) -> bool:
    """True for what a browser loads without a key: pages, their files, and the definition of a collection."""
    path: str = scope["path"]
    if scope["method"] not in ("GET", "HEAD"):
        return False
    return path in _PAGES or (path.startswith(_BELOW) and not path.endswith("/estimate"))


def address(scope: Scope) -> str:
    """Return the address of a request; for IPv6 the /64 network, which one subscriber has."""
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
    """Return the type of an error and its traceback, without the message, which may contain a user's name."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})" for frame in frames[::-1])
    return f"{type(error).__name__}: {where}"


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

_SECURITY = {name for name, _ in SECURITY}

TRANSPORT_SECURITY = (b"strict-transport-security", b"max-age=31536000")
"""Header of responses to requests over TLS."""

_NAMING = {
    name.lower().encode(): name
    for name in ("Authorization", "Content-Type", "Host", "Idempotency-Key", "X-Collection", "X-Label", "X-User")
}
"""Request headers that determine the service, the user, the idempotency and the report of a charge."""

# Request ids that may be logged: a person's name does not look like this.
_ID = re.compile(rb"[0-9a-fA-F-]{16,64}")
_ID_DIGITS = 32
_ids: deque[str] = deque()
_TOGETHER = 256
"""Request ids that are drawn at once: each draw lets another thread run."""


def identifier(headers: Headers) -> str:
    """Return the caller's request id if it consists of hexadecimal digits and hyphens; otherwise a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return value.decode("ascii")
    while True:
        try:
            return _ids.pop()  # a counter would tell a respondent how many others there are
        except IndexError:
            drawn = secrets.token_hex(_TOGETHER * _ID_DIGITS // 2)
            _ids.extend(drawn[at : at + _ID_DIGITS] for at in range(0, len(drawn), _ID_DIGITS))


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
    own = SECURITY if said.isdisjoint(_SECURITY) else [each for each in SECURITY if each[0] not in said]
    found = [*headers, *own]
    found.append((b"x-request-id", request_id.encode("ascii")))
    if over_tls:
        found.append(TRANSPORT_SECURITY)
    if close and b"connection" not in said:
        found.append((b"connection", b"close"))
    return found
