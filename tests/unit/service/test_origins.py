"""Calls from pages of other web origins: allowed for the origins that the operator names, and for no other."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from ldp_budget import Accountant, InvalidParameter
from ldp_budget_service import Settings, create_app

APP = "https://app.example"
PREFLIGHT = {
    "Origin": APP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
}


@pytest.fixture
def client(accountant: Accountant) -> TestClient:
    return TestClient(create_app(accountant, Settings(origins=(APP,))))


def test_preflight_of_a_named_origin_is_allowed(client: TestClient) -> None:
    answer = client.options("/v1/spends", headers=PREFLIGHT)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == APP
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", ["https://other.example", "http://app.example", "https://app.example:444", "null"])
def test_preflight_of_another_origin_is_not_allowed(client: TestClient, origin: str) -> None:
    answer = client.options("/v1/spends", headers={**PREFLIGHT, "Origin": origin})
    assert answer.status_code == 400
    assert "access-control-allow-origin" not in answer.headers


def test_problem_can_be_read_by_the_page_of_a_named_origin(client: TestClient) -> None:
    answer = client.post("/v1/spends", headers={"Origin": APP}, json={"user": "alice"})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == APP
    assert "Retry-After" in answer.headers["access-control-expose-headers"]
    assert "access-control-allow-origin" not in client.get("/livez", headers={"Origin": "https://x.example"}).headers


def test_service_without_origins_allows_no_page(accountant: Accountant) -> None:
    answer = TestClient(create_app(accountant)).options("/v1/spends", headers=PREFLIGHT)
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "origin", ["*", "null", "app.example", "https://app.example/", "https://App.example", "ftp://x"]
)
def test_origin_of_another_form_is_refused(origin: str) -> None:
    with pytest.raises(InvalidParameter, match="origin must be https://HOST"):
        Settings(origins=(origin,))
