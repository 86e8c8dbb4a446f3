"""The time zone of a policy over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys


@pytest.fixture
def client(accountant: Accountant) -> Iterator[TestClient]:
    _, secret = ApiKeys(accountant).create("admin", ["admin"])
    with TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


LIMITS = {"limits": ["lifetime=4", "day=1"]}


@pytest.mark.slow
def test_policy_with_a_zone_is_set_shown_and_kept(client: TestClient) -> None:
    made = client.put("/v1/policies/seoul", json={**LIMITS, "zone": "Asia/Seoul"}).json()
    assert (made["zone"], made["version"]) == ("Asia/Seoul", 1)
    assert client.get("/v1/policies/seoul").json() == made
    assert client.put("/v1/policies/seoul", json=LIMITS).json() == {**made, "version": 2}
    assert "zone" not in client.put("/v1/policies/seoul", json={**LIMITS, "zone": "UTC"}).json()


@pytest.mark.parametrize("zone", ["Asia/Soeul", "", "right/UTC", 9, {}])
def test_policy_with_an_unknown_zone_is_refused(client: TestClient, zone: object) -> None:
    answer = client.put("/v1/policies/seoul", json={**LIMITS, "zone": zone})
    assert answer.status_code in (400, 422)
    assert client.get("/v1/policies/seoul").status_code == 404
