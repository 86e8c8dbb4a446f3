"""The headers that every answer has, unless its route says otherwise."""

from __future__ import annotations

import re
import secrets
from itertools import count

Headers = list[tuple[bytes, bytes]]

SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""What is not said by a route itself; pages have policies of their own."""

TRANSPORT_SECURITY = (b"strict-transport-security", b"max-age=31536000")
"""Where a request came over TLS."""

_NAMING = {
    name.lower().encode(): name
    for name in ("Authorization", "Content-Type", "Idempotency-Key", "X-Collection", "X-Label", "X-User")
}
"""The headers that decide who is charged, once, and for which report."""

# An identifier that may be told of: a name of somebody does not look like that.
_ID = re.compile(rb"[0-9a-fA-F-]{16,64}")
# An id of ours need be nobody else's; that anybody can guess it does no harm.
_PROCESS, _NUMBERS = secrets.token_hex(8), count(1)


def identifier(headers: Headers) -> str:
    """The request's id, if the caller sent one of hexadecimal digits and hyphens; or else a new one."""
    for name, value in headers:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return value.decode("ascii")
    return f"{_PROCESS}{next(_NUMBERS):016x}"


def fault_of(headers: Headers) -> str | None:
    """Why the headers of a request do not say clearly who is charged for which report; None where they do.

    A proxy that appends a header leaves the caller's own in front. Bytes beyond ASCII have no one meaning in a
    header, so that a name in UTF-8 would be another user's.
    """
    seen = set()
    for name, value in headers:
        if name not in _NAMING:
            continue
        if name in seen:
            return f"{_NAMING[name]} is sent more than once. Send it once."
        if not value.isascii():
            return f"{_NAMING[name]} has characters other than ASCII. Send ASCII; percent-encode X-User as UTF-8."
        seen.add(name)
    return None


def completed(headers: Headers, request_id: str, *, over_tls: bool, close: bool) -> Headers:
    """The headers of an answer with those that it lacks."""
    said = {name.lower() for name, _ in headers}
    found = [*headers, *(each for each in SECURITY if each[0] not in said)]
    found.append((b"x-request-id", request_id.encode("ascii")))
    if over_tls:
        found.append(TRANSPORT_SECURITY)
    if close and b"connection" not in said:
        found.append((b"connection", b"close"))
    return found
