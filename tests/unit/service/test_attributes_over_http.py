"""Reports with public attributes over HTTP: `{"report": hex, "public": {...}}` in place of the raw bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget.reports.inbox import Inbox
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys

MOOD = Collection("mood", mechanism("oue")(epsilon="1", domain_size=3), ("good", "fair", "bad"), minimum_group=1)
PATH = "/v1/collections/mood/reports"
NORTH = {"report": "02", "public": {"region": "north"}}


@pytest.fixture
def client(accountant: Accountant) -> TestClient:
    accountant.set_policy("default", ["lifetime=2"])
    accountant.add_collection(MOOD)
    secret = ApiKeys(accountant).create("app", ["collect"])[1]
    return TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"})


def send(client: TestClient, body: Any, user: str = "alice") -> Any:
    headers = {"X-User": user, "Idempotency-Key": "k", "X-Collection": MOOD.definition()["digest"]}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(PATH, content=content, headers={**headers, "Content-Type": "application/json"})


def test_report_with_attributes_is_stored_with_them(client: TestClient, accountant: Accountant) -> None:
    assert send(client, NORTH).json()["status"] == "spent"
    assert send(client, {"report": "04"}, "bob").json()["status"] == "spent"
    box = Inbox(accountant, MOOD)
    box.seal("one")
    assert box.attributes("one") == ("region",)
    assert sorted(row.tobytes() for block in box.round("one") for row in block) == [b"\2", b"\4"]


@pytest.mark.parametrize("public", [{"region": "south"}, {"place": "north"}, {}])
def test_retry_with_other_attributes_is_a_conflict(client: TestClient, accountant: Accountant, public: Any) -> None:
    assert send(client, NORTH).status_code == 200
    again = send(client, NORTH)
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    refused = send(client, {**NORTH, "public": public})
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/key-conflict")
    assert accountant.reports.waiting("mood") == 1


@pytest.mark.parametrize(
    ("body", "code", "detail"),
    [
        (b"\2", "malformed", "not valid JSON"),
        (b"\xff", "malformed", "must be UTF-8"),
        (b'{"report": "02", "report": "04"}', "malformed", "'report' more than once"),
        ([], "malformed", "must be a JSON object: got"),
        ({"public": {}}, "invalid-parameter", "report is missing"),
        ({"report": "", "public": {}}, "malformed", "the report is empty"),
        ({"report": "0g"}, "invalid-parameter", "report must be hexadecimal digits, two for each byte: got '0g'"),
        ({"report": 2}, "invalid-parameter", "report must be a string: got 2"),
        ({"report": "0202"}, "not-supported", "a report must have 1 bytes"),
        ({**NORTH, "regions": {}}, "malformed", "regions"),
        ({**NORTH, "public": ["region"]}, "invalid-parameter", "public must be an object"),
        ({**NORTH, "public": {"region": 7}}, "invalid-parameter", "public.region must be a string: got 7"),
        ({**NORTH, "public": {"region": " "}}, "invalid-parameter", "public must be a value for region"),
        ({**NORTH, "public": {"region": "x" * 65}}, "invalid-parameter", "at most 64 printable characters"),
        ({**NORTH, "public": {"region": "\ud800"}}, "invalid-parameter", "public"),
        ({**NORTH, "public": {str(each): "x" for each in range(9)}}, "invalid-parameter", "at most 8 columns"),
    ],
)
def test_report_with_invalid_body_charges_nothing(
    client: TestClient, accountant: Accountant, body: Any, code: str, detail: str
) -> None:
    refused = send(client, body)
    assert (refused.status_code, refused.json()["type"]) == (400, f"/problems/{code}")
    assert detail in refused.json()["detail"]
    assert (accountant.reports.waiting("mood"), accountant.stats()["users"]) == (0, 0)


@pytest.mark.slow
def test_openapi_has_a_schema_and_examples_of_both_bodies(client: TestClient) -> None:
    content = client.get("/openapi.json").json()["paths"]["/v1/collections/{name}/reports"]["post"]["requestBody"][
        "content"
    ]
    assert set(content["application/json"]["schema"]["properties"]) == {"report", "public"}
    assert [type(each["value"]) for each in content["application/json"]["examples"].values()] == [dict]
    assert {type(each["value"]) for each in content["application/octet-stream"]["examples"].values()} == {str}
