"""Servers to kill: processes of the service that start in a tenth of a second, as their parent has the imports.

    with Farm() as farm:
        one = farm.start(ledger)
        answer = Caller(one.port, secret).spend("alice", key="monday")
        one.kill()

The parent is this file, run as a program: it is controlled by lines of JSON. Its servers end with it.
"""

from __future__ import annotations

import gc
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

HOST = "127.0.0.1"
MECHANISM = {"name": "rr", "epsilon": "0.001"}
PATIENCE = 30.0  # seconds, for steps that take well under one


# -- the caller's side ---------------------------------------------------------------------------------------


class Farm:
    """Starts servers."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._answers = self._process.stdin, self._process.stdout
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.close()
        self._process.wait(PATIENCE)
        self._answers.close()

    def ask(self, **asked: Any) -> Any:
        """Return the response of the parent."""
        self._asked.write(json.dumps(asked) + "\n")
        self._asked.flush()
        return json.loads(self._answers.readline())

    def listen(self) -> int:
        """A port that stays open over the ends of servers: who comes meanwhile waits for the next."""
        port: int = self.ask(do="listen")
        return port

    def start(self, ledger: str, port: int | None = None, **options: Any) -> Instance:
        """A server of a ledger, on a port that is listened to already or on one of its own.

        `options` are those of `serve`, and `settings` those of `Settings`.
        """
        started = self.ask(do="start", ledger=str(ledger), port=port, options=options)
        return Instance(self, **started)


@dataclass
class Instance:
    """A server."""

    farm: Farm
    pid: int
    port: int

    def kill(self) -> None:
        """SIGKILL; it is gone when this returns."""
        self.farm.ask(do="end", pid=self.pid, sign=signal.SIGKILL)

    def end(self) -> int:
        """SIGTERM; returns when it has ended, with its exit code."""
        code: int = self.farm.ask(do="end", pid=self.pid, sign=signal.SIGTERM)
        return code

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        code: int = self.farm.ask(do="wait", pid=self.pid)
        return code

    def signal(self, sign: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, sign)


class Answer:
    """The response of the service."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


class Caller:
    """A client with one connection, which reconnects after a loss."""

    def __init__(self, port: int, secret: str | None, timeout: float = PATIENCE) -> None:
        self.port, self.secret, self.timeout = port, secret, timeout
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request, sent once. Raises OSError or HTTPException where it is not answered."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.secret is not None:
            sent.setdefault("Authorization", f"Bearer {self.secret}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        if self._connection is None:
            self._connection = http.client.HTTPConnection(HOST, self.port, timeout=self.timeout)
        try:
            self._connection.request(method, path, body, sent)
            return Answer(self._connection.getresponse())
        except BaseException:
            self.close()
            raise

    def spend(self, user: str, key: str, **more: Any) -> Answer:
        """Charge a user for one report, sent once."""
        body = {"user": user, "mechanism": MECHANISM, **more}
        return self.ask("POST", "/v1/spends", body, Idempotency_Key=key)

    def spend_until_answered(self, user: str, key: str, ports: list[int] | None = None) -> Answer:
        """The same, sent again with the same key until there is an answer, if need be to other ports."""
        deadline, tries = time.monotonic() + PATIENCE, 0
        while time.monotonic() < deadline:
            try:
                answer = self.spend(user, key)
                if answer.status in (200, 409):
                    return answer
                assert answer.status == 503, answer.body
            except (OSError, http.client.HTTPException):
                tries += 1
                if ports:
                    self.port = ports[tries % len(ports)]
            time.sleep(0.005)
        raise TimeoutError(f"no answer to {key}")

    def close(self) -> None:
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def new_ledger(place: str, *limits: str, scopes: tuple[str, ...] = ("spend", "read")) -> str:
    """Make a ledger with a policy; the secret of an API key of it."""
    from ldp_budget import Accountant
    from ldp_budget_service.api_keys import ApiKeys

    with Accountant(place) as accountant:
        accountant.set_policy("default", list(limits))
        return ApiKeys(accountant).create("load", scopes)[1]


# -- the parent ----------------------------------------------------------------------------------------------


def main() -> None:
    import ldp_budget
    from ldp_budget_service.server import serve
    from ldp_budget_service.settings import Settings

    ldp_budget.mechanism("rr")(epsilon="0.001").guarantee  # noqa: B018 - loads what a spend needs

    gc.collect()
    gc.freeze()
    listeners: dict[int, socket.socket] = {}
    children: set[int] = set()

    def listen() -> socket.socket:
        listener = socket.create_server((HOST, 0), backlog=256)
        listeners[listener.getsockname()[1]] = listener
        return listener

    def start(ledger: str, port: int | None, options: dict[str, Any]) -> dict[str, int]:
        listener = listen() if port is None else listeners[port]
        number = listener.getsockname()[1]
        settings = Settings(**options.pop("settings", {}))
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                # Its log is discarded; with its output it would hold the pipe of the parent.
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)
                os.dup2(0, 1)
                for other in listeners.values():
                    if other is not listener:
                        other.close()
                serve(ledger, sockets=[listener], settings=settings, say=lambda text: None, **options)
                code = 0
            finally:
                os._exit(code)
        children.add(pid)
        if port is None:
            listeners.pop(number).close()
        return {"pid": pid, "port": number}

    def end(pid: int, sign: int) -> int:
        os.kill(pid, sign)
        return wait(pid)

    def wait(pid: int) -> int:
        children.discard(pid)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    acts = {"listen": lambda: listen().getsockname()[1], "start": start, "end": end, "wait": wait}
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(acts[asked.pop("do")](**asked)), flush=True)
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
