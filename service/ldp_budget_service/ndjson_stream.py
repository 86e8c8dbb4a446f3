"""Bidirectional NDJSON: responses are sent while the request is still arriving, in constant memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread
from fastapi.responses import Response

from .error_codes import ServiceError, as_json, problem_of
from .responses import MEDIA_TYPE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from starlette.types import Receive, Scope, Send

MOST_LINES = 25_000
"""Maximum lines in one unit of work. More lines are faster, but other requests wait longer."""
MOST_BYTES = 4 << 20
"""Memory limit in bytes for lines that wait. A caller that sends more must wait."""
LINE_BYTES = 160
"""Memory of a line in bytes, without its text."""


class Line(NamedTuple):
    """A non-blank line of the request with its number, from 1. The text is None if the line was too long."""

    number: int
    text: bytes | None


class Answered(NamedTuple):
    """The response to the first `lines` of some lines. With `ended`, the exchange stops there."""

    text: str
    lines: int
    ended: bool = False


Work = Callable[[list[Line], bool], Answered]
"""Processes lines. True means that no more lines follow.

The last call has True, with an empty list if all lines were processed before.
"""


class Incoming:
    """The lines of a request as they arrive."""

    def __init__(self, receive: Receive, most_line: int) -> None:
        self._receive = receive
        self._most_line = most_line
        self._changed = asyncio.Condition()
        self._rest = b""
        self._long = False
        self._number = 0
        self._bytes = 0
        self._starving = False
        self.lines: deque[Line] = deque()
        self.ended = False
        """True if all lines have arrived."""
        self.gone = False
        """True if the client has disconnected."""

    async def read(self) -> None:
        """Read until the end, no faster than the lines are taken."""
        while not (self.ended or self.gone):
            message = await self._receive()
            async with self._changed:
                if message["type"] == "http.disconnect":
                    self.gone = True
                else:
                    self._add(message.get("body", b""), not message.get("more_body", False))
                self._changed.notify_all()
                while self._bytes > MOST_BYTES and not (self._starving or self.ended):
                    await self._changed.wait()

    def _add(self, data: bytes, ended: bool) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        if ended:
            whole.append(self._rest)
            self._rest, self.ended = b"", True
        for text in whole:
            self._number += 1
            too_long, self._long = self._long or len(text) > self._most_line, False
            if too_long or text.strip():
                self.lines.append(Line(self._number, None if too_long else text))
                self._bytes += _size(self.lines[-1])
        if len(self._rest) > self._most_line:  # too long: drop the text to save memory
            self._rest, self._long = b"", True

    async def more(self, than: int) -> bool:
        """Wait for more lines than `than`, or for the end; return True if there are lines to process.

        A consumer that cannot continue with the current lines gets more, even beyond the memory limit.
        """
        async with self._changed:
            self._starving = than > 0
            self._changed.notify_all()
            while len(self.lines) <= than and not (self.ended or self.gone):
                await self._changed.wait()
            self._starving = False
        return bool(self.lines) and not self.gone

    async def take(self, count: int) -> None:
        """Drop processed lines."""
        async with self._changed:
            for _ in range(count):
                self._bytes -= _size(self.lines.popleft())
            self._changed.notify_all()


def _size(line: Line) -> int:
    """Return the approximate memory of a line."""
    return LINE_BYTES + len(line.text or b"")


class NdjsonExchange(Response):
    """Response that processes lines in units of work, one after the other, each in a thread, while it holds `held`.

    The exchange ends if the client sends nothing for `idle` seconds and has received every response.
    """

    def __init__(
        self, work: Work, held: AbstractContextManager[None], headers: dict[str, str], *, most_line: int, idle: float
    ) -> None:
        super().__init__(None, 200, headers, MEDIA_TYPE)
        del self.headers["content-length"]
        self._work = work
        self._held = held
        self._most_line = most_line
        self._idle = idle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            incoming = Incoming(receive, self._most_line)
            reading = asyncio.create_task(incoming.read())
            try:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._answer(incoming, send)
                await send({"type": "http.response.body", "body": b""})
            finally:
                reading.cancel()

    async def _answer(self, incoming: Incoming, send: Send) -> None:
        tried, last = 0, False
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    more = await incoming.more(tried)
            except TimeoutError:
                why = f"no line came for {self._idle:g} seconds"
                told = as_json({"status": "failed", "problem": problem_of(ServiceError("slow-request", why))})
                await send({"type": "http.response.body", "body": f"{told}\n".encode(), "more_body": True})
                return
            if incoming.gone or (last and not more):
                return
            most = max(MOST_LINES, 2 * tried)
            lines = [incoming.lines[place] for place in range(min(len(incoming.lines), most))]
            last = incoming.ended and len(lines) == len(incoming.lines)
            answered = await to_thread.run_sync(self._work, lines, last)
            await incoming.take(answered.lines)
            tried = 0 if answered.lines else len(lines)
            if answered.text:
                await send({"type": "http.response.body", "body": answered.text.encode(), "more_body": True})
            if answered.ended:
                return
