"""Over HTTP, a charge carries tags in its body, alone and in a batch; limits of other scopes do not count it."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys

COIN = {"name": "oue", "epsilon": "0.25", "domain_size": 3}
HEALTH, ADS = "attribute:health", "purpose:ads"


@pytest.fixture
def client(accountant: Accountant) -> Any:
    accountant.set_policy("default", ["lifetime=4", f"{HEALTH}:month=0.5", f"{ADS}:lifetime=0.25"])
    secret = ApiKeys(accountant).create("tests", ["admin"])[1]
    with TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


def spent(client: TestClient, user: str) -> dict[str, float]:
    limits = client.get(f"/v1/users/{user}/balance").json()["limits"]
    return {row.get("scope", "all"): row["spent"]["epsilon"] for row in limits}


def test_charge_with_tags_counts_in_their_scopes(client: TestClient) -> None:
    body = {"user": "alice", "mechanism": COIN, "tags": [ADS]}
    assert client.post("/v1/spends", json=body, headers={"Idempotency-Key": "1"}).json()["status"] == "spent"
    assert client.post("/v1/spends", json=body, headers={"Idempotency-Key": "1"}).json()["repeated"]
    other = client.post("/v1/spends", json={**body, "tags": []}, headers={"Idempotency-Key": "1"})
    assert (other.status_code, other.json()["type"].rpartition("/")[2]) == (422, "key-conflict")
    refused = client.post("/v1/spends", json={**body, "tags": [ADS, HEALTH]}, headers={"Idempotency-Key": "2"})
    assert (refused.status_code, refused.json()["binding"]) == (409, [f"{ADS}:lifetime"])
    assert [(row["scope"], row["period"]) for row in refused.json()["failed"]] == [(ADS, "lifetime")]
    assert (
        client.post("/v1/spends", json={**body, "tags": [HEALTH], "dry_run": True}).json()["affordable_reports"] == 2
    )
    assert spent(client, "alice") == {"all": 0.25, HEALTH: 0, ADS: 0.25}


@pytest.mark.parametrize("common", [True, False])
def test_lines_of_a_batch_carry_tags(client: TestClient, common: bool) -> None:
    shared: dict[str, Any] = {"mechanism": COIN, "tags": [HEALTH]}
    users = [f"user {number}" for number in range(3)]
    lines = [{"common": shared}] if common else []
    lines += [{"user": user, **({} if common else shared)} for user in users]
    body = "\n".join(map(json.dumps, lines))
    answer = client.post("/v1/spends:batch", content=body, headers={"Idempotency-Key": "run"})
    assert [json.loads(line)["status"] for line in answer.text.splitlines()] == ["spent"] * 3
    assert spent(client, users[2]) == {"all": 0.25, HEALTH: 0.25, ADS: 0}


@pytest.mark.parametrize("tags", [["health"], "attribute:health", [7], [f"purpose:{n}" for n in range(65)]])
def test_tags_of_another_form_are_refused(client: TestClient, tags: object) -> None:
    body = {"user": "alice", "mechanism": COIN, "tags": tags}
    answer = client.post("/v1/spends", json=body, headers={"Idempotency-Key": "1"})
    assert answer.status_code == 400
    assert "tags" in answer.text
    assert spent(client, "alice")["all"] == 0
