"""One connection to the server: how long a request may take to begin, and an answer to be read.

The application hears of a request once its head has arrived. Whoever sends that a byte a minute, or never, or reads
no answer, is dealt with here.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ..problems import problem
from .headers import SECURITY
from .writing import Gathered

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
        self.transport = Gathered(transport, self.loop)  # type: ignore[assignment]  # it is all that is used of one
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
