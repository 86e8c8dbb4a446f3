"""The HTTP protocol of the service: uvicorn's fast one, on httptools, with rules that it lacks.

- The head of a request is bounded, and so is what frames its body: sizes of chunks, their extensions and trailers.
- A head must arrive in time, and a client must read its response. Beyond the maximum number of connections, the one that
  has been idle for longest is closed. So connections that do nothing keep no caller out.
- A trailer is not a header (RFC 9110, 6.5.1), and blanks around a value are not part of it (5.5). So neither makes
  another idempotency key.
- A request for another protocol has no body. httptools would skip the body, and a batch would end its run.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 32 << 10
"""Maximum bytes of a request's head, or between two parts of its body; what one read brings may come on top."""
HEAD_SECONDS = 20.0
"""Seconds within which the head of a request must arrive, since the connection or the first byte after a response."""
STALLED_SECONDS = 30.0
"""Seconds for which a client may leave a response unread."""
_BODY = (b"content-length", b"transfer-encoding")
"""Headers that announce a body."""


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._in_body = False
        self._framing_bytes = 0  # since the head began, or since the last part of the body
        # The connections of the server without a request in progress, in the order in which they became idle.
        self._idle: dict[HttpProtocol, None] = vars(self.server_state).setdefault("idle", {})
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    # -- connections ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection; close the one that is idle for longest if there are too many."""
        super().connection_made(transport)
        self._idle[self] = None
        self._await_head()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._idle.pop(self, None)
        for timer in (self._head_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the time in which the client must read on."""
        super().pause_writing()
        self._stall_timer = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Make the connection idle, unless another request waits on it."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._idle[self] = None

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    # -- requests -------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and refuse a head that is too long."""
        self._framing_bytes += len(data)
        if self._head_timer is None and self in self._idle:
            self._await_head()
        super().data_received(data)
        if self._framing_bytes <= MOST_HEAD_BYTES or self.transport.is_closing():
            return
        if self._in_body:
            self.transport.abort()  # a response may already be in progress, so no other one is possible
        else:
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._in_body, self._framing_bytes = False, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, and no trailer."""
        if not self._in_body:
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Start the application, unless the request asks for another protocol and has a body."""
        upgrade = self.parser.should_upgrade()
        if upgrade and any(name in _BODY and value != b"0" for name, value in self.headers):
            self.send_400_response("Leave out Upgrade: a request with a body is HTTP/1.1.")
            return
        self._in_body = True
        self._idle.pop(self, None)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()
        if upgrade and self.cycle is not None:
            self.cycle.keep_alive = False  # the parser reads nothing after this request

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body, unless the request was refused."""
        self._framing_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request, unless it was refused."""
        self._in_body, self._framing_bytes = False, 0
        if not self.transport.is_closing():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse the request that is being read, unless an earlier one on this connection has no response yet.

        The client would take the refusal as that response, although the earlier request may have charged. Without a
        response it repeats the request with the same key.
        """
        cycle = self.cycle
        unanswered = cycle is not None and not cycle.response_complete
        if self.pipeline or (cycle is not None and unanswered and (not self._in_body or cycle.response_started)):
            self.transport.abort()
        else:
            super().send_400_response(msg)
