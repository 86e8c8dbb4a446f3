"""A key that is revoked while a body is on its way: nothing of the body is charged."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.invitations import Invitations
from service_farm import HOST, MECHANISM, PATIENCE
from service_threads import Served

LINE = json.dumps({"user": "late", "mechanism": MECHANISM}).encode()
KEYED = json.dumps({"user": "late", "mechanism": MECHANISM, "key": "k"}).encode()
JSON = b"Content-Type: application/json\r\n"
ROUTES = {
    "spend": (b"/v1/spends", JSON + b"Idempotency-Key: s\r\n", LINE),
    "batch": (b"/v1/spends:batch", b"Idempotency-Key: b\r\n", LINE),
    "lines": (b"/v1/spends:batch", b"", KEYED),
    "reservation": (b"/v1/reservations", JSON + b"Idempotency-Key: r\r\n", LINE),
    "report": (b"/v1/collections/party/reports", b"Idempotency-Key: p\r\nX-User: late\r\n", b"\1"),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Accountant(tmp_path_factory.mktemp("revoked") / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.add_collection(Collection("party", mechanism("oue")(epsilon="1", domain_size=3)))
        with Served(accountant) as made:
            yield made


def ledger_of(served: Served) -> Path:
    return Path(served.accountant.name)


def begun(served: Served, route: str, secret: str, framing: str) -> tuple[socket.socket, bytes]:
    """Send a request but for the end of its body; return the connection, and that end."""
    path, headers, body = ROUTES[route]
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n" % (
        path,
        secret.encode(),
    )
    if framing == "length":
        head += headers + b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1]
        rest = body[-1:]
    else:
        head += headers + b"Transfer-Encoding: chunked\r\n\r\n"
        head += b"%x\r\n%s\r\n" % (len(body) - 1, body[:-1]) if len(body) > 1 else b""
        rest = b"1\r\n%s\r\n0\r\n\r\n" % body[-1:]
    line = socket.create_connection((HOST, served.port), timeout=PATIENCE)
    line.sendall(head)
    return line, rest


def ended(line: socket.socket, rest: bytes) -> bytes:
    """Send the end of the body; return the response."""
    with line:
        line.sendall(rest)
        return b"".join(iter(lambda: line.recv(1 << 16), b""))


def wait_for_admission(served: Served) -> None:
    """Return when the service waits for the rest of the body, some time after it looked at the key."""
    socket_of_nobody = socket.create_connection((HOST, served.port), timeout=PATIENCE)
    with socket_of_nobody as line:
        for _ in range(3):
            line.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert line.recv(1 << 16)
    # longer than the time in which the service takes a body as sent at once
    with pytest.raises(TimeoutError), socket.create_connection((HOST, served.port), timeout=0.2) as idle:
        idle.recv(1)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("route", list(ROUTES))
def test_body_that_ends_after_its_key_was_revoked_charges_nothing(served: Served, route: str, framing: str) -> None:
    """10,000 lines were charged 12 seconds after their key was revoked."""
    name = f"{route}-{framing}"
    secret = served.secret("spend", "collect", name=name)
    line, rest = begun(served, route, secret, framing)
    wait_for_admission(served)
    ApiKeys(served.accountant).revoke(name)
    answer = ended(line, rest)
    assert answer.startswith(b"HTTP/1.1 401"), answer
    assert b"/problems/unauthorized" in answer
    assert served.accountant.history("late") == []


def test_report_that_ends_after_its_invitation_was_revoked_is_not_kept(served: Served) -> None:
    invitations = Invitations(served.accountant)
    [(_, secret)] = invitations.invite("party", ["guest"], served.accountant.now() + timedelta(days=1), round="one")
    key = served.ask("GET", "/v1/me", secret=secret).json()["key"]
    head = b"POST /v1/collections/party/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
    line = socket.create_connection((HOST, served.port), timeout=PATIENCE)
    line.sendall(head + secret.encode() + b"\r\nIdempotency-Key: " + key.encode() + b"\r\nContent-Length: 1\r\n\r\n")
    wait_for_admission(served)
    invitations.revoke(served.accountant.collection("party").name)
    assert ended(line, b"\1").startswith(b"HTTP/1.1 401")
    assert served.accountant.history("guest") == []
