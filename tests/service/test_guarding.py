"""What stands before the application: bounds of size, time and rate, and the headers of every answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from ldp_budget import Accountant
from ldp_budget_service.guarding import connections, rates
from ldp_budget_service.guarding.door import address
from ldp_budget_service.guarding.rates import Rate
from ldp_budget_service.settings import Settings
from service_farm import HOST, MECHANISM, Caller
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
    settings = Settings(most_bytes=2000, most_line=100, body_seconds=0.3, answer_seconds=0.5)
    with Served(ledger, settings) as made:
        _add_routes(made.app)
        yield made


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
def test_every_answer_has_the_headers_that_browsers_go_by(
    served: Served, method: str, path: str, status: int
) -> None:
    body = {"user": "alice", "mechanism": MECHANISM} if method == "POST" else None
    answer = served.ask(method, path, body)
    assert answer.status == status
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "Server" not in answer.headers
    assert "Strict-Transport-Security" not in answer.headers
    if status >= 400:
        assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_route_may_have_a_policy_of_its_own(served: Served) -> None:
    answer = served.ask("GET", "/page")
    assert answer.headers.get_all("Content-Security-Policy") == ["default-src 'self'"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_an_error_of_our_own_tells_nobody_what_it_was(served: Served) -> None:
    answer = served.ask("GET", "/broken")
    assert answer.json()["type"] == "/problems/internal"
    assert b"alice" not in answer.body
    assert b"ValueError" not in answer.body


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("0123456789abcdef0123456789abcdef", True), ("11111111-2222-3333-4444-555555555555", True), ("alice", False)],
)
def test_an_id_of_the_caller_comes_back_if_it_looks_like_one(served: Served, sent: str, kept: bool) -> None:
    answer = served.ask("GET", "/livez", X_Request_ID=sent)
    assert (answer.headers["X-Request-ID"] == sent) is kept
    assert len(answer.headers["X-Request-ID"]) >= 32


def test_each_request_has_an_id_of_its_own(served: Served) -> None:
    assert len({served.ask("GET", "/livez").headers["X-Request-ID"] for _ in range(5)}) == 5


def test_a_proxy_is_believed_that_a_request_came_over_tls_and_nobody_else_is(ledger: Accountant) -> None:
    forwarded = {"X_Forwarded_Proto": "https", "X_Forwarded_For": "192.0.2.7"}
    with Served(ledger, proxies=["127.0.0.1"]) as behind:
        answer = behind.ask("GET", "/livez", **forwarded)
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    with Served(ledger, proxies=["192.0.2.1"]) as elsewhere:
        assert "Strict-Transport-Security" not in elsewhere.ask("GET", "/livez", **forwarded).headers


# -- size ----------------------------------------------------------------------------------------------------


def test_a_body_that_is_announced_too_long_is_not_read(served: Served) -> None:
    answer = served.ask("POST", "/v1/spends", b"x" * 2001)
    assert (answer.status, answer.json()["type"]) == (413, "/problems/too-large")


def test_whoever_still_sends_comes_to_read_why_it_was_too_much(served: Served) -> None:
    caller = Caller(served.port, None)
    assert caller.ask("POST", "/v1/spends", b"x" * 5_000_000).status == 413
    assert caller.ask("GET", "/livez").status == 200  # on the same connection
    caller.close()


def test_a_body_in_chunks_is_counted_as_it_comes(served: Served) -> None:
    head = POST + b"Authorization: Bearer x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    assert problem(served.send(head, chunk, chunk, chunk, b"0\r\n\r\n", pause=0.02))[:2] == (413, "too-large")
    assert problem(served.send(head, chunk, b"0\r\n\r\n"))[:2] == (400, "malformed")


def test_a_batch_is_of_any_length_and_its_lines_are_not(served: Served) -> None:
    secret = served.secret("spend")
    line = json.dumps({"user": "alice", "mechanism": MECHANISM}).encode() + b"\n"
    body = line * 100 + b" " * 200 + b"\n" + line
    assert len(body) > 2 * 2000
    answer = served.ask("POST", "/v1/spends:batch", body, secret=secret, Idempotency_Key="run")
    told = [json.loads(row) for row in answer.body.splitlines()]
    assert answer.status == 200
    assert [row["status"] for row in told] == ["spent"] * 100 + ["failed", "spent"]
    assert told[100]["problem"]["type"] == "/problems/too-large"


def test_a_head_that_is_too_long_is_refused(served: Served) -> None:
    name = b"X-Long: " + b"x" * 1000 + b"\r\n"
    whole = b"GET /livez HTTP/1.1\r\nHost: x\r\n" + name * 40 + b"\r\n"
    assert problem(served.send(whole))[:2] == (431, "head-too-large")
    one = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 100_000
    assert problem(served.send(one))[:2] == (431, "head-too-large")


def test_what_is_no_http_is_a_problem_too(served: Served) -> None:
    status, code, headers = problem(served.send(b"alice, if you please\r\n\r\n"))
    assert (status, code) == (400, "malformed")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["connection"] == "close"


# -- time ----------------------------------------------------------------------------------------------------


def test_a_body_that_does_not_come_is_not_waited_for(served: Served) -> None:
    begun = time.monotonic()
    answer = served.send(POST + b'Content-Length: 1000\r\n\r\n{"user":')
    assert problem(answer)[:2] == (408, "slow-request")
    assert time.monotonic() - begun < 5


def test_a_body_that_comes_by_the_byte_is_not_waited_for_either(served: Served) -> None:
    answer = served.send(POST + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 20, pause=0.05)
    assert problem(answer)[:2] == (408, "slow-request")


@pytest.mark.slow
def test_a_batch_is_waited_for_as_long_as_something_comes(ledger: Accountant) -> None:
    lines = 5 * (json.dumps({"user": "alice", "mechanism": MECHANISM}).encode() + b"\n")
    parts = [lines[at : at + len(lines) // 12 + 1] for at in range(0, len(lines), len(lines) // 12 + 1)]
    # All of it takes longer than a part may: much longer than a part takes, of a machine that has other things to do.
    with Served(ledger, Settings(most_bytes=2000, most_line=100, body_seconds=1)) as served:
        head = b"POST /v1/spends:batch HTTP/1.1\r\nHost: x\r\nIdempotency-Key: slow\r\nConnection: close\r\n"
        head += b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (
            served.secret("spend", name="slow").encode(),
            len(lines),
        )
        answer = served.send(head, *parts, pause=0.1, all_of_it=True)
    assert len(parts) == 12
    assert answer.count(b'"status":"spent"') == 5


def test_an_answer_that_takes_too_long_says_that_nobody_knows(served: Served) -> None:
    answer = served.ask("GET", "/slow")
    told = answer.json()
    assert (answer.status, told["type"], told["unknown"]) == (503, "/problems/timed-out", True)
    assert answer.headers["Retry-After"] == "1"
    while served.app.state.load.in_flight:  # it counts as under way for as long as it is
        time.sleep(0.02)


def test_a_head_that_does_not_come_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    assert problem(served.send(b"GET /livez HTTP/1.1\r\nX-Slow: "))[:2] == (408, "slow-request")
    assert problem(served.send(b"GET ", *[b"x"] * 10, pause=0.05))[:2] == (408, "slow-request")
    assert served.send() == b""  # nor is the first byte


def test_a_second_head_on_a_connection_is_not_waited_for_either(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    first, second = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /livez HTT"
    _, _, rest = served.send(first, second, pause=0.05, all_of_it=True).partition(b'{"status":"alive"}')
    assert problem(rest)[:2] == (408, "slow-request")


def test_a_reader_who_does_not_read_is_left(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_SECONDS", 0.2)
    ended = threading.Event()

    @served.app.get("/endless")
    def endless() -> StreamingResponse:
        def parts() -> Iterator[bytes]:
            try:
                while True:
                    yield b"x" * 100_000
            finally:
                ended.set()

        return StreamingResponse(parts())

    with socket.create_connection((HOST, served.port)) as line:
        line.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        while served.app.state.load.in_flight == 0:
            time.sleep(0.01)
        deadline = time.monotonic() + 10
        while served.app.state.load.in_flight and time.monotonic() < deadline:
            time.sleep(0.01)
    assert served.app.state.load.in_flight == 0


# -- rate ----------------------------------------------------------------------------------------------------


class Seconds:
    """A clock that says what it is told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_lets_a_burst_through_and_then_so_many_a_second() -> None:
    clock = Seconds()
    rate = Rate(2, 3, clock)
    assert [rate.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    assert rate.wait("a") == 0.5
    assert rate.take("b") == 0
    clock.now += 0.5
    assert [rate.take("a"), rate.take("a")] == [0, 0.5]
    clock.now += 60
    assert [rate.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]


def test_a_rate_of_zero_is_none() -> None:
    rate = Rate(0, 0)
    assert [rate.take("a") for _ in range(100)] == [0] * 100


def test_a_rate_knows_no_more_callers_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MOST_KNOWN", 100)
    clock = Seconds()
    rate = Rate(1, 2, clock)
    for _ in range(3):
        rate.take("eager")
    for number in range(1000):
        rate.take(number)
        assert len(rate._even) <= 100
    assert rate.take("eager") > 0  # those that are the furthest ahead are the last to be forgotten


@pytest.fixture
def limited(ledger: Accountant) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def start(**settings: float) -> Served:
        made.append(Served(ledger, Settings(**settings)))  # type: ignore[arg-type]
        return made[-1].__enter__()

    yield start
    for each in made:
        each.__exit__()


def test_a_caller_may_ask_so_often_and_another_is_none_of_theirs(limited: Callable[..., Served]) -> None:
    served = limited(rate=0.01, burst=2)
    one, other = served.secret("read", name="one"), served.secret("read", name="other")
    assert [served.ask("GET", "/metrics", secret=one).status for _ in range(4)] == [200, 200, 200, 429]
    answer = served.ask("GET", "/metrics", secret=one)
    assert answer.json()["type"] == "/problems/too-many-requests"
    assert 1 <= int(answer.headers["Retry-After"]) <= 100
    assert served.ask("GET", "/metrics", secret=other).status == 200


def test_an_address_may_come_so_often_without_a_good_key(limited: Callable[..., Served]) -> None:
    served = limited(address_rate=0.01, address_burst=3)
    good = served.secret("read", name="good")
    assert [served.ask("GET", "/metrics", secret=good).status for _ in range(8)] == [200] * 8
    assert served.ask("GET", "/livez").status == 200
    assert [served.ask("GET", "/metrics", secret="bad").status for _ in range(5)] == [401, 401, 401, 429, 429]
    assert served.ask("GET", "/livez").status == 429


@pytest.mark.slow
def test_of_too_many_at_a_time_some_are_turned_away(limited: Callable[..., Served]) -> None:
    served = limited(most_in_flight=1)
    _add_routes(served.app)
    slow = threading.Thread(target=served.ask, args=("GET", "/slow"))
    slow.start()
    while not served.app.state.load.in_flight:
        time.sleep(0.01)
    answer = served.ask("GET", "/livez")
    assert (answer.status, answer.json()["type"]) == (503, "/problems/overloaded")
    slow.join()
    assert served.ask("GET", "/livez").status == 200


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
def test_a_subscriber_is_one_address(client: tuple[str, int] | None, found: str) -> None:
    assert address({"client": client}) == found
