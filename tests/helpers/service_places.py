"""The places of the tests' ledgers behind a real service, see `contract.places.Place`.

The service runs in a thread of this process, over real sockets, so that it shares the clock of a test. Starting a
server takes longer than most tests, so all of a process share one, and each puts its own ledger behind it.
"""

from __future__ import annotations

import functools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch

import uvicorn
from fastapi import FastAPI

from contract.acts import PROMISED, Promise
from contract.places import Place
from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import LOCAL, Principal
from ldp_budget.registry import plugins
from ldp_budget.registry.plugins import Plugin, Registry
from ldp_budget_service import Settings, create_app
from ldp_budget_service.api_keys import ApiKey
from ldp_budget_service.client import Client

Now = Callable[[], datetime | float]

HOST = "127.0.0.1"
SECRET = "ldpb_of-the-tests"
PATIENCE = 20.0


class Keys:
    """Instead of the keys of a ledger, which would be records in it: one for each caller, good for everything."""

    def __init__(self) -> None:
        self._callers: dict[str, Principal] = {}

    def secret_of(self, caller: Principal) -> str:
        """The secret of a caller's key."""
        secret = f"{SECRET}-{caller.number}"
        self._callers[secret] = caller
        return secret

    def find(self, secret: str, *, offline: bool = False, ended: bool = False) -> ApiKey | None:
        caller = self._callers.get(secret)
        if caller is None:
            return None
        number, name, share = caller
        return ApiKey(number, name, ("admin",), None, None, share, None, None, datetime.min, None)

    def is_fresh(self) -> bool:
        """True if nothing must be read again; always true."""
        return True

    def refresh_if_stale(self) -> None:
        """Read the needed state again."""


class Served:
    """A service that runs in a thread; which ledger is behind it can be changed."""

    def __init__(self) -> None:
        self._app: FastAPI | None = None
        self.keys: Any = None
        # asyncio sends responses at once only for a declared TCP protocol.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind((HOST, 0))
        self._socket.listen(200)
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(self._answer, interface="asgi3", log_config=None, lifespan="off", access_log=False)
        self._server = uvicorn.Server(config)
        # Nothing of it is needed once the tests have ended.
        threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True).start()
        end = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < end
            time.sleep(0.005)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def serve(self, accountant: Accountant, keys: Any) -> None:
        """Put a ledger behind it, with an application of its own."""
        self.keys = keys
        with patch("ldp_budget_service.app.ApiKeys", lambda accountant: keys):
            self._app = create_app(accountant, Settings())

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        assert self._app is not None
        await self._app(scope, receive, send)


@functools.cache
def shared_service() -> Served:
    """The service of this process."""
    return Served()


class ServedClient(Client):
    """An accountant of the shared service, with the ledger that is behind it."""

    def __init__(self, behind: Accountant) -> None:
        self.behind, self.keys, self._others = behind, Keys(), list[Client]()
        self._url = shared_service().url
        shared_service().serve(behind, self.keys)
        super().__init__(self._url, self.keys.secret_of(LOCAL), patience=PATIENCE)

    def acting_for(self, caller: Principal) -> Accountant:
        """The key identifies the caller: another accountant, with the caller's key."""
        self._others.append(Client(self._url, self.keys.secret_of(caller), patience=PATIENCE))
        return self._others[-1]

    def hang_up(self) -> None:
        """Close the connections, and not the ledger."""
        super().close()
        for other in self._others:
            other.close()

    def close(self) -> None:
        self.hang_up()
        self.behind.close()


class Behind:
    """A place whose ledger is behind the service."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(self, clock: Now) -> Accountant:
        return ServedClient(self.place.open(clock))

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        assert isinstance(accountant, ServedClient)
        accountant.hang_up()
        return ServedClient(self.place.reopen(accountant.behind, clock))


class Promised(Promise):
    """The promises of the tests, as a plugin of the service has them: by the number that tells them apart."""

    def __new__(cls, of: int) -> Any:
        return type("Promise", (Promise,), {"promised": PROMISED[of]})(of=of)


@contextmanager
def plugin_of_promises() -> Iterator[None]:
    """While this lasts, a plugin brings the promises."""
    installed = Registry([*plugins.registry().plugins, Plugin("promises", "1", (Promised,))])
    with patch.object(plugins, "registry", lambda: installed):
        yield
