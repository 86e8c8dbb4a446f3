"""`serve`: run the service on uvicorn until SIGTERM or SIGINT, then drain the requests in flight."""

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
from importlib.util import find_spec
from typing import TYPE_CHECKING

import uvicorn

from ldp_budget import Accountant, InvalidParameter, NotSupported, mechanisms
from ldp_budget.accounting.admin_log import record_faults
from ldp_budget_service.api_keys import ApiKeys

from .app import create_app
from .http_protocol import HttpProtocol
from .observability import logs
from .settings import Settings

if TYPE_CHECKING:
    from types import FrameType

    from fastapi import FastAPI

Say = Callable[[str], None]

KEEP_ALIVE_SECONDS = 75
"""Seconds for which an idle connection stays open.

It is longer than the keep-alive time of the usual proxies, so the proxy closes first.
"""
MOST_CONNECTIONS = 4000
"""Maximum number of connections. Beyond it, the one that is idle for longest is closed; if none is idle, 503."""
_OTHER_FILES = 256
"""Open files that are no connections: the ledger, worker processes, the log."""
_AFTER_SECONDS = 5.0
"""Seconds after the drain period until the process is forced to exit."""
_SWITCH_SECONDS = 0.001
"""Time after which a computing thread lets the event loop run, if it waits. Python's own is five times as long."""
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
    """Open a ledger and serve it until SIGTERM or SIGINT; then finish the requests in flight and close the ledger.

    A missing ledger is created. It has no API keys yet, so every charge is refused at first.

    Parameters:
        ledger: the path of a file or a `postgresql://…` address.
        host: the address to listen on. Put TLS in front of every address other than loopback.
        port: the port; 0 for any free port.
        settings: the settings of the service; None: `Settings()`.
        proxies: addresses of proxies that terminate TLS. The service trusts their headers for the client's address
            and scheme.
        in_memory: True to allow the ledger `:memory:`, which ends with the process.
        notice: seconds after the signal in which connections are still accepted, each for one more response.
            During that time `/readyz` already reports that the service is ending.
        drain: seconds after that in which the requests in flight may finish.
        log_requests: True to log one line per request.
        sockets: sockets that are already listening, instead of `host` and `port`.
        say: receives each status line for the operator.

    Raises:
        InvalidParameter: an argument is out of range, or the ledger is in memory and `in_memory` is False.
        LedgerError: the ledger cannot be opened or trusted.
        NotSupported: the system is Windows.
    """
    if find_spec("resource") is None:
        raise NotSupported(
            "the service runs on Linux and macOS. Use the Windows Subsystem for Linux (WSL) or the container"
        )
    settings = settings or Settings()
    if not 0 <= port <= 65535:
        raise InvalidParameter("port", "a whole number >= 0 and <= 65535", port)
    if str(ledger) == _MEMORY and not in_memory:
        raise InvalidParameter(
            "ledger",
            "a file or postgresql://…",
            _MEMORY,
            hint="A ledger in memory ends with the process: set in_memory.",
        )
    if settings.tracing:
        _trace()
    if sockets is None:
        _say_what_is_unsafe(host, proxies, say)
        sockets = _bound(host, port)
    sys.setswitchinterval(_SWITCH_SECONDS)
    log = logs.logging_to(sys.stdout, requests=log_requests)
    with _closing(sockets), log, Accountant(ledger, sandbox=None) as accountant:
        app = create_app(accountant, settings)
        _say_what_is_served(accountant, say)
        _log_record_faults(accountant)
        mechanisms()  # load the plugins and their numeric libraries before the first request
        server = Server(app, proxies=proxies, notice=notice, drain=drain, say=say)
        server.run(sockets)
    server.has_ended()


def _config(app: FastAPI, proxies: Sequence[str], drain: float) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=HttpProtocol,
        limit_concurrency=_most_connections() + 1,
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


def _most_connections() -> int:
    """Return the maximum number of connections, after raising the limit of open files as far as it is allowed."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MOST_CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, soft - _OTHER_FILES))


class Server(uvicorn.Server):
    """uvicorn server that shuts down in two steps and always ends. `run` takes listening sockets.

    Parameters:
        app: the application that `create_app` returned.
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
        # A ledger that does not respond blocks threads, and threads keep the process alive. A forced exit is as
        # safe as a crash.
        self._last_resort = threading.Timer(notice + drain + _AFTER_SECONDS, os._exit, (1,))
        self._last_resort.daemon = True

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal arrives."""
        if threading.current_thread() is threading.main_thread():
            # Startup objects live as long as the process: the garbage collector need not scan them again.
            gc.collect()
            gc.freeze()
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and report the addresses."""
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                if listener.family in (socket.AF_INET, socket.AF_INET6):
                    # Connections inherit it. asyncio sets it only for listeners created with the protocol number.
                    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._say(f"listening on {_address(listener)}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Announce the end for `notice` seconds, then stop listening, then drain the requests in flight."""
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
        """Cancel the forced exit if no request is in flight. The ledger is closed by now."""
        if not self._load.in_flight:
            self._last_resort.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM while serving. The signals are not raised again afterwards."""
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
        """Shut down in order at the first signal, and at once at the second."""
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
    """Return one bound socket per address of a host. Raises `InvalidParameter` if a socket cannot be bound."""
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
    """Log each administrative record that cannot be read. The ledger skips those."""
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
        hint = "Install it: pip install 'ldp-budget[tracing]'"
        raise InvalidParameter("tracing", f"off without the package {error.name}", "on", hint=hint) from None
