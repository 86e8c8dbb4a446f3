"""Connections and requests without a key never keep out callers who have one."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service import http_protocol
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.invitations import Invitations
from ldp_budget_service.settings import Settings
from service_farm import HOST, PATIENCE
from service_threads import Served

MOST = 40


@pytest.fixture
def ledger() -> Iterator[Accountant]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.add_collection(Collection("party", mechanism("oue")(epsilon="1", domain_size=3)))
        yield accountant


def opened(served: Served, begun: bytes = b"") -> socket.socket:
    line = socket.create_connection((HOST, served.port), timeout=PATIENCE)
    line.sendall(begun)
    return line


def is_closed(line: socket.socket) -> bool:
    """True once the service has closed a connection. Raises `TimeoutError` if it does not."""
    line.settimeout(PATIENCE)
    try:
        while line.recv(1 << 16):
            pass
        return True
    except ConnectionError:
        return True


# -- connections ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"\r\n"])
def test_idle_connections_beyond_the_limit_are_closed_for_new_ones(ledger: Accountant, begun: bytes) -> None:
    """With 4,100 idle connections, a good key got 503."""
    with Served(ledger) as served, ExitStack() as lines:
        served.server.config.limit_concurrency = MOST + 1
        secret = served.secret("read")
        idle = [lines.enter_context(opened(served, begun)) for _ in range(2 * MOST)]
        assert served.ask("GET", "/v1/policies", secret=secret).status == 200
        assert is_closed(idle[0])
        assert len(served.server.server_state.connections) <= MOST


def test_connection_in_use_is_not_closed_for_new_ones(ledger: Accountant) -> None:
    with Served(ledger) as served, ExitStack() as lines:
        served.server.config.limit_concurrency = MOST + 1
        secret = served.secret("spend")
        head = f"POST /v1/spends:batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
        busy = opened(served, f"{head}Connection: close\r\nContent-Length: 1\r\nIdempotency-Key: b\r\n\r\n".encode())
        lines.enter_context(busy)
        while not served.app.state.load.in_flight:
            time.sleep(0.005)
        for _ in range(2 * MOST):
            lines.enter_context(opened(served))
        busy.sendall(b"\n")
        assert busy.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_head_that_does_not_arrive_in_time_closes_the_connection(
    ledger: Accountant, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.1)
    with Served(ledger) as served, opened(served, begun) as line:
        assert is_closed(line)


def test_client_that_does_not_read_its_response_is_cut_off(
    ledger: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "STALLED_SECONDS", 0.2)
    with Served(ledger) as served:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with line:
            line.connect((HOST, served.port))
            line.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 40)
            deadline = time.monotonic() + PATIENCE
            while served.server.server_state.connections and time.monotonic() < deadline:
                time.sleep(0.02)
            assert not served.server.server_state.connections
        assert served.app.state.load.in_flight == 0


# -- addresses -----------------------------------------------------------------------------------------------


def test_requests_without_a_key_shut_out_no_key_and_no_link_of_their_address(ledger: Accountant) -> None:
    """A school is one address: 1,100 requests without a key shut out every respondent in it."""
    soon = ledger.now() + timedelta(days=1)
    [(_, link)] = Invitations(ledger).invite("party", ["guest"], soon)
    with Served(ledger, Settings(address_rate=0.01, address_burst=3)) as served:
        key = served.secret("read")
        bad = [served.ask("GET", "/v1/me", secret="ldpb_guess").status for _ in range(6)]
        assert bad == [401] * 4 + [429] * 2
        assert [served.ask("GET", "/problems/forbidden").status for _ in range(2)] == [429] * 2
        assert served.ask("GET", "/v1/policies", secret=key).status == 200
        assert served.ask("GET", "/v1/me", secret=link).status == 200
        for page in ("/s/party", "/static/survey.js", "/v1/collections/party", "/me", "/check", "/", "/officer"):
            assert [served.ask("GET", page).status for _ in range(5)] == [200] * 5, page
        assert served.ask("GET", "/v1/collections/party/estimate").status == 429


def test_revoked_key_and_ended_invitation_are_refused_with_their_address(ledger: Accountant) -> None:
    with Served(ledger, Settings(address_rate=0.01, address_burst=0)) as served:
        secret = served.secret("read", name="gone")
        assert served.ask("GET", "/v1/policies", secret=secret).status == 200
        ApiKeys(ledger).revoke("gone")
        assert [served.ask("GET", "/v1/policies", secret=secret).status for _ in range(3)] == [401, 429, 429]


def test_requests_without_a_key_take_half_of_the_places_at_most(ledger: Accountant) -> None:
    with Served(ledger, Settings(most_in_flight=4)) as served:
        key, load = served.secret("read"), served.app.state.load
        load.in_flight += 2
        load.unknown_in_flight += 2
        try:
            assert served.ask("GET", "/problems/forbidden").status == 503
            assert served.ask("GET", "/livez").status == 200
            assert served.ask("GET", "/v1/policies", secret=key).status == 200
        finally:
            load.in_flight -= 2
            load.unknown_in_flight -= 2
        assert served.ask("GET", "/problems/forbidden").status == 200
