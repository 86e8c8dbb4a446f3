"""What stands before the application: bounds of size, time and rate, and headers that browsers go by.

How often somebody may ask: so many a second in the long run, and some more at once.

Writes that follow one another at once go out as one.

One connection to the server: how long a request may take to begin, and an answer to be read.

The application hears of a request once its head has arrived. Whoever sends that a byte a minute, or never, or reads
no answer, is dealt with here.

The door: who comes in, and what becomes of those who are too many, too large or too slow.

One request and its answer: how much has arrived, how long it takes, and who has answered.
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


MOST_KNOWN = 50_000
"""How many callers are remembered at a time."""


class Rate:
    """A rate for each of many callers (the generic cell rate algorithm).

    Of a caller one moment is kept: when everything that they asked for would have been asked for at the even rate.
    They may be `burst` requests ahead of that. Whoever is not ahead is as good as unknown, and forgotten when there
    are too many; if that is not enough, so are those who are the least ahead.

    Parameters:
        rate: requests a second; 0: any number.
        burst: how many more at once.
        clock: seconds on a clock that nobody sets.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._between = 1 / rate if rate else 0.0
        self._ahead = burst * self._between
        self._clock = clock
        self._even: dict[Hashable, float] = {}
        self._lock = threading.Lock()

    def take(self, caller: Hashable) -> float:
        """Ask once. 0.0 if the caller may; or else in how many seconds they may, and then this counts as nothing."""
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
        """In how many seconds the caller may ask again."""
        ahead = self._even.get(caller)
        return 0.0 if ahead is None else max(0.0, ahead - self._clock() - self._ahead)

    def check(self, caller: Hashable) -> None:
        """Ask once. Raises `ServiceError` if the caller may not."""
        wait = self.take(caller)
        if wait:
            raise too_many(wait)

    def _forget(self, now: float) -> None:
        ahead = {caller: even for caller, even in self._even.items() if even > now}
        if len(ahead) > MOST_KNOWN // 2:
            ahead = dict(sorted(ahead.items(), key=lambda item: item[1])[len(ahead) // 2 :])
        self._even = ahead


def too_many(wait: float) -> ServiceError:
    """What is answered to whoever asks too often."""
    seconds = str(math.ceil(wait))
    return ServiceError("too-many-requests", f"ask again in {seconds} s", {"Retry-After": seconds})


class CoalescingTransport:
    """A transport that keeps what is written until the event loop has a moment, and writes it together then.

    uvicorn writes the head of an answer and its body apart. Each write is a call of the system, for which a thread
    lets the others run, and comes back when they let it.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._kept: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write, soon."""
        if not self._kept:
            self._loop.call_soon(self._flush)
        self._kept.append(data)

    def close(self) -> None:
        """Close, when everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._kept:
            data, self._kept = b"".join(self._kept), []
            if not self._transport.is_closing():
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


HEAD_SECONDS = 10.0
"""How long the head of a request may take to arrive, from the first byte or the opening of the connection."""
MOST_HEAD_BYTES = 32 << 10
"""Of the head of a request."""
READ_SECONDS = 30.0
"""How long an answer that does not fit into the connection waits for its reader."""
LINGER_SECONDS = 5.0
"""How long the rest of a body may still arrive, unread, when the answer was given without it."""
MOST_CONNECTIONS = 4000
"""Of one more, the oldest is closed on which no request is under way."""

_BODY = (b"content-length", b"transfer-encoding")
"""The headers that announce a body."""


class Connection(HttpToolsProtocol):
    """uvicorn's, with bounds."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_head = self._in_body = False
        self._head_bytes = 0
        self._framing_bytes = 0  # of a body in chunks: sizes, extensions and trailers
        self._opened = self.loop.time()

    # -- the head of a request ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        self.transport = CoalescingTransport(transport, self.loop)  # type: ignore[assignment]  # it is all that is used of one
        listener = transport.get_extra_info("socket")
        if listener is not None and listener.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio does so only where the listening socket was made with the number of the protocol.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()
        if not transport.is_closing():
            self._expect_head()

    def _make_room(self) -> None:
        """Close the oldest connection that waits for a request, this one where each of the others is at work."""
        idle = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
        oldest = min(idle, key=lambda each: each._opened, default=self)
        oldest.transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody has gone."""
        self._expect_nothing()
        self._is_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes have arrived."""
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._in_body and self._framing_bytes > MOST_HEAD_BYTES:
            self.transport.abort()  # an answer may be under way, so there is no other to give
            return
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._too_long()
        elif self._deadline is None:
            self._expect_head()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, without blanks around its value (RFC 9110, 5.5); a trailer, behind a body, is none (6.5.1)."""
        if not self._in_body:
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._in_head, self._in_body, self._framing_bytes = False, True, 0
        self._expect_nothing()
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MOST_HEAD_BYTES:
            self._too_long()
        elif not self.parser.should_upgrade():
            super().on_headers_complete()
        elif any(name in _BODY and value != b"0" for name, value in self.headers):
            # The parser reads no body of such a request: a batch would be an empty run, and end under its key.
            self._refuse("malformed", "Upgrade asks for another protocol than HTTP/1.1. Leave it out with a body.")
        else:
            super().on_headers_complete()
            self.cycle.keep_alive = False  # the parser reads nothing behind it

    def on_body(self, body: bytes) -> None:
        """A part of the body, unless its head was refused."""
        self._framing_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The end of a request, unless its head was refused."""
        self._in_body = False
        self._expect_nothing()
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer has been given. Were it closed at once, who still sends would never come to read it."""
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
        """What is no HTTP."""
        self._refuse("malformed", msg)

    def _refuse(self, code: str, why: str) -> None:
        """Answer without the application, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # it is about what came behind a request that is being answered
            return
        response = problem(code, why)
        headers = [*response.raw_headers, *SECURITY, *self.server_state.default_headers, (b"connection", b"close")]
        lines = [name + b": " + value + b"\r\n" for name, value in headers]
        self.transport.write(b"".join([STATUS_LINE[response.status_code], *lines, b"\r\n", bytes(response.body)]))
        self.transport.close()

    # -- the reader of an answer --------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The connection takes no more."""
        super().pause_writing()
        self._stalled = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._is_read()

    def _is_read(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

RETRY = {"Retry-After": "1"}
_GONE: Message = {"type": "http.disconnect"}


class Exchange:
    """Stands between the server and the application for one request.

    Whoever answers first has answered: once this has, because a body is too long or somebody is too slow, the
    application is told that the caller has gone, and what it still says goes nowhere.
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
        self._waiting = False  # whether the application waits for more of it
        self._last = time.monotonic()  # when something arrived
        self._over = False  # whether this has answered in the application's place
        self._timer: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None

    # -- time ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Look at the clock from now on. A route that takes lines looks itself, for it answers while they arrive."""
        if not self._streamed:
            self._in(self._settings.body_seconds)

    def _in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Whether it takes too long by now."""
        self._timer = None
        now = time.monotonic()
        if self.status is not None:
            return  # what becomes of an answer that has begun is for its route, and for the connection
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
        """The application has returned."""
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            await self._answering

    # -- what the application hears and says --------------------------------------------------------------

    async def receive(self) -> Message:
        """The next message of the server, unless this exchange is over."""
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
        """Pass on what the application says, unless this exchange is over."""
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
        """Answer in the application's place, from now on; where it has begun to, the caller sees that break off."""
        answered, self._over = self._over or self.status is not None, True
        return _nothing() if answered else self._say(response, close)

    async def _say(self, response: Response, close: bool) -> None:
        if close:
            response.headers["Connection"] = "close"
        await response(self.scope, self._receive, self._pass_on)


async def _nothing() -> None: ...


def too_large(settings: Settings) -> str:
    """What is said of a body that is too long."""
    return f"the body: expected at most {settings.most_bytes} bytes; found more"


_log = logging.getLogger("ldp_budget_service")
_IPV6_NETWORK = 64
ALIVE = "/livez"
"""Answers however many requests are under way: who asks restarts a process that does not."""


class Load:
    """How many requests are under way, and whether the service is about to end."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.draining = False


class AdmissionMiddleware:
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
