"""Request limits: size, time, rate and concurrency of requests and connections.

- `Rate`: a rate limit with bursts for each caller.
- `CoalescingTransport`: merges consecutive writes into one system call.
- `Connection`: limits of one connection: the time and size of a request's head, and the time to read a response. The
  application sees a request only after its head has arrived. So slow senders and readers are handled here.
- `Exchange`: limits of one request: the size of its body, and the time of body and response.
- `AdmissionMiddleware`: admits or refuses requests, and completes the headers of responses.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import socket
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Hashable, MutableMapping
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from . import request_context
from .error_codes import ServiceError
from .http_middleware import SECURITY, completed, fault_of
from .problems import idempotency_record, problem
from .request_context import RequestContext

if TYPE_CHECKING:
    from starlette.responses import Response

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
    return ServiceError("too-many-requests", f"ask again in {seconds} s", {"Retry-After": seconds})


class CoalescingTransport:
    """Transport that buffers writes until the next turn of the event loop, and then writes them together.

    uvicorn writes the head and the body of a response separately. Each write is a system call that releases the
    interpreter lock and must wait to get it back.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._kept: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Buffer data for the next turn of the event loop."""
        if not self._kept:
            self._loop.call_soon(self._flush)
        self._kept.append(data)

    def close(self) -> None:
        """Write the buffered data and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._kept:
            data, self._kept = b"".join(self._kept), []
            if not self._transport.is_closing():
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


# -- connections -------------------------------------------------------------------------------------

HEAD_SECONDS = 10.0
"""Seconds for the head of a request, from its first byte or the opening of the connection."""
MOST_HEAD_BYTES = 32 << 10
"""Maximum bytes of a request's head."""
READ_SECONDS = 30.0
"""Seconds for which a response that fills the connection's buffer waits for its reader."""
LINGER_SECONDS = 5.0
"""Seconds for which the rest of a body may arrive, unread, after an early response."""
MOST_CONNECTIONS = 4000
"""Maximum number of connections. Beyond it, the oldest idle connection is closed."""

_BODY = (b"content-length", b"transfer-encoding")
"""Headers that announce a body."""


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits on time, size and the number of connections."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_head = self._in_body = False
        self._head_bytes = 0
        self._framing_bytes = 0  # of a chunked body: sizes, extensions and trailers
        self._opened = self.loop.time()

    # -- the head of a request ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request of a new connection."""
        super().connection_made(transport)
        self.transport = CoalescingTransport(transport, self.loop)  # type: ignore[assignment]  # uvicorn uses only these methods
        listener = transport.get_extra_info("socket")
        if listener is not None and listener.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio sets this only if the listening socket was created with the protocol number.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()
        if not transport.is_closing():
            self._expect_head()

    def _make_room(self) -> None:
        """Close the oldest idle connection, or this one if all others are busy."""
        idle = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
        oldest = min(idle, key=lambda each: each._opened, default=self)
        oldest.transport.abort()

    @property
    def is_idle(self) -> bool:
        """True if no request is in flight on this connection."""
        return self.cycle is None or self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers of a closed connection."""
        self._expect_nothing()
        self._is_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count received bytes, and check the size of the head and of a body's framing."""
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._in_body and self._framing_bytes > MOST_HEAD_BYTES:
            self.transport.abort()  # a response may already be in progress, so no other one is possible
            return
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._too_long()
        elif self._deadline is None:
            self._expect_head()

    def on_message_begin(self) -> None:
        """Handle the first byte of a request."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Strip the blanks around a header's value (RFC 9110, 5.5).

        A trailer, after the body, is not a header (6.5.1).
        """
        if not self._in_body:
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Check the size of a complete head, and refuse an upgrade with a body."""
        self._in_head, self._in_body, self._framing_bytes = False, True, 0
        self._expect_nothing()
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MOST_HEAD_BYTES:
            self._too_long()
        elif not self.parser.should_upgrade():
            super().on_headers_complete()
        elif any(name in _BODY and value != b"0" for name, value in self.headers):
            # The parser would skip the body: a batch would become an empty run that ends under its key.
            self._refuse("malformed", "Upgrade asks for another protocol than HTTP/1.1. Leave it out with a body.")
        else:
            super().on_headers_complete()
            self.cycle.keep_alive = False  # the parser reads nothing after this request

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body, unless the head was refused."""
        self._framing_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the end of a request, unless its head was refused."""
        self._in_body = False
        self._expect_nothing()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Give the client time to finish its body after a response.

        If the connection closed at once, a client that is still sending would never read the response.
        """
        super().on_response_complete()
        if self._in_body:
            self._deadline = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse("slow-request", "the head of the request did not arrive in time")
        else:
            self.transport.close()

    def _too_long(self) -> None:
        self._refuse(
            "head-too-large", f"the head of the request: expected at most {MOST_HEAD_BYTES} bytes; found more"
        )

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not valid HTTP."""
        self._refuse("malformed", msg)

    def _refuse(self, code: str, why: str) -> None:
        """Respond without the application, and close the connection."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # the fault is after a request that is in progress
            return
        response = problem(code, why)
        headers = [*response.raw_headers, *SECURITY, *self.server_state.default_headers, (b"connection", b"close")]
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self.transport.write(b"".join([STATUS_LINE[response.status_code], *lines, b"\r\n", bytes(response.body)]))
        self.transport.close()

    # -- the reader of an answer --------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Start the reader's timer when the write buffer is full."""
        super().pause_writing()
        self._stalled = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the reader's timer."""
        super().resume_writing()
        self._is_read()

    def _is_read(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


# -- requests ----------------------------------------------------------------------------------------

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

RETRY = {"Retry-After": "1"}
_GONE: Message = {"type": "http.disconnect"}


class Exchange:
    """One request and its response, between the server and the application.

    The first response wins. The exchange responds itself if a body is too long or something is too slow. Then the
    application sees a disconnected client, and its later messages are discarded.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        settings: Settings,
        told: RequestContext,
        streamed: bool,
        closing: Callable[[], bool],
    ) -> None:
        self.scope, self.told = scope, told
        self.status: int | None = None
        self._receive, self._send, self._closing = receive, send, closing
        self._settings, self._streamed = settings, streamed
        self._arrived = 0  # bytes of the body
        self._waiting = False  # True while the application waits for more of it
        self._last = time.monotonic()  # time of the last data
        self._over = False  # True if this exchange responded instead of the application
        self._timer: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None

    # -- time ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the timer.

        Streamed routes check the time themselves, because they respond while lines arrive.
        """
        if not self._streamed:
            self._in(self._settings.body_seconds)

    def _in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """End the exchange if the body or the response takes too long."""
        self._timer = None
        now = time.monotonic()
        if self.status is not None:
            return  # a started response is the responsibility of its route and the connection
        if self._waiting:
            self._cut_off(problem("slow-request", "the body of the request did not arrive in time"))
        else:
            left = self._last + self._settings.answer_seconds - now
            if left > 0:
                self._in(left)
            else:
                why = "this takes too long; nobody knows whether something was charged: ask again with the same key"
                self._cut_off(problem("timed-out", why, {"unknown": True}, RETRY))

    def _cut_off(self, answer: Response) -> None:
        self._answering = asyncio.ensure_future(self.answer(answer, close=True))

    async def end(self) -> None:
        """Stop the timer after the application has returned."""
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            await self._answering

    # -- what the application hears and says --------------------------------------------------------------

    async def receive(self) -> Message:
        """Return the server's next message; a disconnect if this exchange is over."""
        if self._over:
            return _GONE
        self._waiting = True
        message = await self._receive()
        self._waiting = False
        if self._over:
            return _GONE
        if message["type"] != "http.request":
            return message
        self._last = time.monotonic()
        why = self._too_large(message.get("body", b""))
        if why is None:
            return message
        await self.answer(problem("too-large", why))
        return _GONE

    def _too_large(self, body: bytes) -> str | None:
        self._arrived += len(body)
        if self._streamed or self._arrived <= self._settings.most_bytes:
            return None
        return too_large(self._settings)

    async def send(self, message: Message) -> None:
        """Pass on the application's message, unless this exchange is over."""
        if not self._over:
            await self._pass_on(message)

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            over_tls = self.scope.get("scheme") == "https"
            headers = completed(message["headers"], self.told.id, over_tls=over_tls, close=self._closing())
            message = {**message, "headers": headers}
        await self._send(message)

    def answer(self, response: Response, *, close: bool = False) -> Awaitable[None]:
        """Respond instead of the application from now on.

        If the application has already started its response, the caller sees an incomplete response.
        """
        answered, self._over = self._over or self.status is not None, True
        return _nothing() if answered else self._say(response, close)

    async def _say(self, response: Response, close: bool) -> None:
        if close:
            response.headers["Connection"] = "close"
        await response(self.scope, self._receive, self._pass_on)


async def _nothing() -> None: ...


def too_large(settings: Settings) -> str:
    """Return the message for a body that is too long."""
    return f"the body: expected at most {settings.most_bytes} bytes; found more"


# -- admission ---------------------------------------------------------------------------------------

_log = logging.getLogger("ldp_budget_service")
_IPV6_NETWORK = 64
ALIVE = "/livez"
"""Path that is served under any load. A supervisor restarts a process that does not respond there."""


class Load:
    """Number of requests in flight, and the shutdown flag."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.draining = False


class AdmissionMiddleware:
    """ASGI middleware that limits every request in size, time and number, and completes the headers of responses.

    Parameters:
        app: the application.
        settings: the limits.
        load: counts the requests in flight.
        streamed: paths that accept bodies of any length, one line at a time.
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
            told=request_context.current_request(),
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
            # The key was invalid or the route ignored it, and `_refusal` has not counted the request.
            self._addresses.take(address(exchange.scope))

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response that refuses a request; None to admit it."""
        if self._load.in_flight > self._settings.most_in_flight and scope["path"] != ALIVE:
            return problem("overloaded", "too many requests are under way just now", headers=RETRY)
        length = 0
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                length = int(value)
        # A valid key has its own rate limit. With an invalid key the request counts after the response.
        caller = address(scope)
        wait = self._addresses.wait(caller) if _says_a_key(scope) else self._addresses.take(caller)
        if wait:
            return idempotency_record(too_many(wait))
        if length > self._settings.most_bytes and scope["path"] not in self._streamed:
            return problem("too-large", too_large(self._settings))
        fault = fault_of(scope["headers"])
        return None if fault is None else problem("malformed", fault)


def _says_a_key(scope: Scope) -> bool:
    """True if a request has an `Authorization` header, which carries API keys."""
    return any(name == b"authorization" for name, _ in scope["headers"])


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
