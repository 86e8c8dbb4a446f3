"""Over HTTP, reports that hide what they repeat are charged without labels, unless their collection asks for labels."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys

WORD = {"name": "loloha", "epsilon_lifetime": "4", "epsilon_first": "1", "domain_size": 9, "g": 2}


@pytest.fixture
def client(accountant: Accountant) -> Any:
    accountant.set_policy("default", ["lifetime=40", "day=40"])
    secret = ApiKeys(accountant).create("tests", ["admin"])[1]
    with TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


def add(client: TestClient, name: str, *, labels: bool) -> None:
    body = {"name": name, "mechanism": WORD, **({"labels": True} if labels else {})}
    for _ in range(2):  # the second time it is there, with the seed that was drawn
        added = client.post("/v1/collections", json=body)
        assert added.status_code == 200, added.text
        assert added.json().get("labels", False) is labels
    assert added.json()["declared"]["seed"] != 0


def costs(client: TestClient, of: dict[str, Any], user: str) -> list[float]:
    asked = [{"user": user, **of, "label": "x"} for _ in range(3)]
    first = client.post("/v1/spends", json=asked[0], headers={"Idempotency-Key": f"{user}/1"}).json()
    batch = "\n".join(json.dumps({**each, "key": f"{user}/{place}"}) for place, each in enumerate(asked[1:], 2))
    client.post("/v1/spends:batch", content=batch)
    quoted = client.post("/v1/spends", json={**asked[0], "dry_run": True}).json()
    balance = client.get(f"/v1/users/{user}/balance").json()
    return [first["cost"]["epsilon"], balance["limits"][0]["spent"]["epsilon"], quoted["cost"]["epsilon"]]


def test_reports_of_a_collection_are_charged_without_the_label_that_is_sent(client: TestClient) -> None:
    add(client, "word", labels=False)
    assert costs(client, {"collection": "word"}, "alice") == [1, 3, 1]
    assert costs(client, {"mechanism": WORD}, "bob") == [1, 3, 1]


def test_reports_of_a_collection_with_labels_follow_their_curve(client: TestClient) -> None:
    add(client, "word", labels=True)
    first, spent, quoted = costs(client, {"collection": "word"}, "alice")
    assert first == 1
    assert quoted < 1
    assert spent < 3
    assert client.get("/v1/collections/word").json()["labels"] is True


def test_reports_charged_free_and_refused_get_responses_of_one_length(client: TestClient) -> None:
    kept = {"name": "d-bit-flip", "epsilon": "15", "buckets": 5, "bits": 5, "memoize": True}
    digest = client.post("/v1/collections", json={"name": "database", "mechanism": kept}).json()["client"]
    lengths = Counter[int]()
    for key, label in enumerate(("a", "a", "b", "a", "c")):
        headers = {"X-User": "alice", "X-Collection": digest, "X-Label": label, "Idempotency-Key": f"week {key}"}
        response = client.post("/v1/collections/database/reports", content=b"\0", headers=headers)
        assert response.json()["cost"]["epsilon"] == (0 if key in (1, 3) else 15)
        assert response.status_code == (409 if label == "c" else 200)
        assert int(response.headers["Content-Length"]) == len(response.content)
        lengths[len(response.content)] += 1
    assert lengths == {2048: 5}
