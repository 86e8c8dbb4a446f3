"""Statements of users over HTTP: a page or JSON, in the asked language, for keys with a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget_service.routes.statements import prefers_json
from service_threads import Served

NAME = "김 철수/1"


@pytest.fixture
def served(clock: Clock) -> Iterator[Served]:
    with Accountant(":memory:", clock=clock) as accountant, Served(accountant) as made:
        accountant.set_policy("default", ["lifetime=4"])
        for user in ("alice", NAME):
            accountant.spend(user, coin(1))
        yield made


@pytest.fixture
def secret(served: Served) -> str:
    return served.secret("statement", name="officer")


def asked(served: Served, secret: str, path: str = "/v1/users/alice/statement", **headers: str) -> Any:
    answer = served.ask("GET", path, secret=secret, Accept="application/json", **headers)
    assert answer.status == 200, answer.body
    return answer.json()


def verifications(served: Served) -> list[str | None]:
    return [record.by for record in served.accountant.records() if record.kind == "verified"]


def test_statement_is_a_page_that_loads_nothing_and_is_stored_nowhere(served: Served, secret: str) -> None:
    answer = served.ask("GET", "/v1/users/alice/statement", secret=secret)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = answer.body.decode()
    assert "Statement for alice" in page
    assert "src=" not in page


@pytest.mark.parametrize(
    ("query", "header", "language"),
    [
        ("?lang=ko", "de", "ko"),
        ("", "ko-KR,ko;q=0.9", "ko"),
        ("", "de", "de"),
        ("", "fr", "en"),
        ("?lang=en", "ko", "en"),
    ],
)
def test_statement_is_in_the_asked_language(
    served: Served, secret: str, query: str, header: str, language: str
) -> None:
    headers = {"Accept-Language": header}
    answer = served.ask("GET", f"/v1/users/alice/statement{query}", secret=secret, **headers)
    assert f'<html lang="{language}">' in answer.body.decode()
    assert answer.headers["content-language"] == language


def test_statement_by_a_name_in_the_body_equals_that_of_the_path(served: Served, secret: str) -> None:
    path = "/v1/users/%EA%B9%80%20%EC%B2%A0%EC%88%98%2F1/statement"
    found = asked(served, secret, path)
    answer = served.ask("POST", "/v1/users:statement", {"user": NAME}, secret=secret, Accept="application/json")
    assert found["user"] == NAME
    assert [each["cost"]["epsilon"] for each in found["charges"]] == [1.0]
    assert {**answer.json(), "at": "", "head": ""} == {**found, "at": "", "head": ""}


def test_statement_uses_the_last_verification_and_names_it(served: Served, secret: str, clock: Clock) -> None:
    audit = served.secret("audit", name="auditor")
    verified = served.ask("POST", "/v1/ledger/verifications", secret=audit).json()
    served.accountant.spend("alice", coin(1))
    clock.advance(minutes=59)
    found = asked(served, secret)
    assert verifications(served) == ["auditor"]
    assert (found["verified"], found["verified_head"]) == (True, verified["head"])
    assert found["head"] == served.accountant.stats()["head"] != verified["head"]
    assert len(found["charges"]) == 2
    clock.advance(minutes=2)
    assert asked(served, secret)["verified_at"] == clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert verifications(served) == ["auditor", "officer"]


@pytest.mark.parametrize(
    ("accepted", "is_json"),
    [
        *[("", False), ("*/*", False), ("text/html", False), ("application/json", True), ("application/*", True)],
        *[("text/html, application/json", False), ("text/html;q=0.5, application/json", True)],
        *[("application/json;q=0.1, */*;q=0.2", False), ("application/json, */*;q=0.1", True), ("x;q=y", False)],
    ],
)
def test_accept_header_chooses_between_page_and_json(accepted: str, is_json: bool) -> None:
    assert prefers_json(accepted) is is_json
