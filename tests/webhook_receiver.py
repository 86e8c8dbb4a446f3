"""Who receives a webhook in the tests: a real server on loopback, which checks signatures by itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Message(NamedTuple):
    """What came, and whether it bears the signature of the secret."""

    id: str
    timestamp: int
    body: dict[str, Any]
    signed: bool


class Receiver:
    """Answers as it was told, the last answer for ever, and keeps what came."""

    def __init__(self, secret: bytes, *answers: int) -> None:
        self.messages: list[Message] = []
        self._answers = list(answers or (204,))
        self._came = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.take(secret, dict(self.headers), body)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts?for=us"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def take(self, secret: bytes, headers: dict[str, str], body: bytes) -> int:
        given = {name.lower(): value for name, value in headers.items()}
        signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
        holds = given["webhook-signature"] == f"v1,{expected}"
        with self._came:
            told = json.loads(body)
            self.messages.append(Message(given["webhook-id"], int(given["webhook-timestamp"]), told, holds))
            self._came.notify_all()
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def wait(self, count: int, seconds: float = 10) -> list[Message]:
        """The messages, once there are so many."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.messages) >= count, seconds), self.messages
            return list(self.messages)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
