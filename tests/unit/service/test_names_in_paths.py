"""Names of any characters in paths, how far the journal must be, and which methods a path takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from contract.acts import coin
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys

NAMES = ["alice", "a/b", "a/balance", "/", "100%", "a b", "?x=1#y", "..", ".", "Zoë 林", "a+b", "%2F", "\x7f", "a\\b"]


def site(accountant: Accountant) -> TestClient:
    secret = ApiKeys(accountant).create("tests", ["admin"])[1]
    return TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture
def client(accountant: Accountant) -> Iterator[TestClient]:
    accountant.set_policy("default", ["lifetime=4"])
    with site(accountant) as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[TestClient]:
    """One for tests that need none of their own: an application takes longer to make than to ask."""
    with Accountant(":memory:", clock=Clock()) as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        with site(accountant) as made:
            yield made


def encoded(name: str) -> str:
    """A name as a piece of a path; that of dots in a way that no client takes for the folder above."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def get(client: TestClient, path: str) -> Any:
    """Ask for a path as it stands: clients put some of them in order."""
    import asyncio

    told: dict[str, Any] = {}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        told.setdefault("status", message.get("status"))
        told["body"] = told.get("body", b"") + message.get("body", b"")

    path, _, query = path.partition("?")
    bearer = client.headers["authorization"].encode()
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"authorization", bearer)],
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }
    asyncio.run(client.app(scope, receive, send))  # type: ignore[arg-type]
    return told["status"], told["body"]


@pytest.mark.parametrize("name", NAMES)
def test_user_name_in_a_path_may_have_any_characters(shared: TestClient, name: str) -> None:
    shared.app.state.accountant.spend(name, coin(2))  # type: ignore[attr-defined]
    for what in ("balance", "history", "remaining"):
        status, body = get(shared, f"/v1/users/{encoded(name)}/{what}")
        assert status == 200
        assert b"2.0" in body
    answer = shared.post("/v1/spends", json={"user": name, "collection": "none"}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/v1/users/%ff/balance", "/v1/users/%C3/balance", "/v1/reservations?user=%ff"])
def test_path_that_is_no_utf8_names_no_user(shared: TestClient, path: str) -> None:
    status, body = get(shared, path)
    assert status == 400
    assert b"/problems/malformed" in body


def test_read_with_a_minimum_position_is_not_older(client: TestClient, accountant: Accountant) -> None:
    position = client.get("/v1/users/a/balance").headers["Journal-Position"]
    assert position == accountant.position("a")
    assert client.get("/v1/users/a/balance", params={"min_position": position}).status_code == 200
    partition, _, entry = position.partition(":")
    later = f"{partition}:{int(entry) + 1}"
    answer = client.get("/v1/users/a/balance", params={"min_position": later})
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/position-not-reached")
    assert answer.headers["Retry-After"] == "1"
    accountant.spend("a", coin(1))
    assert client.get("/v1/users/a/balance", params={"min_position": later}).status_code == 200
    for wrong in ("", "x", "0", "0:", "0:1,", "9:1", "0:1e3", "0:" + "9" * 30):
        answer = client.get("/v1/users/a/balance", params={"min_position": wrong})
        assert answer.status_code == 400, wrong


def test_positions_are_compared_partition_by_partition(clock: Clock) -> None:
    with Accountant(ToyStore(3), clock=clock) as accountant:  # type: ignore[arg-type]
        accountant.set_policy("default", ["lifetime=4"])
        with site(accountant) as client:
            told = client.get("/v1/ledger/stats").headers["Journal-Position"]
            assert told.count(",") == 2
            assert client.get("/v1/policies", params={"min_position": told}).status_code == 200
            partitions = dict(each.split(":") for each in told.split(","))
            for partition, entry in partitions.items():
                later = f"{partition}:{int(entry) + 1}"
                assert client.get("/v1/policies", params={"min_position": later}).status_code == 409


def test_public_definition_is_open_and_cacheable(client: TestClient, accountant: Accountant) -> None:
    body = {"name": "a/b", "mechanism": {"name": "oue", "epsilon": "1"}, "categories": ["x", "y", "z"]}
    assert client.post("/v1/collections", json=body).status_code == 200
    assert client.post("/v1/collections", json=body).status_code == 200
    other = client.post("/v1/collections", json={**body, "categories": ["x", "y"]})
    assert (other.status_code, other.json()["type"]) == (409, "/problems/name-taken")
    got = client.get("/v1/collections/a%2Fb", headers={"Authorization": ""})
    assert got.json() == accountant.collection("a/b").definition()
    assert "Journal-Position" not in got.headers
    for tag in (got.headers["ETag"], f'"x", W/{got.headers["ETag"]}'):
        again = client.get("/v1/collections/a%2Fb", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get("/v1/collections/a%2Fb?plain=true").json() == accountant.collection("a/b").to_json()
    unknown = client.get("/v1/collections/c", headers={"Authorization": ""})
    assert unknown.status_code == 404
    assert "a/b" not in unknown.text


def test_body_with_values_beyond_json_is_refused(shared: TestClient) -> None:
    for content in (
        b'{"user": "\\ud800", "mechanism": {"name": "oue"}}',
        b'{"user": "a", "mechanism": {"name": "\\ud800"}}',
    ):
        answer = shared.post("/v1/spends", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 404)
    for value in ("NaN", "Infinity", "1e999", '"\\ud800"', "[" * 2000):
        content = b'{"user": "a", "mechanism": {"name": "randomized-response", "epsilon": %s}}' % value.encode()
        answer = shared.post(
            "/v1/spends", content=content, headers={"Content-Type": "application/json", "Idempotency-Key": "k"}
        )
        assert answer.status_code == 400, value
        assert answer.json()["type"] in ("/problems/invalid-parameter", "/problems/malformed")
