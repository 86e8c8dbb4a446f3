"""The HTTP middleware: limits of size, time and rate, and the headers of every response."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from ldp_budget import Accountant
from ldp_budget_service.request_limits import Rate, address
from ldp_budget_service.settings import Settings
from service_farm import HOST, MECHANISM
from service_threads import Served

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
POST = b"POST /v1/spends HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def ledger() -> Iterator[Accountant]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        yield accountant


@pytest.fixture(scope="module")
def served(ledger: Accountant) -> Iterator[Served]:
    settings = Settings(most_bytes=2000, body_seconds=0.3)
    with Served(ledger, settings) as made:
        _add_routes(made.app)
        yield made


def bearer(served: Served) -> bytes:
    """The line of a head that says a good key."""
    return f"Authorization: Bearer {served.secret('spend')}\r\n".encode()


def _add_routes(app: FastAPI) -> None:
    """Routes that do what a route may."""

    @app.get("/slow")
    def slow() -> str:
        time.sleep(0.8)
        return "too late"

    @app.get("/broken")
    def broken() -> None:
        raise ValueError("alice")

    @app.get("/page")
    def page() -> StreamingResponse:
        return StreamingResponse(iter(["<p>"]), headers={"Content-Security-Policy": "default-src 'self'"})


def problem(answer: bytes) -> tuple[int, str, dict[str, str]]:
    """Status, code and headers of a problem, as its bytes have them."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert headers["content-type"] == "application/problem+json"
    told = json.loads(body)
    assert told["status"] == int(status.split()[1])
    return told["status"], told["type"].rpartition("/")[2], headers


# -- what a head must say once -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        b"X-User: eve\r\nX-User: alice\r\n",
        b"Idempotency-Key: one\r\nIdempotency-Key: two\r\n",
        b"Authorization: Bearer x\r\n",
        b"Content-Type: text/plain\r\n",
        "X-User: Zoë\r\n".encode(),
        "X-User: Zoë\r\n".encode("latin-1"),
        "Idempotency-Key: Zoë\r\n".encode(),
    ],
)
def test_header_that_is_sent_twice_or_beyond_ascii_is_refused(served: Served, lines: bytes) -> None:
    """Of two `X-User` the first was charged; the user `café` in UTF-8 was charged as `cafÃ©`, with a fresh budget."""
    body = json.dumps({"user": "twice", "mechanism": MECHANISM}).encode()
    key = b"" if lines.startswith(b"Idem") else b"Idempotency-Key: twice\r\n"
    length = b"Content-Length: %d\r\nConnection: close\r\n" % len(body)
    status, code, _ = problem(served.send(POST + bearer(served) + key + lines + length + b"\r\n" + body))
    assert (status, code) == (400, "malformed")
    assert served.accountant.history("twice") == []


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_batch_with_an_upgrade_header_is_refused_and_binds_no_key(served: Served, protocol: bytes) -> None:
    """httptools skips such a body: a batch of one line was an empty run, and ended the run under its key."""
    key, line = f"upgrade-{protocol.decode()}", json.dumps({"user": "upgrader", "mechanism": MECHANISM}) + "\n"
    head = (
        f"POST /v1/spends:batch HTTP/1.1\r\nHost: x\r\nIdempotency-Key: {key}\r\nContent-Length: {len(line)}\r\n"
        f"Connection: Upgrade, close\r\nUpgrade: {protocol.decode()}\r\n"
    )
    secret = served.secret("spend")
    answer = served.send(f"{head}Authorization: Bearer {secret}\r\n\r\n{line}".encode())
    assert answer.startswith(b"HTTP/1.1 400")
    again = served.ask("POST", "/v1/spends:batch", line.encode(), secret, Idempotency_Key=key)
    assert json.loads(again.body)["repeated"] is False


# -- headers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/livez", 200),
        ("GET", "/openapi.json", 200),
        ("POST", "/v1/spends", 401),
        ("GET", "/nothing", 404),
        ("PUT", "/livez", 405),
        ("GET", "/broken", 500),
    ],
)
def test_responses_have_the_security_headers(served: Served, method: str, path: str, status: int) -> None:
    body = {"user": "alice", "mechanism": MECHANISM} if method == "POST" else None
    answer = served.ask(method, path, body)
    assert answer.status == status
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "Server" not in answer.headers
    assert "Strict-Transport-Security" not in answer.headers
    if status >= 400:
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_internal_error_does_not_reveal_its_cause(served: Served) -> None:
    answer = served.ask("GET", "/broken")
    assert answer.json()["type"] == "/problems/internal"
    assert b"alice" not in answer.body
    assert b"ValueError" not in answer.body


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("0123456789abcdef0123456789abcdef", True), ("11111111-2222-3333-4444-555555555555", True), ("alice", False)],
)
def test_request_id_of_the_caller_is_returned_if_valid(served: Served, sent: str, kept: bool) -> None:
    answer = served.ask("GET", "/livez", X_Request_ID=sent)
    assert (answer.headers["X-Request-ID"] == sent) is kept
    assert len(answer.headers["X-Request-ID"]) >= 32


def test_forwarded_proto_is_accepted_from_a_proxy_only(ledger: Accountant) -> None:
    forwarded = {"X_Forwarded_Proto": "https", "X_Forwarded_For": "192.0.2.7"}
    with Served(ledger, proxies=["127.0.0.1"]) as behind:
        answer = behind.ask("GET", "/livez", **forwarded)
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    with Served(ledger, proxies=["192.0.2.1"]) as elsewhere:
        assert "Strict-Transport-Security" not in elsewhere.ask("GET", "/livez", **forwarded).headers


# -- size ----------------------------------------------------------------------------------------------------


def test_body_announced_too_long_is_not_read(served: Served) -> None:
    answer = served.ask("POST", "/v1/spends", b"x" * 2001)
    assert (answer.status, answer.json()["type"]) == (413, "/problems/too-large")


def test_body_in_chunks_is_counted_as_it_arrives(served: Served) -> None:
    head = POST + bearer(served) + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    assert problem(served.send(head, chunk, chunk, chunk, b"0\r\n\r\n", pause=0.02))[:2] == (413, "too-large")
    assert problem(served.send(head, chunk, b"0\r\n\r\n"))[:2] == (400, "malformed")


def test_batch_body_can_be_larger_than_others(served: Served) -> None:
    secret = served.secret("spend")
    body = 100 * (json.dumps({"user": "alice", "mechanism": MECHANISM}).encode() + b"\n")
    assert len(body) > 2 * 2000
    answer = served.ask("POST", "/v1/spends:batch", body, secret=secret, Idempotency_Key="larger")
    assert answer.status == 200
    assert [json.loads(row)["status"] for row in answer.body.splitlines()] == ["spent"] * 100


@pytest.mark.parametrize("part", [b"x" * 65_536, b"x: y\r\n" * 10_000], ids=["one", "many"])
def test_head_without_end_is_cut_off(served: Served, part: bytes) -> None:
    assert flood(served, b"GET /livez HTTP/1.1\r\nX-Long: ", part) < 64 << 20


def test_bytes_that_are_no_http_are_refused_and_the_connection_closed(served: Served) -> None:
    answer = served.send(b"alice, if you please\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"alice" not in answer


# -- time ----------------------------------------------------------------------------------------------------


def test_body_that_does_not_arrive_times_out(served: Served) -> None:
    begun = time.monotonic()
    answer = served.send(POST + bearer(served) + b'Content-Length: 1000\r\n\r\n{"user":')
    assert problem(answer)[:2] == (408, "slow-request")
    assert time.monotonic() - begun < 5


def test_body_that_arrives_by_the_byte_times_out(served: Served) -> None:
    answer = served.send(POST + bearer(served) + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 20, pause=0.05)
    assert problem(answer)[:2] == (408, "slow-request")


# -- rate ----------------------------------------------------------------------------------------------------


class Seconds:
    """A clock with a time that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_rate_limit_allows_a_burst_and_then_its_rate() -> None:
    clock = Seconds()
    rate = Rate(2, 3, clock)
    assert [rate.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert rate.wait("a") == 0.5
    assert rate.take("b") == 0
    clock.now += 0.5
    assert [rate.take("a"), rate.take("a")] == [0, 0.5]
    clock.now += 60
    assert [rate.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]


@pytest.fixture
def limited(ledger: Accountant) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def start(**settings: float) -> Served:
        made.append(Served(ledger, Settings(**settings)))  # type: ignore[arg-type]
        return made[-1].__enter__()

    yield start
    for each in made:
        each.__exit__()


def test_rate_limit_is_per_caller(limited: Callable[..., Served]) -> None:
    served = limited(rate=0.01, burst=2)
    one, other = served.secret("read", name="one"), served.secret("read", name="other")
    assert [served.ask("GET", "/metrics", secret=one).status for _ in range(4)] == [200, 200, 200, 429]
    answer = served.ask("GET", "/metrics", secret=one)
    assert answer.json()["type"] == "/problems/too-many-requests"
    assert 1 <= int(answer.headers["Retry-After"]) <= 100
    assert served.ask("GET", "/metrics", secret=other).status == 200


def test_rate_limit_of_an_address_counts_requests_without_a_valid_key(limited: Callable[..., Served]) -> None:
    served = limited(address_rate=0.01, address_burst=3)
    good = served.secret("read", name="good")
    assert [served.ask("GET", "/metrics", secret=good).status for _ in range(8)] == [200] * 8
    assert served.ask("GET", "/livez").status == 200
    assert [served.ask("GET", "/metrics", secret="bad").status for _ in range(5)] == [401, 401, 401, 429, 429]
    assert served.ask("GET", "/livez").status == 429


def test_rate_limit_of_an_address_counts_requests_to_open_routes(limited: Callable[..., Served]) -> None:
    """Any `Authorization` header took a request of an open route out of the bound of its address."""
    served = limited(address_rate=0.01, address_burst=2)
    good = served.secret("read", name="better")
    for _ in range(6):
        assert served.ask("GET", "/v1/ledger", secret=good).status == 200
    assert [served.ask("GET", "/problems/forbidden", secret="x").status for _ in range(5)] == [200] * 3 + [429] * 2


@pytest.mark.exhaustive
def test_concurrency_limit_refuses_excess_requests(limited: Callable[..., Served]) -> None:
    served = limited(most_in_flight=1)
    _add_routes(served.app)
    slow = threading.Thread(target=served.ask, args=("GET", "/slow"))
    slow.start()
    while not served.app.state.load.in_flight:
        time.sleep(0.01)
    answer = served.ask("GET", "/readyz")
    assert (answer.status, answer.json()["type"]) == (503, "/problems/overloaded")
    assert served.ask("GET", "/livez").status == 200
    slow.join()
    assert served.ask("GET", "/readyz").status == 200


@pytest.mark.parametrize(
    ("client", "found"),
    [
        (("192.0.2.7", 5), "192.0.2.7"),
        (("2001:db8:1:2:3:4:5:6", 5), "2001:db8:1:2::/64"),
        (("::ffff:192.0.2.7", 5), "192.0.2.7"),
        (("fe80::1%eth0", 5), "fe80::/64"),
        (None, ""),
    ],
)
def test_address_of_ipv6_is_counted_by_its_subscriber_prefix(client: tuple[str, int] | None, found: str) -> None:
    assert address({"client": client}) == found


# -- without a key -------------------------------------------------------------------------------------------


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def test_body_half_sent_without_a_key_is_not_waited_for(served: Served) -> None:
    """1,010 half-sent bodies without a key locked all others out, `/livez` too, as long as they were open."""
    for head in (POST, POST + b"Authorization: Bearer x\r\n"):
        with socket.create_connection((HOST, served.port), timeout=10) as line:
            line.sendall(head + b'Content-Length: 1000\r\n\r\n{"user":')
            assert line.recv(12) == b"HTTP/1.1 401"
            while served.app.state.load.in_flight:
                time.sleep(0.005)


def test_trailer_is_not_taken_as_a_header(served: Served) -> None:
    """A good key in a trailer, behind the body, let the request in."""
    key = bearer(served)
    body = json.dumps({"user": "alice", "mechanism": MECHANISM}).encode()
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
    head = POST + b"Idempotency-Key: k\r\nConnection: close\r\n"
    assert problem(served.send(head + CHUNKED + chunk + key + b"\r\n"))[:2] == (401, "unauthorized")
    told = served.send(head + key + CHUNKED + chunk + b"Idempotency-Key: other\r\nX-User: bob\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 200")


def test_extensions_of_chunks_without_end_are_cut_off(served: Served) -> None:
    assert flood(served, POST + bearer(served) + CHUNKED + b"1;", b"x" * 65_536) < 64 << 20


def flood(served: Served, begun: bytes, part: bytes) -> int:
    """Return the number of bytes that a connection takes before it is cut, up to 64 MiB."""
    sent = 0
    with socket.create_connection((HOST, served.port), timeout=10) as line, suppress(ConnectionError):
        line.sendall(begun)
        while sent < 64 << 20:
            line.sendall(part)
            sent += len(part)
    return sent


@pytest.mark.parametrize(
    "bad",
    [
        b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n{}",
        b"garbage\r\n\r\n",
    ],
    ids=["upgrade", "garbage"],
)
def test_charge_followed_by_a_bad_request_gets_its_own_response(served: Served, bad: bytes) -> None:
    """A pipelined request was refused with 400 before the charge was answered: the client took the 400 for it."""
    body = json.dumps({"user": "pipelined", "mechanism": MECHANISM}).encode()
    head = POST + bearer(served) + b"Idempotency-Key: pipelined\r\nContent-Length: %d\r\n\r\n" % len(body)
    for _ in range(5):
        try:
            answer = served.send(head + body + bad, all_of_it=True)
        except ConnectionError:
            answer = b""
        assert not answer.startswith(b"HTTP/1.1 400")
