"""`serve`: runs the service on uvicorn until somebody ends it, and then lets everybody have their answer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import uvicorn

from ldp_budget import Accountant, InvalidParameter, mechanisms
from ldp_budget.accounting.admin_log import record_faults
from ldp_budget.accounting.api_keys import ApiKeys

from .app import create_app
from .observability import logs
from .request_limits import Connection
from .settings import Settings

if TYPE_CHECKING:
    from types import FrameType

    from fastapi import FastAPI

Say = Callable[[str], None]

KEEP_ALIVE_SECONDS = 75
"""How long a connection is kept open with nothing on it: longer than the proxies in front of it keep theirs."""
_AFTER_SECONDS = 5.0
"""How long what is left may take once the time to drain is over."""
_MEMORY = ":memory:"

_log = logging.getLogger("ldp_budget_service")


def _aloud(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def serve(
    ledger: str | os.PathLike[str],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    settings: Settings | None = None,
    proxies: Sequence[str] = (),
    in_memory: bool = False,
    notice: float = 1.0,
    drain: float = 30.0,
    log_requests: bool = True,
    sockets: list[socket.socket] | None = None,
    say: Say = _aloud,
) -> None:
    """Open a ledger and serve it, until SIGTERM or SIGINT comes; then finish what is under way, and close it.

    A ledger that is not there is made: nobody has an API key of that, so nobody can charge anything yet.

    Parameters:
        ledger: the path of a file or the address `postgresql://…`.
        host: the address to listen on; anything beyond this machine is to have TLS in front of it.
        port: the port; 0 for any.
        settings: how the service behaves; None: as `Settings()` says.
        proxies: addresses of proxies that TLS ends at. They are believed where a request comes from, and that it came
            over TLS.
        in_memory: whether the ledger may be `:memory:`, which ends with the process.
        notice: seconds from the signal on in which connections are still taken, each for one more answer, while
            `/readyz` says already that this ends.
        drain: seconds after that in which what is under way may end.
        log_requests: whether there is a line in the log for each request.
        sockets: sockets that listen already, in place of `host` and `port`.
        say: what is told to whoever has started this, line by line.

    Raises:
        InvalidParameter: one of them is out of range, or the ledger is one in memory that was not asked for.
        LedgerError: the ledger cannot be opened or trusted.
    """
    settings = settings or Settings()
    if not 0 <= port <= 65535:
        raise InvalidParameter("port", "a whole number >= 0 and <= 65535", port)
    if str(ledger) == _MEMORY and not in_memory:
        raise InvalidParameter("ledger", "a file or postgresql://…, as one in memory ends with the process", _MEMORY)
    if settings.tracing:
        _trace()
    if settings.reports is not None:
        settings.reports.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sockets is None:
        _say_what_is_unsafe(host, proxies, say)
        sockets = _bound(host, port)
    logs.configure(sys.stdout, requests=log_requests)
    with _closing(sockets), Accountant(ledger, sandbox=None) as accountant:
        app = create_app(accountant, settings)
        _say_what_is_served(accountant, say)
        _log_record_faults(accountant)
        mechanisms()  # loads the plugins, and what they calculate with, before anybody waits for it
        server = Server(app, proxies=proxies, notice=notice, drain=drain, say=say)
        server.run(sockets)
    server.has_ended()


def _config(app: FastAPI, proxies: Sequence[str], drain: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(drain)),
    )


class Server(uvicorn.Server):
    """uvicorn's, which ends in two steps, and in any case. `run` and what it takes are as for `serve`.

    Parameters:
        app: what `create_app` has made.
        proxies, notice, drain, say: as for `serve`.
    """

    def __init__(
        self,
        app: FastAPI,
        *,
        proxies: Sequence[str] = (),
        notice: float = 1.0,
        drain: float = 30.0,
        say: Say = _aloud,
    ) -> None:
        super().__init__(_config(app, proxies, drain))
        self._load, self._notice, self._drain, self._say = app.state.load, notice, drain, say
        # A ledger that does not answer keeps threads, and they the process; it is as safe as after a crash.
        self._last_resort = threading.Timer(notice + drain + _AFTER_SECONDS, os._exit, (1,))
        self._last_resort.daemon = True

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal comes."""
        if threading.current_thread() is threading.main_thread():
            # What was made so far is here to stay, and need not be looked through again and again.
            gc.collect()
            gc.freeze()
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                self._say(f"listening on {_address(listener)}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell everybody that this ends, then listen no more, then let what is under way end."""
        self._load.draining = True
        self._say(f"ending: {self._load.in_flight} requests under way")
        self._last_resort.start()
        for _ in range(round(self._notice / 0.05)):
            if self.force_exit:
                break
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)
        self._say("ended" if not self._load.in_flight else f"ended: {self._load.in_flight} requests cut off")

    def has_ended(self) -> None:
        """The ledger is closed; what is still under way ends with the process."""
        if not self._load.in_flight:
            self._last_resort.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that end this; what they ask for is done then, so nobody hears of them again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sign: signal.signal(sign, self.handle_exit) for sign in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends in order, the second at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


@contextlib.contextmanager
def _closing(sockets: Sequence[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for each in sockets:
            each.close()


def _bound(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of a host. Raises `InvalidParameter` where there is none to be had."""
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            listener = socket.socket(family, kind, protocol)
            found.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
    except OSError as error:
        for listener in found:
            listener.close()
        raise InvalidParameter("port", f"a free port of {host}", f"{port} ({error.strerror})") from None
    return found


def _say_what_is_served(accountant: Accountant, say: Say) -> None:
    say(f"ledger: {accountant.name}")
    if accountant.sandbox:
        say("sandbox: nothing counts in it")
    keys = ApiKeys(accountant)
    if accountant.name == _MEMORY:
        _, secret = keys.create("admin", ["admin"])
        say(f"this ledger ends with the process, and its API key is: {secret}")
    elif not keys.all():
        say(
            "there is no API key yet, so every request is refused; type: ldp-budget api-key create NAME --scope spend"
        )


def _log_record_faults(accountant: Accountant) -> None:
    """Have the log say which administrative records cannot be read, as those are skipped."""
    for fault in record_faults(accountant.records()):
        _log.warning("bad record", extra={"said": {"record": fault}})


def _say_what_is_unsafe(host: str, proxies: Sequence[str], say: Say) -> None:
    if not _is_loopback(host) and not proxies:
        say(
            f"WARNING: {host} is beyond this machine, and API keys and users' names travel in the clear; put a proxy "
            "with TLS in front, and say --behind-tls-proxy"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(listener: socket.socket) -> str:
    name = listener.getsockname()
    if not isinstance(name, tuple):
        return str(name)
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


def _trace() -> None:
    try:
        from .observability import logs

        logs.export()
    except ImportError as error:
        why = f"what is installed by pip install 'ldp-budget[tracing]'; {error.name} is missing"
        raise InvalidParameter("tracing", why, True) from None
