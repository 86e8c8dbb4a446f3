"""Writes that follow one another at once go out as one."""

from __future__ import annotations

import asyncio
from typing import Any


class Gathered:
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
