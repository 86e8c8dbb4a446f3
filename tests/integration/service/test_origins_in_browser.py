"""Calls of the service from a page of another origin, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from chromium import devices, launched
from ldp_budget import Accountant
from ldp_budget_service.api_keys import ApiKeys
from survey_site import running

SPEND = """async ([url, key]) => {
    const body = JSON.stringify({user: "alice", mechanism: {name: "rr", epsilon: "0.5"}})
    const headers = {Authorization: `Bearer ${key}`, "Content-Type": "application/json", "Idempotency-Key": "a"}
    try {
        const answer = await fetch(`${url}/v1/spends`, {method: "POST", headers, body})
        return (await answer.json()).status
    } catch (error) {
        return String(error)
    }
}"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>app</title>")

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def app() -> Iterator[str]:
    """The origin of a page on another port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("allowed", "status"), [(True, "spent"), (False, "TypeError: Failed to fetch")])
def test_page_of_another_origin_charges_only_where_it_is_allowed(app: str, allowed: bool, status: str) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        _, key = ApiKeys(accountant).create("app", ["spend"])
        with (
            running(accountant, origins=(app,) if allowed else ()) as site,
            launched() as browser,
            devices(browser) as device,
        ):
            page = device()
            page.goto(app)
            assert page.evaluate(SPEND, [site.origin, key]) == status
        assert len(list(accountant.history("alice"))) == allowed
