"""A webhook: signed messages to an address that whoever runs the service has named, as Standard Webhooks has it.

Each is a POST with `webhook-id`, the same at every try; `webhook-timestamp`, in seconds since 1970; and
`webhook-signature`, `v1,` and in base64 the HMAC-SHA256 of `ID.TIMESTAMP.BODY`. A receiver takes a message once by
its id, refuses an old timestamp, and compares the signature in constant time.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import http.client
import ssl
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from ldp_budget import InvalidParameter

SECONDS = 10.0
"""How long a try may take at each step."""
GONE = 410
PREFIX = "whsec_"
LEAST_SECRET, MOST_SECRET = 24, 64
_READ = 1024


class Outcome(NamedTuple):
    """What came of a try: the status, or None and why there is none."""

    status: int | None
    why: str = ""

    @property
    def sent(self) -> bool:
        """Whether the receiver has taken it; a redirection is not followed, and is no such answer."""
        return self.status is not None and 200 <= self.status < 300


def signature(secret: bytes, identifier: str, timestamp: int, body: bytes) -> str:
    """What stands in `webhook-signature`."""
    signed = f"{identifier}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def read_secret(path: Path) -> bytes:
    """The secret in a file: `whsec_` and base64, or its characters as they stand. Raises `InvalidParameter`."""
    expected = f"a file with a secret of {LEAST_SECRET} to {MOST_SECRET} bytes, or {PREFIX} and as many in base64"
    try:
        text = path.read_text(encoding="utf-8").strip()
        secret = (
            base64.b64decode(text.removeprefix(PREFIX), validate=True) if text.startswith(PREFIX) else text.encode()
        )
    except (OSError, UnicodeDecodeError, binascii.Error):
        raise InvalidParameter("alert_secret_file", expected, str(path)) from None
    if not LEAST_SECRET <= len(secret) <= MOST_SECRET:
        raise InvalidParameter("alert_secret_file", expected, f"{len(secret)} bytes")
    return secret


class Webhook:
    """Where messages go, and how they are signed. Raises `InvalidParameter` for what is no address."""

    def __init__(self, url: str, secret: bytes, *, seconds: float = SECONDS) -> None:
        self._to, self._secret, self._seconds = _address(url), secret, seconds

    def send(self, identifier: str, timestamp: int, body: bytes) -> Outcome:
        """Try once. Nothing that goes wrong out there is raised."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "ldp-budget",
            "webhook-id": identifier,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, identifier, timestamp, body),
        }
        connection = self._connection()
        try:
            connection.request("POST", self._target(), body, headers)
            with connection.getresponse() as response:
                response.read(_READ)
                return Outcome(response.status)
        except (OSError, http.client.HTTPException) as error:
            return Outcome(None, type(error).__name__)
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host = self._to.hostname or ""
        if self._to.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, self._to.port, timeout=self._seconds, context=context)
        return http.client.HTTPConnection(host, self._to.port, timeout=self._seconds)

    def _target(self) -> str:
        return (self._to.path or "/") + (f"?{self._to.query}" if self._to.query else "")


def _address(url: str) -> SplitResult:
    expected = "an address as https://HOST/PATH, without a user or a fragment"
    try:
        to = urlsplit(url)
        well = to.scheme in ("https", "http") and to.hostname and to.port != 0
        well = well and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        raise InvalidParameter("alert_webhook", expected, "another text") from None
    if not well or "@" in to.netloc or to.fragment:
        raise InvalidParameter("alert_webhook", expected, f"{to.scheme}://…" if to.scheme else "another text")
    return to
