"""A server of the service in a thread of this process, whose inside a test may look at and change.

with Served(accountant, settings) as served:
    Caller(served.port, served.secret()).ask("GET", "/livez")
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any, Self

from fastapi import FastAPI

from ldp_budget import Accountant
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.app import create_app
from ldp_budget_service.server import Server
from ldp_budget_service.settings import Settings
from service_farm import HOST, PATIENCE, Answer, Caller


class Served:
    """Real uvicorn, as `serve` has it, on a port of its own."""

    def __init__(self, accountant: Accountant, settings: Settings | None = None, **options: Any) -> None:
        self.accountant = accountant
        self.app: FastAPI = create_app(accountant, settings)
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.server = Server(self.app, **{"notice": 0, "drain": 5, "say": lambda text: None, **options})
        self._thread = threading.Thread(target=self.server.run, args=([self._listener],))
        self._names = 0

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + PATIENCE
        while not self.server.started and time.monotonic() < deadline:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self._thread.join(PATIENCE)
        self.server.has_ended()

    def secret(self, *scopes: str, **more: Any) -> str:
        """The secret of a new API key; of one for everything, where nothing is said."""
        self._names += 1
        name = more.pop("name", f"caller-{self._names}")
        return ApiKeys(self.accountant).create(name, scopes or ("admin",), **more)[1]

    def ask(self, method: str, path: str, body: Any = None, secret: str | None = None, **headers: str) -> Answer:
        """One request over a connection of its own."""
        caller = Caller(self.port, secret)
        try:
            return caller.ask(method, path, body, **headers)
        finally:
            caller.close()

    def send(self, *parts: bytes, pause: float = 0.0, all_of_it: bool = False) -> bytes:
        """Send bytes as they are, with a pause after each part; all that comes back until the line is closed.

        What is answered before all was said is not said to its end, unless `all_of_it` is.
        """
        found: list[bytes] = []

        def read() -> None:
            with suppress(ConnectionError):
                found.extend(iter(lambda: line.recv(1 << 16), b""))

        with socket.create_connection((HOST, self.port), timeout=PATIENCE) as line:
            reading = threading.Thread(target=read)
            reading.start()
            with suppress(ConnectionError):
                for part in parts:
                    if not all_of_it and (found or not reading.is_alive()):
                        break
                    line.sendall(part)
                    time.sleep(pause)
            reading.join(PATIENCE)
        return b"".join(found)
