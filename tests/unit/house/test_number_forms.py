"""Numbers have one form wherever they enter: on the command line, in a survey file, over HTTP, and in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")
from fastapi.testclient import TestClient

from ldp_budget import Accountant, InvalidParameter, Limit, mechanism
from ldp_budget_service import create_app
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_surveys.questionnaires.surveys import Survey

FORMS = ["1_0", "１０", "٣", "1__0", "1e1_0", "0x1", "1,5", "inf", "nan", "−1", "²"]
COMMANDS = [
    ("policy", "set", "default", "--limit", "lifetime={}"),
    ("policy", "set", "default", "--limit", "lifetime=1,{}"),
    ("calibrate", "oue", "--epsilon", "{}", "--domain-size", "7"),
    ("calibrate", "oue", "--epsilon", "1", "--domain-size", "{}"),
    ("calibrate", "oue", "--epsilon", "1", "--domain-size", "7", "--users", "{}"),
    ("compose", "oue", "--epsilon", "1", "--domain-size", "7", "--reports", "{}"),
    ("plan", "oue", "--domain-size", "7", "--reports", "2", "--total-epsilon", "{}"),
    ("compare", "--epsilon", "1", "--domain-size", "{}", "--users", "10"),
    ("collection", "add", "party", "oue", "--epsilon", "1", "--categories", "a,b", "--minimum-group", "{}"),
    ("inbox", "seal", "party", "out", "--group", "{}"),
    ("reserve", "alice", "oue", "--epsilon", "1", "--domain-size", "7", "--expires", "{}"),
    ("api-key", "create", "app", "--scope", "read", "--expires", "{}"),
    ("serve", "--in-memory", "--rate", "{}"),
]
OUE = {"name": "oue", "domain_size": 4}
REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/spends", {"user": "a", "mechanism": {**OUE, "epsilon": "{}"}, "dry_run": True}),
    ("POST", "/v1/compare", {"epsilon": "1", "domain_size": 4, "users": 9, "margin": "{}"}),
    ("POST", "/v1/reservations", {"user": "a", "mechanism": {**OUE, "epsilon": "1"}, "expires": "{}"}),
    ("PUT", "/v1/policies/new", {"limits": ["lifetime={}"]}),
    ("PUT", "/v1/policies/new", {"limits": [{"period": "lifetime", "epsilon": "{}"}]}),
    ("PUT", "/v1/policies/new", {"limits": ["lifetime=9"], "plan": {"charges": [], "epsilon": "{}"}}),
    ("GET", "/v1/users/alice/history?most={}", None),
    ("GET", "/v1/users/alice/history?first={}", None),
    ("GET", "/v1/overview/activity?days={}", None),
    ("GET", "/v1/ledger/records?first={}", None),
    ("GET", "/v1/collections/none/estimate?confidence={}", None),
    ("POST", "/v1/proposals/{}/approve", None),
]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: f"{words[0]} {words[-2]}")
def test_command_refuses_other_forms_of_a_number(command: Any, words: tuple[str, ...], form: str) -> None:
    assert command.error(*(word.format(form) for word in words), code=2)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=4"])
        secret = ApiKeys(accountant).create("tests", ["admin"])[1]
        with TestClient(create_app(accountant), headers={"Authorization": f"Bearer {secret}"}) as made:
            yield made


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "body"), REQUESTS, ids=lambda each: str(each)[:60])
def test_service_refuses_other_forms_of_a_number(client: TestClient, method: str, path: str, body: Any) -> None:
    """`1_0` in a query was read as 10."""
    for form in FORMS:
        sent = None if body is None else json.loads(json.dumps(body).replace("{}", form))
        answer = client.request(method, path.replace("{}", form), json=sent, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["type"]) == (400, "/problems/invalid-parameter"), form


@pytest.mark.parametrize("form", FORMS)
def test_python_and_survey_files_refuse_other_forms_of_a_number(form: str, tmp_path: Path) -> None:
    for make in (lambda: mechanism("oue")(epsilon=form, domain_size=4), lambda: Limit("lifetime", epsilon=form)):
        with pytest.raises(InvalidParameter):
            make()
    question = '[[question]]\nname = "q"\ncategories = ["a", "b"]\n'
    for text in (f'epsilon = "{form}"\n{question}', f'epsilon = 2\n{question}epsilon = "{form}"\n'):
        (tmp_path / "survey.toml").write_text(f'[survey]\nname = "s"\n{text}', encoding="utf-8")
        with pytest.raises(InvalidParameter):
            Survey.from_toml(tmp_path / "survey.toml")
