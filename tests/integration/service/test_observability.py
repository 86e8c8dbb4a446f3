"""Observability: health, metrics, log and traces of the service, none of which names a user."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ldp_budget import Accountant
from ldp_budget_service.observability import health
from ldp_budget_service.observability.logs import Traced
from ldp_budget_service.settings import Settings
from service_farm import HOST, MECHANISM, PATIENCE, Caller, new_ledger
from service_threads import Served

TELLTALE = "tattletale"


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "budget.db")


@pytest.fixture
def served(place: str) -> Iterator[Served]:
    with Accountant(place) as accountant:
        accountant.set_policy("default", ["lifetime=0.002", "day=0.001"])
        with Served(accountant) as made:
            yield made


# -- no user is named ----------------------------------------------------------------------------------------


class Process:
    """`ldp-budget serve` as a process."""

    def __init__(self, place: str, *options: str) -> None:
        command = [sys.executable, "-m", "ldp_budget_cli", "--ledger", place, "serve", "--port", "0", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said, self.logged = list[str](), list[str]()
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stderr, self.said)),
            threading.Thread(target=self._read, args=(self._process.stdout, self.logged)),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    @staticmethod
    def _read(stream: io.TextIOBase, lines: list[str]) -> None:
        lines.extend(iter(stream.readline, ""))  # it comes line by line; the list grows with it

    def port(self) -> int:
        """Return its address, once it listens."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for line in self.said:
                if found := re.match(r"listening on http://127\.0\.0\.1:(\d+)\n", line):
                    return int(found[1])
            time.sleep(0.01)
        raise TimeoutError(self.said)

    def children(self) -> list[int]:
        """The processes that it started, on Linux."""
        pid = self._process.pid
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        return [int(child) for task in tasks for child in task.read_text().split()]

    def end(self) -> int:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return code


def test_serve_calculates_in_a_process_that_ends_with_it(place: str) -> None:
    secret = new_ledger(place, "lifetime=1", scopes=("admin",))
    with Process(place) as process:
        with Caller(process.port(), secret) as caller:
            body = {"mechanism": {"name": "oue", "epsilon": "1", "domain_size": 7}}
            assert caller.ask("POST", "/v1/calibrate", body).status == 200
        (worker,) = process.children()
        assert process.end() == 0
        assert not Path(f"/proc/{worker}").exists()


def tell_tales(caller: Caller) -> int:
    """Send requests with a name in every possible place, and return their number."""
    good = {"user": TELLTALE, "mechanism": MECHANISM, "label": None, "note": TELLTALE}
    everywhere = dict.fromkeys(("X_Request_ID", "User_Agent", "Referer", "Cookie", "X_Forwarded_For"), TELLTALE)
    spend = [
        good,
        {**good, "note": None, "reports": 2},  # another request under the same key
        {**good, "mechanism": {"name": TELLTALE}},
        {**good, "mechanism": {"name": "rr", TELLTALE: 1}},
        {**good, "mechanism": {"name": "rr", "epsilon": TELLTALE}},
        {**good, "policy": TELLTALE},
        {**good, "collection": TELLTALE},
        {**good, TELLTALE: TELLTALE},
        {**good, "reports": TELLTALE},
        f'{{"user": "{TELLTALE}", '.encode(),
        f"\xff{TELLTALE}".encode("latin-1"),
    ]
    for body in spend:
        caller.ask("POST", "/v1/spends", body, Idempotency_Key=TELLTALE, **everywhere)
    for number in range(3):  # the last is refused
        caller.ask("POST", "/v1/spends", good, Idempotency_Key=f"{TELLTALE}/{number}")
    paths = [
        f"/v1/users/{TELLTALE}/balance",
        f"/v1/users/{TELLTALE}/history?min_position={TELLTALE}",
        f"/v1/policies/{TELLTALE}",
        f"/{TELLTALE}",
        f"/livez?{TELLTALE}",
        f"/livez?%ff{TELLTALE}",
        f"/v1/users/%ff{TELLTALE}/balance",
    ]
    for path in paths:
        caller.ask("GET", path, **everywhere)
        caller.ask("PROPFIND", path)
        caller.ask("GET", path, Authorization=f"Bearer {TELLTALE}", traceparent=f"00-{TELLTALE}-1-01")
    return len(spend) + 3 + 3 * len(paths)


@pytest.mark.exhaustive
def test_neither_log_nor_metrics_name_a_user_or_hold_a_secret(place: str) -> None:
    secret = new_ledger(place, "lifetime=0.001", scopes=("admin",))
    with Process(place) as process:
        caller = Caller(process.port(), secret)
        asked = tell_tales(caller)
        told = caller.ask("GET", "/metrics").body.decode()
        caller.close()
        with socket.create_connection((HOST, process.port())) as line:
            line.sendall(f"{TELLTALE} {TELLTALE}\r\n\r\n".encode())
            assert line.recv(10_000).startswith(b"HTTP/1.1 400")
        assert process.end() == 0
    everything = "".join([told, *process.logged, *process.said])
    assert TELLTALE not in everything.lower()
    assert secret not in everything
    requests = [row for row in map(json.loads, process.logged) if row["event"] == "request"]
    assert len(requests) == asked + 1
    assert {"/v1/spends", "/v1/users/{user:name}/balance", "(unknown)"} <= {row["route"] for row in requests}
    assert {None, "malformed", "budget-exceeded", "key-conflict", "unauthorized", "not-found"} <= {
        row["code"] for row in requests
    }
    assert {row["caller"] for row in requests} == {"load", None}
    assert {row["method"] for row in requests} == {"GET", "POST", "(unknown)"}


def test_ledger_error_is_in_the_log_and_not_in_the_response(
    served: Served, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = served.secret("spend")
    os.rename(place, f"{place}.away")
    with Caller(served.port, secret) as caller:
        answer = caller.spend("alice", "k")
    os.rename(f"{place}.away", place)
    assert answer.status == 503
    assert place.encode() not in answer.body
    assert any(place in str(getattr(record, "error", "")) for record in caplog.records)


def test_spend_in_a_moved_ledger_returns_ledger_moved(
    served: Served, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0)
    secret = served.secret("spend")
    with Accountant(place) as operator:
        operator.ledger.move_to(tmp_path / "moved.db")
    with Caller(served.port, secret) as caller:
        answer = caller.spend("alice", "k")
    assert (answer.status, answer.json()["type"], answer.json()["complete"]) == (503, "/problems/ledger-moved", True)
    assert str(tmp_path).encode() not in answer.body
    assert served.ask("GET", "/readyz").json()["detail"] == "not ready: schema"


# -- health --------------------------------------------------------------------------------------------------


def test_readyz_of_a_working_service_is_ok(served: Served) -> None:
    assert served.ask("GET", "/livez").json() == {"status": "alive"}
    answer = served.ask("GET", "/readyz")
    assert answer.status == 200
    assert answer.json() == {
        "status": "ready",
        "checks": dict.fromkeys(["schema", "key", "clock", "disk", "draining"], "ok"),
    }


@pytest.mark.parametrize("what", ["key", "schema"])
def test_readyz_without_the_ledger_files_fails(
    served: Served, place: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0)
    file = f"{place}.key" if what == "key" else place
    os.rename(file, f"{file}.away")
    answer = served.ask("GET", "/readyz")
    assert answer.status == 503
    assert answer.json()["checks"][what] == "failed"
    assert answer.json()["detail"] == f"not ready: {what}"
    assert place.encode() not in answer.body
    assert served.ask("GET", "/livez").status == 200
    os.rename(f"{file}.away", file)
    assert served.ask("GET", "/readyz").status == 200


def test_readyz_with_a_clock_set_back_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0)
    now = [datetime(2026, 11, 22, tzinfo=UTC)]
    with Accountant(":memory:", clock=lambda: now[0]) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        with Served(accountant) as served:
            served.secret("spend")
            assert served.ask("GET", "/readyz").status == 200
            now[0] -= timedelta(minutes=1)
            answer = served.ask("GET", "/readyz")
    assert (answer.status, answer.json()["detail"]) == (503, "not ready: clock")


# -- metrics -------------------------------------------------------------------------------------------------


def figures(served: Served, secret: str) -> dict[str, float]:
    """The metrics by name and labels."""
    lines = served.ask("GET", "/metrics", secret=secret).body.decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def test_metrics_count_requests_charges_refusals_and_keys(served: Served) -> None:
    secret = served.secret("spend", "read", name="app")
    caller = Caller(served.port, secret)
    statuses = [caller.spend("alice", key).status for key in ("one", "one", "two")]
    assert statuses == [200, 200, 409]
    caller.ask("GET", "/v1/users/alice/balance")
    caller.ask("GET", "/nothing/alice")
    found = figures(served, secret)
    assert found['ldp_budget_http_requests_total{method="POST",route="/v1/spends",status="200"}'] == 2
    assert found['ldp_budget_http_requests_total{method="POST",route="/v1/spends",status="409"}'] == 1
    assert found['ldp_budget_http_requests_total{method="GET",route="(unknown)",status="404"}'] == 1
    assert found['ldp_budget_http_request_seconds_count{method="GET",route="/v1/users/{user:name}/balance"}'] == 1
    assert found['ldp_budget_charges_total{outcome="spent"}'] == 1
    assert found['ldp_budget_charges_total{outcome="repeated"}'] == 1
    assert found['ldp_budget_charges_total{outcome="refused"}'] == 1
    assert found['ldp_budget_refusals_total{period="day"}'] == 1
    assert found['ldp_budget_problems_total{code="budget-exceeded"}'] == 1
    assert found['ldp_budget_key_requests_total{key="app"}'] == 4
    assert found["ldp_budget_http_requests_in_flight"] == 1  # this one
    assert {name for name in found if "check_ok" in name} == {
        f'ldp_budget_check_ok{{check="{check}"}}' for check in ("schema", "key", "clock", "disk")
    }
    assert found["ldp_budget_journal_entries_total"] >= 2
    assert not any("alice" in name for name in found)
    caller.close()


def test_metrics_need_a_key_unless_opened_to_this_machine(served: Served) -> None:
    assert served.ask("GET", "/metrics").status == 401
    assert served.ask("GET", "/metrics", secret=served.secret("spend")).status == 403
    with Served(served.accountant, Settings(open_metrics=True)) as opened:
        assert opened.ask("GET", "/metrics").status == 200
        for name in ("X_Forwarded_For", "X_Real_IP", "Forwarded", "Via", "X_Forwarded_Host", "CF_Connecting_IP"):
            for value in ("192.0.2.7", "127.0.0.1"):
                assert opened.ask("GET", "/metrics", **{name: value}).status == 401, name
    with Served(served.accountant, Settings(open_metrics=True), proxies=["127.0.0.1"]) as behind:
        assert behind.ask("GET", "/metrics", X_Forwarded_For="192.0.2.7").status == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"127.0.0.1:8000", 200),
        (b"localhost", 200),
        (b"LOCALHOST:8000", 200),
        (b"[::1]:8000", 200),
        (b"evil.example", 401),
        (b"localhost.evil.example", 401),
        (b"127.0.0.1.evil.example:8000", 401),
        (b"evil@localhost", 401),
        (b"[::1", 401),
        (b"", 401),
        (b"192.0.2.7", 401),
    ],
)
def test_open_metrics_are_for_requests_to_this_machine(served: Served, host: bytes, status: int) -> None:
    """A page of another site reached them by a name of its own that leads to 127.0.0.1 (DNS rebinding)."""
    with Served(served.accountant, Settings(open_metrics=True)) as opened:
        told = opened.send(b"GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host)
    assert told.startswith(b"HTTP/1.1 %d" % status)


# -- traces --------------------------------------------------------------------------------------------------


def test_span_has_the_route_and_nothing_of_the_user(served: Served) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with Served(served.accountant, Settings(tracing=True)) as traced:
        for layer in _layers(traced.app):
            if isinstance(layer, Traced):
                layer._tracer = provider.get_tracer("test")
        caller = Caller(traced.port, traced.secret("spend", "read"))
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        caller.spend(TELLTALE, TELLTALE)
        caller.ask("GET", f"/v1/users/{TELLTALE}/balance?a={TELLTALE}", traceparent=parent)
        caller.ask("GET", f"/{TELLTALE}", traceparent=TELLTALE)
        caller.close()
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["POST /v1/spends", "GET /v1/users/{user:name}/balance", "GET (unknown)"]
    assert spans[0].attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/spends",
        "http.response.status_code": 200,
    }
    assert format(spans[1].context.trace_id, "032x") == parent.split("-")[1]
    assert all(TELLTALE not in span.to_json() for span in spans)


def _layers(app: object) -> Iterator[object]:
    layer = getattr(app, "middleware_stack", None)
    while layer is not None:
        yield layer
        layer = getattr(layer, "_app", getattr(layer, "app", None))
