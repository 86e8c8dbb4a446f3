"""Messages: each names the parameter, shows the value, and says what to do where that is not plain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service.api_keys import ApiKeys

OUE = mechanism("oue")(epsilon=1, domain_size=3)
POLL = Collection("poll", OUE, ("a", "b", "c"))
OLD_FORM = re.compile(
    r"; found\b|nothing was given|expected [^.]*; |\bsomebody\b|\bnobody\b|\bwhoever\b|said aloud|\bis called\b|there are:"
)


@pytest.fixture(scope="module")
def ledger() -> Iterator[Accountant]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        accountant.add_collection(POLL)
        ApiKeys(accountant).create("old", ["spend"])
        ApiKeys(accountant).revoke("old")
        accountant.spend("alice", OUE, key="k")
        yield accountant


SPEND = {"user": "alice", "mechanism": {"name": "oue", "epsilon": "1", "domain_size": 3}}
OVER_HTTP: dict[str, tuple[str, str, Any, tuple[str, ...]]] = {
    "no JSON": ("POST", "/v1/spends", b"{x", ("The body is not valid JSON", "at position 1.")),
    "empty JSON": ("POST", "/v1/spends", b" ", ("The body is not valid JSON", "at position")),
    "no user": ("POST", "/v1/spends", {"collection": "poll"}, ("user is missing",)),
    "reports": ("POST", "/v1/spends", {**SPEND, "reports": 0}, ("reports must be", "got 0")),
    "unknown member": ("POST", "/v1/spends", {**SPEND, "repots": 2}, ("repots must be left out", "got 2")),
    "no mechanism": ("POST", "/v1/spends", {"user": "a"}, ("mechanism is missing", "collection")),
    "unknown collection": (
        "POST",
        "/v1/spends",
        {"user": "a", "collection": "pol"},
        ("'pol'", "Did you mean 'poll'?"),
    ),
    "unknown policy": ("POST", "/v1/spends", {**SPEND, "policy": "defalt"}, ("'defalt'", "Did you mean 'default'?")),
    "unknown mechanism": (
        "POST",
        "/v1/spends",
        {"user": "a", "mechanism": {"name": "oeu"}},
        ("'oeu'", "Did you mean 'oue'?"),
    ),
    "bad parameter": (
        "POST",
        "/v1/spends",
        {"user": "a", "mechanism": {"name": "oue", "epsilon": "-1", "domain_size": 3}},
        ("epsilon must be", "got -1"),
    ),
    "policy without lifetime": (
        "PUT",
        "/v1/policies/p",
        {"limits": ["day=1"]},
        ("limit must be", "got only day. Add"),
    ),
    "unknown path": ("GET", "/v1/nothing", None, ("'/v1/nothing'", "GET /openapi.json")),
    "wrong method": ("DELETE", "/v1/spends", None, ("DELETE", "Use ")),
    "position": ("GET", "/v1/policies?min_position=x", None, ("min_position must be", "got x")),
    "comparison": ("POST", "/v1/compare", {"epsilon": 1, "domain_size": 3}, ("users is missing",)),
    "unknown reservation": ("POST", "/v1/reservations/7-dead/commit", None, ("'7-dead'",)),
}


@pytest.fixture(scope="module")
def client(ledger: Accountant) -> Iterator[Any]:
    pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
    from fastapi.testclient import TestClient

    from ldp_budget_service import create_app

    secret = ApiKeys(ledger).create("tests", ["admin"])[1]
    with TestClient(create_app(ledger), headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("case", OVER_HTTP)
def test_message_over_http_names_parameter_and_value(client: Any, case: str) -> None:
    method, path, body, words = OVER_HTTP[case]
    sent = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
    headers = {"Idempotency-Key": f"key of {case}", "Content-Type": "application/json"}
    answer = client.request(method, path, headers=headers, **sent)
    assert answer.status_code >= 400
    detail = answer.json()["detail"]
    for each in words:
        assert each in detail
    assert OLD_FORM.search(detail) is None, detail


def test_hint_over_http_is_a_member(client: Any) -> None:
    answer = client.post("/v1/spends", json={"user": "a", "collection": "pol"}, headers={"Idempotency-Key": "h"})
    assert answer.json()["hint"] == "Did you mean 'poll'?"


def test_ledger_hint_over_http_stays_with_the_operator() -> None:
    from ldp_budget.errors import LedgerError
    from ldp_budget_service.api.problem_details import members_of

    detail, members = members_of(
        LedgerError("/var/lib/budget.db", "it is truncated", hint="Restore /backup/budget.db.")
    )
    assert "/" not in detail
    assert "hint" not in members
