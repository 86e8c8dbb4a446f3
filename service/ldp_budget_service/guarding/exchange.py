"""One request and its answer: how much has arrived, how long it takes, and who has answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from ..current import Told
from ..problems import problem
from .headers import completed

if TYPE_CHECKING:
    from starlette.responses import Response

    from ..settings import Settings

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
        told: Told,
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
